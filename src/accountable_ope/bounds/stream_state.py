"""A pass over a log that is kept in a file while it runs, so that one which was stopped goes on from there.

What is kept are the sums and all else that rows which have gone by left behind, never the rows. A pass that goes on reads those
again, without computing anything from them, since their SHA-256 names the log in the certificate; so a log that has changed since
is found out by its numbers. The interval is that of a pass which was never stopped, to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, place, save_arrays
from ..io.scanning import TransitionScan
from ..io.shelf import Shelf
from ..problem.fingerprint import Fingerprint
from ..radii.accounting import DeltaSplit
from ..radii.choice import Choice
from ..radii.registry import RadiusRule
from .log_begun import LogBegun

PARTS = 32
"""The state is written after so many parts: with 65,536 rows each that is every ten seconds or so."""

WHAT = "the state of a stopped pass"

_TEXTS = ("asked", "files", "sha256", "rows_sha256")

_LEFT = "It is left as it is: name another file, or delete it."


class Resumable(Protocol):
    """Takes rows in, and can be kept in a file; `ValueError` where `resume` finds something that cannot be."""

    @property
    def rows(self) -> int:
        """How many have gone by."""
        ...

    def keep(self, shelf: Shelf) -> None: ...

    def resume(self, shelf: Shelf) -> None: ...


@dataclass(frozen=True)
class Asked:
    """One thing that a pass was asked, or rests on."""

    name: str
    value: str


def asked_of(
    scan: TransitionScan, logs: Sequence[LogBegun], rule: RadiusRule, split: DeltaSplit, chosen: Choice, memory: int
) -> tuple[Asked, ...]:
    """All that the numbers of a pass depend on, but for the files.

    A policy or an estimate cannot be named; what they do at the first rows can, and stands in the columns of these.
    """
    first = logs[0].question
    each_class = [
        found
        for log in logs
        for found in (
            Asked("the class", f"{log.question.subject.features} ({log.question.subject.fingerprint[:12]})"),
            Asked("what policy, features and estimate are at the first rows", _columns_sha256(log)),
        )
    ]
    return (
        Asked("the version of accountable_ope", version("accountable-ope")),
        Asked("the radius", rule.name),
        Asked("`delta`", repr(split.total)),
        Asked("where delta goes", repr(split)),
        Asked("`memory`", str(memory)),
        Asked("the number of rows in a part", str(scan.batch_rows)),
        Asked("the number of first rows left out", str(scan.skipped)),
        Asked("what was chosen when", repr(chosen)),
        Asked("the kernel", first.subject.kernel),
        Asked("what is assumed", repr(first.question.assumptions)),
        Asked("the SHA-256 of the start states", first.question.starts.sha256),
        *each_class,
    )


def _columns_sha256(log: LogBegun) -> str:
    digest = hashlib.sha256()
    for each in (log.first.points, log.first.residuals, log.first.target, log.first.objective):
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()[:16]


class StreamState:
    """The file in which a pass is kept.

    path: ends in .npz. Where there is such a file it is read at once, and refused where it is damaged or something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.suffix != ".npz":
            raise InvalidInput(f"`resume` must be a file that ends in .npz. Got {str(self.path)!r}.")
        place(self.path)
        self._found = _read(self.path) if self.path.exists() else None
        self._asked: tuple[Asked, ...] = ()
        self._files = ""

    def check_log(self, scan: TransitionScan) -> None:
        """Raise where the file is of another log, as far as names, rows and bytes of its files tell."""
        files = [[os.path.basename(file.name), file.rows, file.size] for file in scan.files]
        self._files = json.dumps(files)
        if self._found is None:
            return
        passed = scan.skipped + self._found.count("passed")
        known = _parsed(self.path, self._found, "files", 3)
        if len(known) != len(files):
            raise self._of_another("log", f"that had {len(known)} files, and this one has {len(files)}")
        start = 0
        for old, new, file in zip(known, files, scan.files, strict=True):
            if old[:2] != new[:2]:
                raise self._of_another("log", f"{old[0]} with {old[1]} rows stood where {new[0]} with {new[1]} rows stands now")
            if start < passed and old != new:
                raise self._of_another("log", f"{new[0]} had {old[2]} bytes when its rows were summed, and has {new[2]} now")
            start += file.rows

    def resume(self, asked: tuple[Asked, ...], passing: Sequence[Resumable]) -> int:
        """Take over what was kept, where it is of this question; how many rows of the log that covers."""
        asked = self._asked = (Asked("the number of things that rows are summed for", str(len(passing))), *asked)
        if self._found is None:
            return 0
        known = [Asked(str(name), str(value)) for name, value in _parsed(self.path, self._found, "asked", 2)]
        for old, new in zip(known, asked, strict=False):
            if old != new:
                named = old.name if old.name == new.name else f"{old.name}, or {new.name},"
                raise self._of_another("question", f"{named} was {old.value} there, and is {new.value} here")
        if len(known) != len(asked):
            raise self._of_another("question", f"{len(known)} things were asked there, and {len(asked)} here")
        try:
            for index, each in enumerate(passing):
                each.resume(self._found.within(f"class_{index}"))
            rows = self._found.count("passed")
            if any(each.rows != rows for each in passing):
                raise ValueError(f"its sums are not those of {rows} rows")
        except (ValueError, OverflowError) as error:
            raise _damaged(self.path, error) from error
        return rows

    def check_rows(self, sha256: str, rows: int) -> None:
        """Raise where the rows that were read again are not those that were summed."""
        assert self._found is not None
        if self._found.count("passed") != rows:
            raise _damaged(self.path, ValueError(f"its {self._found.count('passed')} rows end within a part"))
        if str(self._found.arrays["rows_sha256"]) != sha256:
            raise self._of_another("log", "rows that were summed have other numbers now")
        self._found = None  # its arrays have been copied

    def keep(self, passing: Sequence[Resumable], rows: int, sha256: str) -> None:
        """Write where the pass stands, in one piece or not at all."""
        shelf = Shelf()
        for index, each in enumerate(passing):
            each.keep(shelf.within(f"class_{index}"))
        shelf.put("passed", rows)
        shelf.put("asked", np.array(json.dumps([[each.name, each.value] for each in self._asked])))
        shelf.put("files", np.array(self._files))
        shelf.put("rows_sha256", np.array(sha256))
        shelf.put("sha256", np.array(shelf.sha256))
        save_arrays(self.path, shelf.arrays)

    def remove(self) -> None:
        """The pass is done."""
        self.path.unlink(missing_ok=True)

    def _of_another(self, what: str, why: str) -> InvalidInput:
        return InvalidInput(f"{self.path} is the state of another {what}: {why}. {_LEFT}")


