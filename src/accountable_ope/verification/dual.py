"""Lagrangian bounds with their rounding counted, term by term.

Every number is carried with the size of what was added up in it, so that its rounding error is at most a few units in the last
place of that size, however much has canceled. Nothing here searches: multipliers are given, and any that are not negative prove a
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..validation import FloatArray

UNIT = float(np.finfo(np.float64).eps)
STEPS = 64
"""No entry of a form is the result of more roundings than this, beside those of the sum over the terms of a proof."""


ITERATIONS = 8
"""Of the estimate of an eigenvalue."""

FLAT = 1e-9
"""The largest share of the linear part in directions that are flat."""


@dataclass(frozen=True, eq=False)
class Form:
    """q(theta) = theta'A theta - 2 a'theta + a0, and the sizes of the terms that were added up in A, a and a0."""

    A: FloatArray
    a: FloatArray
    a0: float
    sizes: tuple[FloatArray, FloatArray, float]

    @classmethod
    def of(cls, A: FloatArray, a: FloatArray, a0: float) -> Form:
        """A form whose entries are given."""
        return cls(A, a, a0, (np.abs(A), np.abs(a), abs(a0)))

    @classmethod
    def linear(cls, c: FloatArray) -> Form:
        """-c'theta."""
        return cls.of(np.zeros((len(c), len(c))), 0.5 * c, 0.0)

    def plus(self, other: Form, factor: float = 1.0) -> Form:
        """self + factor * other."""
        size = abs(factor)
        mine, theirs = self.sizes, other.sizes
        return Form(
            self.A + factor * other.A,
            self.a + factor * other.a,
            self.a0 + factor * other.a0,
            (mine[0] + size * theirs[0], mine[1] + size * theirs[1], mine[2] + size * theirs[2]),
        )

    def minus_limit(self, limit: float) -> Form:
        """self - limit."""
        return Form(self.A, self.a, self.a0 - limit, (self.sizes[0], self.sizes[1], self.sizes[2] + abs(limit)))

    def with_variable(self, coefficient: float) -> Form:
        """One more variable, with this coefficient of its square."""
        m = len(self.a)
        wide, sizes = np.zeros((m + 1, m + 1)), np.zeros((m + 1, m + 1))
        wide[:m, :m], wide[m, m] = self.A, coefficient
        sizes[:m, :m], sizes[m, m] = self.sizes[0], abs(coefficient)
        return Form(wide, np.append(self.a, 0.0), self.a0, (sizes, np.append(self.sizes[1], 0.0), self.sizes[2]))

    def __call__(self, theta: FloatArray) -> float:
        return float(theta @ (self.A @ theta) - 2 * (self.a @ theta) + self.a0)


@dataclass(frozen=True, eq=False)
class Bound:
    """q(theta) <= limit."""

    form: Form
    limit: float


def combined(goal: Form, bounds: Sequence[Bound], multipliers: Sequence[float]) -> Form:
    """goal + sum_j alpha_j (q_j - limit_j)."""
    total = goal
    for bound, alpha in zip(bounds, multipliers, strict=True):
        if alpha:
            total = total.plus(bound.form.minus_limit(bound.limit), alpha)
    return total


