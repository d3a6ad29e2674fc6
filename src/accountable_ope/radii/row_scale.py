"""A test kernel rescaled by declared ranges: u(x) K(x, y) u(y), so that no row can move the sum much more than others.

Theorem R: for predictable u_i >= 0 the sum of u_i eps_i K(x_i, .) is a martingale whose steps are at most
u_i b_i sqrt(K(x_i, x_i)), b_i the range that was declared for the row. With u_i = min(1, B / b_i) no step exceeds B sqrt(Kmax).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel, block
from ..validation import FloatArray, frozen

FIRST_SHARE = 0.05
"""The share of the rows that choose B and do not count."""

CENTERS = 500
"""How many of the first rows tell which rows have others near."""

QUANTILES = (0.25, 0.5, 0.75, 1.0)
"""B is one of these quantiles of the ranges of the first rows."""

LOG_LEVEL = 4.0
"""About log(2 / delta), where it only weighs range against variance."""


@dataclass(frozen=True, eq=False)
class RowScale:
    """u_i, one per row, 0 for the `earlier` rows that chose B; largest: B, no u_i b_i is larger."""

    factors: FloatArray
    largest: float
    earlier: int


@dataclass(frozen=True, eq=False)
class Relevance:
    """How much the value depends on rows, as far as states and actions tell: the fewer rows are near, the more on each.

    Of a table, the value moves with sum_c p_c S_c / n_c, S_c the sum of residuals of the n_c rows of cell c and p_c what the
    target policy does there: so the mean over rows of (p / n^{3/2})^2 is the sum over cells of (p / n)^2.

    Attributes
    ----------
    kernel : Kernel
    points : array (n, d)
        x_i = (s_i, a_i).
    probabilities : array (n,) or None
        Of the logged actions, under the target policy; None: unknown.
    """

    kernel: Kernel
    points: FloatArray
    probabilities: FloatArray | None = None

    def of_first(self, count: int) -> FloatArray:
        """(count,), from these rows alone."""
        points = self.points[:count]
        centers = points[:: 1 + (count - 1) // CENTERS]
        near = np.abs(block(self.kernel, points, centers)).mean(axis=1) / self.kernel.supremum
        probabilities = np.ones(count) if self.probabilities is None else self.probabilities[:count]
        return np.asarray(probabilities / np.maximum(near, 1 / count) ** 1.5)


def row_scale(ranges: FloatArray, relevance: Relevance | None = None) -> RowScale | None:
    """The factors for these ranges of the rows, or None where the first rows leave nothing to choose.

    Ranges of 0 need no factor: the residual of such a row is 0 at the true Q.

    relevance: how much the value depends on a row, as states and actions of the first rows tell. Nothing that is guaranteed rests
    on it, nor on the choice of B, which sees ranges and relevance of the first rows alone. How many these are is decided by the
    number of rows and nothing else: where they end with an episode, a row would count or not by whether one begins after it.
    """
    earlier = max(int(FIRST_SHARE * len(ranges)), 1)
    kept = np.isfinite(ranges[:earlier]) & (ranges[:earlier] > 0)
    first = ranges[:earlier][kept]
    if not len(first) or earlier >= len(ranges):
        return None
    cares = np.ones(len(first)) if relevance is None else relevance.of_first(earlier)[kept]
    candidates = np.unique(np.quantile(first, QUANTILES, method="lower"))
    costs = [_cost(first, float(one), cares, len(ranges) - earlier) for one in candidates]
    largest = float(candidates[int(np.argmin(costs))])
    factors = largest / np.maximum(ranges, largest)
    factors[:earlier] = 0.0
    return RowScale(frozen(factors), largest, earlier)


def _cost(ranges: FloatArray, largest: float, relevance: FloatArray, count: int) -> float:
    """How wide the kernel's evidence is likely to be: what it weighs little it bounds badly.

    A sum of residuals with weights r_i is <S_n, g> for a g as long as the root mean square of r_i / u_i, and ||S_n|| is about
    sqrt(2 L sum_i u_i^2 b_i^2 / 4) + L max_i u_i b_i.
    """
    factors = largest / np.maximum(ranges, largest)
    steps = factors * ranges
    length = float(np.mean((relevance / factors) ** 2)) ** 0.5
    chance = (LOG_LEVEL * count * float(np.mean(steps**2)) / 2) ** 0.5 + LOG_LEVEL * float(steps.max())
    return float(length * chance)
