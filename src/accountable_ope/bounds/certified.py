"""One class of Q with a radius that follows the variance: from its statistic to both ends, by the iteration of `tightening`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..classes.ranges import ResidualRange
from ..errors import InvalidInput
from ..problem.assumptions import Assumptions, ValueRanges
from ..programs.certificate import SolveStatus
from ..programs.ellipsoid_ball import decompose
from ..programs.envelope import Envelope
from ..programs.evidence import Evidence, TightSet
from ..programs.lagrangian import Constraint, Role, ball
from ..programs.pointwise import PointwiseRows, with_rows
from ..programs.proofs import Tightening
from ..programs.quadratic import Quadratic
from ..programs.remainder import one_more
from ..programs.tightening import least_norm, tighten
from ..radii.cut import Cut
from ..radii.registry import Method, Radius, RadiusRule
from ..statistics.bellman import BellmanSystem
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray
from .interval import ClassCertificates
from .solving import norm_of_ball, rounding_slack, value_box


@dataclass(frozen=True, eq=False)
class TightClass:
    """What one class contributes, and the radius that the iteration amounts to."""

    part: ClassCertificates
    radius: Radius


def solve_tightened(
    name: str,
    system: BellmanSystem,
    statistic: KernelStatistic,
    rule: RadiusRule,
    delta: float,
    planned: int,
    assumptions: Assumptions,
    ranges: ValueRanges,
    residuals: ResidualRange,
    cut: Cut | None = None,
    rows: PointwiseRows | None = None,
) -> TightClass:
    """Both ends of one class. With a cut, half of delta is spent on each of the two martingales.

    With rows, boxes averaged over the points where the ends break the value range join the other constraints, and the iteration
    runs once more.
    """
    if rule.envelope is None:
        raise InvalidInput(f"The radius {rule.name!r} does not follow the variance.")
    rounding = rounding_slack(statistic, assumptions, ranges, system)
    share = 0.5 * delta if rule.cut else delta  # whether or not the earlier rows gave weights: no choice by the data
    prior = residuals.before_data  # the rates of the envelope must be fixed before the data
    reach = math.sqrt(statistic.kernel_supremum)
    envelope = rule.envelope(prior * reach, planned, share)
    gap = (1 + system.discount) * assumptions.misfit
    evidence = [_kernel_evidence(statistic, envelope, gap, rounding)]
    if cut is not None:
        evidence.append(cut.evidence(system, rule.envelope(prior, cut.count, share), gap))
    tight, note, smallest = _tight_set(system, tuple(evidence), rule, assumptions, ranges, residuals)
    inside = _inside(system, statistic, tight.norm_bound)
    upward, downward = system.objective, -system.objective
    if system.remainder is not None:
        upward = np.append(upward, system.remainder.objective)
        downward = np.append(downward, system.remainder.objective)
    upper, lower, tightening = tighten(tight, upward, downward, inside)
    if rows is not None and upper.status is not SolveStatus.EMPTY:
        broken = [with_rows(end, rows).certificate for end in (upper, lower)]
        boxes = [c for end in broken for c in end.constraints if c.role is Role.BOX and c not in tight.others]
        if boxes:
            tight = replace(tight, others=(*tight.others, *boxes))
            upper, lower, tightening = tighten(tight, upward, downward, inside)
    empty = upper.status is SolveStatus.EMPTY
    least_loss = statistic.v_loss()(inside[: system.dimension])
    part = ClassCertificates(
        features=name,
        upper=upper,
        lower=lower,
        norm_bound=tight.norm_bound,
        least_norm=smallest,
        least_loss=least_loss,
        misfit=_misfit(system, statistic, evidence[0].envelope, residuals, least_loss) if empty else 0.0,
        statistic=statistic,
        note=note,
        offset=system.offset,
        missed=assumptions.misfit,
        tightening=tightening,
        chance_loss=math.nan if system.remainder is not None else statistic.variance()(inside),
    )
    level = _level_at(evidence[0], residuals.over_ball(tight.norm_bound), inside) if empty else tightening.level
    return TightClass(part, rule.at(level, _uses(tightening), delta, rounding))


def _kernel_evidence(statistic: KernelStatistic, envelope: Envelope, gap: float, rounding: float) -> Evidence:
    return Evidence(
        name="kernel",
        squared=statistic.v_loss(),
        variance=statistic.variance(),
        count=statistic.count,
        reach=math.sqrt(statistic.kernel_supremum),
        envelope=envelope,
        missed=(statistic.missed, statistic.missed_variance),
        misfit=(gap * statistic.kappa, gap * statistic.kappa_variance),
        rounding=rounding,
    )


def _tight_set(
    system: BellmanSystem,
    evidence: tuple[Evidence, ...],
    rule: RadiusRule,
    assumptions: Assumptions,
    ranges: ValueRanges,
    residuals: ResidualRange,
) -> tuple[TightSet, str, float | None]:
    """The set before any round, why the ball is what it is, and the least norm consistent with the data."""
    joint = rule.method is Method.JOINT
    box = value_box(system.box_moments, system.dimension, ranges, assumptions.misfit)
    free, _ = norm_of_ball(replace(assumptions, norm_bound=None), None, ranges)

    inside = np.zeros(system.dimension + (system.remainder is not None))

    def with_norm(bound: float) -> TightSet:
        return TightSet(evidence, _others(system, box, bound), bound, residuals, joint)

    def least(tight: TightSet) -> float | None:
        return least_norm(tight, inside, _squared_norm(system))

    if isinstance(assumptions.norm_bound, float):
        bound, note = norm_of_ball(assumptions, None, ranges)
        return with_norm(bound), note, least(with_norm(bound))
    smallest = least(with_norm(free))
    bound, note = norm_of_ball(assumptions, smallest, ranges)
    return with_norm(bound), note, smallest


def _others(system: BellmanSystem, box: Constraint | None, norm_bound: float) -> tuple[Constraint, ...]:
    """Ball and box; with an unseen part of the class its norm is one more variable."""
    if system.remainder is None:
        round_ball = ball(system.penalized, norm_bound)
    else:
        round_ball = ball(np.append(system.penalized, True), norm_bound)
        if box is not None:
            quadratic, limit = one_more(box.quadratic, box.limit, system.remainder.box, norm_bound)
            box = Constraint(box.role, quadratic, limit)
    return (round_ball,) if box is None else (round_ball, box)


def _squared_norm(system: BellmanSystem) -> Quadratic:
    mask = system.penalized if system.remainder is None else np.append(system.penalized, True)
    return ball(mask, 1.0).quadratic


def _inside(system: BellmanSystem, statistic: KernelStatistic, norm_bound: float) -> FloatArray:
    """The point of least loss within the ball."""
    theta = decompose(statistic.v_loss(), system.penalized).least_loss(norm_bound).theta
    return theta if system.remainder is None else np.append(theta, 0.0)


def _level_at(one: Evidence, residual_bound: float, theta: FloatArray) -> float:
    """U(b, V_n)^2 / n^2 at one Q: what its loss may be, were it the true one."""
    variance = one.variance(theta[: len(one.variance.a)]) * one.count**2
    u, _ = one.envelope.bound(residual_bound * one.reach, np.array([max(variance, 0.0)]))
    return float(u[0]) ** 2 / one.count**2


def _misfit(
    system: BellmanSystem, statistic: KernelStatistic, envelope: Envelope, residuals: ResidualRange, least_loss: float
) -> float:
    """How far every function of the class is from Q somewhere. Q is not in the class, so only declared ranges bound it."""
    step = residuals.declared * math.sqrt(statistic.kernel_supremum)
    u, _ = envelope.bound(step, np.array([statistic.count * step**2]))
    excess = math.sqrt(max(least_loss, 0.0)) - float(u[0]) / statistic.count
    return max(0.0, excess) / ((1 + system.discount) * statistic.kappa) if statistic.kappa > 0 else 0.0


def _uses(tightening: Tightening) -> str:
    last = tightening.rounds[-1]
    return f"range {last.residual_bound:.3g}"
