"""Where the theorems are nearly tight: exact probabilities, and a radius that is wrong by a factor of two is caught.

In an ordinary family a finite-sample radius wastes so much that half of it would still cover. Here the event itself is tested,
where least is wasted: a coin, whose probability to cross a boundary is known exactly (`crossing.py`). Every radius of the package
is tested with the constants that it is shipped with; a new one is tested without being named, if it is a level or an envelope,
and else needs a line in `boundary_of`.
"""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import accountable_ope.radii.registry as radius_module
from accountable_ope.laboratory import Coverage, Family, early_stopper, fair_coin, methods_named, run_trials, summarize
from accountable_ope.problem.statements import Guarantee
from accountable_ope.radii.registry import RULES
from crossing import boundary_of, crossing_probability

DELTA = 0.1
WASTEFUL = ("hoeffding", "hoeffding-u", "hoeffding-printed")
"""Radii of which even a small part is safe for a coin: only their validity can be tested here."""

FINITE_SAMPLE = [
    rule for rule in RULES if not rule.cut and rule.guarantee is not Guarantee.ASYMPTOTIC
]  # a cut is the same envelope once more, for another sum


COINS = [
    (rule, p)
    for rule in FINITE_SAMPLE
    for p in (0.5, 0.1, 0.01)
    if p == 0.5 or rule.guarantee is not Guarantee.FINITE_SAMPLE_DECLARED_NOISE
]  # only a fair coin is symmetric


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(("rule", "p"), COINS, ids=lambda value: value if isinstance(value, float) else value.name)
def test_boundaries_are_crossed_as_rarely_as_claimed(rule, p, delta):
    for n in (30, 200):
        boundary = boundary_of(rule, n, delta, observed=max(p, 1 - p))
        crossed = crossing_probability(boundary, n, p, only_at_end=rule.name in WASTEFUL)
        assert crossed <= delta, n


@pytest.mark.parametrize("rule", [rule for rule in FINITE_SAMPLE if rule.name not in WASTEFUL], ids=lambda rule: rule.name)
def test_half_of_a_boundary_is_crossed_more_often_than_claimed(rule):
    n = 1000
    honest = boundary_of(rule, n, DELTA, observed=0.5)
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
