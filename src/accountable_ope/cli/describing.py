"""`aope check` and `aope demo`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..demo import DEMO_COMMAND, DEMO_FILES, copy_demo_data, demo_behavior_value, demo_truth, run_demo
from ..errors import AopeError
from ..problem.contradictions import check_data
from ..problem.first_look import refuse_other_units
from ..report.document import columns_document, description_document
from ..validation import ordered_pair
from .inputs import check_declared_rewards, check_ignored, check_policy, columns_of, first_states, read_log, read_starts
from .options import OUTPUT, AsJson, DataFile, Declarations, ProblemOptions, given
from .output import bound_document, check_folder, check_places, console, json_text, print_json, progress, show, write_text
from .saying import Said
from .text import print_columns, print_description

REPORT, RESULT = "report.html", "result.json"


def check(
    data: DataFile,
    /,
    *,
    problem: ProblemOptions = ProblemOptions(),
    declared: Declarations = Declarations(),
    as_json: AsJson = False,
) -> None:
    """Description of the files, printed even where what was declared is then contradicted."""
    reward_range = None if declared.reward_range is None else ordered_pair(declared.reward_range, "reward_range")
    # A range of rewards can be compared without a discount; whatever else is declared goes together, as for a bound.
    assumptions = declared.assumptions() if set(given(declared)) - {"--reward-range"} else None
    problem.check()
    file = read_log(data, problem, estimate=True)
    naming = file.data.naming
    starts = first_states(file) if problem.starts is None else read_starts(problem.starts, problem, naming, estimate=True)
    columns = columns_of(file, starts)
    check_ignored(problem, columns)
    refused: AopeError | None = None
    try:
        if reward_range is not None:
            check_declared_rewards(file, reward_range)
        if assumptions is not None:
            check_data(file.data, assumptions)
        if problem.starts is not None and starts is not None:
            refuse_other_units(file.data, starts.starts, file.columns.states)
        remarks = check_policy(data, file, starts, problem, assumptions)
        columns[0] = replace(columns[0], remarks=(*columns[0].remarks, *(f"{each}." for each in remarks)))
    except AopeError as error:
        refused = error  # after the description, which may show why
    if as_json:
        print_json(
            "check",
            description_document(file, reward_range, None if starts is None else starts.starts) | columns_document(columns),
        )
    else:
        print_description(console(), file, str(data), reward_range, None if starts is None else starts.starts, problem.policy)
        print_columns(console(), columns)
    if refused is not None:
        raise refused


def demo(
    *,
    output: Annotated[Path | None, Parameter(group=OUTPUT, help="Folder for the report, the JSON result and the data.")] = None,
    as_json: AsJson = False,
) -> None:
    """The ladder of the embedded dataset beside its true value."""
    if output is not None:
        check_folder("--output", output)
        check_places({name: output / name for name in (*DEMO_FILES, REPORT, RESULT)})
    with progress(as_json) as phase:
        data, intervals = run_demo(phase("kernel statistic"))
    report = None
    if output is not None:
        copy_demo_data(output)
        report = output / REPORT
    title = "Embedded demonstration: Puck-Mountain"
    said = Said.of(intervals[-1])
    show(intervals, data, as_json, report, title, truth=demo_truth(), to_beat=demo_behavior_value(), said=said)
    if not as_json:
        console().print(f"\nThe same as:\n  {DEMO_COMMAND}", soft_wrap=True)
    if output is not None:
        write_text(output / RESULT, json_text("bound", bound_document(intervals, data, said)) + "\n")
