"""The interval that a contestant hands back: within the declared range of values, and the whole of it where nothing is known."""

from __future__ import annotations

import math

import numpy as np

from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, premise, range_text
from ..validation import FloatArray
from .episodes import Range
from .interval import BaselineInterval

ESTIMAND = "Value of the target policy"


def answered(
    problem: Problem,
    ends: Range,
    *,
    method: str,
    delta: float,
    guarantee: Guarantee,
    premises: tuple[Statement, ...],
    episodes: int | None = None,
) -> BaselineInterval:
    """The interval; an end that is no number says nothing, and is that of the declared range."""
    least, most = problem.ranges.value
    low, high = (math.inf * sign if math.isnan(end) else float(end) for end, sign in zip(ends, (-1, 1), strict=True))
    known = problem.data.number_of_episodes
    low_reward, high_reward = problem.assumptions.reward_range
    shared = (
        premise("rewards", f"Every reward lies in {range_text(low_reward, high_reward)}."),
        premise("values", f"The value lies in {range_text(least, most)}, which cuts the ends."),
    )
    return BaselineInterval(
        lower=max(low, least),
        upper=min(high, most),
        method=method,
        delta=delta,
        episodes=(known or 0) if episodes is None else episodes,
        estimand=ESTIMAND,
        count=len(problem.data),
        return_range=(least, most),
        premises=(*premises, *shared),
        guarantee=guarantee,
    )


def percentile_ends(values: FloatArray, delta: float) -> Range:
    """The delta / 2 and 1 - delta / 2 quantiles of what resampling gave.

    Unknown where a refit gave no number, and where there are too few of them to see so far out.
    """
    if not np.isfinite(values).all() or 0.5 * delta * len(values) < 1 - 1e-9:
        return (math.nan, math.nan)
    low, high = np.quantile(values, [0.5 * delta, 1 - 0.5 * delta])
    return (float(low), float(high))
