"""A Gaussian kernel by random features, exact as a kernel of its own: sums over pairs in one pass over the rows.

Any bounded positive semi-definite kernel keeps every guarantee; only power is lost against the kernel that it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..validation import FloatArray, positive, whole
from .kernel import Prepared, Tile

ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class RandomFeatureKernel:
    """K(x, y) = (1/D) sum_k cos(w_k'(x - y)), w_k ~ N(0, 2 I / h^2), k = 1..D: exp(-||x - y||^2 / h^2) as D grows.

    K = Psi Psi' with psi(x) = (cos(w_k'x), sin(w_k'x))_k / sqrt(D), so O(n D k) instead of O(n^2 k). K(x, x) = 1.
    """

    dimension: int
    bandwidth: float = 1.0
    seed: int = 0
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole(self.dimension, "dimension", least=1)
        positive(self.bandwidth, "bandwidth")
        whole(self.seed, "seed", least=0)

    def features(self, points: FloatArray) -> FloatArray:
        """psi, (n, 2 D)."""
        generator = np.random.default_rng(self.seed)
        w = generator.normal(size=(self.dimension, points.shape[1])) * (np.sqrt(2.0) / self.bandwidth)
        angles = points @ w.T
        return np.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(self.dimension))

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        """Psi'C."""
        total = np.zeros((2 * self.dimension, columns.shape[1]))
        for start in range(0, len(points), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            total += self.features(points[rows]).T @ columns[rows]
        return total

    def gram(self, points: FloatArray) -> FloatArray:
        """Psi'Psi."""
        total = np.zeros((2 * self.dimension, 2 * self.dimension))
        for start in range(0, len(points), ROWS_AT_ONCE):
            psi = self.features(points[start : start + ROWS_AT_ONCE])
            total += psi.T @ psi
        return total

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> Prepared:
        return _FeatureTiles(self.features(rows).astype(dtype), self.features(columns).astype(dtype))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self.features(x), self.features(y)))


class _FeatureTiles:
    def __init__(self, rows: Tile, columns: Tile) -> None:
        self._rows, self._columns = rows, columns
        # Products of unit vectors; the rounding of large angles is part of the features, which are the same everywhere.
        self.entry_error = float(np.finfo(rows.dtype).eps) * (rows.shape[1] + 8)

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        np.matmul(self._rows[rows], self._columns[columns].T, out=out)
