"""The joint constraint and its iteration: one event, no union bound.

On one event of probability 1 - delta the true Q meets ||S_n(Q)|| <= U(b(Q), V_n(Q)) for an envelope U that is non-decreasing in
the range b and in the variance V_n. Over any set F that holds Q, with b(Q) <= b and V_n(Q) <= V for all Q in F, the square of U
is below p + q V_n for every affine bound (p, q) of U(b, .)^2 on [0, V]: so Q meets

    eps(theta)'(K - q D) eps(theta) <= p,        D = diag K(x_i, x_i),

for all of them at once. These constraints, the ball and the value box give a smaller F, with a smaller range and variance; and so
on, on the same event, as often as it helps. The matrices may be indefinite: every bound is that of Lagrange multipliers, valid
wherever their combination is positive definite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..validation import FloatArray, IntArray
from .certificate import Argument, Certificate, LeastNormFound, SolveStatus
from .constraint import Constraint, Role
from .constraint_set import ConstraintSet, KnownBounds
from .envelope import SquaredEnvelope, Steps
from .evidence import Evidence, difference
from .lagrangian import counted_value, lagrangian_value
from .multipliers import DualSolution, maximize_dual
from .proofs import Proof, Round, Step, Tightening, after, ellipsoids_around
from .quadratic import Quadratic
from .row_boxes import KnownBoxes
from .weighing import Weighed, weigh_rows

ROUNDS = 8
REFINEMENTS = 3
BROKEN = 1e-4
"""A row counts as broken beyond this share of its span."""

EXACT, ROUGH = 1e-3, 5e-3
"""Ends are found up to this share of their distance at last, and on the way."""

CENTERED = 0.1
"""On the way, so near the path of the multipliers is enough, in units of the gap."""

STALLED = 0.005
"""Two rounds that bring the ends nearer by less than this share are the last."""

ENOUGH = 0.01
"""A round that shrinks neither the range nor a variance by this share is the last."""


@dataclass(frozen=True, eq=False)
class _Solved:
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
class _Hints:
    """The solutions of the round before."""

    ends: tuple[_Solved | None, _Solved | None]
    variances: tuple[_Solved | None, ...]


@dataclass(frozen=True, eq=False)
class _Setting:
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
    def of(cls, feasible: ConstraintSet, known: KnownBounds, inside: FloatArray, enough: float) -> _Setting:
        boxes = feasible.boxes
        rows = None if boxes is None else boxes.known(known.residual_bound, feasible.hidden, known.round)
        return cls(feasible, feasible.squares(known), inside, enough, rows)


def tighten(
    feasible: ConstraintSet,
    upward: FloatArray,
    downward: FloatArray,
    inside: FloatArray,
    rounds: int = ROUNDS,
    begun: Round | None = None,
) -> tuple[Certificate, Certificate, Tightening]:
    """Both ends (the largest upward'theta and downward'theta) and the iteration that led to them.

    `inside` is a point of small loss, for the size of things. Any number of rounds is valid; the best end of all rounds is kept.
    begun: what rounds over a set around this one have shown; the iteration that is returned does not prove that again.
    """
    known = feasible.begin() if begun is None else _from(begun, feasible.begin())
    empty = prove_empty(feasible, known, inside)
    history: list[Round] = []
    steps: list[Step] = []
    best: list[Certificate | None] = [None, None]
    rate, widths = 0.0, [2 * feasible.range.largest_value]
    hints = _Hints((None, None), tuple(None for _ in feasible.evidence))
    goals = (upward, downward) if empty is None else ()
    for number in range(rounds):
        setting = _Setting.of(feasible, known, inside, ROUGH * widths[-1])
        solved = [_solve(Quadratic.linear(c), setting, hint=hints.ends[k]) for k, c in enumerate(goals)]
        size, width = widths[-1], _keep(best, goals, solved, inside)
        while 0 < width < 0.25 * size and None not in solved:  # what was little for ends so far apart is not for these
            setting, size = replace(setting, enough=ROUGH * width), width
            solved = [_solve(Quadratic.linear(c), setting, hint=solved[k]) for k, c in enumerate(goals)]
            width = _keep(best, goals, solved, inside)
        widths.append(width)
        here = [solution for solution in solved if solution is not None]
        rate = here[0].middle[0] if here else 0.0
        history.append(_round(feasible, known))
        last = len(here) < 2 or number + 1 == rounds or _crossed(best) or _settled_at(widths)
        if not last:
            step, variances = _shrink(setting, here, hints.variances)
            shrunk = after(feasible, known, step)
            last = not _smaller(shrunk, known)
        if last:
            break
        hints = _Hints((here[0], here[1]), variances)
        steps.append(step)
        known = shrunk
    if len(here) == 2 and not _crossed(best):  # once more, as exactly as the last width asks for
        setting = replace(setting, enough=EXACT * widths[-1], centering=0.0)
        _keep(best, goals, [_solve(Quadratic.linear(c), setting, hint=here[k]) for k, c in enumerate(goals)], inside)
    upper, lower = best
    if empty is None and upper is not None and lower is not None and _crossed(best):
        empty = _empty_from_ends(upper, lower)
        if empty is None:  # they cross by no more than rounding
            middle = 0.5 * (upper.bound - lower.bound)
            upper, lower = replace(upper, bound=max(upper.bound, middle)), replace(lower, bound=max(lower.bound, -middle))
    tightening = Tightening(feasible, tuple(history), tuple(steps), rate, _identification(feasible.evidence[0], rate))
    if empty is not None:
        return _emptied(empty, upward), _emptied(empty, downward), tightening
    return upper or _unbounded(feasible, upward), lower or _unbounded(feasible, downward), tightening


def _from(begun: Round, known: KnownBounds) -> KnownBounds:
    """The smaller of each bound."""
    steps = (
        Steps(min(a.largest, b.largest), min(a.observed, b.observed), min(a.squares, b.squares))
        for a, b in zip(begun.steps, known.steps, strict=True)
    )
    variances = map(min, begun.variances, known.variances)
    return KnownBounds(min(begun.residual_bound, known.residual_bound), tuple(variances), tuple(steps), known.round)


def _round(feasible: ConstraintSet, known: KnownBounds) -> Round:
    return Round(known.residual_bound, known.variances, known.steps, feasible.evidence[0].count)


def _keep(
    best: list[Certificate | None], goals: Sequence[FloatArray], solved: Sequence[_Solved | None], inside: FloatArray
) -> float:
    """Put better ends in the place of those that are known; how far the ends are apart now."""
    for k, solution in enumerate(solved):
        if solution is not None:
            certificate, before = _certificate(goals[k], solution, inside), best[k]
            if before is None or certificate.bound < before.bound:
                best[k] = certificate
    return sum(math.inf if end is None else end.bound for end in best)


def _settled_at(widths: Sequence[float]) -> bool:
    """Whether the last two rounds brought the ends no nearer."""
    return len(widths) > 3 and widths[-1] > (1 - STALLED) * widths[-3]


def prove_empty(feasible: ConstraintSet, known: KnownBounds, inside: FloatArray) -> Certificate | None:
    """A proof that no theta meets a joint constraint within variances, ball and box, or None."""
    squares = feasible.squares(known)
    others = (*feasible.variances(squares), *feasible.others)
    for index, squared in enumerate(squares):
        evidence = feasible.evidence[index]
        variance = evidence.variance(inside[: len(evidence.variance.a)]) * evidence.count**2
        loss = feasible.loss(index, squared, squared.touching(variance).rate if feasible.joint else 0.0)
        if all(c.quadratic(inside) <= c.limit for c in (loss, *others)):
            continue
        size = max(abs(loss.quadratic(inside)), abs(loss.limit))
        start = np.array([size / max(c.limit, 1e-300) for c in others])
        dual = maximize_dual(loss.quadratic, others, start, relative_gap=1e-6, absolute_gap=1e-6 * abs(loss.limit))
        if dual is not None and dual.bound > loss.limit:
            constraints = (loss, *others)
            least, multipliers = _regular(constraints, np.concatenate([[1.0], dual.multipliers]), dual.bound)
            return Certificate(inside * 0, constraints, multipliers, least, None, SolveStatus.EMPTY)
    return None


def least_norm_of_rounds(feasible: ConstraintSet, inside: FloatArray, ball: Quadratic) -> LeastNormFound | None:
    """A lower bound of the norm of every Q that meets the joint constraints and the box; None where none does."""
    known = feasible.begin()
    if prove_empty(feasible, known, inside) is not None:
        return None
    largest = feasible.range.largest_value
    solved = _solve(ball, _Setting(feasible, feasible.squares(known), inside), absolute_gap=1e-10 * largest**2)
    if solved is None:
        return LeastNormFound(0.0)
    least = math.sqrt(max(solved.dual.bound, 0.0))
    if least > feasible.radius:  # beyond the ball, which is one of the constraints, there is none
        return None
    return LeastNormFound(least, Argument(solved.constraints, solved.dual.multipliers))


def _solve(
    goal: Quadratic, setting: _Setting, gap: float = 1e-6, absolute_gap: float = 0.0, hint: _Solved | None = None
) -> _Solved | None:
    """The best Lagrangian bound of a goal; the rates q are moved to where they count most, and rows added that are broken.

    hint: a solution of the same goal in the round before, from which to begin.
    """
    feasible, rows = setting.feasible, None if setting.rows is None else setting.rows.rows
    absolute_gap = max(absolute_gap, setting.enough) if setting.rows is not None else absolute_gap
    beyond = _impossible(goal, setting)
    pairs = zip(feasible.evidence, setting.squares, strict=True)
    choices = [_first_rates(evidence, squared, setting.inside, feasible.joint) for evidence, squared in pairs]
    start: FloatArray | None = None
    best: _Solved | None = None
    for attempt in range(REFINEMENTS if feasible.joint else 2):
        constraints = feasible.constraints(setting.squares, choices, setting.boxes)
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


def _impossible(goal: Quadratic, setting: _Setting) -> float:
    """A bound that no point can have: ten times the largest value beyond that of a point at hand; infinite for other goals."""
    return math.inf if goal.A.any() else abs(goal(setting.inside)) + 10 * setting.feasible.range.largest_value


def _settled(
    goal: Quadratic, setting: _Setting, choices: Sequence[FloatArray], constraints: tuple[Constraint, ...], found: Weighed
) -> _Solved:
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
    return _Solved(proof, constraints, dual, tuple(middle), (found.index, found.weights))


def _first_start(
    goal: Quadratic,
    constraints: tuple[Constraint, ...],
    setting: _Setting,
    choices: Sequence[FloatArray],
    hint: _Solved | None,
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


def _shrink(
    setting: _Setting, ends: Sequence[_Solved], hints: Sequence[_Solved | None]
) -> tuple[Step, tuple[_Solved | None, ...]]:
    """Proofs of the variances, of the range and of the residuals of the set that the constraints of this round leave.

    The boxes that decide the ends are constraints like others here.
    """
    feasible, size = setting.feasible, len(setting.inside)
    inner = replace(setting, rows=None, boxes=tuple(box for end in ends for box in end.proof.boxes))
    solved = tuple(
        _solve(evidence.variance_goal(), inner, gap=1e-3, hint=hint)
        for evidence, hint in zip(feasible.evidence, hints, strict=True)
    )
    around = [*ends, *(solution for solution in solved if solution is not None)]
    ellipsoids = ellipsoids_around((solution.constraints, solution.proof.multipliers) for solution in around)
    if ellipsoids:  # where range and residuals are decided, ellipsoids of their own
        directions = list(feasible.range.extremes(ellipsoids))
        scales = () if feasible.steps is None else (each.scale for each in feasible.evidence)
        directions += [feasible.steps.farthest(ellipsoids, scale) for scale in scales if feasible.steps and scale is not None]
        for direction in directions:
            farthest = _solve(Quadratic.linear(_padded(direction, size)), inner, gap=1e-2)
            if farthest is not None:
                around.append(farthest)
    variances = tuple(None if solution is None else solution.proof for solution in solved)
    return Step(variances, tuple(solution.proof for solution in around)), solved


def _crossed(best: Sequence[Certificate | None]) -> bool:
    """Whether the ends prove that there is nothing between them."""
    upper, lower = best
    return upper is not None and lower is not None and upper.bound < -lower.bound


def _smaller(after: KnownBounds, before: KnownBounds) -> bool:
    news, olds = ((each.residual_bound, *each.variances, *(steps.observed for steps in each.steps)) for each in (after, before))
    return any(new < (1 - ENOUGH) * old for new, old in zip(news, olds, strict=True))


def _certificate(objective: FloatArray, solved: _Solved, inside: FloatArray) -> Certificate:
    """The bound, with a point of the set where the path of the solver ended near one."""
    point = _into_set(solved, inside)
    bound = -counted_value(Quadratic.linear(objective), solved.constraints, solved.dual.multipliers)
    size = abs(bound) + (0.0 if point is None else float(np.abs(objective) @ np.abs(point)))
    close = point is not None and bound - float(objective @ point) <= 1e-3 * size
    status = SolveStatus.OPTIMAL if close else SolveStatus.BOUND_ONLY
    return Certificate(objective, solved.constraints, solved.dual.multipliers, bound, point, status)


def _into_set(solved: _Solved, inside: FloatArray) -> FloatArray | None:
    """The end of the path, pulled toward a point of small loss until it meets every constraint; None when that fails."""
    for share in (1.0, 0.999, 0.99, 0.9, 0.5, 0.0):
        point = inside + share * (solved.dual.theta - inside)
        if all(c.quadratic(point) <= c.limit for c in solved.constraints):
            return np.asarray(point)
    return None


def _empty_from_ends(upper: Certificate, lower: Certificate) -> Certificate | None:
    """Ends that cross: both sets of multipliers together prove that there is nothing between them; None: rounding hides it."""
    constraints = (*upper.constraints, *lower.constraints)
    multipliers = np.concatenate([upper.multipliers, lower.multipliers])
    first = next(j for j, (c, a) in enumerate(zip(constraints, multipliers, strict=True)) if c.role is Role.LOSS and a > 0)
    order = [first, *(j for j in range(len(constraints)) if j != first)]
    constraints = tuple(constraints[j] for j in order)
    multipliers = multipliers[order] / multipliers[first]
    least = counted_value(constraints[0].quadratic, constraints[1:], multipliers[1:])
    if not least > constraints[0].limit:
        return None
    least, multipliers = _regular(constraints, multipliers, least)
    return Certificate(upper.objective, constraints, multipliers, least, None, SolveStatus.EMPTY)


def _regular(constraints: tuple[Constraint, ...], multipliers: FloatArray, least: float) -> tuple[float, FloatArray]:
    """A proof of emptiness, the loss first, with a tenth of what is proved given to the balls, which keeps the matrix regular.

    Narrow boxes, or constraints that contradict each other without the loss, have multipliers beside which a ball is lost in
    rounding.
    """
    loss, others = constraints[0], constraints[1:]
    balls = np.array([c.role in (Role.BALL, Role.REST) and c.limit > 0 for c in others])
    if not balls.any():
        return least, multipliers
    limits = np.array([c.limit for c in others])[balls]
    regular = multipliers.copy()
    regular[1:][balls] += 0.1 * (least - loss.limit) / (limits * len(limits))
    kept = counted_value(loss.quadratic, others, regular[1:])
    return (kept, regular) if kept > loss.limit else (least, multipliers)


def _emptied(empty: Certificate, objective: FloatArray) -> Certificate:
    return Certificate(objective, empty.constraints, empty.multipliers, empty.bound, None, SolveStatus.EMPTY)


def _unbounded(feasible: ConstraintSet, objective: FloatArray) -> Certificate:
    return Certificate(objective, feasible.others, np.zeros(len(feasible.others)), math.inf, None, SolveStatus.UNBOUNDED)


def _identification(evidence: Evidence, rate: float) -> float:
    values = np.linalg.eigvalsh(difference(evidence.squared, evidence.variance, rate).A)
    return float(values[0] / values[-1]) if values[-1] > 0 else -1.0


def _padded(direction: FloatArray, size: int) -> FloatArray:
    return np.concatenate([direction, np.zeros(size - len(direction))])
