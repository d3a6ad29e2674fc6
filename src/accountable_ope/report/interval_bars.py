"""Intervals as bars, one below the other: what pictures of a comparison, a bound and a breakdown share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..problem.statements import Status
from .plots import BLACK, BLUE, GREY, LINES, ORANGE, tidy

REFUTED = "no function of the class fits"
COLORS = {Status.OK: BLUE, Status.DOUBTED: ORANGE, Status.VACUOUS: GREY, Status.INCONSISTENT: BLACK}


@dataclass(frozen=True)
class IntervalBar:
    """One interval; thin where it is a companion, not what was asked for; dot: an estimate; nothing: why there is none."""

    name: str
    lower: float
    upper: float
    status: Status = Status.OK
    color: str | None = None
    thin: bool = False
    dot: float | None = None
    nothing: str = REFUTED


def height_for(count: int) -> float:
    """Inches for so many bars."""
    return 1.2 + 0.5 * count


def draw_bars(axes: Any, bars: Sequence[IntervalBar], title: str, allowed: tuple[float, float] | None = None) -> None:
    """The first on top; doubted ones in another color, those without an interval in words; allowed: the possible values."""
    for place, bar in enumerate(bars):
        if math.isnan(bar.lower):
            axes.annotate(bar.nothing, (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center")
            continue
        color = bar.color or COLORS[bar.status]
        width = 2.5 if bar.thin else 5
        axes.plot([bar.lower, bar.upper], [place, place], color=color, linewidth=width, solid_capstyle="butt")
        said = "" if bar.status is Status.OK else f" ({bar.status.name})"
        middle = 0.5 * (bar.lower + bar.upper)
        label = f"{bar.lower:.4g} to {bar.upper:.4g}{said}"
        axes.annotate(label, (middle, place), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8)
        if bar.dot is not None and math.isfinite(bar.dot):
            axes.plot([bar.dot], [place], "o", color="white", markeredgecolor=color, markersize=6, zorder=4)
    for end in allowed or ():
        axes.axvline(end, color=LINES, linewidth=1, zorder=0)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.set_ylim(len(bars) - 0.4, -0.7)
    axes.set_xlabel("value")
    axes.set_title(title, loc="left", fontsize=11)
    tidy(axes)
