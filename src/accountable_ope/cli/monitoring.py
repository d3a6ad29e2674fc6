"""`aope monitor`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidFile, InvalidInput
from .application import EXIT_INCONSISTENT, EXIT_VACUOUS, app, check_plot, console, print_json
from .options import (
    ActionValues,
    AsJson,
    Bandwidth,
    ClassChoice,
    Declared,
    Delta,
    DeterministicReward,
    Discount,
    FeatureBandwidth,
    FeatureCount,
    Horizon,
    KernelName,
    Misfit,
    NoIntercept,
    NormBound,
    OneStepRange,
    PolicyName,
    RewardRange,
    SampledStarts,
    Seed,
    StateBox,
    SymmetricNoise,
    TerminalReward,
    ValueRange,
)

if TYPE_CHECKING:
    from ..bounds.monitor import Decision, Look, Monitor, MonitorReport
    from ..classes.features import FeatureMap
    from ..io.parquet import StartFile, TransitionFile
    from ..problem.policy import Policy
    from ..report.document import Document

SHOWN = 20
"""Looks in the table; --json holds all of them."""


@app.command()
def monitor(
    state: Annotated[Path, typer.Argument(help="State of the monitor (.npz): made on first use, then updated.")],
    batches: Annotated[list[Path], typer.Argument(help="Parquet files of new transitions, in the order of generation.")],
    planned: Annotated[int, typer.Option(help="Number of rows at which the intervals are to be tightest, fixed at first.")],
    discount: Discount,
    reward_range: RewardRange,
    starts: Annotated[Path, typer.Option(help="Parquet file of start states (state, weight, target_probability).")],
    sampled_starts: SampledStarts = False,
    policy: PolicyName = None,
    action_values: ActionValues = None,
    value_range: ValueRange = None,
    norm_bound: NormBound = None,
    horizon: Horizon = None,
    terminal_reward: TerminalReward = False,
    deterministic_reward: DeterministicReward = False,
    state_box: StateBox = None,
    misfit: Misfit = 0.0,
    symmetric_noise: SymmetricNoise = False,
    one_step_range: OneStepRange = None,
    terminates: Annotated[
        bool | None, typer.Option("--terminates/--never-terminates", help="Declared: whether states can be terminal.")
    ] = None,
    delta: Delta = 0.1,
    radius: Annotated[str, typer.Option(help="Radius; only those that hold at all times at once.")] = "certified",
    features: FeatureCount = 50,
    feature_bandwidth: FeatureBandwidth = None,
    tabular_states: Annotated[
        str | None, typer.Option(help="One-hot features over these states, such as 0,1,2 (vectors: 0,1;1,0), and all actions.")
    ] = None,
    no_intercept: NoIntercept = False,
    kernel: KernelName = "gaussian",
    bandwidth: Bandwidth = "1.0",
    seed: Seed = 0,
    threshold: Annotated[float | None, typer.Option(help="Say when the value is certain to be at least this, or below.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the running interval, to .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bound the value while data grow: look after every batch, stop when sure. Run the same command again with new batches.

    A batch that was taken in before, by name and content, is left out; a batch that is refused changes nothing.
    """
    from ..bounds.interval import Status
    from ..bounds.monitor import Monitor, read_history
    from ..io.parquet import read_start_file, read_transition_file

    if terminates is None and horizon is None and not terminal_reward:
        raise InvalidInput("--terminates or --never-terminates is needed: it must not depend on which rows were seen so far.")
    if plot is not None:
        check_plot(plot)
    declared = Declared(
        discount, reward_range, value_range, norm_bound, None, horizon, terminal_reward, deterministic_reward, state_box, misfit,
        symmetric_noise, one_step_range,
    )  # fmt: skip
    facts = replace(declared.assumptions(), terminates=terminates)
    choice = ClassChoice(tabular_states is not None, features, feature_bandwidth, None, not no_intercept, kernel, bandwidth, seed)
    exists = state.exists()
    known = {look.label for look in read_history(state)} if exists else set()
    labeled = [(path, _label(path)) for path in batches]
    new = [one for one in labeled if one[1] not in known]
    read = [(path, label, read_transition_file(path)) for path, label in new or labeled[:1]]
    start_file = read_start_file(starts, exact=not sampled_starts)
    target = _policy([(path, file) for path, _, file in read], start_file, policy, action_values)
    classes, test_kernel = _classes(choice, tabular_states, target), choice.test_kernel()
    if exists:
        own = Monitor.load(
            state, start_file.starts, target, assumptions=facts, kernel=test_kernel, features=classes, radius=radius, delta=delta,
            planned=planned,
        )  # fmt: skip
    else:
        own = Monitor(
            start_file.starts, target, assumptions=facts, kernel=test_kernel, features=classes, radius=radius, delta=delta,
            planned=planned,
        )  # fmt: skip
    report: MonitorReport | None = None
    for path, label, file in read if new else ():
        try:
            report = own.update(file.data, label)
        except InvalidInput as error:
            raise InvalidInput(f"{path} was not taken in: {error}") from error
        own.save(state)
    if as_json:
        print_json(_document(own, report, threshold))
    else:
        _print(own, report, threshold, [path.name for path, label in labeled if label in known])
    if plot is not None:
        from ..report.monitor_plot import monitor_figure
        from ..report.plots import save_figure

        save_figure(monitor_figure(own.history, threshold=threshold), plot)
        typer.echo(f"Plot: {plot}", err=True)
    codes = {Status.OK: 0, Status.VACUOUS: EXIT_VACUOUS, Status.INCONSISTENT: EXIT_INCONSISTENT}
    raise typer.Exit(codes[own.history[-1].status])