def least_value(goal: Form, bounds: Sequence[Bound], multipliers: Sequence[float]) -> float:
    """A number that inf_theta goal + sum_j alpha_j (q_j - limit_j) is proved not to lie below; -inf where nothing is proved.

    With H theta = h nearly solved, for every other point
        L(theta + d) = L(theta) + 2 d'(H theta - h) + d'Hd >= L(theta) - ||H theta - h||^2 / lambda,
    lambda a lower bound of the smallest eigenvalue of H. A Cholesky factorization of H - tau I that succeeds proves
    lambda >= tau - (its own rounding) - (the rounding of H). Where none does, see `_without_flat`.
    """
    if any(not (math.isfinite(alpha) and alpha >= 0) for alpha in multipliers):
        return -math.inf
    total = combined(goal, bounds, multipliers)
    rounding = (STEPS + 2 * len(bounds)) * UNIT
    sizes, linear_sizes, constant_size = total.sizes
    if not (np.isfinite(sizes).all() and np.isfinite(linear_sizes).all() and math.isfinite(constant_size)):
        return -math.inf
    used = sizes.any(axis=0) | (linear_sizes > 0)
    if not used.any():
        return total.a0 - rounding * constant_size
    H, S = total.A[np.ix_(used, used)], sizes[np.ix_(used, used)]
    h, s = total.a[used], linear_sizes[used]
    diagonal = np.diagonal(H)
    if not (diagonal > 0).all():
        return -math.inf
    scale = np.exp2(-np.round(0.5 * np.log2(diagonal)))  # powers of two: scaling is exact
    H, S, h, s = scale[:, None] * H * scale, scale[:, None] * S * scale, scale * h, scale * s
    error = rounding * float(S.sum(axis=1).max())
    solve: Callable[[FloatArray], FloatArray]
    proved = _proved_curvature(H, error)
    if proved is not None:
        smallest, factor = proved
        solve = partial(_by_factor, factor)
    else:
        found = _without_flat(H, h, error)
        if found is None:
            return -math.inf
        smallest, basis, values = found
        h = basis @ (basis.T @ h)
        solve = partial(_by_basis, basis, values)
    theta = solve(h)
    theta = theta + solve(h - H @ theta)
    size, m = np.abs(theta), len(h)
    residual = H @ theta - h
    off = np.abs(residual) + (rounding + (m + 4) * UNIT) * (S @ size + s)
    value = total.a0 - float(h @ theta) + float(theta @ residual)
    slack = (rounding + 2 * (m + 8) * UNIT) * (constant_size + 2 * float(s @ size) + float(size @ S @ size))
    return value - slack - float(off @ off) / smallest * (1 + 1e-6)


def _proved_curvature(H: FloatArray, error: float) -> tuple[float, FloatArray] | None:
    """(a lower bound of the smallest eigenvalue of every matrix within `error` of H in norm, a factor of H); None: not proved.

    Inverse iteration estimates the eigenvalue, which proves nothing; the factorization of H - tau I does.
    """
    m, trace = len(H), float(np.trace(H))
    factorization = 2 * (m + 2) * UNIT * trace
    try:
        factor = np.asarray(np.linalg.cholesky(H), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    x, size = np.random.default_rng(0).normal(size=m), 1.0
    for _ in range(ITERATIONS):
        x = _by_factor(factor, x / np.linalg.norm(x))
        size = float(np.linalg.norm(x))
    for share in (0.9, 0.5, 0.1):
        tau = share / size
        if tau <= error + factorization:
            break
        try:
            np.linalg.cholesky(H - tau * np.eye(m))
        except np.linalg.LinAlgError:
            continue
        return tau - error - factorization, factor
    return None


def _by_factor(factor: FloatArray, right: FloatArray) -> FloatArray:
    from scipy.linalg import cho_solve  # here and not at the top: it doubles the time of the import

    return np.asarray(cho_solve((factor, True), right, check_finite=False))


def _by_basis(basis: FloatArray, values: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(basis @ ((basis.T @ right) / values))


def _without_flat(H: FloatArray, h: FloatArray, error: float) -> tuple[float, FloatArray, FloatArray] | None:
    """(smallest eigenvalue, basis, eigenvalues) of H without the directions in which it is 0 up to rounding; None: no bound.

    Such directions are those in which Q does not change at all (a constant that one-hot features span already): sums of squares
    vanish there, but for the rounding that the radius counts. The linear part must vanish there too.
    """
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    cut = error + 8 * len(H) * UNIT * float(np.abs(values).max())
    flat = values <= cut
    if (values < -cut).any() or flat.all():
        return None
    if float(np.abs(vectors[:, flat].T @ h).max(initial=0.0)) > FLAT * float(np.linalg.norm(h)):
        return None
    return float(values[~flat][0]) - cut, vectors[:, ~flat], values[~flat]


def root_of(value: float) -> float:
    """The root of a sum of squares, which rounding may have made negative."""
    return math.sqrt(max(float(value), 0.0))
