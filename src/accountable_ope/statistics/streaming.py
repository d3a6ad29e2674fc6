"""The kernel statistic of a log that does not fit into memory: sums over its parts, added up.

What can be summed in parts: a test kernel of finite rank (`RandomFeatureKernel`, `Tabular`), a class of features that are fixed
before the data, and a policy whose expectations are exact. Sums over the pairs of rows of any other kernel need all rows at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..classes.description import describe_class
from ..classes.features import FeatureMap
from ..classes.function_class import Features, FunctionClass, as_class, expected_features
from ..errors import InvalidInput, InvalidRow
from ..io.ahead import ahead
from ..io.scanning import TransitionScan
from ..kernels.blocks import roundings
from ..kernels.description import describe_kernel
from ..kernels.kernel import Kernel, LabeledRank
from ..kernels.products import Progress
from ..problem.assumptions import Assumptions, value_ranges
from ..problem.contradictions import check_data
from ..problem.policy import at_start, state_action_points
from ..problem.problem import Experience, Question
from ..problem.transitions import StartStates, Transitions
from ..validation import BoolArray, FloatArray
from .bellman import second_moments, with_constant
from .engines.finite_rank import diagonal_sums
from .estimates import AnyQ, QColumns, as_function, q_columns, q_expected
from .partial import PartialStatistic, Subject


@checked
@dataclass(frozen=True, eq=False)
class StreamQuestion:
    """What the rows of a log are summed for, before any of them is read.

    Parameters
    ----------
    question : Question
        Start states, target policy and assumptions. The policy must know its expectations exactly.
    features : feature map or FunctionClass
        The class of Q functions: features that are fixed before the data.
    kernel : Kernel
        The test kernel, of finite rank: `RandomFeatureKernel` or `Tabular`.
    anchor : callable or object with `predict_value`, optional
        An existing Q: the class is anchor + features.

    Raises
    ------
    InvalidInput
        Where one of them needs all rows at once, or start states, policy and features do not fit together.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))
    >>> question = aope.Question(aope.StartStates([[0.0]]), policy, facts)
    >>> aope.StreamQuestion(question, aope.RandomFourier(8), aope.RandomFeatureKernel(100)).subject.objective.shape
    (9,)
    >>> aope.StreamQuestion(question, aope.RandomFourier(8), aope.Gaussian(1.0))
    Traceback (most recent call last):
    accountable_ope.errors.InvalidInput: `kernel` must be of finite rank to be summed in parts, as RandomFeatureKernel(256, ...
    """

    question: Question
    features: Features
    kernel: Kernel
    anchor: AnyQ | None = None

    def __post_init__(self) -> None:
        if isinstance(self.anchor, QColumns):
            raise InvalidInput("`anchor` must be a function to be summed in parts: columns are of all rows at once.")
        if not isinstance(self.kernel, LabeledRank):
            raise InvalidInput(
                "`kernel` must be of finite rank to be summed in parts, as RandomFeatureKernel(256, width) and Tabular() are, "
                "with names of its features (`labels`): sums over pairs of rows with any other kernel need all rows at once. "
                f"Got {self.kernel!r}."
            )
        if self.function_class.feature_map is None or self.function_class.has_remainder:
            raise InvalidInput(
                "`features` must be fixed before the data to be summed in parts, as those of a feature map are: a class that "
                f"takes its columns from the rows needs all of them at once. Got {self.function_class!r}."
            )
        if not self.question.policy.exact:
            raise InvalidInput(
                "`policy` must know its expectations exactly for sums in parts: the draws of a SampledPolicy come in one stream "
                "over all rows."
            )
        _ = self.subject  # what does not fit together is found before any row is read

    @cached_property
    def function_class(self) -> FunctionClass:
        """The class of Q functions."""
        return as_class(self.features)

    @property
    def feature_map(self) -> FeatureMap:
        """phi."""
        found = self.function_class.feature_map
        assert found is not None
        return found

    @cached_property
    def part_question(self) -> Question:
        """The question as it is asked of a part of the rows.

        Where nobody declared whether episodes end, they may: another part may show it, so this one contradicts nothing.
        """
        facts = self.question.assumptions
        return (
            self.question if facts.terminates is not None else replace(self.question, assumptions=replace(facts, terminates=True))
        )

    @cached_property
    def subject(self) -> Subject:
        """What names the question in its sums, c0 among it, which depends on the start states only."""
        question = self.question
        described = (describe_kernel(self.kernel), describe_class(self.function_class))
        digest = hashlib.sha256("\n".join(_name(each) for each in described).encode())
        return Subject(
            kernel=_name(self.kernel),
            features=_name(self.function_class),
            discount=float(question.assumptions.discount),
            fingerprint=digest.hexdigest(),
            kernel_supremum=float(self.kernel.supremum),
            objective=question.starts.weights @ self._features_at_start,
            reference=self.reference,
            anchor=None if self._anchor_at_start is None else float(question.starts.weights @ self._anchor_at_start),
            declared=_declared(question.assumptions),
        )

    @cached_property
    def _features_at_start(self) -> FloatArray:
        found = expected_features(self.feature_map, self.question.starts.states, self.question.policy)
        return np.column_stack([found, np.ones(len(found))]) if self.function_class.intercept else found

    @cached_property
    def _anchor_at_start(self) -> FloatArray | None:
        """The estimate at the start states, not counted from the reference."""
        if self.anchor is None:
            return None
        starts, policy = self.question.starts, self.question.policy
        return q_expected(as_function(self.anchor), starts.states, at_start(policy), finite=policy.action_vectors is not None)

    @property
    def start_moments(self) -> FloatArray:
        """The mean of u u' over the start states, u = [phi, 1], or [phi, 1, anchor], the anchor counted from the reference."""
        anchor = None if self._anchor_at_start is None else self._anchor_at_start - self.reference
        return second_moments(self._features_at_start, anchor, self.question.starts.weights)

    @property
    def reference(self) -> float:
        """The constant from which values are counted: only where it is declared that no state is terminal."""
        facts = self.question.assumptions
        if facts.terminates is not False or not (self.function_class.intercept or self.anchor is not None):
            return 0.0
        return value_ranges(facts, terminates=False).reference(terminates=False)


def _declared(facts: Assumptions) -> str:
    """What rows are checked against."""
    names = ("reward_range", "reward_noise", "terminal_reward", "terminates", "state_box", "value_range", "one_step_range")
    return ", ".join(f"{name}={getattr(facts, name)!r}" for name in names)


def _name(thing: object) -> str:
    """What it prints as, without its place in memory, which is another one in every process."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(thing))


@checked
def partial_statistic(batch: Transitions, question: StreamQuestion) -> PartialStatistic:
    """The sums over some rows of a log, to be added to those of the others.

    The rows are checked against the assumptions by themselves: what only rows of different parts contradict together (two rewards
    of one state and action, the length of an episode) is not seen.

    Parameters
    ----------
    batch : Transitions
        Some rows, such as a part that `scan_transitions` gives.
    question : StreamQuestion
        What they are summed for.

    Returns
    -------
    PartialStatistic
        Of O(rank k) numbers, whatever the number of rows.

    Raises
    ------
    InvalidInput
        Where the rows contradict the assumptions, or do not fit policy or features.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1))
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> parts = [data.rows(slice(start, start + 100)) for start in range(0, 500, 100)]
    >>> sum(aope.partial_statistic(part, question) for part in parts).count
    500
    """
    return sums_of(batch_columns(batch, question), question)


@dataclass(frozen=True, eq=False)
class BatchColumns:
    """Some rows as a class sees them.

    Attributes
    ----------
    points : array (n, d)
    residuals : array (n, m)
        Z.
    target : array (n,)
        v.
    here, after : array (n, m)
        phi at the rows, and its mean over the policy's actions at next states.
    anchor_here, anchor_after : array (n,) or None
        The estimate likewise, counted from the reference.
    live : array (n,) of bool
        Where the next state is not terminal.
    left_out : int
        How many other rows were left out of the log.
    """

    points: FloatArray
    residuals: FloatArray
    target: FloatArray
    here: FloatArray
    after: FloatArray
    anchor_here: FloatArray | None
    anchor_after: FloatArray | None
    live: BoolArray
    left_out: int = 0


def batch_columns(batch: Transitions, question: StreamQuestion) -> BatchColumns:
    """Checks the rows by themselves, too."""
    problem = question.part_question.on(batch)
    discount, reference = problem.assumptions.discount, question.reference
    # c0 is known already: one start state stands for all.
    experience = Experience(batch, StartStates(problem.starts.states[:1]), problem.policy, discount)
    columns, live = with_constant(question.function_class, experience), experience.live
    target = batch.rewards - (1 - discount) * reference if reference else batch.rewards
    anchor = None if question.anchor is None else q_columns(question.anchor, experience, reference)
    if anchor is not None:
        target = target + discount * np.where(live, anchor.at_next, 0.0) - anchor.at_data
    return BatchColumns(
        points=experience.points,
        residuals=columns.here - discount * columns.after,
        target=target,
        here=columns.here,
        after=columns.after,
        anchor_here=None if anchor is None else anchor.at_data,
        anchor_after=None if anchor is None else anchor.at_next,
        live=live,
        left_out=batch.left_out,
    )


def sums_of(rows: BatchColumns, question: StreamQuestion) -> PartialStatistic:
    """The sums over some rows."""
    stacked = np.column_stack([rows.residuals, rows.target, np.ones(len(rows.target))])
    kernel, points, live = question.kernel, rows.points, rows.live
    assert isinstance(kernel, LabeledRank)
    diagonal = diagonal_sums(kernel, points, stacked)
    return PartialStatistic(
        subject=question.subject,
        labels=kernel.labels(points),
        projected=kernel.project(points, stacked),
        diag_gram=0.5 * (diagonal + diagonal.T),
        column_squares=np.einsum("ij,ij->j", stacked, stacked),
        data_moments=_moments(rows.here, rows.anchor_here),
        next_moments=_moments(rows.after[live], None if rows.anchor_after is None else rows.anchor_after[live]),
        count=len(live),
        ended=int(len(live) - live.sum()),
        left_out=rows.left_out,
        roundings=roundings(len(live)),
    )


def _moments(values: FloatArray, anchor: FloatArray | None) -> FloatArray:
    """The sum of u u', u = [phi, 1], or [phi, 1, anchor]."""
    augmented = np.column_stack([values, np.ones(len(values)), *([] if anchor is None else [anchor])])
    return np.asarray(augmented.T @ augmented)


