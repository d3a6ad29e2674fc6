"""A summary as Markdown, between two marks of a page, so that a page is written again by the run that it reports."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..io.pages import around, fill, table
from .families import GROUPS, OTHERS, group_title
from .methods import in_order
from .summary import Coverage

BEGIN, END = "<!-- coverage table: begin -->", "<!-- coverage table: end -->"


def markdown_tables(rows: Sequence[Coverage]) -> str:
    """A sentence on what was refuted, and a table per group of families: a line per family and method.

    Of coverage it shows the lowest over n, for every delta; of widths the means at every n, for the smallest delta.
    """
    deltas, sizes = sorted({row.delta for row in rows}), sorted({row.n for row in rows})
    header = ["family", "method", *(f"covered, {1 - delta:g} claimed" for delta in deltas), *(f"width, n = {n}" for n in sizes)]
    parts = [_verdict(rows), ""]
    for title in (*(group.title for group in GROUPS), OTHERS):
        own = [row for row in rows if group_title(row.family) == title]
        if own:
            parts += [f"### {title[0].upper()}{title[1:]}", "", *table(header, list(_lines(own, deltas, sizes))), ""]
    trials = sorted({row.trials for row in rows})
    counted = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    widths = f" at delta = {deltas[0]:g}" if len(deltas) > 1 else ""
    parts.append(
        "Covered: the lowest fraction over n, with its 95% Clopper-Pearson interval and the n where some interval missed; "
        f"{counted} data sets at every n. Width: the mean of normalized widths{widths}; a dash: every interval was the whole "
        "range of values; a percentage: so many were. A star: asymptotic, nothing is claimed at a finite n."
    )
    return "\n".join(parts)


def write_page(path: str | os.PathLike[str], rows: Sequence[Coverage]) -> None:
    """Put the tables between the marks of a page that exists, in place of what stands there."""
    fill(Path(path), BEGIN, END, markdown_tables(rows))


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a page that has no place for the tables, before any work."""
    around(Path(path), BEGIN, END)


def _verdict(rows: Sequence[Coverage]) -> str:
    """What was claimed, how often, and what came of it."""
    claims = [row for row in rows if row.claims]
    wrong = [row for row in claims if row.refuted]
    missed = [row for row in claims if row.covered < row.trials]
    sentence = (
        f"{sum(row.trials for row in claims)} intervals with a finite-sample claim, in {len(claims)} cells of family, n, method "
        f"and delta: {sum(row.trials - row.covered for row in claims)} missed the truth, in {len(missed)} of the cells. "
    )
    if wrong:
        named = ", ".join(f"{row.method} in `{row.family}` at n = {row.n}, delta = {row.delta:g}" for row in wrong)
        return f"{sentence}**Refuted: {named}.**"
    return f"{sentence}None of the claims was refuted."


def _lines(rows: Sequence[Coverage], deltas: Sequence[float], sizes: Sequence[int]) -> Iterator[list[str]]:
    """The lines of one table; the name of a family once."""
    for family in dict.fromkeys(row.family for row in rows):
        name = f"`{family}`"
        for method in in_order(row.method for row in rows if row.family == family):
            own = [row for row in rows if (row.family, row.method) == (family, method)]
            lowest = [_lowest([row for row in own if row.delta == delta]) for delta in deltas]
            cells = {row.n: row for row in own if row.delta == deltas[0]}
            yield [name, method if own[0].claims else f"{method} \\*", *lowest, *(_width(cells.get(n)) for n in sizes)]
            name = ""


def _lowest(rows: Sequence[Coverage]) -> str:
    if not rows:
        return ""
    least = min(rows, key=lambda row: (row.fraction, row.trials))
    where = f" at {least.n}" if least.covered < least.trials else ""
    text = f"{least.fraction:.3f} [{least.low:.3f}, {least.high:.3f}]{where}"
    return f"**{text}**" if any(row.refuted for row in rows) else text


def _width(row: Coverage | None) -> str:
    if row is None:
        return ""
    if row.vacuous == 1:
        return "-"
    if math.isnan(row.width):
        return "empty"
    notes = [f"{100 * share:.0f}% {word}" for share, word in ((row.vacuous, "whole"), (row.inconsistent, "empty")) if share > 0]
    return f"{row.width:.3g}" + (f" ({', '.join(notes)})" if notes else "")
