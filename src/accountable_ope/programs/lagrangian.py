"""Programs with quadratic constraints, and the bound that any multipliers give.

Rounding is counted by the sizes of what is added up, before anything cancels. A matrix summed from J terms is off by at most
E, |E| <= u B entry by entry, with B = |A_0| + sum_j alpha_j |A_j| and u = (J + 2) units in the last place; so is the vector, with
e, |e| <= u b. Where little cancels, that moves the bound by |theta|'|E||theta| + 2 |e|'|theta|, as the rounding of a Cholesky
factorization does. Where much does, E may decide whether H is positive definite. Let T be the diagonal matrix of the row sums of
u B (in units where H has a diagonal of ones): E >= -T, and (h + e)'(P + T)^{-1}(h + e) <= h'P^{-1}h + e'T^{-1}e for P > 0. So
with P = H - 2T, as computed, in the place of H,

    inf_theta q0 + sum_j alpha_j (q_j - limit_j) >= constant - h'P^{-1}h - e'T^{-1}e - u |constant|

holds for the exact sums, however much cancels: where P is not positive definite, nothing is proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..validation import FloatArray
from .constraint import ActiveRows, Constraint
from .quadratic import Quadratic
from .stack import UNIT, Stack, Total

ROUNDING = 8 * UNIT
"""Relative to the size of what is added up: a generous share for the rounding of a short sum of products."""

GENEROUS = 4
"""How many times the rounding that is counted elsewhere is counted in bounds that others rest on."""

FLAT = 1e-10
"""The largest share of the linear part in directions that are left out; a verifier takes ten times as much."""

CANCELS = 4
"""Where H has no entry that cancels, scaled to a diagonal of ones, the row sums of its terms are at most m; beyond so many times
that, what cancels is counted in full."""


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


def lagrangian(
    objective: Quadratic, constraints: tuple[Constraint, ...], multipliers: FloatArray, rows: ActiveRows | None = None
) -> Lagrangian | None:
    """The Lagrangian bound at these multipliers (those of rows come last), None where the matrix is not positive definite.

    H = A_0 + sum alpha_j A_j, h = a_0 + sum alpha_j a_j: theta = H^{-1} h and
    value = a0_0 + sum alpha_j (a0_j - limit_j) - h'H^{-1}h.
    """
    return least_value(Stack.of(objective, constraints).total(multipliers, rows))


def least_value(total: Total) -> Lagrangian | None:
    """The infimum of a quadratic that was added up, None where its matrix is not positive definite."""
    # Here and not at the top: SciPy's linear algebra doubles the time of `import accountable_ope`. LAPACK itself, as the checks
    # of SciPy's own functions take longer than the work on a small matrix.
    from scipy.linalg.lapack import dpotrf, dtrtrs

    H, h = total.H, total.h
    diagonal = np.diagonal(H).copy()
    # A coordinate that appears nowhere (an action never logged, say) is harmless when the objective ignores it too.
    absent = (total.h_size == 0) & ~total.H_size.any(axis=0)
    diagonal[absent] = 1.0
    if not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
        return None
    scale = 1 / np.sqrt(diagonal)
    H = scale[:, None] * H * scale
    sums = np.maximum(scale * (total.H_size @ scale), 1.0)
    cancels = float(sums.max(initial=0.0)) > CANCELS * len(h)
    H.flat[:: len(h) + 1] = 1.0 - 2 * total.unit * sums if cancels else 1.0
    # H is symmetric: its transpose has the order of LAPACK and needs no copy.
    factor, failed = dpotrf(H.T, lower=1, overwrite_a=1)
    if failed:
        return None
    y, _ = dtrtrs(factor, scale * h, lower=1)
    theta = scale * dtrtrs(factor, y, lower=1, trans=1)[0]
    quadratic_part = float(y @ y)
    # A Cholesky factorization is exact for a matrix within about m units in the last place of H, entry by entry.
    lengths = diagonal * theta**2
    size = total.size + quadratic_part + len(h) * float(lengths.sum())
    lost = ROUNDING * size
    if cancels:
        lost += total.unit * (total.size + float(((scale * total.h_size) ** 2 / sums).sum()))
    else:
        lost += total.unit * (float(np.maximum(sums - len(h), 0.0) @ lengths) + 2 * float(total.h_size @ np.abs(theta)))
    if not math.isfinite(size + lost):
        return None
    return Lagrangian(total.constant - quadratic_part - lost, theta, size, factor, scale)


def lagrangian_value(
    objective: Quadratic, constraints: tuple[Constraint, ...], multipliers: FloatArray, tolerance: float = 1e-9
) -> tuple[float, float]:
    """(value, magnitude) of the Lagrangian bound, also on the border where the matrix is singular.

    A direction with an eigenvalue at the level of rounding counts as flat; the bound is minus infinity when the linear part
    has a share above `tolerance` in it, when an eigenvalue is truly negative, or when so much cancels that flat means nothing.
    """
    found = lagrangian(objective, constraints, multipliers)
    if found is not None:
        return found.value, found.magnitude
    total = Stack.of(objective, constraints).total(multipliers)
    H, h = total.H, total.h
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    cut = 64 * len(H) * UNIT * float(np.abs(values).max(initial=0.0))
    noise = total.unit * float(total.H_size.sum(axis=1).max(initial=0.0))
    components = vectors.T @ h
    flat = values <= cut
    if (
        noise > cut
        or (values < -cut).any()
        or float(np.abs(components[flat]).max(initial=0.0)) > tolerance * float(np.linalg.norm(h))
    ):
        return -math.inf, total.size
    quadratic_part = float(components[~flat] ** 2 @ (1 / values[~flat]))
    theta = np.abs(vectors[:, ~flat] @ (components[~flat] / values[~flat]))
    summing = total.size + float(theta @ total.H_size @ theta) + 2 * float(total.h_size @ theta)
    solving = len(h) * quadratic_part
    return total.constant - quadratic_part - ROUNDING * solving - max(ROUNDING, total.unit) * summing, summing + solving


def counted_value(objective: Quadratic, constraints: tuple[Constraint, ...], multipliers: FloatArray) -> float:
    """The same bound with rounding counted generously, term by term: what a verifier that counts it otherwise will prove too.

    With H theta = h nearly solved, no other point is lower than here by more than ||H theta - h||^2 / lambda, lambda the smallest
    eigenvalue of H.
    """
    total = Stack.of(objective, constraints).total(multipliers)
    plain, _ = lagrangian_value(objective, constraints, multipliers)
    used = total.H_size.any(axis=0) | (total.h_size > 0)
    diagonal = np.diagonal(total.H)[used]
    if not np.isfinite(plain) or not used.any() or not (diagonal > 0).all():
        return plain
    scale = 1 / np.sqrt(diagonal)
    H, S = (scale[:, None] * part[np.ix_(used, used)] * scale for part in (total.H, total.H_size))
    h, s = scale * total.h[used], scale * total.h_size[used]
    unit, m = GENEROUS * (64 + 2 * len(constraints)) * UNIT, len(h)
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    error = unit * float(S.sum(axis=1).max()) + GENEROUS * m * UNIT * float(np.trace(H))
    least, flat, lost = float(values[0]) - error, values <= error, 0.0
    if least <= 0:
        # Whether H is positive definite cannot be told from rounding. A verifier leaves out directions in which nothing changes,
        # and proves nothing where there are others, whatever a factorization says.
        along = vectors[:, flat].T @ h
        if (values < -error).any() or flat.all() or float(np.abs(along).max()) > FLAT * float(np.linalg.norm(h)):
            return -math.inf
        values, vectors, least = values[~flat], vectors[:, ~flat], float(values[~flat][0]) - error
        lost = 4 * GENEROUS * float(along @ along) / error  # it may see a little of them
        h = vectors @ (vectors.T @ h)
        if least <= 0:
            return -math.inf
    theta = vectors @ ((vectors.T @ h) / values)
    theta = theta + vectors @ ((vectors.T @ (h - H @ theta)) / values)
    length, residual = np.abs(theta), H @ theta - h
    off = np.abs(residual) + (unit + GENEROUS * m * UNIT) * (S @ length + s)
    value = total.constant - float(h @ theta) + float(theta @ residual)
    slack = (unit + GENEROUS * m * UNIT) * (total.size + 2 * float(s @ length) + float(length @ S @ length))
    return min(plain, value - slack - lost - 10 * float(off @ off) / least)
