"""The cut: predictable weights, and evidence that says what it says."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.problem.problem import Experience
from accountable_ope.radii.cut import cut_evidence, fit_cut
from accountable_ope.radii.envelope import rate_mixture
from accountable_ope.statistics.bellman import bellman_system

MDP = PlantedMDP(seed=1, features=5, discount=0.9, bernoulli=True)
DATA = MDP.sample(np.random.default_rng(0), trajectories=40)
KERNEL = aope.Gaussian(1.0)


def system_of(data):
    return bellman_system(Experience(data, MDP.starts, MDP.policy, 0.9), MDP.features())


def test_no_row_decides_its_own_weight_or_an_earlier_one():
    """Whatever happens from a row on changes no weight before the next block, its own included."""
    cut = fit_cut(system_of(DATA), KERNEL, DATA.episodes)
    rng = np.random.default_rng(1)
    for row in (500, 1001, 1650):
        rewards, after = DATA.rewards.copy(), DATA.next_states.copy()
        rewards[row:] = rng.uniform(size=len(DATA) - row)
        after[row:] += rng.normal(size=(len(DATA) - row, 2))
        changed = aope.Transitions(DATA.states, DATA.actions, rewards, after, episodes=DATA.episodes)
        other = fit_cut(system_of(changed), KERNEL, changed.episodes)
        np.testing.assert_array_equal(other.weights[: row + 1], cut.weights[: row + 1])
        assert not np.array_equal(other.weights, cut.weights)  # and later weights do learn


def test_weights_are_bounded_and_the_first_rows_have_none():
    cut = fit_cut(system_of(DATA), KERNEL, DATA.episodes)
    assert np.abs(cut.weights).max() <= 1.0
    assert not cut.weights[: cut.earlier].any() and cut.weights[cut.earlier :].any()
    assert cut.count + cut.earlier == len(DATA)
    assert DATA.episodes[cut.earlier] != DATA.episodes[cut.earlier - 1]  # blocks begin with episodes
    assert fit_cut(system_of(DATA.rows(slice(0, 30))), KERNEL, DATA.episodes[:30]) is None  # one episode: nothing is earlier


def test_the_evidence_is_the_weighted_sum_of_residuals():
    system = system_of(DATA)
    cut = fit_cut(system, KERNEL, DATA.episodes)
    evidence = cut_evidence(cut.sums(system), cut, rate_mixture(1.0, cut.count, 0.05), gap=0.2)
    theta = np.random.default_rng(2).normal(size=system.dimension)
    residuals = system.target - system.residuals @ theta
    assert evidence.squared(theta) == pytest.approx((cut.weights @ residuals) ** 2 / cut.count**2)
    assert evidence.variance(theta) == pytest.approx((cut.weights**2 @ residuals**2) / cut.count**2)
    assert evidence.mass == pytest.approx(float(cut.weights @ cut.weights))
    np.testing.assert_array_equal(evidence.scale, np.abs(cut.weights))
    off = residuals + 0.2 * np.sign(cut.weights)
    assert abs(cut.weights @ off) / cut.count <= np.sqrt(evidence.squared(theta)) + evidence.gap[0] + 1e-12
    assert np.linalg.norm(cut.weights * off) / cut.count <= np.sqrt(evidence.variance(theta)) + evidence.gap[1] + 1e-12


def test_the_weights_point_at_the_value():
    """sum_i w_i Z_i is nearly along c0, so the sum of weighted residuals is nearly a multiple of an error of the value."""
    system = system_of(DATA)
    cut = fit_cut(system, KERNEL, DATA.episodes)
    along = cut.weights @ system.residuals
    cosine = along @ system.objective / (np.linalg.norm(along) * np.linalg.norm(system.objective))
    assert cosine > 0.99


def test_it_pays_with_noisy_rewards():
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=1.5 * MDP.norm)
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, facts)
    options = {"kernel": KERNEL, "features": MDP.features()}
    plain, cut = (aope.bound_value(problem, radius=r, **options) for r in ("certified", "certified-cut"))
    assert cut.lower <= MDP.value <= cut.upper
    assert cut.upper - cut.lower < 0.8 * (plain.upper - plain.lower)
    assert cut.check()
    assert [one.name for one in cut.certificates[0].tightening.constraints.evidence] == ["kernel", "cut"]
    assert any("weights for later rows come from earlier ones" in line.text for line in cut.premises)


def test_a_tabular_kernel_and_unknown_episodes():
    mdp = random_tabular(3, 2, seed=4, discount=0.5, bernoulli=True)
    target = np.random.default_rng(1).dirichlet(np.ones(2), size=3)
    policy = mdp.policy(target)
    features = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=False)
    data = mdp.sample_iid(2000, np.random.default_rng(0))
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    problem = aope.Problem(data, mdp.starts(), policy, facts)
    options = {"kernel": aope.Tabular(), "features": features}
    plain, cut = (aope.bound_value(problem, radius=r, **options) for r in ("certified", "certified-cut"))
    assert cut.lower <= mdp.value(target) <= cut.upper
    assert cut.upper - cut.lower < plain.upper - plain.lower
