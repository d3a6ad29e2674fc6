"""The kernel statistic of a log that does not fit into memory: sums over its parts, added up.

What can be summed in parts: a test kernel of finite rank (`RandomFeatureKernel`, `Tabular`), a class of features that are fixed
before the data, and a policy whose expectations are exact. Sums over the pairs of rows of any other kernel need all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..errors import InvalidInput, InvalidRow
from ..io.ahead import ahead
from ..io.scanning import TransitionScan
from ..kernels.blocks import roundings
from ..kernels.kernel import LabeledRank
from ..kernels.products import Progress
from ..problem.contradictions import check_data
from ..problem.policy import state_action_points
from ..problem.problem import Experience
from ..problem.transitions import StartStates, Transitions
from ..validation import BoolArray, FloatArray
from .bellman import with_constant
from .engines.finite_rank import diagonal_sums
from .estimates import q_columns
from .partial import PartialStatistic
from .stream_question import StreamQuestion


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
