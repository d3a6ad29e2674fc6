"""States and actions of a table as numbers: columns of words as zeros and ones, labels of actions as indices, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidFile, InvalidInput
from ..problem.naming import Naming
from ..validation import BoolArray, FloatArray, IntArray
from .column_names import ACTION_AT_NEXT, ACTION_AT_STATE
from .columns import FileColumns, listed
from .table import Table, first_word, short
from .words import MOST_LABELS, MOST_WORDS, Place, as_label, first_number, holds_words, named_places, one_hot, places, words_of

PACKED = ("obs", "new_obs", "actions")
"""Columns that RLlib may have packed into text."""


@dataclass(frozen=True)
class WordRules:
    """How columns of words are read.

    Attributes
    ----------
    allowed : bool
        False: they are refused, since other parts of the log may hold other words.
    like : Naming, optional
        The names of a log, which are the only words that there may be.
    labels : tuple
        What the actions are called in their column, that of index 0 first; empty: as the column shows.
    """

    allowed: bool = True
    like: Naming | None = None
    labels: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        try:
            different = len(set(self.labels))
        except TypeError:
            raise InvalidInput(f"`actions` must be labels such as words or numbers. Got {self.labels!r}.") from None
        if different < len(self.labels):
            raise InvalidInput(f"`actions` must be different labels. Got {listed([str(label) for label in self.labels])}.")


ANY_WORDS, NO_WORDS = WordRules(), WordRules(allowed=False)


class Coding:
    """What stands for the states and actions of a table."""

    def __init__(self, table: Table, rules: WordRules = ANY_WORDS) -> None:
        self.table = table
        self._places = self._found_places(rules)
        self._labels = self._found_labels(rules)

    @property
    def columns(self) -> FileColumns:
        """How the columns were read."""
        found = self.table.columns
        return replace(found, states=tuple(named_places(self._places, ()).states)) if self._has_words else found

    def naming(self, width: int) -> Naming:
        """Names of so many columns of the states, and of the actions, as they stand in the table or were saved with it."""
        saved, parts = self.table.saved_naming, self.table.parts("state")
        labels = tuple(as_label(label) for label in self._labels) or tuple(saved.actions)
        if self._has_words:
            return named_places(self._places, labels)
        if len(parts) == width and parts != ("state",):
            return Naming(parts, labels)
        if saved.states and len(saved.states) != width:
            raise InvalidFile(
                f"{self.table.name} names {len(saved.states)} columns of the state in its metadata, and has {width} of them."
            )
        return Naming(saved.states, labels, saved.categories)

    def states(self) -> NDArray[Any]:
        """Of every row."""
        if self._has_words:
            return self._coded("state", None)
        found = self.table.required("state")
        return self.table.floats(self.table.called("state"), found) if found.dtype.kind in "iu" else found

    def next_states(self, where: BoolArray) -> FloatArray:
        """As `states`, finite in the rows that are used, and NaN or anything else in the others."""
        if not self._has_words:
            return self.table.where_used("next_state", where)
        values = self._coded("next_state", where)
        self.table.refuse_non_finite("next_state", values, where)
        return values

    def indices(self, base: str, where: BoolArray | None = None) -> IntArray | None:
        """A column of whole numbers from 0, one per action; where it is not used, 0 stands for whatever is there."""
        found = self.actions(base, where)
        if found is None:
            return None
        name = f"{self.table.name}: column {self.table.called(base)}"
        if found.dtype.kind not in "iub" or found.ndim != 1:
            raise InvalidFile(f"{name} must hold an action per row: a whole number, 0, 1, ...")
        wrong = found < 0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidFile(f"{name} must hold actions 0, 1, ... It holds {int(found[row])} in {self.table.row(row)}.")
        return found.astype(np.int64)

    def actions(self, base: str, where: BoolArray | None = None) -> NDArray[Any] | None:
        """Indices of a finite set, also where they are stored as 1.0 and 2.0, or as labels; or vectors."""
        table, name = self.table, self.table.single(base)
        if name is not None and self._labels:
            place = {label: index for index, label in enumerate(self._labels)}
            return np.array([place.get(each, 0) for each in self._known(name, self._labels, where)], dtype=np.int64)
        found = table.optional(base, text=True, holes=where is not None)
        if found is None:
            return None
        if found.dtype.kind == "U":
            row, shown = first_word(found.tolist())
            raise InvalidFile(
                f"{table.name}: column {table.called(base)} must hold numbers. It holds text, first {short(shown)} in "
                f"{table.row(row)}: number the actions 0, 1, 2, ..."
            )
        if found.ndim != 1 or found.dtype.kind != "f" or name is None:
            return found
        if where is not None:
            found = np.where(where, found, 0.0)
        found = found.astype(np.float64)
        wrong = ~np.isfinite(found) | (found != np.round(found)) | (np.abs(found) > 2**31)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidFile(
                f"{table.name}: `actions` must be whole numbers, 0, 1, ..., where one column holds them. Column `{name}` has "
                f"{found[row]:g} in {table.row(row)}; a column of continuous actions is called `{base}_0`."
            )
        if where is None:
            table.remark(f"Column {name} holds whole numbers stored as decimals (1.0), read as indices of actions")
        return found.astype(np.int64)

    @property
    def _has_words(self) -> bool:
        return any(place.words for place in self._places)

    def _coded(self, base: str, where: BoolArray | None) -> FloatArray:
        """Numbers as they are, beside zeros and ones for words."""
        parts = self.table.parts(base)
        if len(parts) != len(self._places):
            raise InvalidFile(
                f"{self.table.name}: column {self.table.called(base)} must have a column for each of "
                f"{listed([place.name for place in self._places])}."
            )
        blocks: list[FloatArray] = []
        for name, place in zip(parts, self._places, strict=True):
            if place.words is None:
                blocks.append(self.table.one_per_row(name, holes=where is not None)[:, None])
            else:
                blocks.append(one_hot(self._known(name, place.words, where), place.words))
        return np.column_stack(blocks)

    def _known(self, name: str, known: Sequence[Any], where: BoolArray | None) -> list[Any]:
        """The entries of a column, each of which must be known where it is used; None for all that are not."""
        if where is None:
            self.table.refuse_nulls(name)
        entries = self.table.entries(name).to_pylist()
        words = set(known)
        for row, entry in enumerate(entries):
            if entry not in words and (where is None or where[row]):
                if entry is None:
                    self.table.refuse_nulls(name)
                raise InvalidFile(
                    f"{self.table.name}: column `{name}` holds {short(str(entry))} in {self.table.row(row)}, which is none of "
                    f"{listed([str(word) for word in known])}."
                )
        return [entry if entry in words else None for entry in entries]

    def _found_places(self, rules: WordRules) -> tuple[Place, ...]:
        """The columns of the state, with the words of those that hold any."""
        parts, after = self.table.parts("state"), self.table.parts("next_state")
        if not rules.allowed:
            return ()
        found = [Place(name) for name in parts]
        for index, name in enumerate(parts):
            together = [name, after[index]] if len(after) == len(parts) else [name]
            fewest = 2 if rules.like is None else 0
            words = self._shared_words(together, fewest, MOST_WORDS, "columns of zeros and ones")
            if words is not None:
                found[index] = Place(name, words)
        if rules.like is not None:
            found = self._like_the_log(found, places(rules.like))
        for place in found:
            if place.words is not None and rules.like is None:
                names = listed([f"{place.name}={word}" for word in place.words])
                self.table.remark(f"Column {place.name} holds words, read as columns of zeros and ones: {names}")
        return tuple(found)

    def _like_the_log(self, found: list[Place], log: Sequence[Place]) -> list[Place]:
        """The same columns with the words of the log."""
        if not any(place.words for place in (*found, *log)) or self._is_coded(found, log):
            return found
        if len(found) != len(log):
            own, others = (listed([place.name for place in each]) for each in (found, log))
            raise InvalidFile(f"{self.table.name} must have the columns of the state of the log, {others}. It has {own}.")
        for place, wanted in zip(found, log, strict=True):
            held, other = ("numbers", "words") if place.words is None else ("words", "numbers")
            if (place.words is None) != (wanted.words is None):
                raise InvalidFile(
                    f"{self.table.name}: column `{place.name}` holds {held}, and `{wanted.name}` of the log {other}."
                )
        return [Place(place.name, wanted.words) for place, wanted in zip(found, log, strict=True)]

    def _is_coded(self, found: Sequence[Place], log: Sequence[Place]) -> bool:
        """Whether zeros and ones stand there already, side by side in one column, as `save_starts` writes them."""
        if len(found) != 1 or found[0].words is not None:
            return False
        width = sum(1 if place.words is None else len(place.words) for place in log)
        return width > 1 and getattr(self.table.entries(found[0].name).type, "list_size", None) == width

    def _found_labels(self, rules: WordRules) -> tuple[Any, ...]:
        """The labels of the actions, in the order of their indices; nothing where actions are indices or vectors already."""
        bases = [base for base in ("action", ACTION_AT_STATE, ACTION_AT_NEXT) if self.table.single(base) is not None]
        names = [name for base in bases if (name := self.table.single(base)) is not None]
        if not names or not rules.allowed:
            return ()
        if rules.labels:
            return rules.labels
        if rules.like is not None:
            return tuple(rules.like.actions) if holds_words(self.table.entries(names[0])) else ()
        words = self._shared_words(names, 2, MOST_LABELS, "actions")
        if words is None:
            return ()
        numbered = listed([f"{index} {word}" for index, word in enumerate(words)])
        self.table.remark(f"Column {names[0]} holds labels of actions, numbered {numbered}")
        return words

    def _shared_words(self, names: Sequence[str], fewest: int, most: int, meaning: str) -> tuple[str, ...] | None:
        """The words of columns that share them; None where these hold none, or text that is nearly numbers, refused later."""
        import pyarrow as pa

        table, first = self.table, names[0]
        columns = [table.entries(name) for name in names]
        if not holds_words(columns[0]):
            return None
        for name, column in zip(names, columns, strict=True):
            if not holds_words(column) and not pa.types.is_null(column.type):
                raise InvalidFile(f"{table.name}: column `{name}` must hold words, as `{first}` does. It holds {column.type}.")
            if holds_words(column) and first_number(column) is not None:
                return None
        words = words_of(columns)
        if not all(word.strip() for word in words):
            raise InvalidFile(f"{table.name}: column `{first}` must hold words. It holds an empty text: write unknown, say.")
        if len(words) < fewest:
            raise InvalidFile(
                f"{table.name}: column `{first}` must hold numbers, or words that differ. It holds text, "
                f"{short(words[0]) if words else 'nothing'} in every row, which tells nothing apart."
            )
        if len(words) > most:
            packed = " RLlib packs it into text unless it is told output_compress_columns=[]." if first in PACKED else ""
            raise InvalidFile(
                f"{table.name}: column `{first}` must hold numbers, or at most {most} different words. It holds text, "
                f"{len(words):,} different ones, first {short(words[0])}: too many for {meaning}.{packed}"
            )
        return words
