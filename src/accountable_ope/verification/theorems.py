"""The radii again, from their theorems: written for reading, apart from the code that produced the certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..validation import FloatArray

GRID = 200


@dataclass(frozen=True)
class Steps:
    """No step ||d_i|| can exceed `largest`, none in the data exceeds `observed`, and sum_i w_i^2 K(x_i, x_i) is `squares`."""

    largest: float
    observed: float
    squares: float


NO_STEPS = Steps(0.0, 0.0, 0.0)


class Envelope(Protocol):
    """||S_n|| <= U(steps, V_n) at the true Q, U concave in V: U and its slope in V."""

    def at(self, steps: Steps, variances: FloatArray) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class Constant:
    """U^2, whatever the steps and the variance."""

    squared: float

    def at(self, steps: Steps, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(variances), math.sqrt(self.squared)), np.zeros(len(variances))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Theorems B' and A in one mixture, which stays below 1/delta for all n:

        sum_j pi_j cosh(l_j s) exp(-V psi_E(l_j a) / a^2)  over the rates l_j b < 1, a the largest step in the data,
      + sum_k pi_k cosh(l_k s) exp(-l_k^2 sum_i w_i^2 K(x_i, x_i) / 8).

    B': 64 rates between 1.5 / sqrt(planned) and .97 in units of 1 / (the range before the data); half of the weight even, half
    proportional to the square of the rate; and 6 rates between 1.5 and 12 with .05 of the weight, even. A, with a tenth of all
    weight: sqrt(8 log(20 / delta) / planned) times 1, 1.5 and 2.25 in the same units, with .6, .25 and .15 of its weight. A cut
    gives .8 of all weight to rates near the one that its first rows chose: .625, 1 and 1.6 times it (at most .97 in these units),
    with .2, .6 and .2 of that. Where rates were fixed for several assumptions at once, for_delta is the delta for which, and the
    factors are .16, .32, .56, .8, 1 and 1.6, with .05, .1, .15, .35, .25 and .1.
    """

    prior: float
    planned: int
    delta: float
    tuned: float | None = None
    for_delta: float | None = None

    @property
    def rates(self) -> FloatArray:
        low = min(1.5 / math.sqrt(self.planned), 0.5)
        plain = np.append(np.geomspace(low, 0.97, 64), np.geomspace(1.5, 12.0, 6)) / self.prior
        if self.tuned is None:
            return plain
        return np.append(plain, np.minimum(self.tuned * self._near[0], 0.97 / self.prior))

    @property
    def weights(self) -> FloatArray:
        squares = np.geomspace(min(1.5 / math.sqrt(self.planned), 0.5), 0.97, 64) ** 2
        below = 0.5 / 64 + 0.5 * squares / squares.sum()
        plain = 0.9 * np.append(0.95 * below, np.full(6, 0.05 / 6))
        return plain if self.tuned is None else np.append(0.2 * plain, 0.8 * self._near[1])

    @property
    def _near(self) -> tuple[FloatArray, FloatArray]:
        """Rates in units of the tuned one, and their weights."""
        if self.for_delta is None:
            return np.array([0.625, 1.0, 1.6]), np.array([0.2, 0.6, 0.2])
        return np.array([0.16, 0.32, 0.56, 0.8, 1.0, 1.6]), np.array([0.05, 0.1, 0.15, 0.35, 0.25, 0.1])

    @property
    def azuma(self) -> tuple[FloatArray, FloatArray]:
        """Rates and weights of Theorem A."""
        delta = self.delta if self.for_delta is None else self.for_delta
        best = math.sqrt(8 * math.log(20 / delta) / self.planned) / self.prior
        return best * np.array([1.0, 1.5, 2.25]), (0.1 if self.tuned is None else 0.02) * np.array([0.6, 0.25, 0.15])

    def at(self, steps: Steps, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        if steps.largest == 0:
            return np.zeros(len(variances)), np.zeros(len(variances))
        usable = self.rates * steps.largest < 1
        fast, (slow, slow_weights) = self.rates[usable], self.azuma
        rates = np.concatenate([fast, slow])
        logs = np.log(np.concatenate([self.weights[usable], slow_weights]))
        cost = np.append(_psi(fast, min(steps.observed, steps.largest)), np.zeros(len(slow)))
        logs[len(logs) - len(slow) :] -= slow**2 * steps.squares / 8
        goal, v = math.log(1 / self.delta), variances[:, None]

        def excess(s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            # cosh x = exp(x) (1 - h) and sinh x = exp(x) h for h = (1 - exp(-2x)) / 2
            x = rates * s[:, None]
            terms = logs + x - cost * v
            top = terms.max(axis=1)
            terms -= top[:, None]
            grown = np.exp(terms, out=terms)
            sinh = -0.5 * np.expm1(-2 * x) * grown
            cosh = grown - sinh
            total = cosh.sum(axis=1)
            return top + np.log(total) - goal, sinh @ rates / total, cosh @ cost / total

        s = ((goal + math.log(2) - logs + cost * v) / rates).min(axis=1)  # one rate alone: beyond the root
        for _ in range(100):
            over, slope, _ = excess(s)
            step = over / slope
            s = s - step
            if np.abs(step).max() <= 1e-13 * s.max():
                break
        over, slope, in_v = excess(s)
        s = s * (1 + 1e-12) + np.maximum(-over, 0.0) / slope
        return s, in_v / slope


def _psi(rates: FloatArray, a: float) -> FloatArray:
    """psi_E(l a) / a^2 = l^2 sum_k (l a)^k / (k + 2); the series where l a is small."""
    x = rates * a
    series = rates**2 * sum((x**k / (k + 2) for k in range(6)), np.zeros(len(x)))
    small = x < 1e-3
    return np.where(small, series, (-np.log1p(-x) - x) / (1.0 if small.all() else a) ** 2)


@dataclass(frozen=True)
class Symmetric:
    """Theorem D: U^2 = 2 (V + rho) (log(1/delta) + log(1 + V/rho) / 2)."""

    rho: float
    delta: float

    def at(self, steps: Steps, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        logs = math.log(1 / self.delta) + 0.5 * np.log1p(variances / self.rho)
        u = np.sqrt(2 * (variances + self.rho) * logs)
        return u, (2 * logs + 1) / (2 * u)


@dataclass(frozen=True, eq=False)
class Squared:
    """U(steps, .)^2 on [0, largest], tabulated, and the affine bounds of it."""

    grid: FloatArray
    u: FloatArray
    slope: FloatArray

    @classmethod
    def of(cls, envelope: Envelope, steps: Steps, largest: float) -> Squared:
        """A table that is dense in logarithms, for small variances, and evenly, for large ones."""
        grid = np.zeros(1)
        if largest > 0:
            low = max(1e-9 * largest, 1e-300)
            grid = np.unique(np.concatenate([np.geomspace(low, max(largest, 1e-300), GRID), np.linspace(0.0, largest, GRID)]))
        return cls(grid, *envelope.at(steps, grid))

    def level(self, rate: float) -> float:
        """p with U^2 <= p + rate V for every V in [0, largest].

        U is concave, so between two points of the grid it lies below its tangent at the left one; the square of that line less
        rate V is convex, so it is largest at an end.
        """
        fallen, (squares, tangents) = rate * self.grid, self._squares
        return max(float((squares - fallen).max()), float((tangents - fallen[1:]).max(initial=-math.inf)), 0.0)

    @cached_property
    def _squares(self) -> tuple[FloatArray, FloatArray]:
        """U^2 at the points of the grid, and the squared tangent of each at the next."""
        return self.u**2, (self.u[:-1] + self.slope[:-1] * np.diff(self.grid)) ** 2


def azuma(n: int, width: float, supremum: float, delta: float) -> float:
    """Theorem A: V-statistic <= w^2 Kmax log(2/delta) / (2n)."""
    return width**2 * supremum * math.log(2 / delta) / (2 * n)


def azuma_anytime(n: int, width: float, supremum: float, delta: float, planned: int) -> float:
    """Theorem A': 2 (B + rho) (log(1/delta) + log(1 + B/rho) / 2) / n^2 with B = n w^2 Kmax / 4, rho = B_planned / 8."""
    per_row = width**2 * supremum / 4
    if per_row == 0:
        return 0.0
    B, rho = n * per_row, planned * per_row / 8
    return 2 * (B + rho) * (math.log(1 / delta) + 0.5 * math.log1p(B / rho)) / n**2


def hoeffding(n: int, largest: float, delta: float, *, of_u: bool, printed: bool) -> float:
    """The paper's radii; largest = Kmax sup|eps|^2. As printed: 2 largest (((n-1)/n) sqrt(log(2/delta)/n) + 1/n)."""
    tail = math.sqrt(math.log(2 / delta) / n) if printed else math.sqrt(math.log(1 / delta) / (2 * (n // 2)))
    if of_u:
        return 2 * largest * tail
    return (n - 1) / n * 2 * largest * tail + (2 if printed else 1) * largest / n


def self_normalized(n: int, log_determinant: float, width: float, supremum: float, delta: float, planned: int) -> float:
    """Theorem C: (log det(I + c sigma^2 K) + 2 log(1/delta)) / (c n^2), sigma = w/2, c = 10 / (sigma^2 planned Kmax)."""
    variance = (0.5 * width) ** 2
    if variance == 0:
        return 0.0
    return (log_determinant + 2 * math.log(1 / delta)) / (10 / (variance * planned * supremum)) / n**2
