"""Where the theorems are nearly tight: exact probabilities, and a radius that is wrong by a factor of two is caught.

In an ordinary family a finite-sample radius wastes so much that half of it would still cover. Here the event itself is tested,
where least is wasted: one context, K = 1, a coin. S_j = heads - j p and V_j = heads (1 - p)^2 + (j - heads) p^2 are functions of
the number of heads, and the probability that a boundary of ||S_j||^2 is *ever* crossed up to n is a finite sum over paths, with
no sampling error. Every radius of the package is tested with the constants that it is shipped with; a new one is tested without
being named, if it is a level or an envelope, and else needs a line in `boundary_of`.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest

import accountable_ope.radii.registry as radius_module
from accountable_ope.laboratory import Coverage, Family, early_stopper, fair_coin, methods_named, run_trials, summarize
from accountable_ope.problem.assumptions import ValueRanges
from accountable_ope.radii.martingale import self_normalized
from accountable_ope.radii.registry import RULES, LossKind, Method, RadiusInputs, RadiusRule
from accountable_ope.radii.self_normalized import BALANCE

DELTA = 0.1
WASTEFUL = ("hoeffding", "hoeffding-u", "hoeffding-printed")
"""Radii of which even a small part is safe for a coin: only their validity can be tested here."""

Boundary = Callable[[int, np.ndarray], np.ndarray | float]
"""(rows j, V_j for every number of heads) -> what ||S_j||^2 must not exceed."""


def inputs(count: int, planned: int, delta: float) -> RadiusInputs:
    """Rewards in [0, 1], discount 0."""
    return RadiusInputs(count, ValueRanges((0.0, 1.0), (0.0, 1.0), 1.0, 1.0), 1.0, delta, planned)


def boundary_of(rule: RadiusRule, n: int, delta: float) -> Boundary:
    """What the rule says about ||S_j||^2 for residuals of width 1 in data of n rows."""
    if rule.envelope is not None:
        envelope = rule.envelope(1.0, n, delta)

        def squared(j: int, variance: np.ndarray) -> np.ndarray:
            distinct, where = np.unique(variance, return_inverse=True)
            return envelope.bound(1.0, distinct)[0][where] ** 2

        return squared
    if rule.method is Method.SELF_NORMALIZED:
        c = BALANCE / (0.25 * n)
        return lambda j, variance: (1 + c * j / 4) * self_normalized(math.log1p(c * j / 4), c, delta)
    if rule.loss is LossKind.U:
        return lambda j, variance: variance + n * (n - 1) * rule.level(inputs(n, n, delta))
    if rule.anytime:
        return lambda j, variance: j**2 * rule.level(inputs(j, n, delta))
    return lambda j, variance: n**2 * rule.level(inputs(n, n, delta))


def crossing_probability(boundary: Boundary, n: int, p: float, only_at_end: bool = False) -> float:
    """P(||S_j||^2 > boundary_j for some j <= n), over all paths of the number of heads."""
    alive, crossed = np.zeros(n + 1), 0.0
    alive[0] = 1.0
    for j in range(1, n + 1):
        alive[1:] = alive[1:] * (1 - p) + alive[:-1] * p
        alive[0] *= 1 - p
        if only_at_end and j < n:
            continue
        heads = np.arange(j + 1)
        outside = (heads - j * p) ** 2 > boundary(j, heads * (1 - p) ** 2 + (j - heads) * p**2)
        crossed += float(alive[: j + 1][outside].sum())
        alive[: j + 1][outside] = 0.0
    return crossed


FINITE_SAMPLE = [
    rule for rule in RULES if not rule.cut and rule.guarantee is not radius_module.Guarantee.ASYMPTOTIC
]  # a cut is the same envelope once more, for another sum


COINS = [
    (rule, p)
    for rule in FINITE_SAMPLE
    for p in (0.5, 0.1, 0.01)
    if p == 0.5 or rule.guarantee is not radius_module.Guarantee.FINITE_SAMPLE_DECLARED_NOISE
]  # only a fair coin is symmetric


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(("rule", "p"), COINS, ids=lambda value: value if isinstance(value, float) else value.name)
def test_boundaries_are_crossed_as_rarely_as_claimed(rule, p, delta):
    for n in (30, 200):
        crossed = crossing_probability(boundary_of(rule, n, delta), n, p, only_at_end=rule.name in WASTEFUL)
        assert crossed <= delta, n


@pytest.mark.parametrize("rule", [rule for rule in FINITE_SAMPLE if rule.name not in WASTEFUL], ids=lambda rule: rule.name)
def test_half_of_a_boundary_is_crossed_more_often_than_claimed(rule):
    n = 1000
    honest = boundary_of(rule, n, DELTA)
    assert crossing_probability(honest, n, 0.5) <= DELTA
    assert crossing_probability(lambda j, variance: honest(j, variance) / 2, n, 0.5) > 1.3 * DELTA


def test_the_sum_over_paths_agrees_with_simulation():
    n, p, boundary = 50, 0.3, 14.0
    steps = (np.random.default_rng(0).random((20_000, n)) < p) - p
    crossed = (np.cumsum(steps, axis=1) ** 2 > boundary).any(axis=1).mean()
    exact = crossing_probability(lambda j, variance: boundary, n, p)
    assert abs(crossed - exact) < 5 * np.sqrt(exact * (1 - exact) / 20_000)
    assert crossing_probability(lambda j, variance: boundary, n, p, only_at_end=True) < exact


def measure(family: Family, n: int, trials: int, delta: float) -> Coverage:
    """Theorem A in the laboratory; in this process, so that it may be replaced."""
    [row] = summarize(run_trials([family], [n], chosen=methods_named(["azuma"]), trials=trials, delta=delta, workers=1))
    return row


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_laboratory_catches_half_a_radius(factor, monkeypatch):
    """The coin is left as soon as its sum is beyond what the radius allows, so intervals miss as often as a boundary is crossed.

    At delta = .1 that is .026 for the radius of Theorem A and .167 for half of it. The laboratory must measure these
    probabilities, believe the first and refute the second.
    """
    n, trials = 300, 700
    honest = radius_module.azuma
    monkeypatch.setattr(radius_module, "azuma", lambda *arguments: factor * honest(*arguments))
    bound = n**2 * factor * honest(n, 1.0, 1.0, DELTA)
    exact = crossing_probability(lambda j, variance: bound, n, 0.5)
    row = measure(early_stopper(math.sqrt(bound / n)), n, trials, DELTA)
    assert (exact < DELTA) == (factor == 1.0)
    assert binomtest(row.trials - row.covered, row.trials, exact).pvalue > 1e-4
    assert row.refuted == (factor < 1.0), f"{row.covered} of {row.trials}"


def test_the_miss_rate_of_a_coin_is_a_binomial_tail(monkeypatch):
    """Without any stopping half of Theorem A's radius misses four times as often as allowed, where delta is small."""
    n, delta = 100, 0.003
    honest = radius_module.azuma
    monkeypatch.setattr(radius_module, "azuma", lambda *arguments: honest(*arguments) / 2)
    bound = n**2 * honest(n, 1.0, 1.0, delta) / 2
    exact = crossing_probability(lambda j, variance: bound, n, 0.5, only_at_end=True)
    row = measure(fair_coin(), n, 500, delta)
    assert exact > 3.5 * delta
    assert binomtest(row.trials - row.covered, row.trials, exact).pvalue > 1e-4
