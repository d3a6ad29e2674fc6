"""Weights of a cut that a kernel fits: w(x) = psi(x)'Psi'Z y / rows with y = (Z'Psi Psi'Z / rows^2 + ridge)^{-1} aim.

psi are coordinates of the kernel at a few of the first points. Then sum_i w(x_i) Z_i / rows is about `aim`, and w is smooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel, block
from ..statistics.bellman import BellmanSystem
from ..validation import BoolArray, FloatArray
from .earlier_rows import EarlierRows, Width, kernel_columns, some_points

CENTERS = 150
RIDGE = 1e-3
REACH = 1e-12
SLACK = 1.2
"""Later blocks need some room to make up for chance."""


class KernelFit:
    """Psi'Z over the rows before some row, taken in as they come; the centers are among the first rows."""

    def __init__(self, system: BellmanSystem, kernel: Kernel, first: int) -> None:
        centers = some_points(system.points[:first], CENTERS)
        values, vectors = np.linalg.eigh(block(kernel, centers, centers))
        kept = values > 1e-9 * values[-1]
        self.psi = kernel_columns(kernel, system.points, centers) @ (vectors[:, kept] / np.sqrt(values[kept]))
        self._system = system
        self._rows = 0
        self._across = np.zeros((self.psi.shape[1], system.dimension))

    def coefficients(self, rows: int, aim: FloatArray) -> FloatArray:
        """Of w in the coordinates psi, from the rows before this one."""
        new = slice(self._rows, rows)
        self._across += self.psi[new].T @ self._system.residuals[new]
        self._rows = rows
        return _coefficients(self._across / rows, aim, self._system.penalized)

    def agreed(self, rows: int, aim: FloatArray) -> float:
        """The largest weight that both halves of the rows before this one ask for at one of them: the rest may be chance."""
        halves = (slice(0, rows // 2), slice(rows // 2, rows))
        psi, Z, penalized = self.psi[:rows], self._system.residuals, self._system.penalized
        one, other = (psi @ _coefficients(psi[half].T @ Z[half] / len(psi[half]), aim, penalized) for half in halves)
        return float(np.where(one * other > 0, np.minimum(np.abs(one), np.abs(other)), 0.0).max())

    def beyond(self, aim: FloatArray) -> FloatArray:
        """The part of the aim that the rows so far do not reach at all. What the ridge leaves out, later blocks make up for."""
        values, vectors = np.linalg.eigh(self._across.T @ self._across)
        unreached = vectors[:, values <= REACH * values[-1]]
        return np.asarray(unreached @ (unreached.T @ aim))


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """Weights that a kernel fits, bounded by what the first rows agree on."""

    system: BellmanSystem
    earlier: EarlierRows
    fit: KernelFit
    width: Width

    def weights(self) -> FloatArray:
        """In [-1, 1], for all rows."""
        Z, bound, n = self.system.residuals, self.width.bound, len(self.system.residuals)
        weights, left = np.zeros(n), self.system.objective * self.earlier.count
        for start, end in self.earlier.blocks:
            coefficients, rows = self.fit.coefficients(start, left / (n - start)), slice(start, end)
            weights[rows] = np.clip(self.fit.psi[rows] @ coefficients, -bound, bound)
            left = left - weights[rows] @ Z[rows]
        return weights / bound


def fitted_weights(system: BellmanSystem, earlier: EarlierRows, fit: KernelFit) -> FittedWeights | None:
    """None where they are 0, or where the halves of the first rows agree on none."""
    first, aim = slice(0, earlier.first), system.objective
    bound = SLACK * fit.agreed(earlier.first, aim)
    if bound == 0:
        return None
    weights = np.clip(fit.psi[first] @ fit.coefficients(earlier.first, aim), -bound, bound)
    width = earlier.width(weights, bound, weights[:, None] * system.residuals[first], fit.beyond(aim))
    return FittedWeights(system, earlier, fit, width)


def _coefficients(across: FloatArray, aim: FloatArray, penalized: BoolArray) -> FloatArray:
    """across (across'across + ridge)^{-1} aim, across = Psi'Z / rows."""
    A = across.T @ across
    size = float(np.trace(A))
    if size == 0:
        return np.zeros(len(across))
    ridge = RIDGE * size / len(A) * penalized + 1e-12 * size
    return np.asarray(across @ np.linalg.solve(A + np.diag(ridge), aim))
