"""Pivoted Cholesky factors of matrices that are known by their diagonal and, column by column, on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..validation import FloatArray


def pivoted_cholesky(
    diagonal: FloatArray,
    column: Callable[[int], FloatArray],
    *,
    rank: int,
    floor: float,
    first: FloatArray | None = None,
    order: Literal["C", "F"] = "C",
) -> tuple[FloatArray, list[int]]:
    """L (n, r) and the pivots, A ~ L L' with equality in the rows and columns of the pivots.

    The next pivot is where the diagonal of A - L L' is largest.

    diagonal: that of A.
    column:   column j of A.
    rank:     L has at most so many columns.
    floor:    nothing of the diagonal that exceeds it is left, unless L has as many columns as it may.
    first:    a first column of L that belongs to no pivot.
    order:    how L lies in memory: by columns ("F") is faster where it has far more rows, and rounds differently.
    """
    L = np.zeros((len(diagonal), rank), order=order)
    left, used = diagonal.copy(), 0
    if first is not None:
        L[:, 0], used = first, 1
        left -= first**2
    pivots: list[int] = []
    while used < rank:
        pivot = int(np.argmax(left))
        if left[pivot] <= floor:
            break
        L[:, used] = (column(pivot) - L[:, :used] @ L[pivot, :used]) / np.sqrt(left[pivot])
        left -= L[:, used] ** 2
        pivots.append(pivot)
        left[pivots] = 0.0
        used += 1
    return L[:, :used], pivots
