"""Lower bounds of a quadratic over an intersection of quadratics, by Newton's method on the Lagrange multipliers.

min q0(theta) subject to q_j(theta) <= limit_j has the concave dual d(alpha) = inf_theta q0 + sum_j alpha_j (q_j - limit_j). Every
alpha >= 0 gives a valid bound, whether the quadratics are convex or not. A barrier keeps alpha positive; where a quadratic is not
convex, log det of the matrix keeps that positive definite (the dual is then a small semidefinite program). On the path of the
barrier the gap is weight * (number of constraints, plus the dimension where the determinant counts).

Beside quadratics there may be rows (f'theta - middle)^2 <= half^2, quadratics of rank one: all of their derivatives come from the
matrix of the f'H^{-1}g, so that hundreds of them cost little more than the factorization.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray
from .cholesky import pivoted_cholesky
from .constraint import ActiveRows, Constraint, Role
from .lagrangian import Lagrangian, least_value
from .primal_dual import propose_multipliers
from .quadratic import Quadratic
from .stack import Stack

NEWTON_STEPS = 400

ENDLESS = 1e60
"""Multipliers that have grown so much prove whatever they will: over an empty set they grow without end."""

SMALL = 60
"""Up to this dimension the number of calls counts, beyond it the number of products."""


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The best multipliers found, their bound, and the last point of the path (nearly feasible when the set is not empty).

    Multipliers of rows come last. spread: where a matrix is not positive semi-definite, weight * H^{-1} at the end of the path,
    the covariance of the distribution that the multipliers lead to, None where they lead to a point.
    """

    multipliers: FloatArray
    bound: float
    theta: FloatArray
    spread: FloatArray | None = None


@checked
def maximize_dual(
    objective: Quadratic,
    constraints: tuple[Constraint, ...],
    start: FloatArray,
    relative_gap: float = 1e-10,
    absolute_gap: float = 0.0,
    rows: ActiveRows | None = None,
    beyond: float = math.inf,
    centering: float = 0.25,
) -> DualSolution | None:
    """The best Lagrangian lower bound of `objective` over the constraints.

    Parameters
    ----------
    objective : Quadratic
        What is to be small; `Quadratic.linear(c)` for the largest c'theta.
    constraints : tuple of Constraint
        Convex or not.
    start : array
        Multipliers to start from, one per constraint, then one per row.
    relative_gap, absolute_gap : float
        When to stop: the bound could improve by no more than this.
    rows : ActiveRows, optional
        More constraints, of rank one.
    beyond : float
        A bound above this proves all that is wanted: over an empty set it would grow without end.
    centering : float
        How near the path is enough, in units of the gap: the nearer, the better multipliers tell which rows count.

    Returns
    -------
    DualSolution or None
        None when no bound is finite near `start`.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import Quadratic, ball, maximize_dual
    >>> disk = ball(np.array([True, True]), 2.0)
    >>> found = maximize_dual(Quadratic.linear(np.array([3.0, 4.0])), (disk,), np.array([1.0]))
    >>> round(-found.bound, 6)  # the largest 3 theta_1 + 4 theta_2
    10.0
    """
    wanted = len(constraints) + (0 if rows is None else len(rows))
    if not constraints or wanted != len(start):
        raise InvalidInput(f"`start` must have a multiplier per constraint ({wanted}, at least 1). Got {len(start)}.")
    # Over an empty set the multipliers grow without end; what overflows is not finite, and not taken.
    enough = _Enough(relative_gap, absolute_gap, beyond, centering)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        program = _Program(objective, constraints, rows)
        return _at_once(program, start, enough) or _climb(program, start, enough)


class _Enough(NamedTuple):
    """When a bound is good enough."""

    relative_gap: float
    absolute_gap: float
    beyond: float
    centering: float

    def gap(self, current: Lagrangian) -> float:
        """By how much it may be off."""
        relative = self.relative_gap * max(abs(current.value), 1e-3 * current.magnitude)
        return max(relative, self.absolute_gap)


