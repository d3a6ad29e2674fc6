"""`aope verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..bounds.verifying import verify as verify_certificate
from ..defaults.files import load_recipe
from ..defaults.recipe import Recipe
from ..errors import InvalidInput
from ..problem.transitions import Transitions
from ..verification.files import load_record
from ..verification.record import Record
from ..verification.verify import Verification
from .exits import NOT_PROVED
from .inputs import read_inputs
from .options import PROBLEM, AsJson, ProblemOptions, given
from .output import console, print_json
from .text import print_verification

Log = Annotated[
    Path | None, Parameter(group=PROBLEM, help="The log: its sums are made again. Default: they are taken as they are.")
]


def verify(
    certificate: Annotated[Path, Parameter(help="What `aope bound --certificate` wrote.")],
    /,
    *,
    data: Log = None,
    problem: ProblemOptions = ProblemOptions(),
    choice: Annotated[
        Path | None,
        Parameter(group=PROBLEM, help="What `aope bound --save-choice` wrote, where a class was chosen; with --data."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """One sentence, the premises, and an exit code."""
    record = load_record(certificate)
    if data is None:
        if given(problem) or choice is not None:
            raise InvalidInput(f"{[*given(problem), '--choice'][0]} goes with --data.")
        found = verify_certificate(record)
    else:
        problem.check()
        if problem.starts is None and record.average is None and record.setting.start_is_exact:
            raise InvalidInput("--starts is needed with --data: the start states of this certificate are no sample from the log.")
        if record.setting.anchored and choice is None:
            raise InvalidInput(
                "--choice is needed with --data: the class of this certificate lies around an estimate, which `aope bound "
                "--save-choice` writes. (Of another estimate, `accountable_ope.verify` takes it as `estimate`.)"
            )
        inputs = read_inputs(data, problem, need_starts=record.average is None)
        recipe = None if choice is None else load_recipe(choice)
        why = "" if recipe is None else _another_choice(recipe, record, inputs.data)
        if why:
            found = Verification(False, f"Not proved: {why}.")
        else:
            estimate = None if recipe is None else recipe.estimate
            found = verify_certificate(record, data=inputs.data, starts=inputs.starts, policy=inputs.policy, estimate=estimate)
    if as_json:
        print_json("verify", _document(record, found, with_data=data is not None))
    else:
        print_verification(console(), record, found)
    return 0 if found.valid else NOT_PROVED


def _another_choice(recipe: Recipe, record: Record, data: Transitions) -> str:
    """Why the choice is not that of the certificate, made on the rows before those of the bound; empty where it is."""
    rows, said = recipe.earlier_rows, record.setting.earlier_rows
    if rows != said:
        return f"the choice was made on {rows} rows, and the certificate says that {said} rows chose"
    if len(data) > record.data.rows and not recipe.made_on(data):
        return f"the choice was made on {rows} rows that are not the first ones of these data"
    if len(data) == record.data.rows and recipe.made_on(data):
        return f"the choice was made on the first {rows} of the rows that the certificate bounds"
    return ""


def _document(record: Record, found: Verification, *, with_data: bool) -> dict[str, object]:
    proved = found.valid and record.result.status != "INCONSISTENT"
    return {
        "valid": found.valid,
        "message": found.message,
        "with_data": with_data,
        "lower": found.lower if proved else None,
        "upper": found.upper if proved else None,
        "status": record.result.status,
        "delta": record.delta.total,
        "radius": record.radius.name,
        "guarantee": record.radius.guarantee,
        "premises": [each.text for each in found.premises],
        "doubts": [each.text for each in found.doubts],
        "sha256": record.data.sha256,
    }
