"""The radii against numbers worked out by hand and against exact tail probabilities."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from accountable_ope import Assumptions, Gaussian, InvalidInput
from accountable_ope.problem.assumptions import value_ranges
from accountable_ope.problem.statements import Guarantee
from accountable_ope.radii.accounting import split_delta, start_radius
from accountable_ope.radii.martingale import azuma
from accountable_ope.radii.paper import hoeffding_u, hoeffding_v, largest_loss
from accountable_ope.radii.registry import LADDER, RULES, radius_rule
from accountable_ope.statistics import v_statistic

COUNTS = st.integers(2, 10**6)
DELTAS = st.floats(1e-6, 0.999)


def test_numbers_at_a_thousand_transitions():
    """Rewards in [0, 1], discount .95, delta .1: 178 as printed, 155 corrected, 0.541 with Theorem A."""
    ranges = value_ranges(Assumptions(discount=0.95, reward_range=(0, 1), reward_noise=False), terminates=False)
    l_max = largest_loss(ranges.residual_bound, 1.0)
    assert l_max == pytest.approx(1600)
    assert hoeffding_v(1000, l_max, 0.1, printed=True) == pytest.approx(178.2, abs=0.05)
    assert hoeffding_v(1000, l_max, 0.1) == pytest.approx(2 * 1600 * 0.999 * math.sqrt(math.log(10) / 1000) + 1.6)
    assert azuma(1000, ranges.residual_width, 1.0, 0.1) == pytest.approx(0.5407, abs=5e-5)


def test_printed_form_is_the_formula_of_the_paper():
    n, l_max, delta = 40, 3.0, 0.2
    root = math.sqrt(math.log(2 / delta) / n)
    assert hoeffding_u(n, l_max, delta, printed=True) == pytest.approx(2 * l_max * root)
    assert hoeffding_v(n, l_max, delta, printed=True) == pytest.approx(2 * l_max * ((n - 1) / n * root + 1 / n))


def test_odd_counts_use_disjoint_pairs_only():
    assert hoeffding_u(7, 1.0, 0.1) == hoeffding_u(6, 1.0, 0.1)
    assert hoeffding_u(6, 1.0, 0.1) == pytest.approx(2 * math.sqrt(math.log(10) / 6))


@given(COUNTS, DELTAS, st.floats(1e-3, 1e3))
def test_corrections_only_tighten(n, delta, l_max):
    assert hoeffding_v(n, l_max, delta) <= hoeffding_v(n, l_max, delta, printed=True) * (1 + (1e-12 if n % 2 == 0 else 1.0))
    if n % 2 == 0:
        assert hoeffding_u(n, l_max, delta) <= hoeffding_u(n, l_max, delta, printed=True)


@given(COUNTS, DELTAS, DELTAS)
def test_radii_shrink_with_n_and_with_delta(n, one, other):
    small, large = sorted((one, other))
    for radius in (lambda n, d: azuma(n, 2.0, 1.0, d), lambda n, d: hoeffding_v(n, 4.0, d), lambda n, d: hoeffding_u(n, 4.0, d)):
        assert radius(n, large) <= radius(n, small)
        assert radius(n + 2, small) <= radius(n, small)


@pytest.mark.parametrize("delta", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("p", [0.5, 0.1, 0.01])
def test_azuma_violation_frequency_is_the_exact_tail_and_below_delta(p, delta):
    """One context, a constant kernel, Bernoulli rewards: the loss is (mean - p)^2, whose tail is a binomial sum.

    The frequency at which the true Q breaks the radius, computed exactly, must not exceed delta.
    """
    n = 60
    level = azuma(n, 1.0, 1.0, delta)
    successes = np.arange(n + 1)
    violated = (successes / n - p) ** 2 > level
    assert binom.pmf(successes[violated], n, p).sum() <= delta
    draws = np.random.default_rng(1).random((40, n)) < p
    losses = [v_statistic(row - p, np.zeros((n, 1)), Gaussian(1.0)) for row in draws.astype(float)]
    assert losses == pytest.approx((draws.mean(axis=1) - p) ** 2)


def test_too_small_a_width_breaks_the_guarantee():
    """The same exact tail with a sixth of the width exceeds delta: the check above can fail."""
    n, p, delta = 60, 0.5, 0.8
    successes = np.arange(n + 1)
    violated = (successes / n - p) ** 2 > azuma(n, 1.0 / 6, 1.0, delta)
    assert binom.pmf(successes[violated], n, p).sum() > delta


def test_start_radius_is_two_sided_hoeffding():
    assert start_radius(20.0, 1e6, 0.01) == pytest.approx(20 * math.sqrt(math.log(200) / 2e6))


def test_start_radius_covers_the_mean_of_two_point_values():
    """Values 0 and span with probability 1/2 each: the exact two-sided tail is below delta."""
    n, delta, span = 50, 0.1, 3.0
    successes = np.arange(n + 1)
    missed = np.abs(span * successes / n - span / 2) > start_radius(span, n, delta)
    assert 0 < binom.pmf(successes[missed], n, 0.5).sum() <= delta


def test_all_of_delta_goes_to_the_kernel_when_the_start_is_exact():
    exact, sampled = split_delta(0.1, start_is_exact=True), split_delta(0.1, start_is_exact=False)
    assert (exact.kernel, exact.start) == (0.1, 0.0)
    assert sampled.kernel + sampled.start == pytest.approx(0.1)
    assert sampled.start > 0


def test_ladder_is_sorted_and_labeled():
    ranges = value_ranges(Assumptions(discount=0.9, reward_range=(0, 1)), terminates=False)
    member = SimpleNamespace(ranges=ranges, statistic=SimpleNamespace(count=500, kernel_supremum=1.0))
    levels = [radius_rule(name).level(member, 0.1, 500) for name in ("hoeffding", "azuma-anytime", "azuma")]
    assert levels == sorted(levels, reverse=True)
    assert LADDER[-1] == "certified"
    labels = {rule.name: rule.guarantee for rule in RULES}
    assert labels.pop("wild") is Guarantee.ASYMPTOTIC
    assert labels.pop("symmetric") is Guarantee.FINITE_SAMPLE_DECLARED_NOISE
    assert set(labels.values()) == {Guarantee.FINITE_SAMPLE}


def test_unknown_radius_is_named():
    with pytest.raises(InvalidInput, match="`radius` must be one of hoeffding.* Got 'bogus'"):
        radius_rule("bogus")
