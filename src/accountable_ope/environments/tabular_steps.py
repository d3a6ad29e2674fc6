"""What a single step of a finite MDP can do, read off its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TerminalStates:
    """A set of states that are indices: a region whose boxes hold the indices from low to high."""

    terminal: BoolArray

    @property
    def dimension(self) -> int:
        return 1

    def contains(self, states: FloatArray) -> BoolArray:
        return np.asarray(self.terminal[indices(states, len(self.terminal))])

    def covers(self, low: FloatArray, high: FloatArray) -> tuple[BoolArray, BoolArray]:
        count = len(self.terminal)
        first = np.clip(np.ceil(low[:, 0]), 0, count).astype(np.int64)
        after = np.clip(np.floor(high[:, 0]) + 1, first, count).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(self.terminal)])  # terminal states below every index
        inside = before[after] - before[first]
        return (inside == after - first) & (after > first), inside > 0


@dataclass(frozen=True, eq=False)
class Reach:
    """(s, a) -> the least and the largest index of a next state of positive probability; tables (S, A, S)."""

    transition: FloatArray

    def __call__(self, states: FloatArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        possible = self.transition[indices(states, len(self.transition)), actions] > 0
        low, high = np.argmax(possible, axis=1), possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
        return low[:, None].astype(np.float64), high[:, None].astype(np.float64)


@dataclass(frozen=True, eq=False)
class OneStepRange:
    """(s, a) -> an entry of a table (S, A)."""

    table: FloatArray

    def __call__(self, states: FloatArray, actions: IntArray) -> FloatArray:
        return np.asarray(self.table[indices(states, len(self.table)), actions])


def indices(states: FloatArray, count: int) -> IntArray:
    """One column of indices as whole numbers."""
    if states.shape[1] != 1 or not np.isin(states[:, 0], np.arange(count)).all():
        raise InvalidInput(f"States of a finite MDP must be one column of indices 0 to {count - 1}.")
    return np.asarray(states[:, 0].astype(np.int64))
