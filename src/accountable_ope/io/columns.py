"""What the columns of a file are called: names that are read, names that other tools have for them, and names that are refused.

A column that is left out in silence can make an interval wrong: without `terminated`, every end of an episode is worth something.
So a column is read, or listed as not used, or, where its name may mean one that would be read, refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..arguments import checked
from ..errors import InvalidFile
from ..problem.transitions import LOGGED

AT_STATE = "target_probability"
AT_NEXT = "next_target_probability"
POLICY = (AT_STATE, AT_NEXT)
ESTIMATE = ("q", "next_q")
LOG = ("state", "action", "reward", "next_state", "terminated", "episode", LOGGED, *POLICY, *ESTIMATE)
STARTS = ("state", "weight", AT_STATE, "q")

ALIASES = {
    "state": ("observation", "observations", "obs"),
    "action": ("actions",),
    "reward": ("rewards",),
    "next_state": ("next_observation", "next_observations", "next_obs", "obs_next", "new_obs"),
    "terminated": ("terminations", "terminals"),
    "episode": ("episode_id", "eps_id"),
    LOGGED: ("behaviour_probability", "pscore", "action_prob"),
}
"""Names in D4RL, Minari, Gymnasium, Tianshou, RLlib and the Open Bandit Pipeline that mean exactly what ours do."""

_CUT_OFF = " Only if it is False where an episode was merely cut off, which is no end."
_WHOSE = " It may also be a probability of the policy."
_OF_WHAT = " Only if it is the probability with which the logger chose the action of the row, whichever that was."
_ENDS = ("done", "dones", "is_done", "terminal", "is_terminal", "is_last", "episode_end", "end", "ended", "absorbing")
DOUBTFUL = {
    "terminated": (
        ("done", "dones", "is_done", "terminal", "is_terminal", "is_last", "episode_end", "end", "ended", "absorbing"),
        _CUT_OFF,
    ),
    "episode": (("trajectory", "trajectory_id", "traj", "traj_id", "ep"), ""),
    LOGGED: (
        (
            "propensity",
            "propensities",
            "propensity_score",
            "behavior_prob",
            "behaviour_prob",
            "logging_prob",
            "logging_probability",
        ),
        _OF_WHAT,
    ),
    "weight": (("probability", "probabilities", "prob", "probs", "frequency"), _WHOSE),
    AT_STATE: (("target_prob", "target_probs"), ""),
    AT_NEXT: (("next_target_prob", "next_target_probs"), ""),
}
"""Names that may mean one that is read, or something else, and why."""

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
    """

    file: str
    aliases: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """What a reader of the result must know."""
        for name, meaning in self.aliases:
            yield f"Column {name} read as {meaning} ({self.file})."
        if self.unused:
            more = f" and {len(self.unused) - SHOWN} more" if len(self.unused) > SHOWN else ""
            yield f"Columns not used: {', '.join(self.unused[:SHOWN])}{more} ({self.file})."


@dataclass(frozen=True)
class Layout:
    """Where each known column stands in a file: in one column of that name, or in numbered ones, `state_0`, `state_1`, ..."""

    single: dict[str, str]
    numbered: dict[str, tuple[str, ...]]
    columns: FileColumns


def layout(file: str, names: Sequence[str], known: Sequence[str], wanted: Collection[str], ignore: Collection[str]) -> Layout:
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

    Raises
    ------
    InvalidFile
        Where a name stands twice, is numbered with gaps, or may mean a known one.
    """
    meanings = {spelling: base for base in known for spelling in (base, *ALIASES.get(base, ()))}
    found: dict[str, dict[str, list[str]]] = {base: {} for base in known}
    unknown = []
    kept = [name for name in names if name not in ignore]
    for name in kept:
        stem = name if name in meanings else re.sub(r"_(0|[1-9]\d*)$", "", name)
        if stem in meanings:
            found[meanings[stem]].setdefault(stem, []).append(name)
        else:
            unknown.append(name)
    for name in unknown:
        _refuse_near_miss(file, name, known)
    single: dict[str, str] = {}
    numbered: dict[str, tuple[str, ...]] = {}
    for base, spellings in found.items():
        if base not in wanted:
            continue
        if len(spellings) > 1:
            one, other = (columns[0] for columns in list(spellings.values())[:2])
            raise InvalidFile(
                f"{file} has columns `{one}` and `{other}`, each of which may be the `{base}`: leave one out by {_out(other)}."
            )
        for stem, columns in spellings.items():
            if stem in columns:
                single[base] = _only(file, stem, columns)
            else:
                numbered[base] = _in_order(file, stem, columns)
    read = {*single.values(), *(name for parts in numbered.values() for name in parts)}
    aliases = tuple((name, _renamed(name, meanings)) for name in kept if name in read and _renamed(name, meanings) != name)
    unused = tuple(dict.fromkeys(name for name in kept if name not in read))
    ignored = tuple(dict.fromkeys(name for name in names if name in ignore))
    return Layout(single, numbered, FileColumns(file, aliases, unused, ignored))


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
    return f"`ignore` or --ignore-column {name}"


def _refuse_near_miss(file: str, name: str, known: Sequence[str]) -> None:
    """Raise where an unknown name may mean a known one."""
    meant, why = _near_miss(name, known)
    if meant is None:
        return
    raise InvalidFile(
        f"{file} has a column `{name}`, which is not read: did you mean `{meant}`?{why} Rename it if so, or leave it out by "
        f"{_out(name)}."
    )


def _near_miss(name: str, known: Sequence[str]) -> tuple[str | None, str]:
    """The known name that this one may mean, and why that is not certain."""
    core = _plain(name)
    best: tuple[float, str | None] = (float("inf"), None)
    for base in known:
        doubtful, why = DOUBTFUL.get(base, ((), ""))
        if core in map(_plain, doubtful):
            return base, why
        for spelling in (base, *ALIASES.get(base, ())):
            plain, allowed = _plain(spelling), _allowed(spelling)
            if abs(len(core) - len(plain)) <= allowed and (away := _distance(core, plain)) <= allowed and away < best[0]:
                best = (away, base)
    return best[1], ""


def _plain(name: str) -> str:
    """Small letters alone: neither case nor separators nor a number at the end tell names apart."""
    return re.sub(r"[\W_]", "", name.lower()).rstrip("0123456789")


def _allowed(name: str) -> int:
    """How many letters may be wrong: none where one letter is all that makes a name, since then others are near by accident."""
    if len(name) < 5 or name in ESTIMATE:
        return 0
    return 1 if len(name) < 8 else 2 if len(name) < 16 else 3


def _distance(one: str, other: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        two_before, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, two_before[j - 2] + 1)
            row.append(best)
    return row[-1]
