"""What commands share: exit codes, results as text or JSON, files, pictures and progress bars."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..bounds.interval import Interval
from ..errors import InvalidFile, InvalidInput
from ..io.files import whole_file
from ..problem.statements import Status
from ..problem.transitions import Transitions
from ..report.document import Document, ladder_document
from ..report.html import report_html
from ..report.plots import new_figure, save_figure
from .exits import INCONSISTENT, VACUOUS
from .options import AsJson, Plot
from .text import print_ladder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXIT_CODES = {Status.OK: 0, Status.VACUOUS: VACUOUS, Status.INCONSISTENT: INCONSISTENT}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """Text or JSON, and a picture on request."""

    as_json: AsJson = False
    plot: Plot = None

    def check(self) -> None:
        """Before any work: is there something to draw with, a format to draw in, and a place for the picture?"""
        if self.plot is not None:
            check_plot(self.plot)

    def draw(self, figure: Callable[[], Figure]) -> None:
        """Draw the picture that was asked for."""
        if self.plot is not None:
            save_figure(figure(), self.plot)
            note(f"Plot: {self.plot}")


def check_plot(path: Path) -> None:
    """Can this picture be drawn?"""
    new_figure(1, 1)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"A plot must end in .png, .svg or .pdf. Got {path.name!r}.")
    check_folder(path)


def check_folder(path: Path) -> None:
    """Is there a folder to write this file to?"""
    if not path.absolute().parent.is_dir():
        raise InvalidFile(f"{path} cannot be written: there is no folder {path.parent}.")


def exit_code(intervals: Sequence[Interval]) -> int:
    """0 when an interval says something and no class was refuted, else why not."""
    statuses = {interval.status for interval in intervals}
    worst = next(status for status in (Status.INCONSISTENT, Status.OK, Status.VACUOUS) if status in statuses)
    return EXIT_CODES[worst]


def show(
    intervals: Sequence[Interval],
    data: Transitions,
    as_json: bool,
    report: Path | None,
    title: str,
    truth: float | None = None,
    to_beat: float | None = None,
) -> None:
    """A ladder as text or JSON, and as a report on request; beside it the values of both policies, where they are known."""
    if as_json:
        print_json(ladder_document(intervals, data))
    else:
        print_ladder(console(), intervals, truth, to_beat)
    if report is not None:
        write_text(report, report_html(intervals, data, title, truth, to_beat))
        note(f"Report: {report}")


def write_text(path: Path, text: str) -> None:
    """Written atomically."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def json_text(document: Document) -> str:
    """A document as it is printed and written."""
    return json.dumps(document, indent=2, allow_nan=False)


def print_json(document: Document) -> None:
    """A document on the standard output."""
    print(json_text(document))


def note(text: str) -> None:
    """A remark on the error stream, beside the result."""
    print(text, file=sys.stderr)


def console() -> Console:
    """The terminal."""
    return Console(highlight=False)


class Meter(Protocol):
    """How far a piece of work has come."""

    def __call__(self, done: float, total: float = 1.0, /) -> None: ...


@contextmanager
def progress(as_json: bool) -> Iterator[Callable[[str], Meter | None]]:
    """A bar on the error stream, when a person is looking; each phase of the work names itself and gets its own meter."""
    if as_json or not sys.stderr.isatty():
        yield lambda name: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def phase(name: str) -> Meter:
            bar.reset(task, description=name, total=None)

            def meter(done: float, total: float = 1.0, /) -> None:
                counted = "" if total == 1 else f" {done:g} of {total:g}"
                bar.update(task, description=f"{name}{counted}", completed=done, total=total)

            return meter

        yield phase
