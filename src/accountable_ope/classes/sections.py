"""The whole RKHS of a kernel K0 through finitely many coordinates, with what they miss computed row by row.

Everything that the data ask of Q in H is an inner product with a section, a weighted sum of kernel functions:
<Q, f_i> = Q(x_i) - discount E Q(x'_i) for f_i = K0(x_i, .) - discount E K0(x'_i, .), and <Q, f_0> is the value. A pivoted
Cholesky factorization picks sections that span the others well; L holds orthonormal coordinates of all sections, and what is left
on the diagonal is the squared length of what the coordinates miss. With enough of them nothing is missed and the class is the
exact ball of H. Which sections are picked may depend on the data: the bounds on what is missed hold for any choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..kernels.kernel import Kernel, block
from ..programs.cholesky import pivoted_cholesky
from ..validation import FloatArray
from .blurred import BlurredKernel
from .bundles import Bundle, bundles_of, factors

UNIT = float(np.finfo(np.float64).eps)

ENTRIES = 2**22
"""Kernel entries that are held at once."""

STARTS_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class Sections:
    """n elements sum_b weights_b[i] K0(points_b[i], .) of the RKHS; all branches have n rows.

    states: so many columns of a point, the first ones, are its state; 0 where that is not known. Where it is, and the kernel is a
    product over states and actions, branches with the same state are evaluated together.
    normal: of which branches the actions are normal around those of the points; empty: of none.
    covariance: that of these actions (k, k).
    """

    branches: tuple[tuple[FloatArray, FloatArray], ...]
    states: int = 0
    normal: tuple[bool, ...] = ()
    covariance: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.branches[0][1])

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        """Branches that have their states in common, together."""
        return bundles_of(self.branches, self.states)

    def rows(self, index: slice | FloatArray | list[int]) -> Sections:
        return replace(self, branches=tuple((points[index], weights[index]) for points, weights in self.branches))

    def tagged(self) -> list[tuple[FloatArray, FloatArray, int]]:
        """(points, weights, 1 where the actions are normal) of every branch."""
        normal = self.normal or (False,) * len(self.branches)
        return [(*branch, int(each)) for branch, each in zip(self.branches, normal, strict=True)]

    def squared_norms(self, kernel: Kernel) -> FloatArray:
        """<f_i, f_i>, one per row."""
        if self.covariance is not None:
            blurred = BlurredKernel.of(kernel, self.covariance, self.states, self.branches[0][0].shape[1])
            pairs = [(x, y) for x in self.tagged() for y in self.tagged()]
            return np.asarray(sum(u * v * blurred.paired(x, y, s + t) for (x, u, s), (y, v, t) in pairs))
        total, parts = np.zeros(len(self)), factors(kernel, self.states, self.branches[0][0].shape[1])
        if parts is not None:
            for a, x in enumerate(self.bundles):
                for b, y in enumerate(self.bundles[: a + 1]):
                    total += (1.0 if a == b else 2.0) * x.row_products(y, *parts)
            return total
        for a, (points, u) in enumerate(self.branches):
            for b, (others, v) in enumerate(self.branches[: a + 1]):
                total += (1.0 if a == b else 2.0) * u * v * kernel.paired(points, others)
        return total


def inner_products(kernel: Kernel, left: Sections, right: Sections) -> FloatArray:
    """The matrix <left_i, right_j>, so many rows at a time that a few million kernel entries are held at once."""
    out = np.zeros((len(left), len(right)))
    if out.size == 0:
        return out
    covariance = left.covariance if left.covariance is not None else right.covariance
    if covariance is not None:
        return _over_normal_actions(
            BlurredKernel.of(kernel, covariance, right.states, right.branches[0][0].shape[1]), left, right
        )
    parts = factors(kernel, left.states, left.branches[0][0].shape[1]) if left.states == right.states else None
    if parts is None:
        step = _step(len(left.branches) * len(right.branches) * len(right))
        for start in range(0, len(left), step):
            here = slice(start, start + step)
            out[here] = _all_branches(kernel, left.rows(here), right)
        return out
    for x in left.bundles:
        for y in right.bundles:
            step = _step(x.apart * y.apart * len(right))
            for start in range(0, len(left), step):
                here = slice(start, start + step)
                out[here] += x.rows(here).products(y, *parts)
    return out


def _over_normal_actions(kernel: BlurredKernel, left: Sections, right: Sections) -> FloatArray:
    """The same where actions are normal around those of the points."""
    out = np.zeros((len(left), len(right)))
    step = _step(len(right))
    for start in range(0, len(left), step):
        here = slice(start, start + step)
        for x, u, s in left.rows(here).tagged():
            for y, v, t in right.tagged():
                out[here] += u[:, None] * kernel.block(x, y, s + t) * v
    return out


def products_with_mean(kernel: Kernel, left: Sections, right: Sections, weights: FloatArray) -> FloatArray:
    """<left_i, sum_j weights_j right_j>, without the matrix of all pairs."""
    total = np.zeros(len(left))
    for start in range(0, len(right), STARTS_AT_ONCE):
        here = slice(start, start + STARTS_AT_ONCE)
        total += inner_products(kernel, left, right.rows(here)) @ weights[here]
    return total


def _all_branches(kernel: Kernel, left: Sections, right: Sections) -> FloatArray:
    """The same for any kernel: one matrix between the points of all branches."""
    x, y = (np.concatenate([points for points, _ in each.branches]) for each in (left, right))
    u, v = (np.array([weights for _, weights in each.branches]) for each in (left, right))
    entries = block(kernel, x, y).reshape(*u.shape, *v.shape)
    return np.asarray(np.einsum("bi,bij->ij", u, np.einsum("bicj,cj->bij", entries, v)))


def _step(entries: int) -> int:
    """Rows at a time, where a row takes so many kernel entries."""
    return max(ENTRIES // max(entries, 1), 1)


@dataclass(frozen=True, eq=False)
class SectionBasis:
    """Orthonormal coordinates: the start section, pivot sections, and the triangular factor of their Gram matrix."""

    kernel: Kernel
    starts: Sections
    start_weights: FloatArray
    start_square: float
    pivots: Sections
    factor: FloatArray

    @property
    def dimension(self) -> int:
        return len(self.factor)

    def coordinates(self, sections: Sections) -> tuple[FloatArray, FloatArray]:
        """(coordinates (n, M), squared length of what they miss (n,))."""
        from scipy.linalg import solve_triangular

        products = inner_products(self.kernel, sections, self.pivots)
        if self.start_square > 0:
            with_start = products_with_mean(self.kernel, sections, self.starts, self.start_weights)
            products = np.column_stack([with_start, products])
        coordinates = solve_triangular(self.factor, products.T, lower=True, check_finite=False).T
        norms = sections.squared_norms(self.kernel)
        return coordinates, _missed(norms, coordinates)


@dataclass(frozen=True, eq=False)
class SectionFeatures:
    """The coordinates as a feature map of points."""

    basis: SectionBasis
    intercept: bool

    @property
    def dimension(self) -> int:
        return self.basis.dimension

    def __call__(self, points: FloatArray) -> FloatArray:
        return self.basis.coordinates(Sections(((points, np.ones(len(points))),), self.basis.pivots.states))[0]


@dataclass(frozen=True, eq=False)
class SectionCoordinates:
    """What the coordinates miss of every residual section and of the start section (squared), and the basis."""

    missed: FloatArray
    start_missed: float
    basis: SectionBasis


def pivoted_coordinates(
    kernel: Kernel,
    residuals: Sections,
    starts: Sections,
    start_weights: FloatArray,
    landmarks: int | None,
    tolerance: float = 1e-12,
) -> SectionCoordinates:
    """Coordinates spanned by f_0, the weighted mean of the start sections, and by residual sections f_i picked greedily.

    The first coordinate is along f_0, so nothing of the objective is missed. Then the section that is missed most is added, up to
    `landmarks` coordinates or until the largest missed square is below tolerance * the largest square.
    """
    norms = residuals.squared_norms(kernel)
    size = len(residuals) + 1 if landmarks is None else min(landmarks, len(residuals) + 1)
    start_square = float(start_weights @ products_with_mean(kernel, starts, starts, start_weights))
    first = None
    if start_square > 0:
        first = products_with_mean(kernel, residuals, starts, start_weights) / np.sqrt(start_square)
    L, chosen = pivoted_cholesky(
        norms,
        lambda pivot: inner_products(kernel, residuals, residuals.rows([pivot]))[:, 0],
        rank=size,
        floor=tolerance * float(norms.max(initial=0.0)),
        first=first,
    )
    basis = SectionBasis(kernel, starts, start_weights, start_square, residuals.rows(chosen), _factor(L[chosen], start_square))
    return SectionCoordinates(_missed(norms, L), UNIT * start_square, basis)


def _factor(pivot_rows: FloatArray, start_square: float) -> FloatArray:
    """The triangular factor of the Gram matrix of (f_0, pivots)."""
    if start_square <= 0:
        return pivot_rows
    first = np.zeros((1, pivot_rows.shape[1]))
    first[0, 0] = np.sqrt(start_square)
    return np.concatenate([first, pivot_rows])


def _missed(norms: FloatArray, coordinates: FloatArray) -> FloatArray:
    """||f||^2 - ||coordinates||^2, raised by what rounding may have hidden."""
    rounding = 4 * UNIT * (coordinates.shape[1] + 4) * norms
    return np.asarray(np.maximum(norms - np.einsum("ij,ij->i", coordinates, coordinates), 0.0) + rounding)
