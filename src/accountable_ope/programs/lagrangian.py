"""Programs with quadratic constraints, and the bound that any multipliers give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray
from .quadratic import Quadratic

ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative to the size of what is added up: a generous share for the rounding of a short sum of products."""


class Role(Enum):
    """What a constraint says."""

    LOSS = "loss"
    BALL = "ball"
    BOX = "box"


@checked
@dataclass(frozen=True, eq=False)
class Constraint:
    """q(theta) <= limit.

    Attributes
    ----------
    role : Role
        What it says: loss, ball or box.
    quadratic : Quadratic
        q.
    limit : float
    """

    role: Role
    quadratic: Quadratic
    limit: float


@checked
def ball(penalized: BoolArray, radius: float) -> Constraint:
    """||theta||^2 <= radius^2 over the penalized coordinates.

    Parameters
    ----------
    penalized : array (m,) of bool
    radius : float

    Returns
    -------
    Constraint

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import ball
    >>> around = ball(np.array([True, False]), 2.0)
    >>> around.limit, around.quadratic(np.array([1.0, 7.0]))
    (4.0, 1.0)
    """
    if abs(radius) > math.sqrt(np.finfo(np.float64).max):
        raise InvalidInput(f"`radius` must have a square that does not overflow. Got {radius!r}.")
    return Constraint(Role.BALL, Quadratic(np.diag(penalized.astype(float)), np.zeros(len(penalized)), 0.0), radius**2)


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """inf_theta q0(theta) + sum_j alpha_j (q_j(theta) - limit_j), where it is finite: a lower bound of q0 over the set.

    value is the infimum less what rounding may have added to it, so it is a lower bound as computed; theta attains it, magnitude
    is the size of the terms that were added up.
    """

    value: float
    theta: FloatArray
    magnitude: float
    factor: FloatArray
    scale: FloatArray

    @property
    def log_determinant(self) -> float:
        """log det H."""
        return 2 * float(np.log(np.diagonal(self.factor)).sum() - np.log(self.scale).sum())

    def inverse(self) -> FloatArray:
        """H^{-1}."""
        from scipy.linalg.lapack import dpotri

        lower, _ = dpotri(self.factor, lower=1)
        whole = np.tril(lower) + np.tril(lower, -1).T
        return np.asarray(self.scale[:, None] * whole * self.scale)

    def solve(self, right: FloatArray) -> FloatArray:
        """H^{-1} right, H = A_0 + sum_j alpha_j A_j."""
        from scipy.linalg.lapack import dpotrs

        solved, _ = dpotrs(self.factor, (self.scale * right.T).T, lower=1)
        return np.asarray((self.scale * solved.T).T)


def lagrangian(objective: Quadratic, constraints: tuple[Constraint, ...], multipliers: FloatArray) -> Lagrangian | None:
    """The Lagrangian bound at these multipliers, None where the matrix is not positive definite.

    H = A_0 + sum alpha_j A_j, h = a_0 + sum alpha_j a_j: theta = H^{-1} h and
    value = a0_0 + sum alpha_j (a0_j - limit_j) - h'H^{-1}h.
    """
    # Here and not at the top: SciPy's linear algebra doubles the time of `import accountable_ope`. LAPACK itself, as the checks
    # of SciPy's own functions take longer than the work on a small matrix.
    from scipy.linalg.lapack import dpotrf, dtrtrs

    H, h, constant, magnitude = _combine(objective, constraints, multipliers)
    diagonal = np.diagonal(H).copy()
    # A coordinate that appears nowhere (an action never logged, say) is harmless when the objective ignores it too.
    absent = (diagonal == 0) & (h == 0) & ~H.any(axis=0)
    diagonal[absent] = 1.0
    if not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
        return None
    scale = 1 / np.sqrt(diagonal)
    H = scale[:, None] * H * scale
    H[np.diag_indices_from(H)] = 1.0
    # H is symmetric: its transpose has the order of LAPACK and needs no copy.
    factor, failed = dpotrf(H.T, lower=1, overwrite_a=1)
    if failed:
        return None
    y, _ = dtrtrs(factor, scale * h, lower=1)
    theta = scale * dtrtrs(factor, y, lower=1, trans=1)[0]
    quadratic_part = float(y @ y)
    # A Cholesky factorization is exact for a matrix within about m units in the last place of H, entry by entry.
    size = magnitude + quadratic_part + len(h) * float(diagonal @ theta**2)
    if not math.isfinite(size):
        return None
    return Lagrangian(constant - quadratic_part - ROUNDING * size, theta, size, factor, scale)


def lagrangian_value(
    objective: Quadratic, constraints: tuple[Constraint, ...], multipliers: FloatArray, tolerance: float = 1e-9
) -> tuple[float, float]:
    """(value, magnitude) of the Lagrangian bound, also on the border where the matrix is singular.

    A direction with an eigenvalue at the level of rounding counts as flat; the bound is minus infinity when the linear part
    has a share above `tolerance` in it, or when an eigenvalue is truly negative.
    """
    found = lagrangian(objective, constraints, multipliers)
    if found is not None:
        return found.value, found.magnitude
    H, h, constant, magnitude = _combine(objective, constraints, multipliers)
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    cut = 64 * len(H) * np.finfo(np.float64).eps * float(np.abs(values).max(initial=0.0))
    components = vectors.T @ h
    flat = values <= cut
    if (values < -cut).any() or float(np.abs(components[flat]).max(initial=0.0)) > tolerance * float(np.linalg.norm(h)):
        return -math.inf, magnitude
    quadratic_part = float(components[~flat] ** 2 @ (1 / values[~flat]))
    size = magnitude + len(h) * quadratic_part
    return constant - quadratic_part - ROUNDING * size, size


def _combine(
    objective: Quadratic, constraints: tuple[Constraint, ...], multipliers: FloatArray
) -> tuple[FloatArray, FloatArray, float, float]:
    """H, h, the constant term and the size of what was added up in it."""
    H = objective.A.copy()
    h = objective.a.copy()
    constant, magnitude = objective.a0, abs(objective.a0)
    for constraint, alpha in zip(constraints, multipliers.tolist(), strict=True):
        if alpha == 0:
            continue
        q = constraint.quadratic
        H += alpha * q.A
        h += alpha * q.a
        constant += alpha * (q.a0 - constraint.limit)
        magnitude += alpha * (abs(q.a0) + abs(constraint.limit))
    return H, h, constant, magnitude
