"""The Parquet files of one log: where they are, in which order, and how many rows each has, from their footers alone."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..problem.copies import MATTERS, NO_COPIES, WINDOW, Copies
from ..validation import describe
from .column_names import LEFT_OUT
from .columns import listed
from .sources import CSV, unreadable

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

PARQUET = (".parquet", ".parq", ".pq")
"""How the names of the files end that are read from a folder."""

TAIL = 2**16
"""Bytes at the end of a file that are compared first."""

Path = str | os.PathLike[str]


@checked
@dataclass(frozen=True)
class LogFile:
    """One file of a log.

    Attributes
    ----------
    name : str
        What it is called in messages.
    path : str
        Where its filesystem finds it.
    rows : int
        How many rows it has.
    partition : tuple of (str, value)
        Columns that its folders name, as `day=3` does, with the value that all of its rows have there.
    left_out : int
        How many rows of the log were left out when it was written, since they had no next state.
    size : int
        Its bytes.
    """

    name: str
    path: str
    rows: int = 0
    partition: tuple[tuple[str, int | str | None], ...] = ()
    left_out: int = 0
    size: int = 0


@dataclass(frozen=True, eq=False)
class LogFiles:
    """What a source stands for.

    Attributes
    ----------
    name : str
        What all files together are called in messages.
    filesystem : pyarrow FileSystem
    files : tuple of LogFile
        In the order of the log.
    schemas : tuple of pyarrow Schema
        Of every file, without the columns that folders name.
    ignored : tuple of str
        Other files in the folder.
    base : str
        Folders in this part of every path name no columns.
    """

    name: str
    filesystem: Any
    files: tuple[LogFile, ...]
    schemas: tuple[pa.Schema, ...]
    ignored: tuple[str, ...] = ()
    base: str = ""


def find_files(source: Path | Sequence[Path], filesystem: Any = None) -> LogFiles:
    """The files of a file, folder, pattern, URI or list, their footers read.

    Raises
    ------
    InvalidFile
        Where there are none, or one of them is no Parquet file, which is then named.
    """
    import pyarrow as pa
    from pyarrow import fs

    if filesystem is not None and not isinstance(filesystem, fs.FileSystem):
        raise InvalidInput(f"`filesystem` must be a pyarrow.fs.FileSystem, or None for local files. Got {describe(filesystem)}.")
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        try:
            found = _found(name, filesystem)
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidFile(f"{name} cannot be read: {_reason(error)}") from error
    else:
        found = _listed(source, filesystem or fs.LocalFileSystem())
    for file in found.files:
        if file.name.lower().endswith(CSV):
            raise InvalidFile(f"{file.name} is a CSV file: only Parquet files are read in parts. Use load_transitions for it.")
    footers = [_footer(found.filesystem, file) for file in found.files]  # first: a damaged file is named
    try:
        files = _partitioned(found.filesystem, [file for file, _ in footers], found.base)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidFile(f"{found.name}: the folders name columns that do not fit: {_reason(error)}") from error
    return replace(found, files=tuple(files), schemas=tuple(schema for _, schema in footers))


def in_order(names: Sequence[str]) -> list[str]:
    """Sorted by name, folder by folder, digits as the number that they are: `part-2` stands before `part-10`."""
    return sorted(names, key=lambda name: ([_parts(part) for part in name.replace(os.sep, "/").split("/")], name))


def _parts(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]


def _found(name: str, filesystem: Any) -> LogFiles:
    """One text: a URI, a file, a folder or a pattern."""
    from pyarrow import fs

    path = name
    if filesystem is None:
        filesystem = fs.LocalFileSystem()
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
            filesystem, path = fs.FileSystem.from_uri(name)
        elif not os.path.exists(name) and glob.has_magic(name):
            names = in_order([each for each in glob.glob(name, recursive=True) if os.path.isfile(each)])
            if not names:
                raise InvalidFile(f"{name} fits no file.")
            return LogFiles(name, filesystem, tuple(LogFile(each, each) for each in names), ())
    kind = filesystem.get_file_info(path).type
    if kind == fs.FileType.File:
        return LogFiles(name, filesystem, (LogFile(name, path),), (), base=path)
    if kind != fs.FileType.Directory:
        raise InvalidFile(f"{name} is neither a file nor a folder.")
    return _in_folder(name, filesystem, path)


def _in_folder(name: str, filesystem: Any, path: str) -> LogFiles:
    """All Parquet files in a folder and in those inside it; what begins with a dot or an underscore is bookkeeping of others."""
    from pyarrow import fs

    inside = [each.path for each in filesystem.get_file_info(fs.FileSelector(path, recursive=True)) if each.is_file]
    below = {each[len(path) :].strip("/"): each for each in inside}
    shown = [each for each in in_order(list(below)) if not any(part.startswith((".", "_")) for part in each.split("/"))]
    chosen = [each for each in shown if each.lower().endswith(PARQUET)]
    if not chosen:
        raise InvalidFile(f"{name} holds no Parquet file (a name that ends in .parquet).")
    files = [LogFile(f"{name.rstrip('/')}/{each}", below[each]) for each in chosen]
    ignored = tuple(each for each in shown if each not in chosen)
    return LogFiles(name, filesystem, tuple(files), (), ignored, path)


def _listed(source: Sequence[Path], filesystem: Any) -> LogFiles:
    """Files as they are given, in the order in which they are given."""
    names = [os.fspath(each) for each in source]
    if not names:
        raise InvalidInput("`source` must name at least one file. Got an empty list.")
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise InvalidInput(f"`source` must name every file once. {twice[0]} is named twice.")
    for name in names:
        try:
            is_file = filesystem.get_file_info(name).is_file
        except (OSError, ValueError) as error:
            raise InvalidFile(f"{name} cannot be read: {_reason(error)}") from error
        if not is_file:
            raise InvalidFile(f"{name} is not a file.")
    together = names[0] if len(names) == 1 else f"{len(names)} files, {names[0]} to {names[-1]}"
    return LogFiles(together, filesystem, tuple(LogFile(name, name) for name in names), ())


def _partitioned(filesystem: Any, files: Sequence[LogFile], base: str) -> list[LogFile]:
    """The values of columns that folders name (`day=3/part-0.parquet`), with one type for each over all files."""
    from pyarrow import dataset

    if not any("=" in file.path[len(base) :] for file in files):
        return list(files)
    paths = [file.path for file in files]
    found = dataset.dataset(paths, filesystem=filesystem, format="parquet", partitioning="hive", partition_base_dir=base or None)
    values = {each.path: dataset.get_partition_keys(each.partition_expression) for each in found.get_fragments()}
    return [replace(file, partition=tuple(values[file.path].items())) for file in files]


def _footer(filesystem: Any, file: LogFile) -> tuple[LogFile, pa.Schema]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with filesystem.open_input_file(file.path) as stream, pq.ParquetFile(stream) as opened:
            said = (opened.schema_arrow.metadata or {}).get(LEFT_OUT.encode(), b"0").decode()
            if not said.isdecimal():
                raise InvalidFile(f"{file.name} says in its metadata that {said!r} rows were left out, which is no number.")
            found = replace(file, rows=opened.metadata.num_rows, left_out=int(said), size=stream.size())
            return found, opened.schema_arrow
    except InvalidFile:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # names of columns may be damaged too
        raise unreadable(file.name, error) from error


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def copied_files(found: LogFiles) -> tuple[tuple[str, ...], Copies]:
    """A remark on files that are byte by byte alike, and how many rows are copies.

    Of most files the size, or the end with its statistics, tells that they are others.
    """
    files = [file for file in found.files if file.rows]
    for look in (lambda file: file.size, lambda file: _content(found, file, TAIL), lambda file: _content(found, file, None)):
        alike: dict[object, list[LogFile]] = {}
        for file in files:
            alike.setdefault(look(file), []).append(file)
        files = [file for group in alike.values() if len(group) > 1 for file in group]
    if not files:
        return (), NO_COPIES
    groups = [each for each in alike.values() if len(each) > 1]
    group = groups[0]
    more = len(files) - len(groups) - 1
    others = f" ({more} more files are copies)" if more else ""
    said = (
        f"{group[1].name} is a copy of {group[0].name}, byte by byte{others}: its rows count twice, as if others had shown the "
        "same again, and an interval of them is too narrow. Take copies out of the log.",
    )
    rows = sum(file.rows for file in found.files)
    excess = sum(each[0].rows * len(each) * (len(each) - 1) for each in groups) / rows
    if max(each[0].rows for each in groups) >= WINDOW:  # so many bytes are the same by mistake, whatever their share
        excess = max(excess, MATTERS)
    return said, Copies(sum(each[0].rows * (len(each) - 1) for each in groups), excess)


def _content(found: LogFiles, file: LogFile, last: int | None) -> bytes | str:
    """The SHA-256 of a file, or of its last bytes; its name where it cannot be read, which is said where its rows are."""
    content = hashlib.sha256()
    try:
        with found.filesystem.open_input_file(file.path) as stream:
            if last is not None:
                stream.seek(max(file.size - last, 0))
            while part := stream.read(2**20):
                content.update(part)
    except OSError:
        return file.name
    return content.digest()


def ignored_files(found: LogFiles) -> tuple[str, ...]:
    """What a reader of the result must know of the folder."""
    return (f"Files not read: {listed(found.ignored)} ({found.name}).",) if found.ignored else ()
