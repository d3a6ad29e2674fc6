"""The envelopes of the theorems: Theorem B mixed over rates, and Theorem D for symmetric residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..validation import FloatArray, frozen
from .martingale import gaussian_mixture, psi_exponential


@dataclass(frozen=True, eq=False)
class RateMixture:
    """Theorem B mixed over finitely many rates l_j fixed in advance, with weights pi_j of sum at most 1.

    sum_j pi_j cosh(l_j ||S_n||) exp(-psi_E(l_j b) V_n / b^2), over the j with l_j b < 1, is a supermartingale that starts at or
    below 1, so it stays below 1/delta for all n with probability 1 - delta; U(b, V) is the s at which it reaches 1/delta. Every
    term falls when b or V grows, since psi_E(x)/x^2 increases: U is non-decreasing in both. The logarithm of the sum is jointly
    convex in (s, V), so U is concave in V.
    """

    rates: FloatArray
    weights: FloatArray
    delta: float
    follows_variance: ClassVar[bool] = True

    def bound(self, residual_bound: float, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        b, v = residual_bound, np.atleast_1d(np.asarray(variance, dtype=np.float64))
        usable = self.rates * b < 1
        if b == 0:
            return np.zeros_like(v), np.zeros_like(v)
        if not usable.any():
            return np.full_like(v, math.inf), np.zeros_like(v)
        rates, log_weights = self.rates[usable], np.log(self.weights[usable])
        cost = psi_exponential(rates * b) / b**2
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


def _log_sum(
    s: FloatArray, v: FloatArray, rates: FloatArray, log_weights: FloatArray, cost: FloatArray, goal: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log of the mixture minus its goal, and minus its derivative in v beside its derivative in s."""
    grown = rates * s[:, None]
    terms = log_weights + np.logaddexp(grown, -grown) - math.log(2) - cost * v[:, None]
    top = terms.max(axis=1, keepdims=True)
    share = np.exp(terms - top)
    total = share.sum(axis=1)
    share = share / total[:, None]
    value = top[:, 0] + np.log(total) - goal
    return value, (share * rates * np.tanh(grown)).sum(axis=1), (share * cost).sum(axis=1)


def rate_mixture(residual_bound: float, planned: int, delta: float, count: int = 64) -> RateMixture:
    """Rates between 1.5 / sqrt(planned) and 0.97 in units of 1/b: from a variance of about b^2 per row down to none.

    Half of the weight is spread evenly over the logarithms, half leans toward the largest rates, where a small variance needs
    it. In units of the range b the rates depend on `planned` alone, and U(b, V) = b u(V / b^2) with u(x)^2 / x falling: a larger
    declared range never lowers the bound.
    """
    rates = np.geomspace(min(1.5 / math.sqrt(planned), 0.5), 0.97, count)
    leaning = rates**2 / np.sum(rates**2)
    return RateMixture(frozen(rates / residual_bound), frozen(0.5 / count + 0.5 * leaning), delta)


@dataclass(frozen=True)
class SymmetricEnvelope:
    """Theorem D: U(b, V)^2 = f_rho(V), whatever the range, where residuals are symmetric about 0 given the past."""

    rho: float
    delta: float
    follows_variance: ClassVar[bool] = True

    def bound(self, residual_bound: float, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = np.atleast_1d(np.asarray(variance, dtype=np.float64))
        squared = gaussian_mixture(v, self.rho, self.delta)
        slope = 2 * (math.log(1 / self.delta) + 0.5 * np.log1p(v / self.rho)) + 1
        return np.sqrt(squared), slope / (2 * np.sqrt(squared))
