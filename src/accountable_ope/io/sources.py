"""Where columns come from: a Parquet file, a CSV file, or an Arrow table that is in memory already."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import InvalidFile
from .index_levels import counted, ranges_beside

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

TABS = (".tsv", ".tsv.gz")
CSV = (".csv", ".csv.gz", *TABS)
"""How the names of CSV files end, those with tabs between columns among them; all others are read as Parquet."""

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
"""How the names of files end that a spreadsheet program must save as CSV first."""

HEADER_BYTES = 2**20
"""The first line of a CSV file lies within these."""


class Source(Protocol):
    """Named columns of one length."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def names(self) -> list[str]:
        """Of the columns, in their order."""
        ...

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Some columns; those in `text` as they are written, if that is a question."""
        ...

    def row(self, index: int) -> str:
        """Where a row is found, rows counted from 0."""
        ...


@dataclass(frozen=True, eq=False)
class ArrowSource:
    """A table in memory, such as what a data frame exports."""

    name: str
    table: pa.Table

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return list(self.table.column_names)

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Some columns."""
        return self.table.select(list(dict.fromkeys(columns))) if columns else self.table

    def row(self, index: int) -> str:
        """Its number."""
        return f"row {index}"


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """A Parquet file, of which the columns that are asked for are read; ranges that its metadata name are columns too."""

    name: str
    names: list[str]

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Some columns."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.name) as file:
            ranges, wanted = ranges_beside(file.schema_arrow, file.metadata.num_rows), list(dict.fromkeys(columns))
            found = file.read([name for name in wanted if name not in ranges])
        for name in wanted:
            if name in ranges:
                found = found.append_column(name, counted(ranges[name]))
        return found

    def row(self, index: int) -> str:
        """Its number."""
        return f"row {index}"


@dataclass(frozen=True, eq=False)
class CsvSource:
    """A CSV file: its first line names the columns, commas part them, and a number has a decimal point."""

    name: str
    names: list[str]
    delimiter: str = ","

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Some columns, with types that all of their entries have; an empty cell is a missing value."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if not columns:
            columns = self.names[:1]
        columns = list(dict.fromkeys(columns))  # the steps of an episode may be a part of the state, too
        bad: list[arrow_csv.InvalidRow] = []

        def note(row: arrow_csv.InvalidRow) -> str:
            bad.append(row)
            return "skip"

        convert = arrow_csv.ConvertOptions(
            include_columns=list(columns), column_types={name: pa.string() for name in text}, strings_can_be_null=True
        )
        # One thread: then an invalid row knows its number.
        found = arrow_csv.read_csv(
            self.name,
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=note, newlines_in_values=True),
            convert_options=convert,
        )
        if bad:
            where = "" if bad[0].number is None else f"Line {bad[0].number}"
            raise InvalidFile(
                f"{self.name}: {where or 'A line'} has {bad[0].actual_columns} entries, the header names "
                f"{bad[0].expected_columns} columns."
            )
        return found

    def row(self, index: int) -> str:
        """Its number, and the line below the header on which an editor shows it."""
        return f"row {index} (line {index + 2})"


def open_source(path: str | os.PathLike[str]) -> Source:
    """The columns of a file, by how its name ends.

    Raises
    ------
    InvalidFile
        Where there is no such file, or its columns have no names.
    """
    import pyarrow as pa

    name = os.fspath(path)
    if not Path(path).is_file():
        raise InvalidFile(f"{name} is not a file.")
    if name.lower().endswith(SPREADSHEETS):
        raise InvalidFile(
            f"{name} is a spreadsheet, which is not read: save the sheet as CSV (in the spreadsheet program, or by "
            'pandas.read_excel(...).to_csv("log.csv", index=False)).'
        )
    try:
        return _open_csv(name) if name.lower().endswith(CSV) else _open_parquet(name)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns may be damaged too
        raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> InvalidFile:
    """What to say of a file that is damaged, or is something else."""
    kind = "CSV" if name.lower().endswith(CSV) else "Parquet"
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    hint = "" if kind == "CSV" or name.lower().endswith(".parquet") else " (A CSV file has a name that ends in .csv.)"
    return InvalidFile(f"{name} cannot be read as {kind}: {reason}{hint}")


def _open_parquet(name: str) -> ParquetSource:
    import pyarrow.parquet as pq

    with pq.ParquetFile(name) as file:
        return ParquetSource(name, [*file.schema_arrow.names, *ranges_beside(file.schema_arrow, file.metadata.num_rows)])


def _open_csv(name: str) -> CsvSource:
    """Its header, or why it has none."""
    import pyarrow as pa

    with pa.input_stream(name, compression="gzip" if name.lower().endswith(".gz") else None) as stream:
        start = stream.read(HEADER_BYTES)
    if b"\0" in start:
        raise InvalidFile(f"{name} cannot be read as CSV: it is no text.")
    text = start.decode("utf-8-sig", errors="replace")  # letters of columns that nobody reads may be damaged
    delimiter = "\t" if name.lower().endswith(TABS) else ","
    names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    if not any(each.strip() for each in names):
        raise InvalidFile(f"{name} has no header: its first line must name the columns.")
    if delimiter == "\t" and len(names) == 1 and "," in names[0]:
        raise InvalidFile(f"{name} has its columns parted by commas: call it .csv, or save it with tabs between columns.")
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and mark in names[0]:
            raise InvalidFile(
                f"{name} has its columns parted by {word}: save it with commas between columns, and points in decimal numbers"
                f"{' (or call it .tsv).' if word == 'tabs' else '.'}"
            )
    if all(_is_number(each) for each in names):
        raise InvalidFile(f"{name} has no header: its first line must name the columns. It holds numbers, first {names[0]}.")
    return CsvSource(name, names, delimiter)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
