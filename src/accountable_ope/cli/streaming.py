"""`aope bound --stream`: a log that is read in parts, and need not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..bounds.interval import Interval
from ..bounds.streamed import bound_stream
from ..errors import InvalidInput
from ..io.scanning import TransitionScan, scan_transitions
from ..kernels.kernel import Gaussian, Kernel, Laplace
from ..kernels.products import Progress, part_of
from ..kernels.random_features import RandomFeatureKernel
from ..problem.problem import Question
from ..statistics.streaming import StreamQuestion
from .inputs import named_policy, read_starts
from .options import ClassOptions, Declarations, ProblemOptions, given

FREQUENCIES = 256
"""Of the random features that stand for a Gaussian test kernel."""


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


def check_streamed(problem: ProblemOptions, declared: Declarations, choice: ClassOptions, others: dict[str, bool]) -> None:
    """Refuse what needs all rows at once, before any work; others: further options, and whether they were given."""
    if problem.policy is None:
        raise InvalidInput(
            "--stream needs --policy module:function: a policy in columns of the files is a table of all states at once."
        )
    if problem.starts is None:
        raise InvalidInput("--stream needs --starts: the first states of all episodes are known only when all rows were read.")
    wrong = [name for name, was_given in others.items() if was_given]
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
    data: Path, problem: ProblemOptions, declared: Declarations, choice: ClassOptions, radii: Radii, meter: Progress | None
) -> Streamed:
    """One interval per radius, each from one pass over the log."""
    assert problem.starts is not None and problem.policy is not None
    scan = scan_transitions(data, columns=problem.columns, ignore=problem.ignore_column)
    starts = read_starts(problem.starts, problem)
    policy = named_policy(problem.policy, next(iter(scan)), problem.action_values)
    question = Question(starts.starts, policy, declared.assumptions())
    asked = StreamQuestion(question, choice.fourier.classes()[0], _kernel(choice.test_kernel()))
    found, names = [], radii.names
    for index, name in enumerate(names):
        share = part_of(meter, index / len(names), (index + 1) / len(names))
        found.append(bound_stream(scan, asked, name, radii.delta, progress=share))
    return Streamed(scan=scan, intervals=tuple(found))


def _kernel(chosen: Kernel) -> Kernel:
    """Of finite rank: random features in place of a Gaussian kernel."""
    if isinstance(chosen, Laplace) or not isinstance(chosen, Gaussian):
        return chosen
    widths = chosen.bandwidth.tolist()
    return RandomFeatureKernel(FREQUENCIES, tuple(widths) if isinstance(widths, list) else widths)
