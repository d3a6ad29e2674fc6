"""How far the early rows must be reweighed to point at the value: (1 - discount) max |w|, with sum_i w_i Z_i = n c0.

Weights w(x) = Zbar(x)'y, Zbar = E[Z | x] as regressed on the early rows, y of least norm. About 1 where the target policy does
what was logged. Where it is large the fit extrapolates, and the error of a fit that extrapolates is not what held-out rows show.
"""

from __future__ import annotations

import numpy as np

from ..kernels.kernel import Kernel
from ..radii.bounded_weights import HuberDual, Regression
from ..statistics.bellman import BellmanSystem

RIDGE = 1e-3
"""Of the dual, in units of the mean square of Zbar."""


def largest_weight(system: BellmanSystem, kernel: Kernel) -> float:
    """(1 - discount) max |w|; at discount 1, max |w|."""
    rows = len(system.target)
    regression = Regression(system, kernel, rows)
    means = regression.means(regression.first)
    size = float(np.mean(means**2)) or 1.0
    dual = HuberDual(means, np.zeros(rows), system.objective, np.inf, RIDGE * size * np.eye(system.dimension))
    weights = dual.weights(dual.solve())
    return (1 - system.discount or 1.0) * float(np.abs(weights).max())
