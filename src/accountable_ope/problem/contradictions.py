"""Where the data contradict what was declared: a guarantee from false assumptions is none."""

from __future__ import annotations

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput, InvalidRow
from ..validation import BoolArray, FloatArray, plural
from .assumptions import Assumptions, ValueRanges, value_ranges
from .row_ranges import RowRanges
from .step_knowledge import Boxes
from .terminal_region import TerminalRegion
from .transitions import StartStates, Transitions

ROUNDING = 1e-9
"""Relative to the values: differences that are smaller contradict nothing."""


@checked
def check_data(data: Transitions, assumptions: Assumptions) -> None:
    """Raise at the first contradiction between data and assumptions.

    Parameters
    ----------
    data : Transitions
    assumptions : Assumptions

    Raises
    ------
    InvalidInput
        Where a reward, a state or the end of an episode contradicts what was declared.

    Examples
    --------
    >>> from accountable_ope import Assumptions, Transitions
    >>> from accountable_ope.problem import check_data
    >>> data = Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]])
    >>> check_data(data, Assumptions(discount=0.9, reward_range=(0, 1), terminal_reward=True))
    Traceback (most recent call last):
    accountable_ope.errors.InvalidRow: `terminal_reward=True` says that only the end of an episode pays, but row 0 ...
    """
    check_rewards(data, assumptions.reward_range)
    if assumptions.terminal_reward:
        check_last_pays(data)
    if assumptions.terminates is False and data.terminated.any():
        raise InvalidRow("`terminates=False`, but ", int(np.argmax(data.terminated)), " is terminated.")
    if assumptions.discount == 1 and not (data.terminated.any() or assumptions.terminates):
        raise InvalidInput("`discount` 1 needs terminating episodes, and no row is terminated.")
    if assumptions.state_box is not None:
        check_box(data, assumptions.state_box)
    if assumptions.horizon is not None and data.episodes is not None:
        lengths = np.bincount(data.episodes)
        longer = lengths > assumptions.horizon
        if longer.any():
            raise InvalidInput(
                f"`horizon` says that every episode ends within {assumptions.horizon} steps, but episode number "
                f"{int(np.argmax(longer))} (from 0) has {int(lengths[np.argmax(longer)])} rows."
            )
    if not assumptions.reward_noise and data.reward_conflict is not None:
        first, second = data.reward_conflict
        raise InvalidRow(
            "`reward_noise=False` says that the reward is a function of state and action, but ",
            (first, second),
            f" have the same ones and pay {data.rewards[first]:g} and {data.rewards[second]:g}.",
        )
    if assumptions.value_range is not None and not assumptions.reward_noise:
        _check_values(data, assumptions)
    if assumptions.one_step_range is not None:
        _check_one_step(data, assumptions, np.full(len(data), assumptions.one_step_range))


@checked
def check_steps(data: Transitions, starts: StartStates, rows: RowRanges) -> None:
    """Raise at the first contradiction between logged steps and what was declared of single steps.

    Parameters
    ----------
    data : Transitions
    starts : StartStates
    rows : RowRanges
        Of these data.

    Raises
    ------
    InvalidInput
        Where a next state lies outside its reach, an episode ends or goes on where the terminal region says otherwise, a state
        or start state is terminal, or rows of one state and action are further apart than declared.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> from accountable_ope.problem import RowRanges, check_steps
    >>> data = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [2.0]])
    >>> facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), terminates=True)
    >>> knowledge = aope.StepKnowledge(terminal_region=aope.TerminalRegion.inside([2.0], [3.0]))
    >>> rows = RowRanges.of(data, facts, knowledge, terminates=True)
    >>> check_steps(data, aope.StartStates([[0.0]]), rows)
    Traceback (most recent call last):
    accountable_ope.errors.InvalidInput: `terminal_region` says that a state is terminal exactly when it lies inside [2, 3], ...
    """
    if len(rows) != len(data):
        raise InvalidInput(f"`rows` must be the RowRanges of these {len(data)} rows of data. Got those of {len(rows)}.")
    knowledge = rows.knowledge
    if rows.reach is not None:
        _check_reach(data, rows.reach)
    if knowledge.terminal_region is not None:
        _check_region(data, starts, knowledge.terminal_region)
        _check_ends(data, rows)
    if not rows.assumptions.reward_noise and rows.certain.any():
        _check_values(data, rows.assumptions, rows.certain)
    if knowledge.one_step_range is not None:
        _check_one_step(data, rows.assumptions, rows.declared)