@dataclass(frozen=True, eq=False)
class _Program:
    """min objective over the constraints and rows."""

    objective: Quadratic
    constraints: tuple[Constraint, ...]
    rows: ActiveRows | None

    def __len__(self) -> int:
        return len(self.constraints) + (0 if self.rows is None else len(self.rows))

    @cached_property
    def stack(self) -> Stack:
        return Stack.of(self.objective, self.constraints)

    def at(self, alpha: FloatArray) -> Lagrangian | None:
        return least_value(self.stack.total(alpha, self.rows))

    def convex(self) -> bool:
        """Whether every matrix is positive semi-definite, up to rounding."""
        return all(q.convex for q in (self.objective, *(c.quadratic for c in self.constraints)))

    def slack(self, theta: FloatArray) -> FloatArray:
        """q_j(theta) - limit_j, the gradient of the dual."""
        slack = self.stack.slack(theta, self.stack.slopes(theta))
        if self.rows is None:
            return slack
        return np.append(slack, (self.rows.features @ theta - self.rows.middle) ** 2 - self.rows.half**2)

    def newton(self, alpha: FloatArray, current: Lagrangian, weight: float, span: _Span | None) -> tuple[FloatArray, FloatArray]:
        """The gradient of the barrier function, and minus its second derivative.

        That of the dual is 2 u_j'H^{-1}u_k with u_j = A_j theta - a_j. For a row u = (f'theta - middle) f, so that all that rows
        need, here and for the determinant, is H^{-1}f and f'H^{-1}g.
        """
        u = self.stack.slopes(current.theta)
        gradient, curvature = self.stack.slack(current.theta, u), np.asarray(2 * u @ current.solve(u.T))
        if span is not None:
            first, second = span.terms(current)
            gradient, curvature = gradient + weight * first, curvature + weight * second
        if self.rows is not None:
            features = self.rows.features
            solved = current.solve(features.T)
            between, away = features @ solved, features @ current.theta - self.rows.middle
            slack, across, inner = away**2 - self.rows.half**2, 2 * (u @ solved) * away, 2 * between * away[:, None] * away
            if span is not None:
                slack, across = slack + weight * np.diagonal(between), across + weight * span.beside(solved)
                inner += weight * between**2
            gradient, curvature = np.append(gradient, slack), _bordered(curvature, across, inner)
        curvature.flat[:: len(alpha) + 1] += weight / alpha**2
        return gradient + weight / alpha, curvature


def _bordered(corner: FloatArray, across: FloatArray, inner: FloatArray) -> FloatArray:
    """[[corner, across], [across', inner]]; `np.block` takes as long as all else on small matrices."""
    count = len(corner)
    whole = np.empty((count + len(inner), count + len(inner)))
    whole[:count, :count], whole[count:, count:] = corner, inner
    whole[:count, count:], whole[count:, :count] = across, across.T
    return whole


def _at_once(program: _Program, start: FloatArray, enough: _Enough) -> DualSolution | None:
    """By the quicker method, where all is convex, nothing but the best bound is wanted, and it arrives."""
    if program.rows is not None or math.isfinite(enough.beyond) or not program.convex():
        return None
    proposed = propose_multipliers(program.stack, start, enough.relative_gap, enough.absolute_gap)
    if proposed is None:
        return None
    counted = program.at(proposed.multipliers)
    if counted is None or proposed.bound - counted.value > enough.gap(counted):
        return None
    return DualSolution(proposed.multipliers, counted.value, counted.theta)


def _climb(program: _Program, start: FloatArray, enough: _Enough) -> DualSolution | None:
    here = _first_point(program, start)
    if here is None:
        return None
    alpha, current = here
    best = DualSolution(alpha, current.value, current.theta)
    weight = max(float(np.mean(alpha * np.abs(program.slack(current.theta)))), 1e-300)  # at which alpha is not far from the path
    alpha, current = _lifted(program, alpha, current, weight)
    determinant = not program.convex()
    span = _Span(program.constraints) if determinant else None
    degree = len(program) + (len(program.objective.a) if determinant else 0)
    near, stalled = max(1.0, enough.centering * degree), 0
    for _ in range(NEWTON_STEPS):
        if best.bound > enough.beyond:
            break
        if float(alpha.min()) < 1e-150 or float(alpha.max()) > ENDLESS:
            break  # a multiplier that counts for nothing any more, and whose square would underflow; or one too large to square
        gradient, curvature = program.newton(alpha, current, weight, span)
        # In units of alpha the system is well scaled whatever the units of the constraints.
        turned = _solved(alpha[:, None] * curvature * alpha, alpha * gradient)
        if turned is None:
            break
        step = alpha * turned
        decrement = float(gradient @ step)
        if not decrement > 1e-20 * current.magnitude:
            weight, stalled = 0.1 * weight, stalled + 1  # what is left of this centering is rounding
            if stalled > 3:
                break
            continue
        moved = _line_search(program, alpha, current, step, weight, decrement, determinant)
        if moved is None:
            break
        alpha, current = moved
        if current.value > best.bound:
            best = DualSolution(alpha, current.value, current.theta)
        if decrement <= near * weight:
            if weight * degree <= enough.gap(current):
                break
            weight *= 0.1
    return DualSolution(best.multipliers, best.bound, current.theta, weight * current.inverse() if determinant else None)


