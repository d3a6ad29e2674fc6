"""`aope monitor`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from ..bounds.looks import Look, MonitorReport, first_decision
from ..bounds.monitor import Monitor, read_history
from ..classes.features import FeatureMap, TabularFeatures
from ..errors import InvalidFile, InvalidInput
from ..io.coding import NO_WORDS
from ..io.display import ends_text
from ..kernels.kernel import Tabular
from ..problem.policy import Policy
from ..problem.problem import Question
from ..problem.statements import Status
from ..radii.doubts import shown_status
from ..report.document import columns_document
from ..report.monitor_plot import monitor_figure
from ..report.watching import judgment, monitor_document, monitor_sentence
from ..validation import number
from .class_options import RANDOM, FourierOptions
from .deciding import JUDGED
from .exits import NO_DECISION
from .inputs import columns_of, read_log, read_policy, read_starts
from .options import CLASS, DECLARATIONS, Declarations, ProblemOptions, RadiusOptions
from .output import EXIT_CODES, PlotOptions, console, print_json
from .parsing import parse_vectors
from .text import print_columns, print_doubts, status_text, titled_table

SHOWN = 20
"""Looks in the table; --json holds all of them."""


def monitor(
    state: Annotated[Path, Parameter(help="State of the monitor (.npz): made on first use, then updated.")],
    batches: Annotated[tuple[Path, ...], Parameter(help="Files of new transitions, Parquet or CSV, in the order of generation.")],
    /,
    *,
    planned: Annotated[int, Parameter(help="Number of rows at which the intervals are to be tightest, fixed at first.")],
    threshold: Annotated[float | None, Parameter(help="Say when the value is certain to be at least this, or below.")] = None,
    problem: ProblemOptions = ProblemOptions(),
    declared: Declarations = Declarations(),
    terminates: Annotated[
        bool | None,
        Parameter(group=DECLARATIONS, negative="--never-terminates", help="Whether states can be terminal."),
    ] = None,
    choice: FourierOptions = FourierOptions(),
    tabular_states: Annotated[
        str | None,
        Parameter(
            group=CLASS,
            allow_leading_hyphen=True,
            help="One-hot features over these states, such as 0,1,2 (vectors: 0,1;1,0), and all actions.",
        ),
    ] = None,
    radius: RadiusOptions = RadiusOptions(),
    output: PlotOptions = PlotOptions(),
) -> int:
    """One look per new batch, each saved before the next."""
    if terminates is None and declared.horizon is None and not declared.terminal_reward:
        raise InvalidInput("--terminates or --never-terminates is needed: it must not depend on which rows were seen so far.")
    if declared.misfit_norm is not None:
        raise InvalidInput("--misfit-norm is not for aope monitor: the coordinates of what features miss depend on all rows.")
    if problem.starts is None:
        raise InvalidInput("--starts is needed.")
    if threshold is not None:
        number(threshold, "threshold")
    problem.check()
    output.check(problem.files(*batches), {"STATE": state})
    choice.check()
    if tabular_states is not None:
        choice.refuse(*RANDOM, "feature_bandwidth", "kernel", "bandwidth", because="with --tabular-states")
    assumptions, kernel = declared.assumptions(terminates), choice.test_kernel()
    known = {look.label for look in read_history(state)} if state.exists() else set()
    labeled = [(path, _label(path)) for path in batches]
    new = [(path, label) for path, label in labeled if label not in known]
    _refuse_copies([*known, *(label for _, label in new)])
    read = [(path, label, read_log(path, problem, words=NO_WORDS)) for path, label in new or labeled[:1]]
    start_file = read_starts(problem.starts, problem, None)
    columns = columns_of(*(file for _, _, file in read), start_file)
    target = read_policy([(path, file) for path, _, file in read], start_file, problem)
    features: list[FeatureMap] = [*choice.classes()]
    if tabular_states is not None:
        kernel, features = Tabular(), [_tabular_class(tabular_states, target, choice.intercept)]
    open_monitor = partial(Monitor.load, state) if state.exists() else Monitor
    opened = open_monitor(
        Question(start_file.starts, target, assumptions),
        features=features,
        kernel=kernel,
        radius=radius.radius,
        delta=radius.delta,
        planned=planned,
    )
    report: MonitorReport | None = None
    for path, label, file in read if new else ():
        if (before := opened.look_with(file.data)) is not None:
            name = before.label.rpartition(" ")[0]
            raise InvalidInput(f"{path.name} holds the same rows as {name}, and rows must not be taken in twice.")
        try:
            report = opened.update(file.data, label)
        except InvalidInput as error:
            raise InvalidInput(f"{path} was not taken in: {error}") from error
        opened.save(state)
    if output.as_json:
        print_json("monitor", monitor_document(opened, report, threshold) | columns_document(columns))
    else:
        _print(opened, report, threshold, [path.name for path, label in labeled if label in known])
        print_columns(console(), columns)
    output.draw(lambda: monitor_figure(opened.history, threshold=threshold))
    if threshold is not None:
        proved = report is None or report.interval.check()
        return JUDGED[judgment(opened.history, threshold)] if proved else NO_DECISION
    return EXIT_CODES[shown_status(opened.history[-1].status, doubted=opened.history[-1].doubted)]


def _refuse_copies(labels: Sequence[str]) -> None:
    """Rows that count twice are not rows in the order of generation."""
    names: dict[str, str] = {}
    for name, _, digest in (label.rpartition(" ") for label in labels):
        if names.setdefault(digest, name) != name:
            raise InvalidInput(f"{name} holds the same as {names[digest]}, and rows must not be taken in twice.")


def _label(path: Path) -> str:
    """Name and content: the same file is not taken in twice."""
    if not path.is_file():
        raise InvalidFile(f"{path} is not a file.")
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def _tabular_class(text: str, policy: Policy, intercept: bool) -> TabularFeatures:
    """One-hot features over the declared states and all actions."""
    if policy.action_vectors is None:
        raise InvalidInput("--tabular-states needs a finite action set.")
    return TabularFeatures.grid(parse_vectors(text, "--tabular-states"), policy.action_vectors, intercept)


def _verdict(looks: Sequence[Look], threshold: float) -> str:
    """What is certain about the threshold, and since when."""
    decision = first_decision(looks, threshold)
    if decision is not None:
        side, unsure = (
            ">=" if decision.at_least else "<",
            (", before rows came that are copies" if looks[-1].copied else ", if the class contains Q, which is doubted")
            if looks[-1].doubted
            else "",
        )
        return f"value {side} {threshold:g}: certain since update {decision.update}, after {decision.look.count:,} rows{unsure}."
    if looks[-1].status is Status.INCONSISTENT:
        return f"value >= {threshold:g}: undecided, and nothing decided before stands: the class was refuted."
    return f"value >= {threshold:g}: undecided after {looks[-1].count:,} rows."


def _print(monitor: Monitor, report: MonitorReport | None, threshold: float | None, left_out: Sequence[str]) -> None:
    """One row per look, then what was decided and what was assumed."""
    terminal, looks = console(), monitor.history
    terminal.print(monitor_sentence(monitor), style="bold", markup=False)
    terminal.print()
    title = f"Value, {100 * (1 - monitor.delta):g}% confidence at all times together ({monitor.radius})"
    table = titled_table(title)
    table.add_column("update", justify="right")
    table.add_column("rows", justify="right", no_wrap=True)
    for name in ("now", "running", "status", "batch"):
        table.add_column(name, no_wrap=name != "batch")
    for update, look in list(enumerate(looks, start=1))[-SHOWN:]:
        now, running, batch = _ends(*look.now), _ends(look.lower, look.upper), look.label.rpartition(" ")[0]
        table.add_row(str(update), f"{look.count:,}", now, running, status_text(look.status), escape(batch))
    terminal.print(table)
    if len(looks) > SHOWN:
        terminal.print(f"The first {len(looks) - SHOWN} updates are not shown; --json has them.")
    if left_out:
        terminal.print(f"Taken in before, and left out: {escape(', '.join(left_out))}.")
    if threshold is not None:
        terminal.print(_verdict(looks, threshold))
    if looks[-1].status is not Status.OK:
        terminal.print(f"\n{status_text(looks[-1].status)}: {looks[-1].status.value}")
    print_doubts(terminal, () if report is None else report.interval.doubts)
    if report is not None:
        terminal.print("\nAssumed:")
        for line in report.interval.premises:
            terminal.print(f"  - {escape(str(line))}")
        checked = "recomputed and valid" if report.interval.check() else "[red]NOT VALID[/]"
        terminal.print(f"\nCertificates of the last interval: {checked}.")


def _ends(low: float, high: float) -> str:
    return "-" if math.isnan(low) else escape(ends_text(low, high))
