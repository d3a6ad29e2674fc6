"""The breakdown of a width as tables of words, the same in the terminal and in a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..bounds.breakdown import Altered, Breakdown
from ..io.display import ends_text

NOTHING = "There is no interval whose width could be explained."


@dataclass(frozen=True)
class BreakdownTable:
    """Intervals with one thing changed each."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def breakdown_tables(breakdown: Breakdown) -> Iterator[BreakdownTable]:
    """What the width is made of, then what would narrow it; what is no help stands in no table."""
    for title, what, rows in (
        (
            f"What the width {breakdown.width:.4g} is made of (each taken away alone; they overlap)",
            "without",
            breakdown.helpful_parts,
        ),
        ("What would narrow it, if it were true", "declared", breakdown.helpful_remedies),
    ):
        if rows:
            yield BreakdownTable(title, (what, "value", "narrower by"), tuple(map(_cells, rows)))


def _cells(each: Altered) -> tuple[str, ...]:
    return each.text, ends_text(each.lower, each.upper), f"{each.saved:.3g}"
