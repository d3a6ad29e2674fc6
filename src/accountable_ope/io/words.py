"""Columns that hold words: categories of the state become zeros and ones, labels of actions become indices.

Text that is nearly a number is no word: a cell that was typed wrongly must not turn a column of numbers into one of categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.naming import Categories, Label, Naming
from ..validation import FloatArray

if TYPE_CHECKING:  # pyarrow takes a tenth of a second to import: only when a file is touched
    import pyarrow as pa

MOST_WORDS = 50
"""A column of the state with more different words holds identifiers or remarks, not categories."""

MOST_LABELS = 1000
"""So does a column of actions."""

AROUND_NUMBERS = " %<>=~$€£+"
"""Signs that people write around numbers."""


def holds_words(column: pa.ChunkedArray) -> bool:
    """Whether a column holds text, or categories with text for names."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_declared(column: pa.ChunkedArray) -> bool:
    """Whether its entries were said to be categories, whatever they look like."""
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type))


def words_of(columns: Sequence[pa.ChunkedArray]) -> tuple[str, ...]:
    """The different words of columns that share them.

    Sorted, so that they do not depend on the order of the rows or on how the column is stored; where categories have an order of
    their own (an ordered Categorical, an Enum) they stand in that order, with those that do not occur.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ordered: list[str] = []
    found: set[str] = set()
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        if is_declared(column) and column.type.ordered and column.num_chunks:
            ordered += column.unify_dictionaries().chunk(0).dictionary.to_pylist()
        plain = column.cast(column.type.value_type) if is_declared(column) else column
        found.update(word for word in pc.unique(plain).to_pylist() if word is not None)
    first = dict.fromkeys(word for word in ordered if word is not None)
    return (*first, *sorted(found - set(first)))


def first_number(column: pa.ChunkedArray) -> int | None:
    """The first row whose text is a number, or nearly one; None where there is none, or the entries are declared categories."""
    if is_declared(column):
        return None
    alike = {word for word in words_of([column]) if _is_nearly_a_number(word)}
    return next((row for row, word in enumerate(column.to_pylist()) if word in alike), None) if alike else None


def _is_nearly_a_number(word: str) -> bool:
    try:
        float(word.strip(AROUND_NUMBERS).replace(",", "."))
    except ValueError:
        return False
    return True


def one_hot(entries: Sequence[str | None], words: Sequence[str]) -> FloatArray:
    """(n, words) of zeros and ones; NaN in the rows of entries that are missing. All others are among the words."""
    place = {word: index for index, word in enumerate(words)}
    found = np.zeros((len(entries), len(words)))
    for row, word in enumerate(entries):
        if word is None:
            found[row] = np.nan
        else:
            found[row, place[word]] = 1.0
    return found


@dataclass(frozen=True)
class Place:
    """One column of the state before words become zeros and ones: what it is called, and its words, where it holds any."""

    name: str
    words: tuple[str, ...] | None = None


def places(naming: Naming) -> tuple[Place, ...]:
    """The columns that a log was made from."""
    found: list[Place] = []
    index = 0
    while index < len(naming.states):
        words = next((each for each in naming.categories if each.first == index), None)
        found.append(Place(naming.states[index]) if words is None else Place(words.name, tuple(words.words)))
        index += 1 if words is None else len(words.words)
    return tuple(found)


def named_places(found: Sequence[Place], actions: Sequence[Label]) -> Naming:
    """Names of all columns of the states, those of zeros and ones among them."""
    states: list[str] = []
    categories = []
    for place in found:
        if place.words is None:
            states.append(place.name)
        else:
            categories.append(Categories(place.name, len(states), place.words))
            states += categories[-1].columns
    return Naming(tuple(states), tuple(actions), tuple(categories))


def as_label(value: Any) -> Label:
    """A label that can be written into a file: anything else than text, numbers and flags by its text."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str | int | float | bool) else str(plain)


def advice(kind: pa.DataType) -> str:
    """What to do with a column of a kind that is not read, with a colon before it."""
    import pyarrow as pa

    if pa.types.is_temporal(kind):
        return ": give what counts of it as a number, such as hours since the episode began"
    if pa.types.is_decimal(kind):
        return ": store it as floating-point numbers"
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return ": give every entry a column of its own"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return " (bytes, or Python objects): give numbers, or words for categories"
    return ""
