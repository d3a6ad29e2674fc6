"""`aope coverage`: how often intervals hold the truth, on problems whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from .application import app, check_plot, console, count_bar, print_json
from .options import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from ..laboratory import Coverage
    from ..report.document import Document

EXIT_REFUTED = 1


@app.command()
def coverage(
    family: Annotated[list[str] | None, typer.Option(help="Family of problems, repeatable. None: all of them.")] = None,
    radius: Annotated[list[str] | None, typer.Option(help="Radius, repeatable. None: the whole ladder.")] = None,
    n: Annotated[list[int] | None, typer.Option("--n", help="Number of transitions, repeatable. None: 300, 1000, 3000.")] = None,
    trials: Annotated[int, typer.Option(help="Data sets per family and n.")] = 100,
    delta: Annotated[float, typer.Option(help="Failure probability of the two-sided statement.")] = 0.1,
    workers: Annotated[int | None, typer.Option(help="Processes. None: one per core.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder that keeps finished trials; what it holds is not computed again.")
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Show what the folder of --out holds, whatever its number of trials; run nothing.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw coverage and width against n, to .png, .svg or .pdf.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables between the marks of this Markdown page.")] = None,
    list_families: Annotated[bool, typer.Option("--list", help="List the families and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure coverage: run every radius on many data sets of problems whose value is known.

    Exit code 1 when a finite-sample radius misses so often that its claim is not believable.
    """
    from ..laboratory import families_named, methods_named, refuted, run_trials, stored_trials, summarize
    from ..laboratory.page import check_page, write_page
    from ..laboratory.trials import DEFAULT_COUNTS

    if list_families:
        _print_families(as_json)
        return
    chosen = methods_named(radius)
    problems = families_named(family)
    if plot is not None:
        check_plot(plot)
    if markdown is not None:
        check_page(markdown)
    if stored:
        if out is None:
            raise InvalidInput("--stored needs --out, the folder that holds the trials.")
        table = stored_trials(out, problems, n, None if radius is None else chosen, delta)
    else:
        with count_bar("data sets", not as_json) as report:
            table = run_trials(
                problems,
                n or DEFAULT_COUNTS,
                chosen=chosen,
                trials=trials,
                delta=delta,
                workers=workers,
                folder=out,
                report=report,
            )
    rows = summarize(table)
    if as_json:
        print_json(coverage_document(rows))
    else:
        print_coverage(console(), rows)
    if plot is not None:
        from ..report.coverage_plot import coverage_figure
        from ..report.plots import save_figure

        save_figure(coverage_figure(rows), plot)
        typer.echo(f"Plot: {plot}", err=True)
    if markdown is not None:
        write_page(markdown, rows)
        typer.echo(f"Page: {markdown}", err=True)
    wrong = refuted(rows)
    for row in wrong:
        typer.echo(
            f"Not believable: {row.method} covered {row.covered} of {row.trials} in {row.family} at n = {row.n}, where at least "
            f"{100 * (1 - row.delta):g}% is claimed.",
            err=True,
        )
    raise typer.Exit(EXIT_REFUTED if wrong else 0)


def print_coverage(terminal: Console, rows: Sequence[Coverage]) -> None:
    """One row per family, n and method."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    counts = sorted({row.trials for row in rows})
    trials = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    title = f"{100 * (1 - rows[0].delta):g}% coverage is claimed; {trials} data sets, 95% Clopper-Pearson intervals"
    terminal.print(title, highlight=False)
    table = Table(box=SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("family, radius", no_wrap=True)
    for name in ("n", "covered", "95% interval", "width", "whole", "empty", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    family = None
    for row in rows:
        if row.family != family:
            family = row.family
            table.add_row(f"[bold]{family}[/]")
        table.add_row(
            f"  {row.method}" if row.claims else f"  {row.method} *",
            str(row.n),
            f"{row.fraction:.3f}",
            f"{row.low:.3f}-{row.high:.3f}",
            f"{row.width:.3g}",
            _share(row.vacuous),
            _share(row.inconsistent),
            _seconds(row.seconds),
            style="red" if row.refuted else None,
        )
    terminal.print(table, highlight=False)
    terminal.print(
        "width: mean, normalized; whole: the interval is the whole range of values; empty: no function of the class fits; "
        "s: seconds in one thread.",
        highlight=False,
    )
    if not all(row.claims for row in rows):
        terminal.print("*: asymptotic, so nothing is claimed at a finite n.", highlight=False)


def coverage_document(rows: Sequence[Coverage]) -> Document:
    """The summary for machines."""
    from dataclasses import asdict
    from math import isnan

    return {
        "claims_believable": not any(row.refuted for row in rows),
        "rows": [
            asdict(row) | {"fraction": row.fraction, "refuted": row.refuted, "width": None if isnan(row.width) else row.width}
            for row in rows
        ],
    }


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def _share(fraction: float) -> str:
    return "" if fraction == 0 else f"{100 * fraction:.0f}%"


def _print_families(as_json: bool) -> None:
    from ..laboratory import families_named

    known = families_named()
    if as_json:
        print_json(
            {
                "families": [
                    {"name": one.name, "data": one.data_kind.value, "description": one.description, "truth": one.truth}
                    for one in known
                ]
            }
        )
        return
    for one in known:
        console().print(f"[bold]{one.name}[/] ({one.data_kind.value}): {one.description}", highlight=False)
