"""The only O(n^2) work: C'KC over all pairs of points, by tiles, without ever storing the n x n matrix.

Only tiles on or above the diagonal are computed. A thread takes a row of tiles, with BLAS held to one thread; NumPy lets go of
the interpreter lock in the products and in exp, so threads run side by side. Row sums are added in a fixed order, so the result
does not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ...kernels.kernel import Kernel
from ...validation import FloatArray, whole

BLOCK = 256
"""Rows of a tile that are multiplied at a time: OpenBLAS copies larger factors first, which for few columns doubles the time."""

Progress = Callable[[float], None]
"""Called with the fraction done, from 0 to 1."""


def part_of(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """Progress of one part of the work, as progress of the whole."""
    return None if progress is None else lambda done: progress(start + (stop - start) * done)


@dataclass(frozen=True)
class TileOptions:
    """How the pass is cut up. The sizes keep a tile in the second-level cache; results do not depend on them."""

    rows: int = 512
    columns: int = 256
    threads: int | None = None
    single_precision: bool = False

    def __post_init__(self) -> None:
        whole(self.rows, "rows", least=1)
        whole(self.columns, "columns", least=1)
        if self.threads is not None:
            whole(self.threads, "threads", least=1)

    @property
    def dtype(self) -> Any:
        return np.float32 if self.single_precision else np.float64


@dataclass(frozen=True, eq=False)
class PairSums:
    """pair_gram = C'KC, diag_gram = C' diag(K) C, and a bound on the error of any entry of K as it was used."""

    pair_gram: FloatArray
    diag_gram: FloatArray
    kernel_error: float


def pair_sums(
    kernel: Kernel, points: FloatArray, columns: FloatArray, options: TileOptions | None = None, progress: Progress | None = None
) -> PairSums:
    """sum_ij c_i K(x_i, x_j) c_j' and sum_i c_i K(x_i, x_i) c_i' for the rows c_i of `columns` (n, k)."""
    options = TileOptions() if options is None else options
    n, k = columns.shape
    dtype = options.dtype
    prepared = kernel.prepare(points, points, dtype)
    tile_columns = columns.astype(dtype, copy=False)
    buffers = local()

    def row_of_tiles(start: int) -> FloatArray:
        stop = min(start + options.rows, n)
        tile, product, sums = _buffers(buffers, options, k)
        height = stop - start
        sums[:height] = 0.0
        # Half of the tile on the diagonal here, half when the transpose is added below.
        left = start
        while left < n:
            right = stop if left == start else min(left + options.columns, n)
            here = tile[: height * (right - left)].reshape(height, right - left)
            prepared.fill(slice(start, stop), slice(left, right), here)
            _multiply(here, tile_columns[left:right], product[:height])
            if left == start:
                product[:height] *= 0.5
            sums[:height] += product[:height]
            left = right
        return columns[start:stop].T @ sums[:height]

    starts = range(0, n, options.rows)
    total = np.zeros((k, k))
    threads = options.threads or os.cpu_count() or 1
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        for start, part in zip(starts, pool.map(row_of_tiles, starts), strict=True):
            total += part
            if progress is not None:
                rest = (n - min(start + options.rows, n)) / n
                progress(1 - rest * rest)
        # With one thread too: the threads of BLAS stay busy for a while after a product, and would slow the next pass.
        diag_gram = columns.T @ (columns * kernel.diagonal(points)[:, None])
    longest_sum = max(options.rows, options.columns) if options.single_precision else n
    return PairSums(
        pair_gram=total + total.T,
        diag_gram=0.5 * (diag_gram + diag_gram.T),
        # A product of sums of `longest_sum` terms loses at most that many times half a unit in the last place.
        kernel_error=float(prepared.entry_error + 0.5 * np.finfo(dtype).eps * (longest_sum + 8) * kernel.supremum),
    )


def _multiply(tile: Any, columns: Any, out: Any) -> None:
    """tile @ columns, in one call, by blocks of rows that BLAS multiplies as they lie, without packing them first."""
    height, width = tile.shape
    blocks = height // BLOCK if height % BLOCK == 0 else 1
    np.matmul(tile.reshape(blocks, -1, width), columns, out=out.reshape(blocks, -1, out.shape[1]))


def _buffers(store: local, options: TileOptions, k: int) -> tuple[Any, Any, FloatArray]:
    """One set of buffers per thread, allocated once."""
    if not hasattr(store, "tile"):
        store.tile = np.empty(options.rows * max(options.rows, options.columns), dtype=options.dtype)
        store.product = np.empty((options.rows, k), dtype=options.dtype)
        store.sums = np.empty((options.rows, k))
    return store.tile, store.product, store.sums