def _check_reach(data: Transitions, reach: Boxes) -> None:
    size = np.maximum(np.abs(data.next_states), np.abs(data.states).max(axis=0))
    slack = ROUNDING * np.max([size, *(np.where(np.isfinite(side), np.abs(side), 0.0) for side in reach)], axis=0)
    row = _first((data.next_states < reach.low - slack) | (data.next_states > reach.high + slack))
    if row is not None:
        sides = ", ".join(f"[{low:g}, {high:g}]" for low, high in zip(reach.low[row], reach.high[row], strict=True))
        raise InvalidInput(
            f"`reach` says that the next state of row {row} lies in {sides}, but it is {data.next_states[row].tolist()}."
        )


def _check_region(data: Transitions, starts: StartStates, region: TerminalRegion) -> None:
    """Terminated exactly where the next state is terminal; nothing happens at terminal states."""
    says = f"`terminal_region` says that a state is terminal exactly when it lies {region.name}, but"
    inside = region.contains(data.next_states)
    row = _first(inside != data.terminated)
    if row is not None:
        where = data.next_states[row].tolist()
        how = "lies there and the row is not terminated" if inside[row] else "does not and the row is terminated"
        raise InvalidInput(f"{says} the next state of row {row}, {where}, {how}.")
    for name, states in (("state", data.states), ("start state", starts.states)):
        row = _first(region.contains(states))
        if row is not None:
            raise InvalidInput(f"{says} the {name} of row {row}, {states[row].tolist()}, lies there, and goes on.")


def _check_ends(data: Transitions, rows: RowRanges) -> None:
    """Beyond what `_check_region` sees: `covers` may be wrong about boxes, and reach is checked up to rounding only."""
    row = _first(rows.certain & ~data.terminated)
    if row is not None:
        raise InvalidInput(f"`reach` lies inside the `terminal_region` at row {row}, but the row is not terminated.")
    row = _first(data.terminated & ~rows.certain & ~rows.may_end)
    if row is not None:
        raise InvalidInput(f"`reach` misses the `terminal_region` at row {row}, but the row is terminated.")


def _first(wrong: BoolArray) -> int | None:
    """The first row with something wrong in it."""
    flat = wrong.any(axis=1) if wrong.ndim == 2 else wrong
    return int(np.argmax(flat)) if flat.any() else None


def check_last_pays(data: Transitions) -> None:
    """Raise where a row pays that does not end its episode."""
    paid = (data.rewards != 0) & ~data.terminated
    if paid.any():
        row = int(np.argmax(paid))
        raise InvalidRow(
            "`terminal_reward=True` says that only the end of an episode pays, but ",
            row,
            f" is not terminated and pays {data.rewards[row]:g}.",
        )


def may_end(data: Transitions, assumptions: Assumptions) -> bool:
    """Whether states may be terminal: as declared, or as the data show."""
    if assumptions.terminates is not None:
        return assumptions.terminates
    return bool(data.terminated.any()) or assumptions.horizon is not None or assumptions.terminal_reward


def _check_values(data: Transitions, assumptions: Assumptions, certain: BoolArray | None = None) -> None:
    """Where the reward is a function of (s, a), Q = r + discount E V(s') at every row, and V(s') lies in its own range.

    Where only the end of an episode pays, a pair that pays always ends it: then Q = r, as it is where an end is certain.
    """
    ranges = value_ranges(assumptions, terminates=may_end(data, assumptions))
    last = assumptions.terminal_reward & (data.rewards != 0)
    ahead = np.where(last if certain is None else last | certain, 0.0, assumptions.discount)
    least, most = (data.rewards + ahead * end for end in ranges.next_value)
    low, high = ranges.value
    slack = ROUNDING * max(abs(low), abs(high))
    wrong = (most < low - slack) | (least > high + slack)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidRow(
            f"`value_range` leaves [{low:g}, {high:g}], but ",
            row,
            f" pays {data.rewards[row]:g}, so that Q lies in [{least[row]:g}, {most[row]:g}] at its state and action.",
        )


def _check_one_step(data: Transitions, assumptions: Assumptions, declared: FloatArray) -> None:
    """r + discount V(s') at rows with the same state and action must not be further apart than declared.

    V(s') is 0 where the row is terminated, and in the range of values elsewhere; equal next states have equal V.
    """
    low, high = value_ranges(assumptions, terminates=may_end(data, assumptions)).value
    ahead = np.where(data.terminated, 0.0, assumptions.discount)
    least, most = data.rewards + ahead * low, data.rewards + ahead * high
    for groups, lower, upper in (
        (data.same_pair, least, most),
        (data.same_step, data.rewards, data.rewards),
    ):
        highest, lowest = np.full(len(data), -np.inf), np.full(len(data), np.inf)
        np.maximum.at(highest, groups, lower)
        np.minimum.at(lowest, groups, upper)
        apart = (highest - lowest)[groups]
        with np.errstate(invalid="ignore"):  # an infinite range has nothing to add
            wrong = apart > declared + ROUNDING * np.maximum(max(abs(low), abs(high)), declared)
        if wrong.any():
            rows = np.flatnonzero(groups == groups[np.argmax(wrong)])
            first, second = sorted((int(rows[np.argmax(lower[rows])]), int(rows[np.argmin(upper[rows])])))
            raise InvalidRow(
                f"`one_step_range` says that chance moves reward plus discounted next value by at most {declared[first]:g} given "
                "(s, a), but ",
                (first, second),
                f" have the same ones and differ by at least {apart[first]:g}.",
            )


