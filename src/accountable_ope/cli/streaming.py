"""`aope bound --stream`: a log that is read in parts, and need not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Protocol

from cyclopts import Parameter

from ..bounds.diagnosis import Diagnosis
from ..bounds.first_answer import STATISTIC
from ..bounds.interval import Interval
from ..bounds.stream_answer import stream_value, streamed_kernel
from ..bounds.stream_diagnosis import diagnose_stream
from ..bounds.streamed import bound_stream
from ..defaults.choosing import Stages
from ..defaults.files import load_recipe, save_recipe
from ..errors import InvalidInput
from ..io.columns import FileColumns
from ..io.scanning import TransitionScan, scan_transitions
from ..kernels.bandwidths import narrowed
from ..kernels.products import Progress, part_of
from ..problem.problem import Question
from ..statistics.engines.engine import AnyEngine
from ..statistics.stream_question import StreamQuestion
from .class_options import ClassOptions
from .computing import carried
from .inputs import named_q, read_starts
from .named import named_policy
from .options import PROBLEM, Declarations, FirstAnswerOptions, ProblemOptions, RadiusOptions, given
from .output import note

Stream = Annotated[
    bool,
    Parameter(group=PROBLEM, help="Read the log in parts: a Parquet file, a folder of them or a pattern, of any size."),
]
Resume = Annotated[
    Path | None,
    Parameter(
        group=PROBLEM, help="With --stream: keep where the pass stands in this .npz file, and go on from it where it exists."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """A log with the interval of each radius.

    Attributes
    ----------
    scan : TransitionScan
    intervals : tuple of Interval
    """

    scan: TransitionScan
    intervals: tuple[Interval, ...]

    @property
    def columns(self) -> list[FileColumns]:
        """How the columns of the log were read, and of which rows its class was tested."""
        return [with_tested_rows(self.scan.columns, self.intervals[-1])]


class Radii(Protocol):
    """Radii that are asked for."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def delta(self) -> float: ...


def with_tested_rows(columns: FileColumns, interval: Interval) -> FileColumns:
    """With a remark on how many rows the class was tested on, where these are not all."""
    tested = {part.specification.first_rows for part in interval.certificates} - {None}
    said = tuple(
        f"The class was tested on the first {rows:,} of {interval.count:,} rows: a sign against it in later ones is not seen."
        for rows in sorted(each for each in tested if each is not None)
    )
    return replace(columns, remarks=(*columns.remarks, *said))


def check_streamed(problem: ProblemOptions, declared: Declarations, choice: ClassOptions, others: Sequence[str]) -> None:
    """Refuse what needs all rows at once, before any work; others: further options that were given and need them."""
    if problem.policy is None:
        raise InvalidInput(
            "--stream needs --policy module:function: a policy in columns of the files is a table of all states at once."
        )
    if problem.starts is None:
        raise InvalidInput("--stream needs --starts: the first states of all episodes are known only when all rows were read.")
    wrong = [*others]
    wrong += [name for name in given(declared) if name in ("--horizon", "--misfit", "--misfit-norm")]
    if choice.tabular or choice.landmarks is not None:
        wrong.append("--tabular" if choice.tabular else "--landmarks")
    if choice.fourier.kernel == "laplace":
        wrong.append("--kernel laplace")
    if choice.single_precision:
        wrong.append("--single-precision")
    if len(choice.fourier.widths) > 1:
        wrong.append("more than one --feature-bandwidth")
    if wrong:
        raise InvalidInput(
            f"--stream does not go with {wrong[0]}, which needs all rows at once. What can be read in parts: random Fourier "
            "features (--features, --feature-bandwidth, --seed, --no-intercept) with a test kernel of random features "
            "(--bandwidth) or --kernel tabular."
        )


def check_resumed(resume: Path, stream: bool, radii: Sequence[str]) -> None:
    """Refuse what does not go with a pass that is kept in a file."""
    if not stream:
        raise InvalidInput("--resume goes with --stream only: what is kept is a pass over a log that is read in parts.")
    if len(radii) > 1:
        raise InvalidInput(f"--resume keeps one pass, and every radius takes one: name one --radius. Got {', '.join(radii)}.")
    if resume.suffix != ".npz":
        raise InvalidInput(f"--resume must end in .npz. Got {resume.name!r}.")
    if resume.exists():
        note(f"Going on from {resume}: rows that were summed are read again, and not summed.")


