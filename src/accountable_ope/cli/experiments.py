"""`aope experiment`: the figures of the paper, from one command each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..environments.softmax import TASKS
from ..errors import InvalidInput
from ..experiments.bounds import run_bounds
from ..experiments.estimators import RADII, default_count, run_estimates
from ..experiments.importance import run_importance
from ..experiments.page import check_page, write_page
from ..experiments.scale import QUICK, Scale
from ..experiments.summary import summary_lines
from ..report.experiment_plots import bounds_figure, estimates_figure, importance_figure
from ..report.plots import save_figure
from ..runner.processes import process_count
from ..runner.store import save_rows
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
    check_folder("--out", out)
    check_plot(out / "figure.png")
    check_places({"--markdown": markdown} | {name: out / name for task in tasks for name in file_names(figure, task)})
    documents = [_run(figure, task, scale, out, workers, markdown, as_json) for task in tasks]
    if as_json:
        print_json("experiment", {"figure": figure, "tasks": documents})


def _run(
    figure: str, task: str, scale: Scale, out: Path, workers: int | None, markdown: Path | None, as_json: bool
) -> dict[str, Any]:
    rows, pictures = _rows_and_pictures(figure, task, scale, out, workers, as_json)
    table = out / f"{figure}-{task}.parquet"
    save_rows(rows, table)
    files = [str(table)]
    for stem, picture in zip(_stems(figure, task), pictures, strict=True):
        for ending in PICTURES:
            path = out / f"{stem}.{ending}"
            save_figure(picture, path)
            files.append(str(path))
    if markdown is not None:
        write_page(markdown, f"{figure} {task}", rows, scale)
        files.append(str(markdown))
    lines = summary_lines(rows, scale)
    if not as_json:
        for line in lines:
            console().print(line)
        for name in files:
            note(f"Wrote {name}")
    return {"task": task, "trials": scale.trials, "rows": len(rows), "files": files, "findings": lines}


def _stems(figure: str, task: str) -> list[str]:
    """Names of the pictures, without their endings: figures 2 and 3 have one per radius."""
    stem = f"{figure}-{task}"
    return [f"{stem}-{radius}" for radius in RADII] if figure in ("figure2", "figure3") else [stem]


def file_names(figure: str, task: str) -> list[str]:
    """All files that are written for a task."""
    return [f"{figure}-{task}.parquet", *(f"{stem}.{ending}" for stem in _stems(figure, task) for ending in PICTURES)]


def _rows_and_pictures(
    figure: str, task: str, scale: Scale, out: Path, workers: int | None, as_json: bool
) -> tuple[Sequence[Any], list[Any]]:
    with progress(as_json) as phase:
        report = phase(f"{figure} {task}")
        if figure == "figure1":
            bounds = run_bounds(task, scale, folder=out, workers=workers, report=report)
            return bounds, [bounds_figure(bounds, scale)]
        if figure == "figure4":
            lowers = run_importance(task, scale, folder=out, workers=workers, report=report)
            return lowers, [importance_figure(lowers)]
        estimates = run_estimates(task, scale, folder=out, workers=workers, report=report)
        middle = default_count(scale)
        return estimates, [estimates_figure(estimates, middle, radius) for radius in RADII]
