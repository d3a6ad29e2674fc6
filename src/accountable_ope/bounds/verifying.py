"""`verify`: a certificate proved again and, where the data are at hand, its sums made again from them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..classes.description import describe_class, described_class
from ..classes.function_class import Features, Rest, as_classes
from ..errors import InvalidInput
from ..kernels.description import describe_kernel, described_kernel
from ..kernels.kernel import Kernel
from ..problem.assumptions import RelativeNorm
from ..problem.policy import Policy
from ..problem.problem import Problem
from ..problem.step_knowledge import NOTHING_KNOWN, StepKnowledge
from ..problem.transitions import StartStates, Transitions
from ..programs.certificate import LeastNormFound
from ..radii.choice import Choice
from ..radii.member import Member
from ..radii.plan import Plan
from ..radii.premises import Asked
from ..radii.registry import Grounds, RadiusRule, radius_rule
from ..radii.sums import CutSums
from ..statistics.bellman import BellmanSystem
from ..statistics.estimates import AnyQ
from ..statistics.examiner import ClassTests, Examiner
from ..validation import FloatArray
from ..verification.files import load_record
from ..verification.record import Circumstances, ClassRecord, CutRecord, Record, RestRecord, StatisticRecord
from ..verification.verify import Verification, sentence, verify_record
from .average_reward import average_members
from .cross_fitted import FEW_ROWS, showing_rows
from .ends import constraint_set, step_rows
from .evaluation import Around, Evaluation, evaluation_from
from .interval import Interval
from .observed import observed_steps_hold
from .recording import statistic_record
from .streamed import HEAD


@checked
def verify(
    certificate: str | os.PathLike[str] | Record | Interval,
    *,
    data: Transitions | None = None,
    starts: StartStates | None = None,
    policy: Policy | None = None,
    features: Features | Sequence[Features] | None = None,
    kernel: Kernel | None = None,
    estimate: AnyQ | None = None,
    knowledge: StepKnowledge = NOTHING_KNOWN,
) -> Verification:
    """Prove a certificate again; with the data, make its sums again from them first.

    Without data this shows that the interval follows from the sums, the assumptions and delta. With them it shows also that the
    sums are those of the data, the policy and the class.

    Parameters
    ----------
    certificate : path, Record or Interval
        What `Interval.save` wrote, or an interval itself.
    data : Transitions, optional
        The log. Of a bound that left earlier rows to a choice, the whole log or its later rows.
    starts : StartStates, optional
        The start states; needed with data, except for an average reward.
    policy : Policy, optional
        The target policy; needed with data.
    features, kernel : optional
        The class (or classes) and the kernel, where they are not of this package and so cannot be made from the certificate.
    estimate : callable, object with `predict_value`, or QColumns, optional
        The Q around which the class lies, of a diagnosis or a correction.
    knowledge : StepKnowledge, optional
        What was declared of single steps, as functions that a certificate cannot hold.

    Returns
    -------
    Verification

    Raises
    ------
    InvalidInput
        Where the file is no certificate, or something is missing that is needed with data.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=aope.RandomFourier(5), kernel=aope.Gaussian(1.0))
    >>> aope.verify(interval, data=data, starts=mdp.starts, policy=mdp.policy).valid
    True
    >>> other = mdp.sample(np.random.default_rng(1), trajectories=10)
    >>> aope.verify(interval, data=other, starts=mdp.starts, policy=mdp.policy).message
    'Not proved: the data are others than those of the certificate.'
    """
    if isinstance(certificate, Interval):
        proved, record = certificate.verify(), certificate.record()
    else:
        record = certificate if isinstance(certificate, Record) else load_record(certificate)
        proved = verify_record(record)
    if data is None or not proved.valid:
        return proved
    if policy is None or (starts is None and record.average is None):
        raise InvalidInput("`policy` and `starts` are needed with `data`: the sums depend on them.")
    log = _Log(_later(record, data), starts, policy, knowledge)
    wrong = _against_data(record, proved, log, features, kernel, estimate)
    if wrong:
        return Verification(False, f"Not proved: {wrong}.")
    found, earlier = sentence(record, proved.lower, proved.upper, compared=True), record.setting.earlier_rows
    which = f"the data after the {earlier} rows that chose the class" if earlier else "the data"
    return replace(proved, message=f"{found} Its sums are those of {which}.")


@dataclass(frozen=True, eq=False)
class _Log:
    """What a certificate is checked against."""

    data: Transitions
    starts: StartStates | None
    policy: Policy
    knowledge: StepKnowledge


def _later(record: Record, data: Transitions) -> Transitions:
    """The rows of the bound: those after the ones that a choice was made on, where all are given.

    A monitor keeps neither labels of episodes nor recorded probabilities: its rows are those of the log without them.
    """
    earlier = record.setting.earlier_rows
    later = data.after(earlier) if earlier and len(data) == record.data.rows + earlier else data
    if (later.episodes is None and later.behavior_probability is None) or later.sha256 == record.data.sha256:
        return later
    unlabeled = Transitions(later.states, later.actions, later.rewards, later.next_states, later.terminated)
    unlabeled.__dict__["copies"] = later.copies
    return unlabeled if unlabeled.sha256 == record.data.sha256 else later


def _against_data(
    record: Record,
    proved: Verification,
    log: _Log,
    features: Features | Sequence[Features] | None,
    kernel: Kernel | None,
    estimate: AnyQ | None,
) -> str:
    """What the data say against the sums of a certificate; nothing where they agree."""
    data, starts, policy = log.data, log.starts, log.policy
    if len(data) != record.data.rows or data.sha256 != record.data.sha256:
        return "the data are others than those of the certificate"
    if starts is not None and record.average is None and starts.sha256 != record.data.starts:
        return "the start states are others than those of the certificate"
    if data.left_out > record.setting.left_out:
        return "rows of the log were left out, and the certificate does not say so"
    if data.copies.doubted > record.setting.copied_rows:
        return "rows stand in the log again, and the certificate does not say so of as many"
    if policy.exact != record.setting.exact_policy:
        return "the policy is not known as exactly as the certificate says"
    if (estimate is not None) != record.setting.anchored:
        needed = "its class lies around an estimate, which must be given (--choice with what `aope bound --save-choice` wrote)"
        return needed if estimate is None else "its class lies around no estimate"
    chosen = described_kernel(record.kernel) if kernel is None else kernel
    if features is None:
        features = [described_class(part.description) for part in record.classes]
    classes = as_classes(features)
    if kernel is not None and describe_kernel(kernel).text != record.kernel.text:
        return "the kernel is another than that of the certificate"
    if any(part.specification.first_rows is not None and part.specification.first_rows < HEAD for part in record.classes):
        return "its tests are of fewer rows than there were"
    if len(classes) != len(record.classes):
        return f"it has {len(record.classes)} classes of functions"
    if any(describe_class(each).text != part.description.text for each, part in zip(classes, record.classes, strict=True)):
        return "the class is another than that of the certificate"
    rule, delta = radius_rule(record.radius.name), record.delta.kernel
    if record.average is not None:
        members = average_members(data, policy, record.average, classes, chosen, rule)
    else:
        assert starts is not None
        facts, setting = record.assumptions, record.setting
        if facts.terminates is None and setting.terminates:  # rows that chose the class may have shown it
            facts = replace(facts, terminates=True)
        problem = Problem(data, starts, policy, facts, log.knowledge, setting.propensities)
        if (problem.row_ranges.sha256 if log.knowledge.given else None) != setting.row_ranges:
            return "what was declared of single steps is something else than in the certificate"
        if [(each.name, each.text) for each in record.steps] != [(each.name, each.text) for each in Asked.of(problem).steps]:
            return "what it says of single steps is not what was declared"
        if (problem.start_is_exact, problem.effective_starts) != (setting.start_is_exact, setting.effective_starts):
            return "the start states are not known as exactly as the certificate says"
        if problem.terminates != setting.terminates:
            return "a row is terminated, and the certificate says that no state is terminal"
        when = Choice(setting.earlier_rows, setting.kernel_chosen, setting.estimate_before, setting.points_before)
        reference = max((part.reference for part in record.classes), key=abs)
        evaluation = evaluation_from(problem, chosen, classes, Around(estimate, reference, when))
        if not _same_count(setting.showing_rows, _showing(record, evaluation)):
            return "how few rows show what the target policy does is something else than in the certificate"
        try:
            plans = [_plan(part, evaluation, rule, index, setting) for index, part in enumerate(record.classes)]
        except InvalidInput:  # assumptions that these data contradict
            return "its rates and weights were fixed for something that is not true of the data"
        members = [evaluation.member_for(rule, index, growing=setting.growing, plan=plan) for index, plan in enumerate(plans)]
        if setting.coefficient_variance is not None:  # the class is a whole RKHS, of which the features are a sample
            members = [replace(member, examiner=None) for member in members]
    for part, member, proof in zip(record.classes, members, proved.classes, strict=True):
        grounds = rule.evidence(member, delta, record.setting.planned)
        wrong = _different(part, member, grounds)
        scales = [each.scale for each in grounds.evidence]
        if not wrong and part.rounds and not observed_steps_hold(proof, step_rows(member), scales):
            wrong = "the largest step"
        if not wrong and isinstance(record.assumptions.norm_bound, RelativeNorm):
            wrong = _other_least_norm(part, constraint_set(member, grounds, joint=rule.joint)[1])
        if not wrong and not _same_tests(part, _tests_of(part, member)):
            wrong = "the test"
        if wrong:
            return f"{wrong} of {part.description.text} is not that of the data"
    return ""


def _showing(record: Record, evaluation: Evaluation) -> int:
    """How few rows show what the policy does: of a longer log that was read in parts, by its first rows, those tested."""
    rows, data = record.classes[0].specification.first_rows, evaluation.problem.data
    if rows is None or rows >= len(data) or evaluation.anchor is None or not evaluation.chosen.around_a_fit:
        return evaluation.showing
    return showing_rows(evaluation.problem.part(data.rows(slice(0, rows))), len(data))


def _same_count(claimed: int, found: int) -> bool:
    """Up to one row of rounding, which may also lift a number to where it is not said any more."""
    return abs((claimed or FEW_ROWS) - (found or FEW_ROWS)) <= 1


def _plan(part: ClassRecord, evaluation: Evaluation, rule: RadiusRule, index: int, setting: Circumstances) -> Plan | None:
    """Rates, weights and factors as they were fixed for the assumptions that a certificate names; None: for its own."""
    planned = part.sums.planned_for
    if planned is None:
        return None
    facts = planned.assumptions
    if facts.terminates is None and setting.terminates:
        facts = replace(facts, terminates=True)
    member = evaluation.assuming(facts).member_for(rule, index, growing=setting.growing)
    return rule.evidence(member, planned.delta, setting.planned).plan


def _different(part: ClassRecord, member: Member, grounds: Grounds) -> str:
    """The first thing of a class that differs."""
    system, reach, cover = member.system, member.residuals, part.cover
    unseen = None if system.remainder is None else (system.remainder.objective, system.remainder.box)
    pairs: dict[str, tuple[ArrayLike, ArrayLike]] = {
        "the objective": (part.objective, system.objective),
        "the anchor": (part.offset - part.reference, system.offset - system.reference),
        "the reference": (part.reference, system.reference),
        "the norm": (part.penalized, system.penalized),
        "the value box": _in_lengths(part.moments, system.box_moments),
        "what is unseen": (part.unseen or 0.0, unseen or 0.0),
        "what features miss": (_rest(part.rest), _rest(system.rest)),
        "the diameter": (cover.diameter, reach.diameter),
        "the cover": (_points(cover.points, cover.slack), _points(reach.points, reach.slack)),
        "what is known of kernel and class": (
            (part.nonnegative_kernel, part.listed),
            (member.kernel.nonnegative, member.listed),
        ),
        "a point of a box": (_farthest_row(part, member), 0.0),
        "the determinant": (part.sums.log_determinant or 0.0, grounds.sums.log_determinant or 0.0),
        "the resampled radius": (part.sums.bootstrap or 0.0, grounds.sums.bootstrap or 0.0),
        "the scale of rows": (part.sums.largest_scaled or 0.0, grounds.sums.largest_scaled or 0.0),
    }
    if part.sums.no_cut != (None if grounds.no_cut is None else grounds.no_cut.name):
        return "why there is no cut"
    if (part.sums.cut and part.sums.cut.kind) != (grounds.sums.cut and grounds.sums.cut.kind):
        return "the cut"
    if part.sums.cut is not None and grounds.sums.cut is not None and not _same_cut(part.sums.cut, grounds.sums.cut, system):
        return "the cut"
    for name, (claimed, found) in pairs.items():
        slack = 1e-9 * max(_size(found), 1e-3 if name == "a point of a box" else 0.0)
        if np.shape(claimed) != np.shape(found) or not np.allclose(claimed, found, rtol=1e-6, atol=slack):
            return name
    return "" if _same_statistic(part.statistic, statistic_record(grounds.statistic)) else "the statistic"


def _other_least_norm(part: ClassRecord, found: LeastNormFound | None) -> str:
    """Any lower bound of it can be proved; the ball rests on the best one."""
    claimed, least = part.least_norm, None if found is None else found.value
    if claimed is None or least is None:
        return "" if claimed is least else "the least norm"
    return "" if abs(claimed - least) <= 1e-3 * least else "the least norm"


def _same_statistic(claimed: StatisticRecord, found: StatisticRecord) -> bool:
    """Sums over pairs, as near as the errors of both kernels allow."""
    if claimed.pair_gram.shape != found.pair_gram.shape or claimed.has_remainder != found.has_remainder:
        return False
    scale = np.outer(found.column_scale, found.column_scale) * found.count**2
    allowed = (claimed.kernel_error + found.kernel_error + 1e-10 * found.kernel_supremum) * scale
    return (
        claimed.count == found.count
        and claimed.kernel_supremum == found.kernel_supremum
        # Sums in single precision, or that grew batch by batch, have another error, of the same order or larger.
        and claimed.kernel_error >= 0.25 * found.kernel_error
        and np.allclose(claimed.column_scale, found.column_scale, rtol=1e-6, atol=0)
        and bool((np.abs(claimed.pair_gram - found.pair_gram) <= allowed).all())
        and bool((np.abs(claimed.diag_gram - found.diag_gram) <= allowed).all())
    )


def _tests_of(part: ClassRecord, member: Member) -> ClassTests:
    """Of the rows that the certificate says were tested: a log that is read in parts is tested on its first ones."""
    rows = part.specification.first_rows
    if rows is None or member.examiner is None:
        return member.tests
    return replace(member, examiner=Examiner(member.kernel, member.system, rows)).tests


def _same_tests(part: ClassRecord, tests: ClassTests) -> bool:
    """Whether tests of the data say what the certificate says; p-values move a little with rounding."""
    claimed, found = part.specification, tests.specification
    if part.norm_test is None or tests.norm is None:
        same_norm = part.norm_test is tests.norm
    else:
        same_norm = _same_p(part.norm_test.p_value, tests.norm.p_value)
    if part.norm_test is not None and tests.norm is not None:
        same_norm = same_norm and math.isclose(part.norm_test.norm, tests.norm.norm, rel_tol=1e-3)
    if not same_norm or claimed.reason != found.reason or len(claimed.components) != len(found.components):
        return False
    pairs = zip(claimed.components, found.components, strict=True)
    alike = all(one.kind == other.kind and math.isclose(one.factor, other.factor, rel_tol=1e-9) for one, other in pairs)
    return alike and (not found.tested or _same_p(claimed.p_value, found.p_value))


def _same_p(claimed: float, found: float) -> bool:
    least = 1e-15
    return abs(math.log10(max(claimed, least)) - math.log10(max(found, least))) <= 0.005


def _points(points: FloatArray | None, slack: float) -> FloatArray:
    """Points that stand for all others, with their slack."""
    return np.append(np.zeros(0) if points is None else points.ravel(), slack)


def _farthest_row(part: ClassRecord, member: Member) -> float:
    """How far a point at which the certificate bounds a value or residual is from all that there are, in units of their size."""
    steps, distance = step_rows(member), 0.0
    extra = [each for each in (steps.missed, steps.ranges) if each is not None]
    residuals = np.column_stack([steps.residuals, -steps.target, *extra])
    missed = member.system.box_missed
    values = member.system.box_rows if missed is None else np.column_stack([member.system.box_rows, missed])
    for averaged in part.rows:
        rows = residuals if averaged.residual else values
        given = [each for each in (averaged.missed, averaged.ranges) if each is not None]
        for point in np.column_stack([averaged.features, averaged.offsets, *given]):
            if len(point) != rows.shape[1]:
                return np.inf
            nearest = float(np.abs(rows - point).max(axis=1).min(initial=np.inf))
            distance = max(distance, nearest / max(float(np.abs(rows).max(initial=0.0)), 1e-300))
    return distance


def _rest(rest: Rest | RestRecord | None) -> tuple[float, ...]:
    return () if rest is None else (rest.coordinates, rest.diameter)


def _in_lengths(claimed: FloatArray, found: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both matrices of products of columns in units of the lengths of those that were found, which may differ by much."""
    lengths = np.sqrt(np.maximum(np.diagonal(found), 0.0))
    lengths[lengths == 0] = 1.0
    sizes = np.outer(lengths, lengths)
    return (claimed / sizes if claimed.shape == found.shape else claimed), found / sizes


