"""`aope coverage`: how often intervals hold the truth, on problems whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..errors import InvalidInput
from ..laboratory import Coverage, Trial, families_named, methods_named, refuted, run_trials, stored_trials, summarize
from ..laboratory.families import GROUPS
from ..laboratory.page import check_page, write_page
from ..laboratory.trials import DEFAULT_COUNTS
from ..report.coverage_plot import coverage_figure
from ..report.document import Document
from ..validation import probability_level
from .options import DELTA, OUTPUT, RADIUS, Workers, default_of
from .output import PlotOptions, check_folder, console, note, print_json, progress

EXIT_REFUTED = 1
COUNTS = ", ".join(map(str, DEFAULT_COUNTS))


def coverage(
    *,
    family: Annotated[tuple[str, ...], Parameter(help="Family of problems or group of families, repeatable. Default: all.")] = (),
    n: Annotated[tuple[int, ...], Parameter(name="--n", help="Number of transitions, repeatable.", show_default=COUNTS)] = (),
    trials: Annotated[int, Parameter(help="Data sets per family and n.")] = default_of(run_trials, "trials"),
    workers: Workers = None,
    out: Annotated[Path | None, Parameter(help="Folder that keeps finished trials, which are then not computed again.")] = None,
    stored: Annotated[
        bool, Parameter(help="Show what the folder of --out holds, whatever its number of trials; run nothing.")
    ] = False,
    list_families: Annotated[bool, Parameter(name="--list", help="List the families and leave.")] = False,
    radius: Annotated[tuple[str, ...], Parameter(group=RADIUS, help="Radius, repeatable. Default: the whole ladder.")] = (),
    delta: Annotated[
        tuple[float, ...], Parameter(group=RADIUS, help="Failure probability of the two-sided statement, repeatable.")
    ] = (DELTA,),
    markdown: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Write the tables between the marks of this Markdown page.")
    ] = None,
    output: PlotOptions = PlotOptions(),
) -> int:
    """A table of coverage and width, or what a folder holds of it."""
    if list_families:
        _print_families(output.as_json)
        return 0
    chosen, problems = methods_named(radius or None), families_named(family or None)
    levels = tuple(dict.fromkeys(probability_level(level) for level in delta))
    if markdown is not None:
        check_page(markdown)
    output.check(others={"--markdown": markdown})
    if not stored:
        check_folder("--out", out)
    table: list[Trial] = []
    if stored:
        if out is None:
            raise InvalidInput("--stored needs --out, the folder that holds the trials.")
        for level in levels:
            table += stored_trials(out, problems, n or None, chosen if radius else None, level)
    else:
        with progress(output.as_json) as phase:
            for level in levels:
                table += run_trials(
                    problems,
                    n or DEFAULT_COUNTS,
                    chosen=chosen,
                    trials=trials,
                    delta=level,
                    workers=workers,
                    folder=out,
                    report=phase("data sets" if len(levels) == 1 else f"data sets, delta = {level:g}"),
                )
    rows = summarize(table)
    if output.as_json:
        print_json("coverage", coverage_document(rows))
    else:
        for level in levels:
            print_coverage(console(), [row for row in rows if row.delta == level])
    output.draw(lambda: coverage_figure(rows))
    if markdown is not None:
        write_page(markdown, rows)
        note(f"Page: {markdown}")
    wrong = refuted(rows)
    for row in wrong:
        note(
            f"Not believable: {row.method} covered {row.covered} of {row.trials} in {row.family} at n = {row.n}, where at least "
            f"{100 * (1 - row.delta):g}% is claimed."
        )
    return EXIT_REFUTED if wrong else 0


def print_coverage(terminal: Console, rows: Sequence[Coverage]) -> None:
    """One row per family, n and method."""
    counts = sorted({row.trials for row in rows})
    trials = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    title = f"{100 * (1 - rows[0].delta):g}% coverage is claimed; {trials} data sets, 95% Clopper-Pearson intervals"
    terminal.print(title)
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
    terminal.print(table)
    terminal.print(
        "width: mean, normalized; whole: the interval is the whole range of values; empty: no function of the class fits; "
        "s: seconds in one thread.",
        highlight=False,
    )
    if not all(row.claims for row in rows):
        terminal.print("*: asymptotic, so nothing is claimed at a finite n.")


def coverage_document(rows: Sequence[Coverage]) -> Document:
    """The summary for machines."""
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
    families = families_named()
    if as_json:
        keys = ("name", "data", "description", "truth")
        rows = [(family.name, family.data_kind.value, family.description, family.truth) for family in families]
        print_json("families", {"families": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    for group in GROUPS:
        console().print(f"Group [bold]{group.name}[/]: {', '.join(group.families)}")
    for family in families:
        console().print(f"[bold]{family.name}[/] ({family.data_kind.value}): {family.description}")
