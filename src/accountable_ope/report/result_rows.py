"""Every result as rows of a table: one per interval, policy, value, look or change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch

from ..baselines.interval import BaselineInterval
from ..bounds.anderson_rubin import AndersonRubinInterval
from ..bounds.breakdown import Breakdown
from ..bounds.comparison import Comparison
from ..bounds.correction import Correction
from ..bounds.cross_fitted import CrossFittedInterval
from ..bounds.decision import Ruling
from ..bounds.diagnosis import Diagnosis
from ..bounds.findings import Curve, Flip, LeastNorm, RowsNeeded
from ..bounds.half_class import HalfClass
from ..bounds.interval import Interval
from ..bounds.logging_policy import LoggedValue
from ..bounds.looks import Look, MonitorReport
from ..bounds.misfit_norms import MisfitNorms
from ..bounds.monitor import Monitor
from ..bounds.sandwich import SandwichInterval
from ..bounds.stream_monitor import StreamMonitor
from ..bounds.verdict import Verdict
from ..io.display import AnyInterval
from ..verification.verify import Verification

Cell = str | float | int | bool
Rows = Sequence[Mapping[str, Cell]]
"""Column -> cell; the same columns in every row. A number that is not there is NaN."""


def named_interval(interval: AnyInterval, method: str, **first: Cell) -> Mapping[str, Cell]:
    """What all intervals have."""
    return {
        **first,
        "method": method,
        "lower": interval.lower,
        "upper": interval.upper,
        "status": interval.status.name,
        "guarantee": interval.guarantee.value,
        "delta": interval.delta,
        "rows": interval.count,
    }


@singledispatch
def rows_of(result: object, /) -> Rows:
    """What `to_frame` gives."""
    raise NotImplementedError(f"{type(result).__name__} has no rows.")


@rows_of.register
def _(result: Interval, /) -> Rows:
    return [named_interval(result, result.radius.name)]


@rows_of.register
def _(result: LoggedValue, /) -> Rows:
    low, high = result.large_sample
    return [
        {**named_interval(result, "betting on returns"), "estimate": result.estimate, "likely_lower": low, "likely_upper": high}
    ]


@rows_of.register
def _(result: CrossFittedInterval, /) -> Rows:
    found = named_interval(result, "cross-fitted doubly robust")
    return [{**found, "estimate": result.estimate, "standard_error": result.standard_error}]


@rows_of.register
def _(result: SandwichInterval, /) -> Rows:
    return [{**named_interval(result, "sandwich"), "estimate": result.estimate, "standard_error": result.standard_error}]


@rows_of.register
def _(result: AndersonRubinInterval, /) -> Rows:
    return [named_interval(result, "Anderson-Rubin")]


@rows_of.register
def _(result: BaselineInterval, /) -> Rows:
    return [named_interval(result, result.method)]


@rows_of.register
def _(result: MonitorReport, /) -> Rows:
    return [named_interval(result, result.interval.radius.name)]


@rows_of.register
def _(result: Comparison, /) -> Rows:
    return [named_interval(each.answer, _method(each.answer), policy=each.name) for each in result.contenders]


def _method(found: Interval | BaselineInterval | LoggedValue) -> str:
    if isinstance(found, BaselineInterval):
        return found.method
    return found.radius.name if isinstance(found, Interval) else "betting on returns"


@rows_of.register
def _(result: Diagnosis, /) -> Rows:
    return [
        {
            "region": number,
            "where": place,
            "row": region.row,
            "smoothed_residual": float(region.witness),
            "mean_residual": float(region.mean_residual),
            "share_of_loss": float(region.share),
        }
        for number, (region, place) in enumerate(zip(result.witness.regions, result.explanation.places, strict=True), start=1)
    ]


@rows_of.register
def _(result: Correction, /) -> Rows:
    return [
        {"q": "estimate", "value": result.estimate_before, "loss": result.loss_before, "threshold": result.radius.total},
        {"q": "corrected", "value": result.estimate_after, "loss": result.loss_after, "threshold": result.radius.total},
    ]


@rows_of.register
def _(result: Curve, /) -> Rows:
    return [
        {
            "parameter": result.parameter.value,
            "value": each.value,
            "lower": each.lower,
            "upper": each.upper,
            "status": each.status.name,
            "declared": each.baseline,
        }
        for each in result.rows()
    ]


@rows_of.register
def _(result: MisfitNorms, /) -> Rows:
    return rows_of(result.curve)


@rows_of.register
def _(result: Flip, /) -> Rows:
    return [
        {
            "parameter": result.parameter.value,
            "threshold": result.threshold,
            "outcome": result.outcome.name,
            "value": _number(result.value),
            "lower": _number(result.lower),
            "beyond": _number(result.beyond),
            "declared": _number(result.baseline),
            "supported_as_declared": result.baseline_supports,
        }
    ]


@rows_of.register
def _(result: LeastNorm, /) -> Rows:
    return [{"parameter": result.parameter.value, "above": result.value, "not_refuted": _number(result.consistent)}]


@rows_of.register
def _(result: RowsNeeded, /) -> Rows:
    return [{"rows": each.rows, "width": each.width, "status": each.status.name} for each in result.points]


@rows_of.register
def _(result: Breakdown, /) -> Rows:
    return [
        {
            "kind": kind,
            "name": each.name,
            "text": each.text,
            "lower": each.lower,
            "upper": each.upper,
            "saved": each.saved,
            "status": each.status.name,
        }
        for kind, changes in (("without", result.parts), ("declared", result.remedies))
        for each in changes
    ]


@rows_of.register
def _(result: HalfClass, /) -> Rows:
    low, high = result.declared
    return [
        {"features": result.of, "lower": low, "upper": high},
        {"features": result.features, "lower": result.lower, "upper": result.upper},
    ]


@rows_of.register
def _(result: Verification, /) -> Rows:
    return [{"valid": result.valid, "lower": result.lower, "upper": result.upper, "message": result.message}]


@rows_of.register(Monitor)
@rows_of.register(StreamMonitor)
def _(result: Monitor | StreamMonitor, /) -> Rows:
    return [_look(update, look) for update, look in enumerate(result.history, start=1)]


@rows_of.register
def _(result: Verdict, /) -> Rows:
    return [{"name": each.name, "text": each.text} for each in (*result.parts, result.advice)]


@rows_of.register
def _(result: Ruling, /) -> Rows:
    return [{"claim": result.claim, "judgment": result.judgment.name, "delta": result.delta, "text": str(result.statement)}]


def _look(update: int, look: Look) -> Mapping[str, Cell]:
    return {
        "update": update,
        "rows": look.count,
        "lower_now": look.now[0],
        "upper_now": look.now[1],
        "lower": look.lower,
        "upper": look.upper,
        "status": look.status.name,
        "batch": look.label,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value
