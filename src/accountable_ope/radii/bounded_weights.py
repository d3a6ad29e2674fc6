"""Weights of a cut that are bounded: w(x) = clip(o + Zbar(x)'y, -B, B), Zbar(x) = E[Z | x] as regressed on earlier rows.

A step of the cut can be as large as b max |w|, and all that is wanted of weights is sum_i w_i Z_i = n c0, so a small bound is
worth much: it can be far below the largest ratio of densities. y maximizes y'aim - mean_i H_B(o_i + Zbar_i'y) - y'Ty / 2, H_B
Huber's function: concave, in m dimensions, and where it is largest aim - mean_i w_i Zbar_i = Ty. So of all weights within the
bound these make mean (w - o)^2 + d'T^{-1}d least, d what they leave out of the aim. o is 0 unless weights were offered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..io.shelf import Shelf
from ..kernels.kernel import Kernel
from ..kernels.random_features import RandomFeatureKernel
from ..statistics.bellman import BellmanSystem
from ..validation import BoolArray, FloatArray
from .earlier_rows import EarlierRows, Width, kernel_columns, some_points

CENTERS = 100
WINDOW = 20_000
"""So many rows before a block fix its weights."""

TUNING = 5_000
"""So many of the first rows, the last of them, choose bound and ridge, which takes fifty programs."""

ENOUGH, EVERY = 2**17, 8
"""The regression learns from so many rows, and from one in so many of the others: it gains little by more."""

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
        self._kernel, self._features = kernel, system.features
        self._centers = some_points(system.points[:first], min(CENTERS, max(first // 4, 5)))
        raw = self._raw(system.points[:first])
        size = np.sqrt(np.mean(raw**2, axis=0))
        self._kept, self._size = size > 0, size[size > 0]
        self.first = raw[:, self._kept] / self._size
        self._met = 0
        self._gram = np.zeros((self.first.shape[1],) * 2)
        self._across = np.zeros((self.first.shape[1], system.dimension))
        self.learn(self.first, system.residuals[:first])
        self.fit()

    def _raw(self, points: FloatArray, features: FloatArray | None = None) -> FloatArray:
        parts = [np.ones((len(points), 1)), points, self._of_kernel(points)]
        if self._features is not None:
            parts.append(self._features(points) if features is None else features)
        return np.concatenate(parts, axis=1)

    def _of_kernel(self, points: FloatArray) -> FloatArray:
        """K(x, centers), or as many of its own features where the kernel is made of random ones: these cost less."""
        if isinstance(self._kernel, RandomFeatureKernel):
            return replace(self._kernel, dimension=min(self._kernel.dimension, max(len(self._centers) // 2, 1))).features(points)
        return kernel_columns(self._kernel, points, self._centers)

    def columns(self, points: FloatArray, features: FloatArray | None = None) -> FloatArray:
        """What Z is regressed on; features: phi at the points, where they are known already."""
        raw = self._raw(points, features)
        if not self._kept.all():
            raw = raw[:, self._kept]
        raw /= self._size
        return raw

    def learn(self, columns: FloatArray, residuals: FloatArray) -> None:
        """Take in the next rows: all of the first ones, then as many as a log that changes needs."""
        at = np.arange(self._met, self._met + len(columns))
        self._met += len(columns)
        chosen = (at < ENOUGH) | (at % EVERY == 0)
        if not chosen.all():
            columns, residuals = columns[chosen], residuals[chosen]
        self._gram += columns.T @ columns
        self._across += columns.T @ residuals

    def fit(self) -> None:
        """The coefficients from all rows so far."""
        ridge = REGRESSION_RIDGE * np.trace(self._gram) / len(self._gram)
        self._coefficients = np.linalg.solve(self._gram + ridge * np.eye(len(self._gram)), self._across)

    def means(self, columns: FloatArray) -> FloatArray:
        """Zbar (k, m) at rows with these columns."""
        return np.asarray(columns @ self._coefficients)

    def products(self, columns: FloatArray, y: FloatArray) -> FloatArray:
        """Zbar y at rows with these columns."""
        return np.asarray(columns @ (self._coefficients @ y))

    def keep(self, shelf: Shelf) -> None:
        """What the rows taught; the rest is made from the first rows."""
        shelf.put("gram", self._gram)
        shelf.put("across", self._across)
        shelf.put("coefficients", self._coefficients)
        shelf.put("met", self._met)

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept."""
        self._met = shelf.count("met")
        self._gram = shelf.floats("gram", *self._gram.shape)
        self._across = shelf.floats("across", *self._across.shape)
        self._coefficients = shelf.floats("coefficients", *self._coefficients.shape)


