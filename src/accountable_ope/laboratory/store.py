"""Trials in a folder of Parquet files: each is written whole, and all of them together are the table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import InvalidFile
from ..io.files import whole_file
from .trial import Trial

_VERSION = b"accountable-ope"
_NAMES = tuple(field.name for field in fields(Trial))


class TrialFolder:
    """A folder of chunks. Rows of several runs add up; rows of another version of the package are refused."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidFile(f"{self.folder} cannot be used as a folder: {error}") from error

    def read(self) -> Iterator[Trial]:
        """Every stored trial, file by file; once, also where two runs at the same time computed it twice."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        seen: set[tuple[str, int, int, str, float]] = set()
        for path in sorted(self.folder.glob("*.parquet")):
            if ".partial" in path.suffixes:
                continue  # what a killed run left behind
            try:
                table = pq.read_table(path)
                columns = [table.column(name).to_pylist() for name in _NAMES]
            except (OSError, KeyError, pa.ArrowException) as error:
                raise InvalidFile(f"{path} is not a file of coverage trials ({error}).") from error
            made_by = (table.schema.metadata or {}).get(_VERSION, b"").decode()
            if made_by != _version():
                maker = f"accountable-ope {made_by}" if made_by else "something else"
                raise InvalidFile(f"{path} was made by {maker}, this is accountable-ope {_version()}: use another folder.")
            for values in zip(*columns, strict=True):
                row = Trial(*values)
                key = (row.family, row.n, row.trial, row.method, row.delta)
                if key not in seen:
                    yield row
                seen.add(key)

    def write(self, rows: Sequence[Trial]) -> Path:
        """One chunk as one file; its name says what is in it, so that the same chunk goes to the same file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        first, last = rows[0], rows[-1]
        methods = ",".join(dict.fromkeys(row.method for row in rows))
        digest = hashlib.sha256(methods.encode()).hexdigest()[:8]
        span = f"{first.trial:06d}-{last.trial:06d}"
        path = self.folder / f"{first.family}_n{first.n}_delta{first.delta!r}_trials{span}_{digest}.parquet"
        table = pa.table({name: [getattr(row, name) for row in rows] for name in _NAMES})
        with whole_file(path) as partial:
            pq.write_table(table.replace_schema_metadata({_VERSION: _version().encode()}), partial)
        return path


def read_trials(folder: str | os.PathLike[str]) -> Iterator[Trial]:
    """Every trial that a folder holds."""
    if not Path(folder).is_dir():
        raise InvalidFile(f"{os.fspath(folder)} is not a folder.")
    return TrialFolder(folder).read()


def _version() -> str:
    try:
        return version("accountable-ope")
    except PackageNotFoundError:
        return "unknown"
