"""`aope check` and `aope demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..demo import DEMO_COMMAND, copy_demo_data, demo_behavior_value, demo_truth, run_demo
from ..errors import InvalidFile
from ..io.parquet import read_transition_file
from ..problem.contradictions import check_rewards
from ..report.document import description_document, ladder_document
from ..validation import ordered_pair
from .options import DECLARATIONS, OUTPUT, AsJson, DataFile
from .output import console, json_text, print_json, progress, show, write_text
from .text import print_description


def check(
    data: DataFile,
    /,
    *,
    reward_range: Annotated[tuple[float, float] | None, Parameter(group=DECLARATIONS, help="Range of every reward.")] = None,
    as_json: AsJson = False,
) -> None:
    """Description of a file, printed even where a declared range is then contradicted."""
    declared = None if reward_range is None else ordered_pair(reward_range, "reward_range")
    file = read_transition_file(data)
    if as_json:
        print_json(description_document(file, declared))
    else:
        print_description(console(), file, str(data), declared)
    if declared is not None:
        check_rewards(file.data, declared)


def demo(
    *,
    output: Annotated[Path | None, Parameter(group=OUTPUT, help="Folder for the report, the JSON result and the data.")] = None,
    as_json: AsJson = False,
) -> None:
    """The ladder of the embedded dataset beside its true value."""
    with progress(as_json) as phase:
        data, intervals = run_demo(phase("kernel statistic"))
    if not as_json:
        console().print(f"The same as:\n  {DEMO_COMMAND}\n", soft_wrap=True)
    report = None
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
            copy_demo_data(output)
        except OSError as error:
            raise InvalidFile(f"{output} cannot be written: {error}") from error
        report = output / "report.html"
    title = "Embedded demonstration: Puck-Mountain"
    show(intervals, data, as_json, report, title, truth=demo_truth(), to_beat=demo_behavior_value())
    if output is not None:
        write_text(output / "result.json", json_text(ladder_document(intervals, data)) + "\n")
