"""How often a coin crosses a boundary: exact probabilities, by a sum over all paths.

One context, K = 1: S_j = heads - j p and V_j = heads (1 - p)^2 + (j - heads) p^2 are functions of the number of heads, and the
probability that ||S_j||^2 is *ever* beyond a boundary up to n is a finite sum, with no sampling error.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from accountable_ope.problem.assumptions import ValueRanges
from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.martingale import self_normalized
from accountable_ope.radii.registry import Approach, LossKind, RadiusRule
from accountable_ope.radii.self_normalized import BALANCE

Boundary = Callable[[int, np.ndarray], np.ndarray | float]
"""(rows j, V_j for every number of heads) -> what ||S_j||^2 must not exceed."""


def level(rule: RadiusRule, count: int, planned: int, delta: float, largest: float = 1.0) -> float:
    """That of a rule that is one number, for rewards in [0, 1] and residuals of width 1 that are at most `largest`."""
    ranges = ValueRanges((0.0, 1.0), (0.0, 1.0), 1.0, largest)
    return rule.level(SimpleNamespace(ranges=ranges, statistic=SimpleNamespace(count=count, kernel_supremum=1.0)), delta, planned)


def boundary_of(rule: RadiusRule, n: int, delta: float, largest: float = 1.0, observed: float = 1.0) -> Boundary:
    """What the rule says about ||S_j||^2 for residuals of width 1, known to be at most `largest`, in data of n rows.

    observed: no residual in the data is larger; that of a fair coin is always a half. A radius for one number of rows counts the
    squared widths of all n of them, one for all numbers those of the j that are there.
    """
    if rule.envelope is not None:
        envelope = rule.envelope(1.0, n, delta)

        def squared(j: int, variance: np.ndarray) -> np.ndarray:
            distinct, where = np.unique(variance, return_inverse=True)
            steps = Steps(1.0, observed, float(j if rule.anytime else n))
            return envelope.bound(steps, distinct)[0][where] ** 2

        return squared
    if rule.approach is Approach.SELF_NORMALIZED:
        c = BALANCE / (0.25 * n)
        return lambda j, variance: (1 + c * j / 4) * self_normalized(math.log1p(c * j / 4), c, delta)
    if rule.loss is LossKind.U:
        return lambda j, variance: variance + n * (n - 1) * level(rule, n, n, delta, largest)
    if rule.anytime:
        return lambda j, variance: j**2 * level(rule, j, n, delta, largest)
    return lambda j, variance: n**2 * level(rule, n, n, delta, largest)


def crossing_probability(
    boundary: Boundary, n: int, p: float, only_at_end: bool = False, counted: Boundary | None = None
) -> float:
    """P(||S_j||^2 > boundary_j for some j <= n), over all paths of the number of heads.

    counted: only the paths that are beyond this one too when they first cross the boundary.
    """
    alive, crossed = np.zeros(n + 1), 0.0
    alive[0] = 1.0
    for j in range(1, n + 1):
        alive[1:] = alive[1:] * (1 - p) + alive[:-1] * p
        alive[0] *= 1 - p
        if only_at_end and j < n:
            continue
        heads = np.arange(j + 1)
        squared, variance = (heads - j * p) ** 2, heads * (1 - p) ** 2 + (j - heads) * p**2
        outside = squared > boundary(j, variance)
        worst = outside if counted is None else outside & (squared > counted(j, variance))
        crossed += float(alive[: j + 1][worst].sum())
        alive[: j + 1][outside] = 0.0
    return crossed
