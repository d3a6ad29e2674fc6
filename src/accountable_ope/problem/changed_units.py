"""Columns of the state that seem to change their units within a log: one batch in centimeters, the next in meters.

The rows of the first fifth are compared with those of later blocks, column by column, by medians and by the spread of the middle
half (the interquartile range), so that a few odd rows make no alarm. It is a caution and has no part in any bound: rows in mixed
units are a log of another process, of which every theorem holds and no answer is of use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..validation import FloatArray
from .transitions import Transitions

EARLY_SHARE = 0.2
"""The earliest rows, with which later ones are compared."""

BLOCKS = 8
"""Later rows are compared in so many blocks: what fills most of one is noticed."""

FEWEST = 25
"""A quartile of fewer rows is hardly one."""

TIMES = 20.0
"""How many times wider, or how many spreads away, rows in other units are. Processes drift by less."""


@dataclass(frozen=True)
class ChangedUnits:
    """A column whose later rows are unlike the earliest.

    Attributes
    ----------
    column : int
        Of the state, from 0.
    first, last : int
        The rows of the blocks that differ, from the first such block to the last, counted from 0.
    earlier_rows : int
        How many rows they were compared with.
    earlier, later : tuple of two floats
        The middle halves, [quartile, quartile], of those rows and of the block that differs most.
    """

    column: int
    first: int
    last: int
    earlier_rows: int
    earlier: tuple[float, float]
    later: tuple[float, float]

    def text(self, name: str) -> str:
        """In words, the column by its name, without a full stop."""
        (low, high), (other_low, other_high) = self.earlier, self.later
        return (
            f"{name[:1].upper()}{name[1:]} may be in mixed units: the middle half of its values goes from {low:.4g} to "
            f"{high:.4g} in the first {self.earlier_rows:,} rows, and from {other_low:.4g} to {other_high:.4g} among rows "
            f"{self.first:,} to {self.last:,} (from 0). Bring all rows to the same units, unless the process itself changes "
            "so much"
        )


def changed_units(data: Transitions) -> Iterator[ChangedUnits]:
    """Columns whose spread in a later block is more than 20 times that of the earliest rows, or whose median is as far away."""
    rows = len(data)
    early = int(EARLY_SHARE * rows)
    blocks = min(BLOCKS, (rows - early) // FEWEST)
    if early < FEWEST or blocks < 1:
        return
    edges = np.linspace(early, rows, blocks + 1).astype(int)
    before = _quartiles(data.states[:early])
    after = np.stack([_quartiles(data.states[a:b]) for a, b in pairwise(edges.tolist())])
    spread = before[2] - before[0]
    wider, away = after[:, 2] - after[:, 0], np.abs(after[:, 1] - before[1])
    size = np.maximum(wider, away)
    # A column of which half of the early rows are alike has no spread to compare with.
    unlike = (spread > 0) & (size > TIMES * spread)
    for column in np.flatnonzero(unlike.any(axis=0)):
        found = np.flatnonzero(unlike[:, column])
        worst = int(found[np.argmax(size[found, column])])
        yield ChangedUnits(
            column=int(column),
            first=int(edges[found[0]]),
            last=int(edges[found[-1] + 1]) - 1,
            earlier_rows=early,
            earlier=(float(before[0, column]), float(before[2, column])),
            later=(float(after[worst, 0, column]), float(after[worst, 2, column])),
        )


def changed_units_sentences(data: Transitions, names: Sequence[str] = ()) -> tuple[str, ...]:
    """One sentence per column, by its name where that is known; without full stops, as other remarks on files."""
    return tuple(
        each.text(f"column `{names[each.column]}`" if each.column < len(names) else f"column {each.column} of the state")
        for each in changed_units(data)
    )


def _quartiles(states: FloatArray) -> FloatArray:
    """(3, d): first quartile, median and third quartile of every column."""
    return np.asarray(np.quantile(states, (0.25, 0.5, 0.75), axis=0))
