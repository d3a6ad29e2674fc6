"""Weights of a cut that a kernel fits: w(x) = psi(x)'Psi'Z y / rows with y = (Z'Psi Psi'Z / rows^2 + ridge)^{-1} aim.

psi are coordinates of the kernel at a few of the first points. Then sum_i w(x_i) Z_i / rows is about `aim`, and w is smooth.
"""

from __future__ import annotations

import numpy as np

from ..io.shelf import Shelf
from ..kernels.kernel import Kernel, block
from ..kernels.random_features import RandomFeatureKernel
from ..statistics.bellman import BellmanSystem
from ..threads import by_blocks
from ..validation import BoolArray, FloatArray
from .earlier_rows import AT_ONCE, EarlierRows, Width, kernel_columns, some_points

CENTERS = 150
RIDGE = 1e-3
REACH = 1e-12
SHARED_ROWS = 2**13
"""From so many rows on, threads share what is made of them."""

SLACK = 1.2
"""Later blocks need some room to make up for chance."""


class KernelFit:
    """Psi'Z over all rows so far, which come in order; the centers are among the first rows."""

    def __init__(self, system: BellmanSystem, kernel: Kernel, first: int) -> None:
        self._kernel, self._centers = kernel, some_points(system.points[:first], CENTERS)
        values, vectors = np.linalg.eigh(block(kernel, self._centers, self._centers))
        kept = values > 1e-9 * values[-1]
        self._turn = vectors[:, kept] / np.sqrt(values[kept])
        self._penalized = system.penalized
        self.first, self._first_residuals = self.psi(system.points[:first]), system.residuals[:first]
        self._across = np.zeros((self.first.shape[1], system.dimension))
        self._rows = 0
        self.learn(self.first, self._first_residuals)

    def psi(self, points: FloatArray) -> FloatArray:
        """Coordinates of the kernel at points."""
        return np.asarray(kernel_columns(self._kernel, points, self._centers) @ self._turn)

    def learn(self, psi: FloatArray, residuals: FloatArray) -> None:
        """Take in the next rows."""
        self._across += psi.T @ residuals
        self._rows += len(psi)

    def take(self, points: FloatArray, residuals: FloatArray, coefficients: FloatArray) -> FloatArray:
        """w at the next rows, which are then learned from."""

        def part(rows: slice) -> tuple[FloatArray, FloatArray]:
            psi = self.psi(points[rows])
            return np.asarray(psi @ coefficients), np.asarray(psi.T @ residuals[rows])

        # Random features of the centers are made anew for every part, so that there is one.
        size = max(len(points), 1) if isinstance(self._kernel, RandomFeatureKernel) else AT_ONCE
        found = [np.zeros(0)]
        for weights, across in by_blocks(part, len(points), size, many=SHARED_ROWS):
            found.append(weights)
            self._across += across
        self._rows += len(points)
        return np.concatenate(found)

    def coefficients(self, aim: FloatArray) -> FloatArray:
        """Of w in the coordinates psi, from the rows so far."""
        return _coefficients(self._across / self._rows, aim, self._penalized)

    def agreed(self, aim: FloatArray) -> float:
        """The largest weight that both halves of the first rows ask for at one of them: the rest may be chance."""
        psi, Z, half = self.first, self._first_residuals, len(self.first) // 2
        one, other = (
            psi @ _coefficients(psi[part].T @ Z[part] / len(psi[part]), aim, self._penalized)
            for part in (slice(0, half), slice(half, None))
        )
        return float(np.where(one * other > 0, np.minimum(np.abs(one), np.abs(other)), 0.0).max())

    def beyond(self, aim: FloatArray) -> FloatArray:
        """The part of the aim that the rows so far do not reach at all. What the ridge leaves out, later blocks make up for."""
        values, vectors = np.linalg.eigh(self._across.T @ self._across)
        unreached = vectors[:, values <= REACH * values[-1]]
        return np.asarray(unreached @ (unreached.T @ aim))

    def keep(self, shelf: Shelf) -> None:
        """What the rows taught; the rest is made from the first rows."""
        shelf.put("across", self._across)
        shelf.put("rows", self._rows)

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept."""
        self._across, self._rows = shelf.floats("across", *self._across.shape), shelf.count("rows")


class FittedWeights:
    """Weights that a kernel fits, bounded by what the first rows agree on; see `Weigher`."""

    def __init__(self, fit: KernelFit, width: Width) -> None:
        self._fit, self.width = fit, width
        self._coefficients = np.zeros(fit.first.shape[1])

    def aim(self, share: FloatArray, remaining: int) -> None:
        """The coefficients for the next block."""
        self._coefficients = self._fit.coefficients(share)

    def take(
        self, points: FloatArray, residuals: FloatArray, offered: FloatArray | None, features: FloatArray | None
    ) -> FloatArray:
        """Weights of the next rows, which are then learned from."""
        bound = self.width.bound
        return np.clip(self._fit.take(points, residuals, self._coefficients), -bound, bound)

    def keep(self, shelf: Shelf) -> None:
        """What the rows taught."""
        self._fit.keep(shelf.within("fit"))
        shelf.put("coefficients", self._coefficients)

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept."""
        self._fit.resume(shelf.within("fit"))
        self._coefficients = shelf.floats("coefficients", *self._coefficients.shape)


def fitted_weights(system: BellmanSystem, earlier: EarlierRows, fit: KernelFit) -> FittedWeights | None:
    """None where they are 0, or where the halves of the first rows agree on none."""
    aim = system.objective
    bound = SLACK * fit.agreed(aim)
    if bound == 0:
        return None
    weights = np.clip(fit.first @ fit.coefficients(aim), -bound, bound)
    width = earlier.width(weights, bound, weights[:, None] * system.residuals[: earlier.first], fit.beyond(aim))
    return FittedWeights(fit, width)


def _coefficients(across: FloatArray, aim: FloatArray, penalized: BoolArray) -> FloatArray:
    """across (across'across + ridge)^{-1} aim, across = Psi'Z / rows."""
    A = across.T @ across
    size = float(np.trace(A))
    if size == 0:
        return np.zeros(len(across))
    ridge = RIDGE * size / len(A) * penalized + 1e-12 * size
    return np.asarray(across @ np.linalg.solve(A + np.diag(ridge), aim))
