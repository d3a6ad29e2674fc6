"""Whole episodes of T steps, and what is left of the value after them.

Importance sampling weighs returns over T steps. The value forever is V = J_T + discount^T E[V(s_T), where the episode goes on],
and V(s_T) lies in the declared range [L, H] of values. Where episodes may end, what is left is paid to each that goes on, L for a
lower bound and H for an upper one: then its probability is estimated along with the rest. Where none ends, it is the constant
discount^T [L, H].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..problem.transitions import Transitions
from ..validation import FloatArray, frozen
from .contestant import Entry
from .episodes import Range, whole_episodes


@dataclass(frozen=True, eq=False)
class LoggedEpisodes:
    """Episodes in which what is left after T steps was paid at its least and at its most, and what remains to be added.

    low, high: the same rows but for that pay; one object where nothing was paid.
    beyond: what is to be added to the ends of an interval of the return over T steps.
    steps: T.
    """

    low: Transitions
    high: Transitions
    beyond: Range
    steps: int

    @property
    def sides(self) -> tuple[Transitions, ...]:
        return (self.low,) if self.low is self.high else (self.low, self.high)


def logged_episodes(entry: Entry, *, paid: bool) -> LoggedEpisodes:
    """The whole episodes of a log; paid: whether what is left may be paid to an episode, beyond the range of rewards."""
    problem, steps = entry.problem, entry.horizon
    assert steps is not None
    facts = problem.assumptions
    data = _without_the_last_if_cut(problem.data, steps)
    order, first, lengths = whole_episodes(data, steps)
    if facts.horizon is not None and facts.horizon <= steps:
        return LoggedEpisodes(data, data, (0.0, 0.0), steps)
    low, high = problem.ranges.value
    left = facts.discount**steps
    if not problem.terminates:
        return LoggedEpisodes(data, data, (left * low, left * high), steps)
    if not (paid or facts.terminal_reward):
        return LoggedEpisodes(data, data, (left * min(low, 0.0), left * max(high, 0.0)), steps)
    last = order[first + lengths - 1]
    going_on = last[(lengths == steps) & ~data.terminated[last]]
    if not len(going_on):
        return LoggedEpisodes(data, data, (0.0, 0.0), steps)
    assert data.episodes is not None  # they are whole
    longest = int(np.bincount(data.episodes).max())
    if longest > steps:
        raise InvalidInput(f"`horizon` must be at least the length of the longest episode, {longest} rows. Got {steps}.")
    sides = (_settled(data, going_on, facts.discount * end) for end in (low, high))
    return LoggedEpisodes(next(sides), next(sides), (0.0, 0.0), steps)


def _settled(data: Transitions, rows: FloatArray, amount: float) -> Transitions:
    """The same, with an amount paid in some rows on top of their rewards, with which their episodes end."""
    rewards, terminated = data.rewards.copy(), data.terminated.copy()
    rewards[rows] += amount
    terminated[rows] = True
    found = data.paying(frozen(rewards))
    object.__setattr__(found, "terminated", frozen(terminated))
    return found


def _without_the_last_if_cut(data: Transitions, steps: int) -> Transitions:
    """Where a log was cut at a number of rows its last episode is not whole: it is left out, whatever it would have become."""
    assert data.episodes is not None
    last = data.episodes == data.episodes.max()
    if last.sum() >= steps or data.terminated[last].any():
        return data
    if data.number_of_episodes == 2:
        raise InvalidInput("At least two whole `episodes` are needed: the last of two was cut off.")
    return data.rows(~last)
