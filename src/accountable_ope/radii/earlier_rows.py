"""What the first rows tell of a cut before it begins: how large residuals are, how loose coefficients stay, how wide it would be.

The first rows have weight 0 in the cut, so whatever is chosen on them was chosen before the cut begins. Nothing here is part of a
guarantee: any choice is valid, and these numbers only make a good one likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from ..kernels.kernel import Gaussian, Kernel
from ..kernels.random_features import RandomFeatureKernel
from ..statistics.bellman import BellmanSystem
from ..threads import most_threads
from ..validation import BoolArray, FloatArray

FIRST_SHARE = 0.05
FIRST_MOST = 20_000
"""More first rows than this are not needed, and weights of a log that is read in parts keep them in memory."""

FEWEST = 10
"""So many first rows, and so many others, are needed."""

BLOCK_SHARE = 0.15
SMALLEST_BLOCK = 5
TOP_RATE = 0.97
"""Rates stay below 1 / (b max |w|), where the theorems end."""

MANY = 500_000
"""From so many entries of a kernel on, threads share the work."""

AT_ONCE = 1024
"""Rows that a thread takes at a time: what is made of them stays in the cache."""

FAR = 1e6
"""Squares of distances that are not beyond this cancel to ten digits."""

FOLDS = 5
CAUTION = 2.0
"""The kernel evidence is likely to be this many times wider than at the residuals of the fit: its set holds other Q too."""


@dataclass(frozen=True)
class Width:
    """How wide a cut with some weights would be, as far as the first rows can tell.

    Attributes
    ----------
    predicted : float
        The half-width, in units of the value.
    rate : float
        The rate that is best at the fitted residuals, for weights divided by their bound.
    bound : float
        Of the weights.
    """

    predicted: float
    rate: float
    bound: float


@dataclass(frozen=True, eq=False)
class EarlierRows:
    """The first rows, and what was known before the data.

    Attributes
    ----------
    edges : tuple of int
        Where blocks of rows begin, the first of them after the first rows, and n.
    residuals : array (first,)
        Sizes of residuals of Q fitted to other first rows.
    precision, root : array (m, m)
        P and a root S of its inverse, SS' = P^{-1}: as far as kernel evidence and norm bound are likely to leave the coefficients
        open, a part d of the objective can move the value by (d'P^{-1}d)^{1/2}.
    step_range : float
        b: no residual is larger.
    log_level : float
        L = log(2 / delta).
    """

    edges: tuple[int, ...]
    residuals: FloatArray
    precision: FloatArray
    root: FloatArray
    step_range: float
    log_level: float

    @property
    def first(self) -> int:
        return self.edges[0]

    @property
    def count(self) -> int:
        """How many rows have a weight."""
        return self.edges[-1] - self.edges[0]

    @property
    def blocks(self) -> Iterator[tuple[int, int]]:
        return pairwise(self.edges)

    @property
    def ridge(self) -> FloatArray:
        """T, so that mean w^2 + d'T^{-1}d is in proportion to the squares of what chance and a part d of c0 left out cost."""
        return 2 * self.log_level * float(np.mean(self.residuals**2)) / self.count * self.precision

    def width(self, weights: FloatArray, bound: float, pushes: FloatArray, missed: FloatArray) -> Width:
        """[L / l + l V / 2] / count at the best l < 1 / (b bound), plus what is left out of c0, by plan and by the last block.

        V = count (mean (w e)^2 + the largest mean (w Z d)^2 over coefficients d that may be left open): weights that are large
        where open coefficients make residuals large are worth less than residuals at one Q say.

        Parameters
        ----------
        weights : array (k,)
            At the last k of the first rows.
        bound : float
            Of weights.
        pushes : array (k, m)
            w_i Z_i.
        missed : array (m,)
            The part of c0 that weights leave out.
        """
        n = self.count
        scaled = pushes @ self.root
        own = float(np.mean((weights * self.residuals[-len(weights) :]) ** 2))
        open_part = float(np.linalg.eigvalsh(scaled.T @ scaled / len(scaled))[-1])
        chance, _ = self._at_best_rate(n * (own + open_part), bound)
        _, rate = self._at_best_rate(n * own, bound)
        last = self.edges[-1] - self.edges[-2]
        by_chance = math.sqrt(last * float(scaled.var(axis=0).sum())) / n
        return Width(chance + by_chance + float(np.linalg.norm(missed @ self.root)), rate * bound, bound)

    def _at_best_rate(self, variance: float, bound: float) -> tuple[float, float]:
        rate = best_rate(variance, bound * self.step_range, self.log_level)
        return (self.log_level / rate + rate * variance / 2) / self.count, rate


def best_rate(variance: float, step: float, log_level: float) -> float:
    """The l < 1 / step at which L / l + l V / 2 is least."""
    top = TOP_RATE / step
    return top if variance <= 2 * log_level / top**2 else math.sqrt(2 * log_level / variance)


def block_edges(n: int, m: int) -> tuple[int, ...]:
    """Where blocks begin, and n: after the first rows, each a share of what is left, down to a few rows; () if n is too small."""
    first = max(min(math.ceil(FIRST_SHARE * n), FIRST_MOST), min(8 * m, n // 8), FEWEST)
    if n - first < FEWEST:
        return ()
    edges = [first]
    while n - edges[-1] > SMALLEST_BLOCK:
        edges.append(edges[-1] + max(int(BLOCK_SHARE * (n - edges[-1])), SMALLEST_BLOCK))
    return (*(edge for edge in edges if edge < n), n)


def earlier_rows(
    system: BellmanSystem, means: FloatArray, psi: FloatArray, edges: tuple[int, ...], known: tuple[float, float, float | None]
) -> EarlierRows:
    """What the first rows tell.

    Parameters
    ----------
    system : BellmanSystem
    means : array (first, m)
        E[Z | x] at the first rows.
    psi : array (first, k)
        Coordinates of the kernel there, K(x, y) = psi(x)'psi(y).
    edges : tuple of int
        Where blocks begin.
    known : (float, float, float or None)
        b, delta and the norm bound.
    """
    step_range, delta, norm_bound = known
    first, n, penalized = edges[0], edges[-1], system.penalized
    Z, r = system.residuals[:first], system.rewards[:first]
    theta = _coefficients(means, r, penalized, norm_bound)
    residuals = np.empty(first)
    for fold in np.array_split(np.arange(first), FOLDS):
        others = np.delete(np.arange(first), fold)
        residuals[fold] = r[fold] - Z[fold] @ _coefficients(means[others], r[others], penalized, norm_bound)
    residuals = np.minimum(np.abs(residuals), step_range)
    sizes = np.where(penalized, np.linalg.norm(theta[penalized]) if norm_bound is None else norm_bound, np.abs(theta))
    sizes = np.maximum(sizes, 1e-3 * sizes.max()) if sizes.any() else np.ones(len(theta))
    log_level, variance = math.log(2 / delta), n * float(np.mean(residuals**2))
    rate = best_rate(variance, step_range, log_level)
    radius = CAUTION * (log_level / rate + rate * variance / 2) / n
    across = psi.T @ means / first
    precision = across.T @ across / radius**2 + np.diag(1 / sizes**2)
    values, vectors = np.linalg.eigh(precision)
    root = vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    return EarlierRows(edges, residuals, precision, root, step_range, log_level)


def kernel_columns(kernel: Kernel, points: FloatArray, centers: FloatArray) -> FloatArray:
    """K(x_i, c_j), alike whatever numbers the other points are: `block` chooses its way by looking at all of them."""
    if isinstance(kernel, RandomFeatureKernel):
        return kernel.expand(points, kernel.project(centers, np.eye(len(centers))))
    found = np.empty((len(points), len(centers)))
    expanded = _GaussianColumns.of(kernel, centers) if isinstance(kernel, Gaussian) else None

    def fill(rows: slice) -> None:
        if expanded is not None:
            expanded.fill(points[rows], found[rows])
            return
        for column, center in enumerate(centers):
            found[rows, column] = kernel.paired(points[rows], np.broadcast_to(center, points[rows].shape))

    parts = [slice(start, start + AT_ONCE) for start in range(0, len(points), AT_ONCE)]
    threads = min(most_threads(), len(parts))
    if found.size < MANY or threads == 1:
        for rows in parts:
            fill(rows)
    else:
        with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, parts))
    return found


@dataclass(frozen=True, eq=False)
class _GaussianColumns:
    """exp(2 z'c - |z|^2 - |c|^2), z and c in units of the bandwidth from the middle of the centers: one product for all."""

    middle: FloatArray
    bandwidth: FloatArray | float
    scaled: FloatArray
    lengths: FloatArray

    @classmethod
    def of(cls, kernel: Gaussian, centers: FloatArray) -> _GaussianColumns | None:
        """None where centers are so many bandwidths apart that too much would cancel."""
        middle = centers.mean(axis=0)
        scaled = (centers - middle) / kernel.bandwidth
        lengths = np.einsum("ij,ij->i", scaled, scaled)
        return cls(middle, kernel.bandwidth, scaled, lengths) if lengths.max() < FAR else None

    def fill(self, points: FloatArray, out: FloatArray) -> None:
        """At these points."""
        z = (points - self.middle) / self.bandwidth
        np.matmul(z, 2 * self.scaled.T, out=out)
        out -= np.einsum("ij,ij->i", z, z)[:, None]
        out -= self.lengths
        np.exp(np.minimum(out, 0.0, out=out), out=out)


def some_points(points: FloatArray, count: int) -> FloatArray:
    """Up to so many of the different points, evenly spread over their sorted list."""
    different = np.unique(points, axis=0)
    chosen: FloatArray = different[np.unique(np.linspace(0, len(different) - 1, min(count, len(different))).astype(int))]
    return chosen


def _coefficients(means: FloatArray, rewards: FloatArray, penalized: BoolArray, norm_bound: float | None) -> FloatArray:
    """theta = argmin |r - Zbar theta|^2 + ridge |theta|^2 with the least ridge that keeps it within the norm bound."""
    m = means.shape[1]
    gram, across = means.T @ means, means.T @ rewards
    unit = float(np.trace(gram)) / m
    theta = np.zeros(m)
    for ridge in np.geomspace(1e-6, 1e6, 25) if unit > 0 else ():
        theta = np.linalg.solve(gram + unit * (ridge * np.diag(penalized) + 1e-9 * np.eye(m)), across)
        if norm_bound is None or np.linalg.norm(theta[penalized]) <= norm_bound:
            break
    return theta