def _first_point(program: _Program, start: FloatArray) -> tuple[FloatArray, Lagrangian] | None:
    """The start, with the multipliers of indefinite constraints reduced (and, against an objective that is not convex, the others
    raised) until the matrix is positive definite. Losses are reduced most: a box may be all that bounds a constant."""
    alpha, factors = start.copy(), None
    for _ in range(60):
        found = program.at(alpha)
        if found is not None:
            return alpha, found
        if factors is None:
            indefinite = np.zeros(len(program), dtype=bool)
            indefinite[: len(program.constraints)] = [c.quadratic.eigenvalues[0] < 0 for c in program.constraints]
            growth = 10.0 if indefinite.all() or not indefinite.any() or program.objective.eigenvalues[0] < 0 else 1.0
            factors = np.full(len(program), growth)
            if not indefinite.all():
                factors[indefinite] = 0.5
                losses = [c.role is Role.LOSS for c in program.constraints]
                factors[: len(losses)][indefinite[: len(losses)] & np.array(losses)] = 0.1
        alpha = alpha * factors
    return None


def _lifted(program: _Program, alpha: FloatArray, current: Lagrangian, weight: float) -> tuple[FloatArray, Lagrangian]:
    """Multipliers of constraints that are met, raised to weight / |slack|, where the path has them: from far below it Newton's
    method takes a step for every doubling."""
    slack = program.slack(current.theta)
    lifted = np.where(slack < 0, np.maximum(alpha, weight / np.maximum(-slack, 1e-300)), alpha)
    found = program.at(lifted)
    return (alpha, current) if found is None else (lifted, found)


class _Span:
    """The matrices of the constraints as combinations of a few of them: joint constraints differ in a rate only.

    It serves the steps of the iteration, which any error makes longer but not wrong.
    """

    def __init__(self, constraints: tuple[Constraint, ...]) -> None:
        matrices = [c.quadratic.A for c in constraints]
        sizes = np.array([max(float(np.linalg.norm(A)), 1e-300) for A in matrices])
        flat = np.array([A.ravel() / size for A, size in zip(matrices, sizes, strict=True)])
        gram = flat @ flat.T
        _, chosen = pivoted_cholesky(np.diagonal(gram), lambda j: gram[:, j], rank=len(gram), floor=1e-10)
        weights = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], gram[chosen], rcond=None)[0].T
        self._weights = weights * sizes[:, None] / sizes[chosen]
        self._matrices = [matrices[j] for j in chosen]
        self._diagonals = [np.diagonal(A) if not (A - np.diag(np.diagonal(A))).any() else None for A in self._matrices]
        self._beside = np.concatenate(self._matrices, axis=1)

    def terms(self, current: Lagrangian) -> tuple[FloatArray, FloatArray]:
        """tr(H^{-1}A_j), and tr(H^{-1}A_j H^{-1}A_k)."""
        m, count = len(self._beside), len(self._matrices)
        if m <= SMALL:  # one call is all that counts
            turned = current.solve(self._beside).reshape(m, count, m).transpose(1, 0, 2)
        else:
            inverse = current.inverse()
            products = zip(self._matrices, self._diagonals, strict=True)
            turned = np.array([inverse @ A if diagonal is None else inverse * diagonal for A, diagonal in products])
        across = turned.reshape(count, -1) @ turned.transpose(0, 2, 1).reshape(count, -1).T
        return self._weights @ np.trace(turned, axis1=1, axis2=2), self._weights @ across @ self._weights.T

    def beside(self, solved: FloatArray) -> FloatArray:
        """tr(H^{-1}A_j H^{-1} f f') = f'H^{-1}A_j H^{-1}f for rows f, solved = H^{-1}f (m, rows)."""
        products = zip(self._matrices, self._diagonals, strict=True)
        turned = [A @ solved if diagonal is None else diagonal[:, None] * solved for A, diagonal in products]
        return np.asarray(self._weights @ np.array([np.einsum("mi,mi->i", each, solved) for each in turned]))


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """The solution of a system with a matrix that is positive definite but for rounding, None where there is none."""
    from scipy.linalg.lapack import dposv

    _, solution, failed = dposv(matrix, right, lower=1)
    if not failed:
        return np.asarray(solution)
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _line_search(
    program: _Program,
    alpha: FloatArray,
    current: Lagrangian,
    step: FloatArray,
    weight: float,
    decrement: float,
    determinant: bool,
) -> tuple[FloatArray, Lagrangian] | None:
    """Backtrack until the barrier function grows, alpha stays positive and the matrix positive definite."""
    if not np.isfinite(step).all():
        return None
    negative = step < 0
    share = min(1.0, 0.95 * float(np.min(-alpha[negative] / step[negative], initial=np.inf)))
    before = current.value + weight * _barrier(alpha, current, determinant)
    for _ in range(40):
        trial = alpha + share * step
        found = program.at(trial)
        if found is not None:
            after = found.value + weight * _barrier(trial, found, determinant)
            if after >= before + 0.01 * share * decrement - 1e-14 * (abs(before) + found.magnitude):
                return trial, found
        share *= 0.4
    return None


def _barrier(alpha: FloatArray, current: Lagrangian, determinant: bool) -> float:
    """sum_j log alpha_j, and log det H where that counts."""
    total = float(np.log(alpha).sum())
    return total + current.log_determinant if determinant else total
