"""The columns of a file as NumPy arrays without missing values, wherever they come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidFile
from ..problem.naming import UNNAMED, Naming
from ..validation import BoolArray, FloatArray, plural
from .column_names import BEGUN, LEFT_OUT, SAMPLE
from .columns import ColumnNames, FileColumns, did_you_mean, layout, listed
from .names import NAMING, read_naming
from .sources import Source, unreadable
from .words import advice

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

NEARLY_ONE = 1e-6
"""How far from one probabilities may sum, by rounding."""

FLAGS = {word: flag for flag, words in ((True, "true t yes y 1"), (False, "false f no n 0")) for word in words.split()}
"""Words for True and False, in small letters."""

LABELS = ("episode",)
"""Columns whose entries are names: they are taken as they are written."""

EXACT = 2**53
"""Beyond this, float64 does not tell whole numbers apart."""


class Table:
    """Columns by their known names: `state` is one list column, or `state_0`, `state_1`, ... side by side."""

    def __init__(
        self,
        source: Source,
        known: Sequence[str],
        wanted: Collection[str],
        ignore: Collection[str] = (),
        columns: ColumnNames | None = None,
    ) -> None:
        import pyarrow as pa

        self.name = source.name
        self._source = source
        self._layout = layout(self.name, source.names, known, wanted, (ignore,) if isinstance(ignore, str) else ignore, columns)
        self._remarks: list[str] = []
        single, numbered = self._layout.single, self._layout.numbered
        parts = [*([name] for name in single.values()), *numbered.values()]
        names = [name for part in parts for name in part]
        try:
            self._table: pa.Table = source.read(names, [single[base] for base in LABELS if base in single])
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise unreadable(self.name, error) from error
        if names and self._table.num_rows == 0:
            raise InvalidFile(f"{self.name} has no rows.")

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def left_out(self) -> int:
        """How many rows were left out of the log when it was saved, for want of a next state."""
        said = (self._table.schema.metadata or {}).get(LEFT_OUT.encode(), b"0").decode()
        if not said.isdecimal():
            raise InvalidFile(f"{self.name} says in its metadata that {said!r} rows were left out, which is no number.")
        return int(said)

    @property
    def begun_before(self) -> list[str]:
        """Labels of episodes whose first rows are not in this file, as it says."""
        said = (self._table.schema.metadata or {}).get(BEGUN.encode(), b"").decode()
        return said.split(",") if said else []

    @property
    def is_sample(self) -> bool:
        """Whether start states were saved as an i.i.d. sample."""
        return SAMPLE.encode() in (self._table.schema.metadata or {})

    @property
    def saved_naming(self) -> Naming:
        """Names of columns of the states and of actions that were saved with the rows."""
        said = (self._table.schema.metadata or {}).get(NAMING.encode())
        return UNNAMED if said is None else read_naming(said, self.name)

    @property
    def columns(self) -> FileColumns:
        """Which columns were read under another name, which were not used, and what else is to be said."""
        return replace(self._layout.columns, remarks=tuple(self._remarks))

    def remark(self, sentence: str) -> None:
        """Something that a reader of the result must know."""
        self._remarks.append(f"{sentence} ({self.name}).")

    def row(self, index: int) -> str:
        """Where a row is found."""
        return self._source.row(index)

    def called(self, base: str) -> str:
        """A column as the file calls it, and what it was read as where that is something else."""
        if base in self._layout.single:
            name = self._layout.single[base]
            return f"`{name}`" if name == base else f"`{name}` (read as {base})"
        parts = self._layout.numbered.get(base, ())
        named = parts and not all(name.rpartition("_")[0] == base for name in parts)
        return f"`{', '.join(parts)}` (read as {base})" if named else f"`{base}`"

    def parts(self, base: str) -> tuple[str, ...]:
        """The columns that hold it, as the file calls them."""
        single = self._layout.single.get(base)
        return self._layout.numbered.get(base, ()) if single is None else (single,)

    def single(self, base: str) -> str | None:
        """The one column that holds it, as the file calls it; None where there are several, or none."""
        return self._layout.single.get(base)

    def entries(self, name: str) -> pa.ChunkedArray:
        """A column as it stands there, by its name in the file."""
        return self._table[name]

    def has(self, base: str) -> bool:
        """Whether a column is there, and is read."""
        return base in self._layout.single or base in self._layout.numbered

    def required(self, base: str) -> NDArray[Any]:
        """A column that must be there."""
        found = self.optional(base)
        if found is None:
            raise self.missing(base)
        return found

    def missing(self, base: str) -> InvalidFile:
        """What to say where a column is not there."""
        return missing_column(self.name, self._source.names, base)

    def optional(self, base: str, text: bool = False, holes: bool = False) -> NDArray[Any] | None:
        """A column that may be there; `text`: words are as good as numbers; `holes`: missing values become NaN."""
        if base in self._layout.single:
            return self._column(self._layout.single[base], text, holes)
        if base not in self._layout.numbered:
            return None
        return np.column_stack([self.one_per_row(name, holes) for name in self._layout.numbered[base]])

    def one_per_row(self, name: str, holes: bool = False) -> FloatArray:
        """A column of numbers by its name in the file; `holes`: missing values become NaN."""
        found = self._column(name, holes=holes)
        if found.ndim != 1:
            raise InvalidFile(f"{self.name}: column `{name}` must hold one number per row.")
        return self.floats(f"`{name}`", found)

    def floats(self, called: str, found: NDArray[Any]) -> FloatArray:
        """As float64; whole numbers that it cannot tell apart are refused."""
        if found.dtype.kind in "iu":
            beyond = (found > EXACT) | (found < -EXACT) if found.dtype.kind == "i" else found > EXACT
            if beyond.any():
                row = int(np.argmax(beyond.reshape(len(found), -1).any(axis=1)))
                raise InvalidFile(
                    f"{self.name}: column {called} has whole numbers beyond 2^53, which are rounded to others, first in "
                    f"{self.row(row)}. Ids are no quantities: leave them out, or make categories of them."
                )
        return np.asarray(found.astype(np.float64))

    def flags(self, base: str) -> NDArray[Any] | None:
        """True or False, in words too: true, false, yes, no."""
        found = self.optional(base, text=True)
        if found is None or found.dtype.kind != "U":
            return found
        flags = [FLAGS.get(str(word).strip().lower()) for word in found]
        if None in flags:
            row = flags.index(None)
            raise InvalidFile(
                f"{self.name}: column {self.called(base)} must hold True or False (or yes and no, 1 and 0). It holds "
                f"{short(str(found[row]))} in {self.row(row)}."
            )
        return np.array(flags, dtype=bool)

    def where_used(self, base: str, where: BoolArray) -> FloatArray:
        """A column as (n, k), finite in the rows that are used, and NaN or anything else in the others."""
        found = self.numbers(base, where)
        assert found is not None
        return found

    def numbers(self, base: str, where: BoolArray | None = None) -> FloatArray | None:
        """A column as (n, k), finite in the rows that are used."""
        found = self.optional(base, holes=where is not None)
        if found is None:
            return None
        values = self.floats(self.called(base), found).reshape(len(found), -1)
        self.refuse_non_finite(base, values, where)
        return values

    def refuse_non_finite(self, base: str, values: FloatArray, where: BoolArray | None) -> None:
        """Raise where a row that is used has an entry that is no number."""
        wrong = ~np.isfinite(values).all(axis=1) & (True if where is None else where)
        if wrong.any():
            row = self.row(int(np.argmax(wrong)))
            raise InvalidFile(f"{self.name}: column {self.called(base)} has NaN or infinite entries, first in {row}.")

    def refuse_nulls(self, name: str) -> None:
        """Raise where a column has missing values."""
        column = self._table[name]
        if column.null_count:
            missing = plural(column.null_count, "missing value", "missing values")
            where = self.row(int(np.argmax(column.is_null().to_numpy())))
            raise InvalidFile(
                f"{self.name}: column `{name}` has {column.null_count} {missing} (nulls), first in {where}.{self._remedy(name)}"
            )

    def _remedy(self, name: str) -> str:
        """What to do about missing values: those of a state can be known as such, all others are lost."""
        states = {*self._layout.numbered.get("state", ()), self._layout.single.get("state")}
        if name not in states:
            return ""
        return (
            " That it was not measured is a part of the state: fill it, and add a column that is 1 where it was missing, else 0."
        )

    def probabilities(self, base: str, where: BoolArray | None = None) -> FloatArray | None:
        """Probabilities of all actions, one column each, that sum to one in the rows that are used."""
        values = self.numbers(base, where)
        if values is None:
            return None
        used = np.ones(len(values), dtype=bool) if where is None else where
        sums = values.sum(axis=1)
        wrong = used & ((np.abs(sums - 1) > NEARLY_ONE) | (values < -1e-9).any(axis=1))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidFile(
                f"{self.name}: column {self.called(base)} {_complaint(values[used], values[row].tolist(), sums[row])}, in "
                f"{self.row(row)}."
            )
        return values

    def _column(self, name: str, text: bool = False, holes: bool = False) -> NDArray[Any]:
        import pyarrow as pa

        column: pa.ChunkedArray = self._table[name]
        if not holes:
            self.refuse_nulls(name)
        kind = column.type
        if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._list_column(name, column, holes)
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            if not text:
                row, shown = first_word(column.to_pylist())
                raise InvalidFile(
                    f"{self.name}: column `{name}` must hold numbers. It holds text, first {short(shown)} in {self.row(row)}."
                )
            return np.asarray(column.to_pylist(), dtype=np.str_)
        if holes and (pa.types.is_null(kind) or pa.types.is_boolean(kind)):
            return np.full(len(column), np.nan) if pa.types.is_null(kind) else self._column(name)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InvalidFile(f"{self.name}: column `{name}` must hold numbers. It holds {kind}{advice(kind)}.")
        return np.asarray(column.to_numpy())

    def _list_column(self, name: str, column: pa.ChunkedArray, holes: bool = False) -> NDArray[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if column.null_count:  # whole lists are missing
            there = column.is_valid().to_numpy()
            if not there.any():
                raise InvalidFile(f"{self.name}: column `{name}` has nothing but missing values.")
            part = self._list_column(name, column.filter(column.is_valid()), holes)
            whole = np.full((len(there), part.shape[1]), np.nan)
            whole[there] = part
            return whole
        lengths = pc.list_value_length(column).to_numpy()
        wrong = (lengths != lengths[0]) | (lengths == 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidFile(
                f"{self.name}: lists in column `{name}` must all have the same positive length: it is "
                f"{int(lengths[row])} in {self.row(row)}, {int(lengths[0])} in {self.row(0)}."
            )
        flat = pc.list_flatten(column)
        if flat.null_count and not holes:
            missing = plural(flat.null_count, "missing value", "missing values")
            row = int(np.argmax(flat.is_null().to_numpy())) // int(lengths[0])
            raise InvalidFile(
                f"{self.name}: column `{name}` has {flat.null_count} {missing} (nulls) inside its lists, first in "
                f"{self.row(row)}."
            )
        if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
            raise InvalidFile(f"{self.name}: column `{name}` must hold lists of numbers. It holds {column.type}.")
        return np.asarray(flat.to_numpy().astype(np.float64).reshape(-1, int(lengths[0])))


def missing_column(file: str, names: Sequence[str], base: str) -> InvalidFile:
    """What to say where a column is not there."""
    if list(names) == ["item"]:
        return InvalidFile(f"{file} holds whole episodes as RLlib packs them: let it write rows, by output_write_episodes=False.")
    # A state is several columns with names of their own: one that merely sounds like it is not meant.
    near, like = ("", "NAME,NAME") if base == "state" else (did_you_mean(base, names), "NAME")
    hint = f"{near} Say which it is: --column {base}={like}."
    return InvalidFile(f"{file} has no column `{base}` (nor `{base}_0`). Its columns: {listed(names)}.{hint}")


SHOWN = 30
"""Letters of a wrong value that a message repeats."""


def short(word: str) -> str:
    """A wrong value as a message repeats it."""
    return repr(word if len(word) <= SHOWN else f"{word[:SHOWN]}...")


def first_word(entries: Sequence[object]) -> tuple[int, str]:
    """The first entry that is no number, where it stands; the first of all where each is one."""
    words = [str(word) for word in entries]
    for row, word in enumerate(words):
        try:
            float(word)
        except ValueError:
            return row, word
    return 0, words[0]


def _complaint(values: FloatArray, row: list[float], total: float) -> str:
    """What is wrong with a row that is no distribution over the actions."""
    if min(row) < -1e-9:
        return f"has a negative probability: {row}"
    if len(row) == 1:
        return f"must hold the probabilities of all actions, a list or numbered columns. It holds one number, {row[0]:g}"
    if np.allclose(values.sum(axis=1), 100, atol=1):
        return f"must hold probabilities that sum to one. These look like percent, sum {total:g}"
    return f"must hold probabilities that sum to one. These are {row}, sum {total:.6g}"
