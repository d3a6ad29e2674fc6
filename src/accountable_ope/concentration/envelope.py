"""Bounds of ||S_n|| that depend on the variance V_n(Q) = sum_i eps_i^2 K(x_i, x_i), and the affine bounds of their squares.

An envelope is a function U(b, V), non-decreasing in the range b and in the variance V, and concave in V, with
P( ||S_n|| <= U(b, V_n) for all n ) >= 1 - delta at Q of the target policy. Where U(b, V)^2 <= p + q V, the true Q meets
    eps'(K - q D) eps <= p,     D = diag K(x_i, x_i),
one quadratic constraint for every q, all of them on the same event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..validation import FloatArray, frozen
from .martingale import gaussian_mixture, psi_exponential

GRID = 200
"""Twice so many values of the variance, between which an affine bound is verified."""


class Envelope(Protocol):
    """U(b, V) and its derivative in V."""

    @property
    def delta(self) -> float: ...

    def bound(self, residual_bound: float, variance: FloatArray) -> tuple[FloatArray, FloatArray]: ...


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

    Half of the weight is spread evenly over the logarithms, half leans towards the largest rates, where a small variance needs
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

    def bound(self, residual_bound: float, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = np.atleast_1d(np.asarray(variance, dtype=np.float64))
        squared = gaussian_mixture(v, self.rho, self.delta)
        slope = 2 * (math.log(1 / self.delta) + 0.5 * np.log1p(v / self.rho)) + 1
        return np.sqrt(squared), slope / (2 * np.sqrt(squared))


@dataclass(frozen=True)
class AffineBound:
    """U(b, V)^2 <= level + rate V for every V in [0, largest variance]."""

    level: float
    rate: float


class SquaredEnvelope:
    """U(b, .)^2 on [0, largest], tabulated once, and its affine bounds."""

    def __init__(self, envelope: Envelope, residual_bound: float, largest: float) -> None:
        self._envelope, self._b, self.largest = envelope, residual_bound, largest
        # Evenly spread in logarithms, for small variances, and evenly, for large ones.
        spread = np.concatenate(
            [np.geomspace(max(1e-9 * largest, 1e-300), max(largest, 1e-300), GRID), np.linspace(0.0, largest, GRID)]
        )
        self._v = np.unique(spread) if largest > 0 else np.zeros(1)
        self._u, self._slope = envelope.bound(residual_bound, self._v)

    def at(self, rate: float) -> AffineBound:
        """The affine bound with this rate: p = max_V U^2 - q V, never below the true maximum.

        Between two points U lies below its tangent at the left one, and the square of the tangent minus q V is convex, so it is
        largest at an end.
        """
        here = self._u**2 - rate * self._v
        there = (self._u[:-1] + self._slope[:-1] * np.diff(self._v)) ** 2 - rate * self._v[1:]
        return AffineBound(max(float(here.max()), float(there.max(initial=-math.inf)), 0.0), rate)

    def touching(self, variance: float) -> AffineBound:
        """The affine bound that is tight near this variance."""
        u, slope = self._envelope.bound(self._b, np.array([min(variance, self.largest)]))
        return self.at(float(2 * u[0] * slope[0]))

    def chord(self) -> AffineBound:
        """The affine bound through both ends, best where U^2 is convex."""
        if self.largest == 0:
            return self.at(0.0)
        return self.at(float((self._u[-1] ** 2 - self._u[0] ** 2) / self.largest))
