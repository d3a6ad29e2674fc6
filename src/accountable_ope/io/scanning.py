"""A log that need not fit into memory: its Parquet files read in parts, each as validated `Transitions`.

Rows are in the order of generation: files one after the other, and the rows of each as they stand. A part may end within an
episode, and within a file; episodes are known again by their labels, whole numbers or text, wherever these are met later.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.copies import NO_COPIES, Copies, CopyFinder
from ..problem.transitions import Transitions
from ..validation import whole
from .coding import NO_WORDS
from .columns import ColumnNames, FileColumns
from .episode_labels import EpisodeLabels
from .following import order_finding
from .index_levels import counted, ranges_beside
from .log_columns import LogColumns, read_columns
from .log_files import LogFile, copied_files, find_files, ignored_files
from .reading import read_log
from .sources import unreadable

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

BATCH_ROWS = 2**16

BUFFER_BYTES = 2**20
"""So much of every column is read from a file at a time, however large its row groups are."""


@checked
@dataclass(frozen=True, eq=False)
class TransitionScan:
    """A log that is read in parts; made by `scan_transitions`. Iterating gives `Transitions`, every time the same.

    Labels of episodes are compared over the whole log, as numbers or as text: `Transitions.episode_numbers` of a part counts the
    episodes of the log as they begin, its `episodes` those of the part alone, and `Transitions.headless` marks rows of an episode
    that began in an earlier part. One entry per episode is kept while iterating, and nothing else grows with the log.

    Attributes
    ----------
    name : str
        The source, as given.
    files : tuple of LogFile
        In the order in which they are read, with the rows of each.
    batch_rows : int
        Rows of a part. The last one may have fewer, or one more: no part has a single row.
    columns : FileColumns
        Which columns are read under another name, and which are not used.
    skipped : int
        So many first rows of the files are left out; rows and episodes are counted from the first one after them.
    copies : Copies
        Rows of files that are copies of other files, byte by byte.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import accountable_ope as aope
    >>> log = aope.Transitions([0.0, 1.0, 2.0], [0, 1, 0], [0.5, 0.0, 1.0], [1.0, 2.0, 0.0], episodes=[7, 7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aope.save_transitions(log, Path(folder) / "monday.parquet")
    ...     aope.save_transitions(log, Path(folder) / "tuesday.parquet")
    ...     scan = aope.scan_transitions(folder, batch_rows=2)
    ...     print(scan.rows, [batch.headless.tolist() for batch in scan])
    6 [[False, False], [True, True], [True, True]]
    """

    name: str
    files: tuple[LogFile, ...]
    batch_rows: int
    columns: FileColumns
    _reading: LogColumns = field(repr=False)
    skipped: int = 0
    copies: Copies = NO_COPIES

    def __repr__(self) -> str:
        return f"TransitionScan({self.name}, {self.rows} rows in {len(self.files)} files, {self.batch_rows} rows at a time)"

    @cached_property
    def _ends(self) -> list[int]:
        """Of every file the row of the log behind its last one."""
        return list(accumulate(file.rows for file in self.files))

    @property
    def rows(self) -> int:
        """Of the whole log, as the footers of the files say."""
        return self._ends[-1] - self.skipped

    @checked
    def after(self, rows: int) -> TransitionScan:
        """The same log without its first rows, such as those that chose a class."""
        whole(rows, "rows", least=0)
        if rows + 2 > self.rows:
            raise InvalidInput(f"`rows` must leave at least two of {self.rows} rows. Got {rows}.")
        left = replace(self, skipped=self.skipped + rows)
        # Which rows are copies is not known any more where files are.
        return replace(left, copies=replace(self.copies, rows=min(self.copies.rows, left.rows)))

    def copy_finder(self) -> CopyFinder:
        """What looks for copies among the rows; it knows those that are left out, which must not come again either."""
        found, left = CopyFinder(since=self.skipped), self.skipped
        if left:
            for data in replace(self, skipped=0):
                found.take(data.rows(slice(0, left)) if len(data) > left else data)
                left -= len(data)
                if left <= 0:
                    break
        return found

    def __len__(self) -> int:
        return self.rows

    @property
    def left_out(self) -> int:
        """How many rows of the log are not in these files since their next states were not logged, as the files say."""
        return sum(file.left_out for file in self.files)

    @property
    def number_of_episodes(self) -> None:
        """Nobody knows before all rows were read."""
        return None

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The rows of every part."""
        full, rest = divmod(self.rows, self.batch_rows)
        if rest == 1 and full:  # transitions are at least two
            return (*[self.batch_rows] * (full - 1), self.batch_rows + 1)
        return (*[self.batch_rows] * full, rest) if rest else (self.batch_rows,) * full

    @checked
    def where(self, row: int) -> str:
        """Where a row of the log is found, rows counted from 0: its number in its file and in the log."""
        if not 0 <= row < self.rows:
            raise InvalidInput(f"`row` must be from 0 to {self.rows - 1}. Got {row}.")
        return self._place(self.skipped + row)

    def _place(self, row: int) -> str:
        """Of a row of all files."""
        if len(self.files) == 1:
            return f"row {row}"
        file = bisect_right(self._ends, row)
        return f"row {row - self._ends[file] + self.files[file].rows} of {self.files[file].name} (row {row} of the log)"

    def __iter__(self) -> Iterator[Transitions]:
        labels = EpisodeLabels()
        label, first = self._reading.layout.single.get("episode"), self.skipped
        for data, table in self._read(0, len(self.sizes)):
            if label is not None and data.episodes is not None:
                data = labels.numbered(data, table[label])
                wrong = labels.goes_on(data)
                if wrong is not None:
                    raise InvalidFile(
                        f"{self.name}: an episode must end where it is terminated. One that did goes on in "
                        f"{self._place(first + wrong)}: sort the rows by time, or give every episode a label of its own."
                    )
            yield data
            first += len(data)

    def absolute(self) -> TransitionScan:
        """The same log for a process that works in another folder: local files by their whole paths."""
        if self._reading.filesystem.type_name != "local":
            return self
        return replace(self, files=tuple(replace(file, path=os.path.abspath(file.path)) for file in self.files))

    def local_paths(self) -> tuple[str, ...]:
        """The whole paths of the first and the last file; none where the log does not lie on a disk of this machine."""
        if self._reading.filesystem.type_name != "local":
            return ()
        return tuple(dict.fromkeys(os.path.abspath(self.files[at].path) for at in (0, -1)))

    def parts(self, start: int, stop: int) -> Iterator[Transitions]:
        """The parts from number `start` on, before `stop`, without reading the row groups before them.

        Of their episodes, nobody knows which began earlier.
        """
        return (data for data, _ in self._read(start, stop))

    def _read(self, start: int, stop: int) -> Iterator[tuple[Transitions, pa.Table]]:
        """Parts with the columns that they were made from."""
        like: Transitions | None = None
        first = self.skipped + sum(self.sizes[:start])
        for table in self._tables(first, self.sizes[start:stop]):
            source = _PartSource(self, first, table)
            data = read_log(
                source, self._reading.ignore, self._reading.columns, policy=False, estimate=False, words=NO_WORDS
            ).data
            data = data.having_left_out(0)  # what a file says of the whole log is in `left_out`, once
            if like is not None:
                _check_alike(like, data, f"{source.name}: from {source.row(0)} on")
            like = data if like is None else like
            if source._file is None:
                self._check_order(first, data)
            yield data, table
            first += len(data)

    def _check_order(self, first: int, data: Transitions) -> None:
        """Raise where the rows of one of several files of a part are in no order: among those of the others they are few."""
        if data.episodes is None:
            return
        edges = [first, *(end for end in self._ends if first < end < first + len(data)), first + len(data)]
        for start, stop in pairwise(edges):
            rows = slice(start - first, stop - first)
            found = order_finding(data.states[rows], data.next_states[rows], data.terminated[rows], data.episodes[rows])
            if found is not None and found[0]:
                raise InvalidFile(f"{self.files[bisect_right(self._ends, start)].name}: {found[1]}.")

    def _tables(self, first: int, parts: Sequence[int]) -> Iterator[pa.Table]:
        """The columns of parts of these sizes from row `first` on, put together from the pieces in which files are read."""
        sizes = iter(parts)
        wanted = next(sizes, 0)
        pieces: list[pa.Table] = []
        have = 0
        for file, end in zip(self.files, self._ends, strict=True):
            if end <= first:
                continue
            for piece in self._pieces(file, max(first - (end - file.rows), 0)):
                start = 0
                while start < len(piece):
                    taken = min(len(piece) - start, wanted - have)
                    pieces.append(piece.slice(start, taken))
                    start, have = start + taken, have + taken
                    if have == wanted:
                        yield self._joined(pieces)
                        pieces, have = [], 0
                        wanted = next(sizes, 0)
                        if not wanted:
                            return

    def _joined(self, pieces: list[pa.Table]) -> pa.Table:
        import pyarrow as pa

        try:
            return pa.concat_tables(pieces, promote_options="permissive")
        except pa.ArrowException as error:
            raise InvalidFile(f"{self.name}: a column has different types in different files: {error}") from error

    def _pieces(self, file: LogFile, skipped: int) -> Iterator[pa.Table]:
        """The columns of one file without its first `skipped` rows, in pieces of at most `batch_rows` rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        given = [(name, value) for name, value in file.partition if name in self._reading.wanted]
        found = 0
        try:
            with (
                self._reading.filesystem.open_input_file(file.path) as stream,
                pq.ParquetFile(stream, buffer_size=BUFFER_BYTES, pre_buffer=False) as opened,
            ):
                if opened.metadata.num_rows != file.rows:
                    raise _changed(file)
                ranges = ranges_beside(opened.schema_arrow, file.rows)
                beside = [name for name in self._reading.wanted if name in ranges and name not in dict(given)]
                stored = [name for name in self._reading.wanted if name not in (*beside, *dict(given))]
                # One row group after the other: asked for all at once, pyarrow holds the whole file.
                for group in range(opened.num_row_groups):
                    if found + opened.metadata.row_group(group).num_rows <= skipped:
                        found += opened.metadata.row_group(group).num_rows
                        continue
                    for batch in opened.iter_batches(self.batch_rows, row_groups=[group], columns=stored):
                        found += len(batch)
                        if found <= skipped:
                            continue
                        piece = pa.Table.from_batches([batch]).slice(max(len(batch) - (found - skipped), 0))
                        for name in beside:
                            piece = piece.append_column(name, counted(ranges[name][found - len(piece) : found]))
                        for name, value in given:
                            piece = piece.append_column(name, pa.repeat(value, len(piece)))
                        yield piece.select(self._reading.wanted)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file.name, error) from error
        if found != file.rows:
            raise _changed(file)


@dataclass(frozen=True, eq=False)
class _PartSource:
    """One part as a source of columns that knows where its rows are found."""

    scan: TransitionScan
    first: int
    table: pa.Table

    @cached_property
    def _file(self) -> int | None:
        """The file that all rows of the part are of; None where there are several."""
        ends = self.scan._ends
        one = bisect_right(ends, self.first)
        return one if self.first + len(self.table) <= ends[one] else None

    @property
    def name(self) -> str:
        """The file, or what all files together are called."""
        return self.scan.name if self._file is None else self.scan.files[self._file].name

    @property
    def names(self) -> list[str]:
        """Of the columns, as the first file of the part has them."""
        return list(self.scan._reading.names[bisect_right(self.scan._ends, self.first)])

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Some columns."""
        return self.table.select(list(columns))

    def row(self, index: int) -> str:
        """Its number in the file and in the log, with the name of the file where `name` does not say it."""
        row = self.first + index
        if self._file is None or len(self.scan.files) == 1:
            return self.scan._place(row)
        before = self.scan._ends[self._file] - self.scan.files[self._file].rows
        return f"row {row - before} (row {row} of the log)"


def _changed(file: LogFile) -> InvalidFile:
    return InvalidFile(f"{file.name} has changed while it was read: it had {file.rows} rows, as its footer said.")


def _check_alike(one: Transitions, other: Transitions, where: str) -> None:
    """Raise where a part has other shapes than the first: arrays of the whole log would not fit together."""
    if other.states.shape[1] != one.states.shape[1]:
        raise InvalidFile(f"{where}, states have {other.states.shape[1]} columns, and {one.states.shape[1]} before.")
    if other.actions.shape[1:] != one.actions.shape[1:]:
        shapes = [f"vectors of {each.actions.shape[1]}" if each.actions.ndim == 2 else "indices" for each in (other, one)]
        raise InvalidFile(f"{where}, actions are {shapes[0]}, and {shapes[1]} before.")


@checked
def scan_transitions(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: ColumnNames | None = None,
    ignore: str | Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    filesystem: Any = None,
) -> TransitionScan:
    """A log in Parquet files that is read in parts, so that it need not fit into memory.

    Only the footers of the files are read now. A file that is cut off or is something else is named now, one with damaged pages
    when it is its turn. While iterating, one part of the log is in memory at a time, and a mebibyte of every column of a file.

    Parameters
    ----------
    source : path, or sequence of paths
        A file; a folder, of which all files are read that end in .parquet (also in folders within it, which may name columns, as
        `day=3` does); a pattern such as `logs/*.parquet`; a URI that pyarrow knows, such as `s3://bucket/logs`; or several files.
        Rows must be in the order of generation: **files of a folder or a pattern are read in the order of their names**, in which
        digits count as numbers (`part-2` before `part-10`); those of a sequence in its order.
    columns : mapping, optional
        Which columns are which, where their names do not say, as in `load_transitions`. A column of next states is needed: the
        following row of an episode may lie in another part.
    ignore : sequence of str
        Columns that are treated as if they were not there.
    batch_rows : int
        Rows that are read at a time, at least two.
    filesystem : pyarrow.fs.FileSystem, optional
        Where the source lies; None for the local one, or that of the URI.

    Returns
    -------
    TransitionScan

    Raises
    ------
    InvalidFile
        Where there is no such file, one of them is no Parquet file, or their columns are no transitions or differ. While
        iterating, the file and the row are named that cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import accountable_ope as aope
    >>> log = aope.Transitions([0.0, 1.0, 2.0], [0, 1, 0], [0.5, 0.0, 1.0], [1.0, 2.0, 0.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in (1, 2, 10):
    ...         aope.save_transitions(log, Path(folder) / f"day-{day}.parquet")
    ...     scan = aope.scan_transitions(folder, batch_rows=4)
    ...     print(len(scan), [Path(file.name).name for file in scan.files], [len(batch) for batch in scan])
    9 ['day-1.parquet', 'day-2.parquet', 'day-10.parquet'] [4, 5]
    """
    whole(batch_rows, "batch_rows", least=2)
    found = find_files(source, filesystem)
    reading = read_columns(found, (ignore,) if isinstance(ignore, str) else tuple(ignore), columns)
    if not any(file.rows for file in found.files):
        raise InvalidFile(f"{found.name} has no rows.")
    remarks, copies = copied_files(found)
    used = replace(reading.layout.columns, file=found.name, remarks=(*ignored_files(found), *remarks))
    return TransitionScan(found.name, found.files, int(batch_rows), used, reading, copies=copies)
