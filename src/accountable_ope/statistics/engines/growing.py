"""Sums over all pairs of a data set that grows: only pairs with a new row are computed.

With old rows O and new rows N, C'KC = C_O'KC_O + C_O'KC_N + (C_O'KC_N)' + C_N'KC_N: the first term is known, the
others cost O(n_old n_new).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.kernel import FiniteRank, Kernel
from ...kernels.products import TileOptions, rows_of_tiles
from ...validation import FloatArray
from .finite_rank import reduce_pairs
from .tiles import PairSums, used_error

UNIT = float(np.finfo(np.float64).eps)


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
    """sum over i in O and j in N of c_i K(x_i, x_j) c_j'."""
    options = TileOptions() if options is None else options
    if options.device == "cuda":
        from .cuda import cuda_cross_sums

        return cuda_cross_sums(kernel, points, columns, new_points, new_columns)
    tiles = kernel.prepare(points, new_points, options.dtype)
    gram = np.zeros((columns.shape[1], new_columns.shape[1]))
    for part in rows_of_tiles(tiles, len(points), new_columns, lambda rows, sums: columns[rows].T @ sums, options):
        gram += part
    return CrossSums(gram, used_error(kernel, tiles, options, len(points) + len(new_points)))


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
    among = reduce_pairs(kernel, points[old:], columns[old:], options)
    return PairSums(
        pair_gram=known.pair_gram + (cross.gram + cross.gram.T) + among.pair_gram,
        diag_gram=known.diag_gram + among.diag_gram,
        # Every entry of K is used in one of the sums, and adding them up rounds three more times.
        kernel_error=max(known.kernel_error, cross.kernel_error, among.kernel_error) + 1.5 * UNIT * kernel.supremum,
    )
