"""What commands share: exit codes, results as text or JSON, files, pictures and progress bars."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..bounds.interval import Interval
from ..bounds.weighed import answer_of
from ..errors import AopeError, InvalidFile, InvalidInput
from ..io.columns import FileColumns
from ..io.files import place, same_file, whole_file
from ..problem.statements import Status
from ..report.document import Counted, Document, columns_document, ladder_document
from ..report.fragility import fragility_document
from ..report.html import report_html
from ..report.label import labeled
from ..report.made import Made
from ..report.plots import new_figure, save_figure
from .curves import print_misfit_norms
from .exits import DOUBTED, INCONSISTENT, VACUOUS
from .options import AsJson, Plot
from .saying import Said, print_said
from .text import print_columns, print_ladder, print_recipe
from .typed import typed_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXIT_CODES = {Status.OK: 0, Status.DOUBTED: DOUBTED, Status.VACUOUS: VACUOUS, Status.INCONSISTENT: INCONSISTENT}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """Text or JSON, and a picture on request."""

    as_json: AsJson = False
    plot: Plot = None

    def check(self, inputs: Iterable[Path] = (), others: Mapping[str, Path | None] | None = None) -> None:
        """Before any work: is there something to draw with, a format to draw in, and a place for the picture?"""
        if self.plot is not None:
            check_plot(self.plot)
        check_places({**(others or {}), "--plot": self.plot}, inputs)

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


def check_places(outputs: Mapping[str, Path | None], inputs: Iterable[Path] = ()) -> None:
    """Before any work: can every file be written, without replacing an input, another output or where the text goes?

    outputs: option or argument -> path.
    """
    read, before = list(inputs), dict[str, Path]()
    for option, path in outputs.items():
        if path is None:
            continue
        place(path)
        for other in read:
            if same_file(path, other):
                raise InvalidInput(f"{option} {path} would replace an input, {other}.")
        for name, other in before.items():
            if same_file(path, other):
                raise InvalidInput(f"{name} and {option} must be different files. Both are {path}.")
        if _is_a_stream(path):
            raise InvalidInput(f"{option} {path} is the file that the printed result goes to.")
        before[option] = path


def check_kept(path: Path | None, read: Callable[[Path], object]) -> None:
    """Before any work: does --keep name a Parquet file that is new, or one of an earlier run, as it can be read?"""
    if path is None:
        return
    if path.suffix != ".parquet":
        raise InvalidInput(f"--keep must end in .parquet. Got {path.name!r}.")
    if not path.exists():
        return
    try:
        read(path)
    except AopeError as error:
        raise InvalidInput(f"--keep {path} would replace a file of something else: {error}") from error


def check_folder(option: str, path: Path | None) -> None:
    """Before any work: can this folder be made or used?"""
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{option} {path} cannot be used as a folder: {error.strerror}.") from error
    if not os.access(path, os.W_OK):
        raise InvalidFile(f"{option} {path} cannot be used as a folder: permission denied.")


def _is_a_stream(path: Path) -> bool:
    """Whether standard output or error were sent to this file."""
    for stream in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), os.stat(path)):
                return True
    return False


def exit_code(intervals: Sequence[Interval]) -> int:
    """0 when what answers says something and no class that it rests on was refuted or is doubted, else why not."""
    statuses = {answer_of(interval).status for interval in intervals}
    worst = next(status for status in (Status.INCONSISTENT, Status.DOUBTED, Status.OK, Status.VACUOUS) if status in statuses)
    return EXIT_CODES[worst]


def show(
    intervals: Sequence[Interval],
    data: Counted,
    as_json: bool,
    report: Path | None,
    title: str,
    truth: float | None = None,
    to_beat: float | None = None,
    columns: Sequence[FileColumns] = (),
    said: Said | None = None,
    repeat: str | None = None,
) -> None:
    """A ladder as text or JSON, and as a report on request; beside it the values of both policies, where they are known.

    columns: how those of the files were read, where there are files.
    said:    what comes before all else; by default the verdict on the last interval.
    repeat:  the whole command that gives the same, where something was chosen.
    """
    first = Said.of(intervals[-1]) if said is None else said
    if as_json:
        document = bound_document(intervals, data, first) | (columns_document(columns) if columns else {})
        print_json("bound", document | ({} if repeat is None else {"repeat": repeat}))
    else:
        led = first.verdict.leading is not None  # then doubts are of what comes below
        print_said(console(), first, () if led else intervals[-1].doubts)
        print_ladder(console(), intervals, truth, to_beat, doubts=led, names=columns[0].states if columns else ())
        if first.misfit_norms is not None:
            print_misfit_norms(console(), first.misfit_norms)
        print_recipe(console(), intervals[-1].recipe, repeat)
        print_columns(console(), columns)
    if report is not None:
        recipe = intervals[-1].recipe
        remarks = [] if recipe is None else [str(each) for each in recipe.statements()]
        remarks += [] if first.misfit_norms is None else [str(each) for each in first.misfit_norms.statements]
        remarks += [] if intervals[-1].engine is None else [str(intervals[-1].engine)]
        remarks += [sentence for each in columns for sentence in each.sentences()]
        names = columns[0].states if columns else ()
        made = Made.now(typed_words())
        page = report_html(intervals, data, title, truth, to_beat, remarks, first.verdict, first.breakdown, names, made)
        write_text(report, page)
        note(f"Report: {report}")


def write_text(path: Path, text: str) -> None:
    """Written atomically."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def bound_document(intervals: Sequence[Interval], data: Counted, said: Said) -> Document:
    """A ladder for machines, without what belongs to its files."""
    return said.document() | ladder_document(intervals, data) | {"fragility": fragility_document(intervals[-1])}


def json_text(kind: str, document: Document) -> str:
    """A document as it is printed and written; kind: of its schema."""
    return json.dumps(labeled(kind, document), indent=2, allow_nan=False)


def print_json(kind: str, document: Document) -> None:
    """A document on the standard output."""
    print(json_text(kind, document))


def note(text: str) -> None:
    """A remark on the error stream, beside the result."""
    print(text, file=sys.stderr)


def announce(text: str) -> None:
    """A remark before any work, for a person at a terminal; the result repeats it for everybody else."""
    if sys.stderr.isatty():
        note(text)


def console() -> Console:
    """The terminal."""
    return Console(highlight=False, emoji=False)


class Meter(Protocol):
    """How far a piece of work has come."""

    def __call__(self, done: float, total: float = 1.0, /) -> None: ...


def within_stage(phase: Callable[[str], Meter | None], name: str) -> Callable[[str], Meter | None]:
    """Stages inside of one that has a name: both are shown."""
    return lambda inner: phase(name if inner == name else f"{name}: {inner}")


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