@checked
def stream_statistic(scan: TransitionScan, question: StreamQuestion, progress: Progress | None = None) -> PartialStatistic:
    """The sums over all rows of a log that is read in parts: one pass, in memory that does not grow with the log.

    Parameters
    ----------
    scan : TransitionScan
        The log, from `scan_transitions`.
    question : StreamQuestion
        What its rows are summed for.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    PartialStatistic
        Its `statistic()` is that of all rows.

    Raises
    ------
    InvalidInput
        As `partial_statistic`; a row that contradicts the assumptions is named with its file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1))
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in range(3):
    ...         data = mdp.sample(np.random.default_rng(day), trajectories=10)
    ...         aope.save_transitions(data, Path(folder) / f"day-{day}.parquet")
    ...     aope.stream_statistic(aope.scan_transitions(folder, batch_rows=400), question).statistic()
    KernelStatistic(1500 rows, 6 coefficients)
    """
    total: PartialStatistic | None = None
    first = 0
    with threadpool_limits(limits=1, user_api="blas"):  # threads take parts of the work, and small products gain nothing by more
        for batch in ahead(iter(scan)):
            found = located_statistic(scan, first, batch, question)
            total = found if total is None else total + found
            first += len(batch)
            if progress is not None:
                progress(first / scan.rows)
    assert total is not None  # a scan has rows
    return replace(total, left_out=scan.left_out)


