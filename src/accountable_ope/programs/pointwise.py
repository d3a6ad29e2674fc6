"""The pointwise value box: low_i <= f_i'theta <= high_i at every one of many points, beside quadratic constraints.

What is reported is the Lagrangian value of an ordinary program of quadratics. For weights w_i >= 0, every theta that meets the
rows meets

    sum_i w_i (f_i'theta - middle_i)^2 <= sum_i w_i half_i^2,        middle, half = (low + high) / 2, (high - low) / 2,

a value box averaged with these weights. The right weights make it as tight as all rows together: for linear multipliers mu+ and
mu- take w_i = (mu+_i + mu-_i) / (high_i - low_i). Then, at every theta,

    w_i (f_i'theta - low_i)(f_i'theta - high_i) >= mu+_i (f_i'theta - high_i) + mu-_i (low_i - f_i'theta),

so the averaged box proves at least what the linear multipliers prove. In the same way ||u(theta)||^2 <= R^2 with the multiplier
z / (2 R) proves at least what ||u(theta)|| <= R with the multiplier z proves. A cone solver therefore only proposes multipliers:
where it stops early or goes wrong, the bound is wider, not wrong.

Where a quadratic is not convex there is no cone program: the weights come from Newton's method on the multipliers of the rows,
each a quadratic of its own. These add curvature, so the bound is tighter than linear rows could make it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, IntArray, refuse_non_finite, whole
from .certificate import Certificate, CertificateCheck, SolveStatus
from .cones import maximize_over_cones
from .lagrangian import ROUNDING, Constraint, Role, RowsOrigin, lagrangian
from .multipliers import maximize_dual
from .quadratic import Quadratic

CANDIDATES = 10
"""Violated rows that are looked at for each one that is added."""

NEAR = 1e-2
"""A row stays in the program while it is this near its border, in units of its span, or has a weight that counts."""

SMALL = 1e-6
"""A weight that counts is above this share of the largest one."""

SINGLE_ENTRIES = 200_000
"""Where a quadratic is not convex, the rows added in a round have matrices of at most so many entries together."""

ENOUGH = 1e-3
"""Where a quadratic is not convex, rounds end when one gains less than this share of what all have gained."""


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
    def within(cls, features: FloatArray, low: float, high: float, offsets: FloatArray | None = None) -> PointwiseRows:
        """low <= offset_i + f_i'theta <= high; offsets are the values of a Q at which the class is anchored."""
        shift = np.zeros(len(features)) if offsets is None else offsets
        return cls(features, low - shift, high - shift)

    def violations(self, theta: FloatArray) -> FloatArray:
        """How far each row is above its upper limit, then how far each is below its lower one, in units of its span (2 N,)."""
        values, span = self.features @ theta, self.high - self.low
        return np.concatenate([(values - self.high) / span, (self.low - values) / span])

    def averaged(self, index: IntArray, weights: FloatArray) -> Constraint:
        """The box averaged over some rows; its limit is raised by what rounding may have taken from it."""
        features, low, high = self.features[index], self.low[index], self.high[index]
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        weighted = weights[:, None] * features
        constant, limit = float(weights @ middle**2), float(weights @ half**2)
        quadratic = Quadratic(features.T @ weighted, middle @ weighted, constant)
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
    rounds: int = 20,
    tolerance: float = 1e-7,
    steps: int = 100,
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
    steps : int
        The most iterations of the cone solver in a round.

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
    whole(steps, "steps", least=1)
    stage = _stage(objective, constraints, rows, np.zeros(len(rows.features)), None)
    if stage is None:
        known = Certificate(objective, constraints, np.zeros(len(constraints)), math.inf, None, SolveStatus.UNBOUNDED)
    else:
        known = _certificate(objective, stage)
    return with_rows(known, rows, rounds=rounds, tolerance=tolerance, steps=steps)


