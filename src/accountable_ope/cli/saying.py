"""What a command says first: the verdict, the decision that was asked for, and what the width is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.console import Console

from ..bounds.breakdown import Breakdown
from ..bounds.companions import Companions
from ..bounds.decision import Judgment, Ruling
from ..bounds.interval import Interval
from ..bounds.misfit_norms import MisfitNorms
from ..bounds.verdict import Verdict, verdict_of
from ..report.document import Document
from ..report.sensitivity import misfit_norms_document
from ..report.verdict import breakdown_document, companions_document, ruling_document, verdict_document
from .text import number_text, titled_table

COLORS = {Judgment.SUPPORTED: "green", Judgment.REFUTED: "red", Judgment.INCONSISTENT: "red"}


@dataclass(frozen=True, eq=False)
class Said:
    """The verdict, with what it was made from; explained: whether a breakdown was asked for."""

    verdict: Verdict
    companions: Companions
    ruling: Ruling | None = None
    breakdown: Breakdown | None = None
    explained: bool = False
    misfit_norms: MisfitNorms | None = None

    @classmethod
    def of(cls, interval: Interval, ruling: Ruling | None = None, *, explain: bool = False) -> Said:
        """On one interval; explain: with the breakdown of its width."""
        companions = interval.companions()
        breakdown = interval.breakdown() if explain else None
        return cls(verdict_of(interval, companions, ruling), companions, ruling, breakdown, explain)

    def document(self) -> Document:
        """For machines."""
        decision = {} if self.ruling is None else {"decision": ruling_document(self.ruling)}
        explained = breakdown_document(self.breakdown) if self.explained else {}
        misfit = {} if self.misfit_norms is None else {"misfit_norms": misfit_norms_document(self.misfit_norms)}
        return {"verdict": verdict_document(self.verdict)} | decision | companions_document(self.companions) | explained | misfit


def print_said(console: Console, said: Said) -> None:
    """One sentence first; then what one would bet on, the decision, and the breakdown."""
    console.print(said.verdict.sentence, style="bold", markup=False, highlight=False)
    if said.verdict.second_line:
        console.print(said.verdict.second_line, markup=False, highlight=False)
    if said.ruling is not None:
        color = COLORS.get(said.ruling.judgment, "yellow")
        console.print(f"\nDecision: {said.ruling}", style=color, markup=False, highlight=False)
    console.print()
    if said.explained:
        print_breakdown(console, said.breakdown)


def print_breakdown(console: Console, breakdown: Breakdown | None) -> None:
    """A table of what the width is made of, then what would narrow it."""
    if breakdown is None:
        console.print("There is no interval whose width could be explained.\n")
        return
    for title, rows in (
        (f"What the width {number_text(breakdown.width)} is made of (each taken away alone; they overlap)", breakdown.parts),
        ("What would narrow it, if it were true", breakdown.remedies),
    ):
        if not rows:
            continue
        table = titled_table(title, gap=2)
        table.add_column("without" if rows is breakdown.parts else "declared", max_width=44)
        for name in ("value", "narrower by"):
            table.add_column(name, no_wrap=True)
        for each in rows:
            known = not math.isnan(each.lower)
            ends = f"\\[{number_text(each.lower)}, {number_text(each.upper)}]" if known else "no function fits"
            table.add_row(each.text, ends, f"{each.saved:.3g}" if known else "-")
        console.print(table)
    for statement in breakdown.statements:
        console.print(statement.text, markup=False, highlight=False)
    console.print()
