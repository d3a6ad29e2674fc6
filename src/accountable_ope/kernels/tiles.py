"""Kernels bound to points: each fills tiles, (rows x columns) blocks of the kernel matrix, which is never formed as a whole."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..validation import FloatArray

Tile = NDArray[Any]
"""A float64 or float32 buffer for a block of the kernel matrix."""


class KernelTiles(Protocol):
    """A kernel bound to points: fills tiles, and bounds its own rounding error in any entry."""

    entry_error: float

    def fill(self, rows: slice, columns: slice, out: Tile) -> None: ...


class ExponentTiles:
    """Gaussian tiles by one matrix product: [2x, -|x|^2, 1] [y, 1, -|y|^2]' = -|x - y|^2."""

    def __init__(self, rows: FloatArray, columns: FloatArray, dtype: Any, entry_error: float) -> None:
        row_squares, column_squares = np.einsum("ij,ij->i", rows, rows), np.einsum("ij,ij->i", columns, columns)
        self._left = np.column_stack([2 * rows, -row_squares, np.ones(len(rows))]).astype(dtype)
        # One row per coordinate: the product with a contiguous right factor is up to twice as fast.
        self._right = np.vstack([columns.T, np.ones(len(columns)), -column_squares]).astype(dtype, order="C")
        self._row_norms, self._column_norms = np.sqrt(row_squares), np.sqrt(column_squares)
        self._reach = float(np.sqrt(-np.log(np.finfo(dtype).tiny)))
        self.entry_error = entry_error

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        np.matmul(self._left[rows], self._right[:, columns], out=out)
        _exp(out, clip=self._row_norms[rows].max(initial=0.0) + self._column_norms[columns].max(initial=0.0) > self._reach)


class DifferenceTiles:
    """exp(-sum_j |x_j - y_j|^p), p = 1 or 2, one dimension after the other."""

    def __init__(self, rows: Tile, columns: Tile, *, squared: bool) -> None:
        self._rows, self._columns, self._squared = rows, columns, squared
        # x exp(-x) <= 1/e bounds what a relative error of the exponent can do to an entry; far points underflow to 0.
        spread = float(np.abs(rows).max(initial=0) + np.abs(columns).max(initial=0))
        self.entry_error = float(np.finfo(rows.dtype).eps) * (4 * rows.shape[1] + 8 + spread * rows.shape[1])

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        difference = np.empty_like(out)
        out.fill(0)
        for j in range(self._rows.shape[1]):
            np.subtract(self._rows[rows, j, None], self._columns[None, columns, j], out=difference)
            if self._squared:
                np.multiply(difference, difference, out=difference)
            else:
                np.abs(difference, out=difference)
            np.subtract(out, difference, out=out)
        _exp(out, clip=True)


class EqualityTiles:
    """1 where labels agree, else 0."""

    entry_error = 0.0

    def __init__(self, rows: NDArray[Any], columns: NDArray[Any]) -> None:
        self._rows, self._columns = rows, columns

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        np.equal(self._rows[rows, None], self._columns[None, columns], out=out, casting="unsafe")


class FeatureTiles:
    """psi(x)'psi(y), for features of length one."""

    def __init__(self, rows: Tile, columns: Tile) -> None:
        self._rows, self._columns = rows, columns
        # Products of unit vectors; the rounding of large angles is part of the features, which are the same everywhere.
        self.entry_error = float(np.finfo(rows.dtype).eps) * (rows.shape[1] + 8)

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        np.matmul(self._rows[rows], self._columns[columns].T, out=out)


class ProductTiles:
    """The entrywise product of two kernels."""

    def __init__(self, first: KernelTiles, second: KernelTiles, entry_error: float) -> None:
        self._first, self._second, self.entry_error = first, second, entry_error

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        self._first.fill(rows, columns, out)
        factor = np.empty_like(out)
        self._second.fill(rows, columns, factor)
        np.multiply(out, factor, out=out)


def _exp(tile: Tile, *, clip: bool) -> None:
    """exp in place. Subnormal results, and products with them, take up to a hundred times as long: exponents stop well before."""
    if clip:
        # exp of this is far below any rounding error, and still normal after a product with small numbers.
        np.maximum(tile, -600.0 if tile.dtype == np.float64 else -60.0, out=tile)
    np.exp(tile, out=tile)
