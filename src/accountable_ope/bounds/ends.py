"""From one class of Q to both ends of its interval: evidence, constraint set, solver, certificates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from threadpoolctl import threadpool_limits

from ..errors import InvalidInput
from ..problem.assumptions import RelativeNorm, ValueRanges
from ..programs.certificate import LeastNormFound
from ..programs.constraint import Constraint, Role
from ..programs.constraint_set import ConstraintSet, Unseen
from ..programs.envelope import Steps
from ..programs.pointwise_rows import PointwiseRows
from ..programs.proofs import Round
from ..programs.quadratic import Quadratic
from ..programs.solver import Solution, least_norm_found, solve, solve_from
from ..programs.step_rows import StepRows
from ..radii.member import Member
from ..radii.premises import why_so_large
from ..radii.registry import Approach, Grounds, LossKind, Radius, RadiusRule, Rests
from ..statistics.bellman import BellmanSystem
from .class_certificates import Basis, ClassCertificates
from .proving import proved_norm, proved_solution
from .terms import terms_of


@dataclass(frozen=True, eq=False)
class ClassEnds:
    """What one class contributes, and the radius that it rests on."""

    part: ClassCertificates
    radius: Radius


def class_ends(member: Member, rule: RadiusRule, delta: float, planned: int, *, pointwise: bool | None = None) -> ClassEnds:
    """Both ends of one class at one radius; pointwise: the value box holds at every kept point, not only on average.

    None: where the radius follows the variance.
    """
    return ends_of(member, rule, rule.evidence(member, delta, planned), delta, pointwise=pointwise)


def ends_of(
    member: Member,
    rule: RadiusRule,
    grounds: Grounds,
    delta: float,
    *,
    pointwise: bool | None = None,
    begun: Round | None = None,
) -> ClassEnds:
    """Both ends of one class from its evidence.

    begun: what is known already of a set around this one; then the certificate does not prove the ends by itself.
    """
    constraints, smallest, note = constraint_set(member, grounds, joint=rule.joint)
    wanted = constraints.follows_variance if pointwise is None else pointwise
    rows = _pointwise_rows(member, constraints, asked=bool(pointwise)) if wanted else None
    objective = member.system.objective
    solution = solve(constraints, objective, rows) if begun is None else solve_from(constraints, objective, rows, begun)
    solution = proved_solution(solution)
    constraints, evidence = solution.constraints, solution.constraints.evidence[0]
    uses, level = (
        grounds.uses,
        evidence.bound(Steps.within(0.0), 0.0) if solution.tightening is None else solution.tightening.level,
    )
    if solution.tightening is not None:
        uses = f"range {solution.tightening.rounds[-1].residual_bound:.3g}"
        if solution.empty:
            widest = evidence.steps(constraints.range.over_ball(constraints.radius))
            level = evidence.bound(widest, evidence.variance(constraints.least.theta))
    part = ClassCertificates(
        features=member.name,
        constraints=constraints,
        upper=solution.upper,
        lower=solution.lower,
        norm_bound=constraints.norm_bound,
        least_norm=None if smallest is None else smallest.value,
        least_loss=solution.least_loss,
        least_misfit=_least_misfit(member, rule, solution) if solution.empty and _bounds_misfit(rule) else 0.0,
        statistic=grounds.statistic,
        note=note,
        offset=member.system.offset,
        missed=solution.missed + member.misfit,
        tightening=solution.tightening,
        tests=member.tests,
        basis=Basis(
            description=member.description,
            nonnegative_kernel=member.kernel.nonnegative,
            listed=member.listed,
            objective=member.system.objective,
            moments=member.system.box_moments,
            reference=member.system.reference,
            residuals=member.residuals,
            sums=grounds.sums,
            no_cut=grounds.no_cut,
        ),
        least_norm_terms=() if smallest is None else terms_of(smallest.argument),
        least_loss_terms=terms_of(solution.least_loss_argument) if solution.tightening is None else (),
    )
    return ClassEnds(part, rule.at(level, uses, delta, member.rounding))


def constraint_set(member: Member, grounds: Grounds, *, joint: bool) -> tuple[ConstraintSet, LeastNormFound | None, str]:
    """The set, the least norm that is consistent with the evidence, and why the ball is what it is."""
    system, declared = member.system, member.norm
    remainder = system.remainder
    first = ConstraintSet(
        evidence=grounds.evidence,
        penalized=system.penalized,
        norm_bound=declared if isinstance(declared, float) else member.largest_norm,
        box=member.box,
        range=member.residuals,
        joint=joint,
        unseen=None if remainder is None else Unseen(remainder.objective, remainder.box),
        steps=step_rows(member) if any(each.scale is not None for each in grounds.evidence) else None,
        rest=member.rest,
    )
    smallest = proved_norm(first, least_norm_found(first))
    if isinstance(declared, RelativeNorm) and smallest is not None and smallest.value > 0:
        return replace(first, norm_bound=declared.multiple * smallest.value), smallest, ""
    return first, smallest, member.note or why_so_large(declared, None if smallest is None else smallest.value)


def step_rows(member: Member) -> StepRows:
    """The residuals of all rows."""
    system, passed = member.system, member.passed
    if passed is not None:
        return StepRows(passed.residuals, passed.target, member.residual_gap, others=passed.others)
    missed = None if system.remainder is None else system.remainder.rows
    return StepRows(system.residuals, system.target, member.residual_gap, missed, member.row_ranges)


def _bounds_misfit(rule: RadiusRule) -> bool:
    """Whether a large loss says how far Q is: a V-statistic of the kernel itself does."""
    return rule.loss is LossKind.V and rule.approach is not Approach.SELF_NORMALIZED


def _least_misfit(member: Member, rule: RadiusRule, solution: Solution) -> float:
    """How far every function of the class is from Q somewhere. Q is not in the class, so only declared ranges bound it.

    A function within e of Q everywhere has a root loss larger by at most (1 + discount) e kappa, for a kernel K >= 0. A constant
    that rests on a range which only functions of the class have says nothing about Q.
    """
    constraints, statistic, declared = solution.constraints, member.statistic, member.residuals.declared
    evidence, width = constraints.evidence[0], declared if member.declared_width is None else member.declared_width
    if not evidence.envelope.follows_variance:
        of_class = rule.approach is not Approach.CONSTANT and rule.rests is Rests.WIDTH
        if (of_class and member.residuals.before_data < declared) or (rule.rests is not Rests.NOTHING and declared < width):
            return 0.0
    if not member.kernel.nonnegative or statistic.kappa == 0 or math.isinf(width):
        return 0.0
    largest = evidence.bound(evidence.steps(width), (width * evidence.reach) ** 2 / evidence.count)
    allowed = math.sqrt(largest + evidence.rounding) + evidence.gap[0]
    return max(0.0, constraints.least_root_loss() - allowed) / ((1 + member.system.discount) * statistic.kappa)


def value_box(system: BellmanSystem, ranges: ValueRanges, misfit: float = 0.0) -> Constraint | None:
    """mean_j (Q(y_j) - middle)^2 <= (span / 2 + misfit)^2 over data, next and start points y_j: Q and V lie in the value range.

    The moments are those of [phi, 1], or of [phi, 1, anchor] for Q = anchor + theta'phi; all values are counted from a reference.
    """
    moments, dimension = system.box_moments, system.dimension
    low, high = ranges.value
    middle, half = 0.5 * (low + high) - system.reference, 0.5 * (high - low) + misfit
    if half == 0:
        return None
    phi, ones = slice(0, dimension), dimension
    linear, constant = middle * moments[phi, ones], middle**2
    if len(moments) > dimension + 1:
        anchor = dimension + 1
        linear = linear - moments[phi, anchor]
        constant += float(moments[anchor, anchor] - 2 * middle * moments[ones, anchor])
    return Constraint(Role.BOX, Quadratic(moments[phi, phi], linear, constant), half**2)


def _pointwise_rows(member: Member, constraints: ConstraintSet, *, asked: bool) -> PointwiseRows | None:
    """low - misfit <= Q <= high + misfit at every kept point; None where nothing is known of values there.

    Of Q = f'theta + g, g what coordinates miss, |g(y)| <= s tau(y) with s at most the norm bound, or that of what features miss:
    the box of f'theta is wider by this at every point. asked: refuse where nothing is known, and use it for a whole RKHS too.
    """
    system = member.system
    low, high = (end - system.reference for end in member.ranges.value)
    whole_rkhs = system.remainder is not None and member.rest is None
    unknown = not len(system.box_rows) or (system.remainder is not None and system.box_missed is None)
    if asked and unknown:
        raise InvalidInput("`pointwise` is not for this class: what is known of its values differs from point to point.")
    if unknown or (whole_rkhs and not asked) or not low < high:
        return None
    features, anchor = system.box_rows[:, :-1], system.box_rows[:, -1]
    rows = PointwiseRows.within(features, low - member.misfit, high + member.misfit, anchor)
    return rows if system.box_missed is None else rows.with_room(system.box_missed, constraints.hidden)


def single_threaded() -> threadpool_limits:
    """Small matrices: more than one BLAS thread only gets in its own way."""
    import scipy.linalg  # noqa: F401  SciPy brings a BLAS of its own, which can be limited only once it is there

    return threadpool_limits(limits=1, user_api="blas")
