"""`aope arena`: interval estimators, ours and those of others, on problems whose value is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..arena.bout import Bout
from ..arena.challenge import Challenge
from ..arena.challenges import GROUPS, challenges_named, group_of
from ..arena.costs import FAST, FEW, MANY, Costs
from ..arena.entrants import entrants_named
from ..arena.judging import Ranking, Standing, standings
from ..arena.keeping import keep_bouts, read_bouts, read_kept
from ..arena.own import is_own
from ..arena.page import check_page, seconds_text, verdict, width_text, write_page
from ..arena.running import SIZES, Arena, Plan
from ..baselines.contestant import Contestant
from ..errors import InvalidInput
from ..report.arena import arena_document, entrants_document, plan_document
from ..report.arena_plot import arena_figure
from ..trust.recipe import made_by
from ..trust.tasks import Skipped
from .options import DELTA, OUTPUT, Workers
from .output import PlotOptions, check_folder, check_kept, console, note, print_json, progress

EXIT_REFUTED = 1
QUICK = Plan(sizes=(500,), trials=1)
"""Everything once."""


def arena(
    *,
    problem: Annotated[tuple[str, ...], Parameter(help="Problem or group of problems, repeatable. Default: all.")] = (),
    contestant: Annotated[tuple[str, ...], Parameter(help="Method, repeatable. Default: all.")] = (),
    n: Annotated[
        tuple[int, ...],
        Parameter(name="--n", help="Number of transitions, repeatable.", show_default=", ".join(map(str, SIZES))),
    ] = (),
    trials: Annotated[
        int | None,
        Parameter(help="Logs per problem and n.", show_default=f"{MANY} where one takes less than {FAST:g} s, else {FEW}"),
    ] = None,
    delta: Annotated[float, Parameter(help="Failure probability of the two-sided statement.")] = DELTA,
    quick: Annotated[bool, Parameter(help="A small run: every method once on a log of 500 rows of every problem.")] = False,
    workers: Workers = None,
    out: Annotated[Path | None, Parameter(help="Folder that keeps finished trials, which are then not computed again.")] = None,
    known: Annotated[
        Path | None, Parameter(name="--from", help="File of finished trials (--keep) to start from, beside --out.")
    ] = None,
    stored: Annotated[bool, Parameter(help="Show what --out and --from hold, however many logs; run nothing.")] = False,
    keep: Annotated[
        Path | None,
        Parameter(group=OUTPUT, help="Write all trials, also those of --out and --from, to one compact Parquet file."),
    ] = None,
    plan: Annotated[bool, Parameter(help="Run the first log of each only, and print what all would take.")] = False,
    list_entrants: Annotated[bool, Parameter(name="--list", help="List problems and methods and leave.")] = False,
    markdown: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Write the tables between the marks of this Markdown page.")
    ] = None,
    output: PlotOptions = PlotOptions(),
) -> int:
    """The verdict, everybody over all problems, and the narrowest of each; or what a folder holds of it."""
    challenges, skipped = challenges_named(problem or None)
    contestants = entrants_named(contestant or None)
    if list_entrants:
        _print_entrants(challenges, contestants, skipped, output.as_json)
        return 0
    start = QUICK if quick else Plan()
    asked = Plan(sizes=n or start.sizes, trials=start.trials if trials is None else trials, delta=delta)
    if markdown is not None:
        check_page(markdown)
    output.check(others={"--markdown": markdown, "--keep": keep}, inputs=[] if known is None else [known])
    check_kept(keep, lambda path: read_kept(path, challenges))
    if plan and (stored or trials is not None):
        raise InvalidInput("--plan says how many logs there would be: leave out --trials and --stored.")
    before = () if known is None else read_kept(known, challenges)
    if stored:
        rows = _stored(out, known, before, challenges, contestants, asked if n or quick else None, delta)
    else:
        check_folder("--out", out)
        where = Arena(challenges, contestants, asked, out, workers, before)
        with progress(output.as_json) as phase:
            if plan:
                costs = where.costs(phase("the first log of each"))
                if output.as_json:
                    print_json("arena-plan", plan_document(costs))
                else:
                    print_plan(console(), costs)
                return 0
            rows = where.run(phase)
    if keep is not None:
        everything = challenges_named(None)[0]
        held = () if known is None else read_kept(known, everything)
        added = () if out is None else tuple(read_bouts(out, everything))
        keep_bouts(tuple({row.key: row for row in (*held, *added, *rows)}.values()), keep)
        note(f"Trials: {keep}")
    ranking = Ranking(standings(rows))
    if output.as_json:
        print_json("arena", arena_document(ranking, skipped))
    else:
        print_ranking(console(), ranking, skipped)
    output.draw(lambda: arena_figure(ranking))
    if markdown is not None:
        write_page(markdown, ranking, skipped, made_by(row.recipe for row in rows if is_own(row.contestant)))
        note(f"Page: {markdown}")
    return EXIT_REFUTED if any(row.own for row in ranking.refuted) else 0


def _stored(
    out: Path | None,
    known: Path | None,
    before: Sequence[Bout],
    challenges: Sequence[Challenge],
    contestants: Sequence[Contestant],
    plan: Plan | None,
    delta: float,
) -> tuple[Bout, ...]:
    """What folder and file hold at this delta; with a plan, of its sizes only."""
    if out is None and known is None:
        raise InvalidInput("--stored needs --out, the folder that holds the trials, or --from, the file.")
    names = {each.name for each in contestants}
    held = {row.key: row for row in (*before, *(() if out is None else read_bouts(out, challenges)))}
    found = tuple(
        row for row in held.values() if row.delta == delta and row.contestant in names and (plan is None or row.n in plan.sizes)
    )
    if not found:
        places = " and ".join(str(each) for each in (out, known) if each is not None)
        raise InvalidInput(f"{places} {'hold' if out and known else 'holds'} no such trials at delta = {delta:g}.")
    return found


def print_ranking(terminal: Console, ranking: Ranking, skipped: Sequence[Skipped]) -> None:
    """The verdict, everybody over all cells, the narrowest of every cell."""
    terminal.print(verdict(ranking))
    for each in skipped:
        terminal.print(f"Skipped {each.name}: {each.reason}.")
    table = Table(box=SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("method")
    for name in ("cells kept", "kept", "width", "s", "silent", "logs"):
        table.add_column(name, justify="right", no_wrap=True)
    for career in ranking.careers:
        table.add_row(
            f"{career.contestant}{' *' if career.guarantee == 'asymptotic' else ''}",
            f"{career.kept}/{career.cells}",
            f"{career.fraction:.3f}",
            width_text(career.width),
            seconds_text(career.seconds),
            str(career.silent or ""),
            str(career.logs),
            style="red" if career.refuted else None,
        )
    terminal.print(table)
    cells = Table(box=SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    cells.add_column("problem", no_wrap=True)
    cells.add_column("n", justify="right", no_wrap=True)
    cells.add_column("narrowest without propensities")
    cells.add_column("narrowest of all")
    before = ""
    for cell in ranking.cells:
        cells.add_row(
            "" if cell.challenge == before else cell.challenge, str(cell.n), _winner(cell.without), _winner(cell.anybody)
        )
        before = cell.challenge
    terminal.print(cells)
    terminal.print(
        "kept: the share of logs on which it did not miss; width: a mean share of the range of values, a log without an interval "
        "counts as all of it; s: seconds of processor time; narrowest: of those that miss no more often than promised. *: "
        "promised for many rows only. --markdown and --json have every cell.",
        highlight=False,
    )


def _winner(row: Standing | None) -> str:
    return "nobody" if row is None else f"{row.contestant} ({width_text(row.width)})"


def print_plan(terminal: Console, costs: Costs) -> None:
    """What a trial takes, and what all of them would."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("method")
    for name in ("n", "problems", "s", "slowest", "trials", "hours"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in costs.lines():
        table.add_row(
            line.contestant,
            str(line.n),
            str(line.problems),
            seconds_text(line.seconds),
            seconds_text(line.slowest),
            str(line.trials),
            f"{line.hours:.2f}",
        )
    terminal.print(table)
    terminal.print(f"All: {costs.total / 3600:.1f} hours of processor time.")
    for each in costs.left_out:
        terminal.print(f"Left out, since it would take too long: {each.contestant} on {each.challenge} at n = {each.n}.")


def _print_entrants(
    challenges: Sequence[Challenge], contestants: Sequence[Contestant], skipped: Sequence[Skipped], as_json: bool
) -> None:
    if as_json:
        print_json("entrants", entrants_document(challenges, contestants, skipped))
        return
    for group in GROUPS:
        own = [each for each in challenges if group_of(each.name) is group]
        if own:
            console().print(f"Group [bold]{group.name}[/]")
        for each in own:
            known = "recorded" if each.recorded else "not recorded"
            console().print(
                f"[bold]{each.name}[/] ({each.data_kind.value}; propensities {known}; class told: {each.told.value}): "
                f"{each.description} Value {each.truth.value:.4g}."
            )
    for absent in skipped:
        console().print(f"[bold]{absent.name}[/]: skipped, {absent.reason}.")
    for contestant in contestants:
        needs = ", ".join(contestant.needs.words) or "nothing"
        console().print(
            f"[bold]{contestant.name}[/] ({contestant.guarantee.value}; needs {needs}): {contestant.title}; {contestant.source}."
        )
