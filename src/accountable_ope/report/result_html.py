"""Every result as a cell of a notebook: what it says first, then its numbers. Those that say more have a way of their own."""

from __future__ import annotations

import math
from functools import singledispatch

from ..bounds.breakdown import Breakdown
from ..bounds.comparison import Comparison
from ..bounds.decision import Ruling
from ..bounds.findings import Curve, Flip, LeastNorm, RowsNeeded
from ..bounds.half_class import HalfClass
from ..bounds.misfit_norms import MisfitNorms, least_misfit_text
from ..bounds.monitor import Monitor
from ..bounds.stream_monitor import StreamMonitor
from ..bounds.verdict import Verdict
from ..io.display import confidence, ends_text
from ..io.templates import Grid, result_table
from ..problem.statements import Status
from ..verification.verify import Verification
from .breakdown import breakdown_tables
from .sensitivity_plot import LABELS
from .watching import monitor_sentence

SHOWN_LOOKS = 20
"""The last ones; `to_frame` has all."""


@singledispatch
def html_of(result: object, /) -> str:
    """What `_repr_html_` gives."""
    raise NotImplementedError(f"{type(result).__name__} has no cell.")


def _ends(lower: float, upper: float) -> str:
    return "-" if not lower <= upper else ends_text(lower, upper)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


@html_of.register
def _(result: Comparison, /) -> str:
    policies = Grid(
        "",
        ("policy", "value", "status", "guarantee"),
        tuple(
            (each.name, _ends(each.lower, each.upper), each.status.name, each.answer.guarantee.value)
            for each in result.contenders
        ),
    )
    differences = Grid(
        "Differences, at the same time",
        ("first less second", "difference", "first is better"),
        tuple(
            (f"{each.first} - {each.second}", _ends(each.lower, each.upper), each.judgment.name) for each in result.differences
        ),
    )
    title = f"Comparison of {len(result.contenders)} policies, {confidence(result.delta)} confidence together"
    doubts = [f"{each.name}: {doubt}" for each in result.contenders for doubt in each.answer.doubts]
    premises = list(dict.fromkeys(str(premise) for each in result.contenders for premise in each.answer.premises))
    grids = (policies, differences) if result.differences else (policies,)
    notes = (*map(str, result.statements), *doubts)
    return result_table(title, (), premises, notes=notes, lead=(result.verdict,), grids=grids)


@html_of.register(Monitor)
@html_of.register(StreamMonitor)
def _(result: Monitor | StreamMonitor, /) -> str:
    looks = list(enumerate(result.history, start=1))
    left_out = len(looks) - SHOWN_LOOKS
    grid = Grid(
        f"The first {left_out} updates are not shown." if left_out > 0 else "",
        ("update", "rows", "now", "running", "status"),
        tuple(
            (str(update), f"{look.count:,}", _ends(*look.now), _ends(look.lower, look.upper), look.status.name)
            for update, look in looks[-SHOWN_LOOKS:]
        ),
    )
    title = f"Monitor, {confidence(result.delta)} confidence at all times together"
    rows = (("radius", result.radius), ("rows so far", f"{len(result):,}"), ("planned", f"{result.planned:,}"))
    status = looks[-1][1].status if looks else None
    return result_table(
        title,
        rows,
        status="" if status is None else status.name,
        advice="" if status in (None, Status.OK) else str(status.value),
        lead=(monitor_sentence(result),),
        grids=(grid,) if looks else (),
    )


@html_of.register
def _(result: Curve, /) -> str:
    return _curve(result, (_curve_sentence(result),))


@html_of.register
def _(result: MisfitNorms, /) -> str:
    return _curve(result.curve, tuple(map(str, result.statements)))


def _curve(curve: Curve, lead: tuple[str, ...]) -> str:
    rows = tuple(
        (f"{each.value:.4g}{' (declared)' if each.baseline else ''}", _ends(each.lower, each.upper), each.status.name)
        for each in curve.rows()
    )
    grid = Grid("", (LABELS[curve.parameter], "interval", "status"), rows)
    title = f"The interval over {curve.parameter.value.replace('_', ' ')}"
    facts = (("radius", curve.radius), ("guarantee", curve.guarantee.value), ("confidence", confidence(curve.delta)))
    return result_table(title, facts, curve.premises, lead=lead, grids=(grid,))


