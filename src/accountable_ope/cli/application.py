"""The application object and what all commands share: showing results, writing files, the progress bar, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import InvalidFile, InvalidInput
from ..io.files import whole_file

if TYPE_CHECKING:
    from rich.console import Console

    from ..bounds.interval import ValueInterval
    from ..kernels.products import Progress
    from ..problem.transitions import Transitions
    from ..report.document import Document
    from ..runner.run import Report

EXIT_BAD_INPUT, EXIT_VACUOUS, EXIT_INCONSISTENT = 2, 3, 4

app = typer.Typer(
    help="Confidence bounds on a policy's value from logged data, without the behavior policy, with certificates.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def exit_code(intervals: Sequence[ValueInterval]) -> int:
    """0 when an interval says something and no class was refuted, else why not."""
    from ..bounds.interval import Status

    statuses = {interval.status for interval in intervals}
    if Status.INCONSISTENT in statuses:
        return EXIT_INCONSISTENT
    return 0 if Status.OK in statuses else EXIT_VACUOUS


def show(
    intervals: Sequence[ValueInterval],
    data: Transitions,
    as_json: bool,
    report: Path | None,
    title: str,
    truth: float | None = None,
    to_beat: float | None = None,
) -> None:
    """A ladder as text or JSON, and as a report on request; beside it the values of both policies, where they are known."""
    from ..report.document import ladder_document
    from ..report.html import report_html
    from .text import print_ladder

    if as_json:
        print_json(ladder_document(intervals, data))
    else:
        print_ladder(console(), intervals, truth, to_beat)
    if report is not None:
        write_text(report, report_html(intervals, data, title, truth, to_beat))
        typer.echo(f"Report: {report}", err=True)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def check_plot(path: Path) -> None:
    """Before any work: is there something to draw with, a format to draw in, and a place for the picture?"""
    from ..report.plots import new_figure

    new_figure(1, 1)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"A plot must end in .png, .svg or .pdf. Got {path.name!r}.")
    if not path.absolute().parent.is_dir():
        raise InvalidFile(f"{path} cannot be written: there is no folder {path.parent}.")


def print_json(document: Document) -> None:
    """A document on the standard output."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def console() -> Console:
    """The terminal."""
    from rich.console import Console

    return Console()


@contextmanager
def count_bar(name: str, wanted: bool) -> Iterator[Report | None]:
    """A bar that counts pieces of work, on the error stream, when a person is looking."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Progress | None]:
    """A progress bar on the error stream, when a person is looking."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("kernel statistic"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        update: Callable[[float], None] = lambda done: bar.update(task, completed=done)  # noqa: E731
        yield update
