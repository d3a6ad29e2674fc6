"""A Gaussian kernel by random features, exact as a kernel of its own: sums over pairs in one pass over the rows.

Any bounded positive semi-definite kernel keeps every guarantee; only power is lost against the kernel that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..errors import InvalidInput
from ..threads import most_threads
from ..validation import FloatArray, positive, whole
from .blocks import blocks
from .tiles import FeatureTiles, KernelTiles
from .waves import Waves


@checked
@dataclass(frozen=True)
class RandomFeatureKernel:
    """K(x, y) = (1/D) sum_k cos(w_k'(x - y)), w_k ~ N(0, 2 I / h^2), k = 1..D: exp(-||x - y||^2 / h^2) as D grows.

    K = Psi Psi' with psi(x) = (cos(w_k'x), sin(w_k'x))_k / sqrt(D), so O(n D k) instead of O(n^2 k). K(x, x) = 1.

    Parameters
    ----------
    dimension : int
        D, the number of frequencies.
    bandwidth : float or tuple of floats
        h of the Gaussian kernel that this one stands for, one for all columns of the points (s, a) or one for each.
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
    bandwidth: float | tuple[float, ...] = 1.0
    seed: int = 0
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole(self.dimension, "dimension", least=1)
        if isinstance(self.bandwidth, tuple | list):
            widths = tuple(positive(each, "bandwidth") for each in self.bandwidth)
            if not widths:
                raise InvalidInput("`bandwidth` must have at least one entry. Got none.")
            object.__setattr__(self, "bandwidth", widths)
        else:
            object.__setattr__(self, "bandwidth", positive(self.bandwidth, "bandwidth"))
        whole(self.seed, "seed", least=0)

    def frequencies(self, point_dimension: int) -> FloatArray:
        """w, (D, d)."""
        generator, widths = np.random.default_rng(self.seed), np.asarray(self.bandwidth)
        if widths.ndim and len(widths) != point_dimension:
            raise InvalidInput(f"`bandwidth` has {len(widths)} entries, points have {point_dimension} columns.")
        return np.asarray(generator.normal(size=(self.dimension, point_dimension)) * (np.sqrt(2.0) / widths))

    def features(self, points: FloatArray) -> FloatArray:
        """psi, (n, 2 D)."""
        waves, found = Waves(self.frequencies(points.shape[1])), np.empty((len(points), 2 * self.dimension))
        for start in range(0, len(points), waves.rows):
            rows = slice(start, start + waves.rows)
            waves.write(points[rows], found[rows])
        found /= np.sqrt(self.dimension)
        return found

    def rank(self, points: FloatArray) -> int:
        return 2 * self.dimension

    def labels(self, points: FloatArray) -> FloatArray:
        """The features are the same whatever the points: their numbers."""
        return np.arange(2.0 * self.dimension)[:, None]

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        """Psi'C: one product per block of rows that stays in the cache; threads take `ROWS_AT_ONCE` rows each, added in order."""
        width = columns.shape[1]
        total = np.zeros((width, 2 * self.dimension))

        def sums(waves: Waves, rows: slice) -> FloatArray:
            found = np.zeros((width, 2 * self.dimension))
            for some in _pieces(rows, waves.rows):
                found += columns[some].T @ waves.at(points[some])  # C'Psi: BLAS is slower at Psi'C, which has many rows
            return found

        for part in self._in_threads(points, sums):
            total += part
        total /= np.sqrt(self.dimension)
        return np.ascontiguousarray(total.T)

    def expand(self, points: FloatArray, projected: FloatArray) -> FloatArray:
        """Psi P, block by block; threads take `ROWS_AT_ONCE` rows each."""
        width = projected.shape[1]
        scaled = projected / np.sqrt(self.dimension)

        def products(waves: Waves, rows: slice) -> FloatArray:
            return np.concatenate([waves.at(points[some]) @ scaled for some in _pieces(rows, waves.rows)])

        found = list(self._in_threads(points, products))
        return np.concatenate(found) if found else np.zeros((0, width))

    def _in_threads(self, points: FloatArray, work: Callable[[Waves, slice], FloatArray]) -> Iterator[FloatArray]:
        """What the work gives for every block of rows, in their order; a thread has waves of its own."""
        frequencies, store = self.frequencies(points.shape[1]), local()

        def part(rows: slice) -> FloatArray:
            if not hasattr(store, "waves"):
                store.waves = Waves(frequencies)
            return work(store.waves, rows)

        parts = [slice(rows.start, min(rows.stop, len(points))) for rows in blocks(len(points))]
        threads = min(most_threads(), len(parts))
        if threads < 2:
            yield from map(part, parts)
            return
        with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            yield from pool.map(part, parts)

    def gram(self, points: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        total = np.zeros((2 * self.dimension, 2 * self.dimension))
        for rows in blocks(len(points)):
            psi = self.features(points[rows])
            total += psi.T @ (psi if weights is None else psi * weights[rows, None])
        return total

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        return FeatureTiles(self.features(rows).astype(dtype), self.features(columns).astype(dtype))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self.features(x), self.features(y)))


def _pieces(rows: slice, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size))
