"""`aope bound --stream`: a log that is read in parts, and need not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ..bounds.first_answer import STATISTIC
from ..bounds.interval import Interval
from ..bounds.stream_answer import stream_value, streamed_kernel
from ..bounds.streamed import bound_stream
from ..defaults.choosing import Stages
from ..defaults.files import load_recipe, save_recipe
from ..errors import InvalidInput
from ..io.scanning import TransitionScan, scan_transitions
from ..kernels.bandwidths import narrowed
from ..kernels.products import part_of
from ..problem.problem import Question
from ..statistics.streaming import StreamQuestion
from .inputs import read_starts
from .named import named_policy
from .options import ClassOptions, Declarations, FirstAnswerOptions, ProblemOptions, given
from .output import note


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


class Radii(Protocol):
    """Radii that are asked for."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def delta(self) -> float: ...


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


def stream_log(
    data: Path,
    options: tuple[ProblemOptions, Declarations, ClassOptions],
    radii: Radii,
    first: FirstAnswerOptions | None,
    stages: Stages,
) -> Streamed:
    """One interval per radius, each from one pass over the log; first: the first rows choose class and kernel."""
    problem, declared, choice = options
    assert problem.starts is not None and problem.policy is not None
    scan = scan_transitions(data, columns=problem.columns, ignore=problem.ignore_column)
    starts = read_starts(problem.starts, problem)
    policy = named_policy(problem.policy, next(iter(scan)), problem)
    question = Question(starts.starts, policy, declared.assumptions())
    names = radii.names
    if first is not None:
        recipe = None if first.choice is None else load_recipe(first.choice)
        answers = []
        for name in names:
            interval = stream_value(scan, question, name, radii.delta, recipe=recipe, within=first.within, stages=stages)
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
        found.append(bound_stream(scan, asked, name, radii.delta, progress=share))
    return Streamed(scan=scan, intervals=tuple(found))
