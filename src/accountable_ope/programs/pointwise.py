"""Boxes at every one of many points, low_i <= f_i'theta <= high_i, beside quadratic constraints.

Every row is a quadratic of its own, (f_i'theta - middle_i)^2 <= half_i^2 with middle, half = (low + high) / 2, (high - low) / 2,
and has a multiplier w_i >= 0 of its own. A row that the maximizer does not break has the multiplier 0, so rows are added where
they are broken until none is: then no multipliers of all rows prove more. This is at least what linear multipliers mu+ and mu-
prove: with w_i = (mu+_i + mu-_i) / (high_i - low_i), at every theta,

    w_i (f_i'theta - low_i)(f_i'theta - high_i) >= mu+_i (f_i'theta - high_i) + mu-_i (low_i - f_i'theta).

What is reported is the Lagrangian value of an ordinary program of quadratics, in which the rows are one constraint,

    sum_i w_i (f_i'theta - middle_i)^2 <= sum_i w_i half_i^2,

a box averaged with these weights. Where a search stops early the bound is wider, not wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, IntArray, refuse_non_finite, whole
from .certificate import Certificate, CertificateCheck, SolveStatus
from .lagrangian import ROUNDING, ActiveRows, Constraint, Role, RowsOrigin, lagrangian, lagrangian_value
from .multipliers import maximize_dual
from .quadratic import Quadratic

CANDIDATES = 10
"""Violated rows that are looked at for each one that is added."""

MOST = 64
"""The most rows that are added at once."""

NEAR = 1e-2
"""A row stays in the program while it is this near its border, in units of its span, or has a weight that counts."""

SMALL = 1e-6
"""A weight that counts is above this share of the largest one."""

SEARCHES = 25
"""The most times that rows are added."""

LITTLE = 1e-5
"""Two additions in a row that gain less than this share of the bound's size are the last."""


@checked
@dataclass(frozen=True, eq=False)
class PointwiseRows:
    """low_i <= f_i'theta <= high_i for every row f_i.

    Parameters
    ----------
    features : array (N, m)
        The rows f_i.
    low, high : array (N,)

    Raises
    ------
    InvalidInput
        Where shapes do not fit, a number is not finite, or `low` is not below `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import PointwiseRows
    >>> rows = PointwiseRows.within(np.array([[1.0, 0.0], [0.0, 1.0]]), low=0.0, high=2.0)
    >>> rows.violations(np.array([3.0, 1.0])).tolist()
    [0.5, -0.5, -1.5, -0.5]
    """

    features: FloatArray
    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not self.low.shape == self.high.shape == (len(self.features),):
            raise InvalidInput(
                "`features` must be (N, m), `low` and `high` (N,). "
                f"Got shapes {self.features.shape}, {self.low.shape} and {self.high.shape}."
            )
        for name in ("features", "low", "high"):
            refuse_non_finite(getattr(self, name), name)
        wrong = ~(self.low < self.high)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidInput(f"`low` must be below `high` in every row. Got {self.low[row]} and {self.high[row]} in row {row}.")

    @classmethod
    def known(cls, features: FloatArray, low: FloatArray, high: FloatArray) -> PointwiseRows:
        """Rows that were checked before: many, and looked at again and again."""
        rows = object.__new__(cls)
        for name, value in (("features", features), ("low", low), ("high", high)):
            object.__setattr__(rows, name, value)
        return rows

    @classmethod
    def within(cls, features: FloatArray, low: float, high: float, offsets: FloatArray | None = None) -> PointwiseRows:
        """low <= offset_i + f_i'theta <= high; offsets are the values of a Q at which the class is anchored."""
        shift = np.zeros(len(features)) if offsets is None else offsets
        return cls(features, low - shift, high - shift)

    def violations(self, theta: FloatArray) -> FloatArray:
        """How far each row is above its upper limit, then how far each is below its lower one, in units of its span (2 N,)."""
        values, span = self.features @ theta, self.high - self.low
        return np.concatenate([(values - self.high) / span, (self.low - values) / span])

    def active(self, index: IntArray) -> ActiveRows:
        """Some of the rows, each a quadratic of its own."""
        low, high = self.low[index], self.high[index]
        return ActiveRows(self.features[index], 0.5 * (low + high), 0.5 * (high - low))

    def averaged(self, index: IntArray, weights: FloatArray) -> Constraint:
        """The box averaged over some rows; its limit is raised by what rounding may have taken from it."""
        features, low, high = self.features[index], self.low[index], self.high[index]
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        weighted = weights[:, None] * features
        constant, limit = float(weights @ middle**2), float(weights @ half**2)
        sizes = np.abs(weighted)
        magnitudes = (np.abs(features).T @ sizes, np.abs(middle) @ sizes, float(weights @ (np.abs(middle) + np.abs(low)) ** 2))
        quadratic = Quadratic(features.T @ weighted, middle @ weighted, constant, magnitudes)
        origin = RowsOrigin(features, low, high, weights)
        return Constraint(Role.BOX, quadratic, limit + ROUNDING * (constant + limit), origin)