class _InnerGram:
    """The Gram matrix of the rows inside of the bounds; from one step to the next few rows change sides."""

    def __init__(self, means: FloatArray) -> None:
        self._means = means
        self._inside: BoolArray = np.zeros(len(means), dtype=bool)
        self._gram = np.zeros((means.shape[1],) * 2)

    def at(self, inside: BoolArray) -> FloatArray:
        """Of these rows."""
        came, left = self._means[inside & ~self._inside], self._means[self._inside & ~inside]
        if len(came) + len(left) < len(self._means) // 4:
            self._gram = self._gram + came.T @ came - left.T @ left
        else:
            chosen = self._means[inside]
            self._gram = chosen.T @ chosen
        self._inside = inside
        return self._gram


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
        trace = float(np.einsum("ij,ij->", means, means)) / n
        ridge = self.ridge + max(DUAL_RIDGE * trace / m, np.finfo(np.float64).tiny) * np.eye(m)
        inner = _InnerGram(means)
        if start is None:
            everything = inner.at(np.ones(n, dtype=bool)) / n
            y = np.linalg.solve(everything + ridge, self.aim - means.T @ self.offset / n)
        else:
            y = start
        u = self.offset + means @ y
        for _ in range(NEWTON_STEPS):
            gradient = self.aim - means.T @ np.clip(u, -bound, bound) / n - ridge @ y
            if np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(self.aim):
                break
            step = np.linalg.solve(inner.at(np.abs(u) < bound) / n + ridge, gradient)
            along = means @ step
            length = self._length(u, along, float((self.aim - ridge @ y) @ step), float(step @ ridge @ step))
            y, u = y + length * step, u + length * along
        return y

    def _length(self, u: FloatArray, along: FloatArray, straight: float, bend: float) -> float:
        """1, or where the function stops rising along the step: the slope only falls."""
        n = len(u)

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


class BoundedWeights:
    """Bounded weights, their bound and ridge tuned on the first rows; see `Weigher`.

    scale: what makes weights of those that are offered; None where none are.
    """

    def __init__(
        self,
        earlier: EarlierRows,
        regression: Regression,
        width: Width,
        ridge: FloatArray,
        offset: FloatArray,
        scale: float | None,
    ) -> None:
        self.width = width
        self._regression, self._ridge, self._scale, self._count = regression, ridge, scale, earlier.count
        self._y: FloatArray | None = None
        self._window = [(regression.first, offset)]

    def aim(self, share: FloatArray, remaining: int) -> None:
        """y for the next block, from the rows so far."""
        self._regression.fit()
        columns, offset = (np.concatenate(each)[-WINDOW:] for each in zip(*self._window, strict=True))
        self._window = [(columns, offset)]
        # The rows that remain carry all of what may be left out, so their ridge grows as they become few.
        ridge = self._ridge * (self._count / remaining)
        self._y = HuberDual(self._regression.means(columns), offset, share, self.width.bound, ridge).solve(self._y)

    def take(
        self, points: FloatArray, residuals: FloatArray, offered: FloatArray | None, features: FloatArray | None
    ) -> FloatArray:
        """Weights of the next rows, which are then learned from."""
        assert self._y is not None
        columns, bound = self._regression.columns(points, features), self.width.bound
        offset = np.zeros(len(points)) if offered is None or self._scale is None else self._scale * offered
        weights = np.clip(offset + self._regression.products(columns, self._y), -bound, bound)
        self._regression.learn(columns, residuals)
        self._window.append((columns, offset))
        if sum(len(each) for each, _ in self._window[1:]) >= WINDOW:
            self._window.pop(0)
        return np.asarray(weights)

    def keep(self, shelf: Shelf) -> None:
        """What the rows taught."""
        self._regression.keep(shelf.within("regression"))
        if self._y is not None:
            shelf.put("y", self._y)
        shelf.put("pieces", len(self._window))
        for index, (columns, offset) in enumerate(self._window):
            shelf.put(f"columns_{index}", columns)
            shelf.put(f"offset_{index}", offset)

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept, in the same pieces: when one is forgotten depends on their lengths."""
        self._regression.resume(shelf.within("regression"))
        width = self._window[0][0].shape[1]
        self._y = shelf.floats("y", len(self._ridge)) if "y" in shelf else None
        window = []
        for index in range(shelf.count("pieces")):
            offset = shelf.floats(f"offset_{index}", None)
            window.append((shelf.floats(f"columns_{index}", len(offset), width), offset))
        self._window = window


def bounded_weights(
    system: BellmanSystem, earlier: EarlierRows, regression: Regression, offered: FloatArray | None = None
) -> BoundedWeights | None:
    """The bound and the ridge with which the first rows predict the narrowest cut; None where weights are 0.

    Offered weights are scaled so that sum_i w_i Z_i is nearest to c0 over the first rows, and y makes up for the rest.
    """
    rows = slice(max(0, earlier.first - TUNING), earlier.first)
    Z, means, aim = system.residuals[rows], regression.means(regression.first[rows]), system.objective
    offset, scale = np.zeros(earlier.first), None
    if offered is not None:
        reached = offered[rows] @ Z / len(Z)
        if not reached.any():
            return None
        scale = float(reached @ aim / (reached @ reached))
        offset = offered[: earlier.first] * scale
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
    return None if best is None else BoundedWeights(earlier, regression, *best, offset, scale)
