"""The largest linear value over convex quadratics and rows, by the cone solver Clarabel. It proposes; others prove.

A quadratic constraint is ||u(theta)|| <= R for an affine u. The solver works in the coordinates of an ellipsoid around the set,
in which constraints of very different sizes are well scaled.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import MissingExtra
from ..validation import FloatArray
from .lagrangian import Constraint, lagrangian
from .quadratic import Quadratic

UNIT = float(np.finfo(np.float64).eps)

CONE_TOLERANCE = 1e-9
"""What the cone solver aims at: a matter of tightness only."""


class ConeSolution(NamedTuple):
    """A maximizer, the multipliers of ||u||^2 <= R^2 for every quadratic, and those of the rows.

    empty: the solver found the program infeasible; then the multipliers may prove that, and theta says nothing.
    """

    theta: FloatArray
    multipliers: FloatArray
    row_multipliers: FloatArray
    empty: bool


def maximize_over_cones(
    c: FloatArray,
    constraints: tuple[Constraint, ...],
    rows: tuple[FloatArray, FloatArray],
    ellipsoid: tuple[tuple[Constraint, ...], FloatArray],
    steps: int,
) -> ConeSolution | None:
    """max c'theta over the quadratics, all convex, and the rows f'theta <= limit, given as (rows f, limits).

    ellipsoid: constraints, and multipliers that combine them to an ellipsoid around the set.
    """
    from scipy.sparse import csc_matrix

    clarabel = _clarabel()
    frame = _frame(c, *ellipsoid)
    if frame is None:
        return None
    cones = [_cone(constraint, frame) for constraint in constraints]
    features, limits = rows
    blocks, right, shapes = [], [], []
    for cone in cones:
        blocks += [np.zeros((1, len(c))), -cone.matrix]
        right += [np.ones(1), -cone.shift]
        shapes.append(clarabel.SecondOrderConeT(1 + len(cone.shift)))
    blocks.append(features @ frame.basis)
    right.append(limits - features @ frame.center)
    shapes.append(clarabel.NonnegativeConeT(len(limits)))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, steps
    settings.direct_solve_method = "qdldl"  # one thread: the fastest of its methods here, and the same answer everywhere
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CONE_TOLERANCE
    nothing = csc_matrix((len(c), len(c)))
    solver = clarabel.DefaultSolver(nothing, -frame.up, csc_matrix(np.vstack(blocks)), np.concatenate(right), shapes, settings)
    solution = solver.solve()
    y, z, empty = np.array(solution.x), np.array(solution.z), "PrimalInfeasible" in str(solution.status)
    if not (np.isfinite(z).all() and (empty or np.isfinite(y).all())):
        return None
    z = frame.rise * np.maximum(z, 0.0)
    heads = np.cumsum([0] + [1 + len(cone.shift) for cone in cones])
    multipliers = np.array([0.5 * z[head] / cone.radius**2 for head, cone in zip(heads[:-1], cones, strict=True)])
    return ConeSolution(frame.center + frame.basis @ y, multipliers, z[heads[-1] :], empty)


class _Frame(NamedTuple):
    """theta = center + basis y, where the set lies in the unit ball of y. Along the unit vector `up` c'theta grows by `rise`."""

    center: FloatArray
    basis: FloatArray
    up: FloatArray
    rise: float


def _frame(c: FloatArray, program: tuple[Constraint, ...], multipliers: FloatArray) -> _Frame | None:
    """Coordinates in which the constraints are well scaled: those of the ellipsoid sum_j alpha_j (q_j - limit_j) <= 0.

    With H = sum_j alpha_j A_j it is (theta - center)'H (theta - center) <= radius^2 = sum_j alpha_j (limit_j - q_j(center)).
    """
    from scipy.linalg import solve_triangular

    found = lagrangian(Quadratic.linear(c), program, multipliers)
    if found is None:
        return None
    center = found.theta - 0.5 * found.solve(c)
    room = np.array([constraint.limit - constraint.quadratic(center) for constraint in program])
    square = float(multipliers @ room)
    if not (math.isfinite(square) and square > 0):
        return None
    basis = math.sqrt(square) * solve_triangular(found.factor, np.diag(found.scale), lower=True, check_finite=False).T
    rise = float(np.linalg.norm(basis.T @ c))
    return _Frame(center, basis, basis.T @ c / rise, rise)


class _Cone(NamedTuple):
    """||matrix y - shift|| <= 1, the constraint in the coordinates of a frame divided by its radius."""

    matrix: FloatArray
    shift: FloatArray
    radius: float


def _cone(constraint: Constraint, frame: _Frame) -> _Cone:
    """Eigenvalues at the level of rounding are dropped and the limit raised by what that may change inside the unit ball."""
    q, center, basis = constraint.quadratic, frame.center, frame.basis
    A = basis.T @ q.A @ basis
    a = basis.T @ (q.a - q.A @ center)
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    kept = values > 64 * len(values) * UNIT * float(np.abs(values).max(initial=0.0))
    part = vectors.T @ a
    root = np.sqrt(values[kept])
    shift = part[kept] / root
    raised = 2 * float(np.linalg.norm(part[~kept])) + max(0.0, -float(values.min(initial=0.0)))
    square = float(shift @ shift)
    room = constraint.limit - q(center) + square + raised
    radius = math.sqrt(max(room, 64 * UNIT * (abs(constraint.limit) + abs(q(center)) + square), 1e-300))
    return _Cone((vectors[:, kept] * root).T / radius, shift / radius, radius)


def _clarabel() -> Any:
    try:
        return importlib.import_module("clarabel")
    except ImportError as error:
        raise MissingExtra('The pointwise value box needs Clarabel: pip install "accountable-ope[pointwise]".') from error
