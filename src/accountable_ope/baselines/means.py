"""Intervals for the mean of independent numbers that are right in the limit of many: Student's, and by resampling.

Student: mean +- t_{N-1, 1-delta/2} s / sqrt(N), s^2 the unbiased variance. Bootstrap (Efron 1979, percentile): numbers are drawn
again N times with replacement, and the delta/2 and 1 - delta/2 quantiles of the estimates from such draws are the ends.
"""

from __future__ import annotations

import math

import numpy as np

from ..validation import FloatArray
from .answer import percentile_ends
from .episodes import Range

RESAMPLES = 500
"""Draws of a bootstrap that only adds numbers up."""


def student_ends(x: FloatArray, delta: float) -> Range:
    """mean +- t s / sqrt(N); unknown where there is one number, or some are beyond all measure."""
    from scipy.special import stdtrit

    count = len(x)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, error = float(x.mean()), float(x.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    if not math.isfinite(mean) or not math.isfinite(error):
        return (math.nan, math.nan)
    reach = -float(stdtrit(count - 1, 0.5 * delta)) * error
    return (mean - reach, mean + reach)


def resampled_counts(count: int, times: int, rng: np.random.Generator) -> FloatArray:
    """How often each of so many is drawn, (times, count)."""
    return rng.multinomial(count, np.full(count, 1 / count), size=times).astype(np.float64)


def bootstrap_ends(x: FloatArray, delta: float, rng: np.random.Generator) -> Range:
    """Quantiles of the means of draws with replacement."""
    if not np.isfinite(x).all():
        return (math.nan, math.nan)
    return percentile_ends(resampled_counts(len(x), RESAMPLES, rng) @ x / len(x), delta)
