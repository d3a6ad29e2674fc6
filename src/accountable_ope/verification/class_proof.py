"""One class of a certificate: its rounds, its ends and what is printed of it, each proved from what was proved before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..problem.assumptions import RelativeNorm
from ..radii.registry import Approach, LossKind, Rests
from .balls import ball_radius
from .consistency import require, same
from .dual import Bound, Form, least_value, root_of
from .evidence import Known
from .facts import ClassFacts
from .ranges import ellipsoid, relative_values, root_variance
from .record import EndRecord, Refuted, RoundRecord
from .sets import ClassSet
from .theorems import NO_STEPS, Steps

TOLERANCE = 1e-6
"""How far a reported number may lie from the one that is proved, in units of its size: the rounding of two ways to compute it."""

WIDER = 1e-3
"""How much wider an end may be reported than it is proved, in the same units."""


@dataclass(frozen=True, eq=False)
class ClassProof:
    """What was proved about one class.

    Attributes
    ----------
    constraints : ClassSet
        The constraints, derived again.
    known : tuple of Known
        Range and variances before every round.
    lower, upper : float
        The ends that the multipliers prove; NaN where the class is refuted.
    ends : tuple of two lists of Bound
        The constraints of the upper and of the lower end.
    level : float
        The radius.
    uses : str
    """

    constraints: ClassSet
    known: tuple[Known, ...]
    lower: float
    upper: float
    ends: tuple[list[Bound], list[Bound]]
    level: float
    uses: str

    @property
    def empty(self) -> bool:
        return math.isnan(self.lower)


def check_norm(facts: ClassFacts) -> None:
    """The ball is the declared one, or what follows where none was declared."""
    record, part = facts.record, facts.part
    declared = record.assumptions.norm_bound
    as_declared = isinstance(declared, float) and record.average is None
    same(part.norm_bound, declared if as_declared else facts.norm_bound, "the norm bound")
    same(part.note, facts.note, "the note on the norm bound")
    if isinstance(declared, RelativeNorm) and part.least_norm is None:
        require(part.upper.status == "EMPTY", "it has no least norm, though functions are consistent with the data")


def prove_class(constraints: ClassSet) -> ClassProof:
    """Rounds, ends and what is printed of one class."""
    facts, part = constraints.facts, constraints.facts.part
    known = _prove_rounds(constraints)
    # Least norm first: the ball may rest on it.
    _check_least_norm(constraints)
    upper, bounds_above = _prove_end(constraints, part.upper, 1.0, known)
    lower, bounds_below = _prove_end(constraints, part.lower, -1.0, known)
    require((part.upper.status == "EMPTY") == (part.lower.status == "EMPTY"), "one end is of an empty set, the other not")
    empty = part.upper.status == "EMPTY"
    evidence = constraints.evidence[0]
    uses, level = facts.uses, evidence.level(NO_STEPS, 0.0)
    if facts.follows_variance:
        last = known[-1]
        uses = f"range {last.residual_bound:.3g}"
        level = evidence.level(last.steps[0], last.variances[0] / evidence.count**2)
    if empty and facts.follows_variance:
        steps = evidence.steps(facts.widths.over_ball(facts.radius))
        level = evidence.level(steps, evidence.variance(part.inside))
    _check_misfit(constraints, _check_least_loss(constraints, known, level), empty=empty)
    _check_identification(constraints)
    added = constraints.added
    return ClassProof(
        constraints,
        tuple(known),
        math.nan if empty else part.offset - lower - added,
        math.nan if empty else part.offset + upper + added,
        (bounds_above, bounds_below),
        level,
        uses,
    )


def _prove_rounds(constraints: ClassSet) -> list[Known]:
    """Range and variances before every round, each proved from the constraints of the round before."""
    facts, part, known = constraints.facts, constraints.facts.part, [constraints.begin()]
    if not facts.follows_variance:
        require(not part.rounds and not part.steps, "a radius that is one number has no rounds")
        return known
    require(len(part.rounds) == len(part.steps) + 1, "its rounds do not fit their proofs")
    evidence = constraints.evidence
    for step, claimed in zip(part.steps, part.rounds[1:], strict=True):
        before, variances = known[-1], []
        require(len(step.variances) == len(evidence), "its rounds do not fit their proofs")
        around = [ellipsoid(*constraints.bounds(terms, known)) for terms in step.range]
        found = [each for each in around if each is not None]
        for index, (each, largest, terms) in enumerate(zip(evidence, before.variances, step.variances, strict=True)):
            roots = [root_variance(each.variance, one) for one in found]
            if terms is not None:
                bounds, multipliers = constraints.bounds(terms, known)
                roots.append(root_of(-least_value(constraints.variance_goal(index), bounds, multipliers)))
            hidden = (facts.hidden * each.missed[1] if part.unseen is not None else 0.0) + each.gap[1]
            variances.append(min([largest, *((root + hidden) ** 2 * each.count**2 for root in roots)]))
        b = min(before.residual_bound, facts.widths.over(found, facts.radius)) if found else before.residual_bound
        known.append(_claimed(constraints, before, claimed, b, variances))
    first, begun = part.rounds[0], known[0]
    require(len(first.steps) == len(first.variances) == len(evidence), "its rounds do not fit their proofs")
    near(first.residual_bound, begun.residual_bound, "the range of the residuals before the first round")
    for claim, steps, variance, largest in zip(first.steps, begun.steps, first.variances, begun.variances, strict=True):
        near(variance, largest, "the variance before the first round")
        near(claim.observed, steps.observed, "the largest step before the first round")
        near(claim.largest, steps.largest, "the largest possible step before the first round")
        near(claim.squares, steps.squares, "the squared widths before the first round")
    return known


def _claimed(constraints: ClassSet, before: Known, claimed: RoundRecord, b: float, variances: Sequence[float]) -> Known:
    """What a certificate says of the next round, where that is no less than what is proved: later proofs rest on what it says."""
    require(len(claimed.variances) == len(variances), "its rounds do not fit their proofs")
    _no_less(claimed.residual_bound, b, "the range of the residuals in a round")
    bound = min(claimed.residual_bound, before.residual_bound)
    steps, found = _steps(constraints, before, claimed, bound), []
    for claim, proved, last, each in zip(claimed.variances, variances, before.variances, steps, strict=True):
        _no_less(claim, min(proved, each.squares), "the variance in a round")
        found.append(min(claim, last, each.squares))
    return Known(bound, tuple(found), tuple(steps))


def _no_less(claimed: float, proved: float, what: str) -> None:
    require(claimed >= proved * (1 - 1e-9), f"{what} is {proved:.9g}, not {claimed:.9g}")


def _steps(constraints: ClassSet, before: Known, claimed: RoundRecord, b: float) -> list[Steps]:
    """What is known of steps; the largest of the data is a maximum over rows, which only the data tell, as they do the sums."""
    require(len(claimed.steps) == len(constraints.evidence), "its rounds do not fit their proofs")
    found = []
    for index, (claim, last) in enumerate(zip(claimed.steps, before.steps, strict=True)):
        steps = constraints.declared(claimed.steps, index, b)
        require(claim.observed >= 0, "a step in the data is not a length")
        near(claim.largest, steps.largest, "the largest possible step of a round")
        near(claim.squares, steps.squares, "the squared widths of a round")
        found.append(Steps(steps.largest, min(claim.observed, last.observed, steps.largest), steps.squares))
    return found


def _prove_end(constraints: ClassSet, end: EndRecord, sign: float, known: Sequence[Known]) -> tuple[float, list[Bound]]:
    """The bound that the multipliers prove, which is the reported one up to rounding."""
    facts = constraints.facts
    bounds, multipliers = constraints.bounds(end.terms, known)
    if end.status == "UNBOUNDED":
        require(end.bound == math.inf and not any(multipliers), "an end without a bound is reported as bounded")
        return math.inf, bounds
    if end.status == "EMPTY":
        _check_empty(end, bounds, multipliers)
        return math.nan, bounds
    require(end.status in ("OPTIMAL", "BOUND_ONLY"), f"an end has the status {end.status!r}")
    goal = constraints.objective(sign)
    bound = -least_value(goal, bounds, multipliers)
    size = abs(bound) + abs(facts.part.offset - facts.reference) + facts.largest
    require(math.isfinite(bound), "the multipliers of an end prove nothing")
    # The program that was solved may have been held a little wider, for its own rounding; never narrower.
    # Beyond the range of values an end says nothing: huge numbers have fewer digits there, and a wider claim is no other one.
    low, high = facts.ranges.value
    beyond = min(end.bound, bound) > (high - facts.part.offset if sign > 0 else facts.part.offset - low)
    least, largest = (bound - WIDER * size, math.inf) if beyond else (bound - TOLERANCE * size, bound + WIDER * size)
    fits = least <= end.bound <= largest
    require(fits, f"an end is {bound:.9g}, not {end.bound:.9g}")
    return end.bound if end.bound > bound else bound, bounds


def _check_empty(end: EndRecord, bounds: list[Bound], multipliers: list[float]) -> None:
    """sum_j alpha_j (q_j - limit_j) > 0 everywhere: no theta meets all of them. The bound is the least loss that this proves."""
    first = bool(end.terms) and end.terms[0].role == "loss" and multipliers[0] == 1.0
    require(first, "a proof of emptiness begins with the loss")
    m = len(bounds[0].form.a)
    nothing = Form.of(np.zeros((m, m)), np.zeros(m), 0.0)
    value = least_value(nothing, bounds, multipliers)
    require(value > 0, "the multipliers do not prove that the set is empty")
    least = value + bounds[0].limit
    # The solver counts rounding more generously: it may claim less than is proved here, as long as it is enough, never more.
    size = TOLERANCE * (abs(least) + abs(bounds[0].limit))
    fits = bounds[0].limit - size <= end.bound <= least + size
    require(fits, f"the least loss of an empty set is {least:.9g}, not {end.bound:.9g}")


def _check_least_norm(constraints: ClassSet) -> None:
    """A lower bound of the norm of every function that is consistent with the data."""
    facts, part = constraints.facts, constraints.facts.part
    if part.least_norm is None or part.least_norm == 0:
        return
    record, evidence = facts.record, constraints.evidence[0]
    loose = ClassSet(replace(facts, norm_bound=ball_radius(record, part, before_data=True)))
    require(part.rest is None or facts.follows_variance, "nothing bounds the norm of the features alone")
    if part.unseen is not None and not facts.follows_variance:
        # One of norm r has coordinates of norm at most r, with a root loss larger by at most r times what is missed.
        root = math.sqrt(loose.plain_limit()) + part.least_norm * evidence.missed[0]
        bounds, multipliers = [Bound(evidence.squared, root**2)], [term.multiplier for term in part.least_norm_terms]
        mask = part.penalized
    else:
        bounds, multipliers = loose.bounds(part.least_norm_terms, [loose.begin()])
        mask = loose.features
    value = least_value(Form.of(np.diag(mask.astype(float)), np.zeros(len(mask)), 0.0), bounds, multipliers)
    size = TOLERANCE * facts.largest
    near(part.least_norm, math.sqrt(max(value, 0.0)), "the least norm", absolute=size)


def _check_least_loss(constraints: ClassSet, known: Sequence[Known], level: float) -> float:
    """The least loss over ball and box, and the residuals where it is least within the ball; that least loss within the ball."""
    facts, part, evidence = constraints.facts, constraints.facts.part, constraints.evidence[0]
    size = max(TOLERANCE * (abs(evidence.squared.a0) + evidence.rounding), 1e-4 * level)
    if facts.follows_variance:
        near(part.least_loss, _least_in_ball(constraints), "the least loss", absolute=size)
    elif math.isfinite(part.least_loss):
        require(bool(part.least_loss_terms), "the least loss has no proof")
        first, others = part.least_loss_terms[0], part.least_loss_terms[1:]
        require(first.role == "loss" and first.multiplier == 1.0, "the proof of the least loss begins with the loss")
        goal = constraints.loss(first.evidence, first.rate, known[0]).form
        proved = least_value(goal, *constraints.bounds(others, known))
        if facts.rule.loss is LossKind.V and not constraints.extra_variable:
            proved = max(proved, 0.0)
        near(part.least_loss, proved, "the least loss", absolute=size)
    if math.isnan(part.ball_multiplier):
        require(facts.rule.loss is LossKind.U, "the least loss has no proof")
        return -math.inf
    if facts.norm_bound is not None:
        around = constraints.enclosing(unseen=False)
        require(around.form(part.inside) <= around.limit * (1 + 2e-6), "the loss is least outside of the ball")
    least = _least_in_ball(constraints)
    near(evidence.squared(part.inside), least, "the loss where it is least", absolute=size)
    return least


def _least_in_ball(constraints: ClassSet) -> float:
    """min loss over the ball, by the multiplier that the certificate gives; what is unseen left out."""
    facts, part, squared = constraints.facts, constraints.facts.part, constraints.evidence[0].squared
    bounds: list[Bound] = []
    multipliers: list[float] = []
    if facts.norm_bound is not None:
        bounds, multipliers = [constraints.enclosing(unseen=False)], [part.ball_multiplier]
    value = least_value(squared, bounds, multipliers)
    # A V-statistic is a squared length: where the matrix is singular, that it is not negative is known all the same.
    return max(value, 0.0) if facts.rule.loss is LossKind.V else value


def _check_misfit(constraints: ClassSet, least: float, *, empty: bool) -> None:
    """How far every function of the class is from Q, where it is refuted.

    A function within e of Q everywhere has a root loss larger by at most (1 + discount) e kappa, for a kernel K >= 0.
    """
    facts, evidence = constraints.facts, constraints.evidence[0]
    part, statistic = facts.part, facts.part.statistic
    ones = len(part.penalized) + 1
    kappa = root_of(statistic.pair_gram[ones, ones]) / statistic.count
    expected = 0.0
    rule, widths = facts.rule, facts.widths
    of_kernel = rule.loss is LossKind.V and rule.approach is not Approach.SELF_NORMALIZED
    # A constant that rests on a range which only functions of the class have says nothing about Q.
    of_class = rule.approach is not Approach.CONSTANT and not facts.follows_variance
    of_class = of_class and rule.rests is Rests.WIDTH and widths.before_data() < widths.declared
    width, record = widths.declared, facts.record
    if record.average is not None:
        width = relative_values(record.average, part, exact_policy=record.setting.exact_policy).declared_width
    if not facts.follows_variance and rule.rests is not Rests.NOTHING:
        of_class = of_class or widths.declared < width
    if empty and of_kernel and not of_class and part.nonnegative_kernel and kappa > 0 and math.isfinite(width):
        largest = evidence.level(evidence.steps(width), (width * evidence.reach) ** 2 / evidence.count)
        allowed = math.sqrt(largest + evidence.rounding) + evidence.gap[0]
        root = math.sqrt(max(least, 0.0)) - (facts.hidden * evidence.missed[0] if part.unseen is not None else 0.0)
        expected = max(0.0, root - allowed) / ((1 + facts.record.assumptions.discount) * kappa)
    size = facts.largest
    near(part.least_misfit, expected, "the misfit of the class", absolute=1e-5 * size)


def _check_identification(constraints: ClassSet) -> None:
    """Smallest over largest eigenvalue of Z'(K - qD)Z at the last rate."""
    part, evidence = constraints.facts.part, constraints.evidence[0]
    if not constraints.facts.follows_variance:
        return
    values = np.linalg.eigvalsh(evidence.squared.plus(evidence.variance, -part.last_rate).A)
    expected = float(values[0] / values[-1]) if values[-1] > 0 else -1.0
    near(part.identification, expected, "the identification", absolute=1e-9)


def near(claimed: float, derived: float, what: str, absolute: float = 0.0) -> None:
    """Refuse a number that is not the one that follows, up to rounding."""
    if (math.isnan(claimed) and math.isnan(derived)) or claimed == derived:
        return
    if not abs(claimed - derived) <= max(TOLERANCE * abs(derived), absolute):
        raise Refuted(f"{what} is {derived:.9g}, not {claimed:.9g}")
