"""The verdict: what a result says, in one sentence that comes first, and in a second one for those who would bet.

The first line is what is proved (or, where the class is doubted, what does not rest on it). In a log of single steps that says
with which probability its actions were drawn, and where nobody named a class, that is the interval by these probabilities.
Numbers are rounded outward, to two digits of the width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arguments import checked
from ..baselines.interval import BaselineInterval
from ..io.display import confidence, from_to
from ..io.shown import Shown
from ..problem.never_logged import rows_wanted
from ..problem.statements import Guarantee, Statement, Status, advice, remark
from ..radii.doubts import Doubt, DoubtKind, p_text
from .companions import Companions
from .cross_fitted import CrossFittedInterval
from .decision import Judgment, Ruling, better_than_logged, compared
from .logging_policy import LoggedValue, crossing_clause

if TYPE_CHECKING:
    from .interval import Interval

AVERAGE = "Average reward of the target policy"
MOST_DIGITS = 12
NONE = Companions()
NEW = "the new policy's value"
WITHOUT = "Without the probabilities, by the class that was chosen"
BET = "What a practitioner would bet on, for many rows"
ELSEWHERE = ", from other starts,"
FEW_ROWS = 0.5
"""Where what is proved leaves open more than this share of the possible values, rows are few for a large-sample statement too: on
logs of 5,000 rows of a simulated clinic, so wide, every second one missed the value, and of 40,000 rows one in ten."""

HARDLY = 0.97
"""An interval of this share of the range of values says next to nothing."""
WIDE = 0.25
"""An interval of this share of the range of values is wide."""
SERIOUS = ("overlap", "few-rows", "copies")
"""Doubts with which nobody should bet on a large-sample interval."""


ONLY_IF = {
    DoubtKind.CLASS: "the class contains Q",
    DoubtKind.NORM: "the norm bound holds",
    DoubtKind.COPIES: "all rows were new",
    DoubtKind.FEW_ROWS: "Q is as near to the fit as is asserted",
}
"""Under what condition an interval that is doubted says what it says."""


@checked
@dataclass(frozen=True)
class Verdict(Shown):
    """What a result says, in plain sentences; see docs/verdict.md.

    Parameters
    ----------
    sentence : str
        What to read if nothing else is read.
    second_line : str
        What one would bet on beside what is proved; empty where there is nothing to add.
    decision : Ruling or None
        What the data say of the claim that was asked about, or else of the claim that the target policy is better than the logged
        one; None where neither can be said.
    parts : tuple of Statement
        The clauses of both lines with their numbers as parameters: `interval`, `logged`, `large-sample`, `doubt`, and why one is
        missing.
    advice : Statement
        What to do next.
    wanted : Statement or None
        Of which actions, and in which states, rows are needed; None where the interval is no wider for want of any.
    leading : BaselineInterval or None
        What the first line is of, with its premises, where that is not the interval itself but the one by recorded probabilities.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=40)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> verdict = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0)).verdict()
    >>> verdict.sentence.startswith("With 90% confidence the new policy's value lies between")
    True
    """

    sentence: str
    second_line: str
    decision: Ruling | None
    parts: tuple[Statement, ...]
    advice: Statement
    wanted: Statement | None = None
    leading: BaselineInterval | None = None

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.second_line}" if self.second_line else self.sentence


def verdict_of(
    interval: Interval, companions: Companions = NONE, ruling: Ruling | None = None, names: Sequence[str] = ()
) -> Verdict:
    """The verdict on an interval beside its companions.

    ruling: on what was asked; None: whether the target policy is better than the logged one, where both values are known.
    names: what the columns of the state are called, where that is known.
    """
    leading = companions.leading
    found = interval if leading is None else leading
    against_logged = None if companions.logged is None else _comparison(interval, found, companions.logged)
    match None if leading is not None else interval.status:
        case None:
            assert leading is not None
            first, second = _by_probabilities(interval, leading, companions, against_logged)
        case _ if interval.copied:
            first, second = _copied(interval), ""
        case Status.INCONSISTENT:
            first, second = _inconsistent(interval, companions)
        case Status.DOUBTED:
            first, second = _doubted(interval, companions)
        case Status.VACUOUS:
            first, second = _vacuous(interval, companions)
        case _:
            first, second = _bounded(interval, companions, against_logged)
    second = " ".join(filter(None, (second, _beside(companions))))
    parts = [_interval_part(interval)]
    if companions.logged is not None:
        parts.append(_logged_part(companions.logged))
    if companions.crossed is not None:
        parts.append(_crossed_part(companions.crossed))
    if companions.weighed is not None:
        parts.append(_weighed_part(companions.weighed))
        parts += companions.weighed.doubts
    parts += [each.statement for each in interval.doubts]
    decision = against_logged if ruling is None else ruling
    wanted = _rows_wanted(interval, found, names)
    return Verdict(first, second, decision, (*parts, *companions.missing), _advice(found, decision), wanted, leading)


def _rows_wanted(interval: Interval, found: Interval | BaselineInterval, names: Sequence[str]) -> Statement | None:
    """What nobody logged, where what answers is wide or the whole range."""
    low, high = interval.ranges.value
    outcome = found.status if isinstance(found, BaselineInterval) else found.outcome
    wide = outcome is Status.VACUOUS or found.width > WIDE * (high - low)
    return rows_wanted(interval.rebound.evaluation.whole, names) if wide and interval.rebound is not None else None


def _comparison(interval: Interval, found: Interval | BaselineInterval, logged: LoggedValue) -> Ruling:
    """Whether the target policy is better; asked at delta / 2 each only where the intervals at delta each are apart.

    found: what answers, the interval or the one by recorded probabilities.
    """
    apart = found.lower > logged.upper or found.upper <= logged.lower
    if apart and interval.rebound is not None and not interval.rebound.growing:
        return better_than_logged(interval)
    # Not apart at delta each: still less so at delta / 2. Nothing is claimed, so that no delta is spent.
    return compared(found, logged, interval.delta)


def _bounded(interval: Interval, companions: Companions, against: Ruling | None) -> tuple[str, str]:
    low, high = outward(interval.lower, interval.upper)
    first = f"{_how_sure(interval)} {_what(interval)} lies between {low} and {high}"
    least, most = interval.ranges.value
    if interval.width > HARDLY * (most - least):
        first = f"These data and assumptions hardly bound {_what(interval)}: between {low} and {high} of {from_to(least, most)}"
    first += _beside_logged(companions, against)
    crossed = companions.crossed
    if crossed is None or not _says_something(crossed):
        return first, _left_out(companions)
    proved = f"What is {_proved(interval)}: {low} to {high}, if what is assumed holds."
    few = ", often too narrow with so few rows" if interval.width > FEW_ROWS * (most - least) else ""
    second = f"{BET}: {_estimate(crossed)}{few}. {proved}"
    return first, " ".join(filter(None, (second, _left_out(companions))))


def _beside_logged(companions: Companions, against: Ruling | None) -> str:
    """The end of the sentence: the logged policy's value, and what follows."""
    logged = _logged_clause(companions)
    if not logged or against is None:
        return f"{'; ' + logged if logged else ''}."
    conclusion = {
        Judgment.SUPPORTED: "it is better",
        Judgment.REFUTED: "it is not better",
        Judgment.UNDECIDED: "not enough data to say that it is better",
        Judgment.DOUBTED: "the two are not comparable" if ELSEWHERE in logged else "that one is better is doubted",
        Judgment.INCONSISTENT: "nothing follows",
    }[against.judgment]
    return f"; {logged}: {conclusion}."


