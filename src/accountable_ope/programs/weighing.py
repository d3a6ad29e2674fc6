"""The multipliers of rows, of which there may be many and few count: rows are added where they are broken.

Where a matrix is not positive semi-definite, the best multipliers lead to a distribution rather than a point: of mean theta and
covariance S = weight H^{-1}, which does not vanish with the weight of the barrier where H becomes singular. A row is then broken
where its second moment is, (f'theta - middle)^2 + f'S f > half^2, and this may be so though theta itself breaks none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..validation import BoolArray, FloatArray, IntArray
from .constraint import Constraint
from .multipliers import DualSolution, maximize_dual
from .pointwise_rows import PointwiseRows
from .quadratic import Quadratic

CANDIDATES = 10
"""Violated rows that are looked at for each one that is added."""

MOST = 64
"""The most rows that are added at once."""

NEAR = 0.15
"""A row stays in the program while it is this near its border, in units of its span, or has a weight that counts."""

SMALL = 0.02
"""A weight that counts is above this share of the largest one."""

SEARCHES = 25
"""The most times that rows are added."""

LITTLE = 1e-5
"""Two additions in a row that gain less than this share of the bound's size are the last."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """Multipliers of the quadratics and of some rows (index, weights), the bound that they prove, and where they lead.

    spread: the covariance S of what they lead to, None for a point; searches: how often rows were added.
    """

    multipliers: FloatArray
    index: IntArray
    weights: FloatArray
    bound: float
    theta: FloatArray
    spread: FloatArray | None = None
    searches: int = 0

    @classmethod
    def of(cls, dual: DualSolution, index: IntArray, searches: int = 0) -> Weighed:
        """A solution whose last multipliers are those of the rows `index`."""
        count = len(dual.multipliers) - len(index)
        return cls(dual.multipliers[:count], index, dual.multipliers[count:], dual.bound, dual.theta, dual.spread, searches)

    def only(self, chosen: BoolArray) -> Weighed:
        """Without the rows that are not chosen; the bound is no longer that of the multipliers."""
        return replace(self, index=self.index[chosen], weights=self.weights[chosen])


def weigh_rows(
    goal: Quadratic,
    constraints: tuple[Constraint, ...],
    rows: PointwiseRows,
    before: Weighed,
    *,
    gap: float = 1e-8,
    enough: float = 0.0,
    searches: int = SEARCHES,
    tolerance: float = 1e-7,
    beyond: float = math.inf,
    centering: float = 0.0,
) -> Weighed:
    """The best lower bound of a goal over quadratics and rows, from a solution with fewer rows: never a worse one.

    Rows that the last minimizer breaks are added, those that count no more are dropped, until none is broken or two additions
    gain no more than `enough`, or the bound is beyond all that is wanted.
    """
    best, here, little = before, before, 0
    for search in range(searches):
        strain = rows.strain(here.theta, here.spread, above=tolerance)
        new = worst(rows, strain, tolerance, here.index, min(len(goal.a), MOST))
        if not len(new):
            break
        index = np.concatenate([here.index, new])
        # So much of the program's size is given to a new row at first.
        size = float(here.multipliers @ np.abs([c.limit for c in constraints])) + float(
            here.weights @ rows.half_squares(here.index)
        )
        first = 1e-3 * max(size, 1e-300) / len(new) / rows.half_squares(new)
        start = np.concatenate([here.multipliers, here.weights, first])
        active = rows.active(index)
        dual = maximize_dual(
            goal,
            constraints,
            start,
            relative_gap=gap,
            absolute_gap=enough,
            rows=active,
            beyond=beyond,
            centering=centering,
        )
        if dual is None:
            break
        found = Weighed.of(dual, index, search + 1)
        shares = found.weights * rows.half_squares(index)
        near = rows.part(index).strain(found.theta, found.spread) > -NEAR
        here = found.only((shares > SMALL * shares.max()) | near)
        gained = found.bound - best.bound
        little = little + 1 if gained <= max(enough, LITTLE * (abs(found.bound) + LITTLE * size)) else 0
        if gained > 0:
            best = found
        if little > 1 or best.bound > beyond:
            break
    return best


def worst(rows: PointwiseRows, excess: FloatArray, tolerance: float, active: IntArray, most: int) -> IntArray:
    """Violated rows to add: among the worst and the others, the most different ones."""
    broken = excess > tolerance
    broken[active] = False
    order = np.flatnonzero(broken)
    order = order[np.argsort(-excess[order], kind="stable")]
    shown = CANDIDATES * most
    if len(order) > shown:
        # Denser among the worst: rows near each other are violated alike, and the worst ones alone are often one cluster.
        order = order[np.unique((np.linspace(0, 1, shown) ** 2 * (len(order) - 1)).astype(np.int64))]
    return order[spread_out(excess[order, None] * rows.features[order], most)]


def spread_out(vectors: FloatArray, count: int) -> IntArray:
    """Up to `count` rows, each with the largest part that those before it do not span: the pivots of a QR factorization."""
    from scipy.linalg import qr

    if len(vectors) <= count:
        return np.arange(len(vectors))
    pivots = qr(vectors.T, mode="r", pivoting=True, check_finite=False)[-1]
    return np.asarray(pivots[:count], dtype=np.int64)
