"""How many rows an interval of some width takes, by the widths of the first half, quarter, ... of the log."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import InvalidInput
from ..kernels.products import Progress, part_of
from ..problem.statements import Status
from .evaluation import Evaluation
from .findings import Prefix, RowsNeeded, RowsOutcome
from .interval import Interval

SLOWEST = 0.25
"""Widths that fall slower than n to minus this power are not extrapolated."""


def refuse_uncut(evaluation: Evaluation) -> None:
    """Raise where the rows cannot be cut."""
    if any(each.at_rows_only for each in evaluation.classes):
        raise InvalidInput("`rows_needed` cuts the data; features given as columns (Precomputed) cannot be cut with them.")


def extrapolated_rows(
    evaluation: Evaluation, interval: Interval, width: float, parts: int, progress: Progress | None = None
) -> RowsNeeded:
    """The rows that an interval of this width takes, from that of all rows and those of the first half, quarter, ..."""
    refuse_uncut(evaluation)
    intervals, problem, radius = [interval], evaluation.problem, interval.radius.name
    for k in range(1, parts):
        earlier, _ = problem.split(0.5**k)
        if len(earlier.data) < intervals[-1].count:
            done = part_of(progress, (k - 1) / (parts - 1), k / (parts - 1))
            intervals.append(evaluation.again(earlier, done).bound(radius, interval.delta))
    return _rows_needed(intervals[::-1], width, more_starts=not (problem.starts.exact or problem.starts.fixed))


def _rows_needed(intervals: Sequence[Interval], width: float, *, more_starts: bool = False) -> RowsNeeded:
    """From the intervals of nested prefixes, the shortest first and all the data last.

    more_starts: whether start states are those of the log, of which a longer one has more; all prefixes have the same here.
    """
    last = intervals[-1]
    points = tuple(Prefix(interval.count, interval.width, interval.outcome) for interval in intervals)
    starts, misfit = (each * (2 - sum(last.clipped)) for each in (last.start_error, last.assumptions.misfit))
    floor, falling = (misfit, starts) if more_starts else (starts + misfit, 0.0)
    usable = [point for point in points if point.status is Status.OK and point.width > floor + falling]
    if last.status is Status.INCONSISTENT:
        return RowsNeeded(width, RowsOutcome.REFUTED, points, floor)
    if last.status is Status.OK and points[-1].width <= width:
        return RowsNeeded(width, RowsOutcome.ENOUGH, points, floor, rows=last.count, slower=last.count)
    if width <= floor:
        return RowsNeeded(width, RowsOutcome.FLOOR, points, floor)
    if len(usable) < 2:
        return RowsNeeded(width, RowsOutcome.VACUOUS, points, floor)
    n, above = np.array([point.rows for point in usable], float), np.array([point.width for point in usable]) - floor - falling
    if above[-1] > above[-2] * (n[-2] / n[-1]) ** SLOWEST:
        return RowsNeeded(width, RowsOutcome.STUCK, points, floor)
    from scipy.optimize import nnls

    share = np.sqrt(n[-1] / n)
    (a, b), _ = nnls(np.column_stack([share, share**2]) / above[:, None], np.ones(len(n)))  # relative errors
    goal, a = width - floor, a + falling
    reached = 2 * goal / (a + math.sqrt(a**2 + 4 * b * goal))  # a x + b x^2 = goal, x = sqrt(n[-1] / rows)
    rows = max(math.ceil(n[-1] / reached**2), last.count)
    slower = max(math.ceil(n[-1] * ((above[-1] + falling) / goal) ** 2), rows)
    return RowsNeeded(width, RowsOutcome.EXTRAPOLATED, points, floor, rows, slower)