def _by_probabilities(
    interval: Interval, found: BaselineInterval, companions: Companions, against: Ruling | None
) -> tuple[str, str]:
    """What recorded probabilities say, and what the class says without them."""
    logged = _logged_clause(companions)
    beside = f"; {logged}." if logged else "."
    low, high = outward(found.lower, found.upper)
    sure = f"With {confidence(found.delta)} confidence {NEW} lies between {low} and {high}"
    given, doubted = "if actions were drawn with the recorded probabilities", ""
    copied = _copies_of(found)
    if copied:
        return f"{copied} Only if all rows were new: {sure[0].lower()}{sure[1:]}, {given}.", ""
    match found.status:
        case Status.VACUOUS:
            least, most = found.return_range
            first = f"The recorded probabilities do not bound {NEW}: anything from {from_to(least, most)} is possible{beside}"
        case Status.INCONSISTENT:
            first = (
                f"{_crossed(found)}: either they are wrong or this is such a log, and no value of the new policy follows{beside}"
            )
        case Status.DOUBTED:
            first = (
                f"The interval by the recorded probabilities is much narrower than its rows allow, and decides nothing{beside}"
            )
            doubted = f"By its ends: {sure[0].lower()}{sure[1:]}, {given}."
        case _:
            first = f"{sure}, {given}{_beside_logged(companions, against)}"
    by = f"By weighted rewards ({found.method}), which need no class of functions. {WITHOUT}: {_by_class(interval)}."
    return first, " ".join(filter(None, (doubted, by, _no_logged(companions))))


