"""Named levels of an index of pandas, which are columns wherever the frame is met: itself, its Parquet file, its Arrow table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput

if TYPE_CHECKING:  # both take a tenth of a second to import: only when a frame or a file is touched
    import narwhals as nw
    import pyarrow as pa


def named_levels(frame: nw.DataFrame[Any], called: str) -> dict[str, nw.Series[Any]]:
    """The levels of the index of a frame that have a name; those without one only count rows.

    Raises
    ------
    InvalidInput
        Where a level has the name of a column or of another level, or one that is no text.
    """
    import narwhals as nw

    native = frame.to_native()
    index = nw.maybe_get_index(frame)
    if index is None:
        import pyarrow as pa

        ranges = ranges_beside(native.schema, len(native)) if isinstance(native, pa.Table) else {}
        return {name: nw.from_native(pa.chunked_array([counted(each)]), series_only=True) for name, each in ranges.items()}
    numbers = {number: name for number, name in enumerate(index.names) if name is not None}
    for name in numbers.values():
        if not isinstance(name, str):
            raise InvalidInput(
                f"{called} has a level of its index called {name!r}, which is no text: rename it, or take "
                "frame.reset_index(drop=True) if it tells nothing."
            )
    twice = _twice(list(numbers.values()), frame.columns)
    if twice is not None:
        raise InvalidInput(
            f"{called} has `{twice}` as a level of its index and as another level or a column: rename one of them, or take "
            "frame.reset_index(drop=True) if the index tells nothing more."
        )
    return {name: _level(index, number) for number, name in numbers.items()}


def ranges_beside(schema: pa.Schema, rows: int) -> dict[str, range]:
    """Named ranges that pandas keeps in the metadata of a table instead of a column, for an index that counts rows.

    Those of another length are left out, as pandas does: the rows are no longer those that were counted.
    """
    found = {}
    about = schema.pandas_metadata or {}
    for each in about.get("index_columns", ()):
        if isinstance(each, dict) and each.get("kind") == "range" and isinstance(each.get("name"), str):
            count = range(each["start"], each["stop"], each["step"])
            if len(count) == rows and each["name"] not in schema.names:
                found[each["name"]] = count
    return found


def counted(numbers: range) -> pa.Array:
    """A range as a column."""
    import pyarrow as pa

    return pa.array(np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64))


def _twice(levels: list[str], columns: Collection[str]) -> str | None:
    """A name that does not say which one is meant."""
    times = Counter(levels)
    return next((name for name in levels if times[name] > 1 or name in columns), None)


def _level(index: Any, number: int) -> nw.Series[Any]:
    """Whatever the library is: only the methods that all that are like pandas have."""
    import narwhals as nw

    native = index.get_level_values(number).to_frame(index=False, name="level")
    column: nw.Series[Any] = nw.from_native(native, eager_only=True).get_column("level")
    return column