def with_rows(
    known: Certificate, rows: PointwiseRows, *, rounds: int = 20, tolerance: float = 1e-7, steps: int = 100
) -> PointwiseBound:
    """The program of a certificate with the rows added: never a worse bound, and the same one where its point breaks no row.

    Round by round, rows that the last maximizer breaks are added; a bound with some of the rows is a bound.
    """
    c, constraints = known.objective, known.constraints
    if rows.features.shape[1] != len(c):
        raise InvalidInput(f"`features` must have {len(c)} columns. Got {rows.features.shape[1]}.")
    best, weights, theta, done = known, np.zeros(len(rows.features)), known.point, 0
    settled = theta is not None and known.status is SolveStatus.OPTIMAL and not (rows.violations(theta) > tolerance).any()
    stage = None
    if not settled and known.status is not SolveStatus.EMPTY and c.any():
        stage = _first_stage(known, rows)
    if stage is None:
        return _result(best, weights, theta, done, rows, tolerance)
    if stage.bound < best.bound:
        best, weights = _certificate(c, stage), stage.weights
    convex = all(_convex(constraint.quadratic) for constraint in constraints)
    without, theta, proposal = best.bound, stage.theta, None
    index = np.flatnonzero(stage.weights)
    active = np.concatenate([index, index + len(weights)])
    most = len(c) if convex else min(len(c), 1 + SINGLE_ENTRIES // len(c) ** 2)
    for _ in range(rounds):
        new = _worst(rows, rows.violations(theta), tolerance, active, most)
        if not len(new):
            break
        active = np.concatenate([active, new])
        proposal = _propose(c, stage, rows, active, steps) if convex else _weigh(c, stage, rows, active)
        if proposal is None:
            break
        done += 1
        if proposal.empty:
            break
        stage = _stage(c, constraints, rows, proposal.weights, proposal.multipliers)
        if stage is None:
            break
        theta, gain = proposal.theta, best.bound - stage.bound
        if gain > 0:
            best, weights = _certificate(c, stage), stage.weights
        if not convex and gain <= ENOUGH * (without - best.bound):
            break
        counts = stage.weights[active % len(weights)] > SMALL * stage.weights.max()
        active = active[counts | (rows.violations(theta)[active] > -NEAR)]
    # A set that is empty shows in the cone solver's verdict or, without one, in a bound that no point comes near.
    if proposal is not None and (proposal.empty or (not convex and best.point is None)):
        proof = _refutation(c, constraints, rows, proposal)
        if proof is not None:
            best, weights, theta = proof, proposal.weights, None
    return _result(best, weights, theta, done, rows, tolerance)


class _Stage(NamedTuple):
    """The quadratics and the box averaged over rows (none where all weights are zero), and the best multipliers of both."""

    constraints: tuple[Constraint, ...]
    program: tuple[Constraint, ...]
    weights: FloatArray
    multipliers: FloatArray
    bound: float
    theta: FloatArray


def _first_stage(known: Certificate, rows: PointwiseRows) -> _Stage | None:
    """The known multipliers, made positive; where the quadratics bound nothing, with rows that are spread over all points."""
    nothing = np.zeros(len(rows.features))
    if known.status is not SolveStatus.UNBOUNDED:
        first = np.maximum(known.multipliers, 1e-3 * _first_multipliers(known.objective, known.constraints))
        return _stage(known.objective, known.constraints, rows, nothing, first)
    everywhere = _spread(rows.features / (rows.high - rows.low)[:, None], len(known.objective))
    nothing[everywhere] = 1 / len(everywhere)
    return _stage(known.objective, known.constraints, rows, nothing, None)


def _stage(
    c: FloatArray, constraints: tuple[Constraint, ...], rows: PointwiseRows, weights: FloatArray, first: FloatArray | None
) -> _Stage | None:
    """The best multipliers that Newton's method finds from the first ones, which include that of the averaged box."""
    index = np.flatnonzero(weights)
    program = (*constraints, rows.averaged(index, weights[index])) if len(index) else constraints
    start = _first_multipliers(c, program)
    if first is not None:
        start = np.maximum(first, 1e-12 * start)
    dual = maximize_dual(Quadratic.linear(c), program, start)
    return None if dual is None else _Stage(constraints, program, weights, dual.multipliers, -dual.bound, dual.theta)


def _row_multipliers(stage: _Stage) -> FloatArray:
    """The multiplier of every row as a quadratic of its own."""
    return stage.multipliers[-1] * stage.weights if len(stage.program) > len(stage.constraints) else stage.weights


def _first_multipliers(c: FloatArray, constraints: tuple[Constraint, ...]) -> FloatArray:
    """t / |limit|, with the t that is best where all limits count alike: 4 t^2 (number of constraints) = c'H^{-1}c at t = 1."""
    unit = 1 / np.array([max(abs(constraint.limit), 1e-300) for constraint in constraints])
    found = lagrangian(Quadratic.linear(c), constraints, unit)
    return unit if found is None else 0.5 * math.sqrt(float(c @ found.solve(c)) / len(constraints)) * unit


def _worst(rows: PointwiseRows, excess: FloatArray, tolerance: float, active: IntArray, most: int) -> IntArray:
    """Violated sides of rows to add: among the worst and the others, the most different ones."""
    broken = excess > tolerance
    broken[active] = False
    order = np.flatnonzero(broken)
    order = order[np.argsort(-excess[order], kind="stable")]
    shown = CANDIDATES * most
    if len(order) > shown:
        # Denser among the worst: rows near each other are violated alike, and the worst ones alone are often one cluster.
        order = order[np.unique((np.linspace(0, 1, shown) ** 2 * (len(order) - 1)).astype(np.int64))]
    return order[_spread(excess[order, None] * rows.features[order % len(rows.features)], most)]


def _spread(vectors: FloatArray, count: int) -> IntArray:
    """Up to `count` rows, each with the largest part that those before it do not span: the pivots of a QR factorization."""
    from scipy.linalg import qr

    if len(vectors) <= count:
        return np.arange(len(vectors))
    pivots = qr(vectors.T, mode="r", pivoting=True, check_finite=False)[-1]
    return np.asarray(pivots[:count], dtype=np.int64)


class _Proposal(NamedTuple):
    """A maximizer, multipliers (the last is that of the averaged box) and weights of the rows, which sum to one.

    empty: the cone solver found the program infeasible; then the multipliers may prove that, and theta says nothing.
    """

    theta: FloatArray
    multipliers: FloatArray
    weights: FloatArray
    empty: bool


def _weigh(c: FloatArray, stage: _Stage, rows: PointwiseRows, active: IntArray) -> _Proposal | None:
    """Weights of the active rows by Newton's method, every row a quadratic of its own."""
    index, count = np.unique(active % len(rows.features)), len(stage.constraints)
    program = (*stage.constraints, *(rows.averaged(index[[i]], np.ones(1)) for i in range(len(index))))
    start = 1e-3 * _first_multipliers(c, program)
    # With the multipliers of the stage the matrix is positive definite; only what is convex may be raised without a look at it.
    before = np.concatenate([stage.multipliers[:count], _row_multipliers(stage)[index]])
    start = np.where([_convex(constraint.quadratic) for constraint in program], np.maximum(start, before), before)
    dual = maximize_dual(Quadratic.linear(c), program, start, relative_gap=1e-7)
    if dual is None:
        return None
    total = float(dual.multipliers[count:].sum())
    weights = np.zeros(len(rows.features))
    weights[index] = dual.multipliers[count:] / total
    return _Proposal(dual.theta, np.append(dual.multipliers[:count], total), weights, empty=False)


def _propose(c: FloatArray, stage: _Stage, rows: PointwiseRows, active: IntArray, steps: int) -> _Proposal | None:
    """Weights of the active rows by the cone solver, where all quadratics are convex."""
    # A side of a row is  sign f'theta <= sign limit.
    index, sign = active % len(rows.features), np.where(active < len(rows.features), 1.0, -1.0)
    half = 0.5 * (rows.high[index] - rows.low[index])
    features = (sign / half)[:, None] * rows.features[index]
    limits = sign / half * np.where(sign > 0, rows.high[index], rows.low[index])
    solution = maximize_over_cones(c, stage.constraints, (features, limits), (stage.program, stage.multipliers), steps)
    if solution is None:
        return None
    weights = np.zeros(len(rows.features))
    np.add.at(weights, index, 0.5 * solution.row_multipliers / half**2)
    # Interior points leave a trace of weight on every row: without it the bound is simpler, and tighter.
    weights[weights < 1e-3 * SMALL * weights.max()] = 0.0
    total = float(weights.sum())
    if total == 0:
        return None
    return _Proposal(solution.theta, np.append(solution.multipliers, total), weights / total, solution.empty)


def _refutation(
    c: FloatArray, constraints: tuple[Constraint, ...], rows: PointwiseRows, proposal: _Proposal
) -> Certificate | None:
    """The proof that the set is empty, if these multipliers lead to one: the least loss over all else exceeds its limit."""
    place = next((j for j, constraint in enumerate(constraints) if constraint.role is Role.LOSS), None)
    if place is None:
        return None
    index = np.flatnonzero(proposal.weights)
    program = (*constraints, rows.averaged(index, proposal.weights[index]))
    loss, others = program[place], program[:place] + program[place + 1 :]
    shares = proposal.multipliers * np.array([max(abs(constraint.limit), 1e-300) for constraint in program])
    # A proof that hardly needs the loss has a small multiplier of it, which is kept from being too small to divide by.
    scaled = proposal.multipliers / (max(shares[place], 1e-6 * shares.max()) / max(abs(loss.limit), 1e-300))
    scaled = np.delete(scaled, place)
    direct = lagrangian(loss.quadratic, others, scaled)
    if direct is not None and direct.value > loss.limit:
        return Certificate(c, program, np.insert(scaled, place, 1.0), direct.value, None, SolveStatus.EMPTY)
    dual = maximize_dual(loss.quadratic, others, np.maximum(scaled, 1e-9 * scaled.max()))
    if dual is None or not dual.bound > loss.limit:
        return None
    return Certificate(c, program, np.insert(dual.multipliers, place, 1.0), dual.bound, None, SolveStatus.EMPTY)


def _certificate(c: FloatArray, stage: _Stage) -> Certificate:
    """The bound of a stage, with the end of the path of its multipliers where that is a point of the program."""
    point, size = stage.theta, abs(stage.bound) + float(np.abs(c) @ np.abs(stage.theta))
    inside = all(constraint.quadratic(point) <= constraint.limit for constraint in stage.program)
    status = SolveStatus.OPTIMAL if inside and stage.bound - float(c @ point) <= 1e-6 * size else SolveStatus.BOUND_ONLY
    return Certificate(c, stage.program, stage.multipliers, stage.bound, point if inside else None, status)


def _result(
    best: Certificate, weights: FloatArray, theta: FloatArray | None, done: int, rows: PointwiseRows, tolerance: float
) -> PointwiseBound:
    index = np.flatnonzero(weights)
    excess = np.zeros(0) if theta is None else rows.violations(theta)
    left, largest = int((excess > tolerance).sum()), float(excess.max(initial=-math.inf))
    return PointwiseBound(best, index, weights[index], theta, done, left, largest)


def _convex(q: Quadratic) -> bool:
    """Whether no eigenvalue is negative beyond rounding."""
    values = np.linalg.eigvalsh(0.5 * (q.A + q.A.T))
    return bool(values[0] >= -1e-12 * len(values) * abs(values[-1]))
