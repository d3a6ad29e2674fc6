"""One goal over the set of a round: its best Lagrangian bound. Rates move to where they count, broken rows are added."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..validation import FloatArray, IntArray
from .constraint import Constraint
from .constraint_set import ConstraintSet, KnownBounds
from .envelope import SquaredEnvelope
from .evidence import Evidence
from .lagrangian import lagrangian_value
from .multipliers import DualSolution, maximize_dual
from .proofs import Proof
from .quadratic import Quadratic
from .row_boxes import KnownBoxes
from .weighing import Weighed, weigh_rows

REFINEMENTS = 3
BROKEN = 1e-4
"""A row counts as broken beyond this share of its span."""

CENTERED = 0.1
"""On the way, so near the path of the multipliers is enough, in units of the gap."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Multipliers of the constraints (proof.boxes last), the bound they prove, and the rows behind the boxes."""

    proof: Proof
    constraints: tuple[Constraint, ...]
    dual: DualSolution
    middle: tuple[float, ...]
    rows: tuple[IntArray, FloatArray]

    @property
    def totals(self) -> tuple[float, ...]:
        """The multipliers of each evidence, added up over its rates."""
        ends = np.cumsum([len(rates) for rates in self.proof.rates])
        return tuple(float(part.sum()) for part in np.split(self.proof.multipliers, ends)[: len(ends)])

    @property
    def others(self) -> FloatArray:
        """The multipliers of variances, ball and box."""
        losses = sum(len(rates) for rates in self.proof.rates)
        return self.proof.multipliers[losses : len(self.proof.multipliers) - len(self.proof.boxes)]


@dataclass(frozen=True, eq=False)
class Setting:
    """What a round begins with: the set, its squared envelopes, a point of small loss, and boxes at rows, if any.

    enough: what changes an end by no more than this is not looked for. centering: how near the path of multipliers is enough.
    """

    feasible: ConstraintSet
    squares: tuple[SquaredEnvelope, ...]
    inside: FloatArray
    enough: float = 0.0
    rows: KnownBoxes | None = None
    boxes: tuple[Constraint, ...] = ()
    centering: float = CENTERED

    @classmethod
    def of(cls, feasible: ConstraintSet, known: KnownBounds, inside: FloatArray, enough: float) -> Setting:
        boxes = feasible.boxes
        rows = None if boxes is None else boxes.known(known.residual_bound, feasible.hidden, known.round)
        return cls(feasible, feasible.squares(known), inside, enough, rows)

    @cached_property
    def first_rates(self) -> tuple[FloatArray, ...]:
        """Where every goal of the round begins, one array per evidence."""
        pairs = zip(self.feasible.evidence, self.squares, strict=True)
        return tuple(_first_rates(evidence, squared, self.inside, self.feasible.joint) for evidence, squared in pairs)

    @cached_property
    def first_constraints(self) -> tuple[Constraint, ...]:
        """The constraints at these rates."""
        return self.feasible.constraints(self.squares, self.first_rates, self.boxes)


def solve_goal(
    goal: Quadratic, setting: Setting, gap: float = 1e-6, absolute_gap: float = 0.0, hint: Solved | None = None
) -> Solved | None:
    """The best Lagrangian bound of a goal; the rates q are moved to where they count most, and rows added that are broken.

    hint: a solution of the same goal in the round before, from which to begin.
    """
    feasible, rows = setting.feasible, None if setting.rows is None else setting.rows.rows
    absolute_gap = max(absolute_gap, setting.enough) if setting.rows is not None else absolute_gap
    beyond = _impossible(goal, setting)
    choices: Sequence[FloatArray] = setting.first_rates
    start: FloatArray | None = None
    best: Solved | None = None
    for attempt in range(REFINEMENTS if feasible.joint else 2):
        constraints = feasible.constraints(setting.squares, choices, setting.boxes) if attempt else setting.first_constraints
        if start is None:
            start, index = _first_start(goal, constraints, setting, choices, hint)
        wanted = gap if attempt else max(gap, 1e-3)
        active = None if rows is None or not len(index) else rows.active(index)
        dual = maximize_dual(
            goal,
            constraints,
            start,
            relative_gap=wanted,
            absolute_gap=absolute_gap,
            rows=active,
            beyond=beyond,
            centering=0.25 if active is None else setting.centering,
        )
        if dual is None:
            return best
        found = Weighed.of(dual, index)
        if rows is not None and attempt:
            found = weigh_rows(
                goal,
                constraints,
                rows,
                found,
                gap=wanted,
                enough=absolute_gap,
                tolerance=BROKEN,
                beyond=beyond,
                centering=setting.centering,
            )
        solved = _settled(goal, setting, choices, constraints, found)
        gained = math.inf if best is None else solved.dual.bound - best.dual.bound
        if best is None or gained > 0:
            best = solved
        if gained <= max(gap * abs(solved.dual.bound), absolute_gap) and attempt > 0:
            break
        if feasible.joint:
            # A mean of affine bounds has a level above that of the affine bound with the mean rate, so this one is better.
            choices = [np.array([q / 1.25, q, 1.25 * q]) for q in solved.middle]
        losses = [np.full(len(rates), 1 / len(rates)) if len(rates) != 3 else np.array([0.2, 0.6, 0.2]) for rates in choices]
        shared = [share * total for share, total in zip(losses, solved.totals, strict=True)]
        first = sum(len(rates) for rates in solved.proof.rates)
        start, index = np.concatenate([*shared, found.multipliers[first:], found.weights]), found.index
    return best


