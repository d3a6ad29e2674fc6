"""Rows in Parquet files, and a folder of such files that a run resumes from."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import InvalidFile
from ..io.files import whole_file

R = TypeVar("R")

_VERSION = b"accountable-ope"


def save_rows(rows: Sequence[Any], path: str | os.PathLike[str], *, compact: bool = False) -> None:
    """Write dataclass instances of one type atomically, with a column per field and the version of the package.

    compact: in as few bytes as possible, for a file that is kept.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({field.name: [getattr(row, field.name) for row in rows] for field in fields(rows[0])})
    with whole_file(path) as partial:
        how = {"compression": "zstd", "compression_level": 19} if compact else {}
        pq.write_table(table.replace_schema_metadata({_VERSION: _version().encode()}), partial, **how)


def load_rows(row_type: type[R], path: str | os.PathLike[str], *, any_version: bool = True) -> tuple[R, ...]:
    """Read what `save_rows` wrote; files that another version of the package wrote are refused on request."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        columns = [
            [field.default] * len(table)
            if field.name not in table.column_names and field.default is not MISSING
            else table.column(field.name).to_pylist()
            for field in fields(row_type)  # type: ignore[arg-type]
        ]
    except (OSError, KeyError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InvalidFile(f"{os.fspath(path)} does not hold rows of type {row_type.__name__} ({error}).") from error
    writer = (table.schema.metadata or {}).get(_VERSION, b"").decode()
    if not any_version and writer != _version():
        name = f"accountable-ope {writer}" if writer else "something else"
        raise InvalidFile(f"{os.fspath(path)} was made by {name}, this is accountable-ope {_version()}: use another folder.")
    return tuple(row_type(*values) for values in zip(*columns, strict=True))


@dataclass(frozen=True)
class Store(Generic[R]):
    """A folder with one file per finished piece of work. Files of another version of the package are refused."""

    folder: Path
    row_type: type[R]

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidFile(f"{self.folder} cannot be used as a folder: {error}") from error

    def read(self, name: str) -> tuple[R, ...] | None:
        """Return the rows of a piece, or None where it is not finished."""
        path = self._path(name)
        return self._load(path) if path.exists() else None

    def read_all(self) -> Iterator[R]:
        """Yield the rows of every file, in the order of the files' names."""
        for path in sorted(self.folder.glob("*.parquet")):
            if ".partial" not in path.suffixes:  # left behind by a killed run
                yield from self._load(path)

    def write(self, name: str, rows: Sequence[R]) -> None:
        """Keep the rows of a finished piece."""
        save_rows(rows, self._path(name))

    def _load(self, path: Path) -> tuple[R, ...]:
        return load_rows(self.row_type, path, any_version=False)

    def _path(self, name: str) -> Path:
        """The beginning of the name, for people, and a hash of all of it."""
        digest = hashlib.sha256(name.encode()).hexdigest()[:20]
        return self.folder / f"{re.sub('[^A-Za-z0-9.]+', '-', name)[:60]}-{digest}.parquet"


def _version() -> str:
    try:
        return version("accountable-ope")
    except PackageNotFoundError:
        return "unknown"
