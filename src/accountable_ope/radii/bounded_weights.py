"""Weights of a cut that are bounded: w(x) = clip(o(x) + Zbar(x)'y, -B, B), Zbar(x) = E[Z | x] as regressed on earlier rows.

The range of a step of the cut is b max |w|, and only sum_i w_i Z_i = n c0 is wanted of the weights, so a small bound is worth much.
y maximizes y'aim - mean_i H_B(o_i + Zbar_i'y), H_B Huber's function: concave, in m dimensions, and where it is largest
mean_i w_i Zbar_i = aim. Of all weights within the bound these are the nearest to o, which is 0 unless weights were offered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray
from .earlier_rows import CENTERS, EarlierRows, Width, kernel_columns, some_points

WINDOW = 20_000
RIDGE = 1e-4
MULTIPLES = (1.05, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.1, 2.5, 3.0, 4.0, 6.0, 10.0)
SLACK = 1.1
DUAL_RIDGE = 1e-6
NEWTON_STEPS = 40
STRENGTHS = (0.0, 0.01, 0.1, 1.0)
VERBOSE = False


class Regression:
    """E[Z | x] by ridge regression on [1, x, phi(x), K(x, centers)], row by row as they come."""

    def __init__(self, system: BellmanSystem, kernel: Kernel, first: int) -> None:
        points = system.points
        centers = some_points(points[:first], min(CENTERS, max(first // 4, 5)))
        parts = [np.ones((len(points), 1)), points, kernel_columns(kernel, points, centers)]
        if system.features is not None:
            parts.append(system.features(points))
        columns = np.concatenate(parts, axis=1)
        size = np.sqrt(np.mean(columns[:first] ** 2, axis=0))
        self.columns = columns[:, size > 0] / size[size > 0]
        self.residuals = system.residuals
        self.rows = 0
        self.gram = np.zeros((self.columns.shape[1],) * 2)
        self.across = np.zeros((self.columns.shape[1], system.dimension))
        self.learn(first)

    def learn(self, rows: int) -> None:
        """Take in all rows before this one."""
        new = slice(self.rows, rows)
        self.gram += self.columns[new].T @ self.columns[new]
        self.across += self.columns[new].T @ self.residuals[new]
        self.rows = rows
        ridge = RIDGE * np.trace(self.gram) / len(self.gram)
        self.coefficients = np.linalg.solve(self.gram + ridge * np.eye(len(self.gram)), self.across)

    def __call__(self, rows: slice) -> FloatArray:
        return np.asarray(self.columns[rows] @ self.coefficients)


def huber_dual(
    means: FloatArray, offset: FloatArray, aim: FloatArray, bound: float, ridge: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """y of max y'aim - mean H_B(o + Zbar y) - y'ridge y / 2, by Newton's method."""
    n, m = means.shape
    gram = means.T @ means / n
    ridge = ridge + (DUAL_RIDGE * np.trace(gram) / m + 1e-300) * np.eye(m)
    y = np.linalg.solve(gram + ridge, aim - means.T @ offset / n) if start is None else start
    u = offset + means @ y
    gradient = aim - means.T @ np.clip(u, -bound, bound) / n - ridge @ y
    for _ in range(NEWTON_STEPS):
        if np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(aim):
            break
        inside = means[np.abs(u) < bound]
        step = np.linalg.solve(inside.T @ inside / n + ridge, gradient)
        along = means @ step
        slope, flat = float(gradient @ step), float(step @ ridge @ step)
        up, fixed = float(aim @ step), float(y @ ridge @ step)

        def rising(length: float) -> float:
            return up - float(np.clip(u + length * along, -bound, bound) @ along) / n - fixed - length * flat

        length = 1.0
        if abs(rising(1.0)) > 0.5 * slope:  # too far: where bounds are met, the function bends more than at the start
            low, high = 0.0, 1.0
            while high - low > 0.1 * high:
                length = 0.5 * (low + high)
                low, high = (length, high) if rising(length) > 0 else (low, length)
        y, u = y + length * step, u + length * along
        gradient = aim - means.T @ np.clip(u, -bound, bound) / n - ridge @ y
    return y


@dataclass(frozen=True, eq=False)
class BoundedWeights:
    """Bounded weights, tuned on the first rows."""

    system: BellmanSystem
    earlier: EarlierRows
    regression: Regression
    offset: FloatArray
    ridge: FloatArray
    width: Width

    def weights(self) -> FloatArray:
        """In [-1, 1], for all rows."""
        Z, bound, regression = self.system.residuals, self.width.bound, self.regression
        n, weights, y = len(Z), np.zeros(len(Z)), None
        left = self.system.objective * self.earlier.count
        for start, end in self.earlier.blocks:
            regression.learn(start)
            look = slice(max(0, start - WINDOW), start)
            share = (n - start) / self.earlier.count
            y = huber_dual(regression(look), self.offset[look], left / (n - start), bound, self.ridge / share, y)
            block = slice(start, end)
            weights[block] = np.clip(self.offset[block] + regression(block) @ y, -bound, bound)
            left = left - weights[block] @ Z[block]
        return weights / bound


def bounded_weights(
    system: BellmanSystem, earlier: EarlierRows, regression: Regression, offered: FloatArray | None = None
) -> BoundedWeights | None:
    """The bound that makes the cut narrowest, as far as the first rows can tell."""
    rows = slice(max(0, earlier.first - WINDOW), earlier.first)
    Z, means, aim = system.residuals[rows], regression(rows), system.objective
    offset = np.zeros(len(system.residuals))
    if offered is not None:
        total = offered[rows] @ Z / len(Z)
        if not total.any():
            return None
        offset = offered * (total @ aim / (total @ total))
    e = earlier.residuals[rows]
    unit = 2 * earlier.log_level * float(np.mean(e**2)) / earlier.count * earlier.precision
    best: tuple[Width, FloatArray] | None = None
    for strength in STRENGTHS:
        ridge = strength * unit
        y = huber_dual(means, offset[rows], aim, np.inf, ridge)
        typical = float(np.sqrt(np.mean((offset[rows] + means @ y) ** 2)))
        if typical == 0:
            continue
        for multiple in reversed(MULTIPLES):
            y = huber_dual(means, offset[rows], aim, multiple * typical, ridge, y)
            weights = np.clip(offset[rows] + means @ y, -multiple * typical, multiple * typical)
            width = earlier.width(weights, SLACK * multiple * typical, aim - weights @ means / len(Z), weights[:, None] * Z)
            if VERBOSE:
                print(strength, multiple, width)
            if best is None or width.predicted < best[0].predicted:
                best = width, ridge
    return None if best is None else BoundedWeights(system, earlier, regression, offset, best[1], best[0])
