"""The picture of a coverage run: fraction covered and width against n, a pair of panels per family, a line per method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from ..laboratory.summary import Coverage
from .plots import DASHES, GREY, PALETTE, new_figure, panel_grid, shared_legend, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Marker and dash tell lines apart in grey.
DASH = ("-", "--", "-.", ":")
STYLES = tuple(
    {"color": color, "marker": marker, "linestyle": DASH[k % 4], "markersize": 4, "markerfacecolor": "white", "linewidth": 1.1}
    for k, (color, marker) in enumerate(zip(PALETTE, "os^DvPX<>h*", strict=True))
)


def coverage_figure(rows: Sequence[Coverage]) -> Figure:
    """Above: fraction covered with its Clopper-Pearson interval, the claimed level dashed. Below: mean normalized width."""
    families = list(dict.fromkeys(row.family for row in rows))
    down, across = panel_grid(families, columns=3)
    if len({row.delta for row in rows}) > 1:
        raise InvalidInput("A picture is of one delta. Got rows of several.")
    methods = list(dict.fromkeys(row.method for row in rows))
    figure = new_figure(max(5.0, 3.1 * across), 0.7 + 2.5 * down)
    axes: Any = figure.subplots(2 * down, across, squeeze=False, sharex=True)

    widths = [row.width for row in rows if row.width > 0]
    narrowest = 10 ** math.floor(math.log10(min(widths))) if widths else 0.1
    claim = f"claimed, {1 - rows[0].delta:g}"
    for place in range(across * down):
        line, column = divmod(place, across)
        above, below = axes[2 * line, column], axes[2 * line + 1, column]
        if place >= len(families):
            above.set_axis_off()
            below.set_axis_off()
            continue
        panel_rows = [row for row in rows if row.family == families[place]]
        _draw_coverage(above, panel_rows, methods, claim)
        _draw_width(below, panel_rows, methods, narrowest)
        above.set_title(families[place], loc="left", fontsize=9, fontweight="bold", pad=3)
        above.set_title(panel_rows[0].data_kind, loc="right", fontsize=8, color=GREY, pad=3)
        for panel, name in ((above, "covered"), (below, "width")):
            panel.set_xscale("log")
            tidy(panel, labelsize=7)
            panel.minorticks_off()
            panel.set_ylabel(name if column == 0 else "", fontsize=8)
            panel.tick_params(labelbottom=panel is below)
    sizes = sorted({row.n for row in rows})
    # Shared by all panels; 3000 as 3k: six sizes must fit below a small panel.
    axes[0, 0].set_xticks(sizes, [f"{n // 1000}k" if n % 1000 == 0 else str(n) for n in sizes])
    axes[0, 0].set_xlim(sizes[0] / 1.35, sizes[-1] * 1.35)
    figure.supxlabel("transitions n", fontsize=8)
    shared_legend(figure, "outside upper center", 2 * across, order=[*methods, claim])
    return figure


def _lines(rows: Sequence[Coverage], methods: Sequence[str]) -> Iterator[tuple[int, list[Coverage]]]:
    """The rows of each method that has some, by n, with its number."""
    for index, method in enumerate(methods):
        line = sorted((row for row in rows if row.method == method), key=lambda row: row.n)
        if line:
            yield index, line


def _draw_coverage(axes: Any, rows: Sequence[Coverage], methods: Sequence[str], claim: str) -> None:
    axes.axhline(1 - rows[0].delta, color=GREY, linestyle=DASHES, linewidth=1, label=claim, zorder=1)
    for index, line in _lines(rows, methods):
        # Most lines lie on 1: a small shift keeps their bars apart.
        shift = 1.3 ** ((index + 0.5) / len(methods) - 0.5)
        bars = [[row.fraction - row.low for row in line], [row.high - row.fraction for row in line]]
        axes.errorbar(
            [shift * row.n for row in line], [row.fraction for row in line], yerr=bars, label=line[0].method, elinewidth=0.8,
            capsize=1.5, **STYLES[index % len(STYLES)],
        )  # fmt: skip
    # Each family has its own scale: where one method fails badly, the others should not shrink to a line elsewhere.
    lowest = max(0.0, min(1 - 2 * rows[0].delta, 0.05 * math.floor(20 * min(row.low for row in rows) - 0.2)))
    axes.set_ylim(lowest, 1.0 + 0.06 * (1 - lowest))


def _draw_width(axes: Any, rows: Sequence[Coverage], methods: Sequence[str], narrowest: float) -> None:
    for index, line in _lines([row for row in rows if row.width > 0], methods):
        axes.plot([row.n for row in line], [row.width for row in line], **STYLES[index % len(STYLES)])
    axes.set_yscale("log")
    axes.set_ylim(narrowest, 1.6)
    axes.yaxis.set_major_formatter("{x:g}")
