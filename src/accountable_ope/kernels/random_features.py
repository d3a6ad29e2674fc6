"""A Gaussian kernel by random features, exact as a kernel of its own: sums over pairs in one pass over the rows.

Any bounded positive semi-definite kernel keeps every guarantee; only power is lost against the kernel that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arguments import checked
from ..validation import FloatArray, positive, whole
from .tiles import FeatureTiles, KernelTiles

ROWS_AT_ONCE = 8192


@checked
@dataclass(frozen=True)
class RandomFeatureKernel:
    """K(x, y) = (1/D) sum_k cos(w_k'(x - y)), w_k ~ N(0, 2 I / h^2), k = 1..D: exp(-||x - y||^2 / h^2) as D grows.

    K = Psi Psi' with psi(x) = (cos(w_k'x), sin(w_k'x))_k / sqrt(D), so O(n D k) instead of O(n^2 k). K(x, x) = 1.

    Parameters
    ----------
    dimension : int
        D, the number of frequencies.
    bandwidth : float
        h of the Gaussian kernel that this one stands for.
    seed : int
        Of the frequencies: equal seeds give equal kernels.

    Raises
    ------
    InvalidInput
        Where `dimension` is not a whole number of at least 1, `bandwidth` not positive or `seed` negative.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import RandomFeatureKernel
    >>> kernel = RandomFeatureKernel(2000, bandwidth=1.0)
    >>> abs(kernel.paired(np.zeros((1, 2)), np.ones((1, 2)))[0] - np.exp(-2.0)) < 0.05
    np.True_
    """

    dimension: int
    bandwidth: float = 1.0
    seed: int = 0
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole(self.dimension, "dimension", least=1)
        positive(self.bandwidth, "bandwidth")
        object.__setattr__(self, "bandwidth", float(self.bandwidth))
        whole(self.seed, "seed", least=0)

    def features(self, points: FloatArray) -> FloatArray:
        """psi, (n, 2 D)."""
        generator = np.random.default_rng(self.seed)
        w = generator.normal(size=(self.dimension, points.shape[1])) * (np.sqrt(2.0) / self.bandwidth)
        angles = points @ w.T
        return np.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(self.dimension))

    def rank(self, points: FloatArray) -> int:
        return 2 * self.dimension

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        return np.asarray(sum(self.features(points[rows]).T @ columns[rows] for rows in _blocks(len(points))))

    def expand(self, points: FloatArray, projected: FloatArray) -> FloatArray:
        return np.concatenate([self.features(points[rows]) @ projected for rows in _blocks(len(points))])

    def gram(self, points: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        total = np.zeros((2 * self.dimension, 2 * self.dimension))
        for rows in _blocks(len(points)):
            psi = self.features(points[rows])
            total += psi.T @ (psi if weights is None else psi * weights[rows, None])
        return total

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        return FeatureTiles(self.features(rows).astype(dtype), self.features(columns).astype(dtype))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self.features(x), self.features(y)))


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, count, ROWS_AT_ONCE))
