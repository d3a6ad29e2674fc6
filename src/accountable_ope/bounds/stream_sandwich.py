"""The sandwich interval of a log that is read in parts, in two passes.

The first sums the kernel statistic, of which thetahat and y = (Z'MZ)^{-1} c0 are made. The second sums g_i^2 e_i^2: with a kernel
of finite rank, K = Psi Psi', the weight of a row is g_i = psi(x_i)'P_Z y / n^2, P_Z = Psi'Z from the first pass, and
e_i = v_i - Z_i'thetahat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..errors import InvalidInput
from ..io.ahead import ahead
from ..io.scanning import TransitionScan
from ..kernels.kernel import LabeledRank
from ..kernels.products import Progress, part_of
from ..statistics.examiner import Examiner
from ..statistics.partial import PartialStatistic
from ..statistics.smoothing import smoothed
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import BatchColumns, batch_columns, located_statistic
from ..validation import probability_level
from .asymptotic import LeastLoss, check_class, least_loss_solution
from .log_begun import LogBegun, first_rows_of
from .sandwich import SandwichInterval, SandwichRows, sandwich_from
from .streamed import HEAD, refuse_unstreamed


@checked
def sandwich_stream(
    scan: TransitionScan, question: StreamQuestion, delta: float = 0.1, *, progress: Progress | None = None
) -> SandwichInterval:
    """`sandwich_interval` for a log that is read in parts, twice, in memory that does not grow with it.

    It is that of the same rows in memory, up to rounding; the class is tested on the first 20,000 rows.

    Parameters
    ----------
    scan : TransitionScan
        The log, from `scan_transitions`, in the order of generation.
    question : StreamQuestion
        Start states, policy, assumptions, class and test kernel, all fixed before the data; without an anchor.
    delta : float
        One minus the coverage in the limit.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    SandwichInterval

    Raises
    ------
    InvalidInput
        Where something needs all rows at once, or a row contradicts the assumptions: it is named with its file.

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
    ...     aope.save_transitions(mdp.sample(np.random.default_rng(0), trajectories=20), Path(folder) / "log.parquet")
    ...     interval = aope.bounds.sandwich_stream(aope.scan_transitions(folder), question)
    >>> interval.count, interval.estimate in interval
    (1000, True)
    """
    probability_level(delta)
    refuse_unstreamed(question.question)
    if question.anchor is not None:
        raise InvalidInput("`question` must have no anchor: a sandwich interval lies around the fit of the class.")
    head = first_rows_of(scan, HEAD)
    log = LogBegun.looked_at(scan, head, question)
    check_class(question.function_class, log.problem)
    with threadpool_limits(limits=1, user_api="blas"):  # two threads share the work, and small products gain nothing by more
        sums, copied = _summed(scan, log, part_of(progress, 0.0, 0.5))
        solution = least_loss_solution(sums.statistic(), log.first.objective)
        spread = _spread(scan, log, sums, solution, part_of(progress, 0.5, 1.0)) if solution.seen else math.inf
    rows = SandwichRows(
        problem=log.problem,
        function_class=log.question.function_class,
        kernel=log.question.kernel,
        system=log.first,
        examiner=Examiner(log.question.kernel, log.first, len(head) if len(head) < scan.rows else None),
        count=scan.rows,
        copied=copied,
    )
    return sandwich_from(rows, solution, spread, delta)


def _summed(scan: TransitionScan, log: LogBegun, progress: Progress | None) -> tuple[PartialStatistic, int]:
    """Sums over all rows, and how many of these are copies, where they are too many."""
    copies = scan.copy_finder()

    def parts() -> Iterator[PartialStatistic]:
        at = 0
        for batch in scan:
            log.refuse_new_end(scan, at, batch)
            copies.take(batch)
            yield located_statistic(scan, at, batch, log.question)
            at += len(batch)

    total: PartialStatistic | None = None
    for found in ahead(parts()):
        total = found if total is None else total + found
        if progress is not None:
            progress(total.count / scan.rows)
    assert total is not None  # a scan has rows
    return total, max(copies.found().doubted, scan.copies.doubted)


def _spread(scan: TransitionScan, log: LogBegun, sums: PartialStatistic, solution: LeastLoss, progress: Progress | None) -> float:
    """sqrt(sum_i g_i^2 e_i^2), in a second pass; rows were checked in the first one."""
    assert solution.weights is not None

    def parts() -> Iterator[BatchColumns]:
        return (batch_columns(batch, log.question) for batch in scan)

    kernel = log.question.kernel
    assert isinstance(kernel, LabeledRank)
    coefficients = np.append(solution.weights, [0.0, 0.0])[:, None]
    total, at = 0.0, 0
    for rows in ahead(parts()):
        weights = smoothed(sums, kernel, rows.points, coefficients)[:, 0] / scan.rows**2
        residuals = rows.target - rows.residuals @ solution.theta
        total += float(weights**2 @ residuals**2)
        at += len(residuals)
        if progress is not None:
            progress(at / scan.rows)
    return math.sqrt(total)
