"""What all pictures share, and the picture of a diagnosis; matplotlib is imported only here, when a picture is asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..bounds.diagnosis import Diagnosis
from ..errors import InvalidInput, MissingExtra
from ..io.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, then some of Tol's: they differ for the color-blind too.
PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#882255", "#44AA99", "#999933",
)  # fmt: skip
BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK = PALETTE[:7]
GREY, LINES = "#555555", "#dddddd"
DASHES = (0, (4, 3))
NO_MATPLOTLIB = 'Plots need matplotlib: pip install "accountable-ope[plots]".'
Place = Literal["outside upper left", "outside upper center", "outside lower center"]


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(NO_MATPLOTLIB) from error
    return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> Axes:
    """Axes of a figure of pyplot, which a notebook shows."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtra(NO_MATPLOTLIB) from error
    _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture (format by its ending) atomically."""
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"A plot must end in .png, .svg or .pdf. Got {target.name!r}.")
    with whole_file(target) as partial:
        figure.savefig(partial, dpi=150)


def panel_grid(panels: Sequence[object], columns: int) -> tuple[int, int]:
    """Down and across: so many columns, as far as there are panels for them."""
    if not panels:
        raise InvalidInput("There is nothing to draw: no results were given.")
    across = min(columns, len(panels))
    return math.ceil(len(panels) / across), across


def tidy(axes: Any, labelsize: float = 9.0) -> None:
    """A faint grid behind the data, no box around them."""
    axes.grid(True, which="major", color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=labelsize, length=2.5)
    axes.spines[["top", "right"]].set_visible(False)


def shared_legend(figure: Figure, loc: Place, columns: int, order: Sequence[str] = (), fontsize: float = 8.0) -> None:
    """One legend of everything that some panel shows, each name once."""
    known: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    names = [name for name in order or known if name in known]
    handles = [known[name] for name in names]
    figure.legend(handles, names, loc=loc, ncols=min(columns, len(names)), fontsize=fontsize, frameon=False)


def witness_figure(diagnosis: Diagnosis, columns: tuple[int, int] = (0, 1)) -> Figure:
    """Where the estimate is wrong: data points colored by the smoothed residual, the largest regions numbered."""
    figure = new_figure(7.5, 6.0)
    draw_witness(figure.subplots(), diagnosis, columns)
    return figure


def draw_witness(axes: Any, diagnosis: Diagnosis, columns: tuple[int, int] = (0, 1)) -> None:
    """The same on given axes."""
    witness = diagnosis.witness
    last = witness.points.shape[1] - 1
    if max(columns) > last or min(columns) < 0 or columns[0] == columns[1]:
        raise InvalidInput(f"`columns` must be two different columns of (s, a), 0 to {last}. Got {columns}.")
    x, y = witness.points[:, columns[0]], witness.points[:, columns[1]]
    reach = float(np.abs(witness.values).max()) or 1.0
    # Points with a small witness first, so that they do not cover the others.
    order = np.argsort(np.abs(witness.values))
    drawn = axes.scatter(x[order], y[order], c=witness.values[order], cmap="RdBu", vmin=-reach, vmax=reach, s=14, linewidths=0)
    for number, region in enumerate(witness.regions, start=1):
        where = ", ".join(f"{value:.2g}" for value in region.center)
        label = f"{number}: {region.mean_residual:+.2g} per step at ({where}), {100 * region.share:.0f}% of the loss"
        # Regions that differ in other columns only would hide each other: shift their numbers apart.
        axes.annotate(
            str(number), region.center[list(columns)], xytext=(16 * (number - 1), 16 * (number - 1)), textcoords="offset points",
            fontsize=10, fontweight="bold", ha="center", va="center", arrowprops={"arrowstyle": "-", "color": BLACK},
            bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": BLACK},
        )  # fmt: skip
        axes.plot([], [], " ", label=label)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize=9, handlelength=0, handletextpad=0)
    axes.figure.colorbar(drawn, ax=axes).set_label("smoothed residual (red: estimate too high, blue: too low)")
    axes.set_xlabel(f"column {columns[0]} of (state, action)")
    axes.set_ylabel(f"column {columns[1]} of (state, action)")
    what = f"{diagnosis.verdict.name}: loss {diagnosis.loss:.2g}, radius {diagnosis.radius.total:.2g}"
    axes.set_title(what, loc="left", fontsize=11)
