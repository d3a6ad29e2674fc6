"""Episodes as importance sampling needs them: whole, with the probabilities of their actions, and the range of their returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.contradictions import check_last_pays
from ..problem.policy import Policy
from ..problem.propensities import recorded_probabilities, taken_probabilities
from ..problem.statements import range_text
from ..problem.transitions import Transitions
from ..validation import FloatArray, IntArray, number, ordered_pair, plural, same_rows, vector, whole

Range = tuple[float, float]


@checked
def return_range(discount: float, reward_range: Range, horizon: int, *, terminal_reward: bool = False) -> Range:
    """(Rmin, Rmax): the declared range of a reward times 1 + discount + ... over T steps; with 0, where only the end pays.

    Parameters
    ----------
    discount : float
        In [0, 1].
    reward_range : tuple of two floats
        low < high.
    horizon : int
        T, at least 1.
    terminal_reward : bool
        Only the transition that ends an episode pays.

    Returns
    -------
    tuple of two floats

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.baselines import return_range
    >>> return_range(0.5, (0, 1), horizon=3)
    (0.0, 1.75)
    """
    if not 0 <= number(discount, "discount") <= 1:
        raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
    low, high = ordered_pair(reward_range, "reward_range")
    if low == high:
        raise InvalidInput(f"`reward_range` must have low < high: otherwise every return is known. Got {reward_range!r}.")
    total = total_discount(discount, whole(horizon, "horizon", least=1))
    return (min(low, 0.0), max(high, 0.0)) if terminal_reward else (low * total, high * total)


@checked
def truncation_gap(discount: float, reward_range: Range, horizon: int) -> float:
    """The most by which the value forever can differ from the return over T steps: discount^T max |r| / (1 - discount).

    Parameters
    ----------
    discount, reward_range, horizon
        As in `return_range`.

    Returns
    -------
    float
        Infinity at a discount of 1.

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.baselines import truncation_gap
    >>> truncation_gap(0.5, (0, 1), horizon=3)
    0.25
    """
    return_range(discount, reward_range, horizon)
    largest = max(map(abs, ordered_pair(reward_range, "reward_range")))
    return math.inf if discount == 1 else discount**horizon * largest / (1 - discount)


def total_discount(discount: float, steps: int) -> float:
    """1 + discount + ... over the steps."""
    return float(steps) if discount == 1 else (1 - discount**steps) / (1 - discount)


def logged_probabilities(data: Transitions, behavior: ArrayLike | Policy | None) -> FloatArray:
    """pi_b(a | s) in every row: of a policy, as given, or as recorded in the data."""
    if behavior is None:
        return recorded_probabilities(data)
    if isinstance(behavior, Policy):
        logged = taken_probabilities(behavior, data, "behavior")
    else:
        logged = vector(behavior, "behavior")
        same_rows(len(data), logged, "behavior", "states")
    if (logged == 0).any():
        raise InvalidInput(
            f"`behavior` gives probability 0 to the action taken in row {int(np.argmax(logged == 0))}: it cannot be the policy "
            "that acted."
        )
    wrong = (logged < 0) | (data.finite_actions & (logged > 1 + 1e-9))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"`behavior` must be probabilities, in (0, 1]. Got {logged[row]:g} in row {row}.")
    return logged


def whole_episodes(data: Transitions, steps: int) -> tuple[IntArray, IntArray, IntArray]:
    """(rows ordered by episode and time, the first of every episode in that order, the number that is used)."""
    if data.episodes is None:
        raise InvalidInput("`episodes` are needed: importance sampling weighs whole episodes.")
    if data.headless.any():
        raise InvalidInput("`episodes` must be whole for importance sampling, and some of them began before these rows.")
    lengths = np.bincount(data.episodes)
    if len(lengths) < 2:
        raise InvalidInput("At least two episodes are needed. Got one.")
    order = np.argsort(data.episodes, kind="stable")  # stable: time order is kept within an episode
    last = np.cumsum(lengths) - 1
    ended = data.terminated[order]
    inside = ended.copy()
    inside[last] = False
    if inside.any():
        raise InvalidInput(f"`terminated` is True in row {int(order[np.argmax(inside)])}, but its episode goes on after it.")
    short = (lengths < steps) & ~ended[last]
    if short.any():
        count, where = int(short.sum()), int(np.argmax(short))
        raise InvalidInput(
            f"`horizon` is {steps}, but {count} {plural(count, 'episode was', 'episodes were')} cut off before, the first after "
            f"{int(lengths[where])} {plural(int(lengths[where]), 'row', 'rows')}: what was paid later is not known."
        )
    return order, last - lengths + 1, np.minimum(lengths, steps)


def check_payments(data: Transitions, reward_range: Range, terminal_reward: bool) -> None:
    """Raise where rewards are not as declared."""
    low, high = reward_range
    outside = (data.rewards < low) | (data.rewards > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInput(
            f"`rewards` must lie in the declared reward_range {range_text(low, high)}. Got {data.rewards[row]:g} in row {row}."
        )
    if data.terminated.any() and not low <= 0 <= high:
        raise InvalidInput(
            f"`reward_range` must contain 0 where episodes terminate, since that is paid afterwards. Got {range_text(low, high)}."
        )
    if terminal_reward:
        check_last_pays(data)


@dataclass(frozen=True, eq=False)
class Episodes:
    """All that corrected returns need of the rows, in the order of episodes and time; beyond T steps nothing."""

    data: Transitions
    first: IntArray
    lengths: IntArray
    left: IntArray
    """Steps left in every row, T at the first."""
    target: FloatArray
    """pi (n, A)."""
    logged: FloatArray
    """b of the logged actions, (n,)."""
    least: FloatArray
    """b (n, A), or what it is at least."""
    ranges: FloatArray
    """Least and largest return over 0, 1, ..., T steps, (T + 1, 2)."""
    discount: float

    def __len__(self) -> int:
        return len(self.first)

    def part(self, begin: int, end: int) -> Episodes:
        """Some of the episodes, one after the other."""
        rows = slice(int(self.first[begin]), int(self.first[end - 1] + self.lengths[end - 1]))
        return replace(
            self,
            data=self.data.rows(rows),
            first=self.first[begin:end] - rows.start,
            lengths=self.lengths[begin:end],
            left=self.left[rows],
            target=self.target[rows],
            logged=self.logged[rows],
            least=self.least[rows],
        )


def read_episodes(
    data: Transitions,
    policy: Policy,
    behavior: ArrayLike | Policy | None,
    least_probability: float | None,
    discount: float,
    reward_range: Range,
    horizon: int,
    terminal_reward: bool,
) -> Episodes:
    """Everything checked, in the order of episodes and time."""
    steps = whole(horizon, "horizon", least=1)
    return_range(discount, reward_range, horizon)
    order, first, lengths = whole_episodes(data, steps)
    check_payments(data, ordered_pair(reward_range, "reward_range"), terminal_reward)
    if not data.finite_actions:
        raise InvalidInput("`actions` must be indices of a finite action set: a doubly robust return sums over all actions.")
    logged = logged_probabilities(data, behavior)
    used = np.concatenate([np.arange(a, a + b) for a, b in zip(first, lengths, strict=True)])
    rows = order[used]
    begins = np.cumsum(lengths) - lengths
    ordered = data.rows(rows)
    _refuse_gaps(ordered, begins, rows)
    target = _all_probabilities(policy, ordered, "policy")
    if isinstance(behavior, Policy):
        if least_probability is not None:
            raise InvalidInput(
                "`least_probability` has no effect beside a `behavior` policy, which has a probability for every action."
            )
        least = _all_probabilities(behavior, ordered, "behavior")
        if least.shape != target.shape:
            raise InvalidInput(f"`behavior` must have the actions of `policy`, {target.shape[1]}. It has {least.shape[1]}.")
    else:
        least = np.full(target.shape, _floor(least_probability, logged))
    ends = [(0.0, 0.0)] + [return_range(discount, reward_range, k, terminal_reward=terminal_reward) for k in range(1, steps + 1)]
    left = steps - (np.arange(len(rows)) - np.repeat(begins, lengths))
    return Episodes(ordered, begins, lengths, left, target, logged[rows], least, np.array(ends), discount)


def _floor(least: float | None, logged: FloatArray) -> float:
    if least is None:
        raise InvalidInput(
            "`least_probability` of DoublyRobust is needed where only the probabilities of the logged actions are known: declare "
            "what the logger gave to every action at least, or give the policy that acted as `behavior`."
        )
    if (logged < least * (1 - 1e-9)).any():
        row = int(np.argmin(logged))
        raise InvalidInput(f"`least_probability` is declared as {least:g}, but row {row} has {logged[row]:g}.")
    return least


def _all_probabilities(policy: Policy, data: Transitions, name: str) -> FloatArray:
    taken_probabilities(policy, data, name)  # whatever is wrong is said there
    return np.column_stack([branch.weights for branch in policy.branches(data.states)])


def _refuse_gaps(data: Transitions, begins: IntArray, rows: IntArray) -> None:
    """What is foretold of a next state must be what the next row begins with."""
    inside = np.ones(len(data), dtype=bool)
    inside[begins] = False
    at = np.flatnonzero(inside)
    broken = at[(data.next_states[at - 1] != data.states[at]).any(axis=1)]
    if len(broken):
        raise InvalidInput(
            f"`states` must be the `next_states` of the row before, inside an episode. Row {int(rows[broken[0]])} is "
            f"{data.states[broken[0]].tolist()}, after {data.next_states[broken[0] - 1].tolist()}."
        )
