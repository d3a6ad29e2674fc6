"""A self-contained HTML report of a ladder of intervals: no script, no network, no mathematics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..baselines.interval import BaselineInterval
from ..bounds.breakdown import Breakdown
from ..bounds.interval import Interval, normalizer
from ..bounds.logging_policy import LoggedValue
from ..bounds.verdict import Verdict
from ..io.display import confidence, page_ends
from ..io.templates import render
from ..problem.statements import Status
from ..programs.constraint import Role
from .breakdown import BreakdownTable, breakdown_tables
from .comparison import comparison
from .document import Counted
from .doubts import doubt_paragraphs
from .fragility import shown_fragility
from .labels import premise_text
from .made import Made

BY_PROBABILITIES = "by recorded probabilities"
CROSSED = "the ends cross: no value follows"


@dataclass(frozen=True)
class Table:
    """Cells as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Note:
    """A paragraph in the color of a status."""

    status: str
    heading: str
    text: str


@dataclass(frozen=True)
class Mark:
    """A name at a place on the axis, in percent of its length; anchor: which part of the name stands there."""

    name: str
    at: float
    anchor: str


@dataclass(frozen=True)
class Bar:
    """One interval; start and width are percentages of the axis, width None where there is no interval."""

    name: str
    status: str
    ends: str
    start: float
    width: float | None


@dataclass(frozen=True)
class Chart:
    """All intervals on the range of possible values."""

    axis: str
    ticks: tuple[Mark, ...]
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Page:
    """What report.html shows."""

    title: str
    subtitle: str
    status: str
    verdict: str
    second_line: str
    wanted: str
    decision: str
    doubts: tuple[Note, ...]
    known: tuple[tuple[str, str, str], ...]
    comparison: str
    chart: Chart | None
    intervals: Table
    notes: tuple[Note, ...]
    breakdown: tuple[BreakdownTable, ...]
    breakdown_says: tuple[str, ...]
    leading: str
    leading_premises: tuple[str, ...]
    premises: tuple[str, ...]
    remarks: tuple[str, ...]
    checked: bool
    certificates: Table
    offsets: str
    tightened: tuple[str, ...]
    made: Made


def report_html(
    intervals: Sequence[Interval],
    data: Counted,
    title: str,
    truth: float | None = None,
    to_beat: float | None = None,
    remarks: Sequence[str] = (),
    verdict: Verdict | None = None,
    breakdown: Breakdown | None = None,
    names: Sequence[str] = (),
    made: Made | None = None,
) -> str:
    """The whole page; with the values of the target policy and of the behavior policy, where they are known.

    remarks: sentences about how the data were read.
    verdict: what comes first; by default that on the last interval.
    breakdown: what its width is made of, where that was asked for.
    names: of the columns of the state, where they are known.
    made: when, by which version and command; by default now, by no command.
    """
    best = intervals[-1]
    said = best.verdict() if verdict is None else verdict
    episodes = "" if data.number_of_episodes is None else f" in {data.number_of_episodes:,} episodes"
    scale = normalizer(best.assumptions.discount)
    known = (("Truth, known for this dataset", truth), ("The behavior policy itself, to beat", to_beat))
    page = Page(
        title=title,
        subtitle=f"{best.estimand} from {len(data):,} logged transitions{episodes}; discount {best.assumptions.discount:g}, "
        f"confidence {confidence(best.delta)}, both ends together.",
        status=(best if said.leading is None else said.leading).status.name,
        verdict=said.sentence,
        second_line=said.second_line,
        wanted="" if said.wanted is None else said.wanted.text,
        decision="" if said.decision is None else str(said.decision),
        doubts=(
            *(Note("DOUBT", "Doubt", each.text) for each in (() if said.leading is None else said.leading.doubts)),
            *(Note("DOUBT", heading, text) for heading, text in doubt_paragraphs(best.doubts)),
        ),
        known=tuple(
            (label, f"{value:.4f}", "" if scale == 1 else f" (normalized {scale * value:.4f})")
            for label, value in known
            if value is not None
        ),
        comparison="" if to_beat is None else comparison(best, to_beat),
        chart=_chart(intervals, [("behavior", to_beat), ("truth", truth)], said.leading, best.companions().logged),
        intervals=_interval_table(intervals, scaled=scale != 1),
        notes=(*_notes(intervals), *(Note("DOUBT", "Fragile", sentence) for sentence in shown_fragility(best))),
        breakdown=() if breakdown is None else tuple(breakdown_tables(breakdown)),
        breakdown_says=() if breakdown is None else tuple(map(str, breakdown.statements)),
        remarks=(*remarks, *map(str, best.remarks)),
        leading="" if said.leading is None else f"{said.leading.method}; {said.leading.guarantee.value}",
        leading_premises=() if said.leading is None else tuple(map(str, said.leading.premises)),
        premises=tuple(premise_text(each, names) for each in best.premises),
        checked=all(interval.check() for interval in intervals),
        certificates=Table(
            ("radius", "class", "end", "bound", "duality gap", "multipliers (loss, ball, box)"),
            tuple(row for interval in intervals for row in _certificate_rows(interval)),
        ),
        offsets=_offsets(best),
        tightened=tuple(
            f"{interval.radius.name}: {part.tightening.summary()}"
            for interval in intervals
            for part in interval.certificates
            if part.tightening is not None
        ),
        made=Made.now() if made is None else made,
    )
    return render("report.html", page)