def located_statistic(scan: TransitionScan, first: int, batch: Transitions, question: StreamQuestion) -> PartialStatistic:
    """The sums over one part; what is wrong with it is said with the place of its rows."""
    return sums_of(located_columns(scan, first, batch, question), question)


def located_columns(scan: TransitionScan, first: int, batch: Transitions, question: StreamQuestion) -> BatchColumns:
    """One part as a class sees it; first: the row of the log with which it begins."""
    with locating(scan, first, len(batch)):
        # Rows that these name are rows of the part.
        check_data(batch, question.part_question.assumptions)
        state_action_points(batch.states, batch.actions, question.question.policy)
    try:
        return batch_columns(batch, question)
    except InvalidInput as error:
        raise _in_part(scan, first, len(batch), error) from error


@contextmanager
def locating(scan: TransitionScan, first: int, rows: int) -> Iterator[None]:
    """What is wrong with a part is said with the place of its rows in the log."""
    try:
        yield
    except InvalidRow as error:
        raise InvalidInput(f"{scan.name}: {error.placed(lambda row: scan.where(first + row))}") from error
    except InvalidInput as error:
        raise _in_part(scan, first, rows, error) from error


def _in_part(scan: TransitionScan, first: int, rows: int, error: InvalidInput) -> InvalidInput:
    return InvalidInput(f"{scan.name}, in the part of rows {first} to {first + rows - 1}: {error}")
