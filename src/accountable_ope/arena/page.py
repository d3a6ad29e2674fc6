"""The arena as Markdown, between two marks of a page, so that the page is written again by the run that it reports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..io.pages import around, fill, table
from ..trust.tasks import Skipped
from .advising import advice
from .bout import Judgment
from .challenges import CHALLENGE_NAMES, Group, challenge_named
from .judging import ENOUGH, Cell, Ranking, Standing

BEGIN, END = "<!-- arena: begin -->", "<!-- arena: end -->"


def verdict(ranking: Ranking) -> str:
    """What came of it, in a few sentences."""
    rows = ranking.rows
    logs, trials = sorted({row.logs for row in rows}), sum(row.logs for row in rows)
    counted = f"{logs[0]}" if len(logs) == 1 else f"{logs[0]} to {logs[-1]}"
    problems, sizes = len({row.challenge for row in rows}), sorted({row.n for row in rows})
    parts = [
        f"{trials} trials of {len(ranking.careers)} methods on {problems} of {len(CHALLENGE_NAMES)} problems, "
        f"n = {', '.join(f'{n:,}' for n in sizes)}; {counted} logs of each."
    ]
    wrong = ranking.refuted
    few = "" if logs[0] >= ENOUGH else ", which fewer than seven logs of a problem cannot do"
    parts.append(f"Refuted: {_named(wrong)}." if wrong else f"No finite-sample claim was refuted{few}.")
    short = [career for career in ranking.careers if not career.steady]
    if short:
        listed = ", ".join(f"{each.contestant} ({100 * each.fraction:.0f}%)" for each in short)
        parts.append(f"Missed more often than promised, on some problem or on the whole: {listed}.")
    won, decided = ranking.won
    if not decided:
        parts.append(f"Who is the narrowest is not decided anywhere: no problem has {ENOUGH} logs.")
    else:
        parts.append(
            "Among methods without propensities that kept their promise wherever they were asked, ours is the narrowest in "
            f"{won} of {decided} cells ({100 * won / decided:.0f}%)."
        )
    return " ".join(parts)


def markdown(ranking: Ranking, skipped: Sequence[Skipped] = (), made_by: str = "") -> str:
    """The verdict; who to take when; everybody over all cells; the narrowest of every cell; a table per group of problems.

    made_by: which recipes our own intervals are of, in a sentence.
    """
    parts = [verdict(ranking), *[f"{each.name} was skipped: {each.reason}." for each in skipped]]
    parts += ["", f"Ours: {made_by[0].lower()}{made_by[1:]}", ""] if made_by else [""]
    parts += ["### What to use when", "", *_not_yet(ranking), *table(ADVICE, list(_advice_lines(ranking))), "", ADVISED, ""]
    parts += ["### Everybody", "", *table(CAREERS, list(_career_lines(ranking))), "", COUNTED, ""]
    parts += ["### The narrowest", "", *table(CELLS, list(_cell_lines(ranking.cells))), "", NARROWEST, ""]
    for group in ranking.groups:
        rows = ranking.of_group(group)
        sizes = sorted({row.n for row in rows})
        header = ["problem", "method", "kept", *(f"width, n = {n:,}" for n in sizes), "s", "logs"]
        parts += [f"### {group.title[0].upper()}{group.title[1:]}", "", *_problems(group), ""]
        parts += [*table(header, list(_lines(rows, sizes))), ""]
    parts.append(EXPLAINED)
    refusals = dict.fromkeys((row.contestant, row.reason) for row in ranking.rows if row.reason)
    if refusals:
        parts += ["", "### Refusals", "", *[f"- {name}: {reason}" for name, reason in refusals]]
    return "\n".join(parts)


def _not_yet(ranking: Ranking) -> list[str]:
    """A paragraph where rows of the advice rest on so few logs that they are none."""
    counts = [row.logs for row in advice(ranking)]
    few = sum(count < ENOUGH for count in counts)
    if not few:
        return []
    return [
        f"**Not yet advice**: {few} of {len(counts)} rows rest on fewer than {ENOUGH} logs of some problem, which cannot show "
        "that a method misses too often.",
        "",
    ]


STAR, DAGGER = " \\*", " †"
ADVICE = (
    "propensities", "a class that is trusted", "n", "proved at this n", "width", "promised for many rows", "width", "problems",
    "logs",
)  # fmt: skip
ADVISED = (
    "The narrowest on average of those that were asked about every problem of the situation and missed in none of them more "
    "often than promised, nor in all of them together, nor on the whole (in bold below); a dash: nobody. The fewer logs, the "
    "easier that is: with ten logs a method that misses one time in four is hardly seen."
)
CAREERS = ("method", "claim", "needs", "cells kept", "kept", "width", "s", "silent", "logs")
COUNTED = (
    "Cells kept: of problem and n, those where it did not miss more often than promised; kept: the share of logs on which it "
    "did not miss, with its 95% Clopper-Pearson interval, over whatever it was asked about, which is not the same for all; in "
    "bold where that interval, over problems on which what it assumes is true, lies below 1 - 1.5 delta: such a method wins "
    "nothing there."
)
CELLS = ("problem", "n", "without propensities", "width", "among all", "width", "logs")
NARROWEST = (
    "Among those that keep their promise on that problem at that n and are not in bold in the table of everybody; in bold where "
    "it is not ours."
)
EXPLAINED = (
    "Kept: the lowest share over n of logs on which it did not miss, with its 95% Clopper-Pearson interval and that n; in bold "
    "where so many misses had a probability below 0.001 at the promised rate (*refuted*: below 1e-6, and it claims to hold at "
    "every n). Width: the mean share of the range of values, where a log without an interval counts as the whole range; a dash: "
    "every interval was that range. A star: promised for many rows only; a dagger: it rests on a class that was told and is "
    "wrong. s: mean seconds of processor time at the largest n."
)


def write_page(path: str | os.PathLike[str], ranking: Ranking, skipped: Sequence[Skipped] = (), made_by: str = "") -> None:
    """Put the tables between the marks of a page that exists, in place of what stands there."""
    fill(Path(path), BEGIN, END, markdown(ranking, skipped, made_by))


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a page that has no place for the tables, before any work."""
    around(Path(path), BEGIN, END)


