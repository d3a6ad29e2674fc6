"""An estimate of Q from the early rows: least squares through a kernel, with a ridge that rows held out choose.

theta = argmin ||Psi'(v - Z theta)||^2 / n^2 + ridge * size * ||theta_penalized||^2, Psi coordinates of the test kernel over some
of the points. The ridge is the largest one whose U-statistic on the held-out rows is within one standard deviation of the best:
without it coefficients are as large as 1e4, and mean nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import InvalidInput
from ..kernels.kernel import Kernel, block
from ..problem.transitions import Transitions
from ..statistics.bellman import BellmanSystem
from ..validation import BoolArray, FloatArray

CENTERS = 300
FITTED_SHARE = 0.7
"""Of the early rows, those that are fitted; the others, which came later, judge."""
RIDGE_SHARE = 0.6
"""The same where the ridge of the class that was chosen is found."""
RIDGES = 10.0 ** np.arange(-9, 1)
SMALL = 1e-11
"""A ridge on all coefficients, the constant too, that only keeps numbers finite."""


@dataclass(frozen=True)
class HeldOut:
    """What rows say that were not fitted.

    Attributes
    ----------
    ridge : float
        That of the fit, without units.
    loss : float
        The U-statistic at the test kernel: its mean is E e(x) K(x, x') e(x'), e the mean of the residual given x, and 0 at Q.
    deviation : float
        Its standard deviation.
    chance : float
        What its standard deviation would be were e = 0: noise alone.
    """

    ridge: float
    loss: float
    deviation: float
    chance: float


@dataclass(frozen=True, eq=False)
class Judge:
    """The early rows in coordinates of the test kernel, the same for all classes.

    Attributes
    ----------
    psi : array (n, D)
        K(X, C) K(C, C)^{-1/2} for evenly spaced rows C.
    first : int
        How many rows are fitted; the others judge.
    """

    psi: FloatArray
    first: int

    @classmethod
    def of(cls, kernel: Kernel, points: FloatArray, first: int) -> Judge:
        centers = points[np.unique(np.linspace(0, len(points) - 1, min(CENTERS, len(points))).astype(np.int64))]
        values, vectors = np.linalg.eigh(block(kernel, centers, centers))
        kept = values > 1e-8 * values[-1]
        return cls(np.asarray(block(kernel, points, centers) @ (vectors[:, kept] / np.sqrt(values[kept]))), first)

    @cached_property
    def overlap(self) -> float:
        """The mean of K over pairs of different rows that judge: the loss of a residual that is 1 everywhere."""
        psi = self.psi[self.first :]
        total, n = psi.sum(axis=0), len(psi)
        return (float(total @ total) - float((psi**2).sum())) / (n * (n - 1))

    def held_out(self, system: BellmanSystem) -> HeldOut:
        """Fit the first rows at every ridge; the largest ridge whose loss is within one deviation, by chance, of the least."""
        psi, first, Z, v = self.psi, self.first, system.residuals, system.target
        M, y = psi[:first].T @ Z[:first] / first, psi[:first].T @ v[:first] / first
        tried = []
        for ridge in RIDGES.tolist():
            theta = _least_squares(M, y, system.penalized, ridge)
            tried.append(_judged(ridge, psi[first:], v[first:] - Z[first:] @ theta))
        best = min(tried, key=lambda each: each.loss)
        return max((each for each in tried if each.loss <= best.loss + best.chance), key=lambda each: each.ridge)

    def ridge(self, system: BellmanSystem) -> float:
        """That of the class that was chosen."""
        return replace(self, first=int(RIDGE_SHARE * len(system.target))).held_out(system).ridge

    def fit(self, system: BellmanSystem, ridge: float) -> FloatArray:
        """theta of all early rows."""
        n = len(system.target)
        return _least_squares(self.psi.T @ system.residuals / n, self.psi.T @ system.target / n, system.penalized, ridge)


def first_part(data: Transitions) -> int:
    """How many of the early rows are fitted: whole episodes, where they are known."""
    try:
        return len(data.split(FITTED_SHARE)[0])
    except InvalidInput:  # a few rows, all of one episode
        return int(FITTED_SHARE * len(data))


def _least_squares(M: FloatArray, y: FloatArray, penalized: BoolArray, ridge: float) -> FloatArray:
    m = M.shape[1]
    gram = M.T @ M
    size = float(np.trace(gram)) / m or 1.0
    ridged = gram + size * (ridge * np.diag(penalized.astype(float)) + SMALL * np.eye(m))
    return np.asarray(np.linalg.solve(ridged, M.T @ y), dtype=np.float64)


def _judged(ridge: float, psi: FloatArray, residuals: FloatArray) -> HeldOut:
    """The U-statistic ||mean||^2 less its diagonal, with both terms of its variance."""
    n, weighted = len(residuals), psi * residuals[:, None]
    total, gram = weighted.sum(axis=0), weighted.T @ weighted
    loss = (float(total @ total) - float(np.trace(gram))) / (n * (n - 1))
    second = 2 * float((gram**2).sum()) / n**4
    mean = total / n
    first = 4 * max(float(mean @ gram @ mean) / n - float(mean @ mean) ** 2, 0.0) / n
    return HeldOut(ridge, loss, max(math.sqrt(first + second), 1e-300), max(math.sqrt(second), 1e-300))
