"""Where the data contradict what was declared: a guarantee from false assumptions is none."""

from __future__ import annotations

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import plural
from .assumptions import Assumptions
from .transitions import Transitions


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
    accountable_ope.errors.InvalidInput: `terminal_reward=True` says that only the end of an episode pays, but row 0 ...
    """
    check_rewards(data, assumptions.reward_range)
    if assumptions.terminal_reward:
        paid = (data.rewards != 0) & ~data.terminated
        if paid.any():
            row = int(np.argmax(paid))
            raise InvalidInput(
                f"`terminal_reward=True` says that only the end of an episode pays, but row {row} is not terminated and pays "
                f"{data.rewards[row]:g}."
            )
    if assumptions.terminates is False and data.terminated.any():
        raise InvalidInput(f"`terminates=False`, but row {int(np.argmax(data.terminated))} is terminated.")
    if assumptions.discount == 1 and not data.terminated.any():
        raise InvalidInput("`discount` 1 needs terminating episodes, and no row is terminated.")
    if assumptions.state_box is not None:
        _check_box(data, assumptions.state_box)
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
        raise InvalidInput(
            f"`reward_noise=False` says that the reward is a function of state and action, but rows {first} and {second} have "
            f"the same ones and pay {data.rewards[first]:g} and {data.rewards[second]:g}."
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
    accountable_ope.errors.InvalidInput: `rewards` must lie in the declared reward_range [0, 1]. 1 does not, first 3 in row 1.
    """
    low, high = reward_range
    outside = (data.rewards < low) | (data.rewards > high)
    if outside.any():
        row = int(np.argmax(outside))
        count = int(outside.sum())
        raise InvalidInput(
            f"`rewards` must lie in the declared reward_range [{low:g}, {high:g}]. {count} {plural(count, 'does', 'do')} not, "
            f"first {data.rewards[row]:g} in row {row}."
        )


def _check_box(data: Transitions, box: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    lows, highs = np.array(box[0]), np.array(box[1])
    if len(lows) != data.states.shape[1]:
        raise InvalidInput(f"`state_box` has {len(lows)} dimensions, states have {data.states.shape[1]}.")
    live = ~data.terminated
    for name, states in (("states", data.states), ("next_states", data.next_states[live])):
        outside = ((states < lows) | (states > highs)).any(axis=1)
        if outside.any():
            where = states[int(np.argmax(outside))].tolist()
            raise InvalidInput(f"`{name}` must lie in the declared state_box. {int(outside.sum())} do not, first {where}.")
