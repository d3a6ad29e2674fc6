"""Rows that stand in a log again: long stretches of it that come a second time, number by number.

Every row becomes 64 bits, every window of WINDOW rows the polynomial of theirs, and windows that come again are found by sorting.
Labels of episodes have no part in it, since whoever copies rows may give them new ones. Single rows of a table recur in every
honest log, and so do short or dull stretches; WINDOW rows in the same order, in which hardly RUN rows follow each other twice, do
not where chance had a part in them: at one bit of chance for every row, two windows in a million rows agree with a probability of
3e-8. Of a table of four kinds of rows such windows are varied enough; a cycle of fewer than VARIED rows, and an exception now and
then, is not.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..validation import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from .transitions import Transitions

Prints = NDArray[np.uint64]

WINDOW = 64
"""Rows in a row that must come again."""

RUN = 8
"""Rows whose order shows whether chance had a part: a coin alone has 256 such runs, a cycle one for every row of it."""

VARIED = 40
"""So many of the 57 runs of a window must be different; one exception in a cycle makes RUN of them."""

MATTERS = 0.1
"""Copies are doubted where they add this share to the variance of a sum over the rows.

A row that stands there k times adds k^2 in the place of k: where 5% of the rows are second copies that makes 10%, and an interval
that is 5% too narrow, the most that may pass in silence; of a few rows that stand there very often it takes fewer."""

MOST = 2**18
"""So many windows are remembered: of longer logs every second, fourth, ... one, chosen by its own bits, so that both copies of a
window are chosen or neither. Memory is bounded, and what is counted is then an estimate."""

BLOCK = 2**14
"""Rows at a time, whose numbers fit into the cache."""

_BASE = 0x9E3779B97F4A7C15
_MIX = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_BITS = 2**64


@dataclass(frozen=True)
class Copies:
    """What was found.

    rows:   stand in the log again, in stretches of at least WINDOW.
    excess: by which share they make the variance of a sum over rows larger than it is counted.
    """

    rows: int = 0
    excess: float = 0.0

    @property
    def doubted(self) -> int:
        """How many rows are copies where that matters, else 0."""
        return self.rows if self.excess >= MATTERS else 0


NO_COPIES = Copies()


class CopyFinder:
    """Takes the rows of a log in, part by part and in order; what it finds does not depend on the parts.

    since: the first row that counts. Those before it are remembered, so that later rows may be copies of them.
    """

    def __init__(self, since: int = 0) -> None:
        self._since, self._rows, self._level = since, 0, 0
        self._last: Prints = np.zeros(0, dtype=np.uint64)
        self._seen = [_Windows.none()]
        self._copied, self._weight, self._counted = 0, 0, since

    @property
    def rows(self) -> int:
        """How many have been taken in."""
        return self._rows

    def copy(self) -> CopyFinder:
        """One that goes on by itself."""
        found = copy(self)
        found._seen = [*self._seen]
        return found

    def take(self, data: Transitions) -> None:
        """The next rows."""
        new = row_prints(data)
        start = 0
        while start < len(new):  # blocks of the log, so that it does not matter in which parts it came
            stop = start + BLOCK - self._rows % BLOCK
            self._block(new[start:stop])
            start = stop

    def _block(self, new: Prints) -> None:
        rows, first = np.concatenate([self._last, new]), self._rows - len(self._last)
        self._rows, self._last = self._rows + len(new), rows[-(WINDOW - 1) :]
        if len(rows) < WINDOW:
            return
        runs = run_prints(rows, RUN)
        windows = _mixed(run_prints(runs, WINDOW, RUN))
        at = np.flatnonzero(_chosen(windows, self._level) & _varied(_mixed(runs)))
        self._seen.append(_Windows(windows[at], at + first, np.ones(len(at), dtype=np.int64)))
        if self._rows % BLOCK == 0 and sum(len(each.at) for each in self._seen) > MOST:
            self._fold()

    def _fold(self) -> None:
        """Count what came again so far, of which the first is remembered, and choose fewer windows where that is not enough."""
        seen = _Windows.joined(self._seen)
        copied, weight, firsts = seen.repeated(self._counted, self._rows, self._level)
        self._copied, self._weight = self._copied + copied, self._weight + weight
        self._counted = max(self._counted, self._rows)
        while len(firsts.at) > MOST // 2:
            self._level += 1
            firsts = firsts.some(_chosen(firsts.prints, self._level))
        self._seen = [firsts]

    def found(self) -> Copies:
        """What the rows so far show."""
        copied, weight, _ = _Windows.joined(self._seen).repeated(self._counted, self._rows, self._level)
        return Copies(self._copied + copied, (self._weight + weight) / max(self._rows - self._since, 1))

    @property
    def arrays(self) -> dict[str, IntArray]:
        """Where it stands, for a file; of one that counts all rows."""
        seen = _Windows.joined(self._seen)
        numbers = np.array([self._rows, self._level, self._copied, self._weight, self._counted], dtype=np.int64)
        signed = {"last": self._last.view(np.int64), "prints": seen.prints.view(np.int64)}
        return {"numbers": numbers, **signed, "at": seen.at, "times": seen.times}

    @classmethod
    def of_arrays(cls, numbers: IntArray, last: IntArray, prints: IntArray, at: IntArray, times: IntArray) -> CopyFinder:
        """What `arrays` said; `ValueError` where that cannot be."""
        found = cls()
        if len(numbers) != 5 or numbers.min() < 0 or numbers[1] > 63:
            raise ValueError("its number of copies is none")
        found._rows, found._level, found._copied, found._weight, found._counted = numbers.tolist()
        if not len(prints) == len(at) == len(times) <= MOST + BLOCK or len(last) != min(WINDOW - 1, found._rows):
            raise ValueError("its windows of rows do not fit together")
        if len(at) and (not 0 <= at.min() <= at.max() <= found._rows - WINDOW or times.min() < 1):
            raise ValueError("its windows of rows lie outside of its rows")
        found._last = last.view(np.uint64)
        found._seen = [_Windows(prints.view(np.uint64), at, times)]
        return found


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows in the order in which they came: 64 bits of each, where it begins, and for how many alike it stands."""

    prints: Prints
    at: IntArray
    times: IntArray

    @classmethod
    def none(cls) -> _Windows:
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def joined(cls, parts: list[_Windows]) -> _Windows:
        return cls(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("prints", "at", "times")))

    def some(self, chosen: BoolArray) -> _Windows:
        return _Windows(self.prints[chosen], self.at[chosen], self.times[chosen])

    def repeated(self, since: int, rows: int, level: int) -> tuple[int, int, _Windows]:
        """How many of the rows from `since` on stand in windows that came again, twice the sum of how often these had come, and
        every window once.
        """
        ordered = np.sort(self.prints)
        if not (ordered[1:] == ordered[:-1]).any():
            return 0, 0, self
        order = np.argsort(self.prints, kind="stable")
        prints, times = self.prints[order], self.times[order]
        begins = np.flatnonzero(np.append(True, prints[1:] != prints[:-1]))
        group = np.repeat(begins, np.diff(np.append(begins, len(order))))
        before = np.cumsum(times) - times
        before -= before[group]
        again = group != np.arange(len(order))
        found = self.at[order][again], self.at[order[group[again]]], before[again]
        copied, weight = _stretches(*found, (since, rows), level)
        firsts = np.sort(order[begins])
        alike = np.zeros(len(order), dtype=np.int64)
        alike[order[begins]] = np.add.reduceat(times, begins)
        return copied, weight, _Windows(self.prints[firsts], self.at[firsts], alike[firsts])