def _ends(interval: Interval, ends: tuple[float, float]) -> str:
    return "-" if interval.outcome is Status.INCONSISTENT else page_ends(ends[0], ends[1])


def _interval_table(intervals: Sequence[Interval], *, scaled: bool) -> Table:
    return Table(
        ("radius", "value", *(["normalized"] if scaled else []), "guarantee", "status", "theorem"),
        tuple(
            (
                interval.radius.name,
                _ends(interval, (interval.lower, interval.upper)),
                *([_ends(interval, interval.normalized)] if scaled else []),
                interval.guarantee.value,
                interval.status.name,
                interval.radius.theorem,
            )
            for interval in intervals
        ),
    )


def _notes(intervals: Sequence[Interval]) -> Iterator[Note]:
    """One note for all radii that ended alike."""
    for status in Status:
        alike = [interval for interval in intervals if interval.status is status]
        if alike:
            refuted = (f" {part.refutation(alike[-1].radius)}" for part in alike[-1].certificates if not part.consistent)
            yield Note(status.name, ", ".join(interval.radius.name for interval in alike), status.value + "".join(refuted))


def _certificate_rows(interval: Interval) -> Iterator[tuple[str, ...]]:
    for part in interval.certificates:
        for end, sign, certificate in (("lower", -1.0, part.lower), ("upper", 1.0, part.upper)):
            bound = _bound_text(part.offset, sign * certificate.bound) if part.consistent else "none: the set is empty"
            gap = f"{certificate.gap:.1e}" if math.isfinite(certificate.gap) else "-"
            multipliers = ", ".join(f"{certificate.multiplier(role):.3g}" for role in (Role.LOSS, Role.BALL, Role.BOX))
            yield interval.radius.name, part.features, end, bound, gap, multipliers


def _bound_text(offset: float, bound: float) -> str:
    """The number that multipliers prove, beside the value that it is added to where there is one."""
    if not offset or not math.isfinite(bound):
        return f"{bound:.6g}"
    return f"{offset + bound:.6g} = {offset:.6g} {'-' if bound < 0 else '+'} {abs(bound):.6g}"


def _offsets(interval: Interval) -> str:
    """What such sums are, where a class lies around an estimate, or its values are counted from a constant."""
    if not any(part.offset for part in interval.certificates):
        return ""
    first = "the constant from which values are counted"
    if interval.setting.circumstances.anchored:
        first = "what the estimate gives, around which the class lies"
    return (
        f"A bound is written as a sum: {first}, and how far the value may be from there. The second number is what the "
        "multipliers prove, and the duality gap is its own. What start states and unseen parts of a class add is not in it."
    )


def _chart(
    intervals: Sequence[Interval],
    known: Sequence[tuple[str, float | None]],
    leading: BaselineInterval | None,
    logged: LoggedValue | None,
) -> Chart | None:
    """All intervals; above them what the first sentence says, where that is none of them, and below them what is to be beaten."""
    low, high = intervals[0].ranges.value
    if not high > low:
        return None

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    def mark(name: str, at: float) -> Mark:
        return Mark(name, at, "start" if at < 15 else "end" if at > 85 else "middle")  # no name leaves the page

    def bar(name: str, found: Interval | BaselineInterval | LoggedValue, nothing: str) -> Bar:
        if not found.lower <= found.upper:
            return Bar(name, found.status.name, nothing, 0.0, None)
        left, right = place(max(found.lower, low)), place(min(found.upper, high))
        ends = page_ends(found.lower, found.upper)
        return Bar(name, found.status.name, ends, left, max(round(right - left, 2), 0.2))

    bars = [] if leading is None else [bar(BY_PROBABILITIES, leading, CROSSED)]
    bars += [bar(interval.radius.name, interval, "no function of the class fits the data") for interval in intervals]
    bars += [] if logged is None else [bar("logged policy", logged, CROSSED)]
    return Chart(
        axis=intervals[0].estimand.lower(),
        ticks=tuple(mark(f"{low + (high - low) * k / 5:.4g}", 20.0 * k) for k in range(6)),
        bars=tuple(bars),
        marks=tuple(mark(name, place(value)) for name, value in known if value is not None),
    )