def _impossible(goal: Quadratic, setting: Setting) -> float:
    """A bound that no point can have: ten times the largest value beyond that of a point at hand; infinite for other goals."""
    return math.inf if goal.A.any() else abs(goal(setting.inside)) + 10 * setting.feasible.range.largest_value


def _settled(
    goal: Quadratic, setting: Setting, choices: Sequence[FloatArray], constraints: tuple[Constraint, ...], found: Weighed
) -> Solved:
    """The solution with its rows as averaged boxes, and the mean rate of every evidence."""
    middle, position = [], 0
    for rates in choices:
        weights = found.multipliers[position : position + len(rates)]
        middle.append(float(weights @ rates) / float(weights.sum()))
        position += len(rates)
    boxes, multipliers, dual = setting.boxes, found.multipliers, DualSolution(found.multipliers, found.bound, found.theta)
    if setting.rows is not None and len(found.index):
        averaged, totals = setting.rows.averaged(found.index, found.weights)
        boxes, constraints, multipliers = (*boxes, *averaged), (*constraints, *averaged), np.append(multipliers, totals)
        value, _ = lagrangian_value(goal, constraints, multipliers)
        dual = DualSolution(multipliers, value, found.theta)
    proof = Proof(tuple(choices), multipliers, boxes)
    return Solved(proof, constraints, dual, tuple(middle), (found.index, found.weights))


def _first_start(
    goal: Quadratic,
    constraints: tuple[Constraint, ...],
    setting: Setting,
    choices: Sequence[FloatArray],
    hint: Solved | None,
) -> tuple[FloatArray, IntArray]:
    """Multipliers to begin with, those of rows last, and which rows: those of the round before, where there was one."""
    first = _first_multipliers(goal, constraints, setting.inside, setting.feasible.radius)
    if hint is None:
        return first, np.zeros(0, dtype=np.int64)
    losses = [np.full(len(rates), total / len(rates)) for rates, total in zip(choices, hint.totals, strict=True)]
    start = np.concatenate([*losses, hint.others])
    start = np.append(start, 1e-3 * first[len(start) :])  # boxes are new in every round
    if setting.rows is None:
        return start, np.zeros(0, dtype=np.int64)
    index, weights = hint.rows
    return np.append(start, weights), index


def _first_rates(evidence: Evidence, squared: SquaredEnvelope, inside: FloatArray, joint: bool) -> FloatArray:
    """Rates that touch the envelope at the variance of a point of small loss, and at larger ones."""
    if not joint or squared.largest <= 0:
        return np.zeros(1)
    center = evidence.variance(inside[: len(evidence.variance.a)]) * evidence.count**2
    low = min(max(center, 1e-6 * squared.largest), squared.largest)
    touched = [squared.touching(v).rate for v in np.geomspace(low, squared.largest, 3)]
    return np.unique([*touched, squared.chord().rate])


def _first_multipliers(goal: Quadratic, constraints: Sequence[Constraint], inside: FloatArray, norm_bound: float) -> FloatArray:
    """(size of the goal) / (limit of the constraint)."""
    if goal.A.any():
        size = max(abs(goal(inside)), abs(goal.a0), float(np.abs(np.diagonal(goal.A)).max()) * norm_bound**2)
    else:
        size = 2 * float(np.linalg.norm(goal.a)) * norm_bound
    return np.array([max(size, 1e-300) / max(abs(c.limit), 1e-300) for c in constraints])
