"""The picture of a comparison: one bar per policy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..bounds.comparing import Comparison
from ..bounds.logging_policy import LoggedValue
from ..io.display import confidence
from ..problem.statements import Status
from .plots import BLACK, BLUE, GREY, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison_figure(found: Comparison) -> Figure:
    """Intervals of all policies, the first on top; doubted ones in another color, refuted ones in words."""
    rows = found.contenders
    figure = new_figure(7.5, 1.2 + 0.5 * len(rows))
    axes: Any = figure.subplots()
    for place, each in enumerate(rows):
        if math.isnan(each.lower):
            axes.annotate(
                "no function of the class fits", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center"
            )
            continue
        color = BLACK if isinstance(each.found, LoggedValue) else ORANGE if each.status is Status.DOUBTED else BLUE
        color = GREY if each.status is Status.VACUOUS else color
        axes.plot([each.lower, each.upper], [place, place], color=color, linewidth=5, solid_capstyle="butt")
        label = f"{each.lower:.4g} to {each.upper:.4g}" + (f" ({each.status.name})" if each.status is not Status.OK else "")
        axes.annotate(
            label, (0.5 * (each.lower + each.upper), place), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8
        )
    axes.set_yticks(range(len(rows)), [each.name for each in rows])
    axes.set_ylim(len(rows) - 0.4, -0.7)
    axes.set_xlabel("value")
    axes.set_title(f"All intervals at once, {confidence(found.delta)} confidence", loc="left", fontsize=11)
    tidy(axes)
    return figure
