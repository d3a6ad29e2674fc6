"""Weights of a cut that are bounded: w(x) = clip(o + Zbar(x)'y, -B, B), Zbar(x) = E[Z | x] as regressed on earlier rows.

A step of the cut can be as large as b max |w|, and all that is wanted of weights is sum_i w_i Z_i = n c0, so a small bound is
worth much: it can be far below the largest ratio of densities. y maximizes y'aim - mean_i H_B(o_i + Zbar_i'y) - y'Ty / 2, H_B
Huber's function: concave, in m dimensions, and where it is largest aim - mean_i w_i Zbar_i = Ty. So of all weights within the
bound these make mean (w - o)^2 + d'T^{-1}d least, d what they leave out of the aim. o is 0 unless weights were offered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray
from .earlier_rows import EarlierRows, Width, kernel_columns, some_points

CENTERS = 100
WINDOW = 20_000
REGRESSION_RIDGE = 1e-4
DUAL_RIDGE = 1e-6
NEWTON_STEPS = 40
STRENGTHS = (0.0, 0.01, 0.1, 1.0)
"""Of the ridge T: how much of c0 may be left to the kernel evidence."""

MULTIPLES = (10.0, 6.0, 4.0, 3.0, 2.5, 2.1, 1.8, 1.6, 1.4, 1.3, 1.2, 1.1, 1.05)
"""Bounds in units of the root mean square that weights without a bound have: none below 1 can serve. From the largest, where
Newton's method has nothing to do, downward."""

SLACK = 1.1
"""Later blocks need some room to make up for chance."""


