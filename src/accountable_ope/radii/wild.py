"""The wild radius, and products with a kernel matrix that is never formed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits

from ..classes.sections import ROWS_AT_ONCE
from ..kernels.kernel import Kernel
from ..statistics.bellman import BellmanSystem
from ..statistics.engines.tiles import Progress, TileOptions
from ..validation import FloatArray, IntArray, probability_level, row_keys, whole

RANK = 300
"""So many eigenvalues of the law of the wild radius are computed."""

NEGLIGIBLE = 1e-12
"""Eigenvalues below this share of the largest count as none."""


@runtime_checkable
class ExplicitKernel(Protocol):
    """A kernel K = Psi Psi' whose features Psi are at hand, for any points."""

    def features(self, points: FloatArray) -> FloatArray: ...


def wild_radius(
    system: BellmanSystem, kernel: Kernel, theta: FloatArray, delta: float, *, draws: int = 10_000, seed: int = 0
) -> float:
    """The (1 - delta) quantile of (e w)'K(e w) / n^2 over w ~ N(0, I), e the residuals at theta.

    theta is to be the minimizer of the loss over a class that is small against the data: too many coefficients leave no residual.
    The law is that of sum_j mu_j chi2_1, mu_j the eigenvalues of diag(e) K diag(e) / n^2; they add up to sum_i e_i^2 K_ii / n^2.
    The RANK largest come from a pivoted Cholesky factorization, O(n RANK^2). The others, if any, are taken as equal to the
    smallest of them, the most that their sum can vary. The quantile is that of `draws` from this law.
    """
    probability_level(delta)
    generator = np.random.default_rng(whole(seed, "seed", least=0))
    whole(draws, "draws", least=1)
    mu, others = _spectrum(kernel, system.points, system.residuals_at(theta))
    sums = np.zeros(draws)
    for one in mu:
        sums += one * generator.standard_normal(draws) ** 2
    if others > 0:
        sums += mu[-1] * generator.chisquare(others / mu[-1], draws)
    return float(np.quantile(sums, 1 - delta)) / len(system.target) ** 2


def kernel_product(
    kernel: Kernel, points: FloatArray, column: FloatArray, options: TileOptions | None = None, progress: Progress | None = None
) -> FloatArray:
    """K column: tile by tile over the distinct points, or Psi (Psi'column) where the kernel has few features."""
    if isinstance(kernel, ExplicitKernel):
        projected = sum(column[rows] @ kernel.features(points[rows]) for rows in _blocks(len(points)))
        if progress is not None:
            progress(1.0)
        return np.concatenate([kernel.features(points[rows]) @ projected for rows in _blocks(len(points))])
    options = TileOptions() if options is None else options
    distinct, group = _distinct(points)
    n, sums = len(distinct), np.bincount(group, weights=column).astype(options.dtype)
    prepared = kernel.prepare(distinct, distinct, options.dtype)

    def rows(start: int) -> FloatArray:
        here = slice(start, min(start + options.rows, n))
        total = np.zeros(here.stop - start)
        for left in range(0, n, options.columns):
            there = slice(left, min(left + options.columns, n))
            tile = np.empty((len(total), there.stop - left), dtype=options.dtype)
            prepared.fill(here, there, tile)
            total += tile @ sums[there]
        return total

    product = np.empty(n)
    starts = range(0, n, options.rows)
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(options.threads or os.cpu_count() or 1) as pool:
        for start, part in zip(starts, pool.map(rows, starts), strict=True):
            product[start : start + len(part)] = part
            if progress is not None:
                progress((start + len(part)) / n)
    return product[group]


def _spectrum(kernel: Kernel, points: FloatArray, e: FloatArray) -> tuple[FloatArray, float]:
    """The largest eigenvalues of diag(e) K diag(e), largest first, and the sum of the others."""
    total = float(e**2 @ kernel.diagonal(points))
    if total == 0:
        return np.zeros(0), 0.0
    # Many thin products: more than one BLAS thread only gets in its own way.
    with threadpool_limits(limits=1, user_api="blas"):
        mu = np.linalg.eigvalsh(_weighted_gram(kernel, points, e))[::-1]
    mu = mu[mu > NEGLIGIBLE * mu[0]]
    return mu, max(total - float(mu.sum()), 0.0)


def _weighted_gram(kernel: Kernel, points: FloatArray, e: FloatArray) -> FloatArray:
    """Psi'Psi with Psi Psi' = diag(e) K diag(e), as nearly as RANK columns allow; all of it where the kernel has few features."""
    if isinstance(kernel, ExplicitKernel):
        blocks = (kernel.features(points[rows]) * e[rows, None] for rows in _blocks(len(points)))
    else:
        # Rows at the same point add up to one Gaussian of variance sum e_i^2, so only distinct points count.
        distinct, group = _distinct(points)
        return _pivoted_gram(kernel, distinct, np.sqrt(np.bincount(group, weights=e**2)))
    return np.asarray(sum(one.T @ one for one in blocks))


def _pivoted_gram(kernel: Kernel, points: FloatArray, weights: FloatArray) -> FloatArray:
    """L'L, L the pivoted Cholesky factor of diag(weights) K diag(weights): at most RANK columns."""
    n = len(points)
    prepared = kernel.prepare(points, points, np.float64)
    left = weights**2 * kernel.diagonal(points)
    floor = 1e-6 * float(left.max())
    L = np.zeros((n, min(RANK, n)), order="F")
    column, used = np.empty((n, 1)), 0
    while used < L.shape[1]:
        pivot = int(np.argmax(left))
        if left[pivot] <= floor:
            break
        prepared.fill(slice(0, n), slice(pivot, pivot + 1), column)
        L[:, used] = weights * weights[pivot] * column[:, 0] - L[:, :used] @ L[pivot, :used]
        L[:, used] /= np.sqrt(left[pivot])
        left -= L[:, used] ** 2
        left[pivot] = 0.0
        used += 1
    return np.asarray(L[:, :used].T @ L[:, :used])


def _blocks(count: int) -> list[slice]:
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, count, ROWS_AT_ONCE)]


def _distinct(points: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different rows, and for every row which of them it is."""
    _, first, group = np.unique(row_keys(points), return_index=True, return_inverse=True)
    return points[first], group.reshape(-1)
