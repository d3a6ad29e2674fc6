"""Doubts about the class: rare where it contains Q, there where it does not, and never called a guarantee."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem.problem import Experience
from accountable_ope.report.document import interval_document
from accountable_ope.report.html import report_html
from accountable_ope.statistics.bellman import bellman_residuals
from command import aope_command

MDP = PlantedMDP(seed=3, features=5, discount=0.8)
FACTS = aope.Assumptions(discount=0.8, reward_range=(0.0, 1.0), norm_bound=1.5 * MDP.norm, reward_noise=False)
WRONG = aope.RandomFourier(dimension=2, bandwidth=1.0, seed=0)


def bound(data, features=None, facts=FACTS, radius="azuma", delta=0.1):
    chosen = MDP.features() if features is None else features
    return aope.bound_value(
        aope.Problem(data, MDP.starts, MDP.policy, facts), kernel=aope.Gaussian(1.0), features=chosen, radius=radius, delta=delta
    )


def draw(seed, episodes=10):
    return MDP.sample(np.random.default_rng(seed), trajectories=episodes, length=30)


def test_doubts_are_rare_where_the_class_contains_q():
    trials = 150
    doubted = sum(bool(bound(draw(seed), delta=0.2).doubts) for seed in range(trials))
    assert doubted <= binom.ppf(0.999, trials, 0.2)


def test_the_bound_behind_them_holds_for_the_loss_of_the_true_q():
    """P(loss > x V_n / n^2) <= P(chi^2_1 > x) at the true Q itself, without any fit that makes losses smaller."""
    ratios = []
    for seed in range(300):
        data = draw(seed, episodes=5)
        residuals = bellman_residuals(MDP.q, data, MDP.policy, 0.8)
        points = np.concatenate([data.states, MDP.policy.action_vectors[data.actions]], axis=1)
        loss = aope.statistics.v_statistic(residuals, points, aope.Gaussian(1.0))
        ratios.append(loss * len(data) ** 2 / float(residuals @ residuals))
    for level in (0.2, 0.1, 0.05):
        assert sum(ratio > chi2.isf(level, 1) for ratio in ratios) <= binom.ppf(0.999, 300, level)
    assert max(ratios) > 1  # the test looks at a tail that exists


@pytest.mark.parametrize("rank", [1, 2, 5, 50])
def test_one_chi_square_has_the_heaviest_tail(rank):
    rng = np.random.default_rng(rank)
    for _ in range(5):
        spectrum = rng.dirichlet(np.full(rank, 0.3))
        sums = (rng.standard_normal((100_000, rank)) ** 2) @ spectrum
        for level in (0.2, 0.05, 0.01):
            share = float(np.mean(sums > chi2.isf(level, 1)))
            assert share <= level + 4 * math.sqrt(level / 100_000)


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_a_class_without_q_is_doubted_before_it_is_refuted(radius):
    interval = bound(draw(0, episodes=25), WRONG, radius=radius)
    assert interval.status is not aope.Status.INCONSISTENT
    (doubt,) = interval.doubts
    part = interval.certificates[0]
    assert part.plausibility == pytest.approx(float(chi2.sf(part.least_loss / part.chance_loss, 1)))
    assert part.plausibility < 0.1 and "probably not in the class of RandomFourier(dimension=2" in doubt.text
    assert interval_document(interval)["doubts"] == [doubt.text]
    assert "Doubt" in report_html([interval], draw(0, episodes=25), "title")


def test_nothing_is_doubted_that_is_refuted_declared_or_not_known():
    data = draw(0, episodes=40)
    assert bound(data, WRONG, dataclasses.replace(FACTS, misfit=0.1)).doubts == ()
    unbiased = bound(data, WRONG, radius="hoeffding-u")
    assert unbiased.doubts == () and math.isnan(unbiased.certificates[0].plausibility)
    refuted = bound(draw(1, episodes=800), WRONG, radius="certified")
    assert refuted.status is aope.Status.INCONSISTENT and refuted.doubts == ()


def test_chance_loss_is_the_mean_square_at_the_least_loss():
    data = draw(0)
    system = aope.statistics.bellman_system(Experience(data, MDP.starts, MDP.policy, 0.8), MDP.features())
    statistic = aope.statistics.kernel_statistic(system, aope.Gaussian(1.0))
    theta = aope.programs.decompose(statistic.v_loss(), system.penalized).least_loss(FACTS.norm_bound).theta
    residuals = system.target - system.residuals @ theta
    expected = float(np.sum(residuals**2)) / len(data) ** 2  # K(x, x) = 1
    for radius in ("azuma", "certified"):
        assert bound(data, radius=radius).certificates[0].chance_loss == pytest.approx(expected, rel=1e-6)


def test_the_demonstration_says_so_itself():
    assert "Doubt: Q is probably not in the class" in aope_command("demo").stdout
