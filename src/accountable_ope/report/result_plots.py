"""Every result as a picture on given axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from ..baselines.interval import BaselineInterval
from ..bounds.anderson_rubin import AndersonRubinInterval
from ..bounds.breakdown import Breakdown
from ..bounds.comparison import Comparison
from ..bounds.correction import Correction
from ..bounds.cross_fitted import CrossFittedInterval
from ..bounds.diagnosis import Diagnosis
from ..bounds.findings import Curve, Flip, LeastNorm, RowsNeeded
from ..bounds.half_class import HalfClass
from ..bounds.interval import SHOWN_ROWS, Interval
from ..bounds.logging_policy import LoggedValue
from ..bounds.looks import MonitorReport
from ..bounds.misfit_norms import MisfitNorms
from ..bounds.monitor import Monitor
from ..bounds.sandwich import SandwichInterval
from ..bounds.stream_monitor import StreamMonitor
from ..bounds.weighed import answer_of
from ..errors import InvalidInput
from ..io.display import AnyInterval, confidence
from ..problem.statements import Status
from ..verification.verify import Verification
from .comparison_plot import draw_comparison
from .interval_bars import CROSSED, REFUTED, IntervalBar, draw_bars, height_for
from .monitor_plot import draw_looks
from .plots import BLACK, BLUE, DASHES, GREEN, GREY, SKY, VERMILION, draw_witness, tidy
from .sensitivity_plot import LABELS, draw_curve

WIDTH = 7.5
PROBABILITIES = "recorded\nprobabilities"


@dataclass(frozen=True)
class Picture:
    """How large, in inches, and how it is drawn."""

    height: float
    draw: Callable[[Any], None]


@singledispatch
def picture_of(result: object, /) -> Picture:
    """What `plot` draws."""
    raise NotImplementedError(f"{type(result).__name__} has no picture.")


def _bars(bars: Sequence[IntervalBar], title: str, allowed: tuple[float, float] | None = None) -> Picture:
    return Picture(height_for(len(bars)), lambda axes: draw_bars(axes, bars, title, allowed))


def _bar(name: str, found: AnyInterval, dot: float | None = None, *, thin: bool = False, color: str | None = None) -> IntervalBar:
    nothing = CROSSED if found.lower > found.upper else REFUTED
    return IntervalBar(name, found.lower, found.upper, found.status, color, thin, dot, nothing)


@picture_of.register
def _(result: Interval, /) -> Picture:
    """What answers first on top, where that is by recorded probabilities; then the interval, and what stands beside it.

    That is made in passing only where rows are few enough.
    """
    bars, leading = [_bar(result.radius.name, result)], answer_of(result)
    if result.count <= SHOWN_ROWS:
        beside = result.companions()
        if beside.weighed is not None and not beside.leads:
            bars.append(_bar(PROBABILITIES, beside.weighed, thin=True))
        if beside.crossed is not None:
            bars.append(_bar("large-sample,\nnot proved", beside.crossed, beside.crossed.estimate, thin=True, color=SKY))
        if beside.logged is not None:
            bars.append(_bar("logged policy", beside.logged, beside.logged.shown_estimate, thin=True, color=BLACK))
    if isinstance(leading, BaselineInterval):
        bars = [_bar(PROBABILITIES, leading), replace(bars[0], name=f"{bars[0].name},\nof the class", thin=True), *bars[1:]]
    return _bars(bars, f"{result.estimand}, {confidence(result.delta)} confidence", result.ranges.value)


@picture_of.register
def _(result: LoggedValue, /) -> Picture:
    title = f"Value of the logging policy, {confidence(result.delta)} confidence"
    return _bars([_bar("betting on returns", result, result.shown_estimate)], title, result.return_range)


@picture_of.register(CrossFittedInterval)
@picture_of.register(SandwichInterval)
def _(result: CrossFittedInterval | SandwichInterval, /) -> Picture:
    name = "sandwich" if isinstance(result, SandwichInterval) else "cross-fitted"
    return _bars([_bar(name, result, result.estimate)], _asymptotic(result.delta))


@picture_of.register
def _(result: AndersonRubinInterval, /) -> Picture:
    return _bars([_bar("Anderson-Rubin", result)], _asymptotic(result.delta))


def _asymptotic(delta: float) -> str:
    return f"Value of the target policy, {confidence(delta)} confidence for many rows"


@picture_of.register
def _(result: BaselineInterval, /) -> Picture:
    return _bars([_bar(result.method, result)], f"{result.estimand}, {confidence(result.delta)} confidence", result.return_range)


@picture_of.register
def _(result: MonitorReport, /) -> Picture:
    now = IntervalBar("this look alone", result.interval.lower, result.interval.upper, result.interval.status, thin=True)
    title = f"Value of the target policy after {result.count:,} rows, {confidence(result.delta)} confidence"
    return _bars([_bar("all looks together", result), now], title, result.interval.ranges.value)


@picture_of.register(Monitor)
@picture_of.register(StreamMonitor)
def _(result: Monitor | StreamMonitor, /) -> Picture:
    if not result.history:
        raise InvalidInput("There is nothing to draw: the monitor has no looks.")

    def draw(axes: Any) -> None:
        draw_looks(axes, result.history)
        axes.legend(fontsize=8, frameon=False)

    return Picture(4.4, draw)


@picture_of.register
def _(result: Comparison, /) -> Picture:
    return Picture(height_for(len(result.contenders)), lambda axes: draw_comparison(axes, result))


@picture_of.register
def _(result: Diagnosis, /) -> Picture:
    return Picture(6.0, lambda axes: draw_witness(axes, result))


@picture_of.register
def _(result: Correction, /) -> Picture:
    bars = (IntervalBar("interval around\nthe estimate", result.interval.lower, result.interval.upper, result.interval.status),)

    def draw(axes: Any) -> None:
        draw_bars(axes, bars, f"{result.status.name}: value by the estimate, and corrected")
        for name, value, color in (("estimate", result.estimate_before, VERMILION), ("corrected", result.estimate_after, GREEN)):
            axes.axvline(value, color=color, linestyle=DASHES, linewidth=1.4)
            label = f"{name} {value:.4g}"
            axes.annotate(label, (value, 0.55), xytext=(4, 0), textcoords="offset points", color=color, fontsize=8, va="bottom")

    return Picture(2.2, draw)


@picture_of.register
def _(result: Curve, /) -> Picture:
    return Picture(4.0, lambda axes: _curve(axes, result, None))


@picture_of.register
def _(result: MisfitNorms, /) -> Picture:
    return Picture(4.0, lambda axes: _curve(axes, result.curve, result.flip))


def _curve(axes: Any, curve: Curve, flip: Flip | None) -> None:
    draw_curve(axes, curve, flip, None if flip is None else flip.threshold)
    names = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))  # each name once
    axes.legend(names.values(), names.keys(), fontsize=8, framealpha=0.85, edgecolor="none")


@picture_of.register
def _(result: Flip, /) -> Picture:
    """The parameter on a line: where the decision is supported, and where not."""

    def draw(axes: Any) -> None:
        if result.value is not None:
            axes.plot([result.value], [0], "o", color=GREEN, label=f"supported to {result.value:.4g}")
        if result.beyond is not None:
            axes.plot([result.beyond], [0], "X", color=VERMILION, label=f"not at {result.beyond:.4g}")
        if all(each is None or each > 0 for each in (result.value, result.beyond, result.baseline)):
            axes.set_xscale("log")
        _line(axes, result.baseline, LABELS[result.parameter])
        axes.set_title(f"value >= {result.threshold:g}: {result.outcome.name}", loc="left", fontsize=11)

    return Picture(1.8, draw)


@picture_of.register
def _(result: LeastNorm, /) -> Picture:
    """The norm on a line: refuted from 0 on, up to the least one."""

    def draw(axes: Any) -> None:
        axes.plot(
            [0, result.value], [0, 0], color=VERMILION, linewidth=5, solid_capstyle="butt", label=f"refuted to {result.value:.4g}"
        )
        if result.consistent is not None:
            axes.plot([result.consistent], [0], "o", color=GREEN, label=f"not refuted at {result.consistent:.4g}")
        _line(axes, None, LABELS[result.parameter])
        axes.set_title(f"What the norm exceeds, {confidence(result.delta)} confidence", loc="left", fontsize=11)

    return Picture(1.8, draw)


def _line(axes: Any, declared: float | None, label: str) -> None:
    if declared is not None:
        axes.axvline(declared, color=BLACK, linestyle=":", linewidth=1.2, label=f"declared {declared:.4g}")
    axes.set_yticks([])
    axes.set_xlabel(label)
    tidy(axes)
    axes.spines["left"].set_visible(False)
    axes.legend(fontsize=8, frameon=False, ncols=3)


@picture_of.register
def _(result: RowsNeeded, /) -> Picture:
    """Widths against the number of rows, on logarithms; what is wanted dashed, and what no rows take away."""

    def draw(axes: Any) -> None:
        for status, color in ((Status.OK, BLUE), (Status.VACUOUS, GREY)):
            own = [each for each in result.points if each.status is status and math.isfinite(each.width)]
            if own:
                rows, widths = [each.rows for each in own], [each.width for each in own]
                axes.plot(rows, widths, "o-", color=color, label=f"from the first rows ({status.name})")
        axes.axhline(result.width, color=VERMILION, linestyle=DASHES, linewidth=1.2, label=f"wanted: {result.width:g}")
        for number, word in ((result.rows, "extrapolated"), (result.slower, "if it falls slower")):
            if number is not None:
                axes.plot(
                    [number], [result.width], "D", color=VERMILION, markerfacecolor="white", label=f"{word}: {number:,} rows"
                )
        if result.floor > 0:
            axes.axhline(result.floor, color=BLACK, linestyle=":", linewidth=1.2, label=f"floor: {result.floor:.3g}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rows")
        axes.set_ylabel("width")
        axes.set_title(result.outcome.name, loc="left", fontsize=11)
        tidy(axes)
        axes.legend(fontsize=8, frameon=False)

    return Picture(4.0, draw)


@picture_of.register
def _(result: Breakdown, /) -> Picture:
    bars = [IntervalBar("as it is", result.lower, result.upper)]
    bars += [IntervalBar(f"without {each.name}", each.lower, each.upper, each.status, thin=True) for each in result.parts]
    bars += [IntervalBar(f"declared {each.name}", each.lower, each.upper, each.status, thin=True) for each in result.remedies]
    return _bars(bars, f"What the width {result.width:.4g} is made of; each change alone")


@picture_of.register
def _(result: HalfClass, /) -> Picture:
    low, high = result.declared
    half = IntervalBar(f"{result.features} features", result.lower, result.upper, result.status, thin=True)
    return _bars([IntervalBar(f"{result.of} features", low, high), half], "The interval, and with every other feature")


@picture_of.register
def _(result: Verification, /) -> Picture:
    title = "Proved" if result.valid else "NOT proved"
    return _bars([IntervalBar("certificate", result.lower, result.upper, nothing="no interval")], title)
