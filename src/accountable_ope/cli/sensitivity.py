"""`aope sensitivity`: what if an assumption is wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from ..bounds.findings import Curve, Flip, LeastNorm, RowsNeeded
from ..bounds.findings import Parameter as Varied
from ..bounds.misfit_norms import LEAST_TOLERANCE
from ..bounds.sensitivity import parameter_named, study
from ..errors import InvalidInput
from ..report.document import columns_document, ladder_document
from ..report.result_html import least_text
from ..report.sensitivity import sensitivity_document
from ..report.sensitivity_plot import sensitivity_figure
from ..validation import number, positive
from .class_options import ClassOptions
from .curves import print_curve
from .deciding import decision_code
from .exits import NOT_PROVED
from .inputs import read_inputs
from .options import DataFile, Declarations, ProblemOptions, RadiusOptions
from .output import PlotOptions, console, exit_code, print_json, progress
from .saying import Said, print_said
from .text import number_text, print_columns, print_ladder, titled_table

DEFAULT_OVER = ("norm-bound", "misfit", "delta", "reward-range")
"""What is varied, and the misfit norm where one is declared."""


def sensitivity(
    data: DataFile,
    /,
    *,
    problem: ProblemOptions = ProblemOptions(),
    declared: Declarations = Declarations(),
    over: Annotated[
        tuple[str, ...],
        Parameter(help="What to vary, repeatable: norm-bound, misfit, misfit-norm, delta, reward-range or discount."),
    ] = DEFAULT_OVER,
    threshold: Annotated[float | None, Parameter(help='The decision "value >= threshold": up to where is it supported?')] = None,
    width: Annotated[
        float | None, Parameter(help="Estimate the number of transitions that an interval of this width takes.")
    ] = None,
    choice: ClassOptions = ClassOptions(),
    radius: RadiusOptions = RadiusOptions(),
    output: PlotOptions = PlotOptions(),
) -> int:
    """The declared interval, then curves, flip points and the number of rows."""
    usual = over == DEFAULT_OVER and declared.misfit_norm is not None
    chosen = list(dict.fromkeys(parameter_named(name) for name in (*over, *(["misfit-norm"] if usual else []))))
    if Varied.MISFIT_NORM in chosen and declared.misfit_norm is None:
        raise InvalidInput("--over misfit-norm needs --misfit-norm: else features miss nothing.")
    wanted = None if threshold is None else number(threshold, "threshold")
    if width is not None:
        positive(width, "width")
    if wanted is not None and declared.relative_norm is not None and set(chosen) - {Varied.NORM_BOUND, Varied.DISCOUNT}:
        raise InvalidInput("--threshold with --relative-norm goes with --over norm-bound only: other intervals are not nested.")
    output.check(problem.files(data))
    choice.check(declared.misfit_norm)
    assumptions, kernel = declared.assumptions(), choice.test_kernel()
    inputs = read_inputs(data, problem).looked_at(one_bandwidth=choice.one_bandwidth)
    asked = inputs.problem(assumptions)
    flips: list[Flip] = []
    least: list[LeastNorm] = []
    rows = None
    with progress(output.as_json) as phase:
        made = study(
            asked,
            features=choice.classes(asked.experience, declared.misfit_norm),
            kernel=kernel,
            chosen=choice.chosen(asked.experience),
            radius=radius.radius,
            delta=radius.delta,
            options=choice.tiles(),
            progress=phase("kernel statistic"),
        )
        curves = [made.curve(parameter, progress=phase(f"intervals over {parameter.value}")) for parameter in chosen]
        if Varied.NORM_BOUND in chosen:
            phase("least norm")
            least.append(made.least_norm())
        if Varied.MISFIT_NORM in chosen:
            phase("least norm of what features miss")
            least.append(made.least_misfit_norm(LEAST_TOLERANCE))
        for parameter in chosen:
            if wanted is not None and parameter is not Varied.DISCOUNT:
                phase(f"flip point in {parameter.value}")
                flips.append(made.flip_point(wanted, parameter))
        if width is not None:
            rows = made.rows_needed(width, progress=phase("prefixes of the data"))
        ruling = None if wanted is None else made.baseline.decide(wanted)
        said = Said.of(made.baseline, ruling)
    if output.as_json:
        found = sensitivity_document(curves, least, flips, rows)
        first = said.document() | ladder_document([made.baseline], inputs.data)
        print_json("sensitivity", first | found | columns_document(inputs.columns))
    else:
        terminal = console()
        print_said(terminal, said, made.baseline.doubts)
        print_ladder(terminal, [made.baseline], doubts=False)
        print_sensitivity(terminal, curves, least, flips, rows)
        print_columns(terminal, inputs.columns)
    output.draw(lambda: sensitivity_figure(curves, flips, wanted))
    valid = made.baseline.check()
    if ruling is not None:
        return decision_code(ruling, valid)
    return exit_code([made.baseline]) if valid else NOT_PROVED


def print_sensitivity(
    terminal: Console, curves: Sequence[Curve], least: Sequence[LeastNorm], flips: Sequence[Flip], rows: RowsNeeded | None
) -> None:
    """A table per curve, then the least norm, the flip points and the number of rows."""
    for curve in curves:
        print_curve(terminal, curve)
    for each in least:
        terminal.print(least_text(each))
    if flips:
        _print_flips(terminal, flips)
    if rows is not None:
        terminal.print(f"\nWidth {number_text(rows.width)}: {rows.outcome.name}. {rows.outcome.value}")
        if rows.rows is not None and rows.slower is not None and rows.slower > rows.points[-1].rows:
            terminal.print(
                f"About {_round(rows.rows):,} transitions if the width goes on falling as on the data at hand, "
                f"{_round(rows.slower):,} if from here on it falls with the square root of their number only.",
                highlight=False,
            )
        widths = ", ".join(f"{point.rows:,}: {number_text(point.width)} {point.status.name}" for point in rows.points)
        terminal.print(f"Widths from the first transitions: {widths}.")


def _print_flips(terminal: Console, flips: Sequence[Flip]) -> None:
    terminal.print()
    supported = "supported" if flips[0].baseline_supports else "not supported"
    table = titled_table(f"By its ends: value >= {flips[0].threshold:g}, {supported} at what was declared", gap=2)
    for name in ("assumption", "outcome", "supported to", "lower end there", "not at"):
        table.add_column(name, no_wrap=True)
    for flip in flips:
        style = "green" if flip.baseline_supports else "yellow"
        numbers = ("-" if x is None else number_text(x) for x in (flip.value, flip.lower, flip.beyond))
        table.add_row(flip.parameter.value, f"[{style}]{flip.outcome.name}[/]", *numbers)
    terminal.print(table)
    for outcome in dict.fromkeys(flip.outcome for flip in flips):
        terminal.print(f"{outcome.name}: {outcome.value}")


def _round(count: int) -> int:
    """Two digits: more would pretend."""
    return int(float(f"{count:.1e}"))