def _same_cut(claimed: CutRecord, found: CutSums, system: BellmanSystem) -> bool:
    """Every sum as near as its own size allows: rewards may be millions of times smaller than features, or than their number."""
    if claimed.total.shape != found.total.shape or (claimed.count, claimed.earlier) != (found.count, found.earlier):
        return False
    # |sum_i w_i C_ij| <= sqrt(n sum_i w_i^2 C_ij^2), and products of two columns are at most those of their lengths.
    lengths = np.sqrt(np.diagonal(found.squares))
    total, squares = 1e-9 * math.sqrt(found.count) * lengths, 1e-9 * np.outer(lengths, lengths)
    # What coordinates miss is a root of a difference, of which rounding leaves half of the digits.
    reach = 0.0 if system.rest is None else 1e-7 * system.rest.diameter
    missed = reach * np.array([found.absolute, found.length]) / found.count
    return (
        bool((np.abs(claimed.total - found.total) <= total + 1e-6 * np.abs(found.total)).all())
        and bool((np.abs(claimed.squares - found.squares) <= squares + 1e-6 * np.abs(found.squares)).all())
        and bool((np.abs(np.subtract(claimed.missed, found.missed)) <= missed + 1e-6 * np.array(found.missed)).all())
        and np.allclose(
            (claimed.absolute, claimed.length, claimed.rate), (found.absolute, found.length, found.rate), rtol=1e-6, atol=0
        )
    )


def _size(value: ArrayLike) -> float:
    numbers = np.abs(np.asarray(value, dtype=np.float64))
    finite = numbers[np.isfinite(numbers)]
    return float(finite.max(initial=0.0))
