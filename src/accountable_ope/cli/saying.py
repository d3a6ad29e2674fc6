"""What a command says first: the verdict, the decision that was asked for, and what the width is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from ..bounds.breakdown import Breakdown
from ..bounds.companions import Companions
from ..bounds.decision import Judgment, Ruling
from ..bounds.interval import Interval
from ..bounds.misfit_norms import MisfitNorms
from ..bounds.verdict import Verdict, verdict_of
from ..radii.doubts import Doubt
from ..report.breakdown import NOTHING, breakdown_tables
from ..report.document import Document
from ..report.sensitivity import misfit_norms_document
from ..report.verdict import breakdown_document, companions_document, ruling_document, verdict_document
from .text import print_doubts, titled_table

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
    def of(cls, interval: Interval, ruling: Ruling | None = None, *, explain: bool = False, names: Sequence[str] = ()) -> Said:
        """On one interval; explain: with the breakdown of its width. names: of the columns of the state."""
        companions = interval.companions()
        breakdown = interval.breakdown() if explain else None
        return cls(verdict_of(interval, companions, ruling, names), companions, ruling, breakdown, explain)

    def document(self) -> Document:
        """For machines."""
        decision = {} if self.ruling is None else {"decision": ruling_document(self.ruling)}
        explained = breakdown_document(self.breakdown) if self.explained else {}
        misfit = {} if self.misfit_norms is None else {"misfit_norms": misfit_norms_document(self.misfit_norms)}
        return {"verdict": verdict_document(self.verdict)} | decision | companions_document(self.companions) | explained | misfit


def print_said(console: Console, said: Said, doubts: Sequence[Doubt] = ()) -> None:
    """One sentence first; then what one would bet on, the decision, what speaks against it, and the breakdown."""
    console.print(said.verdict.sentence, style="bold", markup=False, highlight=False)
    if said.verdict.second_line:
        console.print(said.verdict.second_line, markup=False, highlight=False)
    if said.verdict.wanted is not None:
        console.print(said.verdict.wanted.text, markup=False, highlight=False)
    print_ruling(console, said.ruling)
    print_doubts(console, doubts)
    console.print()
    leading = said.verdict.leading
    if leading is not None:
        for against in leading.doubts:
            console.print(f"[yellow]Doubt[/]: {escape(against.text)}\n")
        console.print(f"Assumed by the first line ({leading.method}; {leading.guarantee.value}):", markup=False, highlight=False)
        for each in leading.premises:
            console.print(f"  - {each.text}", markup=False, highlight=False)
        console.print("What follows is of the class that was chosen, which the first line does not rest on.\n", highlight=False)
    if said.explained:
        print_breakdown(console, said.breakdown)


def print_ruling(console: Console, ruling: Ruling | None) -> None:
    """The decision that was asked for, if one was."""
    if ruling is not None:
        color = COLORS.get(ruling.judgment, "yellow")
        console.print(f"\nDecision: {ruling}", style=color, markup=False, highlight=False)


def print_breakdown(console: Console, breakdown: Breakdown | None) -> None:
    """A table of what the width is made of, then what would narrow it."""
    if breakdown is None:
        console.print(f"{NOTHING}\n")
        return
    for each in breakdown_tables(breakdown):
        table = titled_table(escape(each.title), gap=2)
        table.add_column(each.header[0], max_width=44)
        for name in each.header[1:]:
            table.add_column(name, no_wrap=True)
        for cells in each.rows:
            table.add_row(*map(escape, cells))
        console.print(table)
    for statement in breakdown.statements:
        console.print(statement.text, markup=False, highlight=False)
    console.print()
