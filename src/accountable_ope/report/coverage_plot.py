"""The picture of a coverage run: fraction covered against width, a panel per group of families, a color per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..laboratory.families import GROUPS, OTHERS, group_title
from ..laboratory.methods import in_order
from ..laboratory.summary import Coverage
from .plots import DASHES, GREY, PALETTE, new_figure, panel_grid, shared_legend, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Style(NamedTuple):
    """The marker tells methods apart in grey."""

    color: str
    marker: str


STYLES = tuple(Style(color, marker) for color, marker in zip(PALETTE, "os^DvPX<>h*", strict=True))
COLUMNS = 3
"""Panels side by side, where there is one delta; with several, each has a line of panels."""

CLAIMED, WHOLE, REFUTED = "claimed", "hollow: most intervals are the whole range", "refuted"
APART = 0.025
"""Where all intervals covered, dots of one method lie so much above those of the next: else they would hide each other."""


def coverage_figure(rows: Sequence[Coverage]) -> Figure:
    """Up: fraction covered, the claimed one dashed, with its Clopper-Pearson interval. To the left: narrower, on average.

    A dot is a family at one n, larger for larger n. The family that is farthest below the dashed line has its name there, unless
    chance explains it.
    """
    titles = [
        title for title in (*(group.title for group in GROUPS), OTHERS) if title in {group_title(row.family) for row in rows}
    ]
    deltas = sorted({row.delta for row in rows})
    panels = [(delta, title) for delta in deltas for title in titles]
    down, across = panel_grid(panels, columns=COLUMNS if len(deltas) == 1 else len(titles))
    figure = new_figure(max(5.5, (3.0 if across <= COLUMNS else 2.2) * across), 0.8 + 2.4 * down)
    axes: Any = figure.subplots(down, across, squeeze=False, sharex=True, sharey="row" if len(deltas) > 1 else True)
    methods = in_order(row.method for row in rows)
    sizes = sorted({row.n for row in rows})
    for place in range(down * across):
        line, column = divmod(place, across)
        panel = axes[line, column]
        delta, title = panels[min(place, len(panels) - 1)]
        own = [row for row in rows if row.delta == delta and group_title(row.family) == title]
        if place >= len(panels) or not own:
            panel.set_axis_off()
            continue
        _draw_panel(panel, own, methods, sizes)
        panel.set_title(title if len(deltas) == 1 or line == 0 else "", loc="left", fontsize=9, fontweight="bold", pad=4)
        if column == 0:
            panel.set_ylabel(f"covered ({1 - delta:g} claimed)", fontsize=9)
        panel.tick_params(labelbottom=place + across >= len(panels))  # above a place without a panel too
        lowest = min(row.low for row in rows if row.delta == delta)
        panel.set_ylim(max(-0.05, lowest - 0.07), 1 + APART * len(methods))
    widths = [row.width for row in rows if row.width > 0]
    first = axes[0, 0]
    first.set_xscale("log")
    first.set_xlim(0.7 * min(widths, default=0.5), 1.5)
    first.xaxis.set_major_formatter("{x:g}")
    larger = f"; larger dots: larger n, from {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"; n = {sizes[0]}"
    figure.supxlabel(f"mean normalized width (1: the range of rewards){larger}", fontsize=9)
    shared_legend(figure, "outside upper center", 8, order=[*methods, CLAIMED, WHOLE, REFUTED], fontsize=9)
    return figure


def _draw_panel(axes: Any, rows: Sequence[Coverage], methods: Sequence[str], sizes: Sequence[int]) -> None:
    tidy(axes, labelsize=8)
    claimed = 1 - rows[0].delta
    axes.axhline(claimed, color=GREY, linestyle=DASHES, linewidth=1.2, label=CLAIMED, zorder=1)
    drawn = [row for row in rows if row.width > 0]
    for index, method in enumerate(methods):
        style, lane = STYLES[index % len(STYLES)], APART * (len(methods) - 1 - index)
        own = [row for row in drawn if row.method == method]
        for row in own:
            _draw_dot(axes, row, lane if row.covered == row.trials else 0.0, style, 14 + 10 * sizes.index(row.n))
        if own:
            axes.scatter([], [], s=30, label=method, color=style.color, marker=style.marker)
    low = [row for row in drawn if row.high < claimed]
    if low:
        least = min(low, key=lambda row: row.fraction)
        beside = "left" if least.width < 0.03 else "right"  # towards the middle
        below = least.fraction > 0.1  # else it would lie on the axis
        axes.annotate(
            least.family, (least.width, least.fraction), xytext=(-4 if beside == "left" else 4, -8 if below else 8),
            textcoords="offset points", fontsize=8, color=GREY, ha=beside, va="top" if below else "bottom",
        ).set_in_layout(False)  # fmt: skip


def _draw_dot(axes: Any, row: Coverage, shift: float, style: Style, size: float) -> None:
    whole = row.vacuous > 0.5
    axes.vlines(row.width, row.low + shift, row.high + shift, color=style.color, linewidth=0.8, alpha=0.25, zorder=2)
    axes.scatter(
        row.width, row.fraction + shift, s=size, marker=style.marker, linewidths=0.8, alpha=0.75, zorder=3,
        edgecolors=style.color if whole else "white", facecolors="white" if whole else style.color,
    )  # fmt: skip
    if row.refuted:
        axes.scatter(row.width, row.fraction + shift, s=80, marker="x", color="black", linewidths=1.5, zorder=4, label=REFUTED)
    if whole:
        axes.scatter([], [], s=30, facecolors="white", edgecolors=GREY, label=WHOLE)