def _copies_of(found: BaselineInterval) -> str:
    """That rows are copies, in a sentence; empty where they are not."""
    return next((each.text for each in found.doubts if each.name == "copies"), "")


def _crossed(found: BaselineInterval) -> str:
    """Why no value follows from recorded probabilities, and how likely that is where they are right."""
    often = next((each for each in found.doubts if each.name == "taken-too-often"), None)
    if often is not None:
        what, level = "Actions were taken more often than the recorded probabilities allow", float(str(often.parameter("level")))
    else:
        what, level = "The ends of the interval by the recorded probabilities cross", found.delta
    return f"{what}, which has a probability of at most {100 * level:.4g}% if they are right"


def _beside(companions: Companions) -> str:
    """What recorded probabilities say where they do not answer first."""
    found = companions.weighed
    if found is None or companions.leads or found.status is Status.VACUOUS or _copies_of(found):
        return ""
    premise = "If actions were drawn with the recorded probabilities, and steps begin in draws of the start states"
    if found.status is Status.INCONSISTENT:
        return f"{_crossed(found)}: nothing follows from them."
    low, high = outward(found.lower, found.upper)
    doubted = ", but that is much narrower than its rows allow" if found.status is Status.DOUBTED else ""
    return f"{premise}: with {confidence(found.delta)} confidence {low} to {high} ({found.method}), whatever the class{doubted}."


def _by_class(interval: Interval) -> str:
    """What the class says, in half a sentence."""
    if interval.outcome is Status.INCONSISTENT:
        return "no function of it fits"
    if interval.outcome is Status.VACUOUS:
        return "nothing"
    low, high = outward(interval.lower, interval.upper)
    worst = min((each for each in interval.doubts if not each.weak), key=lambda each: each.order, default=None)
    if worst is None or not interval.doubted:
        return f"{low} to {high}"
    return f"{low} to {high}, doubted ({_why(worst)})"


def _doubted(interval: Interval, companions: Companions) -> tuple[str, str]:
    worst = min((each for each in interval.doubts if not each.weak), key=lambda each: each.order)
    what = {DoubtKind.CLASS: "class", DoubtKind.NORM: "norm bound"}.get(worst.kind, "fit")
    low, high = outward(interval.lower, interval.upper)
    crossed, logged = companions.crossed, _logged_clause(companions)
    first = f"The {what} is doubted ({_why(worst)})"
    few = any(each.kind is DoubtKind.FEW_ROWS for each in interval.doubts)
    if crossed is not None and _says_something(crossed) and not few:
        first += f"; without it, for many rows, {_what(interval)} is about {_estimate(crossed)}"
    else:
        first += f", and {_what(interval)} is not known without it"
    first += f"; {logged}." if logged else "."
    rests = f"Only if {ONLY_IF[worst.kind]}"
    second = f"{rests}: {_how_sure(interval, lead=False)} between {low} and {high}."
    # Why there is no bet has been said where rows are few; of other weights their number would be another.
    return first, " ".join(filter(None, (second, _no_logged(companions) if few else _left_out(companions))))


def _why(worst: Doubt) -> str:
    """What says most against it, in a few words."""
    if worst.p_value is not None:
        return p_text(worst.p_value)
    if worst.kind is DoubtKind.COPIES:
        return "rows are copies"
    return f"what the policy does is shown by {worst.statement.parameter('showing')} effective rows"