def _label(path: Path) -> str:
    """Name and content: the same file is not taken in twice."""
    if not path.is_file():
        raise InvalidFile(f"{path} is not a file.")
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def _policy(
    files: Sequence[tuple[Path, TransitionFile]], starts: StartFile, name: str | None, action_values: str | None
) -> Policy:
    """The target policy by name, or from the columns of all files together."""
    import numpy as np

    from ..problem.policy import TabulatedPolicy
    from .inputs import policy_from_columns, policy_from_name

    if name is not None:
        return policy_from_name(name, files[0][1].data, action_values)
    tables = [policy_from_columns(file, starts, action_values, str(path)) for path, file in files]
    states, probabilities = [one.states for one in tables], [one.probabilities for one in tables]
    return TabulatedPolicy(np.concatenate(states), np.concatenate(probabilities), tables[0].action_vectors)


def _classes(choice: ClassChoice, tabular_states: str | None, policy: Policy) -> list[FeatureMap]:
    """Random Fourier features, a class per bandwidth; or one-hot features over the declared states."""
    from ..classes.features import RandomFourier, TabularFeatures

    if tabular_states is None:
        widths = choice.feature_bandwidth or [1.0]
        return [RandomFourier(choice.features, width, choice.seed, choice.intercept) for width in widths]
    if policy.action_vectors is None:
        raise InvalidInput("--tabular-states needs a finite action set.")
    try:
        rows = [[float(x) for x in row.split(",")] for row in tabular_states.split(";")]
    except ValueError:
        raise InvalidInput(f"--tabular-states must be numbers separated by commas. Got {tabular_states!r}.") from None
    if len({len(row) for row in rows}) != 1:
        raise InvalidInput(f"--tabular-states must be vectors of one length. Got {tabular_states!r}.")
    states = [[x] for x in rows[0]] if len(rows) == 1 else rows
    return [TabularFeatures.grid(states, policy.action_vectors, choice.intercept)]


def _verdict(looks: Sequence[Look], threshold: float) -> str:
    """What is certain about the threshold, and since when."""
    from ..bounds.interval import Status
    from ..bounds.monitor import first_decision

    found = first_decision(looks, threshold)
    if found is not None:
        side = ">=" if found.at_least else "<"
        return f"value {side} {threshold:g}: certain since update {found.update}, after {found.look.count:,} rows."
    if looks[-1].status is Status.INCONSISTENT:
        return f"value >= {threshold:g}: undecided, and nothing decided before stands: the class was refuted."
    return f"value >= {threshold:g}: undecided after {looks[-1].count:,} rows."


def _print(own: Monitor, report: MonitorReport | None, threshold: float | None, left_out: Sequence[str]) -> None:
    """One row per look, then what was decided and what was assumed."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ..bounds.interval import Status
    from .text import STYLE

    terminal, looks = console(), own.history
    title = f"Value, {100 * (1 - own.delta):g}% confidence at all times together ({own.radius})"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("update", justify="right")
    table.add_column("rows", justify="right", no_wrap=True)
    for name in ("now", "running", "status", "batch"):
        table.add_column(name, no_wrap=name != "batch")
    for number, look in list(enumerate(looks, start=1))[-SHOWN:]:
        status = f"[{STYLE[look.status]}]{look.status.name}[/]"
        batch = look.label.rpartition(" ")[0]
        table.add_row(str(number), f"{look.count:,}", _ends(*look.now), _ends(look.lower, look.upper), status, batch)
    terminal.print(table, highlight=False)
    if len(looks) > SHOWN:
        terminal.print(f"The first {len(looks) - SHOWN} updates are not shown; --json has them.", highlight=False)
    if left_out:
        terminal.print(f"Taken in before, and left out: {', '.join(left_out)}.", highlight=False)
    if threshold is not None:
        terminal.print(_verdict(looks, threshold), highlight=False)
    if looks[-1].status is not Status.OK:
        terminal.print(f"\n[{STYLE[looks[-1].status]}]{looks[-1].status.name}[/]: {looks[-1].status.value}", highlight=False)
    if report is not None:
        terminal.print("\nAssumed:", highlight=False)
        for line in report.interval.assumed():
            terminal.print(f"  - {line}", highlight=False)
        checked = "recomputed and valid" if report.interval.check() else "[red]NOT VALID[/]"
        terminal.print(f"\nCertificates of the last interval: {checked}.", highlight=False)


def _ends(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"\\[{low:.4g}, {high:.4g}]"


def _document(own: Monitor, report: MonitorReport | None, threshold: float | None) -> Document:
    """The monitor for machines."""
    from ..report.document import interval_document

    decision = None if threshold is None else own.decided(threshold)
    return {
        "radius": own.radius,
        "delta": own.delta,
        "planned": own.planned,
        "rows": len(own),
        "status": own.history[-1].status.name,
        "decision": None if decision is None else _decision(decision),
        "looks": [_look(look) for look in own.history],
        "interval": None if report is None else interval_document(report.interval),
    }


def _decision(decision: Decision) -> Document:
    return {
        "threshold": decision.threshold,
        "at_least": decision.at_least,
        "update": decision.update,
        "rows": decision.look.count,
    }


def _look(look: Look) -> Document:
    numbers = {"lower_now": look.now[0], "upper_now": look.now[1], "lower": look.lower, "upper": look.upper}
    return {
        "rows": look.count,
        **{name: None if math.isnan(value) else value for name, value in numbers.items()},
        "status_now": look.status_now.name,
        "status": look.status.name,
        "seconds": look.seconds,
        "batch": look.label,
    }
