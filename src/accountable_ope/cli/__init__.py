"""The command line: `aope bound`, `aope check`, `aope demo`. No mathematics here.

Exit codes: 0 an interval that says something; 2 bad input; 3 every interval is vacuous; 4 no class is consistent with the data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import AopeError, InvalidFile, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from ..reductions.numpy_tiles import Progress
    from ..report.document import Document
    from ..result import ValueInterval
    from ..transitions import Transitions

EXIT_BAD_INPUT, EXIT_VACUOUS, EXIT_INCONSISTENT = 2, 3, 4

app = typer.Typer(
    help="Confidence bounds on a policy's value from logged data, without the behaviour policy, with certificates.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; a problem with the input is one sentence and exit code 2."""
    try:
        app()
    except AopeError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)


DataFile = Annotated[Path, typer.Argument(help="Parquet file of transitions: state, action, reward, next_state, ...")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command()
def bound(
    data: DataFile,
    discount: Annotated[float, typer.Option(help="Discount factor.")],
    reward_range: Annotated[tuple[float, float], typer.Option(help="Declared range of every reward, logged or not.")],
    starts: Annotated[
        Path | None, typer.Option(help="Parquet file of start states (state, weight, target_probability). None: first states.")
    ] = None,
    sampled_starts: Annotated[
        bool, typer.Option("--sampled-starts", help="The start states are an i.i.d. sample, not the distribution itself.")
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(help="module:function of the target policy (states -> probabilities). None: columns of the files."),
    ] = None,
    action_values: Annotated[
        str | None, typer.Option(help="A number per action, such as -1,0,1 (vectors: 0,1;1,0). None: one-hot vectors.")
    ] = None,
    value_range: Annotated[
        tuple[float, float] | None, typer.Option(help="Declared range of the value, where tighter than the rewards imply.")
    ] = None,
    norm_bound: Annotated[float | None, typer.Option(help="Declared bound on the norm of Q, the constant left out.")] = None,
    relative_norm: Annotated[
        float | None, typer.Option(help="Declared bound as a multiple of the least norm that is consistent with the data.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Declared: every episode ends within this many steps.")] = None,
    terminal_reward: Annotated[
        bool, typer.Option("--terminal-reward", help="Declared: only the end of an episode pays.")
    ] = False,
    deterministic_reward: Annotated[
        bool, typer.Option("--deterministic-reward", help="Declared: the reward is a function of state and action.")
    ] = False,
    delta: Annotated[float, typer.Option(help="Failure probability of the two-sided statement.")] = 0.1,
    radius: Annotated[list[str] | None, typer.Option(help="Radius, repeatable. None: the whole ladder.")] = None,
    features: Annotated[int, typer.Option(help="Number of random Fourier features.")] = 50,
    feature_bandwidth: Annotated[
        list[float] | None, typer.Option(help="Bandwidth of the features, repeatable: the union of the classes. [default: 1.0]")
    ] = None,
    tabular: Annotated[bool, typer.Option("--tabular", help="One-hot features, for finitely many states.")] = False,
    no_intercept: Annotated[
        bool, typer.Option("--no-intercept", help="The paper's class: no unpenalised constant in Q.")
    ] = False,
    kernel: Annotated[str, typer.Option(help="Test kernel: gaussian, laplace or tabular.")] = "gaussian",
    bandwidth: Annotated[
        str, typer.Option(help="Bandwidth of the kernel: a number, or one per column of (state, action).")
    ] = "1.0",
    seed: Annotated[int, typer.Option(help="Seed of the random features.")] = 0,
    single_precision: Annotated[
        bool, typer.Option("--single-precision", help="Kernel tiles in float32: faster, with the rounding added to the radius.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bound the value of the target policy: one row per radius, with guarantee, status and assumptions."""
    from ..assumptions import Assumptions, RelativeNorm
    from ..interval import bound_ladder
    from ..radius import LADDER
    from ..reductions.numpy_tiles import TileOptions
    from .inputs import build_features, build_kernel, parse_bandwidth, read_problem

    if norm_bound is not None and relative_norm is not None:
        raise InvalidInput("--norm-bound and --relative-norm exclude each other.")
    facts = Assumptions(
        discount=discount,
        reward_range=reward_range,
        value_range=value_range,
        norm_bound=norm_bound if relative_norm is None else RelativeNorm(relative_norm),
        reward_noise=not deterministic_reward,
        horizon=horizon,
        terminal_reward=terminal_reward,
    )
    test_kernel = build_kernel("tabular" if tabular else kernel, parse_bandwidth(bandwidth, "--bandwidth"))
    problem = read_problem(data, starts, sampled_starts, policy, action_values)
    classes = build_features(problem, tabular, features, feature_bandwidth or [1.0], seed, not no_intercept)
    with _progress(not as_json) as progress:
        intervals = bound_ladder(
            problem.data,
            problem.starts,
            problem.policy,
            assumptions=facts,
            kernel=test_kernel,
            features=classes,
            radii=radius or LADDER,
            delta=delta,
            options=TileOptions(single_precision=single_precision),
            progress=progress,
        )
    _show(intervals, problem.data, as_json, report, title=str(data))
    raise typer.Exit(_exit_code(intervals))


@app.command()
def check(
    data: DataFile,
    reward_range: Annotated[tuple[float, float] | None, typer.Option(help="Declared range of every reward.")] = None,
    as_json: AsJson = False,
) -> None:
    """Validate a file of transitions and describe it, before any statistics."""
    from ..contradictions import check_rewards
    from ..io.parquet import read_transition_file
    from ..report.document import description_document
    from ..validation import ordered_pair
    from .text import print_description

    declared = None if reward_range is None else ordered_pair(reward_range, "reward_range")
    file = read_transition_file(data)
    if as_json:
        _print_json(description_document(file, declared))
    else:
        print_description(_console(), file, str(data), declared)
    if declared is not None:
        check_rewards(file.data, declared)


@app.command()
def demo(
    output: Annotated[Path | None, typer.Option(help="Folder for the report, the JSON result and the data.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run on a small embedded dataset whose true value is known."""
    from ..demo import DEMO_COMMAND, copy_demo_data, demo_truth, run_demo
    from ..report.document import ladder_document

    with _progress(not as_json) as progress:
        data, intervals = run_demo(progress)
    truth = demo_truth()
    if not as_json:
        _console().print(f"The same as:\n  {DEMO_COMMAND}\n", highlight=False, soft_wrap=True)
    report = None
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
            copy_demo_data(output)
        except OSError as error:
            raise InvalidFile(f"{output} cannot be written: {error}") from error
        report = output / "report.html"
    _show(intervals, data, as_json, report, title="Embedded demonstration dataset", truth=truth)
    if output is not None:
        _write(output / "result.json", json.dumps(ladder_document(intervals, data), indent=2, allow_nan=False) + "\n")


def _exit_code(intervals: Sequence[ValueInterval]) -> int:
    from ..result import Status

    statuses = {interval.status for interval in intervals}
    if Status.OK in statuses:
        return 0
    return EXIT_VACUOUS if Status.VACUOUS in statuses else EXIT_INCONSISTENT


def _show(
    intervals: Sequence[ValueInterval],
    data: Transitions,
    as_json: bool,
    report: Path | None,
    title: str,
    truth: float | None = None,
) -> None:
    from ..report.document import ladder_document
    from ..report.html import report_html
    from .text import print_ladder

    if as_json:
        _print_json(ladder_document(intervals, data))
    else:
        print_ladder(_console(), intervals, truth)
    if report is not None:
        _write(report, report_html(intervals, data, title, truth))
        typer.echo(f"Report: {report}", err=True)


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise InvalidFile(f"{path} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _print_json(document: Document) -> None:
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def _console() -> Console:
    from rich.console import Console

    return Console()


@contextmanager
def _progress(wanted: bool) -> Iterator[Progress | None]:
    """A progress bar on the error stream, when a person is looking."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("kernel statistic"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        update: Callable[[float], None] = lambda done: bar.update(task, completed=done)  # noqa: E731
        yield update
