"""Where the failure probability goes: one place for every result.

The kernel event is shared by both ends of the interval, so an exact start distribution gives both ends at 1 - delta. Sampled
start states (or sampled actions there) are a second event, paid for with its own share. Several function classes with the same
kernel share the kernel event and cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

START_SHARE = 0.1
"""The share of delta given to the Monte Carlo error of the start states, when there is one."""


@dataclass(frozen=True)
class DeltaSplit:
    """total = kernel + start."""

    total: float
    kernel: float
    start: float


def split_delta(delta: float, *, start_is_exact: bool) -> DeltaSplit:
    """delta = delta_K + delta_eta (two-sided); all of it goes to the kernel event when the start value is exact."""
    start = 0.0 if start_is_exact else START_SHARE * delta
    return DeltaSplit(total=delta, kernel=delta - start, start=start)


def start_radius(span: float, effective_count: float, delta: float) -> float:
    """lambda_eta = span(V) sqrt(log(2/delta) / (2 N)), two-sided Hoeffding for the mean of V over N start states.

    For weighted start states with sampled actions N is (draws per state) / sum_j weight_j^2.
    """
    return span * math.sqrt(math.log(2 / delta) / (2 * effective_count))