@checked
@dataclass(frozen=True, eq=False)
class PointwiseBound:
    """A bound with the pointwise box, and how it was found.

    Attributes
    ----------
    certificate : Certificate
        Proves the bound; its last constraint is the box averaged over `rows`, unless there are none.
    rows, weights : array
        The rows that count, and their weights, which sum to one. At most one side of a row is active: the multiplier of that side
        is weight * (high - low) * (multiplier of the averaged box).
    theta : array (m,) or None
        Where the last round ended, the maximizer as far as the rounds went; None where there is none.
    rounds : int
        How often rows were added.
    violated_left : int
        How many rows theta breaks by more than the tolerance: the bound may be wider for want of them.
    largest_violation : float
        In units of the span of the row, negative when every row has room.
    """

    certificate: Certificate
    rows: IntArray
    weights: FloatArray
    theta: FloatArray | None
    rounds: int
    violated_left: int
    largest_violation: float

    @property
    def bound(self) -> float:
        """No objective'theta of the set is larger; where the set is empty, the least loss that proves it."""
        return self.certificate.bound

    @property
    def status(self) -> SolveStatus:
        return self.certificate.status

    @property
    def multipliers(self) -> FloatArray:
        """Those of the quadratics, without that of the averaged box."""
        multipliers = self.certificate.multipliers
        return multipliers[:-1] if len(self.rows) else multipliers

    def check(self, rows: PointwiseRows, tolerance: float = 1e-6) -> CertificateCheck:
        """Compute the bound again from the quadratics, the rows and the multipliers alone."""
        if len(self.rows):
            if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
                return CertificateCheck(False, math.nan, "the weight of a row is negative or not finite")
            stored, again = self.certificate.constraints[-1], rows.averaged(self.rows, self.weights)
            kept, rebuilt = stored.quadratic, again.quadratic
            same = np.array_equal(kept.A, rebuilt.A) and np.array_equal(kept.a, rebuilt.a) and kept.a0 == rebuilt.a0
            if not (same and stored.limit == again.limit):
                return CertificateCheck(False, math.nan, "the averaged box is not that of the rows and their weights")
        return self.certificate.check(tolerance)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Multipliers of the quadratics and of some rows (index, weights), the bound that they prove, and where they lead.

    searches: how often rows were added.
    """

    multipliers: FloatArray
    index: IntArray
    weights: FloatArray
    bound: float
    theta: FloatArray
    searches: int


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
) -> Weighed:
    """The best lower bound of a goal over quadratics and rows, from a solution with fewer rows: never a worse one.

    Rows that the last minimizer breaks are added, those that count no more are dropped, until none is broken or two additions
    gain no more than `enough`.
    """
    best, here, little = before, before, 0
    for search in range(searches):
        new = worst(rows, rows.violations(here.theta), tolerance, here.index, min(len(goal.a), MOST))
        if not len(new):
            break
        index = np.concatenate([here.index, new])
        active = rows.active(index)
        # So much of the program's size is given to a new row at first.
        size = float(here.multipliers @ np.abs([c.limit for c in constraints])) + float(here.weights @ _squares(rows, here.index))
        first = 1e-3 * max(size, 1e-300) / len(new) / _squares(rows, new)
        dual = maximize_dual(
            goal,
            constraints,
            np.concatenate([here.multipliers, here.weights, first]),
            relative_gap=gap,
            absolute_gap=enough,
            rows=active,
        )
        if dual is None:
            break
        count = len(constraints)
        weights = dual.multipliers[count:]
        shares = weights * active.half**2
        away = np.abs(active.features @ dual.theta - active.middle)
        counts = (shares > SMALL * shares.max()) | (away > (1 - NEAR) * active.half)
        here = Weighed(dual.multipliers[:count], index[counts], weights[counts], dual.bound, dual.theta, search + 1)
        gained = dual.bound - best.bound
        little = little + 1 if gained <= max(enough, LITTLE * (abs(dual.bound) + LITTLE * size)) else 0
        if gained > 0:
            best = Weighed(dual.multipliers[:count], index, weights, dual.bound, dual.theta, search + 1)
        if little > 1:
            break
    return best


def _squares(rows: PointwiseRows, index: IntArray) -> FloatArray:
    return np.asarray(0.25 * (rows.high[index] - rows.low[index]) ** 2)


@checked
def pointwise_bound(
    objective: FloatArray,
    constraints: tuple[Constraint, ...],
    rows: PointwiseRows,
    *,
    rounds: int = SEARCHES,
    tolerance: float = 1e-7,
) -> PointwiseBound:
    """A bound of max objective'theta over the quadratics, convex or not, and the rows. The quadratics alone must not be empty.

    Parameters
    ----------
    objective : array (m,)
    constraints : tuple of Constraint
    rows : PointwiseRows
    rounds : int
        The most rounds, each of which adds rows that are violated.
    tolerance : float
        A row counts as violated beyond this share of its span.

    Returns
    -------
    PointwiseBound

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import PointwiseRows, ball, pointwise_bound
    >>> rows = PointwiseRows.within(np.array([[1.0, 0.0]]), low=-1.0, high=1.0)
    >>> disk = ball(np.array([True, True]), 2.0)
    >>> found = pointwise_bound(np.array([1.0, 0.0]), (disk,), rows)
    >>> round(found.bound, 4), found.check(rows).valid
    (1.0, True)
    """
    if not constraints:
        raise InvalidInput("`constraints` must not be empty: rows alone are no certificate.")
    if objective.ndim != 1 or rows.features.shape[1] != len(objective):
        raise InvalidInput(f"`features` must have {len(objective)} columns. Got {rows.features.shape[1]}.")
    whole(rounds, "rounds", least=0)
    dual = maximize_dual(Quadratic.linear(objective), constraints, _first_multipliers(objective, constraints))
    if dual is None:
        known = Certificate(objective, constraints, np.zeros(len(constraints)), math.inf, None, SolveStatus.UNBOUNDED)
    else:
        inside = all(c.quadratic(dual.theta) <= c.limit for c in constraints)
        status = SolveStatus.OPTIMAL if inside else SolveStatus.BOUND_ONLY
        known = Certificate(objective, constraints, dual.multipliers, -dual.bound, dual.theta if inside else None, status)
    return with_rows(known, rows, rounds=rounds, tolerance=tolerance)


def with_rows(known: Certificate, rows: PointwiseRows, *, rounds: int = SEARCHES, tolerance: float = 1e-7) -> PointwiseBound:
    """The program of a certificate with the rows added: never a worse bound, and the same one where its point breaks no row."""
    c, constraints = known.objective, known.constraints
    if rows.features.shape[1] != len(c):
        raise InvalidInput(f"`features` must have {len(c)} columns. Got {rows.features.shape[1]}.")
    theta = known.point
    settled = theta is not None and known.status is SolveStatus.OPTIMAL and not (rows.violations(theta) > tolerance).any()
    first = None if settled or known.status is SolveStatus.EMPTY or not c.any() else _first(known, rows)
    if first is None:
        return _result(known, rows, None, theta, tolerance)
    found = weigh_rows(Quadratic.linear(c), constraints, rows, first, searches=rounds, tolerance=tolerance)
    if not len(found.index) or not -found.bound < known.bound:
        return _result(known, rows, None, found.theta, tolerance)
    return _result(_averaged_certificate(known, rows, found), rows, found, found.theta, tolerance)


def _first(known: Certificate, rows: PointwiseRows) -> Weighed | None:
    """Where the search begins: the known multipliers, made positive; where the quadratics bound nothing, rows spread over all."""
    c, constraints, nothing = known.objective, known.constraints, np.zeros(0, dtype=np.int64)
    start = _first_multipliers(c, constraints)
    if known.status is not SolveStatus.UNBOUNDED:
        dual = maximize_dual(Quadratic.linear(c), constraints, np.maximum(known.multipliers, 1e-3 * start))
        return None if dual is None else Weighed(dual.multipliers, nothing, np.zeros(0), dual.bound, dual.theta, 0)
    index = _spread(rows.features / (rows.high - rows.low)[:, None], len(c))
    weights = 1 / _squares(rows, index) / len(index)
    dual = maximize_dual(Quadratic.linear(c), constraints, np.concatenate([start, weights]), rows=rows.active(index))
    if dual is None:
        return None
    count = len(constraints)
    return Weighed(dual.multipliers[:count], index, dual.multipliers[count:], dual.bound, dual.theta, 0)


def _averaged_certificate(known: Certificate, rows: PointwiseRows, found: Weighed) -> Certificate:
    """The rows as one box, averaged with their weights; where it proves that nothing is left, the proof of that."""
    c, total = known.objective, float(found.weights.sum())
    program = (*known.constraints, rows.averaged(found.index, found.weights / total))
    multipliers = np.append(found.multipliers, total)
    value, _ = lagrangian_value(Quadratic.linear(c), program, multipliers)
    if not _nearly_met(program, rows, found.theta):
        # Over an empty set the path of the multipliers leads nowhere.
        empty = _refutation(c, program, multipliers)
        if empty is not None:
            return empty
    point = found.theta if all(q.quadratic(found.theta) <= q.limit for q in program) else None
    size = abs(value) + float(np.abs(c) @ np.abs(found.theta))
    close = point is not None and -value - float(c @ point) <= 1e-6 * size
    return Certificate(c, program, multipliers, -value, point, SolveStatus.OPTIMAL if close else SolveStatus.BOUND_ONLY)


def _nearly_met(program: tuple[Constraint, ...], rows: PointwiseRows, theta: FloatArray) -> bool:
    """Whether a point meets all constraints up to a thousandth."""
    if not np.isfinite(theta).all() or (rows.violations(theta) > 1e-3).any():
        return False
    return all(q.quadratic(theta) <= q.limit + 1e-3 * (abs(q.limit) + abs(q.quadratic.a0)) for q in program)


def _first_multipliers(c: FloatArray, constraints: tuple[Constraint, ...]) -> FloatArray:
    """t / |limit|, with the t that is best where all limits count alike: 4 t^2 (number of constraints) = c'H^{-1}c at t = 1."""
    unit = 1 / np.array([max(abs(constraint.limit), 1e-300) for constraint in constraints])
    found = lagrangian(Quadratic.linear(c), constraints, unit)
    return unit if found is None else 0.5 * math.sqrt(float(c @ found.solve(c)) / len(constraints)) * unit