def copies_in(data: Transitions, since: int = 0) -> Copies:
    """Of rows that are all at hand, from one of them on."""
    finder = CopyFinder(since)
    finder.take(data)
    return finder.found()


def row_prints(data: Transitions) -> Prints:
    """64 bits of every row: states, action, reward, next states and end; equal for equal numbers, be they -0 or 0."""
    found = np.empty(len(data), dtype=np.uint64)
    ended = data.terminated
    for start in range(0, len(data), BLOCK):
        part = slice(start, start + BLOCK)
        actions = np.asarray(data.actions[part], dtype=np.float64).reshape(len(data.rewards[part]), -1)
        after = np.where(ended[part, None], 0.0, data.next_states[part])  # of no use where an episode has ended
        columns = (data.states[part], actions, data.rewards[part, None], after, ended[part, None].astype(np.float64))
        found[part] = _of_numbers(np.concatenate(columns, axis=1))
    return found


def _of_numbers(numbers: FloatArray) -> Prints:
    """Of the numbers of every row, each mixed and weighed by its place."""
    bits = np.ascontiguousarray((numbers + 0.0).T).view(np.uint64)  # 0.0 is added since -0.0 has other bits
    total = np.zeros(bits.shape[1], dtype=np.uint64)
    for place, column in enumerate(bits):
        mixed = (column ^ (column >> np.uint64(32))) * np.uint64(_MIX[0])
        mixed ^= mixed >> np.uint64(29)
        total += mixed * np.uint64(pow(_BASE, place + 1, _BITS))
    return _mixed(total)


