"""Cells of an experiment in parallel, kept in files so that nothing is computed twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from ..errors import InvalidFile
from ..io.files import whole_file
from ..parallel import Report, as_finished, processes

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Cell(Protocol[R_co]):
    """A piece of work that can be sent to another process. Its name says all that its rows depend on."""

    @property
    def name(self) -> str: ...

    def run(self) -> Sequence[R_co]: ...


def run_cells(
    cells: Sequence[Cell[R]],
    row_type: type[R],
    *,
    folder: Path | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> tuple[R, ...]:
    """The rows of all cells, in the order of the cells. Cells whose rows the folder holds are not run again.

    workers: processes; None: one per core; 1: none but this one.
    """
    cores = processes(workers)
    kept = None if folder is None else _Parts(folder, row_type)
    found: dict[str, Sequence[R]] = {}
    missing = []
    for cell in cells:
        rows = None if kept is None else kept.read(cell.name)
        if rows is None:
            missing.append(cell)
        else:
            found[cell.name] = rows
    if report is not None:
        report(len(found), len(cells))
    with closing(as_finished(_run, missing, cores)) as results:
        for cell, rows in results:
            if kept is not None:
                kept.write(cell.name, rows)
            found[cell.name] = rows
            if report is not None:
                report(len(found), len(cells))
    return tuple(row for cell in cells for row in found[cell.name])


def save_rows(rows: Sequence[Any], path: Path) -> None:
    """A table with a column per field; the file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({field.name: [getattr(row, field.name) for row in rows] for field in fields(rows[0])})
    with whole_file(path) as partial:
        pq.write_table(table, partial)


def load_rows(row_type: type[R], path: Path) -> tuple[R, ...]:
    """What `save_rows` wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        columns = [table.column(field.name).to_pylist() for field in fields(row_type)]  # type: ignore[arg-type]
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InvalidFile(f"{path} does not hold rows of this experiment ({error}).") from error
    return tuple(row_type(*values) for values in zip(*columns, strict=True))


class _Parts:
    """One file per cell, named by a hash of the cell's name."""

    def __init__(self, folder: Path, row_type: type[Any]) -> None:
        self.folder, self.row_type = folder / "parts", row_type
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidFile(f"{folder} cannot be used as a folder: {error}") from error

    def _path(self, name: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.parquet"

    def read(self, name: str) -> Sequence[Any] | None:
        path = self._path(name)
        return load_rows(self.row_type, path) if path.exists() else None

    def write(self, name: str, rows: Sequence[Any]) -> None:
        save_rows(rows, self._path(name))


def _run(cell: Cell[R]) -> Sequence[R]:
    with threadpool_limits(limits=1):
        return cell.run()