def _copied(interval: Interval) -> str:
    """Nothing of such a log can be told: neither class nor estimate is the better for it."""
    some = f"Some {interval.copied:,} of {interval.count:,} rows"
    first = f"{some} are copies of earlier ones, which prove nothing again: take them out."
    if interval.outcome is Status.INCONSISTENT:
        return f"{first} No function of the class fits, which may be for that reason alone."
    if interval.outcome is Status.VACUOUS:
        return f"{first} They do not bound {_what(interval)} all the same."
    low, high = outward(interval.lower, interval.upper)
    sure = _how_sure(interval, lead=False).rstrip(",")
    return f"{first} Only if all rows were new, {sure}, would {_what(interval)} lie between {low} and {high}."


def _vacuous(interval: Interval, companions: Companions) -> tuple[str, str]:
    low, high = interval.ranges.value
    logged = _logged_clause(companions)
    first = f"These data and assumptions do not bound {_what(interval)}: anything from {from_to(low, high)} is possible"
    first += f"; {logged}." if logged else "."
    return first, _bet(companions)


def _inconsistent(interval: Interval, companions: Companions) -> tuple[str, str]:
    part = max(interval.certificates, key=lambda each: each.least_misfit)
    if part.least_misfit > 0:
        why = f"every one of them misses Q somewhere by at least {part.least_misfit:.3g}"
    elif part.least_loss > interval.radius.total:
        why = f"the least loss {part.least_loss:.3g} is above {interval.radius.total:.3g}, which chance explains"
    else:
        why = "none has a loss that chance explains and values within their range and the norm bound"
    logged = _logged_clause(companions)
    first = f"No function of the class fits: {why}, so that there is no interval"
    first += f"; {logged}." if logged else "."
    return first, _bet(companions)


def _bet(companions: Companions) -> str:
    crossed = companions.crossed
    bet = ""
    if crossed is not None and _says_something(crossed):
        bet = f"{BET}: {_estimate(crossed)}, right only where rows are many enough. Nothing is proved."
    return " ".join(filter(None, (bet, _left_out(companions))))


def _left_out(companions: Companions) -> str:
    """Why there is nothing to bet on, and why the logged policy is not mentioned."""
    return " ".join(filter(None, (_no_bet(companions.crossed), _no_logged(companions))))


def _no_bet(crossed: CrossFittedInterval | None) -> str:
    """Why a large-sample interval that was found says nothing."""
    if crossed is None or _says_something(crossed):
        return ""
    why = next((each.text for each in crossed.doubts if each.name in SERIOUS), "")
    if not why and crossed.status is Status.OK and not crossed.lower <= crossed.estimate <= crossed.upper:
        why = f"It would be {crossed.estimate:.4g}, which is no possible value."
    return f"A large-sample estimate is left out. {why}" if why else ""


def _no_logged(companions: Companions) -> str:
    reason = companions.why_missing("no-logged-value")
    if companions.logged is not None and companions.logged.status is not Status.OK:
        reason = "its returns are bounded no better than by the declared rewards"
        if companions.logged.status is Status.DOUBTED:
            reason = "rows of its episodes are copies of others"
        if companions.logged.status is Status.INCONSISTENT:
            reason = f"the ends of its interval cross, {crossing_clause(companions.logged.delta)}"
    return f"The logged policy's value is left out: {reason}." if reason else ""


def _logged_clause(companions: Companions) -> str:
    logged = companions.logged
    if logged is None or logged.status is not Status.OK:
        return ""
    low, high = outward(logged.lower, logged.upper)
    starts = ELSEWHERE if any(each.name == "starts" for each in logged.doubts) else ""
    if logged.shown_estimate is None:
        return f"the logged policy's{starts} lies between {low} and {high}"
    return f"the logged policy's{starts} is {number_near(logged.estimate, logged.width)} ({low} to {high})"


def _what(interval: Interval) -> str:
    return f"the new policy's {'average reward' if interval.estimand == AVERAGE else 'value'}"


