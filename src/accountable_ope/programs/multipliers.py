"""Lower bounds of a quadratic over an intersection of quadratics, by Newton's method on the Lagrange multipliers.

min q0(theta) subject to q_j(theta) <= limit_j has the concave dual d(alpha) = inf_theta q0 + sum_j alpha_j (q_j - limit_j). Every
alpha >= 0 gives a valid bound, whether the quadratics are convex or not; a barrier keeps alpha positive and the matrix positive
definite, and along its path theta(alpha) is strictly feasible with a gap of (number of constraints) * weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..quadratic import Quadratic
from ..validation import FloatArray
from .lagrangian import Constraint, Lagrangian, lagrangian

NEWTON_STEPS = 400


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The best multipliers found, their bound, and the last point of the path (nearly feasible when the set is not empty)."""

    multipliers: FloatArray
    bound: float
    theta: FloatArray


def maximise_dual(
    objective: Quadratic,
    constraints: tuple[Constraint, ...],
    start: FloatArray,
    relative_gap: float = 1e-10,
    absolute_gap: float = 0.0,
) -> DualSolution | None:
    """The best Lagrangian lower bound of `objective` over the constraints; None when none is finite near `start`."""
    here = _first_point(objective, constraints, start)
    if here is None:
        return None
    alpha, current = here
    best = DualSolution(alpha, current.value, current.theta)
    weight = _first_weight(constraints, alpha, current)
    stalled = 0
    for _ in range(NEWTON_STEPS):
        slack = _slack(constraints, current.theta)
        gradient = slack + weight / alpha
        curvature = _curvature(constraints, current) + np.diag(weight / alpha**2)
        # In units of alpha the system is well scaled whatever the units of the constraints.
        try:
            step = alpha * np.linalg.solve(alpha[:, None] * curvature * alpha, alpha * gradient)
        except np.linalg.LinAlgError:
            break
        decrement = float(gradient @ step)
        if not decrement > 1e-20 * current.magnitude:
            weight, stalled = 0.1 * weight, stalled + 1  # what is left of this centring is rounding
            if stalled > 3:
                break
            continue
        moved = _line_search(objective, constraints, alpha, current, step, weight, decrement)
        if moved is None:
            break
        alpha, current = moved
        if current.value > best.bound:
            best = DualSolution(alpha, current.value, current.theta)
        if decrement <= 0.1 * weight:
            enough = max(relative_gap * abs(current.value), 1e-3 * relative_gap * current.magnitude, absolute_gap)
            if weight * len(constraints) <= enough:
                break
            weight *= 0.1
    return DualSolution(best.multipliers, best.bound, current.theta)


def _first_point(
    objective: Quadratic, constraints: tuple[Constraint, ...], start: FloatArray
) -> tuple[FloatArray, Lagrangian] | None:
    """The start, with the multipliers of indefinite constraints reduced until the matrix is positive definite."""
    alpha = start.copy()
    indefinite = None
    for _ in range(60):
        found = lagrangian(objective, constraints, alpha)
        if found is not None:
            return alpha, found
        if indefinite is None:
            indefinite = np.array([float(np.linalg.eigvalsh(c.quadratic.A)[0]) < 0 for c in constraints])
        if indefinite.any() and not indefinite.all():
            alpha = np.where(indefinite, alpha * 0.1, alpha)
        else:
            alpha = alpha * 10
    return None


def _first_weight(constraints: tuple[Constraint, ...], alpha: FloatArray, current: Lagrangian) -> float:
    """A barrier weight at which `alpha` is not far from the path."""
    return max(float(np.mean(alpha * np.abs(_slack(constraints, current.theta)))), 1e-300)


def _slack(constraints: tuple[Constraint, ...], theta: FloatArray) -> FloatArray:
    """q_j(theta) - limit_j, the gradient of the dual."""
    return np.array([c.quadratic(theta) - c.limit for c in constraints])


def _curvature(constraints: tuple[Constraint, ...], current: Lagrangian) -> FloatArray:
    """Minus the second derivative of the dual: 2 u_j'H^{-1}u_k with u_j = A_j theta - a_j."""
    u = np.column_stack([c.quadratic.A @ current.theta - c.quadratic.a for c in constraints])
    return np.asarray(2 * u.T @ current.solve(u))


def _line_search(
    objective: Quadratic,
    constraints: tuple[Constraint, ...],
    alpha: FloatArray,
    current: Lagrangian,
    step: FloatArray,
    weight: float,
    decrement: float,
) -> tuple[FloatArray, Lagrangian] | None:
    """Backtrack until the barrier function grows, alpha stays positive and the matrix positive definite."""
    if not np.isfinite(step).all():
        return None
    negative = step < 0
    share = min(1.0, 0.95 * float(np.min(-alpha[negative] / step[negative], initial=np.inf)))
    before = current.value + weight * float(np.log(alpha).sum())
    for _ in range(40):
        trial = alpha + share * step
        found = lagrangian(objective, constraints, trial)
        if found is not None:
            after = found.value + weight * float(np.log(trial).sum())
            if after >= before + 0.01 * share * decrement - 1e-14 * (abs(before) + found.magnitude):
                return trial, found
        share *= 0.4
    return None
