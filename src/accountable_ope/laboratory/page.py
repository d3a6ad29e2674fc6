"""A summary as Markdown, between two marks of a page, so that a page is written again by the run that it reports."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from ..io.pages import around, fill, table
from .summary import Coverage

BEGIN, END = "<!-- coverage table: begin -->", "<!-- coverage table: end -->"


def markdown_tables(rows: Sequence[Coverage]) -> str:
    """Two tables: the lowest fraction covered of every family and method over n, and the mean widths at every n."""
    methods = list(dict.fromkeys(row.method for row in rows))
    families = list(dict.fromkeys(row.family for row in rows))
    lowest = [
        [f"`{family}`", *(_lowest([row for row in rows if (row.family, row.method) == (family, method)]) for method in methods)]
        for family in families
    ]
    cells = {(row.family, row.n, row.method): row for row in rows}
    sizes = list(dict.fromkeys((row.family, row.n) for row in rows))
    widths = [
        [f"`{family}`" if n == min(m for name, m in sizes if name == family) else "", str(n)]
        + [_width(cells.get((family, n, method))) for method in methods]
        for family, n in sorted(sizes, key=lambda size: (families.index(size[0]), size[1]))
    ]
    trials = sorted({row.trials for row in rows})
    counted = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    levels = ", ".join(f"{1 - delta:g}" for delta in dict.fromkeys(row.delta for row in rows))
    return "\n".join(
        [
            f"Fraction covered, the lowest over n, with its 95% Clopper-Pearson interval ({counted} trials at every n; "
            f"claimed: {levels}).",
            "",
            *table(["family", *methods], lowest),
            "",
            "Mean normalized width; a dash: every interval was the whole range of values; a percentage: so many were.",
            "",
            *table(["family", "n", *methods], widths),
        ]
    )


def write_page(path: str | os.PathLike[str], rows: Sequence[Coverage]) -> None:
    """Put the tables between the marks of a page that exists, in place of what stands there."""
    fill(Path(path), BEGIN, END, markdown_tables(rows))


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a page that has no place for the tables, before any work."""
    around(Path(path), BEGIN, END)


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
