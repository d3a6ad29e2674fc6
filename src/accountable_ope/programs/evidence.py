"""What the data say about Q, as quadratic constraints of its coefficients that hold on one event.

Where U(b, V)^2 <= p + q V for an envelope U (see concentration/envelope.py), the true Q meets
    eps(theta)'(K - q D) eps(theta) <= p,        D = diag K(x_i, x_i).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..validation import FloatArray
from .ellipsoid import Reach
from .envelope import Envelope, SquaredEnvelope
from .lagrangian import Constraint, Role
from .quadratic import Quadratic


@dataclass(frozen=True, eq=False)
class Evidence:
    """One martingale of residuals: squared = ||S_n||^2 / n^2 and variance = V_n / n^2 as functions of the coefficients.

    reach:    sup sqrt(K(x, x)), what turns a range of residuals into the range of a step.
    missed:   what an unseen part of norm one can add to ||S_n|| / n and to sqrt(V_n) / n (an RKHS in coordinates), else 0.
    misfit:   what the distance between Q and the class can add to ||S_n|| / n and to sqrt(V_n) / n.
    rounding: how far rounding may move `squared`.
    """

    name: str
    squared: Quadratic
    variance: Quadratic
    count: int
    reach: float
    envelope: Envelope
    missed: tuple[float, float] = (0.0, 0.0)
    misfit: tuple[float, float] = (0.0, 0.0)
    rounding: float = 0.0

    def constraint(self, level: float, rate: float, norm_bound: float) -> Constraint:
        """||S_n||^2 / n^2 - rate V_n / n^2 <= level / n^2, widened by what is unseen and by rounding."""
        limit = level / self.count**2 + self.rounding * (1 + rate / self.count)
        if self.misfit != (0.0, 0.0):
            rate, limit = self._with_misfit(rate, limit)
        loss, hidden = self.missed
        if loss == 0 and hidden == 0:
            return Constraint(Role.LOSS, difference(self.squared, self.variance, rate), limit)
        # (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2, once for the norm of S and once for the root of V; the last variable is the
        # norm s of what is unseen.
        z = max(norm_bound * loss / math.sqrt(max(limit, 1e-300)), 1e-12)
        y = max(norm_bound * hidden / math.sqrt(max(limit / max(rate, 1e-300), 1e-300)), 1e-12)
        seen = difference(self.squared, self.variance, (1 + z) * (1 + y) * rate)
        unseen = (1 + 1 / z) * loss**2 + (1 + z) * (1 + 1 / y) * rate * hidden**2
        return Constraint(Role.LOSS, with_unseen(seen, -unseen), (1 + z) * limit)

    def _with_misfit(self, rate: float, limit: float) -> tuple[float, float]:
        """(rate, limit) for the nearest function of the class: (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2, twice."""
        loss, hidden = self.misfit
        y = max(hidden * math.sqrt(rate / limit), 1e-12) if limit > 0 else 1.0
        inner = limit + rate * (1 + 1 / y) * hidden**2
        z = max(loss / math.sqrt(inner), 1e-12) if inner > 0 else 1.0
        return (1 + z) * (1 + y) * rate, (1 + z) * inner + (1 + 1 / z) * loss**2

    def variance_goal(self) -> Quadratic:
        """Minus the variance of the seen part: its least value is the largest variance with the sign turned."""
        turned = Quadratic(-self.variance.A, -self.variance.a, -self.variance.a0)
        return turned if self.missed == (0.0, 0.0) else with_unseen(turned, 0.0)


@dataclass(frozen=True)
class Known:
    """|eps| <= residual_bound, and V_n at most these, one per evidence, at Q."""

    residual_bound: float
    variances: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class TightSet:
    """Evidence, the constraints that do not depend on it (ball, box), and what was known before any data.

    joint: constraints eps'(K - qD)eps <= p at several rates q; else q = 0 alone, a radius that follows the largest variance.
    """

    evidence: tuple[Evidence, ...]
    others: tuple[Constraint, ...]
    norm_bound: float
    range: Reach
    joint: bool

    def begin(self) -> Known:
        bound = self.range.over_ball(self.norm_bound)
        return Known(bound, tuple(one.count * (bound * one.reach) ** 2 for one in self.evidence))

    def squares(self, known: Known) -> tuple[SquaredEnvelope, ...]:
        """The squared envelopes over the range and the variances that are known."""
        return tuple(
            SquaredEnvelope(one.envelope, known.residual_bound * one.reach, largest)
            for one, largest in zip(self.evidence, known.variances, strict=True)
        )

    def constraints(self, squares: Sequence[SquaredEnvelope], rates: Sequence[FloatArray]) -> tuple[Constraint, ...]:
        """The joint constraints at these rates, then ball and box."""
        losses = [
            one.constraint(affine.level, affine.rate, self.norm_bound)
            for one, squared, own in zip(self.evidence, squares, rates, strict=True)
            for affine in map(squared.at, own.tolist())
        ]
        return (*losses, *self.others)


def difference(squared: Quadratic, variance: Quadratic, rate: float) -> Quadratic:
    """squared - rate * variance."""
    return Quadratic(squared.A - rate * variance.A, squared.a - rate * variance.a, squared.a0 - rate * variance.a0)


def with_unseen(q: Quadratic, coefficient: float) -> Quadratic:
    """One more variable, the norm of what is unseen, with this coefficient of its square."""
    m = len(q.a)
    A = np.zeros((m + 1, m + 1))
    A[:m, :m], A[m, m] = q.A, coefficient
    return Quadratic(A, np.append(q.a, 0.0), q.a0)
