"""Work on blocks of rows, shared by threads: what comes out is the same, to the last bit, however many they are.

Every block is worked on by one thread, whose BLAS has one thread too, and what blocks give comes back in their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from .validation import FloatArray

T = TypeVar("T")

BLOCK_ROWS = 2**12
"""Rows of a block where nothing else is better: what is made of some dozens of columns stays in the cache."""

MANY_ROWS = 2**16
"""From so many rows on, threads share the work: below, it is done before they have begun."""


_ALLOWED: ContextVar[int | None] = ContextVar("threads that work on blocks", default=None)


def most_threads() -> int:
    """As many threads as share work on blocks: one per core, unless whoever calls allows fewer."""
    return _ALLOWED.get() or os.cpu_count() or 1


@contextmanager
def threads_at_most(number: int) -> Iterator[None]:
    """Fewer of them inside: a task of a cluster has one, since as many tasks run at once as there are cores."""
    before = _ALLOWED.set(number)
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def by_blocks(work: Callable[[slice], T], rows: int, size: int, *, shared: bool = True, many: int = MANY_ROWS) -> Iterator[T]:
    """What the work gives for every block of so many rows, in their order.

    shared: whether threads may do it at once; many: from so many rows on they do.
    """
    parts = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    threads = min(most_threads(), len(parts))
    if rows < many or threads < 2 or not shared:
        yield from map(work, parts)
        return
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, parts)


def fill_by_blocks(work: Callable[[slice], object], rows: int, size: int, *, shared: bool = True) -> None:
    """The same, of work that writes its rows of an array that is there already."""
    for _ in by_blocks(work, rows, size, shared=shared):
        pass


def sum_by_blocks(work: Callable[[slice], FloatArray], rows: int, size: int) -> FloatArray | float:
    """What the work gives for every block, added in their order: few roundings follow each other."""
    return sum(by_blocks(work, rows, size), 0.0)


def side_by_side(parts: Sequence[FloatArray], *, scale: FloatArray | None = None) -> FloatArray:
    """Matrices, or vectors as columns, with the same rows, as one matrix; scale: a factor of every row."""
    columns = [part if part.ndim == 2 else part[:, None] for part in parts]
    found = np.empty((len(columns[0]), sum(part.shape[1] for part in columns)))

    def fill(rows: slice) -> None:
        np.concatenate([part[rows] for part in columns], axis=1, out=found[rows])
        if scale is not None:
            found[rows] *= scale[rows, None]

    fill_by_blocks(fill, len(found), BLOCK_ROWS)
    return found


def one_below_the_other(parts: Sequence[FloatArray], width: int) -> FloatArray:
    """Matrices of at most so many columns as one matrix, columns of 0 to the right of what is narrower."""
    found = np.empty((sum(len(part) for part in parts), width))
    start = 0
    for part in parts:
        place = found[start : start + len(part)]

        def fill(rows: slice, part: FloatArray = part, place: FloatArray = place) -> None:
            place[rows, : part.shape[1]] = part[rows]
            place[rows, part.shape[1] :] = 0.0

        fill_by_blocks(fill, len(part), BLOCK_ROWS)
        start += len(part)
    return found
