"""C'KC in one pass over the rows, for kernels K = Psi Psi' with few features: (Psi'C)'(Psi'C)."""

from __future__ import annotations

import numpy as np

from ...kernels.blocks import ROWS_AT_ONCE, roundings
from ...kernels.kernel import FiniteRank, Kernel, Tabular
from ...kernels.products import Progress, TileOptions
from ...threads import sum_by_blocks
from ...validation import FloatArray
from .tiles import PairSums, pair_sums


def reduce_pairs(
    kernel: Kernel, points: FloatArray, columns: FloatArray, options: TileOptions | None = None, progress: Progress | None = None
) -> PairSums:
    """The sums over all pairs, by the cheapest exact way that the kernel allows."""
    if options is not None and options.device == "cuda" and not isinstance(kernel, Tabular):
        from .cuda import cuda_sums

        return cuda_sums(kernel, points, columns, options, progress)
    if not isinstance(kernel, FiniteRank):
        return pair_sums(kernel, points, columns, options, progress)
    projected = kernel.project(points, columns)
    diagonal = diagonal_sums(kernel, points, columns)
    if progress is not None:
        progress(1.0)
    return PairSums(
        pair_gram=projected.T @ projected,
        diag_gram=0.5 * (diagonal + diagonal.T),
        kernel_error=rank_error(kernel.supremum, len(projected), roundings(len(points))),
    )


def diagonal_sums(kernel: Kernel, points: FloatArray, columns: FloatArray) -> FloatArray:
    """C' diag(K) C, block by block."""

    def of(rows: slice) -> FloatArray:
        found: FloatArray = columns[rows].T @ (columns[rows] * kernel.diagonal(points[rows])[:, None])
        return found

    return np.zeros((columns.shape[1],) * 2) + sum_by_blocks(of, len(points), ROWS_AT_ONCE)


def rank_error(supremum: float, rank: int, additions: int) -> float:
    """How far an entry of K may be off: P is rounded once per addition, and counts twice in P'P, a sum of `rank` products."""
    return float(np.finfo(np.float64).eps) * (additions + rank / 2 + 8) * supremum