def _how_sure(interval: Interval, *, lead: bool = True) -> str:
    sure = f"with {confidence(interval.delta)} confidence"
    match interval.guarantee:
        case Guarantee.ASYMPTOTIC:
            sure = f"for many rows, {sure},"
        case Guarantee.FINITE_SAMPLE_DECLARED_NOISE:
            sure = f"if the noise is as declared, {sure}"
            sure += "," if lead else ""
    return sure[0].upper() + sure[1:] if lead else sure


def _proved(interval: Interval) -> str:
    return "said for many rows of this class" if interval.guarantee is Guarantee.ASYMPTOTIC else "proved"


def _estimate(crossed: CrossFittedInterval) -> str:
    low, high = outward(crossed.lower, crossed.upper)
    return f"{number_near(crossed.estimate, crossed.width)} ({low} to {high})"


def bet_text(crossed: CrossFittedInterval) -> str:
    """What one would bet on: the estimate and its large-sample interval; or why nobody should."""
    if _says_something(crossed):
        return _estimate(crossed)
    return _no_bet(crossed) or "the large-sample interval says nothing."


def _says_something(crossed: CrossFittedInterval) -> bool:
    possible = crossed.status is Status.OK and crossed.lower <= crossed.estimate <= crossed.upper
    return possible and not any(each.name in SERIOUS for each in crossed.doubts)


def _advice(found: Interval | BaselineInterval, decision: Ruling | None) -> Statement:
    if isinstance(found, BaselineInterval) and found.status in (Status.DOUBTED, Status.INCONSISTENT):
        return found.advice
    if decision is None or found.status is not Status.OK:
        return advice(found.status.name.lower(), found.status.value)
    text = decision.judgment.value
    if decision.judgment is Judgment.UNDECIDED:
        text += " `Interval.breakdown()` and `aope bound --explain` say which would narrow the interval most."
    return advice(decision.judgment.name.lower(), text)


def _interval_part(interval: Interval) -> Statement:
    text = f"{interval.estimand}: {interval.status.name}, {interval.guarantee.value}, {interval.radius.name}."
    ends = (("lower", interval.lower), ("upper", interval.upper), ("delta", interval.delta))
    return remark("interval", text, *ends, ("status", interval.status.name))


def _logged_part(logged: LoggedValue) -> Statement:
    text = f"Value of the logged policy from {logged.episodes} episodes: {logged.status.name}, {logged.guarantee.value}."
    ends = (("estimate", logged.estimate), ("lower", logged.lower), ("upper", logged.upper), ("delta", logged.delta))
    return remark("logged", text, *ends)


def _crossed_part(crossed: CrossFittedInterval) -> Statement:
    text = f"Cross-fitted, {crossed.guarantee.value}: {crossed.status.name}."
    ends = (("estimate", crossed.estimate), ("lower", crossed.lower), ("upper", crossed.upper), ("delta", crossed.delta))
    return remark("large-sample", text, *ends)


def _weighed_part(weighed: BaselineInterval) -> Statement:
    text = f"By recorded probabilities, {weighed.guarantee.value}, {weighed.method}: {weighed.status.name}."
    ends = (("lower", weighed.lower), ("upper", weighed.upper), ("delta", weighed.delta))
    return remark("by-probabilities", text, *ends)


def outward(lower: float, upper: float) -> tuple[str, str]:
    """Both ends to two digits of the width, rounded away from each other."""
    digits = _digits(upper - lower)
    scale = 10.0**digits
    # A product such as 0.29 * 100 lies a rounding error off the number that is meant.
    slack = 4 * np.finfo(np.float64).eps
    low = math.floor(lower * scale + slack * abs(lower * scale)) / scale
    high = math.ceil(upper * scale - slack * abs(upper * scale)) / scale
    return _fixed(low, digits), _fixed(high, digits)


def number_near(value: float, width: float) -> str:
    """To two digits of a width."""
    return _fixed(value, _digits(width))


def _fixed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _digits(width: float) -> int:
    """Decimals that show two digits of a width."""
    return 4 if not 0 < width < math.inf else min(max(0, 1 - math.floor(math.log10(width))), MOST_DIGITS)
