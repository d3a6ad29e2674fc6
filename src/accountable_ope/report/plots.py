"""Pictures of results; matplotlib is imported only here, when a picture is asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bounds.diagnosis import Diagnosis
from ..errors import InvalidInput, MissingExtra
from ..io.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra('Plots need matplotlib: pip install "accountable-ope[plots]".') from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture (format by its ending); the file appears whole or not at all."""
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"A plot must end in .png, .svg or .pdf. Got {target.name!r}.")
    with whole_file(target) as partial:
        figure.savefig(partial, dpi=150)


def witness_figure(diagnosis: Diagnosis, columns: tuple[int, int] = (0, 1)) -> Figure:
    """Where the estimate is wrong: data points colored by the smoothed residual, the largest regions numbered."""
    found = diagnosis.witness
    if max(columns) >= found.points.shape[1] or min(columns) < 0 or columns[0] == columns[1]:
        raise InvalidInput(f"`columns` must be two different columns of (s, a), 0 to {found.points.shape[1] - 1}. Got {columns}.")
    figure = new_figure(7.5, 6.0)
    axes: Any = figure.subplots()
    x, y = found.points[:, columns[0]], found.points[:, columns[1]]
    reach = float(np.abs(found.values).max()) or 1.0
    # Points with a small witness first, so that they do not cover the others.
    order = np.argsort(np.abs(found.values))
    drawn = axes.scatter(x[order], y[order], c=found.values[order], cmap="RdBu", vmin=-reach, vmax=reach, s=14, linewidths=0)
    for number, region in enumerate(found.regions, start=1):
        place = region.center[columns[0]], region.center[columns[1]]
        where = ", ".join(f"{value:.2g}" for value in region.center)
        label = f"{number}: {region.mean_residual:+.2g} per step at ({where}), {100 * region.share:.0f}% of the loss"
        # Regions that differ in other columns only would hide each other: shift their numbers apart.
        axes.annotate(
            str(number),
            place,
            xytext=(16 * (number - 1), 16 * (number - 1)),
            textcoords="offset points",
            fontsize=10,
            fontweight="bold",
            ha="center",
            va="center",
            bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"},
            arrowprops={"arrowstyle": "-", "color": "black"},
        )
        axes.plot([], [], " ", label=label)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize=9, handlelength=0, handletextpad=0)
    bar = figure.colorbar(drawn, ax=axes)
    bar.set_label("smoothed residual (red: estimate too high, blue: too low)")
    axes.set_xlabel(f"column {columns[0]} of (state, action)")
    axes.set_ylabel(f"column {columns[1]} of (state, action)")
    axes.set_title(
        f"{diagnosis.verdict.name}: loss {diagnosis.loss:.2g}, radius {diagnosis.radius.total:.2g}", loc="left", fontsize=11
    )
    return figure
