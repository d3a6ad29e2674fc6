"""Proving a certificate again: every number that it claims follows from its sums, assumptions and delta, or it is refused.

Nothing is searched for. Ranges and radii are derived from the assumptions, constraints from the sums, and every bound from the
multipliers of the certificate, with rounding counted against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..io.shown import Drawn, Shown
from ..problem.assumptions import ValueRanges
from ..problem.statements import Guarantee, Statement, Status, premise, range_text
from ..radii.choice import Choice
from ..radii.doubts import Doubt, TestedClass, all_doubted, class_doubts, copy_doubts, few_row_doubts, shown_status
from ..radii.no_cut import NoCut
from ..radii.premises import Asked, average_premises, cut_remarks, features_premise, value_premises
from ..radii.registry import radius_rule
from .balls import ball_radius
from .class_proof import TOLERANCE, WIDER, ClassProof, check_norm, near, prove_class
from .consistency import check_class, check_setting, require, same
from .dual import UNIT
from .facts import ClassFacts
from .ranges import relative_values
from .record import FORMAT, VERSION, DeltaRecord, PremiseRecord, Record, Refuted
from .sets import ClassSet

START_SHARE = 0.1
FEATURE_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Verification(Shown, Drawn):
    """What a verifier found.

    Attributes
    ----------
    valid : bool
    message : str
        One sentence: what is proved and under which premises, or what does not follow.
    lower, upper : float
        The ends that are proved, with rounding counted outward; NaN where nothing is.
    ranges : ValueRanges or None
    classes : tuple of ClassProof
    premises : tuple of Statement
        What it rests on.
    doubts : tuple of Doubt
        What speaks against it; that the tests behind it are those of the data, only the data tell.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> aope.verification.verify_record(interval.record()).valid
    True
    """

    valid: bool
    message: str
    lower: float = math.nan
    upper: float = math.nan
    ranges: ValueRanges | None = None
    classes: tuple[ClassProof, ...] = ()
    premises: tuple[Statement, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    def __repr__(self) -> str:
        return f"Verification({'valid' if self.valid else 'REFUTED'}: {self.message})"


@checked
def verify_record(record: Record) -> Verification:
    """Whether everything that a certificate claims follows from its sums, its assumptions and its delta.

    Parameters
    ----------
    record : Record

    Returns
    -------
    Verification

    Examples
    --------
    >>> import dataclasses, numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> forged = dataclasses.replace(interval, upper=interval.upper - 0.1).record()
    >>> aope.verification.verify_record(forged).valid
    False
    """
    try:
        with np.errstate(all="ignore"):
            return _proved(record)
    except Refuted as reason:
        return Verification(False, f"Not proved: {reason}.")
    except InvalidInput as error:
        return Verification(False, f"Not proved: {error}")
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        return Verification(False, f"Not proved: its numbers do not fit together ({error}).")


def _proved(record: Record) -> Verification:
    require(record.format == FORMAT and record.version == VERSION, f"it is not version {VERSION} of an {FORMAT}")
    require(len(record.classes) > 0, "it has no class of functions")
    rule = radius_rule(record.radius.name)
    same(record.radius.theorem, rule.theorem, "the theorem")
    same(record.radius.guarantee, rule.guarantee.name, "the guarantee")
    check_setting(record, rule)
    through_features = record.setting.coefficient_variance is not None
    _check_delta(record.delta, start_is_exact=record.setting.start_is_exact, features=through_features)
    classes = [ClassFacts(record, part, rule, ball_radius(record, part)) for part in record.classes]
    for each in classes:
        check_class(each)
        check_norm(each)
    proofs = tuple(prove_class(ClassSet(each)) for each in classes)
    widest = max(range(len(proofs)), key=lambda k: proofs[k].level + classes[k].rounding)
    ranges, uses = classes[widest].ranges, proofs[widest].uses
    if record.average is not None:
        same(record.assumptions, classes[widest].assumptions, "what is assumed")
    near(record.radius.level, proofs[widest].level, "the radius")
    near(record.radius.rounding, classes[widest].rounding, "the rounding of the radius", absolute=1e-300)
    same(record.radius.uses, uses, "what the radius rests on")
    start_error = 0.0
    if record.delta.start > 0:
        start_error = ranges.span * math.sqrt(math.log(2 / record.delta.start) / (2 * record.setting.effective_starts))
    near(record.result.start_error, start_error, "the error of the start states")
    consistent = [proof for proof in proofs if not proof.empty]
    lower = min((proof.lower for proof in consistent), default=math.nan) - start_error
    upper = max((proof.upper for proof in consistent), default=math.nan) + start_error
    require(not consistent or not (math.isnan(lower) or math.isnan(upper)), "an end is no number")
    premises = _premises(record, classes, ranges)
    require(_told(record.premises) == _told(premises), "the premises are not those that it rests on")
    tested, misfit = _tested(record, proofs), 0.0 if record.average is not None else record.assumptions.misfit
    copied = copy_doubts(record.setting.copied_rows, record.data.rows)
    few = few_row_doubts(record.setting.showing_rows, record.data.rows, misfit)
    doubts = (*copied, *class_doubts(tested, misfit), *few)
    require(_told(record.doubts) == _told([each.statement for each in doubts]), "the doubts are not those that there are")
    require(_told(record.remarks) == _told(_remarks(classes)), "the remarks are not those that there are")
    proved = Verification(True, "", ranges=ranges, classes=proofs, premises=premises, doubts=doubts)
    return _check_result(record, (lower, upper), proved, doubted=bool(copied or few) or all_doubted(tested, misfit))


def _told(statements: Iterable[Statement | PremiseRecord]) -> list[tuple[str, str]]:
    return [(each.name, each.text) for each in statements]


def _remarks(classes: Sequence[ClassFacts]) -> tuple[Statement, ...]:
    """Which weights the cuts have, or why there are none."""
    names = [each.part.sums.no_cut for each in classes]
    require(all(name is None or name in NoCut.__members__ for name in names), "it has no cut, for a reason that there is not")
    return cut_remarks([each.words.cut for each in classes], [None if name is None else NoCut[name] for name in names])


def _tested(record: Record, proofs: Sequence[ClassProof]) -> list[TestedClass]:
    """What was tested of the classes that are not refuted; what the tests found is as the certificate says."""
    for part in record.classes:
        numbers = [each.p_value for each in part.specification.components]
        require(part.specification.tested != bool(part.specification.reason), "a class is tested and cannot be tested")
        rows = part.specification.first_rows
        require(rows is None or 0 < rows < record.data.rows, "more rows were tested than there are")
        if part.norm_test is not None:
            numbers.append(part.norm_test.p_value)
            declared = record.assumptions.norm_bound
            require(declared is None or part.norm_test.norm_bound == declared, "another norm bound was tested than was declared")
        require(all(0 <= p <= 1 for p in numbers), "a p-value is no probability")
    parts = [(proof.constraints.facts.name, proof.constraints.facts.part) for proof in proofs if not proof.empty]
    return [TestedClass(name, part.specification, part.norm_test) for name, part in parts]


def _check_result(record: Record, unclipped: tuple[float, float], proved: Verification, *, doubted: bool) -> Verification:
    """The hull of the classes, cut to the range of values, against what is reported."""
    assert proved.ranges is not None
    result, (low, high), claimed = record.result, proved.ranges.value, record.result.unclipped
    # Of numbers that are far from 0 the distance from where values are counted says how many digits they have.
    references = {part.reference for part in record.classes}
    reference = references.pop() if len(references) == 1 else 0.0
    size = max(proved.ranges.largest_from(reference), high - low) if math.isfinite(high - low) else 1.0
    last_digit = 4 * UNIT * abs(reference)
    for end, follows, sign, limit in zip(claimed, unclipped, (-1.0, 1.0), (-low, high), strict=True):
        if sign * end > limit and sign * follows > limit:
            # Beyond the range of values an end is cut to it: a wider claim is no other one, and huge numbers have fewer digits.
            fits = end == follows or sign * end >= sign * follows - WIDER * (abs(follows - reference) + size)
            require(fits, f"an end before it is cut is {follows:.9g}, not {end:.9g}")
        else:
            near(end - reference, follows - reference, "an end before it is cut", absolute=TOLERANCE * size + last_digit)
    if math.isnan(claimed[0]):
        expected = (math.nan, math.nan, Status.INCONSISTENT)
        lower, upper = math.nan, math.nan
    else:
        vacuous = claimed[0] <= low and claimed[1] >= high
        expected = (
            min(max(claimed[0], low), high),
            max(min(claimed[1], high), low),
            Status.VACUOUS if vacuous else Status.OK,
        )
        lower, upper = min(max(unclipped[0], low), high), max(min(unclipped[1], high), low)
    require(
        np.array_equal((result.lower, result.upper), expected[:2], equal_nan=True),
        "the reported ends are not those that were proved",
    )
    same(result.status, shown_status(expected[2], doubted=doubted).name, "the status")
    return replace(proved, message=sentence(record, lower, upper, compared=False), lower=lower, upper=upper)


UNCOMPARED = (
    ", and if the sums of its rows and its tests, which are taken from the certificate and not compared with data, are those of "
    "the log: `--data LOG` (in Python `data=`) compares them"
)
"""What a certificate by itself does not show."""


def sentence(record: Record, lower: float, upper: float, *, compared: bool) -> str:
    """What is proved, and what it rests on; compared: whether the sums are known to be those of the data."""
    what = record.estimand[0].lower() + record.estimand[1:]
    sure = f"with probability {1 - record.delta.total:.12g}"
    rests = f"if its {len(record.premises)} premises hold"
    if record.radius.guarantee == Guarantee.ASYMPTOTIC.name:
        sure = f"with a probability that tends to {1 - record.delta.total:.12g} as rows grow"
    also = "" if compared else UNCOMPARED
    if not compared and not all(each.kind for each in (record.kernel, *(part.description for part in record.classes))):
        also += "; what its class or its kernel is, the certificate only names"
    match record.result.status:
        case "INCONSISTENT":
            return f"Proved: no function of the class within its norm bound is consistent with the data, {sure}, {rests}{also}."
        case "VACUOUS":
            return f"Proved, though it says nothing: the {what} lies in the range {range_text(lower, upper)} of all values."
        case "DOUBTED":
            return f"Proved: the {what} lies in {range_text(lower, upper)} {sure}, {rests}, one of which is doubted{also}."
        case _:
            return f"Proved: the {what} lies in {range_text(lower, upper)} {sure}, {rests}{also}."


def _check_delta(delta: DeltaRecord, *, start_is_exact: bool, features: bool) -> None:
    """total = kernel + start + features, in the shares that are fixed in advance."""
    require(0 < delta.total < 1, f"delta must be between 0 and 1, not {delta.total:g}")
    of_features = FEATURE_SHARE * delta.total if features else 0.0
    left = delta.total - of_features
    start = 0.0 if start_is_exact else START_SHARE * left
    shares = (delta.kernel, delta.start, delta.features)
    require(shares == (left - start, start, of_features), "delta is not split as its rule says")


def _premises(record: Record, classes: Sequence[ClassFacts], ranges: ValueRanges) -> tuple[Statement, ...]:
    """What the result rests on."""
    setting, words = record.setting, [each.words for each in classes]
    if record.average is not None:
        exact = setting.exact_policy
        spans = [relative_values(record.average, each.part, exact_policy=exact).span for each in classes]
        return average_premises(
            record.average,
            words,
            spans,
            classes[0].rule,
            kernel=record.kernel.text,
            exact_policy=exact,
            left_out=setting.left_out,
        )
    asked = Asked(
        record.assumptions,
        ranges,
        setting.terminates,
        setting.exact_policy,
        setting.start_is_exact,
        record.data.rows,
        tuple(premise(each.name, each.text) for each in record.steps),
        setting.left_out,
    )
    found = value_premises(
        asked,
        words,
        classes[0].rule,
        kernel=record.kernel.text,
        anchored=setting.anchored,
        chosen=Choice(setting.earlier_rows, setting.kernel_chosen, setting.estimate_before, setting.points_before),
        planned=setting.planned if setting.growing else None,
    )
    return found if setting.coefficient_variance is None else (*found, features_premise(setting.coefficient_variance))