def run_prints(prints: Prints, width: int, known: int = 1) -> Prints:
    """sum_j x_{i + j} B^j modulo 2^64 over `width` rows from every row i on, by doubling; prints: the same over `known` rows."""
    while known < width:
        prints = prints[:-known] + prints[known:] * np.uint64(pow(_BASE, known, _BITS))
        known *= 2
    return prints


def _mixed(bits: Prints) -> Prints:
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(_MIX[1])
    bits ^= bits >> np.uint64(32)
    return bits


def _chosen(windows: Prints, level: int) -> BoolArray:
    """One window in 2^level."""
    return np.asarray((windows & np.uint64(2**level - 1)) == 0)


def _varied(runs: Prints) -> BoolArray:
    """Of which windows at least VARIED runs are different."""
    width = WINDOW - RUN + 1
    count = len(runs) - width + 1
    ordered = np.sort(runs)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.ones(count, dtype=bool)
    order = np.argsort(runs, kind="stable")
    later, earlier = order[1:], order[:-1]
    near = (runs[later] == runs[earlier]) & (later - earlier < width)
    later, earlier = later[near], earlier[near]
    # Run `later` is no new one in the windows that begin from later - width + 1 to `earlier`.
    changes = np.bincount(np.maximum(later - width + 1, 0), minlength=len(runs) + 1).astype(np.int64)
    changes -= np.bincount(earlier + 1, minlength=len(runs) + 1)
    return np.asarray(width - np.cumsum(changes)[:count] >= VARIED)


def _stretches(at: IntArray, first: IntArray, before: IntArray, within: tuple[int, int], level: int) -> tuple[int, int]:
    """Windows that came before, put together: those that are as far from where they came first lie in one stretch.

    at: where they begin, first: where they came first, before: how many times they had come, within: the rows that count.
    """
    order = np.argsort(at)
    at, away, before = at[order], (at - first)[order], before[order]
    gap = WINDOW if level == 0 else WINDOW + 8 * 2**level  # chosen windows are so far apart, about
    begins = np.flatnonzero(np.append(True, (np.diff(away) != 0) | (np.diff(at) > gap)))
    ends = np.append(at[begins[1:] - 1], at[-1]) + WINDOW
    lengths = np.minimum(ends, np.append(at[begins[1:]], within[1])) - np.maximum(at[begins], within[0])
    lengths = np.maximum(lengths, 0)
    # k copies add k^2 in the place of k: the one that has r before it adds 2r.
    return int(lengths.sum()), int(2 * (np.maximum.reduceat(before, begins) @ lengths))
