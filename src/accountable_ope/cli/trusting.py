"""`aope trust`: how often a first answer is wrong, on tasks whose Q is in no class at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..errors import InvalidInput
from ..report.document import Document
from ..trust.answers import FEW, LARGE, MANY, SIZES, Answer, Plan, keep_answers, read_answers, read_kept, run_answers
from ..trust.goals import goals
from ..trust.methods import METHOD_NAMES, methods_named
from ..trust.page import check_page, write_page
from ..trust.recipe import made_by
from ..trust.summary import Trust, refuted, summarize, verdict
from ..trust.task import Task
from ..trust.tasks import Skipped, tasks_named
from .options import DELTA, OUTPUT, AsJson, Workers
from .output import check_folder, check_kept, check_places, console, note, print_json, progress

EXIT_REFUTED = 1
QUICK = Plan(sizes=(1_000,), methods=methods_named(("default", "sandwich")), logs=1, policies=1)
"""Every task once."""


def trust(
    *,
    task: Annotated[tuple[str, ...], Parameter(help="Task, repeatable. Default: all that can be run here.")] = (),
    n: Annotated[
        tuple[int, ...],
        Parameter(name="--n", help="Number of transitions, repeatable.", show_default=", ".join(map(str, SIZES))),
    ] = (),
    logs: Annotated[
        int | None, Parameter(help="Logs per task and n.", show_default=f"{MANY}, or {FEW} of {LARGE:,} rows and more")
    ] = None,
    method: Annotated[tuple[str, ...], Parameter(help="Method, repeatable.", show_default=", ".join(METHOD_NAMES))] = (),
    delta: Annotated[float, Parameter(help="Failure probability of the two-sided statement.")] = DELTA,
    quick: Annotated[
        bool, Parameter(help="A small run: one log of 1,000 rows per task, one policy, the default and the sandwich.")
    ] = False,
    workers: Workers = None,
    out: Annotated[Path | None, Parameter(help="Folder that keeps finished answers, which are then not computed again.")] = None,
    known: Annotated[
        Path | None, Parameter(name="--from", help="File of finished answers (--keep) to start from, beside --out.")
    ] = None,
    stored: Annotated[bool, Parameter(help="Show what --out and --from hold, however many logs; run nothing.")] = False,
    keep: Annotated[
        Path | None,
        Parameter(group=OUTPUT, help="Write all answers, also those of --out and --from, to one compact Parquet file."),
    ] = None,
    list_tasks: Annotated[bool, Parameter(name="--list", help="List the tasks and leave.")] = False,
    markdown: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Write the table between the marks of this Markdown page.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """A verdict, and a row per task, policy, n and method; or what a folder holds of it."""
    tasks, skipped = tasks_named(task or None)
    if list_tasks:
        _print_tasks(tasks, skipped, as_json)
        return 0
    start = QUICK if quick else Plan()
    plan = Plan(
        sizes=n or start.sizes,
        methods=methods_named(method) if method else start.methods,
        logs=start.logs if logs is None else logs,
        delta=delta,
        policies=start.policies,
    )
    if markdown is not None:
        check_page(markdown)
    check_places({"--markdown": markdown, "--keep": keep}, [] if known is None else [known])
    check_kept(keep, lambda path: read_kept(path, tasks))
    before = () if known is None else read_kept(known, tasks)
    if stored:
        answers = _stored(out, known, before, tasks, plan if n or method or quick else None, delta)
    else:
        check_folder("--out", out)
        with progress(as_json) as phase:
            answers = run_answers(tasks, plan, workers=workers, folder=out, known=before, report=phase("answers"))
    if keep is not None:
        everything = tasks_named(None)[0]
        held = () if known is None else read_kept(known, everything)
        added = () if out is None else read_answers(out, everything)
        keep_answers(tuple({row.key: row for row in (*held, *added, *answers)}.values()), keep)
        note(f"Answers: {keep}")
    rows = summarize(answers)
    if as_json:
        print_json("trust", trust_document(rows, skipped))
    else:
        print_trust(console(), rows, skipped)
    if markdown is not None:
        write_page(markdown, rows, skipped, made_by(answer.recipe for answer in answers))
        note(f"Page: {markdown}")
    return EXIT_REFUTED if refuted(rows) else 0


def _stored(
    out: Path | None, known: Path | None, before: Sequence[Answer], tasks: Sequence[Task], plan: Plan | None, delta: float
) -> tuple[Answer, ...]:
    """What folder and file hold at this delta; with a plan, of its sizes and methods only."""
    if out is None and known is None:
        raise InvalidInput("--stored needs --out, the folder that holds the answers, or --from, the file.")
    held = {row.key: row for row in before} | {row.key: row for row in (() if out is None else read_answers(out, tasks))}
    found = tuple(
        row
        for row in held.values()
        if row.delta == delta
        and (plan is None or (row.n in plan.sizes and row.method in [method.value for method in plan.methods]))
    )
    if not found:
        places = " and ".join(str(each) for each in (out, known) if each is not None)
        raise InvalidInput(f"{places} {'hold' if out and known else 'holds'} no such answers at delta = {delta:g}.")
    return found


def print_trust(terminal: Console, rows: Sequence[Trust], skipped: Sequence[Skipped]) -> None:
    """The verdict, then the table."""
    terminal.print(verdict(rows))
    for goal in goals(rows):
        terminal.print(str(goal), highlight=False)
    for each in skipped:
        terminal.print(f"Skipped {each.name}: {each.reason}.")
    table = Table(box=SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("task", no_wrap=True)
    for name in ("n", "logs", "covered", "width", "whole", "empty", "doubted", "WRONG", "by", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    task, policy = "", ""
    for row in rows:
        if row.task != task:
            table.add_row(f"[bold]{row.task}[/]")
        if (row.task, row.policy) != (task, policy):
            table.add_row(f" {row.policy}")
        task, policy = row.task, row.policy
        table.add_row(
            f"  {row.method}",
            str(row.n),
            str(row.logs),
            str(row.covered),
            "-" if row.width is None else f"{row.width:.3f}",
            *(str(count or "") for count in (row.vacuous, row.inconsistent, row.wrong_with_doubt, row.wrong)),
            "" if row.farthest == 0 else f"{row.farthest:.3f}",
            f"{row.seconds:.1f}" if row.seconds < 10 else f"{row.seconds:.0f}",
            style="red" if row.refuted else None,
        )
    terminal.print(table)
    terminal.print(
        "width: median share of the range of values; whole: the interval is that range; empty: the log refutes the class; "
        "doubted: wrong, and said to be doubted; WRONG: wrong without a doubt; by: the farthest miss, as such a share; s: "
        "seconds of processor time.",
        highlight=False,
    )


def trust_document(rows: Sequence[Trust], skipped: Sequence[Skipped]) -> Document:
    """The table for machines."""
    return {
        "verdict": verdict(rows),
        "goals": [
            {
                "n": each.n,
                "tasks": each.tasks,
                "useful": each.useful,
                "of": each.every,
                "wanted": float(each.wanted),
                "holds": each.holds,
            }
            for each in goals(rows)
        ],
        "refuted": bool(refuted(rows)),
        "skipped": [asdict(each) for each in skipped],
        "rows": [
            asdict(row) | {"rate": row.rate, "judged": row.judged, "exceeds": row.exceeds, "refuted": row.refuted} for row in rows
        ],
    }


def _print_tasks(tasks: Sequence[Task], skipped: Sequence[Skipped], as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": task.name,
                "description": task.description,
                "hidden": task.hidden,
                "policies": [{"name": target.name, **asdict(target.truth)} for target in task.targets],
            }
            for task in tasks
        ]
        print_json("tasks", {"tasks": rows, "skipped": [asdict(each) for each in skipped]})
        return
    for task in tasks:
        policies = ", ".join(f"{target.name} ({target.truth.value:.4g})" for target in task.targets)
        console().print(f"[bold]{task.name}[/]: {task.description} Policies: {policies}.")
    for each in skipped:
        console().print(f"[bold]{each.name}[/]: skipped, {each.reason}.")