class KeptPass:
    """Counts the rows of a pass, and has it kept from time to time.

    state:   where; None: nowhere.
    passing: the pass, of every class.
    name:    takes the rows in.
    done:    so many first rows were summed before, and are only read again.
    """

    def __init__(self, state: StreamState | None, passing: Sequence[Resumable], name: Fingerprint, done: int) -> None:
        self.rows = 0
        self._state, self._passing, self._name, self._done = state, passing, name, done
        self._new, self._whole, self._known = 0, True, done == 0

    @contextmanager
    def part(self, rows: int) -> Iterator[None]:
        """While a part is taken in, which must end well before anything is kept."""
        self._whole = False
        yield
        self.rows += rows
        if self._state is not None:
            if self._known:
                self._new += 1
            elif self.rows >= self._done:
                self._state.check_rows(self._name.hexdigest(), self.rows)
                self._known = True
        self._whole = True
        if self._new >= PARTS:
            self.keep()

    def keep(self) -> None:
        """Write it, where there is something new and no part is half taken."""
        if self._state is not None and self._new and self._whole:
            self._state.keep(self._passing, self.rows, self._name.hexdigest())
            self._new = 0


@contextmanager
def keeping(state: StreamState | None, passing: Sequence[Resumable], name: Fingerprint, done: int) -> Iterator[KeptPass]:
    """A pass that is kept from time to time, and when it is stopped by an error or by hand between two parts."""
    kept = KeptPass(state, passing, name, done)
    try:
        yield kept
    except BaseException:
        with suppress(InvalidFile):  # what stopped it is said, and not that it cannot be kept
            kept.keep()
        raise


def _read(path: Path) -> Shelf:
    arrays = load_arrays(path, WHAT, (*_TEXTS, "passed"))
    if any(arrays[name].dtype.kind != "U" or arrays[name].ndim for name in _TEXTS):
        raise _damaged(path, ValueError("its names are no text"))
    said = str(arrays.pop("sha256"))
    found = Shelf(arrays)
    try:
        found.count("passed")
        if found.sha256 != said:
            raise ValueError("its numbers are not those that were written")
    except ValueError as error:
        raise _damaged(path, error) from error
    return found


def _parsed(path: Path, found: Shelf, name: str, width: int) -> list[list[Any]]:
    """A list of lists of this length, from its text."""
    try:
        rows = [list(each) for each in json.loads(str(found.arrays[name]))]
        if any(len(row) != width for row in rows):
            raise ValueError(f"its {name} are of another kind")
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(path, error) from error
    return rows


def _damaged(path: Path, error: Exception) -> InvalidFile:
    return InvalidFile(f"{path} is not {WHAT} ({error}).")
