"""The picture of a sensitivity study: the interval against each assumption, what was declared, and where a decision flips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bounds.findings import Curve, Flip, FlipOutcome, Parameter
from ..problem.statements import Status
from ..validation import FloatArray
from .plots import BLACK, BLUE, GREY, PINK, VERMILION, new_figure, panel_grid, shared_legend, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Hatches, dashes and markers say in grey what the colors say.
BAND, DECISION, EMPTY = BLUE, VERMILION, PINK
INTERVAL, DECLARED, THRESHOLD, FLIP = "interval", "declared", "threshold", "last value that supports value >= threshold"
REGIONS = (
    (Status.VACUOUS, GREY, "...", "VACUOUS: the whole range of values"),
    (Status.INCONSISTENT, EMPTY, "///", "INCONSISTENT: no function of the class fits"),
)
LABELS = {
    Parameter.NORM_BOUND: "bound on the norm of Q",
    Parameter.MISFIT: "largest distance between Q and the class",
    Parameter.DELTA: "failure probability",
    Parameter.DISCOUNT: "discount",
    Parameter.REWARD_RANGE: "length of the range of rewards, declared = 1",
    Parameter.MISFIT_NORM: "bound on the norm of what the features miss",
}


def sensitivity_figure(curves: Sequence[Curve], flips: Sequence[Flip] = (), threshold: float | None = None) -> Figure:
    """A panel per curve: the band of intervals, hatched where it is vacuous or there is none; wider to the right."""
    down, across = panel_grid(curves, columns=2)
    figure = new_figure(max(6.0, 4.6 * across), 0.9 + 3.1 * down)
    panels: Any = figure.subplots(down, across, squeeze=False)
    wanted = threshold if threshold is not None or not flips else flips[0].threshold
    for axes, curve in zip(panels.flat, curves, strict=False):
        flip = next((flip for flip in flips if flip.parameter is curve.parameter), None)
        draw_curve(axes, curve, flip, wanted)
    for axes in panels.flat[len(curves) :]:
        axes.set_axis_off()
    first = curves[0]
    varied = ", but where delta is varied" if any(curve.parameter is Parameter.DELTA for curve in curves) else ""
    what = f"Radius {first.radius}, {first.guarantee.value}; {100 * (1 - first.delta):g}% confidence{varied}"
    figure.suptitle(what, fontsize=9, color=GREY, x=0.01, ha="left")
    shared_legend(figure, "outside lower center", 1 + across)
    return figure


@dataclass(frozen=True)
class _Scale:
    """Where values stand on the axis: a logarithm of the value (0 a step left of the rest), or of the effective horizon."""

    zero: float
    horizon: bool

    def __call__(self, values: Sequence[float]) -> FloatArray:
        x = np.asarray(values, dtype=np.float64)
        return np.asarray(1 / (1 - x)) if self.horizon else np.where(x == 0, self.zero, x)


def draw_curve(axes: Any, curve: Curve, flip: Flip | None = None, threshold: float | None = None) -> None:
    """One panel."""
    horizon = curve.parameter is Parameter.DISCOUNT and max(curve.values) < 1
    scale = _Scale(0.4 * min((value for value in curve.values if value > 0), default=1.0), horizon)
    x, size = scale(curve.values), _normalizer(curve)
    lower, upper = np.array(curve.lower) * size, np.array(curve.upper) * size
    if curve.parameter is not Parameter.DISCOUNT or scale.horizon:
        axes.set_xscale("log")
    if len(x) > 1:
        axes.fill_between(x, lower, upper, color=BAND, alpha=0.25, linewidth=0)
    axes.vlines(x, lower, upper, color=BAND, linewidth=1, alpha=0.35)
    for ends in (lower, upper):
        axes.plot(x, ends, color=BAND, linewidth=1.4, marker="o", markersize=2.5, label=INTERVAL)
    _hatch(axes, curve, x)
    if curve.baseline is not None:
        axes.axvline(scale([curve.baseline])[0], color=BLACK, linewidth=1, linestyle=":", label=DECLARED, zorder=1)
    if threshold is not None and curve.parameter is not Parameter.DISCOUNT:  # another discount is another question
        axes.axhline(threshold, color=DECISION, linewidth=1.2, linestyle=(0, (5, 2)), label=THRESHOLD, zorder=1)
    if flip is not None:
        axes.set_title(_verdict(flip), loc="right", fontsize=8.5, color=DECISION, pad=4)
        if flip.value is not None and flip.beyond is not None and curve.values[0] <= flip.value <= curve.values[-1]:
            axes.plot(
                scale([flip.value]), [flip.threshold], color=DECISION, marker="D", markersize=6, markeredgecolor="white",
                linestyle="none", label=FLIP, zorder=5,
            )  # fmt: skip
    _decorate(axes, curve, scale, x)


def _verdict(flip: Flip) -> str:
    """The flip point in a few words."""
    decision = f"value >= {flip.threshold:g}"
    if flip.outcome is FlipOutcome.FLIPS:
        return f"{decision} {'down' if flip.parameter is Parameter.DELTA else 'up'} to {flip.value:.3g}"
    return f"{decision} at every value" if flip.outcome is FlipOutcome.ALWAYS else f"{decision} at no value"


def _hatch(axes: Any, curve: Curve, x: FloatArray) -> None:
    """Mark where the interval says nothing, up to half way to the neighbors that say something."""
    steps = np.sqrt(x[:-1] * x[1:]) if x.min() > 0 else 0.5 * (x[:-1] + x[1:])
    edges = np.concatenate([x[:1], steps, x[-1:]])
    for status, color, hatch, label in REGIONS:
        for k, reached in enumerate(curve.statuses):
            if reached is status:
                axes.axvspan(
                    edges[k], edges[k + 1], facecolor="none", edgecolor=color, hatch=hatch, linewidth=0, label=label, zorder=0
                )


def _decorate(axes: Any, curve: Curve, scale: _Scale, x: FloatArray) -> None:
    axes.set_title(curve.parameter.value.replace("_", " "), loc="left", fontsize=10, fontweight="bold", pad=4)
    axes.set_xlabel("effective horizon 1 / (1 - discount)" if scale.horizon else LABELS[curve.parameter], fontsize=8)
    scaled = bool((_normalizer(curve) != 1).any())
    axes.set_ylabel("value x (1 - discount)" if scaled else "value of the policy", fontsize=8)
    if axes.get_xscale() == "log":
        _log_ticks(axes, x, zero=curve.values[0] == 0 and not scale.horizon)
    if curve.parameter is Parameter.DELTA:
        axes.invert_xaxis()  # wider to the right, as everywhere
    axes.margins(x=0.02)
    tidy(axes, labelsize=7.5)


def _log_ticks(axes: Any, x: FloatArray, *, zero: bool) -> None:
    """Round numbers, few enough to be read: 1, 2, 5 per decade where there are few decades, powers of ten elsewhere."""
    ticks, names = ([float(x[0])], ["0"]) if zero else ([], [])
    above = x[len(ticks) :]
    if len(above):
        low, high = math.log10(above.min()), math.log10(above.max())
        per_decade = (1, 2, 5) if high - low < 2 else (1, 3) if high - low < 3 else (1,)
        tried = (m * 10.0**k for k in range(math.floor(low), math.ceil(high) + 1) for m in per_decade)
        inside = [tick for tick in tried if 0.98 * above.min() <= tick <= 1.02 * above.max()] or [float(above[-1])]
        ticks, names = [*ticks, *inside], [*names, *(f"{tick:g}" for tick in inside)]
    axes.set_xticks(ticks, names)
    axes.minorticks_off()


def _normalizer(curve: Curve) -> FloatArray:
    """1, but 1 - discount where the discount moves the whole range of values."""
    values = np.asarray(curve.values)
    if curve.parameter is not Parameter.DISCOUNT or len(set(curve.allowed)) == 1 or (values == 1).any():
        return np.ones(len(values))
    return np.asarray(1 - values)
