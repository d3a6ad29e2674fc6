"""`aope check` and `aope demo`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidFile
from .application import app, console, print_json, progress_bar, show, write_text
from .options import (
    AsJson,
    DataFile,
)


@app.command()
def check(
    data: DataFile,
    reward_range: Annotated[tuple[float, float] | None, typer.Option(help="Declared range of every reward.")] = None,
    as_json: AsJson = False,
) -> None:
    """Validate a file of transitions and describe it, before any statistics."""
    from ..io.parquet import read_transition_file
    from ..problem.contradictions import check_rewards
    from ..report.document import description_document
    from ..validation import ordered_pair
    from .text import print_description

    declared = None if reward_range is None else ordered_pair(reward_range, "reward_range")
    file = read_transition_file(data)
    if as_json:
        print_json(description_document(file, declared))
    else:
        print_description(console(), file, str(data), declared)
    if declared is not None:
        check_rewards(file.data, declared)


@app.command()
def demo(
    output: Annotated[Path | None, typer.Option(help="Folder for the report, the JSON result and the data.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run on a small embedded dataset of a control task, whose true value is known."""
    from ..demo import DEMO_COMMAND, copy_demo_data, demo_behavior_value, demo_truth, run_demo
    from ..report.document import ladder_document

    with progress_bar(not as_json) as progress:
        data, intervals = run_demo(progress)
    truth, to_beat = demo_truth(), demo_behavior_value()
    if not as_json:
        console().print(f"The same as:\n  {DEMO_COMMAND}\n", highlight=False, soft_wrap=True)
    report = None
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
            copy_demo_data(output)
        except OSError as error:
            raise InvalidFile(f"{output} cannot be written: {error}") from error
        report = output / "report.html"
    show(intervals, data, as_json, report, title="Embedded demonstration: Puck-Mountain", truth=truth, to_beat=to_beat)
    if output is not None:
        write_text(output / "result.json", json.dumps(ladder_document(intervals, data), indent=2, allow_nan=False) + "\n")