def worst(rows: PointwiseRows, excess: FloatArray, tolerance: float, active: IntArray, most: int) -> IntArray:
    """Violated rows to add: among the worst and the others, the most different ones."""
    excess = np.maximum(*np.split(excess, 2))
    broken = excess > tolerance
    broken[active] = False
    order = np.flatnonzero(broken)
    order = order[np.argsort(-excess[order], kind="stable")]
    shown = CANDIDATES * most
    if len(order) > shown:
        # Denser among the worst: rows near each other are violated alike, and the worst ones alone are often one cluster.
        order = order[np.unique((np.linspace(0, 1, shown) ** 2 * (len(order) - 1)).astype(np.int64))]
    return order[_spread(excess[order, None] * rows.features[order], most)]


def _spread(vectors: FloatArray, count: int) -> IntArray:
    """Up to `count` rows, each with the largest part that those before it do not span: the pivots of a QR factorization."""
    from scipy.linalg import qr

    if len(vectors) <= count:
        return np.arange(len(vectors))
    pivots = qr(vectors.T, mode="r", pivoting=True, check_finite=False)[-1]
    return np.asarray(pivots[:count], dtype=np.int64)


def _refutation(c: FloatArray, program: tuple[Constraint, ...], multipliers: FloatArray) -> Certificate | None:
    """The proof that the set is empty, if these multipliers lead to one: the least loss over all else exceeds its limit."""
    place = next((j for j, constraint in enumerate(program) if constraint.role is Role.LOSS), None)
    if place is None:
        return None
    loss, others = program[place], program[:place] + program[place + 1 :]
    shares = multipliers * np.array([max(abs(constraint.limit), 1e-300) for constraint in program])
    # A proof that hardly needs the loss has a small multiplier of it, which is kept from being too small to divide by.
    scaled = multipliers / (max(shares[place], 1e-6 * shares.max()) / max(abs(loss.limit), 1e-300))
    scaled = np.delete(scaled, place)
    direct = lagrangian(loss.quadratic, others, scaled)
    if direct is not None and direct.value > loss.limit:
        return Certificate(c, program, np.insert(scaled, place, 1.0), direct.value, None, SolveStatus.EMPTY)
    dual = maximize_dual(loss.quadratic, others, np.maximum(scaled, 1e-9 * scaled.max()))
    if dual is None or not dual.bound > loss.limit:
        return None
    return Certificate(c, program, np.insert(dual.multipliers, place, 1.0), dual.bound, None, SolveStatus.EMPTY)


def _result(
    best: Certificate, rows: PointwiseRows, found: Weighed | None, theta: FloatArray | None, tolerance: float
) -> PointwiseBound:
    index, weights, searches = np.zeros(0, dtype=np.int64), np.zeros(0), 0
    if found is not None:
        index, weights, searches = found.index, found.weights / found.weights.sum(), found.searches
    if best.status is SolveStatus.EMPTY:
        theta = None
    excess = np.zeros(0) if theta is None else rows.violations(theta)
    left, largest = int((excess > tolerance).sum()), float(excess.max(initial=-math.inf))
    return PointwiseBound(best, index, weights, theta, searches, left, largest)
