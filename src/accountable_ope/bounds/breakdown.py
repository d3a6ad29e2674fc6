"""What the width of an interval is made of, and what would narrow it: the same rows bounded again with one thing changed.

Each part is the width less the width without it, all else as it is: the parts overlap and do not add up. A part is no premise
that could be dropped, and a remedy is narrower only if what it declares is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..arguments import checked
from ..defaults.recipe import ClassKind
from ..errors import InvalidInput
from ..io.display import ends_text
from ..io.shown import Drawn, Shown
from ..problem.assumptions import Assumptions, Range, RelativeNorm
from ..problem.statements import Statement, Status, advice, remark
from ..programs.envelope import Envelope, Steps
from ..radii.registry import radius_rule
from ..validation import FloatArray
from .altering import Altering
from .findings import RowsNeeded
from .rebound import Rebound

if TYPE_CHECKING:
    from .interval import Interval

NEGLIGIBLE = 1e-9
"""Steps of this share of their range are as good as none."""

BEST = 2
"""So many remedies are named."""

WORTH = 0.01
"""What saves less than this share of the width is no help, and is only counted among what was tried."""

BELIEVED = {
    "norm-bound": (
        "--norm-bound, or a smaller --within where the class was chosen; `Assumptions(norm_bound=...)`",
        "earlier logs or a similar question showed how wild Q is; these rows cannot",
    ),
    "reward-noise": (
        "--deterministic-reward, `Assumptions(reward_noise=False)`",
        "the reward is computed from the columns of state and action by a known formula",
    ),
    "one-step-range": (
        "--one-step-range, `Assumptions(one_step_range=...)`",
        "no single step can change the prospects by more, not even by an accident that was never logged",
    ),
    "value-range": (
        "--value-range, `Assumptions(value_range=...)`",
        "no state can be worth more or less under the new policy, for a reason that is not these rows",
    ),
    "fixed-starts": (
        "--starts FILE, `StartStates(...)`",
        "it was known before the data with which frequencies the new policy will start where",
    ),
}
"""Of every declaration the option and the argument, and when one may believe it."""

TAKEN_AWAY = {
    "start-states": "start states by a file of where the new policy will start, if that was known before the data",
    "noise": "noise by more rows alone",
    "range": "range by more rows, or by a one-step range if no accident can move more",
    "norm": "the norm ball by a smaller --norm-bound, if earlier logs support it",
    "misfit": "the misfit by a smaller --misfit, if the class is as near to Q as that",
    "misfit-norm": "what features miss by a smaller --misfit-norm, if they miss as little as that",
}
"""Of every part what makes it smaller in fact."""

OTHER_METHODS = remark("other-methods", "Which method suits which log, by measurement: docs/arena.md.")
"""The last line of an explanation."""

PREFIXES = 3
"""From so many prefixes of the data the number of rows is extrapolated: all, half and a quarter."""


@checked
@dataclass(frozen=True)
class Altered:
    """The interval with one thing changed.

    Attributes
    ----------
    name : str
        What is changed: "start-states", "noise", "range", "norm", "misfit", or a declaration.
    text : str
        The same in words.
    lower, upper : float
        The ends then; NaN where no function of the class fits any more.
    status : Status
        Whether it then says anything.
    saved : float
        By how much it is narrower; NaN where nothing fits.
    """

    name: str
    text: str
    lower: float
    upper: float
    status: Status
    saved: float

    @property
    def width(self) -> float:
        return self.upper - self.lower


@checked
@dataclass(frozen=True)
class Breakdown(Shown, Drawn):
    """What a width is made of and what would narrow it; made by `Interval.breakdown`.

    Attributes
    ----------
    lower, upper : float
        The interval itself.
    parts : tuple of Altered
        It without one source of width each, the largest first. They overlap.
    remedies : tuple of Altered
        It under one stronger declaration each, the most useful first; those that the data refute come last.
    start_error : float
        What sampled start states, or sampled actions there, add to each end; 0 where the start distribution is known.
    rows : RowsNeeded or None
        How many rows half of the width takes, extrapolated; None where it was not asked for or cannot be said.
    """

    lower: float
    upper: float
    parts: tuple[Altered, ...]
    remedies: tuple[Altered, ...]
    start_error: float
    rows: RowsNeeded | None = None

    def __repr__(self) -> str:
        largest = f", largest part {self.parts[0].name}" if self.parts else ""
        return f"Breakdown({ends_text(self.lower, self.upper)}, {len(self.parts)} parts, {len(self.remedies)} remedies{largest})"

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def best(self) -> tuple[Altered, ...]:
        """The two remedies that narrow it most, of those that leave something to the data and are not refuted by them."""
        return self.helpful_remedies[:BEST]

    @property
    def helpful_parts(self) -> tuple[Altered, ...]:
        """What the width is made of, where it is more than a hundredth of the width."""
        return tuple(each for each in self.parts if self._helps(each))

    @property
    def helpful_remedies(self) -> tuple[Altered, ...]:
        """Declarations that narrow it by more than a hundredth, leave something to the data and are not refuted by them."""
        return tuple(each for each in self.remedies if self._helps(each) and each.status is Status.OK)

    @property
    def no_help(self) -> tuple[Altered, ...]:
        """What else was tried."""
        helpful = (*self.helpful_parts, *self.helpful_remedies)
        return tuple(each for each in (*self.parts, *self.remedies) if each not in helpful)

    def _helps(self, each: Altered) -> bool:
        return each.saved > WORTH * self.width  # not where nothing fits, NaN

    @property
    def statements(self) -> tuple[Statement, ...]:
        """In words: the cost of start states, what helps and when to believe it, what does not, rows, and other methods."""
        found = []
        starts = next((each for each in self.parts if each.name == "start-states"), None)
        if starts is not None and self._helps(starts):
            ends = ends_text(starts.lower, starts.upper)
            text = (
                f"Start states that are a sample, or come from the log, cost {starts.saved:.3g} of the width {self.width:.3g}: "
                f"were their distribution known and fixed before the data, the interval would be {ends}."
            )
            found.append(remark("start-states", text, ("saved", starts.saved), ("start_error", self.start_error)))
        ways = [TAKEN_AWAY[each.name] for each in self.helpful_parts if each.name in TAKEN_AWAY]
        if ways:
            found.append(remark("taken-away", f"What makes these parts smaller in fact: {'; '.join(ways)}."))
        for each in self.helpful_remedies:
            ends = ends_text(each.lower, each.upper)
            text = f"{each.text}: {ends}, a width of {each.width:.3g} in the place of {self.width:.3g}, if it is true."
            if each.name in BELIEVED:
                how, when = BELIEVED[each.name]
                text += f" Declare it ({how}) only if {when}."
            found.append(advice(each.name, text, ("width", each.width), ("saved", each.saved)))
        if self.no_help:
            tried = "; ".join(dict.fromkeys(_uncapitalized(each.text) for each in self.no_help))
            text = f"Tried, and no help (narrower by less than 1%, refuted by the data, or the data add nothing to it): {tried}."
            found.append(remark("no-help", text, ("tried", len(self.no_help))))
        if self.rows is not None:
            about = "" if self.rows.rows is None else f"about {_rounded(self.rows.rows):,} rows. "
            text = f"Half of the width, {self.rows.width:.3g}: {about}{self.rows.outcome.value}"
            found.append(advice("rows", text, ("rows", self.rows.rows), ("outcome", self.rows.outcome.name)))
        return (*found, OTHER_METHODS)


@dataclass(frozen=True)
class WithoutRange:
    """An envelope as if no step could be larger than nothing: what is left is the price of the variance."""

    envelope: Envelope
    follows_variance: ClassVar[bool] = True

    def bound(self, steps: Steps, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.envelope.bound(Steps.within(NEGLIGIBLE * steps.largest), variance)


@dataclass(frozen=True)
class WithoutNoise:
    """An envelope as if no variance had been seen: what is left is the price of steps that might still come."""

    envelope: Envelope
    follows_variance: ClassVar[bool] = True

    def bound(self, steps: Steps, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = np.atleast_1d(np.asarray(variance, dtype=np.float64))
        level, _ = self.envelope.bound(steps, np.zeros_like(v))
        return level, np.zeros_like(v)


def breakdown_of(interval: Interval, *, rows: bool = True) -> Breakdown | None:
    """The breakdown of an interval; None where there is none, or where it cannot be bounded again."""
    again = interval.rebound
    if again is None or interval.outcome is Status.INCONSISTENT:
        return None
    altering = Altering(interval, again)
    parts = _tried(interval, _removals(altering, again))
    remedies = _tried(interval, _declarations(interval, altering, again))
    return Breakdown(
        lower=interval.lower,
        upper=interval.upper,
        parts=tuple(sorted(parts, key=_by_saving)),
        remedies=tuple(sorted(remedies, key=_by_saving)),
        start_error=interval.start_error,
        rows=_rows(interval, again) if rows and not again.growing else None,
    )


@dataclass(frozen=True)
class _Change:
    name: str
    text: str
    bound: Callable[[], Interval]


def _tried(interval: Interval, changes: list[_Change]) -> list[Altered]:
    found = []
    for change in changes:
        try:
            other = change.bound()
        except InvalidInput:  # not for this radius, policy or class, or the data contradict it outright
            continue
        saved = interval.width - other.width
        found.append(Altered(change.name, change.text, other.lower, other.upper, other.outcome, saved))
    return found


def _by_saving(altered: Altered) -> tuple[bool, float]:
    return (math.isnan(altered.saved), -altered.saved)


def _removals(altering: Altering, again: Rebound) -> list[_Change]:
    """Sources of width, each taken away."""
    problem, facts = again.problem, again.problem.assumptions
    found = []
    if not problem.start_is_exact or not problem.starts_are_fixed:
        found.append(
            _Change("start-states", "start states that are sampled or come from the log", lambda: altering.with_known_starts)
        )
    if radius_rule(again.asked.radius).follows_variance:
        found.append(_Change("noise", "noise, the variance that was seen", lambda: altering.within(WithoutNoise)))
        found.append(_Change("range", "range, jumps that might have come and did not", lambda: altering.within(WithoutRange)))
    if isinstance(facts.norm_bound, float):
        half = replace(facts, norm_bound=facts.norm_bound / 2)
        found.append(_Change("norm", f"half of the norm ball, ||Q|| <= {half.norm_bound:.4g}", _under(altering, half)))
    if facts.misfit > 0:
        exact = replace(facts, misfit=0.0)
        found.append(_Change("misfit", f"the misfit of {facts.misfit:.4g}", _under(altering, exact)))
    if facts.misfit_norm is not None:
        less = replace(facts, misfit_norm=facts.misfit_norm / 2)
        text = f"half of the ball of what features miss, a norm of {less.misfit_norm:.4g}"
        found.append(_Change("misfit-norm", text, _under(altering, less)))
    return found


def _declarations(interval: Interval, altering: Altering, again: Rebound) -> list[_Change]:
    """Stronger declarations, each by itself."""
    problem, facts = again.problem, again.problem.assumptions
    tried: list[tuple[str, str, Assumptions]] = []
    smaller = _smaller_norm(interval, facts)
    table = interval.recipe is not None and interval.recipe.kind is ClassKind.TABLE  # which has no ball
    if smaller is not None and not table:
        tried.append(("norm-bound", f"A norm bound of {smaller:.4g}", replace(facts, norm_bound=smaller)))
    if facts.reward_noise:
        tried.append(("reward-noise", "Rewards that are a function of (s, a)", replace(facts, reward_noise=False)))
    if problem.knowledge.one_step_range is None:
        step = 0.5 * (problem.ranges.residual_width if facts.one_step_range is None else facts.one_step_range)
        tried.append(("one-step-range", f"A one-step range of {step:.4g}", replace(facts, one_step_range=step)))
    low, high = _half_range(interval)
    tried.append(("value-range", f"A value range of [{low:.4g}, {high:.4g}]", replace(facts, value_range=(low, high))))
    found = [_Change(name, text, _under(altering, assumed)) for name, text, assumed in tried]
    if not problem.start_is_exact or not problem.starts_are_fixed:
        text = "Start states that are known and were fixed before the data"
        found.append(_Change("fixed-starts", text, lambda: altering.with_known_starts))
    return found


def _under(altering: Altering, facts: Assumptions) -> Callable[[], Interval]:
    return lambda: altering.under(facts)


def _smaller_norm(interval: Interval, facts: Assumptions) -> float | None:
    """Half of the declared one; where none is declared, twice the least that fits."""
    if isinstance(facts.norm_bound, float):
        return 0.5 * facts.norm_bound
    least = max((part.least_norm or 0.0 for part in interval.certificates), default=0.0)
    return None if isinstance(facts.norm_bound, RelativeNorm) or least <= 0 else 2 * least


def _half_range(interval: Interval) -> Range:
    """Half as long, about the middle of the interval as far as the declared range allows."""
    low, high = interval.ranges.value
    quarter = 0.25 * (high - low)
    middle = min(max(0.5 * (interval.lower + interval.upper), low + quarter), high - quarter)
    return (middle - quarter, middle + quarter)


def _rows(interval: Interval, again: Rebound) -> RowsNeeded | None:
    from .rows_needed import extrapolated_rows

    if not interval.width > 0:
        return None
    first = interval if again.asked.pointwise is None else again.evaluation.bound(again.asked.radius, again.asked.delta)
    try:
        return extrapolated_rows(again.evaluation, first, interval.width / 2, PREFIXES)
    except InvalidInput:  # columns that cannot be cut, or a class around an estimate
        return None


def _uncapitalized(text: str) -> str:
    """To stand within a sentence."""
    return text[:1].lower() + text[1:]


def _rounded(rows: int) -> int:
    """Two digits: it is an extrapolation."""
    unit = int(10 ** max(len(str(rows)) - 2, 0))
    return math.ceil(rows / unit) * unit
