"""C'KC in one pass over the rows, for kernels K = Psi Psi' with few features: (Psi'C)'(Psi'C)."""

from __future__ import annotations

import numpy as np

from ...kernels.kernel import FiniteRank, Kernel
from ...kernels.products import Progress, TileOptions
from ...validation import FloatArray
from .tiles import PairSums, pair_sums


def reduce_pairs(
    kernel: Kernel, points: FloatArray, columns: FloatArray, options: TileOptions | None = None, progress: Progress | None = None
) -> PairSums:
    """The sums over all pairs, by the cheapest exact way that the kernel allows."""
    if not isinstance(kernel, FiniteRank):
        if options is not None and options.device == "cuda":
            from .cuda import cuda_pair_sums

            return cuda_pair_sums(kernel, points, columns, progress)
        return pair_sums(kernel, points, columns, options, progress)
    projected = kernel.project(points, columns)
    diagonal = columns.T @ (columns * kernel.diagonal(points)[:, None])
    if progress is not None:
        progress(1.0)
    return PairSums(
        pair_gram=projected.T @ projected,
        diag_gram=0.5 * (diagonal + diagonal.T),
        kernel_error=float(np.finfo(np.float64).eps) * (len(points) + 8) * kernel.supremum,
    )
