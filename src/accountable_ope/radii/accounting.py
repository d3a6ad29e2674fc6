"""Where the failure probability goes: one place for every result.

The kernel event is shared by both ends of the interval, so an exact start distribution gives both ends at 1 - delta. Sampled
start states (or sampled actions there) are a second event, paid for with its own share. Several function classes with the same
kernel share the kernel event and cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..arguments import checked

START_SHARE = 0.1
"""The share of delta given to the Monte Carlo error of the start states, when there is one."""


FEATURE_SHARE = 0.5
"""The share of delta given to the draw of random features, where a whole RKHS is bounded through them."""


@checked
@dataclass(frozen=True)
class DeltaSplit:
    """Where the failure probability goes: total = kernel + start + features.

    Attributes
    ----------
    total : float
    kernel : float
        The event about the residuals.
    start : float
        Sampled start states or actions there; 0 where both are exact.
    features : float
        Random features that stand for an RKHS; 0 without.
    """

    total: float
    kernel: float
    start: float
    features: float = 0.0


@checked
def split_delta(delta: float, *, start_is_exact: bool, random_features: bool = False) -> DeltaSplit:
    """delta = delta_K + delta_eta (two-sided) + delta_w; all of it goes to the kernel event when that is the only one.

    Parameters
    ----------
    delta : float
    start_is_exact : bool
        Whether the value at the start is known exactly for every Q.
    random_features : bool
        Whether random features stand for an RKHS.

    Returns
    -------
    DeltaSplit

    Examples
    --------
    >>> from accountable_ope.radii import split_delta
    >>> split_delta(0.1, start_is_exact=True).kernel
    0.1
    >>> split_delta(0.1, start_is_exact=False).start > 0
    True
    """
    features = FEATURE_SHARE * delta if random_features else 0.0
    left = delta - features
    start = 0.0 if start_is_exact else START_SHARE * left
    return DeltaSplit(total=delta, kernel=left - start, start=start, features=features)


def start_radius(span: float, effective_count: float, delta: float) -> float:
    """lambda_eta = span(V) sqrt(log(2/delta) / (2 N)), two-sided Hoeffding for the mean of V over N start states.

    For weighted start states with sampled actions N is (draws per state) / sum_j weight_j^2.
    """
    return span * math.sqrt(math.log(2 / delta) / (2 * effective_count))
