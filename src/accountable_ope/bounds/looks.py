"""What a monitor saw: looks, the running interval that they have in common, and when it decided something."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments import checked
from ..io.display import ends_text, interval_html, one_line
from ..io.shown import Drawn, Shown
from ..problem.statements import Guarantee, Statement, Status
from ..radii.doubts import statements
from .interval import Interval


@checked
@dataclass(frozen=True)
class Look:
    """One look, in numbers.

    Attributes
    ----------
    count : int
        Rows so far.
    now : tuple of two floats
        The interval of this time alone.
    status_now : Status
        Its status.
    lower, upper : float
        What the intervals of all times so far have in common, but for those at which rows were copies; NaN once the class is
        refuted.
    status : Status
        INCONSISTENT from the time on at which no function of the class was consistent with the data, or the intervals of all
        times had nothing in common: then, at level delta, the class does not contain Q.
    seconds : float
    label : str
        The name of the batch, if it was given one.
    doubted : bool
        Whether the rows so far speak against the class, or its norm bound, or are copies of others.
    copied : bool
        Whether they are copies of others.
    """

    count: int
    now: tuple[float, float]
    status_now: Status
    lower: float
    upper: float
    status: Status
    seconds: float
    label: str = ""
    doubted: bool = False
    copied: bool = False

    def __repr__(self) -> str:
        return f"Look({self.count} rows, {ends_text(self.lower, self.upper)}, {self.status.name})"


@checked
@dataclass(frozen=True, eq=False)
class MonitorReport(Shown, Drawn):
    """What an update says: the interval of this time with its certificates, and the running one (see `Look`).

    Attributes
    ----------
    count : int
        Rows so far.
    interval : Interval
        That of this time.
    lower, upper : float
        The running one.
    status : Status
    seconds : float
    """

    count: int
    interval: Interval
    lower: float
    upper: float
    status: Status
    seconds: float

    def __repr__(self) -> str:
        return one_line("MonitorReport", self.lower, self.upper, self.interval.delta, self.interval.radius.name, self.status)

    def _repr_html_(self) -> str:
        return interval_html(
            self, "Value of the target policy, at all times so far", self.interval.radius.name, statements(self.interval.doubts)
        )

    @property
    def delta(self) -> float:
        """The failure probability of the intervals of all times together."""
        return self.interval.delta

    @property
    def guarantee(self) -> Guarantee:
        return self.interval.guarantee

    @property
    def premises(self) -> tuple[Statement, ...]:
        """What must be true for the guarantee."""
        return self.interval.premises

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower


@checked
@dataclass(frozen=True)
class Decision:
    """The first look at which the value was certain to be at least the threshold, or below it.

    Attributes
    ----------
    threshold : float
    at_least : bool
        Whether the value is at least the threshold.
    update : int
        The number of that look.
    look : Look
    """

    threshold: float
    at_least: bool
    update: int
    look: Look


def first_decision(looks: Sequence[Look], threshold: float) -> Decision | None:
    """When the running interval left the threshold on one side; None while it holds it, and when the class was refuted."""
    if looks and looks[-1].status is Status.INCONSISTENT:
        return None
    for number, look in enumerate(looks, start=1):
        if look.lower >= threshold or look.upper < threshold:
            return Decision(threshold, look.lower >= threshold, number, look)
    return None


def look_at(interval: Interval, running: tuple[float, float, Status], seconds: float, label: str) -> Look:
    """The look that found an interval; running: what it has in common with those before."""
    now, copied = (interval.lower, interval.upper), interval.copied > 0
    return Look(interval.count, now, interval.outcome, *running, seconds, label, interval.doubted, copied)


def running_ends(before: Look | None, interval: Interval) -> tuple[float, float, Status]:
    """What the interval has in common with those before; nothing in common refutes the class, for good.

    Where rows are copies the interval is too narrow, and has no part in it: later rows may outnumber the copies, and would else
    lend their name to what was found by these.
    """
    if interval.copied:
        return (*interval.ranges.value, Status.VACUOUS) if before is None else (before.lower, before.upper, before.status)
    lower, upper, statuses = interval.lower, interval.upper, [interval.outcome]
    if before is not None:
        lower, upper, statuses = max(before.lower, lower), min(before.upper, upper), [before.status, interval.outcome]
    if Status.INCONSISTENT in statuses or not lower <= upper:
        return math.nan, math.nan, Status.INCONSISTENT
    return lower, upper, Status.OK if Status.OK in statuses else Status.VACUOUS
