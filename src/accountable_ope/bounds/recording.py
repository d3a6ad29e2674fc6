"""From an interval to its certificate as data, and the check that the interval says nothing else than what is proved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version

import numpy as np
from threadpoolctl import threadpool_limits

from ..problem.statements import Status
from ..programs.certificate import Certificate
from ..programs.constraint import Constraint, Role
from ..programs.constraint_set import ConstraintSet
from ..programs.envelope import Steps
from ..programs.evidence import Evidence
from ..programs.quadratic import Quadratic
from ..radii.registry import radius_rule
from ..statistics.statistic import KernelStatistic
from ..verification import theorems
from ..verification.boxes import plain_box
from ..verification.class_proof import ClassProof
from ..verification.dual import Bound, Form
from ..verification.evidence import Evidence as DerivedEvidence
from ..verification.record import (
    FORMAT,
    VERSION,
    ClassRecord,
    CoverRecord,
    CutRecord,
    DeltaRecord,
    PlanRecord,
    PremiseRecord,
    RadiusRecord,
    Record,
    RestRecord,
    ResultRecord,
    RoundRecord,
    RowsRecord,
    StatisticRecord,
    StepsRecord,
)
from ..verification.verify import Verification, sentence, verify_record
from .class_certificates import ClassCertificates
from .interval import Interval
from .observed import observed_steps_hold
from .terms import Terms


@cache
def _installed() -> str:
    """The version of this package, which is looked up in files."""
    return version("accountable-ope")


def record_of(interval: Interval) -> Record:
    """The certificate of an interval."""
    setting, radius, split = interval.setting, interval.radius, interval.split
    return Record(
        format=FORMAT,
        version=VERSION,
        package=_installed(),
        estimand=interval.estimand,
        data=setting.data,
        kernel=setting.kernel,
        assumptions=interval.assumptions,
        average=setting.average,
        setting=setting.circumstances,
        delta=DeltaRecord(split.total, split.kernel, split.start, split.features),
        radius=RadiusRecord(radius.name, radius.theorem, radius.uses, radius.guarantee.name, radius.level, radius.rounding),
        classes=tuple(_class_record(part) for part in interval.certificates),
        result=ResultRecord(interval.lower, interval.upper, interval.unclipped, interval.status.name, interval.start_error),
        premises=tuple(PremiseRecord(each.name, each.text) for each in interval.premises),
        doubts=tuple(PremiseRecord(each.statement.name, each.text) for each in interval.doubts),
        remarks=tuple(PremiseRecord(each.name, each.text) for each in interval.remarks),
        steps=tuple(PremiseRecord(each.name, each.text) for each in setting.steps),
    )


def _class_record(part: ClassCertificates) -> ClassRecord:
    constraints, basis, statistic, tightening = part.constraints, part.basis, part.statistic, part.tightening
    reach, unseen = basis.residuals, constraints.unseen
    terms = Terms(constraints, basis.residuals)
    upper, lower = terms.end(part.upper), terms.end(part.lower)  # these name all rows that there are
    least = constraints.least if constraints.decomposition.convex else None
    steps = () if tightening is None else tuple(terms.step(step, number) for number, step in enumerate(tightening.steps))
    history = () if tightening is None else tightening.rounds
    rounds = tuple(RoundRecord(each.residual_bound, each.variances, _steps_records(each.steps)) for each in history)
    return ClassRecord(
        description=basis.description,
        nonnegative_kernel=basis.nonnegative_kernel,
        listed=basis.listed,
        statistic=statistic_record(statistic),
        objective=basis.objective,
        offset=part.offset,
        reference=basis.reference,
        penalized=constraints.penalized,
        moments=basis.moments,
        unseen=None if unseen is None else (unseen.objective, unseen.box),
        cover=CoverRecord(reach.diameter, reach.slack, reach.points, reach.center),
        sums=_rows_record(part),
        rows=tuple(terms.averaged(each) for each in terms.rows),
        norm_bound=part.norm_bound,
        least_norm=part.least_norm,
        least_norm_terms=part.least_norm_terms,
        note=part.note,
        inside=np.zeros(statistic.dimension) if least is None else least.theta,
        ball_multiplier=math.nan if least is None else constraints.decomposition.proving_multiplier(constraints.enclosing),
        least_loss_terms=part.least_loss_terms,
        rounds=rounds,
        steps=steps,
        upper=upper,
        lower=lower,
        least_loss=part.least_loss,
        least_misfit=part.least_misfit,
        specification=part.specification,
        norm_test=part.norm_test,
        identification=math.nan if tightening is None else tightening.identification,
        last_rate=math.nan if tightening is None else tightening.rate,
        rest=None if constraints.rest is None else RestRecord(constraints.rest.coordinates, reach.rest_diameter),
    )


def _steps_records(steps: Sequence[Steps]) -> tuple[StepsRecord, ...]:
    return tuple(StepsRecord(each.largest, each.observed, each.squares) for each in steps)


def statistic_record(statistic: KernelStatistic) -> StatisticRecord:
    """The statistic as a certificate holds it."""
    return StatisticRecord(
        statistic.pair_gram,
        statistic.diag_gram,
        statistic.column_scale,
        statistic.count,
        statistic.kernel_supremum,
        statistic.kernel_error,
        statistic.has_remainder,
    )


def _rows_record(part: ClassCertificates) -> RowsRecord:
    sums, cut = part.basis.sums, part.basis.sums.cut
    record = None
    if cut is not None:
        chosen = (cut.kind, cut.earlier, cut.rate)
        record = CutRecord(cut.total, cut.squares, cut.count, cut.absolute, cut.length, *chosen, cut.missed)
    no_cut = None if part.basis.no_cut is None else part.basis.no_cut.name
    planned = None if sums.planned_for is None else PlanRecord(sums.planned_for.assumptions, sums.planned_for.delta)
    return RowsRecord(sums.log_determinant, sums.bootstrap, record, no_cut, planned, sums.largest_scaled)


def verify_interval(interval: Interval) -> Verification:
    """Prove the certificate, and compare all that the interval carries with what was derived."""
    try:
        with threadpool_limits(limits=1, user_api="blas"):  # small matrices: threads only get in each other's way
            record = record_of(interval)
            verification = verify_record(record)
            wrong = _differences(interval, verification) if verification.valid else []
            if verification.valid:  # the interval has its sums from the rows
                said = sentence(record, verification.lower, verification.upper, compared=True)
                verification = replace(verification, message=said)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # of parts that do not fit together
        return Verification(False, f"Not proved: its parts do not fit together ({error}).")
    return Verification(False, f"Not proved: {wrong[0]} is not what follows.") if wrong else verification


def _differences(interval: Interval, proved: Verification) -> list[str]:
    """What an interval carries beside its certificate, and differs from what follows."""
    setting, circumstances = interval.setting, interval.setting.circumstances
    facts = {
        "ranges": interval.ranges == proved.ranges,
        "terminates": interval.terminates == circumstances.terminates,
        "count": interval.count == setting.data.rows,
        "kernel": interval.kernel == setting.kernel.text,
        "estimand": interval.estimand == ("Value" if setting.average is None else "Average reward") + " of the target policy",
        "delta": interval.radius.delta == interval.split.kernel,
        "loss": interval.radius.loss is radius_rule(interval.radius.name).loss,
        "outcome": interval.outcome is not Status.DOUBTED,  # that is a status, told from the doubts
        "premises": interval.premises == proved.premises,
    }
    wrong = [name for name, same in facts.items() if not same]
    for part, proof in zip(interval.certificates, proved.classes, strict=True):
        wrong += _class_differences(part, proof)
    return wrong


def _class_differences(part: ClassCertificates, proof: ClassProof) -> list[str]:
    """The same for one class: its constraint set, its two programs, and what was added to its ends."""
    derived, held, reach = proof.constraints, part.constraints, part.basis.residuals
    record, box = derived.facts.record, plain_box(derived.facts)
    facts = {
        "features": part.features == derived.facts.name,
        "offset": record.setting.anchored
        or part.offset == (derived.facts.reference if record.average is None else record.average.middle),
        "reference": reach.reference == derived.facts.reference,
        "missed": _close(part.missed, derived.added),
        "norm_bound": held.norm_bound == derived.facts.norm_bound,
        "rest": _rest(held) == (None if derived.facts.part.rest is None else derived.facts.rest_radius),
        "joint": held.joint == derived.facts.rule.joint,
        "range": held.range is reach and reach.ranges == derived.facts.ranges and reach.terminates == record.setting.terminates,
        "assumptions": reach.assumptions == derived.facts.assumptions,
        "evidence": len(held.evidence) == len(derived.evidence),
        "box": held.box is None or _same_constraint(held.box, Role.BOX, box),
        "upper": part.upper.check().valid and _same_goal(part.upper, derived.objective(1.0)),
        "lower": part.lower.check().valid and _same_goal(part.lower, derived.objective(-1.0)),
        "program": all(map(_same_program, (part.upper, part.lower), proof.ends)),
        "tightening": part.tightening is None
        or (part.tightening.constraints is held and all(each.count == held.evidence[0].count for each in part.tightening.rounds)),
        "observed": held.steps is None or observed_steps_hold(proof, held.steps, [each.scale for each in held.evidence]),
    }
    wrong = [name for name, same in facts.items() if not same]
    pairs = zip(held.evidence, derived.evidence, strict=False)
    return wrong + ["evidence" for mine, theirs in pairs if not _same_evidence(mine, theirs)]


def _rest(held: ConstraintSet) -> float | None:
    return None if held.rest is None else held.rest.radius


def _same_evidence(mine: Evidence, theirs: DerivedEvidence) -> bool:
    numbers = zip(
        (mine.count, mine.reach, mine.mass, *mine.missed, *mine.gap, mine.rounding),
        (theirs.count, theirs.reach, theirs.mass, *theirs.missed, *theirs.gap, theirs.rounding),
        strict=True,
    )
    if mine.name != theirs.name or not all(_close(a, b) for a, b in numbers):
        return False
    if not (_same_form(mine.squared, theirs.squared) and _same_form(mine.variance, theirs.variance)):
        return False
    # Two envelopes are the same where they agree, at several ranges and variances.
    for b, variance, observed in ((1.0, 1.0, 1.0), (0.1, 10.0, 0.5), (1e-3, 1e-4, 1e-2)):
        step = b * (theirs.envelope.prior if isinstance(theirs.envelope, theorems.Mixture) else 1.0)
        v, known = np.array([0.0, variance * step**2]), (step, observed * step, theirs.count * step**2)
        if not np.allclose(
            mine.envelope.bound(Steps(*known), v)[0], theirs.envelope.at(theorems.Steps(*known), v)[0], rtol=1e-9, atol=0
        ):
            return False
    return True


def _same_program(certificate: Certificate, bounds: Sequence[Bound]) -> bool:
    pairs = zip(certificate.constraints, bounds, strict=True)
    return all(_same_constraint(mine, mine.role, theirs) for mine, theirs in pairs)


def _same_constraint(mine: Constraint, role: Role, theirs: Bound) -> bool:
    near = abs(mine.limit - theirs.limit) <= 1e-6 * abs(theirs.limit)  # proved twice, with rounding counted differently
    return mine.role is role and _same_form(mine.quadratic, theirs.form) and near


def _same_goal(certificate: Certificate, goal: Form) -> bool:
    return np.array_equal(certificate.objective, 2 * goal.a)


def _same_form(mine: Quadratic, theirs: Form) -> bool:
    sizes = theirs.sizes
    return bool(
        (np.abs(mine.A - theirs.A) <= 1e-6 * sizes[0]).all()
        and (np.abs(mine.a - theirs.a) <= 1e-6 * sizes[1]).all()
        and abs(mine.a0 - theirs.a0) <= 1e-6 * sizes[2]
    )


def _close(mine: float, theirs: float) -> bool:
    return mine == theirs or abs(mine - theirs) <= 1e-9 * abs(theirs)