def _curve_sentence(curve: Curve) -> str:
    """How much of the curve says something, and how far its ends go."""
    saying = [each for each in curve.rows() if each.status in (Status.OK, Status.DOUBTED)]
    if not saying:
        return f"None of the {len(curve.values)} values of {LABELS[curve.parameter]} gives an interval that says anything."
    lows, highs = [each.lower for each in saying], [each.upper for each in saying]
    return (
        f"{len(saying)} of {len(curve.values)} values of {LABELS[curve.parameter]} give an interval that says something; "
        f"lower ends from {min(lows):.4g} to {max(lows):.4g}, upper ends from {min(highs):.4g} to {max(highs):.4g}."
    )


@html_of.register
def _(result: Flip, /) -> str:
    supported = "is supported" if result.baseline_supports else "is not supported"
    rows = (
        ("assumption", LABELS[result.parameter]),
        ("declared", _number(result.baseline)),
        ("supported to", _number(result.value)),
        ("lower end there", _number(result.lower)),
        ("not at", _number(result.beyond)),
        ("radius", f"{result.radius}, {confidence(result.delta)} confidence"),
    )
    lead = (f"value >= {result.threshold:g} {supported} at what was declared.", result.outcome.value)
    return result_table("Where a decision flips", rows, result.premises, status=result.outcome.name, lead=lead)


@html_of.register
def _(result: LeastNorm, /) -> str:
    rows = (("above", _number(result.value)), ("not refuted at", _number(result.consistent)), ("radius", result.radius))
    title = f"Least {result.parameter.value.replace('_', ' ')}, {confidence(result.delta)} confidence"
    return result_table(title, rows, result.premises, lead=(least_text(result),))


@html_of.register
def _(result: RowsNeeded, /) -> str:
    about = () if result.rows is None else (("rows, extrapolated", f"{result.rows:,}"),)
    slower = () if result.slower is None else (("if the width falls slower", f"{result.slower:,}"),)
    rows = (("wanted width", _number(result.width)), *about, *slower, ("no rows take away", _number(result.floor)))
    points = tuple(
        (f"{each.rows:,}", "-" if math.isnan(each.width) else f"{each.width:.4g}", each.status.name) for each in result.points
    )
    grid = Grid("Widths from the first rows", ("rows", "width", "status"), points)
    return result_table("Rows for a width", rows, status=result.outcome.name, lead=(result.outcome.value,), grids=(grid,))


@html_of.register
def _(result: Breakdown, /) -> str:
    said = tuple(map(str, result.statements))
    lead = said[:1] or (f"The width {result.width:.4g} in parts.",)
    grids = [Grid(each.title, each.header, each.rows) for each in breakdown_tables(result)]
    rows = (("interval", _ends(result.lower, result.upper)),)
    return result_table("What the width is made of, and what would narrow it", rows, notes=said[1:], lead=lead, grids=grids)


@html_of.register
def _(result: HalfClass, /) -> str:
    rows = (
        (f"with {result.of} features", _ends(*result.declared)),
        (f"with {result.features} features", _ends(result.lower, result.upper)),
    )
    return result_table("Half of the class", rows, status=result.status.name, lead=(str(result.statement),))


@html_of.register
def _(result: Verification, /) -> str:
    status = "OK" if result.valid else "REJECTED"
    rows = (("proved interval", _ends(result.lower, result.upper)), ("classes", str(len(result.classes))))
    doubts = tuple(map(str, result.doubts))
    return result_table("Certificate", rows, result.premises, status=status, notes=doubts, lead=(result.message,))


@html_of.register
def _(result: Verdict, /) -> str:
    notes = [str(each) for each in (result.wanted, result.decision) if each is not None]
    lead = (result.sentence, result.second_line)
    return result_table("Verdict", (), advice=str(result.advice), notes=notes, lead=lead)


@html_of.register
def _(result: Ruling, /) -> str:
    rows = (("claim", result.claim), ("confidence", confidence(result.delta)))
    return result_table("Decision", rows, status=result.judgment.name, lead=(str(result.statement),))


def least_text(least: LeastNorm) -> str:
    """What the data say of a norm."""
    if least.parameter.value == "misfit_norm":
        return least_misfit_text(least)
    if least.consistent is None:
        return "The data refute the class whatever the norm of Q."
    if least.value == 0:
        return "A constant Q is consistent with the data: they say nothing about its norm."
    return (
        f"The norm of Q is above {least.value:.3g} with {100 * (1 - least.delta):g}% confidence: smaller bounds are refuted. An "
        "upper bound cannot be learned from data."
    )