def _asked(scan: TransitionScan, problem: ProblemOptions, declared: Declarations) -> Question:
    assert problem.starts is not None and problem.policy is not None
    starts = read_starts(problem.starts, problem, None)
    policy = named_policy(problem.policy, next(iter(scan)), problem)
    return Question(starts.starts, policy, declared.assumptions())


def stream_log(
    data: Path,
    options: tuple[ProblemOptions, Declarations, ClassOptions],
    radii: Radii,
    first: FirstAnswerOptions | None,
    stages: Stages,
    engine: AnyEngine = "auto",
    resume: Path | None = None,
) -> Streamed:
    """One interval per radius, each from one pass over the log, which is kept in the file `resume`.

    first: the first rows choose class and kernel. engine: who reads and sums the rows.
    """
    problem, declared, choice = options
    scan = scan_transitions(data, columns=problem.columns, ignore=problem.ignore_column)
    question = _asked(scan, problem, declared)
    with carried(problem.policy, engine):
        return _bounded(scan, question, choice, radii, first, stages, engine, resume)


def _bounded(
    scan: TransitionScan,
    question: Question,
    choice: ClassOptions,
    radii: Radii,
    first: FirstAnswerOptions | None,
    stages: Stages,
    engine: AnyEngine,
    resume: Path | None,
) -> Streamed:
    names = radii.names
    if first is not None:
        recipe = None if first.choice is None else load_recipe(first.choice)
        answers = []
        for name in names:
            interval = stream_value(
                scan, question, name, radii.delta, recipe=recipe, within=first.within, stages=stages, engine=engine, resume=resume
            )
            recipe = interval.recipe
            answers.append(interval)
        if first.save_choice is not None and recipe is not None:
            save_recipe(replace(recipe, kernel=narrowed(recipe.kernel, 1.0)), first.save_choice)  # what its features stand for
            note(f"Choice: {first.save_choice}")
        return Streamed(scan=scan, intervals=tuple(answers))
    asked = StreamQuestion(question, choice.fourier.classes()[0], streamed_kernel(choice.test_kernel()))
    found, meter = [], stages(STATISTIC)
    for index, name in enumerate(names):
        share = part_of(meter, index / len(names), (index + 1) / len(names))
        found.append(bound_stream(scan, asked, name, radii.delta, progress=share, engine=engine, resume=resume))
    return Streamed(scan=scan, intervals=tuple(found))


@dataclass(frozen=True, kw_only=True)
class StreamedEstimate:
    """A log with the diagnosis of an estimate.

    Attributes
    ----------
    scan : TransitionScan
    diagnosis : Diagnosis
    """

    scan: TransitionScan
    diagnosis: Diagnosis

    @property
    def columns(self) -> list[FileColumns]:
        """As those of `Streamed`."""
        return [with_tested_rows(self.scan.columns, self.diagnosis.interval)]


def check_streamed_estimate(
    q: str | None, options: tuple[ProblemOptions, Declarations, ClassOptions], others: Sequence[str]
) -> None:
    """Refuse what needs all rows at once, before any work; others: as of `check_streamed`."""
    if q is None:
        raise InvalidInput(
            "--stream needs --q module:function or model.onnx: an estimate in columns of the files is of all rows at once. What "
            "can be read in parts: a function of states and actions, at every row."
        )
    check_streamed(*options, others)


def stream_estimate(
    data: Path,
    q: str,
    options: tuple[ProblemOptions, Declarations, ClassOptions],
    radius: RadiusOptions,
    meter: Progress | None,
    resume: Path | None,
) -> StreamedEstimate:
    """The diagnosis of an estimate, from one pass over the log."""
    problem, declared, choice = options
    scan = scan_transitions(data, columns=problem.columns, ignore=problem.ignore_column)
    kernel = streamed_kernel(choice.test_kernel())
    question = _asked(scan, problem, declared)
    asked = StreamQuestion(question, choice.fourier.classes()[0], kernel)
    found = diagnose_stream(named_q(q, question.policy), scan, asked, radius.radius, radius.delta, progress=meter, resume=resume)
    return StreamedEstimate(scan=scan, diagnosis=found)
