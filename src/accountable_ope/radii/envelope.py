"""The envelopes of the theorems: Theorems A and B' mixed over rates, and Theorem D for symmetric residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..programs.envelope import Steps
from ..validation import FloatArray, frozen
from .martingale import gaussian_mixture, psi_exponential

ATOMS = ((1.0, 0.6), (1.5, 0.25), (2.25, 0.15))
"""Rates of Theorem A, in units of the best one at the planned number of rows, and their weights."""

AZUMA_SHARE = 0.1
"""The weight of Theorem A in the mixture."""

LEANING = 0.5
"""Of the weight of Theorem B', the share that is proportional to the square of the rate, which serves a small variance."""

CEILING = 0.97
"""The largest rate in units of 1/b."""


BEYOND = np.geomspace(1.5, 12.0, 6)
BEYOND_SHARE = 0.05
"""Rates above 1/b, in the same units, and the weight of all of them: they count once the range has shrunk."""


@dataclass(frozen=True, eq=False)
class RateMixture:
    """Theorems B' and A mixed over finitely many rates l_j fixed in advance, with weights pi_j of sum at most 1.

        sum_j pi_j cosh(l_j ||S_n||) exp(-psi_E(l_j a) V_n / a^2)                over the j with l_j b < 1      (B')
      + sum_k pi_k cosh(l_k ||S_n||) exp(-l_k^2 sum_i w_i^2 K(x_i, x_i) / 8)                                    (A)

    for the largest step a that was observed: a supermartingale that starts at or below 1 lies above it, since
    psi_E(l ||d_i||) <= ||d_i||^2 psi_E(l a) / a^2. So it stays below 1/delta for all n with probability 1 - delta; U(b, a, V) is
    the s at which it reaches 1/delta. Every term falls when b, a, w or V grows, since psi_E(x)/x^2 increases: U is non-decreasing
    in all of them. The logarithm of the sum is jointly convex in (s, V), so U is concave in V.
    """

    rates: FloatArray
    weights: FloatArray
    delta: float
    azuma_rates: FloatArray = field(default_factory=lambda: np.zeros(0))
    azuma_weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    follows_variance: ClassVar[bool] = True

    def bound(self, steps: Steps, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = np.atleast_1d(np.asarray(variance, dtype=np.float64))
        if steps.largest == 0:
            return np.zeros_like(v), np.zeros_like(v)
        usable = self.rates * steps.largest < 1
        rates, log_weights = self.rates[usable], np.log(self.weights[usable])
        cost = step_cost(rates, min(steps.observed, steps.largest))
        if math.isfinite(steps.squares) and len(self.azuma_rates):
            rates = np.concatenate([rates, self.azuma_rates])
            log_weights = np.append(log_weights, np.log(self.azuma_weights) - self.azuma_rates**2 * steps.squares / 8)
            cost = np.append(cost, np.zeros(len(self.azuma_rates)))
        if not len(rates):
            return np.full_like(v, math.inf), np.zeros_like(v)
        goal = math.log(1 / self.delta)
        # One rate alone bounds s from above; from there Newton's method for a convex function never steps over the root.
        s = np.min((goal + math.log(2) - log_weights + cost * v[:, None]) / rates, axis=1)
        for _ in range(100):
            excess, in_s, _ = _log_sum(s, v, rates, log_weights, cost, goal)
            step = excess / in_s
            s = s - step
            if np.abs(step).max() <= 1e-13 * s.max():
                break
        _, in_s, in_v = _log_sum(s, v, rates, log_weights, cost, goal)
        return s * (1 + 1e-12), in_v / in_s


def step_cost(rates: FloatArray, observed: float) -> FloatArray:
    """psi_E(l a) / a^2 for every rate l; l^2 / 2 in the limit of small steps."""
    x = rates * observed
    small = x < 1e-3
    series = rates**2 * (0.5 + x / 3 + x**2 / 4 + x**3 / 5 + x**4 / 6)
    if small.all():
        return np.asarray(series)
    return np.where(small, series, psi_exponential(x) / observed**2)


def _log_sum(
    s: FloatArray, v: FloatArray, rates: FloatArray, log_weights: FloatArray, cost: FloatArray, goal: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log of the mixture minus its goal, and minus its derivative in v beside its derivative in s."""
    # Arrays are used again: making new ones would take longer than filling them.
    grown = rates * s[:, None]
    terms = np.logaddexp(grown, -grown)
    terms += log_weights
    terms -= math.log(2)
    terms -= cost * v[:, None]
    top = terms.max(axis=1, keepdims=True)
    terms -= top
    share = np.exp(terms, out=terms)
    total = share.sum(axis=1)
    share /= total[:, None]
    value, in_v = top[:, 0] + np.log(total) - goal, (share * cost).sum(axis=1)
    share *= rates
    share *= np.tanh(grown, out=grown)
    return value, share.sum(axis=1), in_v


def rate_mixture(step_range: float, planned: int, delta: float, count: int = 64) -> RateMixture:
    """Rates between 1.5 / sqrt(planned) and 0.97 in units of 1/b: from a variance of about b^2 per row down to none.

    Half of the weight of Theorem B' is spread evenly over the logarithms, half leans toward large rates. Theorem A has a tenth of
    all weight, at rates near sqrt(2 log(2 / (delta / 10)) / B), B = planned b^2 / 4. A twentieth of the weight of Theorem B' lies
    beyond 1/b, for a range that shrinks. In units of the range b all of them depend on `planned` and delta alone.
    """
    rates = np.geomspace(min(1.5 / math.sqrt(planned), 0.5), CEILING, count)
    weights = (1 - LEANING) / count + LEANING * rates**2 / np.sum(rates**2)
    rates = np.append(rates, BEYOND)
    weights = np.append((1 - BEYOND_SHARE) * weights, np.full(len(BEYOND), BEYOND_SHARE / len(BEYOND)))
    best = math.sqrt(8 * math.log(2 / (AZUMA_SHARE * delta)) / planned)
    return RateMixture(
        frozen(rates / step_range),
        frozen((1 - AZUMA_SHARE) * weights),
        delta,
        frozen(np.array([best * rate / step_range for rate, _ in ATOMS])),
        frozen(np.array([AZUMA_SHARE * weight for _, weight in ATOMS])),
    )


TUNED = ((1 / 1.6, 0.2), (1.0, 0.6), (1.6, 0.2))
"""Rates of a cut in units of the one that earlier rows chose, and their weights."""

ROOMY = ((0.16, 0.05), (0.32, 0.1), (0.56, 0.15), (0.8, 0.35), (1.0, 0.25), (1.6, 0.1))
"""The same where assumptions may become weaker than those for which rates are fixed: a rate is of use below 1 / (range) only, so
that rates at the limit would be lost as soon as the range grows."""

TUNED_SHARE = 0.8
"""The weight of these in the mixture of a cut."""


def cut_mixture(step_range: float, rate: float, planned: int, delta: float, *, room: bool = False) -> RateMixture:
    """The mixture of a cut, whose first rows chose a rate: .8 of the weight near it, the rest as in `rate_mixture`.

    room: the range may become larger than it was when rates were fixed.
    """
    plain, tuned = rate_mixture(step_range, planned, delta), ROOMY if room else TUNED
    near = np.minimum(np.array([factor for factor, _ in tuned]) * rate, CEILING / step_range)
    return RateMixture(
        frozen(np.append(plain.rates, near)),
        frozen(np.append((1 - TUNED_SHARE) * plain.weights, [TUNED_SHARE * weight for _, weight in tuned])),
        delta,
        plain.azuma_rates,
        frozen((1 - TUNED_SHARE) * plain.azuma_weights),
    )


@dataclass(frozen=True)
class SymmetricEnvelope:
    """Theorem D: U^2 = f_rho(V), whatever the range, where residuals are symmetric about 0 given the past."""

    rho: float
    delta: float
    follows_variance: ClassVar[bool] = True

    def bound(self, steps: Steps, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = np.atleast_1d(np.asarray(variance, dtype=np.float64))
        squared = gaussian_mixture(v, self.rho, self.delta)
        slope = 2 * (math.log(1 / self.delta) + 0.5 * np.log1p(v / self.rho)) + 1
        return np.sqrt(squared), slope / (2 * np.sqrt(squared))
