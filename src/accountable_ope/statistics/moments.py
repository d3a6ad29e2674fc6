"""Moments against which a class is tested: functions of (s, a) with which residuals of the true Q are uncorrelated.

psi(x) = K(L, L)^{-1/2} K(L, x) for landmarks L among the rows, so that Psi Psi' is about the kernel matrix. All sums over rows
are made block by block: O(n D) work in exponentials, O(D^2) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels.bandwidths import in_bandwidths, narrowed
from ..kernels.kernel import Kernel, Tabular, block, distinct_rows
from ..validation import FloatArray, IntArray

LANDMARKS = 150
"""At most so many, unless the class has more coefficients."""
MORE_THAN_COEFFICIENTS = 50
"""With many coefficients, so many more landmarks than coefficients."""
FLAT = 1e-7
"""Directions of landmarks, or of moments of the class, below this share of the largest are rounding."""
BLOCK = 8192
PAIRS_OF = 500
"""Distances are compared among so many rows."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Points x_i, some of them as landmarks, and the factors of the bandwidths at which moments are taken.

    factors:  1 first, that of the kernel itself; then narrower ones, since a class that is smooth on the kernel's own scale
              misses Q on finer ones. 1 alone where the kernel has no bandwidth.
    """

    kernel: Kernel
    points: FloatArray
    chosen: FloatArray
    factors: tuple[float, ...]

    def moments(self, factor: float) -> Moments:
        """psi at `factor` times the bandwidths."""
        kernel = narrowed(self.kernel, factor)
        values, vectors = np.linalg.eigh(block(kernel, self.chosen, self.chosen))
        kept = values > FLAT * values[-1]
        return Moments(kernel, self.points, self.chosen, vectors[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True, eq=False)
class Moments:
    """psi(x) = whitening' K(landmarks, x)."""

    kernel: Kernel
    points: FloatArray
    landmarks: FloatArray
    whitening: FloatArray

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Rows and their psi, a few thousand at a time."""
        for start in range(0, len(self.points), BLOCK):
            rows = slice(start, start + BLOCK)
            yield rows, block(self.kernel, self.points[rows], self.landmarks) @ self.whitening

    def sums(self, columns: FloatArray) -> FloatArray:
        """Psi'C."""
        total = np.zeros((self.whitening.shape[1], columns.shape[1]))
        for rows, psi in self.blocks():
            total += psi.T @ columns[rows]
        return total

    def sums_and_grams(self, columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Psi'C, Psi'Psi and Psi' diag(weights) Psi."""
        size = self.whitening.shape[1]
        total, plain, weighted = np.zeros((size, columns.shape[1])), np.zeros((size, size)), np.zeros((size, size))
        roots = np.sqrt(weights)[:, None]
        for rows, psi in self.blocks():
            total += psi.T @ columns[rows]
            plain += psi.T @ psi
            psi *= roots[rows]
            weighted += psi.T @ psi
        return total, plain, weighted


def landmarks(kernel: Kernel, points: FloatArray, coefficients: int) -> Landmarks:
    """Landmarks among the different rows, drawn by a generator seeded with their number: the same for the same data.

    The order of the rows has no part in it. Of a kernel that only tells equal from different, the rows that occur most often.
    """
    first, group = distinct_rows(points)
    wanted = min(max(LANDMARKS, coefficients + MORE_THAN_COEFFICIENTS), max(len(points) // 4, 10))
    generator = np.random.default_rng(len(points))
    chosen = first
    if len(first) > wanted:
        if isinstance(kernel, Tabular):
            chosen = first[np.argsort(-np.bincount(group), kind="stable")[:wanted]]
        else:
            chosen = first[generator.choice(len(first), wanted, replace=False)]
    return Landmarks(kernel, points, points[chosen], _factors(kernel, points, group, generator))


def _factors(kernel: Kernel, points: FloatArray, group: IntArray, generator: np.random.Generator) -> tuple[float, ...]:
    """1, then halves down from the median distance between rows where that is below a bandwidth, else from 1."""
    scaled = in_bandwidths(kernel, points)
    if scaled is None:
        return (1.0,)
    if len(points) > PAIRS_OF:  # equal rows are interchangeable, so that their order has no part in it
        scaled = scaled[np.argsort(group, kind="stable")[generator.choice(len(points), PAIRS_OF, replace=False)]]
    upper = np.triu_indices(len(scaled), 1)
    distances = np.sqrt(sum((column[:, None] - column) ** 2 for column in scaled.T))[upper]
    positive = distances[distances > 0]
    median = float(np.median(positive)) if len(positive) else 1.0
    return (1.0, 0.5, 0.25) if median >= 1 else (1.0, median, median / 2, median / 4)
