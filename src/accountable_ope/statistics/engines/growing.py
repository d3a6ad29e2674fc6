"""Sums over all pairs of a data set that grows: only pairs with a new row are computed.

With old rows O and new rows N, C'KC = C_O'KC_O + C_O'KC_N + (C_O'KC_N)' + C_N'KC_N: the first term is known, the
others cost O(n_old n_new).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from ...kernels.kernel import FiniteRank, Kernel
from ...validation import FloatArray
from .finite_rank import reduce_pairs
from .tiles import PairSums, TileOptions, pair_sums

HALF_UNIT = 0.5 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class CrossSums:
    """gram = C_O'K(O, N)C_N (k, k), and a bound on the error of any entry of K as it was used."""

    gram: FloatArray
    kernel_error: float


def cross_sums(
    kernel: Kernel,
    points: FloatArray,
    columns: FloatArray,
    new_points: FloatArray,
    new_columns: FloatArray,
    options: TileOptions | None = None,
) -> CrossSums:
    """sum over i in O and j in N of c_i K(x_i, x_j) c_j', by tiles, in double precision.

    As in `pair_sums` a thread takes a row of tiles, and row sums are added in a fixed order.
    """
    options = TileOptions() if options is None else options
    prepared = kernel.prepare(points, new_points, np.float64)
    n, new, k = len(points), len(new_points), columns.shape[1]

    def row_of_tiles(start: int) -> FloatArray:
        stop = min(start + options.rows, n)
        sums = np.zeros((stop - start, k))
        for left in range(0, new, options.columns):
            right = min(left + options.columns, new)
            tile = np.empty((stop - start, right - left))
            prepared.fill(slice(start, stop), slice(left, right), tile)
            sums += tile @ new_columns[left:right]
        return columns[start:stop].T @ sums

    gram = np.zeros((k, k))
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(options.threads or os.cpu_count() or 1) as pool:
        for part in pool.map(row_of_tiles, range(0, n, options.rows)):
            gram += part
    return CrossSums(gram, float(prepared.entry_error + HALF_UNIT * (n + new + 8) * kernel.supremum))


def extend_sums(
    kernel: Kernel,
    known: PairSums | None,
    points: FloatArray,
    columns: FloatArray,
    new: int,
    options: TileOptions | None = None,
) -> PairSums:
    """The sums over all rows, from those over all but the last `new` ones; one pass over the rows where the kernel allows it."""
    if known is None or isinstance(kernel, FiniteRank):
        return reduce_pairs(kernel, points, columns, options)
    old = len(points) - new
    cross = cross_sums(kernel, points[:old], columns[:old], points[old:], columns[old:], options)
    among = pair_sums(kernel, points[old:], columns[old:], options)
    return PairSums(
        pair_gram=known.pair_gram + (cross.gram + cross.gram.T) + among.pair_gram,
        diag_gram=known.diag_gram + among.diag_gram,
        # Every entry of K is used in one of the sums, and adding them up rounds three more times.
        kernel_error=max(known.kernel_error, cross.kernel_error, among.kernel_error) + 3 * HALF_UNIT * kernel.supremum,
    )
