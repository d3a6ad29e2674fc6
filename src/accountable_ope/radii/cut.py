"""One more martingale: a weighted sum of residuals whose weights, fitted on earlier rows, point at the value itself.

For weights w_i that depend on the past and x_i alone, sum_i w_i eps_i(Q) is a martingale at the true Q, so Theorem B bounds it as
it bounds ||S_n||: it is ||S_n|| for the kernel w(x) w(y). If sum_i w_i Z_i / n is near c0, the sum is near the difference between
the value of Q and an estimate of it, and its bound is a cut straight across the feasible set.

The first rows fit w; the others are cut into blocks, and every block gets the w fitted on all rows before it, aimed at what the
blocks before have left of c0. Everything is predictable: no row decides its own weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..kernels.kernel import Kernel, block
from ..programs.envelope import Envelope
from ..programs.evidence import Evidence
from ..programs.quadratic import Quadratic
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray, IntArray, frozen
from .sums import CutSums

FIRST_SHARE = 0.1
BLOCKS = 10
CENTERS = 150
RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class Cut:
    """Weights in [-1, 1], one per row, 0 for the `earlier` rows that fitted the first of them."""

    weights: FloatArray
    earlier: int

    @property
    def count(self) -> int:
        return len(self.weights) - self.earlier

    def sums(self, system: BellmanSystem) -> CutSums:
        """All that the evidence needs of the rows."""
        n, w = self.count, self.weights
        columns = np.column_stack([system.residuals, system.target])
        weighted = columns * w[:, None]
        squares = weighted.T @ weighted / n**2
        return CutSums(w @ columns / n, squares, n, float(np.abs(w).sum()), float(np.linalg.norm(w)))


def cut_evidence(sums: CutSums, cut: Cut, envelope: Envelope, gap: float) -> Evidence:
    """(sum_i w_i eps_i)^2 and sum_i w_i^2 eps_i^2 as quadratics of the coefficients; residuals may be off by `gap`."""
    n = sums.count
    return Evidence(
        name="cut",
        squared=_quadratic(np.outer(sums.total, sums.total)),
        variance=_quadratic(sums.squares),
        count=n,
        reach=1.0,
        mass=sums.length**2,
        envelope=envelope,
        scale=np.abs(cut.weights),
        gap=(gap * sums.absolute / n, gap * sums.length / n),
    )


def fit_cut(system: BellmanSystem, kernel: Kernel, episodes: IntArray | None) -> Cut | None:
    """The weights, or None where there are too few rows to fit any."""
    n, m = len(system.target), system.dimension
    edges = _edges(n, m, episodes)
    if len(edges) < 2:
        return None
    first = edges[0]
    weights, left = np.zeros(n), system.objective.copy()
    largest = 0.0
    for start, end in pairwise(edges):
        share = (n - start) / (n - first)
        fitted = _fit(system, kernel, start, left / share)
        if start == first:
            largest = float(np.abs(fitted(system.points[:start])).max())
            if largest == 0:
                return None
        weights[start:end] = np.clip(fitted(system.points[start:end]), -largest, largest)
        left = left - weights[start:end] @ system.residuals[start:end] / (n - first)
    return Cut(frozen(weights / largest), first)


def _edges(n: int, m: int, episodes: IntArray | None) -> list[int]:
    """Where blocks begin, and n: at the beginning of an episode where episodes are known."""
    first = max(int(FIRST_SHARE * n), min(5 * m, n // 2), 2)
    wanted = np.linspace(first, n, BLOCKS + 1).astype(int)
    if episodes is not None:
        begins = np.append(np.flatnonzero(np.diff(episodes, prepend=episodes[0] - 1)), n)
        wanted = begins[np.minimum(np.searchsorted(begins, wanted), len(begins) - 1)]
    edges = sorted(set(wanted.tolist()))
    return edges if edges and edges[0] < n else []


def _fit(system: BellmanSystem, kernel: Kernel, rows: int, aim: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """w(x) = psi(x)'Psi'Z y / rows with y = (Z'Psi Psi'Z / rows^2 + ridge)^{-1} aim: then sum_i w(x_i) Z_i / rows is about `aim`.

    psi are coordinates of the kernel at a few of the earlier points.
    """
    points, Z = system.points[:rows], system.residuals[:rows]
    different = np.unique(points, axis=0)
    centers = different[np.linspace(0, len(different) - 1, min(CENTERS, len(different))).astype(int)]
    values, vectors = np.linalg.eigh(block(kernel, centers, centers))
    kept = values > 1e-9 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    psi = block(kernel, points, centers) @ basis
    across = psi.T @ Z / rows
    A = across.T @ across
    ridge = RIDGE * np.trace(A) / len(A)
    y = np.linalg.solve(A + ridge * np.diag(system.penalized.astype(float)) + 1e-12 * np.trace(A) * np.eye(len(A)), aim)
    coefficients = basis @ (across @ y)
    return lambda x: np.asarray(block(kernel, x, centers) @ coefficients)


def _quadratic(gram: FloatArray) -> Quadratic:
    m = len(gram) - 1
    return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]))
