"""`aope sensitivity`: what if an assumption is wrong?"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from .application import app, check_plot, console, exit_code, print_json
from .options import (
    ActionValues,
    AsJson,
    Bandwidth,
    ClassChoice,
    DataFile,
    Declared,
    Delta,
    DeterministicReward,
    Discount,
    FeatureBandwidth,
    FeatureCount,
    Horizon,
    KernelName,
    Landmarks,
    Misfit,
    NoIntercept,
    NormBound,
    OneStepRange,
    PolicyName,
    RelativeNormBound,
    RewardRange,
    SampledStarts,
    Seed,
    SinglePrecision,
    Starts,
    StateBox,
    SymmetricNoise,
    TabularClass,
    TerminalReward,
    ValueRange,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..bounds.findings import Curve, Flip, LeastNorm, RowsNeeded
    from ..kernels.products import Progress
    from ..report.document import Document

DEFAULT_OVER = ("norm-bound", "misfit", "delta", "reward-range")


@app.command()
def sensitivity(
    data: DataFile,
    discount: Discount,
    reward_range: RewardRange,
    over: Annotated[
        list[str] | None,
        typer.Option(
            help="What to vary: norm-bound, misfit, delta, reward-range or discount; repeatable. [default: all but the last]"
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help='The decision "value >= threshold": up to where is it supported?')
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="Estimate the number of transitions that an interval of this width takes.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the interval against what is varied, to .png, .svg or .pdf.")] = None,
    starts: Starts = None,
    sampled_starts: SampledStarts = False,
    policy: PolicyName = None,
    action_values: ActionValues = None,
    value_range: ValueRange = None,
    norm_bound: NormBound = None,
    relative_norm: RelativeNormBound = None,
    horizon: Horizon = None,
    terminal_reward: TerminalReward = False,
    deterministic_reward: DeterministicReward = False,
    state_box: StateBox = None,
    misfit: Misfit = 0.0,
    symmetric_noise: SymmetricNoise = False,
    one_step_range: OneStepRange = None,
    delta: Delta = 0.1,
    radius: Annotated[str, typer.Option(help="Radius.")] = "certified",
    features: FeatureCount = 50,
    feature_bandwidth: FeatureBandwidth = None,
    landmarks: Landmarks = None,
    tabular: TabularClass = False,
    no_intercept: NoIntercept = False,
    kernel: KernelName = "gaussian",
    bandwidth: Bandwidth = "1.0",
    seed: Seed = 0,
    single_precision: SinglePrecision = False,
    as_json: AsJson = False,
) -> None:
    """Show how the interval depends on each assumption, and where a decision made with it would flip."""
    from ..bounds.findings import Parameter
    from ..bounds.sensitivity import parameter_named, study
    from ..kernels.products import TileOptions
    from ..report.document import ladder_document
    from ..validation import number, positive
    from .inputs import read_problem
    from .text import print_ladder

    chosen = list(dict.fromkeys(parameter_named(name) for name in over or DEFAULT_OVER))
    wanted = None if threshold is None else number(threshold, "threshold")
    if width is not None:
        positive(width, "width")
    if wanted is not None and relative_norm is not None and set(chosen) - {Parameter.NORM_BOUND, Parameter.DISCOUNT}:
        raise InvalidInput("--threshold with --relative-norm goes with --over norm-bound only: other intervals are not nested.")
    if plot is not None:
        check_plot(plot)
    choice = ClassChoice(tabular, features, feature_bandwidth, landmarks, not no_intercept, kernel, bandwidth, seed)
    declared = Declared(
        discount, reward_range, value_range, norm_bound, relative_norm, horizon, terminal_reward, deterministic_reward,
        state_box, misfit, symmetric_noise, one_step_range,
    )  # fmt: skip
    facts, test_kernel = declared.assumptions(), choice.test_kernel()
    problem = read_problem(data, starts, sampled_starts, policy, action_values)
    classes, options = choice.classes(problem), TileOptions(single_precision=single_precision)
    flips: list[Flip] = []
    least = rows = None
    with _phases(not as_json) as phase:
        made = study(
            problem.data, problem.starts, problem.policy, assumptions=facts, kernel=test_kernel, features=classes,
            radius=radius, delta=delta, options=options, progress=phase("kernel statistic"),
        )  # fmt: skip
        curves = [made.curve(one, progress=phase(f"intervals over {one.value}")) for one in chosen]
        if Parameter.NORM_BOUND in chosen:
            phase("least norm")
            least = made.least_norm()
        for one in chosen:
            if wanted is not None and one is not Parameter.DISCOUNT:
                phase(f"flip point in {one.value}")
                flips.append(made.flip_point(wanted, one))
        if width is not None:
            rows = made.rows_needed(width, progress=phase("prefixes of the data"))
    if as_json:
        extra = sensitivity_document(curves, least, flips, rows)
        print_json(ladder_document([made.baseline], problem.data) | extra)
    else:
        terminal = console()
        print_ladder(terminal, [made.baseline])
        print_sensitivity(terminal, curves, least, flips, rows)
    if plot is not None:
        from ..report.plots import save_figure
        from ..report.sensitivity_plot import sensitivity_figure

        save_figure(sensitivity_figure(curves, flips, wanted), plot)
        typer.echo(f"Plot: {plot}", err=True)
    raise typer.Exit(exit_code([made.baseline]))


def print_sensitivity(
    terminal: Console, curves: Sequence[Curve], least: LeastNorm | None, flips: Sequence[Flip], rows: RowsNeeded | None
) -> None:
    """A table per curve, then the least norm, the flip points and the number of rows."""
    from .text import STYLE, number_text

    for curve in curves:
        terminal.print()
        table = _table(f"{curve.parameter.value} varied (* declared)")
        for name in (_heading(curve), "value", "width", "status"):
            table.add_column(name, no_wrap=True)
        for row in curve.rows():
            known = not math.isnan(row.lower)
            table.add_row(
                f"{number_text(row.value)}{' *' if row.baseline else ''}",
                f"\\[{number_text(row.lower)}, {number_text(row.upper)}]" if known else "-",
                number_text(row.upper - row.lower) if known else "-",
                f"[{STYLE[row.status]}]{row.status.name}[/]",
            )
        terminal.print(table, highlight=False)
    if least is not None:
        terminal.print(_least_text(least), highlight=False)
    if flips:
        _print_flips(terminal, flips)
    if rows is not None:
        terminal.print(f"\nWidth {number_text(rows.width)}: {rows.outcome.name}. {rows.outcome.value}", highlight=False)
        if rows.rows is not None and rows.slower is not None and rows.slower > rows.points[-1].rows:
            terminal.print(
                f"About {_round(rows.rows):,} transitions if the width goes on falling as on the data at hand, "
                f"{_round(rows.slower):,} if from here on it falls with the square root of their number only.",
                highlight=False,
            )
        found = ", ".join(f"{one.rows:,}: {number_text(one.width)} {one.status.name}" for one in rows.points)
        terminal.print(f"Widths from the first transitions: {found}.", highlight=False)


def _print_flips(terminal: Console, flips: Sequence[Flip]) -> None:
    from .text import number_text

    terminal.print()
    supported = "supported" if flips[0].baseline_supports else "not supported"
    table = _table(f"Decision: value >= {flips[0].threshold:g}, {supported} at what was declared")
    for name in ("assumption", "outcome", "supported to", "lower end there", "not at"):
        table.add_column(name, no_wrap=True)
    for one in flips:
        style = "green" if one.baseline_supports else "yellow"
        numbers = ("-" if x is None else number_text(x) for x in (one.value, one.lower, one.beyond))
        table.add_row(one.parameter.value, f"[{style}]{one.outcome.name}[/]", *numbers)
    terminal.print(table, highlight=False)
    for outcome in dict.fromkeys(one.outcome for one in flips):
        terminal.print(f"{outcome.name}: {outcome.value}", highlight=False)


def sensitivity_document(
    curves: Sequence[Curve], least: LeastNorm | None, flips: Sequence[Flip], rows: RowsNeeded | None
) -> Document:
    """What is added to the document of the interval."""
    return {
        "curves": [
            {
                "over": curve.parameter.value,
                "baseline": curve.baseline,
                "rows": [
                    {
                        "value": row.value,
                        "lower": _finite(row.lower),
                        "upper": _finite(row.upper),
                        "status": row.status.name,
                        "baseline": row.baseline,
                    }
                    for row in curve.rows()
                ],
            }
            for curve in curves
        ],
        "least_norm": None if least is None else {"value": least.value, "consistent": least.consistent},
        "flips": [
            {
                "over": one.parameter.value,
                "threshold": one.threshold,
                "outcome": one.outcome.name,
                "advice": one.outcome.value,
                "value": one.value,
                "lower": one.lower,
                "beyond": one.beyond,
                "baseline": one.baseline,
                "baseline_supports": one.baseline_supports,
            }
            for one in flips
        ],
        "rows_needed": None
        if rows is None
        else {
            "width": rows.width,
            "outcome": rows.outcome.name,
            "advice": rows.outcome.value,
            "rows": rows.rows,
            "slower": rows.slower,
            "floor": rows.floor,
            "points": [{"rows": one.rows, "width": _finite(one.width), "status": one.status.name} for one in rows.points],
        },
    }


def _least_text(least: LeastNorm) -> str:
    if least.consistent is None:
        return "The data refute the class whatever the norm of Q."
    if least.value == 0:
        return "A constant Q is consistent with the data: they say nothing about its norm."
    return (
        f"The norm of Q is above {least.value:.3g} with {100 * (1 - least.delta):g}% confidence: smaller bounds are refuted. An "
        "upper bound cannot be learnt from data."
    )


def _heading(curve: Curve) -> str:
    from ..bounds.findings import Parameter

    return "times the range" if curve.parameter is Parameter.REWARD_RANGE else curve.parameter.value


def _round(count: int) -> int:
    """Two digits: more would pretend."""
    return int(float(f"{count:.1e}"))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False)


@contextmanager
def _phases(wanted: bool) -> Iterator[Callable[[str], Progress | None]]:
    """A bar on the error stream, when a person is looking; each phase names itself and gets its own progress."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def phase(name: str) -> Progress:
            bar.reset(task, description=name, total=None)
            return lambda done: bar.update(task, completed=done, total=1.0)

        yield phase