@checked
def check_rewards(data: Transitions, reward_range: tuple[float, float]) -> None:
    """Raise when a reward lies outside the declared range.

    Parameters
    ----------
    data : Transitions
    reward_range : tuple of two floats

    Raises
    ------
    InvalidInput
        Names the first such row.

    Examples
    --------
    >>> from accountable_ope import Transitions
    >>> from accountable_ope.problem import check_rewards
    >>> data = Transitions([[0.0], [1.0]], [0, 1], [0.5, 3.0], [[1.0], [0.0]])
    >>> check_rewards(data, (0.0, 1.0))
    Traceback (most recent call last):
    accountable_ope.errors.InvalidRow: `rewards` must lie in the declared reward_range [0, 1]. 1 does not, first 3 in row 1.
    """
    low, high = reward_range
    outside = (data.rewards < low) | (data.rewards > high)
    if outside.any():
        row = int(np.argmax(outside))
        count = int(outside.sum())
        raise InvalidRow(
            f"`rewards` must lie in the declared reward_range [{low:g}, {high:g}]. {count} {plural(count, 'does', 'do')} not, "
            f"first {data.rewards[row]:g} in ",
            row,
            ".",
        )


LOST = 1e10
"""Of values that are so many times their span away from 0, float64 (16 digits) leaves fewer than six to tell them apart."""


def check_digits(assumptions: Assumptions, ranges: ValueRanges, *, terminates: bool) -> None:
    """Raise where values are so far from 0 that their differences have hardly any digits.

    Nothing that is done later brings digits back that a reward in float64 has lost. Where episodes end values reach down to
    those of short ones, and are never that far.
    """
    reference = ranges.reference(terminates=terminates)
    if abs(reference) <= LOST * ranges.span:
        return
    low, high = assumptions.reward_range
    raise InvalidInput(
        f"Values lie near {reference:.3g} and differ by at most {ranges.span:.3g}: of the 16 digits of a float64 fewer than 6 "
        f"are left to tell them apart. Subtract a constant c, such as {0.5 * (low + high):.6g}, from all rewards, before they "
        "are rounded, and from `reward_range`, and add c / (1 - discount) to the ends."
    )


def check_ends(data: Transitions, horizon: int) -> None:
    """Raise where an episode has as many rows as the horizon allows and goes on: its last next state would have a value.

    What looks at returns alone may leave the flag to the horizon. Without labels, single steps are all that is known of episodes.
    """
    labels = np.arange(len(data)) if data.episodes is None else data.episodes
    last = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    np.maximum.at(last, labels, np.arange(len(data)))
    goes_on = (np.bincount(labels) >= horizon) & ~data.terminated[last]
    if goes_on.any():
        raise InvalidInput(
            f"`horizon` says that every episode ends within {horizon} steps, but row {int(last[np.argmax(goes_on)])} is step "
            f"{horizon} of one and is not terminated. If nothing is paid after it, it must be."
        )


def check_starts(starts: StartStates, assumptions: Assumptions) -> None:
    """Raise where a start state lies outside the declared box of states."""
    if assumptions.state_box is not None:
        _refuse_outside("start states", starts.states, *map(np.array, assumptions.state_box))


def check_box(data: Transitions, box: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    """Raise where a state lies outside the declared box."""
    lows, highs = np.array(box[0]), np.array(box[1])
    if len(lows) != data.states.shape[1]:
        raise InvalidInput(f"`state_box` has {len(lows)} dimensions, states have {data.states.shape[1]}.")
    live = ~data.terminated
    for name, states in (("states", data.states), ("next_states", data.next_states[live])):
        _refuse_outside(name, states, lows, highs)


def _refuse_outside(name: str, states: FloatArray, lows: FloatArray, highs: FloatArray) -> None:
    outside = ((states < lows) | (states > highs)).any(axis=1)
    if outside.any():
        where = states[int(np.argmax(outside))].tolist()
        raise InvalidInput(f"`{name}` must lie in the declared state_box. {int(outside.sum())} do not, first {where}.")
