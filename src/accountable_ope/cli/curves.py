"""Intervals against an assumption, as tables for people."""

from __future__ import annotations

import math

from rich.console import Console
from rich.markup import escape

from ..bounds.findings import Curve
from ..bounds.findings import Parameter as Varied
from ..bounds.misfit_norms import MisfitNorms
from ..io.display import ends_text
from .text import number_text, status_text, titled_table


def print_curve(terminal: Console, curve: Curve) -> None:
    """One row per value of the parameter."""
    terminal.print()
    table = titled_table(f"{curve.parameter.value} varied (* declared)", gap=2)
    for name in (_heading(curve), "value", "width", "status"):
        table.add_column(name, no_wrap=True)
    for row in curve.rows():
        known = not math.isnan(row.lower)
        table.add_row(
            f"{number_text(row.value)}{' *' if row.baseline else ''}",
            escape(ends_text(row.lower, row.upper)) if known else "-",
            number_text(row.upper - row.lower) if known else "-",
            status_text(row.status),
        )
    terminal.print(table)


def print_misfit_norms(terminal: Console, found: MisfitNorms) -> None:
    """The width against the norm of what features miss, what data say of that norm, and where the decision flips."""
    print_curve(terminal, found.curve)
    for statement in found.statements:
        terminal.print(statement.text, markup=False, highlight=False)


def _heading(curve: Curve) -> str:
    return "times the range" if curve.parameter is Varied.REWARD_RANGE else curve.parameter.value
