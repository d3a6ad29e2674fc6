"""The picture of a coverage run: fraction covered and width against n, a pair of panels per family, a line per method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from ..laboratory.summary import Coverage
from .plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3

# Okabe and Ito's colors, then some of Tol's, which differ for the color-blind too; marker and dash tell lines apart in grey.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#000000", "X", "-."),
    ("#999999", "<", ":"),
    ("#882255", ">", "-"),
    ("#44AA99", "h", "--"),
    ("#999933", "*", "-."),
)

GREY = "#555555"


def coverage_figure(rows: Sequence[Coverage]) -> Figure:
    """Above: fraction covered with its Clopper-Pearson interval, the claimed level dashed. Below: mean normalized width."""
    if not rows:
        raise InvalidInput("There is nothing to draw: the summary has no rows.")
    if len({row.delta for row in rows}) > 1:
        raise InvalidInput("A picture is of one delta. Got rows of several.")
    families = list(dict.fromkeys(row.family for row in rows))
    methods = list(dict.fromkeys(row.method for row in rows))
    across = min(COLUMNS, len(families))
    down = math.ceil(len(families) / across)
    figure = new_figure(max(5.0, 3.1 * across), 0.7 + 2.5 * down)
    axes: Any = figure.subplots(2 * down, across, squeeze=False, sharex=True)

    widths = [row.width for row in rows if row.width > 0]
    narrowest = 10 ** math.floor(math.log10(min(widths))) if widths else 0.1
    for place in range(across * down):
        line, column = divmod(place, across)
        above, below = axes[2 * line, column], axes[2 * line + 1, column]
        if place >= len(families):
            above.set_axis_off()
            below.set_axis_off()
            continue
        own = [row for row in rows if row.family == families[place]]
        _draw_coverage(above, own, methods)
        _draw_width(below, own, methods, narrowest)
        above.set_title(families[place], loc="left", fontsize=9, fontweight="bold", pad=3)
        above.set_title(own[0].data_kind, loc="right", fontsize=8, color=GREY, pad=3)
        if column == 0:
            above.set_ylabel("covered", fontsize=8)
            below.set_ylabel("width", fontsize=8)
        above.tick_params(labelbottom=False)
        below.tick_params(labelbottom=True)
    sizes = sorted({row.n for row in rows})
    axes[0, 0].set_xticks(sizes, [_short(n) for n in sizes])  # shared by all panels
    axes[0, 0].set_xlim(sizes[0] / 1.35, sizes[-1] * 1.35)
    figure.supxlabel("transitions n", fontsize=8)
    _add_legend(figure, axes, [*methods, _claim(rows[0].delta)], 2 * across)
    return figure


def _add_legend(figure: Figure, axes: Any, order: Sequence[str], columns: int) -> None:
    """One legend for all panels: a method may not apply to the first family."""
    known: dict[str, Any] = {}
    for one in axes[::2].flat:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    shown = [label for label in order if label in known]
    handles = [known[label] for label in shown]
    figure.legend(handles, shown, loc="outside upper center", ncols=min(len(shown), columns), fontsize=8, frameon=False)


def _short(n: int) -> str:
    """3000 as 3k: six sizes must fit below a small panel."""
    return f"{n // 1000}k" if n % 1000 == 0 else str(n)


def _claim(delta: float) -> str:
    return f"claimed, {1 - delta:g}"


def _draw_coverage(axes: Any, rows: Sequence[Coverage], methods: Sequence[str]) -> None:
    axes.axhline(1 - rows[0].delta, color=GREY, linestyle=(0, (4, 3)), linewidth=1, label=_claim(rows[0].delta), zorder=1)
    for index, method in enumerate(methods):
        own = sorted((row for row in rows if row.method == method), key=lambda row: row.n)
        if not own:
            continue
        color, marker, dash = STYLES[index % len(STYLES)]
        # Most lines lie on 1: a small shift keeps their bars apart.
        shift = 1.3 ** ((index + 0.5) / len(methods) - 0.5)
        heights = [row.fraction for row in own]
        bars = [[row.fraction - row.low for row in own], [row.high - row.fraction for row in own]]
        axes.errorbar(
            [shift * row.n for row in own], heights, yerr=bars, color=color, marker=marker, linestyle=dash, label=method,
            markersize=4, markerfacecolor="white", linewidth=1.1, elinewidth=0.8, capsize=1.5,
        )  # fmt: skip
    # Each family has its own scale: where one method fails badly, the others should not shrink to a line elsewhere.
    lowest = max(0.0, min(1 - 2 * rows[0].delta, 0.05 * math.floor(20 * min(row.low for row in rows) - 0.2)))
    axes.set_ylim(lowest, 1.0 + 0.06 * (1 - lowest))
    _tidy(axes)


def _draw_width(axes: Any, rows: Sequence[Coverage], methods: Sequence[str], narrowest: float) -> None:
    for index, method in enumerate(methods):
        own = sorted((row for row in rows if row.method == method and row.width > 0), key=lambda row: row.n)
        color, marker, dash = STYLES[index % len(STYLES)]
        axes.plot(
            [row.n for row in own], [row.width for row in own], color=color, marker=marker, linestyle=dash, markersize=4,
            markerfacecolor="white", linewidth=1.1,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(narrowest, 1.6)
    axes.yaxis.set_major_formatter("{x:g}")
    _tidy(axes)


def _tidy(axes: Any) -> None:
    axes.set_xscale("log")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.5)
    axes.tick_params(labelsize=7, length=2, which="major")
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
