"""The picture of a monitor: the running interval against the number of rows, and the interval of every look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..bounds.looks import Look, first_decision
from ..errors import InvalidInput
from ..problem.statements import Status
from .plots import BLACK, BLUE, DASHES, VERMILION, new_figure, shared_legend, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def monitor_figure(looks: Sequence[Look], *, threshold: float | None = None, truth: float | None = None) -> Figure:
    """Shaded: what all looks so far have in common. Dots: each look alone. With a threshold: when the decision was certain."""
    figure = new_figure(8.0, 4.4)
    draw_looks(figure.subplots(), looks, threshold=threshold, truth=truth)
    shared_legend(figure, "outside upper left", 3, fontsize=9)
    return figure


def draw_looks(axes: Any, looks: Sequence[Look], *, threshold: float | None = None, truth: float | None = None) -> None:
    """The same on given axes, without a legend."""
    if not looks:
        raise InvalidInput("There is nothing to draw: the monitor has no looks.")
    end = 1.03 * looks[-1].count
    _draw_running(axes, [look for look in looks if look.status is not Status.INCONSISTENT], looks, end)
    _draw_looks(axes, [look for look in looks if look.status_now is not Status.INCONSISTENT])
    if threshold is not None:
        _draw_threshold(axes, looks, threshold)
    if truth is not None:
        axes.axhline(truth, color=BLACK, linestyle=":", linewidth=1.3, label="true value")
    axes.set_xlim(0, end)
    axes.set_xlabel("rows so far")
    axes.set_ylabel("value of the target policy")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    tidy(axes)


def _draw_running(axes: Any, kept: Sequence[Look], looks: Sequence[Look], end: float) -> None:
    """What is known stays known until the next look, and after the last one; a refuted class knows nothing."""
    refuted = looks[len(kept)].count if len(kept) < len(looks) else None
    if kept:
        counts = [*(look.count for look in kept), end if refuted is None else refuted]
        lows, highs = [look.lower for look in (*kept, kept[-1])], [look.upper for look in (*kept, kept[-1])]
        axes.fill_between(counts, lows, highs, step="post", color=BLUE, alpha=0.18, linewidth=0, label="running interval")
        for ends in (lows, highs):
            axes.step(counts, ends, where="post", color=BLUE, linewidth=1.8, zorder=3)
    if refuted is not None:
        axes.axvline(refuted, color=BLACK, linewidth=1.5, label=f"class refuted: {refuted:,} rows")


def _draw_looks(axes: Any, shown: Sequence[Look]) -> None:
    """Both ends of the interval of every look alone: they may lie outside the running interval."""
    if shown:
        axes.plot(
            [look.count for look in shown for _ in look.now], [end for look in shown for end in look.now], "o", color=BLUE,
            markersize=4, markerfacecolor="white", markeredgewidth=0.9, zorder=4, label="ends of each look alone",
        )  # fmt: skip


def _draw_threshold(axes: Any, looks: Sequence[Look], threshold: float) -> None:
    axes.axhline(threshold, color=VERMILION, linestyle=DASHES, linewidth=1.2, label=f"threshold {threshold:g}")
    decision = first_decision(looks, threshold)
    if decision is None:
        return
    side = "at least" if decision.at_least else "below"
    end = decision.look.lower if decision.at_least else decision.look.upper
    label = f"certainly {side} {threshold:g}: {decision.look.count:,} rows"
    axes.plot([decision.look.count], [end], "o", color=VERMILION, markersize=8, zorder=5, label=label)
