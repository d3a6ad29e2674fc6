"""What a look at data, start states and policy shows before any statistics: other units, actions that nobody took, unlike scales.

Nothing here enters a bound. It refuses, or remarks on, what is probably a mistake of whoever put the files together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import InvalidInput
from .assumptions import Assumptions, value_ranges
from .changed_units import changed_units_sentences
from .policy import Policy
from .transitions import StartStates, Transitions

FAR = 10.0
"""Start states that all lie this many ranges of the logged states away are in other units."""

OUTSIDE = 1.0
"""Some start states that lie this many ranges away deserve a remark."""

UNLIKE = 1e3
"""Scales of columns that differ by this factor are not served by one bandwidth."""

LEAST_SHARE = 1e-6
"""An action that the target policy takes less often than that is not worth a word."""


def refuse_other_units(data: Transitions, starts: StartStates, names: Sequence[str] = ()) -> None:
    """Raise where all start states lie so far from the logged states that they must be in other units.

    names: what the columns of the state are called, where that is known.

    Raises
    ------
    InvalidInput
        Names the column, and both ranges.
    """
    for column, away in _away(data, starts):
        if away.min() > FAR:
            raise InvalidInput(
                f"All start states lie far outside of the logged states: {_column(column, names)} "
                f"{_ranges(data, starts, column)}. Bring both to the same units and scale."
            )


def first_look(
    data: Transitions, starts: StartStates, policy: Policy, *, one_bandwidth: bool = False, names: Sequence[str] = ()
) -> tuple[str, ...]:
    """Sentences on what is probably not meant.

    one_bandwidth: whether one bandwidth serves all columns of the state.
    names: what these are called, where that is known.
    """
    unlike = _unlike(data, names) if one_bandwidth else ()
    mixed = changed_units_sentences(data, names)
    return (*_outside(data, starts, names), *mixed, *_never_logged(data, starts, policy), *_from_one(data, policy), *unlike)


def paid_at_ends(data: Transitions, assumptions: Assumptions) -> tuple[str, ...]:
    """A sentence where only ends of episodes pay and nobody said so, which would narrow the range of values."""
    low, high = assumptions.reward_range
    if assumptions.terminal_reward or assumptions.terminates is False or assumptions.discount == 0 or not low <= 0 <= high:
        return ()
    if data.rewards[~data.terminated].any() or not data.rewards[data.terminated].any() or data.terminated.all():
        return ()
    now, then = (value_ranges(each, terminates=True).value for each in (assumptions, replace(assumptions, terminal_reward=True)))
    if not now[1] - now[0] > then[1] - then[0]:
        return ()
    return (
        "Only rows that end an episode have a reward other than 0. If that is so of every row that could come, declare it "
        f"(--terminal-reward): values then lie in [{then[0]:.4g}, {then[1]:.4g}], not in [{now[0]:.4g}, {now[1]:.4g}]",
    )


def _column(index: int, names: Sequence[str]) -> str:
    """How a column of the state is called."""
    return f"column `{names[index]}`" if index < len(names) else f"column {index} of the state"


def _outside(data: Transitions, starts: StartStates, names: Sequence[str]) -> Iterator[str]:
    for column, away in _away(data, starts):
        beyond = int((away > OUTSIDE).sum())
        if beyond:
            yield (
                f"{beyond} of {len(starts)} start states lie far outside of the logged states: {_column(column, names)} "
                f"{_ranges(data, starts, column)}. What happens there was not logged"
            )
            return


def _away(data: Transitions, starts: StartStates) -> Iterator[tuple[int, np.ndarray]]:
    """Of every column that varies, how many ranges of the logged states every start state lies outside of them."""
    seen = np.concatenate([data.states, data.next_states[~data.terminated]])
    if starts.states.shape[1] != seen.shape[1]:
        return  # refused elsewhere
    lows, highs = seen.min(axis=0), seen.max(axis=0)
    for column in np.flatnonzero(highs > lows):
        low, high, asked = lows[column], highs[column], starts.states[:, column]
        yield int(column), np.maximum(low - asked, asked - high) / (high - low)


def _ranges(data: Transitions, starts: StartStates, column: int) -> str:
    asked, seen = starts.states[:, column], data.states[:, column]
    return f"goes from {asked.min():.4g} to {asked.max():.4g} there, and from {seen.min():.4g} to {seen.max():.4g} in the log"


def _never_logged(data: Transitions, starts: StartStates, policy: Policy) -> Iterator[str]:
    vectors = policy.action_vectors
    if vectors is None or not data.finite_actions:
        return
    missing = np.setdiff1d(np.arange(len(vectors)), np.unique(data.actions))
    if not len(missing):
        return
    states = np.concatenate([data.next_states[~data.terminated], starts.states])
    shares = {branch.action: float(branch.weights.mean()) for branch in policy.branches(states)}
    for action in missing:
        if shares.get(int(action), 0.0) > LEAST_SHARE:
            share = _percent(shares[int(action)])
            yield (
                f"The target policy takes action {action} ({share} of the time at the logged states), and no row has it: "
                "what follows on it is not in the data, and only what is assumed speaks of it"
            )


def _from_one(data: Transitions, policy: Policy) -> Iterator[str]:
    """Labels 1, 2, ... are as good as 0, 1, ..., but there is then an action that nobody has."""
    if policy.action_vectors is None or not data.finite_actions or data.actions.min() == 0:
        return
    live = data.next_states[~data.terminated]
    taken = (
        any(branch.action == 0 and branch.weights.max() > LEAST_SHARE for branch in policy.branches(live)) if len(live) else False
    )
    if not taken:
        yield (
            f"No row has action 0, and the target policy never takes it: actions seem to be numbered from {data.actions.min()}. "
            "That does no harm, except that action 0 is taken for one that exists; number them from 0 where it does not"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else "nearly all"


def _unlike(data: Transitions, names: Sequence[str]) -> Iterator[str]:
    spread = data.states.std(axis=0)
    moving = np.flatnonzero(spread > 1e-12 * np.abs(data.states).max(axis=0))
    if len(moving) < 2:
        return
    small, large = moving[np.argmin(spread[moving])], moving[np.argmax(spread[moving])]
    if spread[large] >= UNLIKE * spread[small]:
        yield (
            f"Columns of the state have unlike scales (standard deviation {spread[small]:.3g} in {_column(int(small), names)}, "
            f"{spread[large]:.3g} in {_column(int(large), names)}), and one bandwidth serves all. Scale them, or name no "
            "class: what is chosen then scales every column"
        )
