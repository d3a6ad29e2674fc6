"""`aope experiment`: the figures of the paper, from one command each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..environments.softmax import TASKS
from ..errors import InvalidInput
from ..experiments.bounds import RADII as LADDER
from ..experiments.bounds import BoundRow, beside, run_bounds
from ..experiments.estimators import RADII, default_count, run_estimates
from ..experiments.importance import run_importance
from ..experiments.page import check_page, write_page
from ..experiments.scale import QUICK, Scale
from ..experiments.summary import summary_lines
from ..report.experiment_plots import bounds_figure, estimates_figure, importance_figure
from ..report.plots import save_figure
from ..runner.processes import process_count
from ..runner.store import load_rows, save_rows
from .options import OUTPUT, AsJson, Workers
from .output import check_folder, check_places, check_plot, console, note, print_json, progress

FIGURES = {
    "figure1": ("inverted-pendulum", "puck-mountain"),
    "figure2": ("inverted-pendulum",),
    "figure3": ("puck-mountain",),
    "figure4": ("inverted-pendulum",),
}
"""Which tasks a figure is drawn for unless one is asked for."""
PICTURES = ("png", "svg")
TRIALS = f"{Scale().trials}, or {QUICK.trials} with --quick"


def experiment(
    figure: Annotated[str, Parameter(help="figure1, figure2, figure3 or figure4.")],
    /,
    *,
    env: Annotated[str | None, Parameter(help="inverted-pendulum or puck-mountain. Default: as in the paper.")] = None,
    trials: Annotated[int | None, Parameter(help="Data sets per point.", show_default=TRIALS)] = None,
    quick: Annotated[bool, Parameter(help="A small run: few trials, few points, small batches.")] = False,
    radius: Annotated[
        list[str] | None, Parameter(help=f"Of figure 1: {', '.join(LADDER)}, repeatable.", show_default="all of them")
    ] = None,
    earlier: Annotated[
        Path | None,
        Parameter(
            name="--beside",
            help="Folder of an earlier run of figure 1, whose rows are shown beside the new ones.",
        ),
    ] = None,
    workers: Workers = None,
    out: Annotated[
        Path, Parameter(group=OUTPUT, help="Folder for the table, the pictures, and what a resumed run need not repeat.")
    ] = Path("experiments"),
    markdown: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Write tables and findings between the marks of this Markdown page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tables, pictures and findings of one figure, for one task or for those of the paper."""
    if figure not in FIGURES:
        raise InvalidInput(f"`figure` must be one of {', '.join(FIGURES)}. Got {figure!r}.")
    if env is not None and env not in TASKS:
        raise InvalidInput(f"`env` must be one of {', '.join(TASKS)}. Got {env!r}.")
    tasks = (env,) if env else FIGURES[figure]
    process_count(workers)  # a wrong number is refused before any work
    if markdown is not None:
        for task in tasks:
            check_page(markdown, f"{figure} {task}")
    scale = QUICK if quick else Scale()
    if trials is not None:
        if trials < 1:
            raise InvalidInput(f"`trials` must be at least 1. Got {trials}.")
        scale = replace(scale, trials=trials)
    chosen = tuple(radius or LADDER)
    if unknown := [name for name in chosen if name not in LADDER]:
        raise InvalidInput(f"`--radius` must be one of {', '.join(LADDER)}. Got {unknown[0]!r}.")
    if figure != "figure1" and (radius or earlier is not None):
        raise InvalidInput(f"`--radius` and `--beside` are for figure1. Got {figure}.")
    if earlier is not None and earlier.resolve() == out.resolve():
        raise InvalidInput(f"`--beside` must be another folder than `--out`, whose tables are written. Got {earlier} for both.")
    was = {task: () if earlier is None else load_rows(BoundRow, earlier / f"{figure}-{task}.parquet") for task in tasks}
    check_folder("--out", out)
    check_plot(out / "figure.png")
    check_places({"--markdown": markdown} | {name: out / name for task in tasks for name in file_names(figure, task)})
    runs = [_Run(figure, task, scale, out, workers, as_json, chosen, was[task]) for task in tasks]
    documents = [_document(run, markdown) for run in runs]
    if as_json:
        print_json("experiment", {"figure": figure, "tasks": documents})


@dataclass(frozen=True)
class _Run:
    """A figure of one task, and how it is made; radii and rows of an earlier run are for figure 1."""

    figure: str
    task: str
    scale: Scale
    out: Path
    workers: int | None
    as_json: bool
    radii: tuple[str, ...]
    earlier: tuple[BoundRow, ...]


def _document(run: _Run, markdown: Path | None) -> dict[str, Any]:
    rows, pictures = _rows_and_pictures(run)
    table = run.out / f"{run.figure}-{run.task}.parquet"
    save_rows(rows, table)
    files = [str(table)]
    for stem, picture in zip(_stems(run.figure, run.task), pictures, strict=True):
        for ending in PICTURES:
            path = run.out / f"{stem}.{ending}"
            save_figure(picture, path)
            files.append(str(path))
    if markdown is not None:
        write_page(markdown, f"{run.figure} {run.task}", rows, run.scale)
        files.append(str(markdown))
    lines = summary_lines(rows, run.scale)
    if not run.as_json:
        for line in lines:
            console().print(line)
        for name in files:
            note(f"Wrote {name}")
    return {"task": run.task, "trials": run.scale.trials, "rows": len(rows), "files": files, "findings": lines}


def _stems(figure: str, task: str) -> list[str]:
    """Names of the pictures, without their endings: figures 2 and 3 have one per radius."""
    stem = f"{figure}-{task}"
    return [f"{stem}-{radius}" for radius in RADII] if figure in ("figure2", "figure3") else [stem]


def file_names(figure: str, task: str) -> list[str]:
    """All files that are written for a task."""
    return [f"{figure}-{task}.parquet", *(f"{stem}.{ending}" for stem in _stems(figure, task) for ending in PICTURES)]


def _rows_and_pictures(run: _Run) -> tuple[Sequence[Any], list[Any]]:
    with progress(run.as_json) as phase:
        report = phase(f"{run.figure} {run.task}")
        if run.figure == "figure1":
            bounds = run_bounds(run.task, run.scale, radii=run.radii, folder=run.out, workers=run.workers, report=report)
            bounds = beside(bounds, run.earlier)
            return bounds, [bounds_figure(bounds, run.scale)]
        if run.figure == "figure4":
            lowers = run_importance(run.task, run.scale, folder=run.out, workers=run.workers, report=report)
            return lowers, [importance_figure(lowers)]
        estimates = run_estimates(run.task, run.scale, folder=run.out, workers=run.workers, report=report)
        middle = default_count(run.scale)
        return estimates, [estimates_figure(estimates, middle, radius) for radius in RADII]
