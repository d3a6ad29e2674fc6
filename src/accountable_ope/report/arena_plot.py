"""The picture of the arena: how often a method kept its promise against how wide it was, a dot per method with its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arena.judging import Career, Ranking
from ..errors import InvalidInput
from .plots import BLACK, BLUE, DASHES, GREY, LINES, ORANGE, VERMILION, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN, OTHERS, WITH = BLUE, VERMILION, ORANGE
APART = 0.042
"""Share of the height that a name needs."""


def arena_figure(ranking: Ranking) -> Figure:
    """Up: the share of problems and sizes at which the promise was kept. To the left: narrower, on average.

    Ours are blue; those of others red, or orange where they need the logger's probabilities; a hollow dot promises something for
    many rows only.
    """
    careers = ranking.careers
    if not careers:
        raise InvalidInput("There is nothing to draw: no results were given.")
    figure = new_figure(6.4, max(4.2, 0.27 * len(careers) + 1.6))
    axes: Any = figure.subplots()
    tidy(axes, labelsize=10)
    spots = [(each.width, 100 * each.kept / each.cells) for each in careers]
    for each, (x, y) in zip(careers, spots, strict=True):
        hollow = each.guarantee == "asymptotic"
        color = _color(each)
        axes.scatter(x, y, s=60, zorder=3, linewidths=1.6, edgecolors=color, facecolors="white" if hollow else color)
    low, high = min(y for _, y in spots), 100.0
    room = max(high - low, 10.0)
    bottom, top = low - 0.08 * room, high + 0.08 * room
    axes.set_ylim(bottom, top)
    axes.set_xlim(-0.02, 1.02)
    axes.axhline(100, color=GREY, linestyle=DASHES, linewidth=1.0, zorder=1)
    _names(axes, careers, spots, bottom, top)
    axes.set_xlabel("mean width, as a share of the range of values", fontsize=11)
    axes.set_ylabel("problems and sizes where it kept its promise (%)", fontsize=11)
    axes.set_title("Higher is honest, further left is sharper", loc="left", fontsize=12, fontweight="bold", color=BLACK)
    figure.supxlabel(
        "blue: ours; orange: needs propensities; red: others; hollow: promised for many rows only", fontsize=9, color=GREY
    )
    return figure


def _color(career: Career) -> str:
    if career.contestant.startswith("aope "):
        return OWN
    return WITH if career.propensities else OTHERS


def _names(axes: Any, careers: Sequence[Career], spots: Sequence[tuple[float, float]], bottom: float, top: float) -> None:
    """Each name in a column to the right of the picture, at the height of its dot or as near as the others leave."""
    order = sorted(range(len(careers)), key=lambda index: -spots[index][1])
    step = (top - bottom) / max(len(careers) + 1, 12)
    heights: dict[int, float] = {}
    before = top + step
    for index in order:
        heights[index] = before = min(spots[index][1], before - step)
    below = bottom - min(heights.values()) if heights else 0.0
    if below > 0:  # pushed out at the bottom: all move up as far as they must, from below
        before = bottom - step
        for index in reversed(order):
            heights[index] = before = max(heights[index], before + step)
    for index in order:
        x, y = spots[index]
        color = _color(careers[index])
        axes.annotate(
            careers[index].contestant, (x, y), xytext=(1.06, heights[index]), textcoords=("axes fraction", "data"), fontsize=10,
            color=color, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": LINES, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 4},
        )  # fmt: skip
