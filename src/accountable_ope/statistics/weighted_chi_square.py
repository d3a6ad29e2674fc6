"""The upper tail of a weighted sum of chi-squares, by a saddle point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..validation import FloatArray, number, vector

NEGLIGIBLE = 1e-10
"""Weights below this share of the largest are rounding."""
NEAR_THE_MEAN = 1e-4
"""So near to the mean, relative to it, the formula of the saddle point is 0 / 0."""
HOPELESS = 1e6
"""So many times the mean, the tail is 0 in floating point, whatever the weights."""


@checked
def weighted_chi_square_tail(value: float, weights: ArrayLike) -> float:
    """P(sum_j w_j X_j > value) for independent X_j ~ chi^2_1, by Lugannani and Rice's formula (Kuonen, 1999).

    K(t) = -1/2 sum_j log(1 - 2 t w_j), K'(t) = value, r = sgn(t) sqrt(2 (t value - K(t))), u = t sqrt(K''(t)), and the tail is
    1 - Phi(r + log(u / r) / r). The relative error is a few percent for two weights and falls with their number; one weight alone
    is exact.

    Parameters
    ----------
    value : float
    weights : array (k,)
        Not negative; those at the level of rounding are left out.

    Returns
    -------
    float
        1 where all weights are 0: nothing varies, so nothing is unusual.

    Examples
    --------
    >>> from accountable_ope.statistics import weighted_chi_square_tail
    >>> round(weighted_chi_square_tail(3.841, [1.0]), 3), round(weighted_chi_square_tail(9.488, [1, 1, 1, 1]), 3)
    (0.05, 0.05)
    """
    from scipy.special import chdtrc, ndtr

    w, q = vector(weights, "weights"), number(value, "value")
    largest = float(w.max(initial=0.0))
    if not (largest > 0 and q > 0):
        return 1.0
    w, q = w[w > NEGLIGIBLE * largest] / largest, q / largest
    mean, squares = float(w.sum()), float(w @ w)
    if len(w) == 1:
        return float(chdtrc(1, q))
    if q > mean * HOPELESS:
        return 0.0
    if abs(q - mean) < NEAR_THE_MEAN * mean:
        return float(chdtrc(mean**2 / squares, q * mean / squares))  # two moments of a chi-square, good near the mean
    t = _saddle_point(q, w)
    cumulant, second = -0.5 * float(np.log1p(-2 * t * w).sum()), float((2 * w**2 / (1 - 2 * t * w) ** 2).sum())
    r = math.copysign(math.sqrt(max(2 * (t * q - cumulant), 1e-300)), t)
    u = t * math.sqrt(second)
    return float(min(max(ndtr(-(r + math.log(u / r) / r)), 0.0), 1.0))


def _saddle_point(q: float, w: FloatArray) -> float:
    """t < 1/2 with sum_j w_j / (1 - 2 t w_j) = q, the largest weight being 1."""
    from scipy.optimize import brentq

    def excess(t: float) -> float:
        return float((w / (1 - 2 * t * w)).sum()) - q

    if excess(0.0) < 0:  # the largest weight alone gives 1 / (1 - 2 t), which is q at 1/2 - 1/(2 q): the root is no larger
        return float(brentq(excess, 0.0, 0.5 - 0.5 / max(q, 1.0) * (1 - 1e-12)))
    low = -1.0
    while excess(low) > 0:
        low *= 4
    return float(brentq(excess, low, 0.0))
