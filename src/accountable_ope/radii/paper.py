"""The paper's radii (Hoeffding for U-statistics), with its errata corrected and, on request, as printed.

At Q of the target policy the expected loss is 0 and only the upper tail matters, so log(1/delta) suffices where the paper
writes log(2/delta); n may be odd, k = floor(n / 2) disjoint pairs. Trajectories are covered too: ordered by the larger index,
the pairs form a martingale. l_max = Kmax sup|eps|^2 bounds every term.
"""

from __future__ import annotations

import math


def largest_loss(residual_bound: float, kernel_supremum: float) -> float:
    """l_max = Kmax sup|eps|^2; with |r| <= rmax and no other range declared it is 4 Kmax rmax^2 / (1 - discount)^2."""
    return kernel_supremum * residual_bound**2


def hoeffding_u(n: int, l_max: float, delta: float, *, printed: bool = False) -> float:
    """P[U-statistic >= radius] <= delta at Q of the target policy; radius = 2 l_max sqrt(log(1/delta) / (2 floor(n/2))).

    printed=True: the two-sided form of the paper, 2 l_max sqrt(log(2/delta) / n).
    """
    if printed:
        return 2 * l_max * math.sqrt(math.log(2 / delta) / n)
    return 2 * l_max * math.sqrt(math.log(1 / delta) / (2 * (n // 2)))


def hoeffding_v(n: int, l_max: float, delta: float, *, printed: bool = False) -> float:
    """P[V-statistic >= radius] <= delta at Q of the target policy; V = ((n-1)/n) U + (1/n^2) sum of the diagonal terms.

    radius = ((n-1)/n) hoeffding_u + l_max / n.  printed=True: 2 l_max (((n-1)/n) sqrt(log(2/delta)/n) + 1/n).
    """
    share = (n - 1) / n
    diagonal = 2 * l_max / n if printed else l_max / n
    return share * hoeffding_u(n, l_max, delta, printed=printed) + diagonal
