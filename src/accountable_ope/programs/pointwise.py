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
from ..validation import FloatArray, IntArray, whole
from .certificate import Certificate, CertificateCheck, SolveStatus
from .constraint import Constraint, Role
from .lagrangian import lagrangian, lagrangian_value
from .multipliers import maximize_dual
from .pointwise_rows import PointwiseRows
from .quadratic import Quadratic
from .weighing import SEARCHES, Weighed, spread_out, weigh_rows


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
        return None if dual is None else Weighed.of(dual, nothing)
    index = spread_out(rows.features / (rows.high - rows.low)[:, None], len(c))
    weights = 1 / rows.half_squares(index) / len(index)
    dual = maximize_dual(Quadratic.linear(c), constraints, np.concatenate([start, weights]), rows=rows.active(index))
    return None if dual is None else Weighed.of(dual, index)


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
