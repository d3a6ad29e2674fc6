"""`aope diagnose` and `aope correct`: what to do with an estimate of Q that exists already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..bounds.correction import CorrectionStatus
from ..bounds.correction import correct as correct_q
from ..bounds.decision import Ruling
from ..bounds.diagnosis import Diagnosis
from ..bounds.diagnosis import diagnose as diagnose_q
from ..errors import InvalidInput
from ..io.columns import FileColumns
from ..radii.choice import BEFORE_THE_DATA
from ..report.document import columns_document, correction_document, diagnosis_document
from ..report.plots import witness_figure
from .choosing import recipe_for, unnamed
from .class_options import ClassOptions
from .deciding import DecisionOptions, decision_code
from .exits import INCONSISTENT
from .inputs import read_inputs, read_q
from .options import OUTPUT, PROBLEM, AsJson, DataFile, Declarations, FirstAnswerOptions, ProblemOptions, RadiusOptions
from .output import PlotOptions, check_places, console, note, print_json, progress, within_stage
from .saying import Said, print_said
from .streaming import Resume, Stream, check_resumed, check_streamed_estimate, stream_estimate
from .text import print_columns, print_correction, print_diagnosis, print_recipe

QName = Annotated[
    str | None,
    Parameter(group=PROBLEM, help="Estimate Q(states, actions): module:function or model.onnx. Default: columns q and next_q."),
]


def diagnose(
    data: DataFile,
    /,
    *,
    q: QName = None,
    problem: ProblemOptions = ProblemOptions(),
    declared: Declarations = Declarations(),
    choice: ClassOptions = ClassOptions(),
    radius: RadiusOptions = RadiusOptions(),
    stream: Stream = False,
    resume: Resume = None,
    first: FirstAnswerOptions = FirstAnswerOptions(),
    decision: DecisionOptions = DecisionOptions(),
    output: PlotOptions = PlotOptions(),
) -> int:
    """Verdict, interval and where the estimate is wrong."""
    output.check(problem.files(data, q, first.choice), {"--resume": resume, "--save-choice": first.save_choice})
    choice.check(declared.misfit_norm)
    decision.check()
    if resume is not None:
        check_resumed(resume, stream, [radius.radius])
    nobody_named = not stream and unnamed(choice, declared)
    first.check(nobody_named)
    assumptions, kernel = declared.assumptions(), choice.test_kernel()
    if stream:
        options = (problem, declared, choice)
        check_streamed_estimate(q, options, ["--better-than-logged"] if decision.better_than_logged else [])
        assert q is not None
        with progress(output.as_json) as phase:
            streamed = stream_estimate(data, q, options, radius, phase("kernel statistic"), resume)
            ruling = decision.decide(streamed.diagnosis.interval)
            said = Said.of(streamed.diagnosis.interval, ruling)
        return _show(streamed.diagnosis, said, _Read(streamed.columns, streamed.scan.where), output, ruling)
    one_bandwidth = choice.one_bandwidth and not nobody_named
    inputs = read_inputs(data, problem, estimate=q is None).looked_at(one_bandwidth=one_bandwidth)
    estimate, asked = read_q(q, inputs), inputs.problem(assumptions)
    with progress(output.as_json) as phase:
        recipe = None
        if nobody_named:
            recipe = recipe_for(asked, first, [radius.radius], within_stage(phase, "choosing on earlier rows"))
        diagnosis = diagnose_q(
            estimate,
            asked,
            features=choice.classes(asked.experience, declared.misfit_norm) if recipe is None else None,
            kernel=kernel if recipe is None else None,
            chosen=choice.chosen(asked.experience) if recipe is None else BEFORE_THE_DATA,
            recipe=recipe,
            radius=radius.radius,
            delta=radius.delta,
            options=choice.tiles(),
            progress=phase("kernel statistic"),
        )
        ruling = decision.decide(diagnosis.interval)
        said = Said.of(diagnosis.interval, ruling)
    return _show(diagnosis, said, _Read(inputs.columns, inputs.file.row), output, ruling)


@dataclass(frozen=True, eq=False)
class _Read:
    """Where the rows of a diagnosis come from: how columns were read, and where a row is found."""

    columns: Sequence[FileColumns]
    place: Callable[[int], str]


def _show(diagnosis: Diagnosis, said: Said, read: _Read, output: PlotOptions, ruling: Ruling | None) -> int:
    """Prints and draws; the exit code."""
    if output.as_json:
        first = said.document()
        value = {"value_verdict": first.pop("verdict")}  # `verdict` is that on the estimate
        document = diagnosis_document(diagnosis, read.place) | value | first
        print_json("diagnose", document | columns_document(read.columns))
    else:
        print_diagnosis(console(), diagnosis, read.place)
        console().print()
        print_said(console(), said)
        print_recipe(console(), diagnosis.interval.recipe, None)
        print_columns(console(), read.columns)
    output.draw(lambda: witness_figure(diagnosis))
    return 0 if ruling is None else decision_code(ruling, diagnosis.interval.check())


def correct(
    data: DataFile,
    /,
    *,
    q: QName = None,
    problem: ProblemOptions = ProblemOptions(),
    declared: Declarations = Declarations(),
    choice: ClassOptions = ClassOptions(),
    radius: RadiusOptions = RadiusOptions(),
    first: FirstAnswerOptions = FirstAnswerOptions(),
    output: Annotated[Path | None, Parameter(group=OUTPUT, help="Save the change as .npz.")] = None,
    as_json: AsJson = False,
) -> int:
    """The smallest change, before and after."""
    check_places({"--output": output, "--save-choice": first.save_choice}, problem.files(data, q, first.choice))
    choice.check(declared.misfit_norm)
    nobody_named = unnamed(choice, declared)
    first.check(nobody_named)
    if nobody_named and output is not None:
        raise InvalidInput("--output saves a change within a class that was named: give --features, --tabular or --landmarks.")
    assumptions, kernel = declared.assumptions(), choice.test_kernel()
    one_bandwidth = choice.one_bandwidth and not nobody_named
    inputs = read_inputs(data, problem, estimate=q is None).looked_at(one_bandwidth=one_bandwidth)
    estimate, asked = read_q(q, inputs), inputs.problem(assumptions)
    classes = [] if nobody_named else choice.classes(asked.experience, declared.misfit_norm)
    if len(classes) > 1:
        raise InvalidInput("A correction needs one class: give --feature-bandwidth once.")
    with progress(as_json) as phase:
        recipe = None
        if nobody_named:
            recipe = recipe_for(asked, first, [radius.radius], within_stage(phase, "choosing on earlier rows"))
        correction = correct_q(
            estimate,
            asked,
            features=classes[0] if classes else None,
            kernel=kernel if classes else None,
            chosen=choice.chosen(asked.experience) if classes else BEFORE_THE_DATA,
            recipe=recipe,
            radius=radius.radius,
            delta=radius.delta,
            options=choice.tiles(),
            progress=phase("kernel statistic"),
        )
    if output is not None:
        correction.save(output)
    if as_json:
        print_json("correct", correction_document(correction) | columns_document(inputs.columns))
    else:
        print_correction(console(), correction)
        print_recipe(console(), correction.interval.recipe, None)
        print_columns(console(), inputs.columns)
    if output is not None:
        note(f"Change: {output}")
    return INCONSISTENT if correction.status is CorrectionStatus.INFEASIBLE else 0
