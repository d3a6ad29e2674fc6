"""An estimate of Q from the early rows: least squares through a kernel, with a ridge that rows held out choose.

theta = argmin ||Psi'(v - Z theta)||^2 / n^2 + ridge * size * ||theta_penalized||^2, Psi coordinates of the test kernel over some
of the points. The ridge is the largest one whose U-statistic on the held-out rows is within one standard deviation of the best:
without it coefficients are as large as 1e4, and mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel, block
from ..statistics.bellman import BellmanSystem
from ..validation import BoolArray, FloatArray

CENTERS = 300
FITTED_SHARE = 0.6
RIDGES = 10.0 ** np.arange(-9, 1)
SMALL = 1e-11
"""A ridge on all coefficients, the constant too, that only keeps numbers finite."""


@dataclass(frozen=True, eq=False)
class EarlyFit:
    """The coefficients, and how they were found.

    Attributes
    ----------
    theta : array (m,)
    ridge : float
        That of the fit, without units.
    held_out : float
        The U-statistic of the held-out rows at this ridge, in units of its standard deviation were Q fitted exactly: about 1 or
        less where the class fits.
    norm : float
        Of the penalized coefficients.
    """

    theta: FloatArray
    ridge: float
    held_out: float
    norm: float


def fit_early(system: BellmanSystem, kernel: Kernel) -> EarlyFit:
    """Fit the first rows, judge ridges on the others, fit all with the ridge that was found."""
    psi = _coordinates(kernel, system.points)
    Z, v, penalized, first = system.residuals, system.target, system.penalized, int(FITTED_SHARE * len(system.target))
    tried = []
    for ridge in RIDGES:
        theta = _least_squares(psi[:first], Z[:first], v[:first], penalized, float(ridge))
        tried.append(_u_statistic(psi[first:], v[first:] - Z[first:] @ theta))
    best = min(range(len(tried)), key=lambda k: tried[k][0])
    allowed = tried[best][0] + tried[best][1]
    chosen = max(k for k, (value, _) in enumerate(tried) if value <= allowed)
    theta = _least_squares(psi, Z, v, penalized, float(RIDGES[chosen]))
    value, deviation = tried[chosen]
    return EarlyFit(theta, float(RIDGES[chosen]), value / deviation, float(np.linalg.norm(theta[penalized])))


def _coordinates(kernel: Kernel, points: FloatArray) -> FloatArray:
    """Psi: K(X, C) K(C, C)^{-1/2} for evenly spaced rows C."""
    centers = points[np.unique(np.linspace(0, len(points) - 1, min(CENTERS, len(points))).astype(np.int64))]
    values, vectors = np.linalg.eigh(block(kernel, centers, centers))
    kept = values > 1e-8 * values[-1]
    return np.asarray(block(kernel, points, centers) @ (vectors[:, kept] / np.sqrt(values[kept])))


def _least_squares(psi: FloatArray, Z: FloatArray, v: FloatArray, penalized: BoolArray, ridge: float) -> FloatArray:
    M, y, m = psi.T @ Z / len(v), psi.T @ v / len(v), Z.shape[1]
    gram = M.T @ M
    size = float(np.trace(gram)) / m or 1.0
    ridged = gram + size * (ridge * np.diag(penalized.astype(float)) + SMALL * np.eye(m))
    return np.asarray(np.linalg.solve(ridged, M.T @ y), dtype=np.float64)


def _u_statistic(psi: FloatArray, residuals: FloatArray) -> tuple[float, float]:
    """(U, its standard deviation were the residuals chance alone)."""
    n, weighted = len(residuals), psi * residuals[:, None]
    total, gram = weighted.sum(axis=0), weighted.T @ weighted
    value = (float(total @ total) - float(np.trace(gram))) / (n * (n - 1))
    return value, max(float(np.sqrt(2 * (gram**2).sum())) / n**2, 1e-300)
