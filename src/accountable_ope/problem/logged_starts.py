"""Start states that were read off the log, whatever is said of them."""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray, row_keys
from .transitions import Transitions


def read_off_the_log(data: Transitions, starts: FloatArray) -> bool:
    """Whether start states cannot have been fixed before the data: of continuous states, all are logged, and most only once.

    States count as continuous where more than half of the rows have one of their own and not all are whole numbers. Then no state
    comes twice by chance: one that was fixed before the data is either not logged at all or, where episodes begin at it, logged
    whenever they do. A start state that is logged once was found there. The state of the first row is the exception: whoever
    takes it looked at nothing that comes later.
    """
    states = data.states
    if (states == np.round(states)).all():
        return False
    keys, counts = np.unique(row_keys(states), return_counts=True)
    if 2 * len(keys) <= len(states):
        return False
    wanted = np.unique(row_keys(starts))
    if not np.isin(wanted, np.concatenate([keys, row_keys(data.next_states)])).all():
        return False
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    times = np.where(keys[place] == wanted, counts[place], 0)  # 0: a next state that begins no row
    found_there = (times <= 1) & (wanted != row_keys(states[:1])[0])
    return bool(2 * found_there.sum() > len(wanted))
