"""Returns that an estimate of Q corrects: what is weighted is only what the estimate has not foretold.

With Q_t an estimate of the return over the T - t steps that are left, V_t(s) = sum_a pi(a | s) Q_t(s, a), V_T = 0, and w_t the
product of the ratios pi / b up to step t,

    X = V_0(s_0) + sum_{t<T} discount^t w_t (r_t + discount V_{t+1}(s_{t+1}) - Q_t(s_t, a_t))

has the mean J whatever the estimate is, and a small variance where it is good (Jiang and Li 2016; Thomas and Brunskill 2016). At
T = 1 it is X = V(s) + w (r - Q(s, a)).

Weights are clipped on their way, w_t = min(w_{t-1} pi / b, c), so that X is bounded. A clipped step leaves out the mass
m_a = (w_{t-1} pi(a | s_t) - c b(a | s_t))_+ of an action, for which X takes the estimate at its word. With returns over the steps
left in [L_t, H_t], which are declared, and with Q_t clipped to it,

    low  = X - sum_t discount^t sum_a m_a (Q_t(s_t, a) - L_t)    has a mean of at most J,
    high = X + sum_t discount^t sum_a m_a (H_t - Q_t(s_t, a))    has a mean of at least J.

Proof, backwards in t. Let R_t be w_{t-1} V_t(s_t) plus all terms of `low` from t on, divided by discount^t. If the mean of
R_{t+1}, given the past, is at most w_t times the true value of s_{t+1}, then, as b w_t = w_{t-1} pi - m, that of R_t is at most
    w_{t-1} V_t + sum_a (w_{t-1} pi_a - m_a) (Q*_a - Q_t(a)) - sum_a m_a (Q_t(a) - L_t) = w_{t-1} V* - sum_a m_a (Q*_a - L_t),
which is at most w_{t-1} V*, where Q* and V* are the true ones. Where only b of the action taken is known, b >= p of all actions is
declared, and p in the place of b makes m larger: still valid.
An action that the logger never takes has m = w_{t-1} pi: no overlap is assumed, and where there is none, the interval is wide.

Bounded: w_{t-1} V_t - sum_a m_a Q_t(a) is a sum over a of (w_{t-1} pi_a - m_a) Q_t(a), and from L_t up no Q_t is negative. So
low >= L_0 - c sum_t discount^t (H_t - L_t), and high <= H_0 + c sum_t discount^t (H_t - L_t) in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import Policy
from ..problem.propensities import taken_probabilities
from ..problem.transitions import Transitions
from ..validation import FloatArray, IntArray, frozen, number, ordered_pair, positive, same_rows, vector, whole
from .fitted_returns import ReturnEstimate, fit_returns
from .importance_sampling import Range, check_payments, logged_probabilities, return_range, whole_episodes

CHUNK = 10_000
"""Rows whose features are held at once."""

EARLIER_SHARE, FIT_SHARE = 0.05, 0.2
"""The shares of the episodes, the first ones, that correct no return: where the fit is made again, and where it is made once."""

CAPS, MOST_CAP = 1.5, 1e6
"""The factor between one largest weight that is tried and the next, and the largest of all."""

DESIGN_LEVEL = 0.05
"""The largest weight is chosen for this level whatever delta is."""


@checked
@dataclass(frozen=True, eq=False)
class DoublyRobust:
    """An estimator that subtracts what an estimate of Q foretells, which the earlier episodes fit unless it is given.

    Parameters
    ----------
    q : callable, optional
        An estimate of Q that was fixed before the data: (states (n, d), action vectors (n, k)) -> (n,). None to fit the returns
        over the steps left, by regressions on the episodes before (`fit_returns`).
    features : callable, optional
        Points (s, a), (n, d) -> (n, m), for the fit; any feature map serves. None for one-hot features of the pairs that the
        earlier rows have, or, where these are many, coordinates with their squares and products.
    largest_weight : float, optional
        c, at which weights are clipped, at least 1 and fixed before the data. None to choose it on the first episodes.
    least_probability : float, optional
        The logger gave this probability at least to every action at every step, in (0, 1]. Needed where only the probabilities of
        the logged actions are known, and not the policy that acted.

    Raises
    ------
    InvalidInput
        Where a number is out of range, or both an estimate and features are given.

    Examples
    --------
    >>> from accountable_ope.baselines import DoublyRobust
    >>> DoublyRobust(least_probability=0.2).least_probability
    0.2
    """

    q: Callable[[FloatArray, FloatArray], ArrayLike] | None = None
    features: Callable[[FloatArray], ArrayLike] | None = None
    largest_weight: float | None = None
    least_probability: float | None = None

    def __post_init__(self) -> None:
        if self.q is not None and self.features is not None:
            raise InvalidInput("`features` have no effect beside `q`: a given estimate is not fitted.")
        if self.largest_weight is not None and number(self.largest_weight, "largest_weight") < 1:
            raise InvalidInput(f"`largest_weight` must be at least 1, the mean of the weights. Got {self.largest_weight!r}.")
        least = self.least_probability
        if least is not None and positive(least, "least_probability") > 1:
            raise InvalidInput(f"`least_probability` must be in (0, 1]. Got {least!r}.")


@checked
@dataclass(frozen=True, eq=False)
class CorrectedReturns:
    """What is known of J from every episode that was not used up by a choice, in order.

    Attributes
    ----------
    low, high : array (N,)
        Their means are at most J and at least J.
    limits : tuple of two floats
        No `low` is below the first, no `high` above the second.
    guess : tuple of two floats
        (mean, standard deviation) that the episodes before lead one to expect.
    largest_weight : float
        c.
    """

    low: FloatArray
    high: FloatArray
    limits: Range
    guess: Range
    largest_weight: float

    def __len__(self) -> int:
        return len(self.low)


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
    """L and H of the return over 0, 1, ..., T steps, (T + 1, 2)."""
    discount: float

    def part(self, begin: int, end: int) -> Episodes:
        """Some of the episodes, one after the other."""
        rows = slice(int(self.first[begin]), int(self.first[end - 1] + self.lengths[end - 1]))
        return Episodes(
            self.data.rows(rows),
            self.first[begin:end] - rows.start,
            self.lengths[begin:end],
            self.left[rows],
            self.target[rows],
            self.logged[rows],
            self.least[rows],
            self.ranges,
            self.discount,
        )


@checked
def corrected_returns(
    data: Transitions,
    policy: Policy,
    behavior: ArrayLike | Policy | None = None,
    *,
    estimator: DoublyRobust | None = None,
    discount: float,
    reward_range: Range,
    horizon: int,
    terminal_reward: bool = False,
    refit: bool = True,
) -> CorrectedReturns:
    """Bounded numbers with means around J, one pair per episode: `low` and `high` above.

    The first twentieth of the episodes fits the returns and chooses the largest weight; the next ones are corrected by that fit,
    and whenever their number has doubled it is made again on all episodes before. Without refits the first fifth fits once.

    Parameters
    ----------
    data : Transitions
        Whole episodes in the order of generation; each row begins where the one before it in its episode ended.
    policy : Policy
        The target policy, over a finite action set.
    behavior : array (n,) or Policy, optional
        pi_b(a_i | s_i) of the action in every row, or the behavior policy itself. None: `behavior_probability` of the data.
    estimator : DoublyRobust, optional
        Which estimate, and how weights are clipped.
    discount : float
        In [0, 1].
    reward_range : tuple of two floats
        Every reward lies in it; also 0, where episodes terminate.
    horizon : int
        T. Later rows are not used; an episode that is shorter must have terminated.
    terminal_reward : bool
        Only the transition that ends an episode pays.
    refit : bool
        Whether the fit is made again. Then samples depend on those before, though not in the mean.

    Returns
    -------
    CorrectedReturns

    Raises
    ------
    InvalidInput
        Where data, policies and what is declared contradict each other or do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import corrected_returns
    >>> from accountable_ope.environments import chain
    >>> mdp, uniform = chain(3, discount=0.9), np.full((3, 2), 0.5)
    >>> data = mdp.sample_trajectories(uniform, episodes=200, length=4, rng=np.random.default_rng(0))
    >>> found = corrected_returns(
    ...     data, mdp.policy([[0.4, 0.6]] * 3), behavior=mdp.policy(uniform), discount=0.9, reward_range=(0, 1), horizon=4
    ... )
    >>> len(found)
    190
    """
    chosen = DoublyRobust() if estimator is None else estimator
    episodes = _read(data, policy, behavior, chosen, discount, reward_range, horizon, terminal_reward)
    cuts = _cuts(len(episodes.first), chosen, refit)
    known = None if chosen.q is None else _Given(chosen.q)

    def knowledge(until: int) -> ReturnEstimate:
        """What is known before this episode."""
        return known or fit_returns(episodes.part(0, until).data, policy, chosen.features, episodes.ranges, discount)

    cap, guess = _choose(episodes.part(0, cuts[0]), policy, knowledge(cuts[0]), chosen, len(episodes.first) - cuts[0])
    parts = []
    for begin, end in pairwise(cuts):
        here = episodes.part(begin, end)
        parts.append(corrected(here, estimated(here, policy, knowledge(begin)), cap))
    low, high = (np.concatenate(side) for side in zip(*parts, strict=True))
    return CorrectedReturns(frozen(low), frozen(high), limits(episodes, cap), guess, cap)


def corrected(episodes: Episodes, values: FloatArray, cap: float) -> tuple[FloatArray, FloatArray]:
    """(low, high) of every episode; `values`: the estimate (n, A) at all actions, inside the ranges."""
    e, discount = episodes, episodes.discount
    taken = np.asarray(e.data.actions, dtype=np.int64)
    rows = np.arange(len(taken))
    chosen, expected = values[rows, taken], (e.target * values).sum(axis=1)
    low_end, high_end = e.ranges[e.left].T
    ratio = e.target[rows, taken] / e.logged
    onward = np.append(expected[1:], 0.0)
    onward[e.first + e.lengths - 1] = 0.0  # the end, or the horizon
    surprise = e.data.rewards + discount * onward - chosen
    weight, x, below, above = (np.full(len(e.first), start) for start in (1.0, 0.0, 0.0, 0.0))
    x += expected[e.first]
    for time in range(int(e.lengths.max())):
        alive = np.flatnonzero(e.lengths > time)
        at, share = e.first[alive] + time, discount**time
        lost = np.maximum(weight[alive, None] * e.target[at] - cap * e.least[at], 0.0)
        below[alive] += share * (lost * (values[at] - low_end[at, None])).sum(axis=1)
        above[alive] += share * (lost * (high_end[at, None] - values[at])).sum(axis=1)
        weight[alive] = np.minimum(weight[alive] * ratio[at], cap)
        x[alive] += share * weight[alive] * surprise[at]
    return x - below, x + above


def limits(episodes: Episodes, cap: float) -> Range:
    """What no `low` is below, and no `high` above."""
    low, high = episodes.ranges[-1]
    steps = len(episodes.ranges) - 1
    spans = (episodes.ranges[:, 1] - episodes.ranges[:, 0])[:0:-1]  # at T, T - 1, ..., 1 steps left
    reach = cap * float(np.power(episodes.discount, np.arange(steps)) @ spans)
    return float(low - reach), float(high + reach)


def estimated(episodes: Episodes, policy: Policy, estimate: ReturnEstimate) -> FloatArray:
    """(n, A): the estimate at every action, clipped to the range of returns over the steps left."""
    states, left = episodes.data.states, episodes.left
    low, high = episodes.ranges[left].T
    found = np.empty_like(episodes.target)
    for begin in range(0, len(states), CHUNK):
        rows = slice(begin, begin + CHUNK)
        for index, branch in enumerate(policy.branches(states[rows])):
            found[rows, index] = np.clip(estimate(states[rows], branch.actions, left[rows]), low[rows], high[rows])
    return found


@dataclass(frozen=True, eq=False)
class _Given:
    """An estimate that does not ask how many steps are left."""

    q: Callable[[FloatArray, FloatArray], ArrayLike]

    def __call__(self, states: FloatArray, actions: FloatArray, left: IntArray) -> FloatArray:
        found = vector(self.q(states, np.array(actions)), "q")
        same_rows(len(states), found, "q", "states")
        return found


def _cuts(count: int, estimator: DoublyRobust, refit: bool) -> list[int]:
    """The first episode that is corrected, those from which on another fit corrects, and their number."""
    refit = refit and estimator.q is None
    begin = max(2, math.ceil(count * (EARLIER_SHARE if refit or estimator.q is not None else FIT_SHARE)))
    if count - begin < 2:
        raise InvalidInput(f"At least 4 episodes are needed, some to fit and some to correct. Got {count}.")
    found = [begin]
    while refit and 2 * found[-1] < count:
        found.append(2 * found[-1])
    return [*found, count]


def _choose(before: Episodes, policy: Policy, known: ReturnEstimate, estimator: DoublyRobust, later: int) -> tuple[float, Range]:
    """(c, guess) from the episodes before: as declared, or the c of the least width that they predict for `later` others."""
    values, cap = estimated(before, policy, known), estimator.largest_weight
    if cap is None:
        cap = _best_cap(before, values, later)
    middle = 0.5 * sum(corrected(before, values, cap))
    return cap, (float(np.mean(middle)), float(np.std(middle)))


def _best_cap(before: Episodes, values: FloatArray, later: int) -> float:
    log, tried, cap = math.log(2 / DESIGN_LEVEL), [], 1.0
    while True:
        low, high = corrected(before, values, cap)
        least, most = limits(before, cap)
        spread = math.sqrt(2 * log / later) * float(low.std() + high.std()) + (most - least) * log / later
        tried.append((float((high - low).mean()) + spread, cap))
        if not (high > low).any() or cap > MOST_CAP:
            return min(tried)[1]
        cap *= CAPS


def _read(
    data: Transitions,
    policy: Policy,
    behavior: ArrayLike | Policy | None,
    estimator: DoublyRobust,
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
        least = _all_probabilities(behavior, ordered, "behavior")
        if least.shape != target.shape:
            raise InvalidInput(f"`behavior` must have the actions of `policy`, {target.shape[1]}. It has {least.shape[1]}.")
    else:
        least = np.full(target.shape, _floor(estimator, logged))
    ends = [(0.0, 0.0)] + [return_range(discount, reward_range, k, terminal_reward=terminal_reward) for k in range(1, steps + 1)]
    left = steps - (np.arange(len(rows)) - np.repeat(begins, lengths))
    return Episodes(ordered, begins, lengths, left, target, logged[rows], least, np.array(ends), discount)


def _floor(estimator: DoublyRobust, logged: FloatArray) -> float:
    least = estimator.least_probability
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
