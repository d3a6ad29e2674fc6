"""Decisions made with an interval: is the value at least so much, is it better than that of the logged policy?

A claim is SUPPORTED where the whole interval meets it, REFUTED where none of it does, UNDECIDED in between. Where the class is
refuted there is no interval, and where it is doubted none that should decide anything: then the answer is that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from ..arguments import checked
from ..baselines.interval import BaselineInterval
from ..errors import InvalidInput
from ..io.display import confidence, ends_text
from ..io.shown import Shown
from ..problem.statements import Statement, Status, range_text, remark
from ..radii.doubts import DoubtKind
from ..validation import number
from .logging_policy import LoggedValue, crossing_clause, logged_value
from .weighed import answer_of, weighed_value

if TYPE_CHECKING:
    from .interval import Interval


class Judgment(Enum):
    """What the data say of a claim; the value is what to do with that."""

    SUPPORTED = "The data and the assumptions support it."
    REFUTED = "The data and the assumptions refute it."
    UNDECIDED = "The data and the assumptions do not decide it. More rows or other declarations may."
    DOUBTED = "The data speak against an assumption behind the interval, so that it should decide nothing."
    INCONSISTENT = "No function of the class fits the data, so that nothing is decided. Use more or other features."


def of_difference(lower: float, upper: float) -> Judgment:
    """What its ends say of the claim that a difference is above 0; NaN says nothing, and who is as good is not better."""
    if lower > 0:
        return Judgment.SUPPORTED
    return Judgment.REFUTED if upper <= 0 else Judgment.UNDECIDED


@checked
@dataclass(frozen=True)
class Ruling(Shown):
    """What the data say of a claim about the value of the target policy.

    Parameters
    ----------
    judgment : Judgment
        SUPPORTED, REFUTED, UNDECIDED, DOUBTED or INCONSISTENT.
    claim : str
        In words, such as "value >= 28".
    delta : float
        The probability with which a SUPPORTED or REFUTED is wrong, if the premises hold, is at most this.
    if_true : Judgment or None
        The same, but where the class is doubted what would follow if it held Q. None where something else is doubted (the start
        states, copies of rows, recorded probabilities) and where there is no interval: then no class would decide it.
    statement : Statement
        Judgment, claim and numbers in one sentence.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> [interval.decide(at_least=value).judgment.name for value in (0.5, mdp.value, 2.0)]
    ['SUPPORTED', 'UNDECIDED', 'REFUTED']
    """

    judgment: Judgment
    claim: str
    delta: float
    if_true: Judgment | None
    statement: Statement

    def __str__(self) -> str:
        return self.statement.text

    @property
    def decided(self) -> bool:
        """Whether the claim is supported or refuted."""
        return self.judgment in (Judgment.SUPPORTED, Judgment.REFUTED)


def at_least(interval: Interval, threshold: float) -> Ruling:
    """The claim that the value is at least the threshold, by what answers first."""
    wanted, found = number(threshold, "at_least"), answer_of(interval)
    allowed = interval.ranges.value
    if not found.lower <= found.upper:
        by_ends = Judgment.UNDECIDED  # ends that have crossed, or are none, say nothing
    elif found.lower >= wanted:
        by_ends = Judgment.SUPPORTED
    elif found.upper < wanted:
        by_ends = Judgment.REFUTED
    else:
        by_ends = Judgment.UNDECIDED
    judgment = _with_doubts(found, by_ends)
    if_true = _if_class_holds(found, judgment, by_ends)
    # What the declared ranges say by themselves rests on no class.
    why = _against(found) or _why_doubted(found)
    text = _text(judgment, if_true, f"value >= {wanted:g}", _interval_clause(found), why)
    if not allowed[0] < wanted <= allowed[1]:
        judgment = if_true = Judgment.SUPPORTED if wanted <= allowed[0] else Judgment.REFUTED
        known = f"every possible value lies in {range_text(*allowed)}, whatever the data say"
        text = f"{judgment.name}: value >= {wanted:g}, as {known}."
    named = remark("decision", text, ("at_least", wanted), ("lower", found.lower), ("upper", found.upper))
    return Ruling(judgment, f"value >= {wanted:g}", interval.delta, if_true, named)


def better_than_logged(interval: Interval) -> Ruling:
    """The claim that the target policy is better than the one that logged the data, by intervals at delta / 2 each.

    Both hold at once with probability 1 - delta. Ends that cross at delta, or nearly so, may lie well apart at delta / 2: what
    says of itself that nothing follows from it decides nothing at any share of delta. Raises InvalidInput where the value of the
    logged policy cannot be known.
    """
    rebound = interval.rebound
    if rebound is None:
        raise InvalidInput("There is no value of the logged policy here to compare with: of a discounted value only.")
    if rebound.growing:
        raise InvalidInput("The value of the logged policy is a statement about one number of rows, and these grow.")
    half = interval.delta / 2
    whole = rebound.evaluation.whole
    logged, at_whole, answer = logged_value(whole, delta=half), logged_value(whole, delta=interval.delta), answer_of(interval)
    if at_whole.status is Status.INCONSISTENT:
        logged = at_whole
    if answer.status is Status.INCONSISTENT:
        return compared(answer, logged, interval.delta)
    weighed = None if rebound.leading is None else weighed_value(whole, half)
    if weighed is None:
        return compared(rebound.at(half), logged, interval.delta)
    assert isinstance(answer, BaselineInterval)
    return compared(replace(weighed, doubts=weighed.doubts or answer.doubts), logged, interval.delta)


def compared(interval: Interval | BaselineInterval, logged: LoggedValue, delta: float) -> Ruling:
    """Two intervals that hold at once with probability 1 - delta."""
    if not (interval.lower <= interval.upper and logged.lower <= logged.upper):
        by_ends = Judgment.UNDECIDED
    elif interval.lower > logged.upper:
        by_ends = Judgment.SUPPORTED
    elif interval.upper <= logged.lower:
        by_ends = Judgment.REFUTED
    else:
        by_ends = Judgment.UNDECIDED
    judgment = _with_doubts(interval, by_ends)
    elsewhere = next((each.text for each in logged.doubts if each.name == "starts"), "")
    if_true = _if_class_holds(interval, judgment, by_ends)
    if logged.status is Status.INCONSISTENT:
        judgment, if_true = Judgment.INCONSISTENT, None
    elif (elsewhere or logged.status is Status.DOUBTED) and judgment is not Judgment.INCONSISTENT:
        judgment, if_true = Judgment.DOUBTED, None
    claim = "value > value of the logged policy"
    each = f"{_interval_clause(interval)}, that of the logged policy is in {ends_text(logged.lower, logged.upper)}"
    if interval.delta < delta:
        each += f", each with {confidence(interval.delta)} confidence and both together with {confidence(delta)}"
    why = elsewhere or _against(interval) or _against(logged) or _why_doubted(interval)
    text = _text(judgment, if_true, claim, each, why)
    ends = (("lower", interval.lower), ("upper", interval.upper))
    named = remark("decision", text, *ends, ("logged_lower", logged.lower), ("logged_upper", logged.upper))
    return Ruling(judgment, claim, delta, if_true, named)


def _with_doubts(interval: Interval | BaselineInterval, by_ends: Judgment) -> Judgment:
    match interval.status:
        case Status.INCONSISTENT:
            return Judgment.INCONSISTENT
        case Status.DOUBTED:
            return Judgment.DOUBTED
    return by_ends


def _interval_clause(interval: Interval | BaselineInterval) -> str:
    if interval.status is Status.INCONSISTENT:
        return "there is no interval"
    by = " by the recorded probabilities" if isinstance(interval, BaselineInterval) else ""
    return f"the value is in {ends_text(interval.lower, interval.upper)}{by}"


def _against(found: Interval | BaselineInterval | LoggedValue) -> str:
    """What speaks against an interval that rests on no class; empty where nothing does, and where a class is what is doubted."""
    if isinstance(found, BaselineInterval) and found.status in (Status.DOUBTED, Status.INCONSISTENT):
        return " ".join(each.text for each in found.doubts)
    if isinstance(found, LoggedValue) and found.status is Status.DOUBTED:
        return next(each.text for each in found.doubts if each.name == "copies")
    if isinstance(found, LoggedValue) and found.status is Status.INCONSISTENT:
        return f"The ends of the logged policy's interval cross, {crossing_clause(found.delta)}. Nothing follows."
    return ""


def _if_class_holds(interval: Interval | BaselineInterval, judgment: Judgment, by_ends: Judgment) -> Judgment | None:
    """What the ends say where nothing but the class is doubted; None where they would say nothing if it held Q."""
    if judgment is Judgment.INCONSISTENT:
        return None
    if judgment is Judgment.DOUBTED and (isinstance(interval, BaselineInterval) or interval.copied):
        return None
    return by_ends


def _why_doubted(interval: Interval | BaselineInterval) -> str:
    """What is doubted beside the class, in a sentence."""
    if isinstance(interval, BaselineInterval) or not interval.copied:
        return ""
    return next(each.text for each in interval.doubts if each.kind is DoubtKind.COPIES)


def _text(judgment: Judgment, if_true: Judgment | None, claim: str, numbers: str, why: str) -> str:
    """why: what speaks against the interval beside a class."""
    if judgment is Judgment.INCONSISTENT and why:
        return f"INCONSISTENT: {claim}. {why}"
    if judgment is Judgment.DOUBTED and if_true is None:
        return f"DOUBTED: {claim}. {why or judgment.value} As it stands, {numbers}."
    if judgment is Judgment.DOUBTED:
        assert if_true is not None
        return f"DOUBTED: {claim}. {judgment.value} By its ends, {numbers}: {if_true.name}."
    return f"{judgment.name}: {claim}, as {numbers}. {judgment.value}"
