"""The columns of a Parquet file as NumPy arrays without missing values."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidFile
from ..validation import BoolArray, FloatArray, plural
from .columns import FileColumns, layout

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

NEARLY_ONE = 1e-6
"""How far from one probabilities may sum, by rounding."""


class Table:
    """Columns by their known names: `state` is one list column, or `state_0`, `state_1`, ... side by side."""

    def __init__(
        self, path: str | os.PathLike[str], known: Sequence[str], wanted: Collection[str], ignore: Collection[str]
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.name = os.fspath(path)
        if not Path(path).is_file():
            raise InvalidFile(f"{self.name} is not a file.")
        try:
            with pq.ParquetFile(path) as file:
                self._names: list[str] = file.schema_arrow.names
                self._layout = layout(self.name, self._names, known, wanted, (ignore,) if isinstance(ignore, str) else ignore)
                parts = [*([name] for name in self._layout.single.values()), *self._layout.numbered.values()]
                self._table: pa.Table = file.read([name for part in parts for name in part])
                rows = file.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns may be damaged too
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidFile(f"{self.name} cannot be read as Parquet: {reason}") from error
        if rows == 0:
            raise InvalidFile(f"{self.name} has no rows.")

    @property
    def columns(self) -> FileColumns:
        """Which columns were read under another name, and which were not used."""
        return self._layout.columns

    def required(self, base: str) -> NDArray[Any]:
        """A column that must be there."""
        found = self.optional(base)
        if found is None:
            names = ", ".join(self._names) or "none"
            raise InvalidFile(f"{self.name} has no column `{base}` (nor `{base}_0`). Its columns: {names}.")
        return found

    def optional(self, base: str, text: bool = False) -> NDArray[Any] | None:
        """A column that may be there; `text`: words are as good as numbers."""
        if base in self._layout.single:
            return self._column(self._layout.single[base], text)
        if base not in self._layout.numbered:
            return None
        parts = []
        for name in self._layout.numbered[base]:
            part = self._column(name)
            if part.ndim != 1:
                raise InvalidFile(f"{self.name}: column `{name}` must hold one number per row.")
            parts.append(part)
        return np.column_stack([part.astype(np.float64) for part in parts])

    def numbers(self, base: str, where: BoolArray | None = None) -> FloatArray | None:
        """A column as (n, k), finite in the rows that are used."""
        found = self.optional(base)
        if found is None:
            return None
        values: FloatArray = np.asarray(found.astype(np.float64).reshape(len(found), -1))
        wrong = ~np.isfinite(values).all(axis=1) & (True if where is None else where)
        if wrong.any():
            raise InvalidFile(f"{self.name}: column `{base}` has NaN or infinite entries, first in row {int(np.argmax(wrong))}.")
        return values

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
                f"{self.name}: column `{base}` {_complaint(values[used], values[row].tolist(), sums[row])}, in row {row}."
            )
        return values

    def _column(self, name: str, text: bool = False) -> NDArray[Any]:
        import pyarrow as pa

        column: pa.ChunkedArray = self._table[name]
        if column.null_count:
            missing = plural(column.null_count, "missing value", "missing values")
            row = int(np.argmax(column.is_null().to_numpy()))
            raise InvalidFile(f"{self.name}: column `{name}` has {column.null_count} {missing} (nulls), first in row {row}.")
        kind = column.type
        if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._list_column(name, column)
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            if not text:
                shown = str(column[0].as_py())
                shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
                raise InvalidFile(f"{self.name}: column `{name}` must hold numbers. It holds text, first {shown!r} in row 0.")
            return np.asarray(column.to_pylist(), dtype=np.str_)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InvalidFile(f"{self.name}: column `{name}` must hold numbers. It holds {kind}.")
        return np.asarray(column.to_numpy())

    def _list_column(self, name: str, column: pa.ChunkedArray) -> NDArray[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        lengths = pc.list_value_length(column).to_numpy()
        wrong = (lengths != lengths[0]) | (lengths == 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidFile(
                f"{self.name}: lists in column `{name}` must all have the same positive length. Row {row} has "
                f"{int(lengths[row])}, row 0 has {int(lengths[0])}."
            )
        flat = pc.list_flatten(column)
        if flat.null_count:
            missing = plural(flat.null_count, "missing value", "missing values")
            row = int(np.argmax(flat.is_null().to_numpy())) // int(lengths[0])
            raise InvalidFile(
                f"{self.name}: column `{name}` has {flat.null_count} {missing} (nulls) inside its lists, first in row {row}."
            )
        if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
            raise InvalidFile(f"{self.name}: column `{name}` must hold lists of numbers. It holds {column.type}.")
        return np.asarray(flat.to_numpy().astype(np.float64).reshape(-1, int(lengths[0])))


SHOWN = 30
"""Letters of a wrong value that a message repeats."""


def _complaint(values: FloatArray, row: list[float], total: float) -> str:
    """What is wrong with a row that is no distribution over the actions."""
    if min(row) < -1e-9:
        return f"has a negative probability: {row}"
    if len(row) == 1:
        return f"must hold the probabilities of all actions, a list or numbered columns. It holds one number, {row[0]:g}"
    if np.allclose(values.sum(axis=1), 100, atol=1):
        return f"must hold probabilities that sum to one. These look like percent, sum {total:g}"
    return f"must hold probabilities that sum to one. These are {row}, sum {total:.6g}"
