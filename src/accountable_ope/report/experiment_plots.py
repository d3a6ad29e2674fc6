"""The paper's figures, drawn from the rows of the experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..experiments.bounds import BoundRow, panel_rows
from ..experiments.estimators import EstimateRow
from ..experiments.importance import PAPER_THRESHOLD, LowerRow
from ..experiments.scale import Scale
from ..experiments.setting import DELTA
from .plots import BLACK, BLUE, GREEN, ORANGE, PALETTE, PINK, SKY, VERMILION, new_figure, shared_legend, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = TypeVar("Row")

NAMES = {
    "hoeffding": "paper (Hoeffding)",
    "azuma": "azuma",
    "certified": "certified",
    "symmetric": "symmetric (declared, not true here)",
    "wild": "wild (asymptotic)",
}
KINDS = {"fourier": ("random Fourier features", BLUE), "neural": ("neural features", VERMILION)}
AXES = {
    "n": "transitions n",
    "delta": "confidence 1 - delta",
    "temperature": "temperature of the behavior",
    "features": "number of features",
}
METHODS = (
    ("hcope, fixed c", "o-", PALETTE[7]),
    ("hcope, chosen c", "v-", ORANGE),
    ("betting", "^-", GREEN),
    ("betting, per decision", "D-", PINK),
    ("ours, certified", "s-", BLUE),
    ("ours, wild", "s--", SKY),
)


def bounds_figure(rows: Sequence[BoundRow], scale: Scale) -> Figure:
    """Figure 1 of one task: a column per axis, a row per radius; bands are mean ends over trials, the line is the truth."""
    radii = list(dict.fromkeys(row.radius for row in rows))
    figure = new_figure(15.0, 2.6 * len(radii) + 0.6)
    grid: Any = figure.subplots(len(radii), len(AXES), squeeze=False, sharey=True)
    for line, radius in enumerate(radii):
        for column, (axis, label) in enumerate(AXES.items()):
            panel: Any = grid[line, column]
            _bands(panel, [row for row in panel_rows(rows, axis, scale) if row.radius == radius], axis)
            panel.set_ylim(-0.04, 1.26)
            panel.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
            panel.set_title(f"({'abcd'[column]})" if line == 0 else "", loc="left", fontsize=10)
            panel.set_xlabel(label if line + 1 == len(radii) else "")
            panel.set_ylabel(f"{NAMES.get(radius, radius)}\nnormalized value" if column == 0 else "", fontsize=9)
    told = "numbers: share of trials that covered, of those with an interval; a cross: INCONSISTENT in most trials"
    _finish(figure, f"{rows[0].task}: mean ends over {{}} trials; {told}", rows)
    return figure


def _bands(panel: Any, rows: Sequence[BoundRow], axis: str) -> None:
    kinds = list(dict.fromkeys(row.kind for row in rows))
    groups = _groups(rows, _place(axis))
    for order, kind in enumerate(kinds):
        label, color = KINDS[kind]
        shift = 0.0 if len(kinds) == 1 else 0.12 * (order - 0.5)
        bands = []
        for place, group in enumerate(groups.values()):
            here = [row for row in group if row.kind == kind]
            bounded = [row for row in here if not math.isnan(row.lower)]
            if bounded:
                bands.append((place + shift, _mean(row.lower for row in bounded), _mean(row.upper for row in bounded)))
                _share(panel, place, 1.22 - 0.1 * order, [row.covered for row in bounded], color=color, fontsize=6.5)
            if len(bounded) < 0.5 * len(here):
                panel.plot(place, 0.06 + 0.07 * order, "x", color=color, markersize=5)
        x, lows, highs = np.array(bands).reshape(-1, 3).T
        half = (highs - lows) / 2
        panel.errorbar(x, lows + half, yerr=half, fmt="none", ecolor=color, capsize=3, elinewidth=2.2, label=label)
    if rows:
        _truth(panel, rows[0].truth)
    _places(panel, groups)
    panel.set_xlim(-0.5, len(groups) - 0.5)


def estimates_figure(rows: Sequence[EstimateRow], default_n: int, radius: str) -> Figure:
    """Figures 2 and 3: two estimates, their corrections and intervals, against n (above) and 1 - delta (below)."""
    figure = new_figure(13.0, 7.2)
    grid: Any = figure.subplots(2, 3, squeeze=False)
    chosen = [row for row in rows if row.radius == radius]
    names = list(dict.fromkeys(row.estimator for row in chosen))
    for line, axis in enumerate(("n", "delta")):
        shown = [row for row in chosen if (row.delta == DELTA if axis == "n" else row.n == default_n)]
        norms = grid[line, 2]
        for column, (name, (mark, color)) in enumerate(zip(names, (("o-", PINK), ("s-", ORANGE)), strict=False)):
            groups = _groups([row for row in shown if row.estimator == name], _place(axis))
            _estimate(grid[line, column], groups)
            norms.plot(
                [_mean(row.norm for row in group) for group in groups.values()], mark, color=color, label=f"change of {name}"
            )
            _places(norms, groups)
        for column, title in enumerate((*names, "norm of the correction")):
            grid[line, column].set_title(f"({'abcdef'[3 * line + column]}) {title}", loc="left", fontsize=10)
            grid[line, column].set_xlabel(AXES[axis])
            grid[line, column].set_ylabel("normalized value" if column < len(names) else "")
    told = "numbers: share of trials that accepted the estimate"
    _finish(figure, f"{chosen[0].task}, {NAMES[radius]}: means over {{}} trials; {told}", chosen)
    return figure


def _estimate(panel: Any, groups: dict[float, list[EstimateRow]]) -> None:
    x, inside = range(len(groups)), list(groups.values())
    lower, upper = (
        [_mean(row.lower for row in group) for group in inside],
        [_mean(row.upper for row in group) for group in inside],
    )
    panel.fill_between(x, lower, upper, color=BLUE, alpha=0.2, label="post-hoc interval")
    panel.plot(x, [_mean(row.before for row in group) for group in inside], "o-", color=VERMILION, label="estimate")
    panel.plot(x, [_mean(row.after for row in group) for group in inside], "s--", color=GREEN, label="corrected", markersize=4)
    _truth(panel, inside[0][0].truth)
    for place, group in enumerate(inside):
        _share(panel, place, 1.12, [row.accepted for row in group], fontsize=8)
    _places(panel, groups)
    panel.set_ylim(-0.05, 1.15)


def importance_figure(rows: Sequence[LowerRow]) -> Figure:
    """Figure 4: lower bounds against episodes, 1 - delta and the threshold c."""
    figure = new_figure(14.0, 4.6)
    panels: Any = figure.subplots(1, 3)
    largest = max(row.episodes for row in rows)
    at_paper = [row for row in rows if math.isnan(row.threshold) or row.threshold == PAPER_THRESHOLD]
    fixed = [row for row in rows if row.delta == DELTA and row.episodes == largest and not math.isnan(row.threshold)]
    _lower(panels[0], [row for row in at_paper if row.delta == DELTA], _place("episodes"))
    _lower(panels[1], [row for row in at_paper if row.episodes == largest], _place("delta"))
    _lower(panels[2], fixed, _place("threshold"))
    ours = next(row.truth for row in rows if row.method.startswith("ours"))
    sampled = next(row.truth for row in rows if not row.method.startswith("ours"))
    for panel, label, letter in zip(panels, ("episodes N", AXES["delta"], "threshold c"), "abc", strict=True):
        panel.set_xlabel(label)
        panel.set_title(f"({letter})", loc="left", fontsize=10)
        _truth(panel, sampled, "truth, T steps")
        _truth(panel, ours, "truth, forever", color=BLUE, linestyle=":")
        panel.set_ylim(-0.3, 1.02)
    panels[0].set_ylabel("lower bound, normalized")
    _finish(figure, f"{rows[0].task}: mean lower bounds over {{}} trials (below -0.3: not shown)", rows)
    return figure


def _lower(panel: Any, rows: Sequence[LowerRow], where: Callable[[Any], float]) -> None:
    groups = _groups(rows, where)
    for method, mark, color in METHODS:
        means = [_mean(row.lower for row in group if row.method == method) for group in groups.values()]
        if not all(map(math.isnan, means)):
            name = f"{method} = {PAPER_THRESHOLD:g}" if method == "hcope, fixed c" else method
            panel.plot(means, mark, color=color, label=name, markersize=4)
    _places(panel, groups)


def _place(axis: str) -> Callable[[Any], float]:
    """Where a row stands on an axis."""
    return lambda row: round(1 - row.delta, 10) if axis == "delta" else float(getattr(row, axis))


def _groups(rows: Sequence[Row], where: Callable[[Any], float]) -> dict[float, list[Row]]:
    """Rows by their place on the axis, in its order."""
    return {value: [row for row in rows if where(row) == value] for value in sorted({where(row) for row in rows})}


def _mean(values: Iterable[float]) -> float:
    """Over what exists."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _places(panel: Any, groups: dict[float, list[Row]]) -> None:
    panel.set_xticks(range(len(groups)), [f"{value:g}" for value in groups])


def _truth(panel: Any, value: float, label: str = "truth", color: str = BLACK, linestyle: str = "--") -> None:
    panel.axhline(value, color=color, linewidth=0.9, linestyle=linestyle, label=label)


def _share(panel: Any, place: int, height: float, of: Sequence[bool], fontsize: float, color: str = BLACK) -> None:
    panel.text(place, height, f"{sum(of) / len(of):.2f}", color=color, fontsize=fontsize, ha="center", va="top")


def _finish(figure: Figure, title: str, rows: Sequence[Any]) -> None:
    """The number of trials in the title, the same look for every panel, one legend."""
    trials: dict[str, set[int]] = {}
    for row in rows:
        trials.setdefault(getattr(row, "radius", ""), set()).add(row.trial)
    counts = sorted({len(each) for each in trials.values()})
    figure.suptitle(title.format(" to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))), fontsize=10)
    for panel in figure.axes:
        tidy(panel)
    shared_legend(figure, "outside lower center", columns=8, fontsize=10)
