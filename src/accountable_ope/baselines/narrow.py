"""What speaks against an interval of importance-weighted returns by itself: ends that cross, and ends that nearly do.

With right probabilities ends cross with a probability of at most delta, and so nothing is refuted for certain. Where they nearly
cross the interval is short for the same reasons: the weights of these rows are on average far above 1, so that X and its mirror
image are both too large, or bets that early rows made ruled out means which all rows together do not.
"""

from __future__ import annotations

import math

import numpy as np

from ..problem.statements import Statement, doubt
from ..validation import FloatArray
from .episodes import Range
from .importance_sampling import Samples

NARROW = 0.7
"""The share of the width of a normal interval below which one by betting is doubted.

Of 36 bandits with right probabilities (uniform loggers and such that give an action 5% or 2%, soft and greedy targets and the
logger itself; rewards rare, even and common; 400 and 2000 rows; 400 logs each) so many intervals held the value:

    share of the width      below .4   .4 to .7   .7 to .9    .9 to 1    above 1   all
    at delta = .1                28%        70%        87%        89%       98%    95%
    at delta = .5                 7%        26%        33%        42%       81%    63%

At delta = .1 the share was below .7 in 4% of the logs, where 59% held the value (97% in the others), at delta = .5 in 8%, where
16% did (78% in the others). Of the intervals that held the value 3% and 2% were doubted.
"""


def crossed_doubt(delta: float) -> Statement:
    """That the ends have crossed."""
    text = (
        f"The ends cross, which has a probability of at most {100 * delta:.4g}% if all that is assumed is right: either the "
        "probabilities, or something else that is assumed, are wrong, or this is such a log. Nothing follows."
    )
    return doubt("crossed", text, ("delta", delta))


def interval_doubts(samples: Samples, ends: Range, delta: float, method: str) -> tuple[Statement, ...]:
    """Of the ends of a normalized return, before a declared range of values cuts them."""
    if ends[0] > ends[1]:
        return (crossed_doubt(delta),)
    share = share_of_normal(samples, ends, delta) if method == "betting" else math.inf
    if share >= NARROW:
        return ()
    text = (
        f"The ends nearly cross: the interval has {100 * share:.0f}% of the width of a normal interval of the same weighted "
        f"rewards at the same delta. Of simulated ones below {100 * NARROW:g}%, 59% held the value at 90% confidence and 16% at "
        "50%."
    )
    return (doubt("narrow", text, ("share", share), ("delta", delta)),)


def share_of_normal(samples: Samples, ends: Range, delta: float) -> float:
    """The width, as a share of that of the narrower of the normal intervals of X and of its mirror image, both within [0, 1].

    Infinite where one of them never varies.
    """
    from scipy.special import ndtri

    widths = [_normal_width(each, -float(ndtri(0.5 * delta))) for each in samples]
    least = min(widths)
    return (ends[1] - ends[0]) / least if least > 0 else math.inf


def _normal_width(values: FloatArray, quantile: float) -> float:
    """As far as it lies in [0, 1]; around a mean beyond that, around the nearest possible one."""
    half = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
    middle = float(np.clip(values.mean(), 0.0, 1.0))
    return min(half, middle) + min(half, 1 - middle)
