"""What the first rows say, before the weights of a cut are used: sizes of residuals, of coefficients, and how wide a cut would be.

The first rows have weight 0 in the cut, so whatever is chosen on them was chosen before the cut begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..kernels.kernel import Kernel
from ..kernels.random_features import RandomFeatureKernel
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray

FIRST_SHARE = 0.05
BLOCK_SHARE = 0.15
SMALLEST_BLOCK = 5
CENTERS = 100
TOP_RATE = 0.99


@dataclass(frozen=True)
class Width:
    """How wide a cut with some weights would be, as far as the first rows can tell.

    Attributes
    ----------
    predicted : float
        The half-width, in units of the value.
    rate : float
        The rate l that is best there, for weights divided by their bound.
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
        Of a Q fitted to the first rows, enlarged for the coefficients it took.
    loose : array (m, m)
        P, as tight as the kernel evidence and the norm bound are likely to hold the coefficients: |d'P^{-1}d|^{1/2} is how much
        a part d of the objective can move the value.
    step_range : float
        b: no residual is larger.
    log_level : float
        log(2 / delta).
    """

    edges: tuple[int, ...]
    residuals: FloatArray
    precision: FloatArray
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

    def width(self, weights: FloatArray, bound: float, missed: FloatArray, noise: FloatArray) -> Width:
        """[log(2/delta) / l + l V / 2] / count at the best rate l < 1 / (bound b), and what is missed of the value.

        Parameters
        ----------
        weights : array (first,)
            At the first rows, so that mean w_i Z_i is near c0.
        bound : float
            Of weights.
        missed : array (m,)
            c0 - mean w_i E[Z_i | x_i], in units of the value.
        noise : array (first, m)
            w_i Z_i, in units of the value: for what the last block adds by chance there is no other to make up.
        """
        n = self.count
        variance = n * float(np.mean((weights * self.residuals) ** 2))
        rate = TOP_RATE / (bound * self.step_range)
        if variance > 0:
            rate = min(rate, math.sqrt(2 * self.log_level / variance))
        chance = (self.log_level / rate + rate * variance / 2) / n
        last = self.edges[-1] - self.edges[-2]
        covariance = np.cov(noise, rowvar=False, bias=True).reshape(self.precision.shape)
        spread = math.sqrt(last * float(np.trace(np.linalg.solve(self.precision, covariance)))) / n
        cost = math.sqrt(max(float(missed @ np.linalg.solve(self.precision, missed)), 0.0))
        return Width(chance + cost + spread, rate * bound, bound)


def block_edges(n: int, m: int) -> tuple[int, ...]:
    """Where blocks begin, and n: after the first rows, each a share of what is left, down to a few rows."""
    first = max(math.ceil(FIRST_SHARE * n), min(8 * m, n // 8), 10)
    edges = [first]
    while n - edges[-1] > SMALLEST_BLOCK:
        edges.append(edges[-1] + max(int(BLOCK_SHARE * (n - edges[-1])), SMALLEST_BLOCK))
    return tuple(edge for edge in edges if edge < n) + (n,) if first < n else ()


def kernel_columns(kernel: Kernel, points: FloatArray, centers: FloatArray) -> FloatArray:
    """K(x_i, c_j). A row of it depends on no other point: `block` picks its way of rounding by looking at all of them."""
    if isinstance(kernel, RandomFeatureKernel):
        return kernel.expand(points, kernel.project(centers, np.eye(len(centers))))
    return np.column_stack([kernel.paired(points, np.broadcast_to(center, points.shape)) for center in centers])


def some_points(points: FloatArray, count: int) -> FloatArray:
    """Up to so many of the different points, evenly spread over their sorted list."""
    different = np.unique(points, axis=0)
    return different[np.unique(np.linspace(0, len(different) - 1, min(count, len(different))).astype(int))]


def earlier_rows(
    system: BellmanSystem,
    means: FloatArray,
    psi: FloatArray,
    edges: tuple[int, ...],
    step_range: float,
    delta: float,
    norm_bound: float | None,
) -> EarlierRows:
    """Residuals and coefficients of theta = argmin |r - Zbar theta|^2 + ridge |theta|^2 over the first rows."""
    first, m, penalized, n = edges[0], system.dimension, system.penalized, edges[-1]
    Z, r = system.residuals[:first], system.rewards[:first]
    gram = means.T @ means
    unit = float(np.trace(gram)) / m
    for ridge in np.geomspace(1e-6, 1e6, 25):
        A = gram + unit * (ridge * np.diag(penalized) + 1e-9 * np.eye(m)) if unit > 0 else np.eye(m)
        theta = np.linalg.solve(A, means.T @ r)
        if norm_bound is None or np.linalg.norm(theta[penalized]) <= norm_bound:
            break
    used = float(np.trace(np.linalg.solve(A, gram)))
    residuals = np.minimum(np.abs(r - Z @ theta), step_range) * math.sqrt(first / max(first - used, first / 10))
    size = float(np.linalg.norm(theta[penalized])) if norm_bound is None else norm_bound
    sizes = np.where(penalized, size, np.abs(theta))
    sizes = np.maximum(sizes, 1e-3 * sizes.max()) if sizes.any() else np.ones(m)
    L = math.log(2 / delta)
    across = psi[:first].T @ means / first
    V = n * float(np.mean(residuals**2))
    rate = min(TOP_RATE / step_range, math.sqrt(2 * L / V) if V > 0 else math.inf)
    radius = (L / rate + rate * V / 2) / n
    return EarlierRows(edges, residuals, across.T @ across / radius**2 + np.diag(1 / sizes**2), step_range, L)
