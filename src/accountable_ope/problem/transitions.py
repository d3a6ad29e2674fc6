"""Logged transitions and start states: frozen, validated arrays."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import (
    BoolArray,
    FloatArray,
    IntArray,
    frozen,
    matrix,
    plural,
    same_rows,
    vector,
)
from .copies import Copies, copies_in
from .fingerprint import Fingerprint, fingerprint
from .naming import UNNAMED, Naming, shared_naming
from .row_columns import (
    LOGGED,
    action_column,
    first_alike,
    flag_column,
    label_column,
    probability_column,
    refuse_text,
    without_holes,
)


@checked
@dataclass(frozen=True, eq=False, init=False)
class Transitions:
    """Logged transitions (s, a, r, s'), rows in the order in which they were generated.

    Parameters
    ----------
    states : array (n, d), or (n,) for one-dimensional states
    actions : array
        (n,) integers that index a finite action set, or (n, k) floats.
    rewards : array (n,)
    next_states : array
        Of the shape of `states`. In terminated rows they are not used, and may be NaN.
    terminated : array (n,) of bool, optional
        True where s' is terminal and worth 0. A truncated episode is not terminated: its last row goes on. None: nowhere.
    episodes : array (n,), optional
        Labels of the episodes; None when unknown.
    behavior_probability : array (n,), optional
        The probability with which the logger chose the logged action, in (0, 1]; of action vectors, its density. It was fixed
        before the reward and the next state of its row were drawn. None when unknown.

    Raises
    ------
    InvalidInput
        Where there are fewer than two rows, or the arrays do not fit together or are not finite.

    Examples
    --------
    >>> from accountable_ope import Transitions
    >>> data = Transitions([0.0, 1.0, 0.0, 1.0], [0, 1, 1, 0], [0.0, 1.0, 0.5, 0.0], [1.0, 0.0, 1.0, 1.0], episodes=[0, 0, 1, 1])
    >>> data
    Transitions(4 rows, 2 episodes, 1-d states, 0 terminated)
    >>> earlier, later = data.split(0.5)
    >>> later.rewards.tolist()
    [0.5, 0.0]
    """

    states: FloatArray
    actions: IntArray | FloatArray
    rewards: FloatArray
    next_states: FloatArray
    terminated: BoolArray
    episodes: IntArray | None
    behavior_probability: FloatArray | None

    def __init__(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminated: ArrayLike | None = None,
        episodes: ArrayLike | None = None,
        behavior_probability: ArrayLike | None = None,
    ) -> None:
        for given, name in (
            (states, "states"),
            (rewards, "rewards"),
            (next_states, "next_states"),
            (behavior_probability, LOGGED),
        ):
            refuse_text(given, name)
        s = matrix(states, "states")
        n = len(s)
        if n < 2:
            raise InvalidInput(f"At least two transitions are needed. Got {n}.")
        r = vector(rewards, "rewards")
        ended = np.zeros(n, dtype=bool) if terminated is None else flag_column(terminated, n)
        s_next = matrix(without_holes(next_states, s, ended), "next_states")
        a = action_column(actions)
        for array, name in ((r, "rewards"), (s_next, "next_states"), (a, "actions")):
            same_rows(n, array, name, "states")
        if s_next.shape[1] != s.shape[1]:
            raise InvalidInput(f"`next_states` must have as many columns as `states` ({s.shape[1]}). Got {s_next.shape[1]}.")
        fields: dict[str, NDArray[Any] | None] = {
            "states": s,
            "actions": a,
            "rewards": r,
            "next_states": s_next,
            "terminated": ended,
            "episodes": None if episodes is None else label_column(episodes, n),
            LOGGED: None if behavior_probability is None else probability_column(behavior_probability, n, densities=a.ndim == 2),
        }
        for name, values in fields.items():
            object.__setattr__(self, name, None if values is None else frozen(values))

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        episodes = "" if self.episodes is None else f", {self.number_of_episodes} episodes"
        ended = int(self.terminated.sum())
        return f"Transitions({len(self)} rows{episodes}, {self.states.shape[1]}-d states, {ended} terminated)"

    @property
    def finite_actions(self) -> bool:
        """Whether actions are indices into a finite set."""
        return self.actions.ndim == 1

    @property
    def number_of_episodes(self) -> int | None:
        return None if self.episodes is None else int(self.episodes.max()) + 1

    @cached_property
    def sha256(self) -> str:
        """What names these rows in a certificate."""
        whole = Fingerprint()
        self.name_in(whole, self.episodes)
        return whole.hexdigest()

    @cached_property
    def copies(self) -> Copies:
        """Which rows stand among these again, in long stretches: as where files or queries were put together twice."""
        return copies_in(self)

    def name_in(self, fingerprint: Fingerprint, episodes: IntArray | None) -> None:
        """Add these rows to the name of a log of which they are a part; episodes: counted over that log as they begin."""
        fingerprint.add(
            states=self.states,
            actions=self.actions,
            rewards=self.rewards,
            next_states=self.next_states,
            terminated=self.terminated,
            episodes=episodes,
            behavior_probability=self.behavior_probability,
        )

    @cached_property
    def same_pair(self) -> IntArray:
        """Of every row the first row with the same state and action."""
        return first_alike(self.states, self.actions)

    @cached_property
    def same_step(self) -> IntArray:
        """Of every row the first row with the same state, action, next state and flag of termination."""
        return first_alike(self.states, self.actions, self.next_states, self.terminated)

    @cached_property
    def reward_conflict(self) -> tuple[int, int] | None:
        """Two rows with the same state and action that pay differently; None where there are none."""
        before = self.same_pair
        differs = np.abs(self.rewards - self.rewards[before]) > 1e-9 * np.abs(self.rewards).max()
        return (int(before[np.argmax(differs)]), int(np.argmax(differs))) if differs.any() else None

    @property
    def asked_next_states(self) -> FloatArray:
        """Where a policy is asked: the next states, and in terminated rows, where no answer counts, the states themselves."""
        return np.where(self.terminated[:, None], self.states, self.next_states)

    def rows(self, chosen: slice | BoolArray | IntArray) -> Transitions:
        """Some of the transitions, in the same order."""
        found = Transitions(
            self.states[chosen],
            self.actions[chosen],
            self.rewards[chosen],
            self.next_states[chosen],
            self.terminated[chosen],
            None if self.episodes is None else self.episodes[chosen],
            None if self.behavior_probability is None else self.behavior_probability[chosen],
        )
        if self.episodes is not None:
            index, kept = np.arange(len(self))[chosen], np.zeros(len(self), dtype=bool)
            kept[index] = True
            begins = kept[np.unique(self.episodes, return_index=True)[1]][self.episodes]
            found.__dict__["_headless"] = frozen((self.headless | ~begins)[index])
            found.__dict__["_episode_numbers"] = frozen(self.episode_numbers[index])
        return found.having_left_out(self.left_out)._called(self)

    def after(self, count: int) -> Transitions:
        """The rows after the first ones; those that stand among the first, too, are copies."""
        found = self.rows(slice(count, None))
        found.__dict__["copies"] = copies_in(self, since=count)
        return found

    def paying(self, rewards: FloatArray) -> Transitions:
        """The same rows with other rewards, such as the same ones in other units."""
        found = copy(self)
        object.__setattr__(found, "rewards", frozen(rewards))
        for name in ("sha256", "reward_conflict", "copies"):
            found.__dict__.pop(name, None)
        return found

    def continuing(self, numbers: IntArray, headless: BoolArray) -> Transitions:
        """The same rows as a part of a longer log: which episode of it each row is of, and which of them began before."""
        found = copy(self)
        found.__dict__["_episode_numbers"], found.__dict__["_headless"] = frozen(numbers), frozen(headless)
        return found

    @property
    def episode_numbers(self) -> IntArray:
        """(n,) of int: which episode each row is of in the log that these rows were taken from.

        Episodes of that log are counted from 0 as they begin; `episodes` counts those of these rows alone. Rows that were taken
        from no longer log (by `rows`, `split` or `scan_transitions`) have the same numbers in both.
        """
        if self.episodes is None:
            raise InvalidInput("`episode_numbers` need `episodes`: without them nobody knows which rows belong together.")
        known: IntArray | None = self.__dict__.get("_episode_numbers")
        return self.episodes if known is None else known

    @property
    def left_out(self) -> int:
        """How many rows of the log are not among these since their next states were not logged: last ones of episodes."""
        return int(self.__dict__.get("_left_out", 0))

    def having_left_out(self, rows: int) -> Transitions:
        """These rows, of a log of which so many others were left out; said once, where next states are formed."""
        found = copy(self)
        found.__dict__["_left_out"] = rows
        return found

    @property
    def naming(self) -> Naming:
        """What the columns of the state and the actions are called; no bound depends on it."""
        known: Naming | None = self.__dict__.get("_naming")
        return UNNAMED if known is None else known

    @checked
    def named(self, naming: Naming) -> Transitions:
        """The same rows with names for the columns of the state and for the actions.

        Raises
        ------
        InvalidInput
            Where there are names for other columns or for fewer actions than the rows have.
        """
        columns, most = self.states.shape[1], int(self.actions.max()) + 1 if self.finite_actions else 0
        if naming.states and len(naming.states) != columns:
            raise InvalidInput(f"`naming` must name every column of the states ({columns}). Got {len(naming.states)} names.")
        if naming.actions and not self.finite_actions:
            raise InvalidInput("`naming` has names of actions, but the data have action vectors.")
        if naming.actions and len(naming.actions) < most:
            raise InvalidInput(f"`naming` must name every action (index {most - 1} is logged). Got {len(naming.actions)} names.")
        found = copy(self)
        found.__dict__["_naming"] = naming
        return found

    def _called(self, other: Transitions) -> Transitions:
        """These rows, of the same log as others, with their names."""
        if other.naming is not UNNAMED:
            self.__dict__["_naming"] = other.naming
        return self

    def knowing(self, other: Transitions) -> Transitions:
        """These rows, the same ones as others, with what is known of the log that those are from."""
        found = copy(self)
        known = ("_left_out", "_headless", "_episode_numbers", "_naming")
        found.__dict__.update({name: other.__dict__[name] for name in known if name in other.__dict__})
        return found

    @property
    def headless(self) -> BoolArray:
        """(n,) of bool: of which rows the episode began before all of these rows, as far as `rows` and `split` have seen it."""
        known: BoolArray | None = self.__dict__.get("_headless")
        return np.zeros(len(self), dtype=bool) if known is None else known

    def whole_episodes(self) -> Transitions:
        """The rows of episodes whose first row is here."""
        if not self.headless.any():
            return self
        if self.episodes is None or np.count_nonzero(~self.headless) < 2:
            raise InvalidInput("`episodes` all began before these rows: none of them is here from its first step on.")
        return self.rows(~self.headless)

    @checked
    def split(self, earlier_share: float) -> tuple[Transitions, Transitions]:
        """(earlier, later): the first rows, about this share of them, and the rest.

        Where episodes are known the cut falls at the first row, from the wanted one on, that begins an episode, and at the
        latest halfway between the wanted row and the end. Rows are in the order of generation, and no row after the cut decides
        where it falls: whatever is chosen on the earlier part was chosen before the later part happened.
        """
        if not 0 < earlier_share < 1:
            raise InvalidInput(f"`earlier_share` must be in (0, 1). Got {earlier_share!r}.")
        cut = round(earlier_share * len(self))
        if self.episodes is not None:
            # The nearest beginning, or the first at which no other episode is open, would depend on rows still to come.
            latest = (cut + len(self)) // 2
            begins = np.diff(np.maximum.accumulate(self.episodes), prepend=-1) > 0
            cut = next((row for row in range(max(cut, 2), latest) if begins[row]), latest)
        if cut < 2 or len(self) - cut < 2:
            raise InvalidInput(f"`earlier_share` {earlier_share!r} leaves fewer than two transitions on one side of the split.")
        return self.rows(slice(0, cut)), self.rows(slice(cut, None))

    def first_states(self) -> StartStates:
        """The first state of every episode, as an i.i.d. sample of the start distribution."""
        if self.episodes is None:
            raise InvalidInput("`first_states` needs `episodes`: without them nobody knows where an episode starts.")
        whole = self.whole_episodes()
        assert whole.episodes is not None
        _, last_rows = np.unique(whole.episodes[::-1], return_index=True)
        going_on = whole.terminated.copy()
        going_on[len(whole) - 1 - last_rows] = False
        if going_on.any():
            row = int(np.argmax(going_on))
            raise InvalidInput(
                f"`terminated` is True in row {row}, but its episode goes on after it: give every episode a label of its own, or "
                "its first states are not known."
            )
        _, first_rows = np.unique(whole.episodes, return_index=True)
        return StartStates(whole.states[np.sort(first_rows)], exact=False, fixed=False)


@checked
@dataclass(frozen=True, eq=False, init=False)
class StartStates:
    """Where the target policy starts.

    Parameters
    ----------
    states : array (n, d)
    weights : array (n,), optional
        Probabilities up to a factor, uniform by default.
    exact : bool
        True: this finite distribution *is* the start distribution; no Monte Carlo error. False: the states are an i.i.d. sample
        of it, and the bounds pay for that with their own radius.
    fixed : bool
        Whether the states were fixed before the data, as a cut needs it; those of the log (`Transitions.first_states`) were not,
        and where the log itself shows that they were taken from it, there is no cut whatever is said here.

    Raises
    ------
    InvalidInput
        Where there are no rows, or weights are negative, all zero, or differ in a sample.

    Examples
    --------
    >>> from accountable_ope import StartStates
    >>> StartStates([[0.0], [1.0]], weights=[1, 3]).weights.tolist()
    [0.25, 0.75]
    >>> StartStates([[0.0], [1.0]], exact=False)
    StartStates(2 rows, i.i.d. sample)
    """

    states: FloatArray
    weights: FloatArray
    exact: bool
    fixed: bool

    def __init__(self, states: ArrayLike, weights: ArrayLike | None = None, exact: bool = True, *, fixed: bool = True) -> None:
        for given, name in ((states, "start states"), (weights, "weights")):
            refuse_text(given, name)
        s = matrix(states, "start states")
        if len(s) == 0:
            raise InvalidInput("`start states` must have at least one row. Got none.")
        w = np.full(len(s), 1 / len(s)) if weights is None else vector(weights, "weights")
        same_rows(len(s), w, "weights", "start states")
        if not exact and (w != w[0]).any():
            raise InvalidInput(
                "`weights` that differ need `exact=True`: an i.i.d. sample of start states weighs every row alike."
            )
        if (w < 0).any() or w.max() <= 0:
            where = f" Row {int(np.argmin(w))} has {w.min():g}." if (w < 0).any() else " All are."
            raise InvalidInput(f"`weights` must not be negative and must not all be zero.{where}")
        w = w / w.max()  # a sum of very large weights would overflow
        object.__setattr__(self, "states", frozen(s))
        object.__setattr__(self, "weights", frozen(w / w.sum()))
        object.__setattr__(self, "exact", bool(exact))
        object.__setattr__(self, "fixed", bool(fixed))

    def __len__(self) -> int:
        return len(self.states)

    @cached_property
    def sha256(self) -> str:
        """What names these states in a certificate."""
        return fingerprint(states=self.states, weights=self.weights)

    def __repr__(self) -> str:
        kind = "exact distribution" if self.exact else "i.i.d. sample"
        return f"StartStates({len(self)} {plural(len(self), 'row', 'rows')}, {kind})"


@checked
def first_rows(parts: Sequence[Transitions], n: int) -> Transitions:
    """The first n rows of several logs, one after the other, with episodes counted on.

    Parameters
    ----------
    parts : sequence of Transitions
        All with labels of episodes; all with `behavior_probability` or none.
    n : int

    Returns
    -------
    Transitions

    Examples
    --------
    >>> from accountable_ope import Transitions
    >>> from accountable_ope.problem import first_rows
    >>> night = Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]], episodes=[0, 0])
    >>> first_rows([night, night], 3).episodes.tolist()
    [0, 0, 1]
    """
    if not parts or any(part.episodes is None for part in parts):
        raise InvalidInput("`parts` must be at least one log, all with labels of episodes.")
    if not 2 <= n <= sum(map(len, parts)):
        raise InvalidInput(f"`n` must be from 2 to {sum(map(len, parts))}, the rows of all parts. Got {n}.")
    recorded = [part.behavior_probability for part in parts if part.behavior_probability is not None]
    if len(recorded) not in (0, len(parts)):
        raise InvalidInput(f"`parts` must all have `{LOGGED}`, or none. {len(recorded)} of {len(parts)} have it.")
    if len(parts) == 1 and len(parts[0]) == n:
        return parts[0]
    labels, used = [], 0
    for part in parts:
        assert part.episodes is not None
        labels.append(part.episodes + used)
        used += int(part.episodes.max()) + 1
    return joined(parts, labels, n).having_left_out(sum(part.left_out for part in parts))


def joined(parts: Sequence[Transitions], labels: Sequence[IntArray] | None, n: int) -> Transitions:
    """The first n rows of parts one after the other; labels: of the episodes of each, None where they are not known."""
    recorded = [part.behavior_probability for part in parts if part.behavior_probability is not None]
    whole = Transitions(
        np.concatenate([part.states for part in parts])[:n],
        np.concatenate([part.actions for part in parts])[:n],
        np.concatenate([part.rewards for part in parts])[:n],
        np.concatenate([part.next_states for part in parts])[:n],
        np.concatenate([part.terminated for part in parts])[:n],
        None if labels is None else np.concatenate(labels)[:n],
        np.concatenate(recorded)[:n] if len(recorded) == len(parts) else None,
    )
    return whole.named(reduce(shared_naming, (part.naming for part in parts)))
