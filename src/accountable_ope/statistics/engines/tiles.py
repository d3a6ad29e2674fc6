"""C'KC over all pairs of points, by the tiles on or above the diagonal of K."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.kernel import Kernel
from ...kernels.products import Progress, TileOptions, rows_of_tiles
from ...kernels.tiles import KernelTiles
from ...validation import FloatArray


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
    tiles, diagonal = kernel.prepare(points, points, options.dtype), kernel.diagonal(points)[:, None]
    half, diag = np.zeros((2, columns.shape[1], columns.shape[1]))

    def grams(rows: slice, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        here = columns[rows]
        return here.T @ sums, here.T @ (here * diagonal[rows])

    for pairs, same in rows_of_tiles(tiles, len(points), columns, grams, options, progress, symmetric=True):
        half += pairs
        diag += same
    return PairSums(half + half.T, 0.5 * (diag + diag.T), used_error(kernel, tiles, options, len(points)))


def used_error(kernel: Kernel, tiles: KernelTiles, options: TileOptions, count: int) -> float:
    """A bound on the error of any entry of K, as it is used in products of sums over `count` rows."""
    # A product of sums of `longest` terms loses at most that many times half a unit in the last place.
    longest = max(options.rows, options.columns) if options.single_precision else count
    return float(tiles.entry_error + 0.5 * np.finfo(options.dtype).eps * (longest + 8) * kernel.supremum)
