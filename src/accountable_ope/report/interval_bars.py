"""Intervals as bars, one below the other: what pictures of a comparison, a bound and a breakdown share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..io.display import shortened
from ..problem.statements import Status
from .plots import BLACK, BLUE, GREY, LINES, ORANGE, tidy

REFUTED = "no function of the class fits"
CROSSED = "the ends cross: no value follows"
LETTER, TITLE = 0.08, 0.09
"""Inches of a letter of a name, and of one of the title, about."""
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


def wrapped(title: str, axes: Any, names: Sequence[str]) -> str:
    """A title in as many lines as fit between the names and the edge of the picture, or of its part of one."""
    columns = axes.get_subplotspec().get_gridspec().ncols if axes.get_subplotspec() is not None else 1
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    room = axes.figure.bbox.width / axes.figure.dpi / columns - LETTER * longest - 0.3
    return textwrap.fill(title, max(12, int(room / TITLE)))


def height_for(count: int) -> float:
    """Inches for so many bars."""
    return 1.2 + 0.5 * count


def draw_bars(axes: Any, bars: Sequence[IntervalBar], title: str, allowed: tuple[float, float] | None = None) -> None:
    """The first on top; doubted ones in another color, those without an interval in words; allowed: the possible values."""
    for place, bar in enumerate(bars):
        if not bar.lower <= bar.upper:
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
    names = ["\n".join(map(shortened, bar.name.split("\n"))) for bar in bars]
    if len(set(names)) < len(names):  # what tells them apart was in the middle
        names = [f"{number}: {name}" for number, name in enumerate(names, start=1)]
    axes.set_yticks(range(len(bars)), names)
    axes.set_ylim(len(bars) - 0.4, -0.7)
    axes.set_xlabel("value")
    axes.margins(x=0.1)  # ends are written above short bars, too
    axes.set_title(wrapped(title, axes, names), loc="left", fontsize=11)
    tidy(axes)
