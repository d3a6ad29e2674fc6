"""What the data say about Q: martingales of residuals, as quadratic constraints of its coefficients that hold on one event.

Where U(steps, V)^2 <= p + q V for an envelope U (see envelope.py), the true Q meets
    eps(theta)'(K - q D) eps(theta) <= p,        D = diag K(x_i, x_i).
A radius that is one number is an envelope that ignores the variance: q = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..validation import FloatArray
from .constraint import Constraint, Role
from .envelope import Envelope, Steps
from .quadratic import Quadratic

NONE = (0.0, 0.0)


@checked
@dataclass(frozen=True, eq=False)
class Evidence:
    """One martingale of residuals: squared = ||S_n||^2 / n^2 and variance = V_n / n^2 as functions of the coefficients.

    Attributes
    ----------
    name : str
    squared, variance : Quadratic
    count : int
        n.
    reach : float
        sup sqrt(K(x, x)), what turns a range of residuals into the range of a step.
    mass : float
        sum_i K(x_i, x_i), what turns a squared range of residuals into the largest V_n.
    envelope : Envelope
        U(steps, V), a bound of ||S_n|| that may follow the variance.
    scale : array (n,) or None
        sqrt(K(x_i, x_i)), what turns a residual into a step; None where the envelope has no use for it.
    missed : tuple of two floats
        What an unseen part of norm one can add to ||S_n|| / n and to sqrt(V_n) / n (an RKHS in coordinates), else 0.
    gap : tuple of two floats
        What the distance between Q and the class can add to ||S_n|| / n and to sqrt(V_n) / n.
    rounding : float
        How far rounding may move `squared`.
    """

    name: str
    squared: Quadratic
    variance: Quadratic
    count: int
    reach: float
    mass: float
    envelope: Envelope
    scale: FloatArray | None = None
    missed: tuple[float, float] = NONE
    gap: tuple[float, float] = NONE
    rounding: float = 0.0

    def __repr__(self) -> str:
        return f"Evidence({self.name}, {self.count} rows, {type(self.envelope).__name__})"

    def steps(self, residual_bound: float) -> Steps:
        """What residuals within this bound say of the steps."""
        return Steps.within(residual_bound * self.reach, residual_bound**2 * self.mass)

    def bound(self, steps: Steps, variance: float) -> float:
        """U(steps, V_n)^2 / n^2 for V_n / n^2 at most this variance."""
        u, _ = self.envelope.bound(steps, np.array([max(variance, 0.0) * self.count**2]))
        return float(u[0]) ** 2 / self.count**2

    def allowed(self, residual_bound: float, theta: FloatArray) -> float:
        """The largest loss that chance allows to this very Q, were it the true one; rounding included."""
        return self.bound(self.steps(residual_bound), self.variance(theta[: len(self.variance.a)])) + self.rounding

    def variance_constraint(self, largest: float, norm_bound: float) -> Constraint:
        """V_n / n^2 of the seen part, for V_n at the true Q at most this."""
        limit = (math.sqrt(largest) / self.count + self.gap[1]) ** 2 + self.rounding / self.count
        found = Constraint(Role.VARIANCE, self.variance, limit)
        return found if self.missed == NONE else widened(found, self.missed[1], norm_bound)

    def limit(self, level: float, rate: float) -> tuple[float, float]:
        """(rate, limit) of the nearest function of the class: (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2, twice."""
        limit = level / self.count**2 + self.rounding * (1 + rate / self.count)
        if self.gap == NONE:
            return rate, limit
        loss, hidden = self.gap
        y = max(hidden * math.sqrt(rate / limit), 1e-12) if limit > 0 else 1.0
        inner = limit + rate * (1 + 1 / y) * hidden**2
        z = max(loss / math.sqrt(inner), 1e-12) if inner > 0 else 1.0
        return (1 + z) * (1 + y) * rate, (math.sqrt(inner) + loss) ** 2

    def constraint(self, level: float, rate: float, norm_bound: float) -> Constraint:
        """||S_n||^2 / n^2 - rate V_n / n^2 <= level / n^2, widened by misfit, by rounding and by what is unseen."""
        rate, limit = self.limit(level, rate)
        if self.missed == NONE:
            return Constraint(Role.LOSS, difference(self.squared, self.variance, rate), limit)
        loss, hidden = self.missed
        # Once for the root of V, then once for the norm of S.
        y = max(norm_bound * hidden / math.sqrt(max(limit / max(rate, 1e-300), 1e-300)), 1e-12)
        z = share_of_unseen(limit, loss, norm_bound)
        seen = difference(self.squared, self.variance, (1 + z) * (1 + y) * rate)
        unseen = (1 + 1 / z) * loss**2 + (1 + z) * (1 + 1 / y) * rate * hidden**2
        return Constraint(Role.LOSS, with_unseen(seen, -unseen), (1 + z) * limit)

    def variance_goal(self) -> Quadratic:
        """Minus the variance of the seen part: its least value is the largest variance with the sign turned."""
        turned = Quadratic(-self.variance.A, -self.variance.a, -self.variance.a0)
        return turned if self.missed == NONE else with_unseen(turned, 0.0)


def difference(squared: Quadratic, variance: Quadratic, rate: float) -> Quadratic:
    """squared - rate * variance."""
    if rate == 0:
        return squared
    (A, a, a0), (B, b, b0) = squared.absolute, variance.absolute
    sizes = (A + rate * B, a + rate * b, a0 + rate * b0)
    return Quadratic(squared.A - rate * variance.A, squared.a - rate * variance.a, squared.a0 - rate * variance.a0, sizes)


def with_unseen(q: Quadratic, coefficient: float) -> Quadratic:
    """One more variable, the norm s of what is unseen, with this coefficient of its square."""
    A_size, a_size, a0_size = q.absolute
    sizes = (_bordered(A_size, abs(coefficient)), np.append(a_size, 0.0), a0_size)
    return Quadratic(_bordered(q.A, coefficient), np.append(q.a, 0.0), q.a0, sizes)


def _bordered(A: FloatArray, corner: float) -> FloatArray:
    m = len(A)
    wide = np.zeros((m + 1, m + 1))
    wide[:m, :m], wide[m, m] = A, corner
    return wide


def share_of_unseen(limit: float, missed: float, norm_bound: float) -> float:
    """z of (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2, best where the whole norm is unseen (s = R)."""
    return max(norm_bound * missed / math.sqrt(max(limit, 1e-300)), 1e-12)


def widened(constraint: Constraint, missed: float, norm_bound: float) -> Constraint:
    """q(theta) - (1 + 1/z) missed^2 s^2 <= (1 + z) limit: the constraint for the seen part of Q alone."""
    z = share_of_unseen(constraint.limit, missed, norm_bound)
    return Constraint(constraint.role, with_unseen(constraint.quadratic, -(1 + 1 / z) * missed**2), (1 + z) * constraint.limit)
