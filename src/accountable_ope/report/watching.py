"""What a monitor says: in one sentence, as a judgment on a threshold, and as a document for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..bounds.decision import Judgment
from ..bounds.looks import Decision, Look, MonitorReport, first_decision
from ..bounds.verdict import outward
from ..io.display import confidence
from ..problem.statements import Status
from .document import Document, finite_or_none, interval_document


class Watched(Protocol):
    """What all monitors have."""

    def __len__(self) -> int: ...

    @property
    def history(self) -> tuple[Look, ...]: ...

    radius: str
    delta: float
    planned: int


def judgment(looks: Sequence[Look], threshold: float) -> Judgment:
    """What is certain about the claim "value >= threshold", at all times together."""
    if looks[-1].status is Status.INCONSISTENT:
        return Judgment.INCONSISTENT
    if looks[-1].doubted:
        return Judgment.DOUBTED
    decision = first_decision(looks, threshold)
    if decision is None:
        return Judgment.UNDECIDED
    return Judgment.SUPPORTED if decision.at_least else Judgment.REFUTED


def monitor_sentence(monitor: Watched) -> str:
    """What to read if nothing else is read."""
    if not monitor.history:
        return "The monitor has seen no rows yet."
    last = monitor.history[-1]
    return running_sentence(last.lower, last.upper, last.status, monitor.delta, doubted=last.doubted, copied=last.copied)


def running_sentence(lower: float, upper: float, status: Status, delta: float, *, doubted: bool, copied: bool) -> str:
    """What the looks of all times have in common."""
    if copied:
        rest = running_sentence(lower, upper, status, delta, doubted=False, copied=False)
        return f"Rows are copies of others, and what they say is left out. Before them: {rest[0].lower()}{rest[1:]}"
    if status is Status.INCONSISTENT:
        return "No function of the class fits the looks of all times together, so that there is no interval."
    if status is Status.VACUOUS:
        return "These data and assumptions do not bound the new policy's value yet."
    low, high = outward(lower, upper)
    sure = f"{confidence(delta)} confidence, at all times together,"
    if doubted:
        return f"The class is doubted; only if it contains Q, with {sure} the new policy's value lies between {low} and {high}."
    return f"With {sure} the new policy's value lies between {low} and {high}."


def monitor_document(monitor: Watched, report: MonitorReport | None = None, threshold: float | None = None) -> Document:
    """What `aope monitor --json` prints; report: that of the last update, where there was one."""
    looks = monitor.history
    decision = None if threshold is None else first_decision(looks, threshold)
    return {
        "radius": monitor.radius,
        "delta": monitor.delta,
        "planned": monitor.planned,
        "rows": len(monitor),
        "verdict": {"sentence": monitor_sentence(monitor)},
        "judgment": None if threshold is None else judgment(looks, threshold).name,
        "status": looks[-1].status.name if looks else None,
        "decision": None if decision is None else _decision(decision),
        "looks": [_look(look) for look in looks],
        "interval": None if report is None else interval_document(report.interval),
    }


def update_document(report: MonitorReport) -> Document:
    """What one update says."""
    doubted, copied = report.interval.doubted, report.interval.copied > 0
    sentence = running_sentence(report.lower, report.upper, report.status, report.delta, doubted=doubted, copied=copied)
    return {
        "verdict": {"sentence": sentence},
        "rows": report.count,
        "lower": finite_or_none(report.lower),
        "upper": finite_or_none(report.upper),
        "status": report.status.name,
        "seconds": report.seconds,
        "interval": interval_document(report.interval),
    }


def _decision(decision: Decision) -> Document:
    return {
        "threshold": decision.threshold,
        "at_least": decision.at_least,
        "update": decision.update,
        "rows": decision.look.count,
    }


def _look(look: Look) -> Document:
    return {
        "rows": look.count,
        "lower_now": finite_or_none(look.now[0]),
        "upper_now": finite_or_none(look.now[1]),
        "lower": finite_or_none(look.lower),
        "upper": finite_or_none(look.upper),
        "status_now": look.status_now.name,
        "status": look.status.name,
        "seconds": look.seconds,
        "batch": look.label,
        "doubted": look.doubted,
    }
