"""The paper's figures, drawn from the rows of the experiments; matplotlib is imported only when a picture is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..experiments.bounds import BoundRow, panel_rows
from ..experiments.estimators import EstimateRow
from ..experiments.importance import PAPER_THRESHOLD, LowerRow
from ..experiments.scale import Scale
from ..experiments.setting import DELTA
from .plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "hoeffding": "paper (Hoeffding)",
    "azuma": "azuma",
    "certified": "certified",
    "symmetric": "symmetric (declared, not true here)",
    "wild": "wild (asymptotic)",
}
KIND_NAMES = {"fourier": "random Fourier", "neural": "neural"}
COLORS = {"fourier": "tab:blue", "neural": "tab:orange"}
AXES = (
    ("n", "transitions n"),
    ("delta", "confidence 1 - delta"),
    ("temperature", "temperature of the behavior"),
    ("features", "number of features"),
)


def bounds_figure(rows: Sequence[BoundRow], scale: Scale) -> Figure:
    """Figure 1 of one task: a column per axis, a row per radius; bands are mean ends over trials, the line is the truth."""
    radii = list(dict.fromkeys(row.radius for row in rows))
    figure = new_figure(15.0, 2.6 * len(radii) + 0.6)
    grid: Any = figure.subplots(len(radii), len(AXES), squeeze=False, sharey=True)
    for line, radius in enumerate(radii):
        for column, (axis, label) in enumerate(AXES):
            panel: Any = grid[line, column]
            shown = [row for row in panel_rows(rows, axis, scale) if row.radius == radius]
            _bands(panel, shown, axis)
            panel.set_ylim(-0.04, 1.26)
            panel.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
            if line == 0:
                panel.set_title(f"({'abcd'[column]})", loc="left", fontsize=10)
            if line + 1 == len(radii):
                panel.set_xlabel(label)
            if column == 0:
                panel.set_ylabel(f"{NAMES[radius]}\nnormalized value", fontsize=9)
    trials = len({row.trial for row in rows})
    figure.suptitle(
        f"{rows[0].task}: mean ends over {trials} trials; numbers: share of trials that covered, of those with an interval; "
        "a cross: INCONSISTENT in most trials",
        fontsize=10,
    )
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _bands(panel: Any, rows: Sequence[BoundRow], axis: str) -> None:
    positions = {value: place for place, value in enumerate(sorted({_shown(row, axis) for row in rows}))}
    kinds = list(dict.fromkeys(row.kind for row in rows))
    for order, kind in enumerate(kinds):
        own = [row for row in rows if row.kind == kind]
        places, lows, highs = [], [], []
        for value, place in positions.items():
            here = [row for row in own if _shown(row, axis) == value]
            some = [row for row in here if not math.isnan(row.lower)]
            color = COLORS[kind]
            height = 1.22 - 0.1 * order
            if some:
                places.append(place)
                lows.append(float(np.mean([row.lower for row in some])))
                highs.append(float(np.mean([row.upper for row in some])))
                share = sum(row.covered for row in some) / len(some)
                panel.text(place, height, f"{share:.2f}", color=color, fontsize=6.5, ha="center", va="top")
            if len(some) < 0.5 * len(here):
                panel.plot(place, 0.06 + 0.07 * order, "x", color=color, markersize=5)
        shift = 0.0 if len(kinds) == 1 else 0.12 * (order - 0.5)
        center = [0.5 * (a + b) for a, b in zip(lows, highs, strict=True)]
        errors = [[c - a for c, a in zip(center, lows, strict=True)], [b - c for c, b in zip(center, highs, strict=True)]]
        panel.errorbar(
            [place + shift for place in places],
            center,
            yerr=errors,
            fmt="none",
            ecolor=COLORS[kind],
            capsize=3,
            elinewidth=2.2,
            label=f"{KIND_NAMES[kind]} features",
        )
    if rows:
        panel.axhline(rows[0].truth, color="black", linewidth=0.9, linestyle="--", label="truth")
    panel.set_xticks(list(positions.values()), [f"{value:g}" for value in positions])
    panel.set_xlim(-0.5, len(positions) - 0.5)


def _shown(row: Any, axis: str) -> float:
    return round(1 - row.delta, 10) if axis == "delta" else float(getattr(row, axis))


def estimates_figure(rows: Sequence[EstimateRow], default_n: int, radius: str) -> Figure:
    """Figures 2 and 3: two estimates, their corrections and intervals, against n (above) and 1 - delta (below)."""
    figure = new_figure(13.0, 7.2)
    grid: Any = figure.subplots(2, 3, squeeze=False)
    chosen = [row for row in rows if row.radius == radius]
    names = list(dict.fromkeys(row.estimator for row in chosen))
    for line, (axis, label) in enumerate((("n", "transitions n"), ("delta", "confidence 1 - delta"))):
        shown = [row for row in chosen if (row.delta == DELTA if axis == "n" else row.n == default_n)]
        for column, name in enumerate(names):
            _estimate(grid[line, column], [row for row in shown if row.estimator == name], axis)
            grid[line, column].set_title(f"({'abcdef'[3 * line + column]}) {name}", loc="left", fontsize=10)
            grid[line, column].set_xlabel(label)
            grid[line, column].set_ylabel("normalized value")
        _norms(grid[line, 2], shown, names, axis)
        grid[line, 2].set_title(f"({'abcdef'[3 * line + 2]}) norm of the correction", loc="left", fontsize=10)
        grid[line, 2].set_xlabel(label)
        grid[line, 2].legend(frameon=False, fontsize=8)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    trials = len({row.trial for row in chosen})
    figure.suptitle(
        f"{chosen[0].task}, {NAMES[radius]}: means over {trials} trials; numbers: share of trials that accepted the estimate",
        fontsize=10,
    )
    return figure


def _estimate(panel: Any, rows: Sequence[EstimateRow], axis: str) -> None:
    places = sorted({_shown(row, axis) for row in rows})
    groups = [[row for row in rows if _shown(row, axis) == value] for value in places]
    x = np.arange(len(places))
    mean = _mean_over(groups)
    panel.fill_between(
        x, mean(lambda r: r.lower), mean(lambda r: r.upper), color="tab:blue", alpha=0.2, label="post-hoc interval"
    )
    panel.plot(x, mean(lambda r: r.before), "o-", color="tab:red", label="estimate")
    panel.plot(x, mean(lambda r: r.after), "s--", color="tab:green", label="corrected", markersize=4)
    panel.axhline(rows[0].truth, color="black", linewidth=0.9, linestyle="--", label="truth")
    for place, group in zip(x, groups, strict=True):
        share = sum(row.accepted for row in group) / len(group)
        panel.text(place, 0.97, f"{share:.2f}", transform=panel.get_xaxis_transform(), fontsize=8, ha="center", va="top")
    panel.set_xticks(x, [f"{value:g}" for value in places])
    panel.set_ylim(-0.05, 1.15)


def _norms(panel: Any, rows: Sequence[EstimateRow], names: Sequence[str], axis: str) -> None:
    places = sorted({_shown(row, axis) for row in rows})
    for name, mark in zip(names, ("o-", "s-"), strict=False):
        groups = [[row for row in rows if _shown(row, axis) == value and row.estimator == name] for value in places]
        panel.plot(np.arange(len(places)), _mean_over(groups)(lambda r: r.norm), mark, label=name)
    panel.set_xticks(np.arange(len(places)), [f"{value:g}" for value in places])


def _mean_over(groups: Sequence[Sequence[Any]]) -> Callable[[Callable[[Any], float]], list[float]]:
    """A function that averages something over every group, leaving out what does not exist."""

    def mean(of: Callable[[Any], float]) -> list[float]:
        found = []
        for group in groups:
            values = [of(row) for row in group if not math.isnan(of(row))]
            found.append(float(np.mean(values)) if values else math.nan)
        return found

    return mean


METHODS = (
    ("hcope, fixed c", "o-", "tab:gray"),
    ("hcope, chosen c", "v-", "tab:brown"),
    ("betting", "^-", "tab:purple"),
    ("betting, per decision", "D-", "tab:pink"),
    ("ours, certified", "s-", "tab:blue"),
    ("ours, wild", "s--", "tab:cyan"),
)


def importance_figure(rows: Sequence[LowerRow]) -> Figure:
    """Figure 4: lower bounds against episodes, 1 - delta and the threshold c."""
    figure = new_figure(14.0, 4.6)
    grid: Any = figure.subplots(1, 3)
    largest = max(row.episodes for row in rows)
    at_paper = [row for row in rows if math.isnan(row.threshold) or row.threshold == PAPER_THRESHOLD]
    _lines(grid[0], [row for row in at_paper if row.delta == DELTA], lambda r: float(r.episodes))
    _lines(grid[1], [row for row in at_paper if row.episodes == largest], lambda r: round(1 - r.delta, 10))
    fixed = [row for row in rows if row.delta == DELTA and row.episodes == largest and not math.isnan(row.threshold)]
    _lines(grid[2], fixed, lambda r: r.threshold)
    for panel, label, letter in zip(grid, ("episodes N", "confidence 1 - delta", "threshold c"), "abc", strict=True):
        panel.set_xlabel(label)
        panel.set_title(f"({letter})", loc="left", fontsize=10)
        ours = next(row.truth for row in rows if row.method.startswith("ours"))
        sampled = next(row.truth for row in rows if not row.method.startswith("ours"))
        panel.axhline(sampled, color="black", linewidth=0.9, linestyle="--", label="truth, T steps")
        panel.axhline(ours, color="tab:blue", linewidth=0.9, linestyle=":", label="truth, for ever")
        panel.set_ylim(-0.3, 1.02)
    grid[0].set_ylabel("lower bound, normalized")
    trials = len({row.trial for row in rows})
    figure.suptitle(f"{rows[0].task}: mean lower bounds over {trials} trials (below -0.3: not shown)", fontsize=10)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _lines(panel: Any, rows: Sequence[LowerRow], where: Callable[[LowerRow], float]) -> None:
    places = sorted({where(row) for row in rows})
    for method, mark, color in METHODS:
        groups = [[row for row in rows if row.method == method and where(row) == value] for value in places]
        if any(groups):
            name = f"{method} = 1e-5" if method == "hcope, fixed c" else method
            panel.plot(np.arange(len(places)), _mean_over(groups)(lambda r: r.lower), mark, color=color, label=name, markersize=4)
    panel.set_xticks(np.arange(len(places)), [f"{value:g}" for value in places])
