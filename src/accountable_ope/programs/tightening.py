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

from ..validation import FloatArray
from .certificate import Argument, Certificate, LeastNormFound, SolveStatus
from .constraint_set import ConstraintSet, KnownBounds
from .emptiness import emptied, empty_from_ends, prove_empty
from .envelope import Steps
from .evidence import Evidence, difference
from .goal import Setting, Solved, solve_goal
from .lagrangian import counted_value
from .proofs import Round, Step, Tightening, after, ellipsoids_around
from .quadratic import Quadratic

ROUNDS = 8
EXACT, ROUGH = 1e-3, 5e-3
"""Ends are found up to this share of their distance at last, and on the way."""

STALLED = 0.005
"""Two rounds that bring the ends nearer by less than this share are the last."""

ENOUGH = 0.01
"""A round that shrinks neither the range nor a variance by this share is the last."""


@dataclass(frozen=True, eq=False)
class _Hints:
    """The solutions of the round before."""

    ends: tuple[Solved | None, Solved | None]
    variances: tuple[Solved | None, ...]


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
        setting = Setting.of(feasible, known, inside, ROUGH * widths[-1])
        solved = [solve_goal(Quadratic.linear(c), setting, hint=hints.ends[k]) for k, c in enumerate(goals)]
        size, width = widths[-1], _keep(best, goals, solved, inside)
        while 0 < width < 0.25 * size and None not in solved:  # what was little for ends so far apart is not for these
            setting, size = replace(setting, enough=ROUGH * width), width
            solved = [solve_goal(Quadratic.linear(c), setting, hint=solved[k]) for k, c in enumerate(goals)]
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
        _keep(best, goals, [solve_goal(Quadratic.linear(c), setting, hint=here[k]) for k, c in enumerate(goals)], inside)
    upper, lower = best
    if empty is None and upper is not None and lower is not None and _crossed(best):
        empty = empty_from_ends(upper, lower)
        if empty is None:  # they cross by no more than rounding
            middle = 0.5 * (upper.bound - lower.bound)
            upper, lower = replace(upper, bound=max(upper.bound, middle)), replace(lower, bound=max(lower.bound, -middle))
    tightening = Tightening(feasible, tuple(history), tuple(steps), rate, _identification(feasible.evidence[0], rate))
    if empty is not None:
        return emptied(empty, upward), emptied(empty, downward), tightening
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
    best: list[Certificate | None], goals: Sequence[FloatArray], solved: Sequence[Solved | None], inside: FloatArray
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


def least_norm_of_rounds(feasible: ConstraintSet, inside: FloatArray, ball: Quadratic) -> LeastNormFound | None:
    """A lower bound of the norm of every Q that meets the joint constraints and the box; None where none does."""
    known = feasible.begin()
    if prove_empty(feasible, known, inside) is not None:
        return None
    largest = feasible.range.largest_value
    solved = solve_goal(ball, Setting(feasible, feasible.squares(known), inside), absolute_gap=1e-10 * largest**2)
    if solved is None:
        return LeastNormFound(0.0)
    least = math.sqrt(max(solved.dual.bound, 0.0))
    if least > feasible.radius:  # beyond the ball, which is one of the constraints, there is none
        return None
    return LeastNormFound(least, Argument(solved.constraints, solved.dual.multipliers))


def _shrink(setting: Setting, ends: Sequence[Solved], hints: Sequence[Solved | None]) -> tuple[Step, tuple[Solved | None, ...]]:
    """Proofs of the variances, of the range and of the residuals of the set that the constraints of this round leave.

    The boxes that decide the ends are constraints like others here.
    """
    feasible, size = setting.feasible, len(setting.inside)
    inner = replace(setting, rows=None, boxes=tuple(box for end in ends for box in end.proof.boxes))
    solved = tuple(
        solve_goal(evidence.variance_goal(), inner, gap=1e-3, hint=hint)
        for evidence, hint in zip(feasible.evidence, hints, strict=True)
    )
    around = [*ends, *(solution for solution in solved if solution is not None)]
    ellipsoids = ellipsoids_around((solution.constraints, solution.proof.multipliers) for solution in around)
    if ellipsoids:  # where range and residuals are decided, ellipsoids of their own
        directions = list(feasible.range.extremes(ellipsoids))
        scales = () if feasible.steps is None else (each.scale for each in feasible.evidence)
        directions += [feasible.steps.farthest(ellipsoids, scale) for scale in scales if feasible.steps and scale is not None]
        for direction in directions:
            farthest = solve_goal(Quadratic.linear(_padded(direction, size)), inner, gap=1e-2)
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


def _certificate(objective: FloatArray, solved: Solved, inside: FloatArray) -> Certificate:
    """The bound, with a point of the set where the path of the solver ended near one."""
    point = _into_set(solved, inside)
    bound = -counted_value(Quadratic.linear(objective), solved.constraints, solved.dual.multipliers)
    size = abs(bound) + (0.0 if point is None else float(np.abs(objective) @ np.abs(point)))
    close = point is not None and bound - float(objective @ point) <= 1e-3 * size
    status = SolveStatus.OPTIMAL if close else SolveStatus.BOUND_ONLY
    return Certificate(objective, solved.constraints, solved.dual.multipliers, bound, point, status)


def _into_set(solved: Solved, inside: FloatArray) -> FloatArray | None:
    """The end of the path, pulled toward a point of small loss until it meets every constraint; None when that fails."""
    for share in (1.0, 0.999, 0.99, 0.9, 0.5, 0.0):
        point = inside + share * (solved.dual.theta - inside)
        if all(c.quadratic(point) <= c.limit for c in solved.constraints):
            return np.asarray(point)
    return None


def _unbounded(feasible: ConstraintSet, objective: FloatArray) -> Certificate:
    return Certificate(objective, feasible.others, np.zeros(len(feasible.others)), math.inf, None, SolveStatus.UNBOUNDED)


def _identification(evidence: Evidence, rate: float) -> float:
    values = np.linalg.eigvalsh(difference(evidence.squared, evidence.variance, rate).A)
    return float(values[0] / values[-1]) if values[-1] > 0 else -1.0


def _padded(direction: FloatArray, size: int) -> FloatArray:
    return np.concatenate([direction, np.zeros(size - len(direction))])
