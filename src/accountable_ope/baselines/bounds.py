"""Lower bounds of the mean of numbers X_1..X_n that are at least 0 and have no known upper bound.

An interval for a normalized return comes from two of them, at delta / 2 each: X has the mean rho, its mirror image 1 - rho
(see `importance_sampling`), so lower(X) <= rho <= 1 - lower(mirrored X).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import LARGEST, FloatArray, float_array, number, positive, probability_level, same_rows, vector, whole
from .doubly_robust import BoundedSamples, CorrectedReturns
from .episodes import Range
from .importance_sampling import Samples

EARLIER_SHARE = 0.05
"""The share of the episodes, the first ones, that chooses the threshold of HCOPE and nothing else."""

TRUNCATION = 0.75
"""Bets are at most this share of the largest that keeps the capital positive."""

DESIGN_LEVEL = 0.05
"""Bets are sized for this level whatever delta is, so that bounds at different deltas are nested."""

HALVINGS = 50
"""Steps of the bisection: about as many as a double has digits."""


@checked
def hcope_lower(x: ArrayLike, threshold: float, delta: float) -> float:
    """Thomas, Theocharous and Ghavamzadeh (2015), Theorem 1, with one threshold c for all i.

    For independent X_i >= 0 whose means are at most rho, and Y_i = min(X_i, c), with probability at least 1 - delta
        rho >= mean(Y) - 7 c log(2/delta) / (3 (n - 1)) - (c / n) sqrt( log(2/delta) / (n - 1) sum_ij (Y_i/c - Y_j/c)^2 ),
    where the root is sqrt(2 var(Y) log(2/delta) / n) with the unbiased variance: Maurer and Pontil's empirical Bernstein bound
    of Y / c in [0, 1], and E Y <= E X. As mean(Y) <= c, the bound never exceeds c: with a threshold far below the mean it says
    nothing, however many episodes there are.

    Parameters
    ----------
    x : array (n,)
        X, at least 0, n >= 2.
    threshold : float
        c, positive, chosen without looking at these X (`choose_threshold`).
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        Where there are too few X, one is negative, or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import hcope_lower
    >>> x = np.random.default_rng(0).uniform(size=1000)
    >>> 0.4 < hcope_lower(x, threshold=1.0, delta=0.1) < 0.5
    True
    """
    values, c, level = _samples(x, least=2), positive(threshold, "threshold"), probability_level(delta)
    return _hcope(np.minimum(values, c), c, len(values), level)


@checked
def choose_threshold(x_pre: ArrayLike, n_post: int, delta: float) -> float:
    """The c that maximizes the bound of `hcope_lower` as the samples `x_pre` predict it for n_post others.

    f(c) = mean(Y) - 7 c log(2/delta) / (3 (n_post - 1)) - sqrt(2 var(Y) log(2/delta) / n_post), Y = min(x_pre, c). Between two
    neighboring values of x_pre, Y is affine in c, the mean affine and the standard deviation a norm of an affine function: f is
    concave there, and its maximum is found in closed form. Above the largest value only the second term changes, for the worse.

    Parameters
    ----------
    x_pre : array (N,)
        At least 0, N >= 2.
    n_post : int
        At least 2.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        c, positive.

    Raises
    ------
    InvalidInput
        Where there are too few samples, one is negative, or a number is out of range.

    Examples
    --------
    >>> from accountable_ope.baselines import choose_threshold
    >>> choose_threshold([0.5, 1.0, 1.5, 40.0], n_post=1000, delta=0.1) <= 40.0
    True
    """
    values, level = np.sort(_samples(x_pre, least=2, name="x_pre")), probability_level(delta)
    later, log = whole(n_post, "n_post", least=2), math.log(2 / level)
    if values[-1] <= 0:
        return 1.0  # nothing to go by, so the scale of a normalized return
    # Of the k smallest values, k = 0..N-1: their share p, mean a and mean squared deviation s (summed without cancellation).
    total, below = len(values), np.arange(len(values))
    means = np.concatenate([[0.0], np.cumsum(values)[:-1] / below[1:]])
    p, a = below / total, means
    s = np.concatenate([[0.0, 0.0], np.cumsum((values[1:-1] - means[1:-1]) * (values[1:-1] - means[2:]))]) / np.maximum(below, 1)
    linear, root = 7 * log / (3 * (later - 1)), 2 * log * total / ((total - 1) * later)

    def predicted(c: FloatArray) -> FloatArray:
        """f at c_k between the k-th and the next value: mean(Y) = p a + (1 - p) c, var(Y) ~ p s + p (1 - p) (c - a)^2."""
        return np.asarray(p * a + (1 - p) * c - linear * c - np.sqrt(root * (p * s + p * (1 - p) * (c - a) ** 2)))

    # f = const + B u - sqrt(Q (u^2 + d)) with u = c - a, so its slope is 0 at u^2 = B^2 d / (Q - B^2), if at all.
    slope, q = 1 - p - linear, root * p * (1 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = a + slope * np.sqrt(s / (1 - p) / (q - slope**2))
    between = (slope > 0) & (q > slope**2) & (np.concatenate([[0.0], values[:-1]]) < flat) & (flat < values)
    candidates = np.concatenate([values, np.where(between, flat, values)])
    bounds = np.concatenate([predicted(values), predicted(np.where(between, flat, values))])
    # Ratios of long episodes may all but vanish: a threshold below what squares can hold is as good as this one.
    return max(float(candidates[int(np.argmax(np.where(candidates > 0, bounds, -math.inf)))]), 1 / LARGEST)


@checked
def split_hcope_lower(x: ArrayLike, delta: float) -> float:
    """`hcope_lower` of all but the first twentieth of the samples, at the threshold that this twentieth (at least two) chooses.

    The order of the samples matters in so far as the first ones choose. As the choice depends on delta, bounds at different
    deltas need not be nested.

    Parameters
    ----------
    x : array (n,)
        At least 0, n >= 4.
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        Where there are too few X, one is negative, or `delta` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import split_hcope_lower
    >>> split_hcope_lower(np.random.default_rng(0).uniform(size=1000), delta=0.1) < 0.5
    True
    """
    values = _samples(x, least=4)
    cut = max(2, math.ceil(EARLIER_SHARE * len(values)))
    return hcope_lower(values[cut:], choose_threshold(values[:cut], len(values) - cut, delta), delta)


@checked
def hcope_interval(samples: Samples, delta: float) -> Range:
    """[lower(X), 1 - lower(mirrored X)] by `split_hcope_lower` at delta / 2 each, cut to [0, 1].

    Parameters
    ----------
    samples : Samples
    delta : float
        In (0, 1).

    Returns
    -------
    tuple of two floats
        They cross when one of them must be wrong.

    Raises
    ------
    InvalidInput
        Where there are fewer than four samples, one is negative, or `delta` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import Samples, hcope_interval
    >>> x = np.random.default_rng(0).uniform(size=1000)
    >>> lower, upper = hcope_interval(Samples(x, 1 - x), delta=0.1)
    >>> lower < 0.5 < upper
    True
    """
    return _two_sided(split_hcope_lower, samples, delta)


@checked
def betting_lower(x: ArrayLike, delta: float, *, lowest: ArrayLike | float = 0.0, guess: Range | None = None) -> float:
    """Betting against every mean (Waudby-Smith and Ramdas 2024): LB = inf{m > 0 : max_t K_t(m) < 1/delta}.

    K_t(m) = prod_{i<=t} (1 + l_i(m) (X_i - m)), K_0 = 1, with l_i(m) = min(b_i, .75 / m) and
    b_i = sqrt(2 log(1/.05) / (n v_{i-1})), v_{i-1} = (1/4 + sum_{j<i} (X_j - mean_j)^2) / i: a bet that is fixed before X_i.

    Valid. X_i >= 0 and l_i(m) m <= .75, so factors are at least 1/4. If the conditional mean of every X_i given those before
    is at most m, then a factor has conditional mean at most 1, K_t(m) is a non-negative supermartingale that starts at 1, and by
    Ville's inequality max_t K_t(m) >= 1/delta has probability at most delta. Take m = rho, the mean.
    Monotone. Where l_i(m) = b_i the factor is 1 + b_i X_i - b_i m, elsewhere 1 - .75 + .75 X_i / m: both fall as m grows, and
    they agree where they meet. So K_t(m) falls, all m below LB are rejected, and LB > rho implies max_t K_t(rho) >= 1/delta.
    Bisection keeps an m that is rejected and returns it, so an unfinished one is too low and never too high.

    Where X_i >= `lowest`, another number d or one d_i for each, l_i(m) = min(b_i, .75 / (m - d_i)) takes its place, and all this
    holds as it stands. And where something is known of X in advance, v_{i-1} and mean_j begin with that `guess` of mean and
    standard deviation in the place of 1/2 and 1/2: that changes the bets, and not the guarantee.

    Only X >= 0 and the mean given the past are used: no independence. The result depends on the order, which must be that of
    generation. n, and nothing else of the X to come, enters b_i. The bets do not depend on delta, so bounds are nested in it.

    Parameters
    ----------
    x : array (n,)
        At least `lowest`, n >= 2, in the order of generation.
    delta : float
        In (0, 1).
    lowest : float or array (n,)
        Each known before its X.
    guess : tuple of two floats, optional
        Mean and standard deviation of X as expected before these X.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        Where there are too few X, one is below `lowest`, or `delta` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import betting_lower
    >>> 0.4 < betting_lower(np.random.default_rng(1).uniform(size=1000), delta=0.1) < 0.5
    True
    """
    values, level = vector(x, "x", largest=math.inf), probability_level(delta)
    least = float_array(lowest, "lowest", dimensions=(0, 1))
    if least.ndim == 1:
        same_rows(len(values), least, "lowest", "x")
    above = _samples(values - least, least=2)
    mean, deviation = (0.5, 0.5) if guess is None else (number(guess[0], "guess"), abs(number(guess[1], "guess")))
    bets = predictable_bets(values, mean, deviation**2)
    wanted = math.log(1 / level) + 1e-9  # more than the rounding of the sum of logarithms
    origin = float(least.min())
    behind = least - origin

    def rejected(beyond: float) -> bool:
        """Whether m = origin + beyond is."""
        room = np.maximum(beyond - behind, 0.0)
        with np.errstate(divide="ignore"):
            most = np.where(room > 0, TRUNCATION / room, math.inf)
        return float(np.cumsum(np.log1p(np.minimum(bets, most) * (above - (beyond - behind)))).max()) >= wanted

    if not rejected(0.0):
        return origin
    high = float(values.max()) - origin  # not rejected: no factor exceeds 1
    while not rejected(0.5 * high):
        high *= 0.5
    low = 0.5 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return origin + low


@checked
def betting_interval(samples: Samples, delta: float) -> Range:
    """[lower(X), 1 - lower(mirrored X)] by `betting_lower` at delta / 2 each, cut to [0, 1].

    Parameters
    ----------
    samples, delta
        As in `hcope_interval`, at least two samples.

    Returns
    -------
    tuple of two floats

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import Samples, betting_interval
    >>> x = np.random.default_rng(0).uniform(size=1000)
    >>> lower, upper = betting_interval(Samples(x, 1 - x), delta=0.1)
    >>> lower < 0.5 < upper
    True
    """
    return _two_sided(betting_lower, samples, delta)


@checked
def corrected_interval(returns: CorrectedReturns, delta: float, method: str = "betting") -> Range:
    """[lower(low), -lower(mirrored)] at delta / 2 each, by `betting_lower` or by `split_hcope_lower`.

    Parameters
    ----------
    returns : CorrectedReturns
        For "hcope" made without refits, so that they are independent.
    delta : float
        In (0, 1).
    method : str
        "betting" or "hcope".

    Returns
    -------
    tuple of two floats
        They cross when one of them must be wrong.

    Raises
    ------
    InvalidInput
        Where there are too few samples, `delta` is out of range, or there is no such method.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import BoundedSamples, CorrectedReturns, corrected_interval
    >>> x = np.random.default_rng(0).uniform(size=1000)
    >>> low = BoundedSamples(x, np.zeros(1000), (0.5, 0.3))
    >>> mirrored = BoundedSamples(-x, -np.ones(1000), (-0.5, 0.3))
    >>> lower, upper = corrected_interval(CorrectedReturns(low, mirrored), delta=0.1)
    >>> lower < 0.5 < upper
    True
    """
    half = 0.5 * probability_level(delta)
    if method not in ("betting", "hcope"):
        raise InvalidInput(f"`method` must be one of betting, hcope. Got {method!r}.")

    def lower(samples: BoundedSamples) -> float:
        if method == "betting":
            return betting_lower(samples.x, half, lowest=samples.lowest, guess=samples.guess)
        least = float(samples.lowest.min())
        return least + split_hcope_lower(samples.x - least, half)

    return lower(returns.low), -lower(returns.mirrored)


def predictable_bets(x: FloatArray, mean: float = 0.5, variance: float = 0.25) -> FloatArray:
    """b_i of `betting_lower`: entry i is a function of the entries before it, of their number, of n and of what was expected."""
    many = np.arange(1, len(x) + 1)
    means = (mean + np.cumsum(x)) / (many + 1)
    variances = (variance + np.cumsum((x - means) ** 2)) / (many + 1)
    before = np.maximum(np.concatenate([[variance], variances[:-1]]), 1e-300)
    return np.asarray(np.sqrt(2 * math.log(1 / DESIGN_LEVEL) / (len(x) * before)))


def _two_sided(lower: Callable[[FloatArray, float], float], samples: Samples, delta: float) -> Range:
    """Both ends; a normalized return is in [0, 1], so each is cut to that side. They cross when one of them must be wrong."""
    half = 0.5 * probability_level(delta)
    return max(lower(samples.x, half), 0.0), min(1.0 - lower(samples.mirrored, half), 1.0)


def _hcope(y: FloatArray, c: float, n: int, delta: float) -> float:
    log = math.log(2 / delta)
    return float(y.mean() - 7 * c * log / (3 * (n - 1)) - math.sqrt(2 * float(y.var(ddof=1)) * log / n))


def _samples(x: ArrayLike, *, least: int, name: str = "x") -> FloatArray:
    values = vector(x, name, largest=math.inf)  # weights of whole episodes know no scale
    if len(values) < least:
        raise InvalidInput(f"At least {least} episodes are needed. Got {len(values)}.")
    if (values < 0).any():
        raise InvalidInput(f"`{name}` must not be negative: shift rewards by the least one. Got {values.min():g}.")
    return values
