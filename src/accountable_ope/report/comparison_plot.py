"""The picture of a comparison: one bar per policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..bounds.comparison import Comparison
from ..bounds.logging_policy import LoggedValue
from ..io.display import confidence
from .interval_bars import CROSSED, REFUTED, IntervalBar, draw_bars, height_for
from .plots import BLACK, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison_figure(found: Comparison) -> Figure:
    """Intervals of all policies, the first on top; doubted ones in another color, refuted ones in words."""
    figure = new_figure(7.5, height_for(len(found.contenders)))
    draw_comparison(figure.subplots(), found)
    return figure


def draw_comparison(axes: Any, found: Comparison) -> None:
    """The same on given axes."""
    bars = [
        IntervalBar(
            each.name,
            each.lower,
            each.upper,
            each.status,
            BLACK if isinstance(each.found, LoggedValue) and each.status.name == "OK" else None,
            nothing=CROSSED if each.lower > each.upper else REFUTED,
        )
        for each in found.contenders
    ]
    draw_bars(axes, bars, f"All intervals at once, {confidence(found.delta)} confidence")
