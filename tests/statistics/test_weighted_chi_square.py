"""The saddle point against chi-squares that are known, and against draws."""

import numpy as np
import pytest
from scipy.stats import chi2

from accountable_ope.statistics import weighted_chi_square_tail


def drawn_tail(value, weights, draws=400_000, seed=0):
    """The slow, obvious twin: the share of drawn sums above the value."""
    rng, above = np.random.default_rng(seed), 0
    for _ in range(10):
        above += int(np.sum(rng.standard_normal((draws // 10, len(weights))) ** 2 @ weights > value))
    return above / draws


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("level", [0.5, 0.2, 0.05, 0.01, 1e-4, 1e-9])
def test_equal_weights_are_a_chi_square(degrees, level):
    value = 3.0 * chi2.isf(level, degrees)
    assert weighted_chi_square_tail(value, np.full(degrees, 3.0)) == pytest.approx(level, rel=0.06)


@pytest.mark.parametrize("spectrum", ["even", "geometric", "one large", "many small"])
def test_the_tail_is_that_of_draws(spectrum):
    weights = {
        "even": np.linspace(0.5, 1.5, 12),
        "geometric": 0.7 ** np.arange(20),
        "one large": np.array([1.0, *np.full(10, 0.02)]),
        "many small": np.random.default_rng(1).uniform(size=60) ** 3,
    }[spectrum]
    for share in (1.3, 2.0, 3.0):
        value = share * float(weights.sum())
        expected = drawn_tail(value, weights)
        noise = 4 * np.sqrt(max(expected, 1e-6) / 400_000)
        assert abs(weighted_chi_square_tail(value, weights) - expected) <= 0.05 * expected + noise


def test_it_falls_with_the_value_and_knows_no_units():
    weights = 0.5 ** np.arange(8)
    values = np.linspace(0.01, 40, 400)
    tails = [weighted_chi_square_tail(value, weights) for value in values]
    assert (np.diff(tails) < 1e-4).all() and tails[0] > 0.99 and tails[-1] < 1e-8
    assert weighted_chi_square_tail(7e-9, 1e-9 * weights) == pytest.approx(weighted_chi_square_tail(7.0, weights), rel=1e-9)


def test_nothing_that_varies_is_never_unusual_and_the_far_tail_is_zero():
    assert weighted_chi_square_tail(1.0, np.zeros(3)) == 1.0
    assert weighted_chi_square_tail(-1.0, [1.0, 2.0]) == 1.0
    assert weighted_chi_square_tail(1e30, [1.0, 2.0]) == 0.0
    assert weighted_chi_square_tail(3.0, [1.0, 2.0]) == pytest.approx(weighted_chi_square_tail(3.0003, [1.0, 2.0]), rel=0.03)
