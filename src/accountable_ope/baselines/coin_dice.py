"""CoinDICE (Dai et al. 2020): the values of all reweighted logs that are near the log, in a chi-square ball.

    C = { rho(w) : w >= 0, sum_i w_i = 1, D(w) <= xi / n },
    D(w) = (1/n) sum_i (n w_i - 1)^2,   xi the 1 - delta quantile of chi^2_1,

where rho(w) is the saddle value of the weighted Lagrangian E_w[ c0'theta + tau(x) (r - z'theta) ] over tau and theta. With tau
and Q = phi'theta linear in the same features (one-hot ones: the tabular form) and without further penalties the saddle is that
of the weighted equations, A(w) theta = b(w) and A(w)'alpha = c0, and rho(w) = c0'theta(w). Its derivative in w_i is that of the
Lagrangian at the saddle, alpha'phi_i (r_i - z_i'theta). The ends are found by repeating: take the w of the ball that is best
for this derivative, which has the closed form w_i = (1/n) (1 + (g_i - eta) / lambda)_+, and go towards it as far as the value
improves.

The interval is right in the limit of many rows. The authors' rows hold a start state each, weighed with them; here the start
distribution is as the problem has it, and where it is sampled the ends move outwards by its standard error, in squares.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from ..problem.statements import Guarantee
from ..validation import FloatArray
from .answer import answered
from .contestant import Contestant, Entry, Needs
from .interval import BaselineInterval
from .linear_system import LinearSystem, solved
from .lstdq import CLASS, LIMIT, ORDER, unseen

ROUNDS, HALVINGS = 50, 100


def coin_dice_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """[min, max] of rho over the ball."""
    system = LinearSystem.of(entry).scaled
    quantile = -NormalDist().inv_cdf(0.5 * delta)
    center, theta, _ = weighted_value(system, np.ones(len(system)))
    ends = [extreme_value(system, quantile**2, sign) for sign in (-1.0, 1.0)]
    of_starts = quantile * math.sqrt(system.start_variance(theta))
    low, high = (center + sign * math.hypot(end - center, of_starts) for end, sign in zip(ends, (-1, 1), strict=True))
    return answered(
        entry.problem,
        (math.nan, math.nan) if unseen(system) else (low, high),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.ASYMPTOTIC,
        premises=(ORDER, CLASS, LIMIT),
    )


def weighted_value(system: LinearSystem, weights: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """(rho, theta, alpha) of weights with the mean 1."""
    a = system.matrix(weights)
    theta = solved(a, system.vector(weights))
    return float(system.c0 @ theta), theta, solved(a.T, system.c0)


def extreme_value(system: LinearSystem, quantile: float, sign: float) -> float:
    """The largest rho over the ball, or for the sign -1 the least."""
    weights = np.ones(len(system))
    value, theta, alpha = weighted_value(system, weights)
    for _ in range(ROUNDS):
        slopes = sign * (system.phi @ alpha) * system.residuals(theta)
        if not np.isfinite(slopes).all():
            return math.nan
        wanted = heaviest_weights(slopes, quantile)
        share = 1.0
        while share > 1e-3:
            tried = weights + share * (wanted - weights)
            found = weighted_value(system, tried)
            if sign * found[0] > sign * value:
                break
            share *= 0.5
        else:
            return value
        gained = abs(found[0] - value)
        weights, (value, theta, alpha) = tried, found
        if gained <= 1e-9 * (1 + abs(value)):
            return value
    return value


def heaviest_weights(slopes: FloatArray, quantile: float) -> FloatArray:
    """argmax sum_i w_i g_i over w >= 0 with the mean 1 and sum_i (w_i - 1)^2 <= xi: w = (1 + (g - eta) / lambda)_+."""
    centered = slopes - slopes.mean()
    size = float(np.linalg.norm(centered))
    if size == 0:
        return np.ones_like(slopes)
    weights = 1 + math.sqrt(quantile) * centered / size
    if weights.min() >= 0:
        return np.asarray(weights)
    high = size / math.sqrt(quantile)  # lambda: the larger, the nearer to 1
    low = 1e-12 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        tried = _simplex(1 + centered / middle)
        low, high = (middle, high) if float(((tried - 1) ** 2).sum()) > quantile else (low, middle)
    return _simplex(1 + centered / high)


def _simplex(x: FloatArray) -> FloatArray:
    """(x - eta)_+ with the mean 1."""
    ordered = np.sort(x)[::-1]
    many = np.arange(1, len(x) + 1)
    levels = (np.cumsum(ordered) - len(x)) / many
    last = int(np.flatnonzero(ordered > levels)[-1])
    return np.asarray(np.maximum(x - levels[last], 0.0))


NAME = "coindice"
COIN_DICE = Contestant(
    name=NAME,
    title="CoinDICE, linear, with a chi-square ball",
    source="Dai, Nachum, Chow, Li, Szepesvari and Schuurmans (2020)",
    guarantee=Guarantee.ASYMPTOTIC,
    needs=Needs(features=True, value_range=True),
    interval=coin_dice_interval,
)
