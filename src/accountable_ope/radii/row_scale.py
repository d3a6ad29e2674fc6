"""A test kernel rescaled by declared ranges: u(x) K(x, y) u(y), so that no row can move the sum much more than others.

Theorem R: for predictable u_i >= 0 the sum of u_i eps_i K(x_i, .) is a martingale whose steps are at most
u_i b_i sqrt(K(x_i, x_i)), b_i the range that was declared for the row. With u_i = min(1, B / b_i) no step exceeds B sqrt(Kmax).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..validation import FloatArray, IntArray, frozen

FIRST_SHARE = 0.05
"""The share of the rows that choose B and do not count."""

QUANTILE = 0.25
"""B is this quantile of the ranges of the first rows."""


@dataclass(frozen=True, eq=False)
class RowScale:
    """u_i, one per row, 0 for the `earlier` rows that chose B; largest: B, no u_i b_i is larger."""

    factors: FloatArray
    largest: float
    earlier: int


def row_scale(ranges: FloatArray, episodes: IntArray | None) -> RowScale | None:
    """The factors for these ranges of the rows, or None where the first rows leave nothing to choose.

    Ranges of 0 need no factor: the residual of such a row is 0 at the true Q.
    """
    earlier = max(int(FIRST_SHARE * len(ranges)), 1)
    if episodes is not None:
        begins = np.flatnonzero(np.diff(episodes, prepend=episodes[0] - 1))
        later = begins[begins >= earlier]
        earlier = int(later[0]) if len(later) else earlier
    first = ranges[:earlier]
    first = first[np.isfinite(first) & (first > 0)]
    if not len(first) or earlier >= len(ranges):
        return None
    largest = float(np.quantile(first, QUANTILE, method="lower"))
    factors = largest / np.maximum(ranges, largest)
    factors[:earlier] = 0.0
    return RowScale(frozen(factors), largest, earlier)
