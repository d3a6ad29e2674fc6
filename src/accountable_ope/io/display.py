"""Results in one line, and as a small table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from ..problem.statements import Guarantee, Statement, Status, range_text
from .templates import result_table

LONGEST = 26
"""Letters of a name beside a picture; a rule of a policy may have many more."""


def one_line(name: str, lower: float, upper: float, delta: float, method: str, status: Status) -> str:
    """The `repr` of an interval."""
    return f"{name}({ends_text(lower, upper)}, {confidence(delta)}, {method}, {status.name})"


def ends_text(lower: float, upper: float) -> str:
    """Both ends with four digits, and more where they would look alike."""
    return range_text(lower, upper, digits=4)


def page_ends(lower: float, upper: float) -> str:
    """Both ends with four places, as they stand on pages, and as `ends_text` where these say too little."""
    return f"[{lower:.4f}, {upper:.4f}]" if upper - lower >= 0.01 and max(-lower, upper) < 1e6 else ends_text(lower, upper)


def from_to(lower: float, upper: float) -> str:
    """The same in words."""
    return ends_text(lower, upper)[1:-1].replace(", ", " to ")


def confidence(delta: float) -> str:
    """1 - delta in percent."""
    share = 100 * (1 - delta)
    return next((text for digits in range(6, 16) if float(text := f"{share:.{digits}g}") < 100), f"{share:g}") + "%"


def shortened(name: str, longest: int = LONGEST) -> str:
    """A long name with an ellipsis in its middle: its beginning and its end tell it from others."""
    if len(name) <= longest:
        return name
    last = (longest - 1) // 2
    return f"{name[: longest - 1 - last].rstrip()}…{name[-last:].lstrip()}"


class AnyInterval(Protocol):
    """The members that every interval has."""

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def delta(self) -> float: ...

    @property
    def status(self) -> Status: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def count(self) -> int: ...

    @property
    def premises(self) -> tuple[Statement, ...]: ...


def interval_html(
    interval: AnyInterval,
    estimand: str,
    method: str,
    doubts: Sequence[Statement] = (),
    lead: Sequence[str] = (),
    advice: str | None = None,
) -> str:
    """An interval as a small table, for notebooks; lead: sentences that come first, by default what the interval says.

    advice: what to do next, by default what its status says of a class.
    """
    rows = (
        ("interval", ends_text(interval.lower, interval.upper)),
        ("method", method),
        ("guarantee", interval.guarantee.value),
        ("transitions", f"{interval.count:,}"),
    )
    title = f"{estimand}, {confidence(interval.delta)} confidence"
    first = lead or (_sentence(interval, estimand),)
    return result_html(title, interval.status, rows, interval.premises, doubts, first, advice)


def _sentence(interval: AnyInterval, estimand: str) -> str:
    """What to read if nothing else is read."""
    what = f"{estimand[0].lower()}{estimand[1:]}"
    if interval.status is Status.INCONSISTENT:
        return f"There is no interval for the {what}: the data refute what was assumed."
    if interval.status is Status.VACUOUS:
        return f"These data and assumptions do not bound the {what}."
    limit = " in the limit of many rows" if interval.guarantee is Guarantee.ASYMPTOTIC else ""
    only = "If what is doubted below were true after all, w" if interval.status is Status.DOUBTED else "W"
    ends = ends_text(interval.lower, interval.upper)
    return f"{only}ith {confidence(interval.delta)} confidence{limit} the {what} lies in {ends}."


def result_html(
    title: str,
    outcome: Enum,
    rows: Sequence[tuple[str, object]],
    premises: Sequence[Statement],
    doubts: Sequence[Statement] = (),
    lead: Sequence[str] = (),
    advice: str | None = None,
) -> str:
    """A result as a small table, for notebooks; what its outcome means, or the advice, comes first, where nothing else does."""
    said = str(outcome.value) if advice is None else advice
    first, after = (lead, said) if lead else ((said,), "")
    return result_table(title, rows, premises, status=outcome.name, advice=after, notes=doubts, lead=first)
