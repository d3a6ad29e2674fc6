"""What the columns of a file are called: names that are read, names that other tools have for them, and names that are refused.

A column that is left out in silence can make an interval wrong: without `terminated`, every end of an episode is worth something.
So a column is read, or listed as not used, or, where its name may mean one that would be read, refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..validation import plural
from .advice import shell_word
from .column_names import ALIASES, LOG, SHOWS_ORDER, STARTS, STEP, near_miss

ColumnNames = Mapping[str, str | Sequence[str]]
"""Which columns of a file are which, where their names do not say: {"state": ["age", "dose"], "episode": "patient"}.

One column of actions by its name holds indices or labels of a finite set, a list of columns holds vectors, also a list of one.
"""

SHOWN = 20
"""Columns that a sentence names; more are counted."""


@checked
@dataclass(frozen=True)
class FileColumns:
    """How the columns of a file were read.

    Attributes
    ----------
    file : str
        The path, as given.
    aliases : tuple of (str, str)
        Columns that were read under another name: the name in the file, and what it was read as.
    unused : tuple of str
        Columns that nothing reads.
    ignored : tuple of str
        Columns that were left out on request.
    remarks : tuple of str
        What else a reader must know of how the rows were read, such as rows that were dropped.
    states : tuple of str
        What the columns of the state are called in the file; empty where one column holds them all as lists.
    """

    file: str
    aliases: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """What a reader of the result must know."""
        for meaning in dict.fromkeys(meaning for _, meaning in self.aliases):
            names = [name for name, other in self.aliases if other == meaning]
            order = ", in this order" if meaning == "state" and len(names) > 1 else ""
            yield f"{plural(len(names), 'Column', 'Columns')} {listed(names)} read as {meaning}{order} ({self.file})."
        if self.unused:
            yield f"Columns not used: {listed(self.unused)} ({self.file})."
        yield from self.remarks


@dataclass(frozen=True)
class Layout:
    """Where each known column stands in a file: in one column of that name, or in numbered ones, `state_0`, `state_1`, ..."""

    single: dict[str, str]
    numbered: dict[str, tuple[str, ...]]
    columns: FileColumns


def layout(
    file: str,
    names: Sequence[str],
    known: Sequence[str],
    wanted: Collection[str],
    ignore: Collection[str],
    columns: ColumnNames | None = None,
) -> Layout:
    """Which columns of a file are which.

    Parameters
    ----------
    file : str
        Its name, for messages.
    names : sequence of str
        Its columns.
    known : sequence of str
        What such a file may hold.
    wanted : collection of str
        Which of them are read; the others are listed as not used.
    ignore : collection of str
        Columns that are treated as if they were not there.
    columns : mapping, optional
        Which columns are which, where their names do not say.

    Raises
    ------
    InvalidFile
        Where a name stands twice, is numbered with gaps, or may mean a known one.
    """
    kept = [name for name in names if name not in ignore]
    named = _named(file, kept, known, columns or {})
    taken = {name for parts in named.values() for name in parts}
    meanings = {spelling: base for base in known for spelling in (base, *ALIASES.get(base, ()))}
    found: dict[str, dict[str, list[str]]] = {base: {} for base in known}
    unknown = []
    for name in kept:
        if name in taken:
            continue
        stem = name if name in meanings else re.sub(r"_(0|[1-9]\d*)$", "", name)
        if stem in meanings and meanings[stem] not in named:
            found[meanings[stem]].setdefault(stem, []).append(name)
        else:
            unknown.append(name)
    if "state" in known and not found["state"] and "state" not in named:
        named |= _prefixed(file, unknown, with_next="next_state" in known and not found["next_state"])
        taken = {name for parts in named.values() for name in parts}
    for name in unknown:
        if name not in taken and not _is_for(name, meanings, named):
            _refuse_near_miss(file, name, [base for base in known if base not in named])
    single: dict[str, str] = {}
    numbered: dict[str, tuple[str, ...]] = {}
    for base, parts in named.items():
        if base in wanted:
            _refuse_twice(file, [name for name in kept if name in parts])
            vectors = base == "action" and not isinstance((columns or {}).get(base, ""), str)
            if len(parts) == 1 and not vectors:
                single[base] = parts[0]
            else:
                numbered[base] = parts
    for base, spellings in found.items():
        if base not in wanted:
            continue
        if len(spellings) > 1:
            one, other = (found_columns[0] for found_columns in list(spellings.values())[:2])
            raise InvalidFile(
                f"{file} has columns `{one}` and `{other}`, each of which may be the `{base}`: leave one out by {_out(other)}."
            )
        for stem, parts_found in spellings.items():
            if stem in parts_found:
                single[base] = _only(file, stem, parts_found)
            else:
                numbered[base] = _in_order(file, stem, parts_found)
    read = {*single.values(), *(name for parts in numbered.values() for name in parts)}
    meant: dict[str, list[str]] = {}
    for base, parts in named.items():
        for name in parts:
            meant.setdefault(name, []).append(base)
    places = {name: k for parts in numbered.values() for k, name in enumerate(parts)}  # as a policy function sees them
    readings = [(name, base) for name in kept if name in read for base in meant.get(name) or [_renamed(name, meanings)]]
    first = {base: k for k, (_, base) in reversed(list(enumerate(readings)))}
    readings.sort(key=lambda each: (first[each[1]], places.get(each[0], 0)))
    aliases = tuple((name, base) for name, base in readings if base != name)
    unused = tuple(dict.fromkeys(name for name in kept if name not in read))
    ignored = tuple(dict.fromkeys(name for name in names if name in ignore))
    states = numbered.get("state", (single["state"],) if "state" in single else ())
    return Layout(single, numbered, FileColumns(file, aliases, unused, ignored, states=states))


def has_column(names: Sequence[str], base: str, columns: ColumnNames | None = None) -> bool:
    """Whether a file has a known column, under whatever name.

    Next states may also stand in columns that are named like those of the states: `next_age` beside `age`.
    """
    given = columns or {}
    if base in given:
        return True
    spellings = (base, *ALIASES.get(base, ()))
    stems = {*names, *(re.sub(r"_(0|[1-9]\d*)$", "", name) for name in names)}
    if stems & set(spellings):
        return True
    if base == "next_state":
        return bool(_beside(names, _tuple(given.get("state", ())))) or any(name.startswith("next_state_") for name in names)
    return False


def _named(file: str, names: Sequence[str], known: Sequence[str], columns: ColumnNames) -> dict[str, tuple[str, ...]]:
    """The columns that the caller named, and `next_age` beside `age`."""
    found: dict[str, tuple[str, ...]] = {}
    for base, given in columns.items():
        if base not in (*LOG, *STARTS, *SHOWS_ORDER):
            known_names = ", ".join(dict.fromkeys((*LOG, *STARTS)))
            raise InvalidInput(f"`columns` must name columns that are read: {known_names}. Got {base!r}.")
        parts = tuple(_as_in_file(name, names) if isinstance(name, str) else name for name in _tuple(given))
        if not parts or not all(isinstance(name, str) and name for name in parts):
            raise InvalidInput(f"`columns` must name the columns that are the `{base}`. Got {given!r}.")
        if base not in known:
            continue
        missing = [name for name in parts if name not in names]
        if missing and base != "state" and "reward" not in known:  # a file of start states need not have what the log has
            continue
        if missing:
            raise InvalidFile(
                f"{file} has no column `{missing[0]}`, which was named as the `{base}`.{did_you_mean(missing[0], names)} "
                f"Its columns: {listed(names)}."
            )
        # What counts the steps of an episode may be a part of the state, too.
        taken = [other for meaning, other in found.items() if {base, meaning} != {STEP, "state"}]
        twice = [name for name in parts if parts.count(name) > 1 or any(name in other for other in taken)]
        if twice:
            raise InvalidInput(f"`columns` must name a column once. {twice[0]!r} is named twice.")
        found[base] = parts
    if "state" in found and "next_state" in known and "next_state" not in found:
        beside = _beside(names, found["state"])
        if beside:
            found["next_state"] = _complete(file, names, found["state"], [f"next_{name}" for name in found["state"]])
    return found


def _as_in_file(name: str, names: Sequence[str]) -> str:
    """The name as the file spells it: blanks around a name tell nothing apart."""
    spelled = [each for each in names if each.strip() == name.strip()]
    return name if name in names or len(spelled) != 1 else spelled[0]


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """A question that names the nearest one, with a blank before it; empty where none is near."""
    small = {each.strip().lower(): each for each in reversed(names)}
    near = get_close_matches(name.strip().lower(), small, n=1, cutoff=0.6)
    return f" Did you mean `{small[near[0]]}`?" if near else ""


def _beside(names: Sequence[str], states: Sequence[str]) -> list[str]:
    return [f"next_{name}" for name in states if f"next_{name}" in names]


def _prefixed(file: str, names: Sequence[str], *, with_next: bool) -> dict[str, tuple[str, ...]]:
    """`state_age`, `state_dose`, in the order of the file, where no column is called `state`."""
    states = [name for name in names if name.startswith("state_") and len(name) > len("state_")]
    if not states:
        return {}
    found = {"state": tuple(dict.fromkeys(states))}
    if with_next and any(name.startswith("next_state_") for name in names):
        found["next_state"] = _complete(file, names, states, [f"next_{name}" for name in states])
    return found


def _complete(file: str, names: Sequence[str], states: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """All of the columns of the next states, or none."""
    missing = [name for name in wanted if name not in names]
    if missing:
        there = next((name for name in wanted if name in names), "next_state_...")
        raise InvalidFile(
            f"{file} has a column `{there}` but no `{missing[0]}`: give a next state for every column of the state, or for none."
        )
    return tuple(dict.fromkeys(wanted))


def _is_for(name: str, meanings: Mapping[str, str], named: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a name is a known one whose place a named column has."""
    stem = name if name in meanings else re.sub(r"_(0|[1-9]\d*)$", "", name)
    return meanings.get(stem) in named


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def listed(names: Sequence[str]) -> str:
    """Names for a sentence."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(name or "(one without a name)" for name in names[:SHOWN]) or "none") + more


def _renamed(name: str, meanings: dict[str, str]) -> str:
    """`obs` -> `state`, `obs_1` -> `state_1`."""
    if name in meanings:
        return meanings[name]
    stem, _, index = name.rpartition("_")
    return f"{meanings[stem]}_{index}"


def _only(file: str, stem: str, columns: Sequence[str]) -> str:
    _refuse_twice(file, columns)
    if len(columns) > 1:
        other = next(name for name in columns if name != stem)
        raise InvalidFile(f"{file} has both `{stem}` and `{other}`: give one list column or numbered ones, not both.")
    return stem


def _in_order(file: str, stem: str, columns: Sequence[str]) -> tuple[str, ...]:
    _refuse_twice(file, columns)
    wanted = [f"{stem}_{index}" for index in range(len(columns))]
    missing = [name for name in wanted if name not in columns]
    if missing:
        stray = next(name for name in columns if name not in wanted)
        raise InvalidFile(f"{file} has a column `{stray}` but no `{missing[0]}`: numbered columns go from 0 without gaps.")
    return tuple(wanted)


def _refuse_twice(file: str, columns: Sequence[str]) -> None:
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise InvalidFile(f"{file} has several columns called `{twice[0]}`.")


def _out(name: str) -> str:
    """How a column is left out, in Python and on the command line."""
    return f"`ignore` or --ignore-column {shell_word(name)}"


def _refuse_near_miss(file: str, name: str, known: Sequence[str]) -> None:
    """Raise where an unknown name may mean a known one."""
    meant, why = near_miss(name, known)
    if meant is None:
        return
    option = shell_word(f"{meant}={name}")
    raise InvalidFile(
        f"{file} has a column `{name}`, which is not read: did you mean `{meant}`?{why} Say so (--column {option}), rename it, "
        f"or leave it out by {_out(name)}."
    )
