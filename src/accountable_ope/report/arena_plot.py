"""The picture of the arena: how often a method did not miss against how wide it was, a dot per method with its name beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arena.judging import Career, Ranking
from ..errors import InvalidInput
from .plots import BLACK, BLUE, DASHES, GREY, VERMILION, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN, OTHERS = BLUE, VERMILION
PLACES = (
    (6, 0, "left", "center"),
    (-6, 0, "right", "center"),
    (0, 7, "center", "bottom"),
    (0, -7, "center", "top"),
    (6, 8, "left", "bottom"),
    (6, -8, "left", "top"),
    (-6, 8, "right", "bottom"),
    (-6, -8, "right", "top"),
    *(
        (side * far, up, "left" if side > 0 else "right", "center")
        for far in (14, 40, 80)
        for up in (16, -16, 30, -30)
        for side in (1, -1)
    ),
)
"""Where a name may stand beside its dot, in points: near it, else at the end of a line."""

NEAR = 10
LEADER = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}


def arena_figure(ranking: Ranking) -> Figure:
    """Up: the share of logs on which it did not miss. To the left: narrower, on average over whatever it was asked about.

    Ours are blue, those of others red; a hollow dot promises something for many rows only. Names stand beside their dots, ours
    first, then those that no other beats in both respects, then the others as far as there is room: the tables have all.
    """
    careers = ranking.careers
    if not careers:
        raise InvalidInput("There is nothing to draw: no results were given.")
    figure = new_figure(5.4, 5.2)
    axes: Any = figure.subplots()
    tidy(axes, labelsize=11)
    promised = 100 * (1 - ranking.rows[0].delta)
    least = min(100 * each.fraction for each in careers)
    axes.set_ylim(min(least, promised) - 6, 103)
    axes.set_xlim(-0.04, 1.04)
    axes.axhline(promised, color=GREY, linestyle=DASHES, linewidth=1.2, zorder=1)
    axes.axhspan(0, promised, color=VERMILION, alpha=0.06, linewidth=0, zorder=0)
    axes.text(
        0.98, 0.02, "shaded: less than promised", transform=axes.transAxes, fontsize=10, color=GREY, ha="right", va="bottom"
    )
    for each in careers:
        color = _color(each)
        axes.scatter(
            *_spot(each), s=55, zorder=3, linewidths=1.6, edgecolors=color,
            facecolors=color if each.guarantee != "asymptotic" else "white",
        )  # fmt: skip
    axes.set_xlabel("mean width (share of the range of values)", fontsize=11)
    axes.set_ylabel("logs on which it did not miss (%)", fontsize=11)
    axes.set_title("Higher is more honest, further left is sharper", loc="left", fontsize=12, fontweight="bold", color=BLACK)
    figure.supxlabel("blue: ours, red: others; hollow: promised for many rows only", fontsize=10, color=GREY)
    _name(figure, axes, careers)
    return figure


def _spot(career: Career) -> tuple[float, float]:
    return career.width, 100 * career.fraction


def _color(career: Career) -> str:
    return OWN if career.worst.own else OTHERS


def _first_named(careers: Sequence[Career]) -> list[Career]:
    """Ours, then those that nobody beats both in honesty and in width, then the others, the least honest first."""

    def beaten(each: Career) -> bool:
        return any(other.fraction > each.fraction and other.width < each.width for other in careers)

    return sorted(careers, key=lambda each: (not each.worst.own, beaten(each), each.fraction))


def _name(figure: Figure, axes: Any, careers: Sequence[Career]) -> None:
    """Names that hide neither each other nor a dot; one for which there is no place is left out, ours never."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # fixes where the axes are
    renderer: Any = canvas.get_renderer()
    taken = [_around(axes, each) for each in careers]
    frame = axes.get_window_extent(renderer)
    for each in _first_named(careers):
        for place in PLACES:
            text = _text(axes, each, place)
            box = _box(text, renderer)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + 2 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
        else:
            if each.worst.own:
                taken.append(_box(_text(axes, each, PLACES[0]), renderer))


def _box(text: Any, renderer: Any) -> Any:
    """Of the words alone, without the line that leads to the dot."""
    from matplotlib.text import Text

    text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)


def _around(axes: Any, career: Career) -> Any:
    """The box of a dot."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform(_spot(career))
    return Bbox.from_extents(x - 5, y - 5, x + 5, y + 5)


def _text(axes: Any, career: Career, place: tuple[int, int, str, str]) -> Any:
    right, up, across, along = place
    text = axes.annotate(
        career.contestant, _spot(career), xytext=(right, up), textcoords="offset points", fontsize=10, color=_color(career),
        ha=across, va=along, arrowprops=None if max(abs(right), abs(up)) < NEAR else LEADER,
    )  # fmt: skip
    text.set_in_layout(False)
    return text
