"""The statistic of Theorem C: the loss weighed by the data's own covariance, eps'K(I + c sigma^2 K)^{-1}eps.

An exact kernel needs n x n algebra, so n is limited; a kernel of finitely many features needs one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidInput
from ..kernels.kernel import FiniteRank, Kernel, block
from ..statistics.bellman import BellmanSystem
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray
from .martingale import self_normalized

LARGEST_COUNT = 12_000
"""Rows up to which the n x n matrix of an exact kernel is formed."""

BALANCE = 10.0
"""c sigma^2 planned sup K, fixed in advance: between 3 and 30 the intervals differ little."""


@dataclass(frozen=True, eq=False)
class SelfNormalized:
    """The statistic, with the weighed sums in place of pair_gram, and the level of its loss."""

    statistic: KernelStatistic
    level: float
    log_determinant: float = 0.0


def self_normalized_statistic(
    system: BellmanSystem, kernel: Kernel, statistic: KernelStatistic, residual_width: float, delta: float, planned: int
) -> SelfNormalized:
    """C'K(I + c sigma^2 K)^{-1}C with sigma = w/2 and c = 10 / (sigma^2 planned sup K), and its level (Theorem C), over n^2."""
    n, columns = len(system.target), system.columns()
    variance = (0.5 * residual_width) ** 2
    if variance == 0:
        return SelfNormalized(statistic, 0.0)
    scale = BALANCE / (variance * planned * kernel.supremum)
    weight = scale * variance
    if isinstance(kernel, FiniteRank):
        projected, gram = kernel.project(system.points, columns), kernel.gram(system.points)
    else:
        if n > LARGEST_COUNT:
            raise InvalidInput(
                f"`radius` self-normalized needs an n x n matrix for {kernel!r}, which is refused above {LARGEST_COUNT} "
                f"rows. Got {n}. Use Tabular() or RandomFeatureKernel, or another radius."
            )
        projected, gram = columns, block(kernel, system.points, system.points)
    weighed, log_determinant = _weighed(projected, gram, weight, exact=not isinstance(kernel, FiniteRank))
    return SelfNormalized(
        replace(statistic, pair_gram=0.5 * (weighed + weighed.T)),
        self_normalized(log_determinant, scale, delta) / n**2,
        log_determinant,
    )


def _weighed(projected: FloatArray, gram: FloatArray, weight: float, *, exact: bool) -> tuple[FloatArray, float]:
    """Psi (I + w Psi'Psi)^{-1} Psi' between the columns; for an exact kernel K(I + wK)^{-1} = (I - (I + wK)^{-1}) / w."""
    from scipy.linalg import cho_solve, cholesky

    inner = weight * gram
    inner[np.diag_indices_from(inner)] += 1.0
    factor = cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
    log_determinant = 2 * float(np.log(np.diagonal(factor)).sum())
    solved = cho_solve((factor, True), projected, check_finite=False)
    if exact:
        return np.asarray(projected.T @ (projected - solved)) / weight, log_determinant
    return np.asarray(projected.T @ solved), log_determinant
