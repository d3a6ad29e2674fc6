"""How the columns of all files of a log are read: as those of its first file, which the others must have too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import InvalidFile
from .column_names import LOG, wanted_columns
from .columns import ColumnNames, Layout, layout
from .index_levels import ranges_beside
from .log_files import LogFile, LogFiles
from .table import missing_column

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class LogColumns:
    """Which columns of the files are which.

    Attributes
    ----------
    filesystem : pyarrow FileSystem
    layout : Layout
        Of every file.
    names : tuple of tuple of str
        All columns of every file, those that its folders name last.
    ignore : tuple of str
        Columns that are treated as if they were not there.
    columns : mapping or None
        Which columns are which, as the caller says.
    """

    filesystem: Any
    layout: Layout
    names: tuple[tuple[str, ...], ...]
    ignore: tuple[str, ...]
    columns: ColumnNames | None

    @cached_property
    def wanted(self) -> list[str]:
        """The columns that are read, by their names in the files."""
        numbered = (name for parts in self.layout.numbered.values() for name in parts)
        return [*self.layout.single.values(), *numbered]


def read_columns(found: LogFiles, ignore: tuple[str, ...], columns: ColumnNames | None) -> LogColumns:
    """The columns of a log without those of a target policy or an estimate.

    Raises
    ------
    InvalidFile
        Where one is missing, a name may mean one of them, or a file has others than the first.
    """
    names = [_names(file, schema) for file, schema in zip(found.files, found.schemas, strict=True)]
    wanted = wanted_columns(LOG, policy=False, estimate=False)
    layouts = [layout(file.name, each, LOG, wanted, ignore, columns) for file, each in zip(found.files, names, strict=True)]
    for base in ("state", "action", "reward", "next_state"):
        if base not in layouts[0].single and base not in layouts[0].numbered:
            raise _missing(found.files[0].name, names[0], base)
    for number in range(1, len(layouts)):
        _check_same(found, layouts, number)
    return LogColumns(found.filesystem, layouts[0], tuple(names), ignore, columns)


def _names(file: LogFile, schema: pa.Schema) -> tuple[str, ...]:
    """The columns of a file, those that its metadata or its folders name last."""
    return tuple(dict.fromkeys((*schema.names, *ranges_beside(schema, file.rows), *(name for name, _ in file.partition))))


def _missing(file: str, names: Sequence[str], base: str) -> InvalidFile:
    if base != "next_state":
        return missing_column(file, names, base)
    return InvalidFile(
        f"{file} has no column `next_state` (nor `next_state_0`), which a log that is read in parts needs: the following row of "
        "an episode may lie in another part. What load_transitions reads from it, save_transitions writes with next states."
    )


def _check_same(found: LogFiles, layouts: Sequence[Layout], number: int) -> None:
    """Raise unless the columns that are read are those of the first file, and of the same kind."""
    file, first = found.files[number].name, found.files[0].name
    for base in LOG:
        one, other = (each.single.get(base) or each.numbered.get(base) for each in (layouts[0], layouts[number]))
        if one != other:
            lacks, has, which = (file, first, one) if one is not None else (first, file, other)
            name = which if isinstance(which, str) else (which or (base,))[0]
            raise InvalidFile(
                f"{lacks} has no column `{name}` for the `{base}`, as {has} has: files of one log have the same columns."
            )
        for name in () if one is None else (one,) if isinstance(one, str) else one:
            kinds = [_kind(found.schemas[k], name) for k in (0, number)]
            if "" not in kinds and kinds[0] != kinds[1]:
                raise InvalidFile(f"{file}: column `{name}` holds {kinds[1]}, and {kinds[0]} in {first}.")


def _kind(schema: pa.Schema, name: str) -> str:
    """What a column holds, in a word; nothing where it is empty or not stored in the file."""
    import pyarrow as pa

    if name not in schema.names:
        return ""
    kind = schema.field(name).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return ""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "lists"
    return "True or False" if pa.types.is_boolean(kind) else str(kind)
