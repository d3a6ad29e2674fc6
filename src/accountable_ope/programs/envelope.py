"""Bounds of ||S_n|| that may depend on the variance V_n(Q) = sum_i eps_i^2 K(x_i, x_i), and the affine bounds of their squares.

An envelope is a function U(steps, V), non-decreasing in what is known of the steps and in the variance V, and concave in V, with
P( ||S_n|| <= U(steps, V_n) for all n ) >= 1 - delta at Q of the target policy. Where U(steps, V)^2 <= p + q V, the true Q meets
    eps'(K - q D) eps <= p,     D = diag K(x_i, x_i),
one quadratic constraint for every q, all of them on the same event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from ..validation import FloatArray

GRID = 200
"""Twice so many values of the variance, between which an affine bound is verified."""


@dataclass(frozen=True)
class Steps:
    """What is known of the steps d_i = eps_i K(x_i, .) of a martingale.

    largest:  b, no ||d_i|| can be larger.
    observed: a <= b, none of those in the data is larger.
    squares:  sum_i w_i^2 K(x_i, x_i), eps_i in an interval of length w_i given the past; infinite where it is not known.
    """

    largest: float
    observed: float
    squares: float = math.inf

    @classmethod
    def within(cls, largest: float, squares: float = math.inf) -> Steps:
        """Of which only the range is known."""
        return cls(largest, largest, squares)


@runtime_checkable
class Envelope(Protocol):
    """U(steps, V) and its derivative in V."""

    @property
    def follows_variance(self) -> bool:
        """Whether U depends on steps and V at all."""
        ...

    def bound(self, steps: Steps, variance: FloatArray) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class ConstantEnvelope:
    """U^2 = squared, whatever the steps and the variance: a radius that is one number."""

    squared: float
    follows_variance: ClassVar[bool] = False

    def bound(self, steps: Steps, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = np.atleast_1d(np.asarray(variance, dtype=np.float64))
        return np.full_like(v, math.sqrt(self.squared)), np.zeros_like(v)


@dataclass(frozen=True)
class AffineBound:
    """U^2 <= level + rate V for every V in [0, largest variance]."""

    level: float
    rate: float


class SquaredEnvelope:
    """U(steps, .)^2 on [0, largest], tabulated once, and its affine bounds."""

    def __init__(self, envelope: Envelope, steps: Steps, largest: float, number: int = 0) -> None:
        self._envelope, self._steps, self.largest, self.round = envelope, steps, largest, number
        # Evenly spread in logarithms, for small variances, and evenly, for large ones.
        spread = np.concatenate(
            [np.geomspace(max(1e-9 * largest, 1e-300), max(largest, 1e-300), GRID), np.linspace(0.0, largest, GRID)]
        )
        self._v = np.unique(spread) if largest > 0 else np.zeros(1)
        self._u, slope = envelope.bound(steps, self._v)
        self._squares, self._tangents = self._u**2, (self._u[:-1] + slope[:-1] * np.diff(self._v)) ** 2

    def at(self, rate: float) -> AffineBound:
        """The affine bound with this rate: p = max_V U^2 - q V, never below the true maximum.

        Between two points U lies below its tangent at the left one, and the square of the tangent minus q V is convex, so it is
        largest at an end.
        """
        falling = rate * self._v
        here, there = self._squares - falling, self._tangents - falling[1:]
        return AffineBound(max(float(here.max()), float(there.max(initial=-math.inf)), 0.0), rate)

    def touching(self, variance: float) -> AffineBound:
        """The affine bound that is tight near this variance."""
        u, slope = self._envelope.bound(self._steps, np.array([min(variance, self.largest)]))
        return self.at(float(2 * u[0] * slope[0]))

    def chord(self) -> AffineBound:
        """The affine bound through both ends, best where U^2 is convex."""
        if self.largest == 0:
            return self.at(0.0)
        return self.at(float((self._u[-1] ** 2 - self._u[0] ** 2) / self.largest))