class Regression:
    """Zbar by ridge regression of Z on [1, x, K(x, centers), phi(x)], rows taken in as they come; centers are among the first."""

    def __init__(self, system: BellmanSystem, kernel: Kernel, first: int) -> None:
        points = system.points
        centers = some_points(points[:first], min(CENTERS, max(first // 4, 5)))
        parts = [np.ones((len(points), 1)), points, kernel_columns(kernel, points, centers)]
        if system.features is not None:
            parts.append(system.features(points))
        columns = np.concatenate(parts, axis=1)
        size = np.sqrt(np.mean(columns[:first] ** 2, axis=0))
        self._columns = columns[:, size > 0] / size[size > 0]
        self._residuals = system.residuals
        self._rows = 0
        self._gram = np.zeros((self._columns.shape[1],) * 2)
        self._across = np.zeros((self._columns.shape[1], system.dimension))
        self.learn(first)

    def learn(self, rows: int) -> None:
        """Take in all rows before this one."""
        new = slice(self._rows, rows)
        self._gram += self._columns[new].T @ self._columns[new]
        self._across += self._columns[new].T @ self._residuals[new]
        self._rows = rows
        ridge = REGRESSION_RIDGE * np.trace(self._gram) / len(self._gram)
        self._coefficients = np.linalg.solve(self._gram + ridge * np.eye(len(self._gram)), self._across)

    def __call__(self, rows: slice) -> FloatArray:
        """(k, m)."""
        return np.asarray(self._columns[rows] @ self._coefficients)


@dataclass(frozen=True, eq=False)
class HuberDual:
    """max y'aim - mean_i H_B(o_i + Zbar_i'y) - y'Ty / 2."""

    means: FloatArray
    offset: FloatArray
    aim: FloatArray
    bound: float
    ridge: FloatArray

    def weights(self, y: FloatArray) -> FloatArray:
        return np.clip(self.offset + self.means @ y, -self.bound, self.bound)

    def solve(self, start: FloatArray | None = None) -> FloatArray:
        """y by Newton's method: where the bounds that are met stay the same, one step is exact."""
        means, bound, (n, m) = self.means, self.bound, self.means.shape
        gram = means.T @ means / n
        ridge = self.ridge + max(DUAL_RIDGE * float(np.trace(gram)) / m, np.finfo(np.float64).tiny) * np.eye(m)
        y = np.linalg.solve(gram + ridge, self.aim - means.T @ self.offset / n) if start is None else start
        u = self.offset + means @ y
        for _ in range(NEWTON_STEPS):
            gradient = self.aim - means.T @ np.clip(u, -bound, bound) / n - ridge @ y
            if np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(self.aim):
                break
            inside = means[np.abs(u) < bound]
            step = np.linalg.solve(inside.T @ inside / n + ridge, gradient)
            length = self._length(u, step, float((self.aim - ridge @ y) @ step), float(step @ ridge @ step))
            y, u = y + length * step, u + length * (means @ step)
        return y

    def _length(self, u: FloatArray, step: FloatArray, straight: float, bend: float) -> float:
        """1, or where the function stops rising along the step: the slope only falls."""
        along, n = self.means @ step, len(u)

        def slope(length: float) -> float:
            return straight - length * bend - float(np.clip(u + length * along, -self.bound, self.bound) @ along) / n

        if abs(slope(1.0)) <= 0.5 * slope(0.0):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
            if high - low <= 0.1 * high:
                break
        return 0.5 * (low + high)


@dataclass(frozen=True, eq=False)
class BoundedWeights:
    """Bounded weights, their bound and ridge tuned on the first rows."""

    system: BellmanSystem
    earlier: EarlierRows
    regression: Regression
    offset: FloatArray
    ridge: FloatArray
    width: Width

    def weights(self) -> FloatArray:
        """In [-1, 1], for all rows."""
        Z, bound, offset = self.system.residuals, self.width.bound, self.offset
        n, count, weights, y = len(Z), self.earlier.count, np.zeros(len(Z)), None
        left = self.system.objective * count
        for start, end in self.earlier.blocks:
            self.regression.learn(start)
            look, rows, remaining = slice(max(0, start - WINDOW), start), slice(start, end), n - start
            # The rows that remain carry all of what may be left out, so their ridge grows as they become few.
            dual = HuberDual(self.regression(look), offset[look], left / remaining, bound, self.ridge * (count / remaining))
            y = dual.solve(y)
            weights[rows] = np.clip(offset[rows] + self.regression(rows) @ y, -bound, bound)
            left = left - weights[rows] @ Z[rows]
        return weights / bound


def bounded_weights(
    system: BellmanSystem, earlier: EarlierRows, regression: Regression, offered: FloatArray | None = None
) -> BoundedWeights | None:
    """The bound and the ridge with which the first rows predict the narrowest cut; None where weights are 0.

    Offered weights are scaled so that sum_i w_i Z_i is nearest to c0 over the first rows, and y makes up for the rest.
    """
    rows = slice(max(0, earlier.first - WINDOW), earlier.first)
    Z, means, aim = system.residuals[rows], regression(rows), system.objective
    offset = np.zeros(len(system.residuals))
    if offered is not None:
        reached = offered[rows] @ Z / len(Z)
        if not reached.any():
            return None
        offset = offered * (reached @ aim / (reached @ reached))
    best: tuple[Width, FloatArray] | None = None
    for strength in STRENGTHS:
        ridge = strength * earlier.ridge
        free = HuberDual(means, offset[rows], aim, np.inf, ridge)
        y = free.solve()
        typical = float(np.sqrt(np.mean(free.weights(y) ** 2)))
        for bound in np.array(MULTIPLES) * typical if typical > 0 else ():
            dual = HuberDual(means, offset[rows], aim, float(bound), ridge)
            y = dual.solve(y)
            weights = dual.weights(y)
            # Offered weights reach c0 but for what the bound takes away: of the rest that these few rows miss, others bring more.
            missed = aim - weights @ means / len(Z)
            if offered is not None:
                missed = (offset[rows] - np.clip(offset[rows], -bound, bound)) @ Z / len(Z)
            width = earlier.width(weights, SLACK * float(bound), weights[:, None] * Z, missed)
            if best is None or width.predicted < best[0].predicted:
                best = width, ridge
    return None if best is None else BoundedWeights(system, earlier, regression, offset, best[1], best[0])
