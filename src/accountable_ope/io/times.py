"""Columns that show when a row happened, as numbers that can be compared: dates, times, durations, and text that is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..validation import BoolArray, plural
from .table import Table
from .words import holds_words

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

CLOCK = r"^\d\d:\d\d(:\d\d(\.\d+)?)?$"
"""A time of day as text."""

UNITS = ("ns", "us", "s")
"""Of timestamps, the finest first: nanoseconds end in the year 2262."""


@dataclass(frozen=True, eq=False)
class Times:
    """When each row happened.

    Attributes
    ----------
    name : str
        The column, as a sentence calls it.
    values : array (n,) of int or float
        Larger is later.
    missing : array (n,) of bool
        Where nothing is known.
    clock : bool
        Whether these are times of day, which start again at midnight.
    entries : pyarrow.ChunkedArray
        The column as it stands there.
    """

    name: str
    values: NDArray[Any]
    missing: BoolArray
    clock: bool
    entries: pa.ChunkedArray

    def shown(self, row: int) -> str:
        """An entry as it is written."""
        try:
            entry = self.entries[row].as_py()
        except (ValueError, OverflowError, LookupError):  # nanoseconds, years and time zones that Python does not know
            entry = self.values[row]
        return f"{entry:.15g}" if isinstance(entry, float) else str(entry)


def read_times(table: Table, base: str) -> Times | None:
    """A column that shows when; None where it is not there, or holds what nobody can compare, which is remarked."""
    import pyarrow as pa

    name = table.single(base)
    if name is None:
        return None
    entries = table.entries(name)
    if pa.types.is_dictionary(entries.type):
        entries = entries.cast(entries.type.value_type)
    comparable, clock = _comparable(entries)
    called = table.called(base)
    if comparable is None:
        held = "text that is not throughout a time such as 2020-01-31 10:00" if holds_words(entries) else str(entries.type)
        table.remark(f"The order of rows was not checked by {called}: it holds {held}")
        return None
    missing = comparable.is_null().to_numpy()
    values = (comparable.fill_null(0) if comparable.null_count else comparable).to_numpy()
    missing = missing | np.isnan(values)
    if missing.any():
        values_missing = plural(int(missing.sum()), "missing value", "missing values")
        table.remark(f"The order of rows was not checked by {called} where it has {missing.sum():,} {values_missing}")
    return Times(called, values, missing, clock, entries)


def _comparable(entries: pa.ChunkedArray) -> tuple[pa.ChunkedArray | None, bool]:
    """As whole numbers or floats, and whether they are times of day."""
    import pyarrow as pa

    kind = entries.type
    if holds_words(entries):
        return _of_text(entries.cast(pa.large_string()))
    if pa.types.is_null(kind) or pa.types.is_decimal(kind):
        return entries.cast(pa.float64()), False
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return entries, False
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return entries.cast(pa.int32()), pa.types.is_time32(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind) or pa.types.is_time64(kind) or pa.types.is_duration(kind):
        return entries.cast(pa.int64()), pa.types.is_time64(kind)
    return None, False


def _of_text(text: pa.ChunkedArray) -> tuple[pa.ChunkedArray | None, bool]:
    """Numbers, timestamps or times of day where all entries are such; a CSV file holds them likewise."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(text)
    clock = bool(pc.all(pc.match_substring_regex(text, CLOCK)).as_py())
    if clock:
        text = pc.binary_join_element_wise(pa.scalar("1970-01-01", text.type), text, pa.scalar(" ", text.type))
    for kind in (pa.float64(), *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC"))):
        try:
            found = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        return (found if kind == pa.float64() else found.cast(pa.int64())), clock
    return None, False
