"""Start states that were read off the log, whatever is said of them."""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray, IntArray, row_keys
from .transitions import Transitions


class Sightings:
    """How often start states are met in a log whose rows come in parts.

    starts:     the start states.
    continuous: whether states are, as far as is known: more than half of the rows have one of their own.
    """

    def __init__(self, starts: FloatArray, *, continuous: bool) -> None:
        self._wanted, self._continuous = np.unique(row_keys(starts)), continuous
        self._leading = np.unique(starts[:, :1])
        self._times = np.zeros(len(self._wanted), dtype=np.int64)
        self._met = np.zeros(len(self._wanted), dtype=bool)
        self._first: FloatArray | None = None
        self._whole = True

    def add(self, data: Transitions) -> None:
        """The next rows."""
        states = data.states
        if self._first is None:
            self._first = row_keys(states[:1])
        self._whole = self._whole and bool((states == np.round(states)).all())
        self._times += self._counts(states)
        self._met |= (self._times > 0) | (self._counts(data.next_states) > 0)

    def _counts(self, states: FloatArray) -> IntArray:
        """How often each is among these; whole rows are compared only where the first number is one of theirs."""
        likely = states[np.isin(states[:, 0], self._leading)] if states.shape[1] else states
        keys, counts = np.unique(row_keys(likely), return_counts=True)
        if not len(keys):
            return np.zeros(len(self._wanted), dtype=np.int64)
        place = np.minimum(np.searchsorted(keys, self._wanted), len(keys) - 1)
        return np.where(keys[place] == self._wanted, counts[place], 0)

    @property
    def read_off(self) -> bool:
        """See `read_off_the_log`."""
        if self._first is None or self._whole or not self._continuous or not self._met.all():
            return False
        # 0 times: a next state that begins no row
        found_there = (self._times <= 1) & (self._wanted != self._first[0])
        return bool(2 * found_there.sum() > len(self._wanted))


def read_off_the_log(data: Transitions, starts: FloatArray) -> bool:
    """Whether start states cannot have been fixed before the data: of continuous states, all are logged, and most only once.

    States count as continuous where more than half of the rows have one of their own and not all are whole numbers. Then no state
    comes twice by chance: one that was fixed before the data is either not logged at all or, where episodes begin at it, logged
    whenever they do. A start state that is logged once was found there. The state of the first row is the exception: whoever
    takes it looked at nothing that comes later.
    """
    found = Sightings(starts, continuous=continuous(data))
    found.add(data)
    return found.read_off


def continuous(data: Transitions) -> bool:
    """Whether more than half of the rows have a state of their own."""
    return 2 * len(np.unique(row_keys(data.states))) > len(data)
