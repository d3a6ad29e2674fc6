"""The test of the class: rare alarms where it holds Q, many where it does not, and no alarm for rounding."""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.statistics.specification import cauchy_combination, specification_test

PLACE = Path(__file__).parents[2] / "benchmarks" / "specification.py"
_spec = importlib.util.spec_from_file_location("specification_cases", PLACE)
cases = importlib.util.module_from_spec(_spec)
sys.modules["specification_cases"] = cases
_spec.loader.exec_module(cases)


def p_values(draw, n, trials):
    return np.array([draw(n, seed).p_value() for seed in range(1000, 1000 + trials)])


SIZES = {
    "planted": (cases.planted, 200, 100),
    "coins": (partial(cases.planted, bernoulli=True), 200, 100),
    "rare jumps": (cases.rare_jumps, 200, 100),
    "tabular, Gaussian kernel": (cases.tabular, 200, 200),
    "tabular, tabular kernel": (partial(cases.tabular, kernel=aope.Tabular()), 200, 200),
    "a logger that learns": (partial(cases.tabular, adaptive=True), 200, 200),
}


@pytest.mark.parametrize("name", SIZES)
def test_alarms_are_rare_where_the_class_holds_q(name):
    draw, n, trials = SIZES[name]
    found = p_values(draw, n, trials)
    assert np.isfinite(found).all()
    # Asymptotic: docs/doubts.md says how far the measured rates are from the nominal ones.
    assert np.sum(found <= 0.01) <= binom.ppf(0.999, trials, 0.02)
    assert np.sum(found <= 0.05) <= binom.ppf(0.999, trials, 0.07)
    assert found.min() < 0.3  # the test looks


@pytest.mark.parametrize(
    ("draw", "n", "least"),
    [
        (partial(cases.planted, features=14, given=10), 500, 1.0),
        (partial(cases.tabular, right=False), 500, 1.0),
        (cases.bandit, 2000, 0.7),
    ],
    ids=["planted, 10 of 14", "other columns", "sine bandit"],
)
def test_alarms_are_many_where_it_does_not(draw, n, least):
    found = p_values(draw, n, 20)
    assert np.sum(found <= 0.01) >= binom.ppf(0.001, 20, least)


def test_the_norm_ball_is_doubted_where_it_is_too_small_and_only_there():
    found = np.array([cases.ball_p_values(2000, seed, (0.6, 0.8, 1.0)) for seed in range(25)]) <= 0.01
    assert found[:, 0].all() and not found[:, 1:].any()


def test_the_order_of_rows_and_the_unit_of_rewards_have_no_part_in_it():
    sample = cases.bandit(800, 0)
    order = np.random.default_rng(0).permutation(800)
    plain = sample.p_value()
    shuffled = specification_test(sample.kernel, sample.points[order], sample.residuals[order], sample.target[order])
    scaled = specification_test(sample.kernel, sample.points, 0.01 * sample.residuals, 1e6 * sample.target)
    assert shuffled.p_value == pytest.approx(plain, rel=1e-6) and scaled.p_value == pytest.approx(plain, rel=1e-6)


def test_rounding_is_no_evidence():
    """A deterministic reward in the class leaves residuals of 1e-16, and one known to eight digits of 1e-9: neither is a sign."""
    sample = cases.bandit(600, 0)
    exact = sample.residuals @ np.array([0.3, -0.2, 0.5, 1.0])
    for target in (exact, np.round(exact, 8), np.zeros(600)):
        assert specification_test(sample.kernel, sample.points, sample.residuals, target).p_value > 0.5


def test_where_nothing_can_be_tested_it_says_why():
    sample = cases.tabular(400, 0)
    hot = np.eye(36)[(3 * sample.points[:, 0] + sample.points[:, 1]).astype(int)]
    for kernel in (aope.Tabular(), aope.Gaussian(0.5)):
        full = specification_test(kernel, sample.points, hot, sample.target)
        assert not full.tested and "saturated" in full.reason and np.isnan(full.p_value) and full.smallest is None
    few = specification_test(sample.kernel, sample.points[:40], sample.residuals[:40], sample.target[:40])
    assert "too few" in few.reason
    many = specification_test(sample.kernel, sample.points[:100], np.eye(100)[:, :11], sample.target[:100])
    assert "too many" in many.reason


def test_every_kernel_has_its_bandwidths():
    sample = cases.bandit(5000, 1)
    factors = {}
    kernels = {
        "gaussian": aope.Gaussian([0.5, 1.0]),
        "laplace": aope.Laplace(0.5),
        "features": aope.RandomFeatureKernel(50, bandwidth=0.5),
        "product": aope.Product(aope.Gaussian(0.5), aope.Tabular(), state_dimension=1),
        "tabular": aope.Tabular(),
    }
    for name, kernel in kernels.items():
        found = specification_test(kernel, sample.points, sample.residuals, sample.target)
        assert found.tested
        factors[name] = sorted({each.factor for each in found.components})
        if name != "tabular":  # every state is another one: equality sees nothing
            assert found.p_value <= 0.05, name
    assert factors["tabular"] == [1.0]
    assert all(len(factors[name]) >= 3 for name in kernels if name != "tabular")


@pytest.mark.parametrize("bandwidth", [4.0, 20.0, 50.0])
def test_a_kernel_that_is_too_wide_still_sees_the_scale_of_the_data(bandwidth):
    sample = cases.bandit(5000, 1)
    found = specification_test(aope.Gaussian(bandwidth), sample.points, sample.residuals, sample.target)
    assert found.p_value < 0.05


def test_the_combination_is_that_of_cauchy():
    assert cauchy_combination([0.3]) == pytest.approx(0.3)
    assert cauchy_combination([0.01, 0.01, 0.01]) == pytest.approx(0.01)
    assert cauchy_combination([1e-30, 1.0]) == pytest.approx(2e-30, rel=0.01)
    assert cauchy_combination([0.99, 0.999]) == pytest.approx(0.99)
    assert np.isnan(cauchy_combination([]))
    rng = np.random.default_rng(0)
    combined = np.array([cauchy_combination(list(rng.uniform(size=6))) for _ in range(4000)])
    assert abs(np.mean(combined <= 0.05) - 0.05) < 0.015


@pytest.mark.parametrize(("slip", "rows"), [(0.02, 600), (0.1, 600), (0.05, 300)])
def test_pairs_that_have_not_seen_a_rare_jump_are_no_evidence(slip, rows):
    """In units of what these pairs alone show, most of these logs would be doubted, at p-values down to 1e-80."""
    assert (p_values(partial(cases.slips, slip=slip), rows, 30) <= 0.01).sum() <= 3