def _named(rows: Sequence[Standing]) -> str:
    return ", ".join(
        f"{row.contestant} on `{row.challenge}` at n = {row.n:,} ({row.missed} misses of {row.logs})" for row in rows
    )


def _advice_lines(ranking: Ranking) -> Iterator[list[str]]:
    before = ("", "")
    for row in advice(ranking):
        words = row.situation.words
        yield [
            *(("", "") if words == before else words),
            f"{row.n:,}",
            *(["-", ""] if row.proved is None else [row.proved.contestant, width_text(row.proved.width)]),
            *(["-", ""] if row.any is None else [row.any.contestant, width_text(row.any.width)]),
            str(row.problems),
            str(row.logs),
        ]
        before = words


def _career_lines(ranking: Ranking) -> Iterator[list[str]]:
    for each in ranking.careers:
        kept, share = f"{each.kept} of {each.cells}", f"{each.fraction:.3f} [{each.low:.3f}, {each.high:.3f}]"
        yield [
            each.contestant,
            each.guarantee,
            ", ".join(each.needs) or "nothing",
            kept if each.kept == each.cells else f"**{kept}**",
            share if each.honest else f"**{share}**",
            width_text(each.width),
            seconds_text(each.seconds),
            str(each.silent or ""),
            str(each.logs),
        ]


def _cell_lines(cells: Sequence[Cell]) -> Iterator[list[str]]:
    before = ""
    for cell in cells:
        yield [
            "" if cell.challenge == before else f"`{cell.challenge}`",
            f"{cell.n:,}",
            *_winner(cell.without),
            *_winner(cell.anybody),
            str(cell.logs),
        ]
        before = cell.challenge


def _winner(row: Standing | None) -> list[str]:
    if row is None:
        return ["nobody", ""]
    return [row.contestant if row.own else f"**{row.contestant}**", width_text(row.width)]


def _problems(group: Group) -> Iterator[str]:
    """A line per problem: what it is, and what contestants are told."""
    for name in group.challenges:
        each = challenge_named(name)
        known = "recorded" if each.recorded else "not recorded"
        told = {"right": "told and right", "wrong": "told and wrong", "none": "not told"}[each.told.value]
        yield f"- `{name}` ({each.data_kind.value}, propensities {known}, class {told}): {each.description}"


def _lines(rows: Sequence[Standing], sizes: Sequence[int]) -> Iterator[list[str]]:
    before = ""
    for challenge, contestant in dict.fromkeys((row.challenge, row.contestant) for row in rows):
        own = [row for row in rows if (row.challenge, row.contestant) == (challenge, contestant)]
        at = {row.n: row for row in own}
        mark = (STAR if own[0].guarantee == "asymptotic" else "") + (DAGGER if own[0].false_premise else "")
        logs = sorted({row.logs for row in own})
        yield [
            "" if challenge == before else f"`{challenge}`",
            f"{contestant}{mark}",
            _lowest(own),
            *(_width(at.get(n)) for n in sizes),
            seconds_text(own[-1].seconds),
            str(logs[0]) if len(logs) == 1 else f"{logs[0]}-{logs[-1]}",
        ]
        before = challenge


def _lowest(rows: Sequence[Standing]) -> str:
    least = min(rows, key=lambda row: (row.chance, row.n))
    where = f" at {least.n:,}" if least.missed else ""
    text = f"{least.fraction:.2f} [{least.low:.2f}, {least.high:.2f}]{where}"
    if least.judgment is Judgment.REFUTED:
        return f"**{text}** *refuted*"
    return text if least.kept else f"**{text}**"


def _width(row: Standing | None) -> str:
    if row is None:
        return ""
    if not row.says_something:
        return "silent" if row.silent == row.logs else "-"
    silent = f" ({row.silent} silent)" if row.silent else ""
    return f"{width_text(row.width)}{silent}"


def width_text(width: float) -> str:
    """A share of the range of values."""
    return f"{width:.4f}" if width < 0.01 else f"{width:.3f}"


def seconds_text(seconds: float) -> str:
    """Of processor time."""
    return f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
