"""Weights of a cut that a kernel fits: w(x) = psi(x)'Psi'Z y / rows with y = (Z'Psi Psi'Z / rows^2 + ridge)^{-1} aim.

psi are coordinates of the kernel at a few of the first points. Then sum_i w(x_i) Z_i / rows is about `aim`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel, block
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray
from .earlier_rows import EarlierRows, Width, kernel_columns, some_points

CENTERS = 150
RIDGE = 1e-3


class Fit:
    def __init__(self, system: BellmanSystem, kernel: Kernel, first: int) -> None:
        centers = some_points(system.points[:first], CENTERS)
        values, vectors = np.linalg.eigh(block(kernel, centers, centers))
        kept = values > 1e-9 * values[-1]
        self.psi = kernel_columns(kernel, system.points, centers) @ (vectors[:, kept] / np.sqrt(values[kept]))
        self.system = system
        self.rows = 0
        self.across = np.zeros((self.psi.shape[1], system.dimension))

    def learn(self, rows: int, aim: FloatArray) -> FloatArray:
        new = slice(self.rows, rows)
        self.across += self.psi[new].T @ self.system.residuals[new]
        self.rows = rows
        across = self.across / rows
        A = across.T @ across
        unit = np.trace(A) / len(A)
        if unit == 0:
            return np.zeros(len(across))
        penalty = RIDGE * unit * self.system.penalized + 1e-12 * np.trace(A)
        return np.asarray(across @ np.linalg.solve(A + np.diag(penalty), aim))


@dataclass(frozen=True, eq=False)
class FittedWeights:
    system: BellmanSystem
    earlier: EarlierRows
    fit: Fit
    width: Width

    def weights(self) -> FloatArray:
        Z, bound, n = self.system.residuals, self.width.bound, len(self.system.residuals)
        weights, left = np.zeros(n), self.system.objective * self.earlier.count
        for start, end in self.earlier.blocks:
            coefficients = self.fit.learn(start, left / (n - start))
            rows = slice(start, end)
            weights[rows] = np.clip(self.fit.psi[rows] @ coefficients, -bound, bound)
            left = left - weights[rows] @ Z[rows]
        return weights / bound


def fitted_weights(system: BellmanSystem, earlier: EarlierRows, fit: Fit) -> FittedWeights | None:
    weights = fit.psi[: earlier.first] @ fit.learn(earlier.first, system.objective)
    bound = float(np.abs(weights).max())
    if bound == 0:
        return None
    Z = system.residuals[: earlier.first]
    width = earlier.width(weights, bound, system.objective - weights @ Z / earlier.first, weights[:, None] * Z)
    return FittedWeights(system, earlier, fit, width)
