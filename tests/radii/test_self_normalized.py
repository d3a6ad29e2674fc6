"""Theorem C's statistic against dense formulas, and the kernel of random features against its double loop."""

import math

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.kernels.kernel import FiniteRank, block
from accountable_ope.problem.problem import Experience
from accountable_ope.radii.self_normalized import BALANCE, self_normalized_statistic
from accountable_ope.statistics.bellman import bellman_system

MDP = PlantedMDP(seed=1, features=5, discount=0.9)
DATA = MDP.sample(np.random.default_rng(0), trajectories=4)
SYSTEM = bellman_system(Experience(DATA, MDP.starts, MDP.policy, 0.9), MDP.features())


@pytest.mark.parametrize("kernel", [aope.Gaussian(1.0), aope.RandomFeatureKernel(20, 1.0, seed=2), aope.Laplace(2.0)], ids=repr)
def test_the_dense_formula(kernel):
    width, delta, planned = 3.0, 0.1, 500
    found = self_normalized_statistic(SYSTEM, kernel, aope.statistics.kernel_statistic(SYSTEM, kernel), width, delta, planned)
    n = len(DATA)
    K = block(kernel, SYSTEM.points, SYSTEM.points)
    c = BALANCE / ((width / 2) ** 2 * planned)
    inner = np.eye(n) + c * (width / 2) ** 2 * K
    M = K @ np.linalg.inv(inner)
    columns = SYSTEM.columns()
    np.testing.assert_allclose(found.statistic.pair_gram, columns.T @ M @ columns, rtol=1e-7, atol=1e-8)
    assert found.level == pytest.approx((np.linalg.slogdet(inner)[1] + 2 * math.log(1 / delta)) / c / n**2)


def test_the_tabular_kernel_needs_no_large_matrix():
    mdp = random_tabular(3, 2, seed=4, discount=0.5)
    policy = mdp.policy(np.full((3, 2), 0.5))
    features = aope.TabularFeatures.grid(np.arange(3.0), policy.action_vectors, intercept=False)
    data = mdp.sample_iid(300, np.random.default_rng(0))
    system = bellman_system(Experience(data, mdp.starts(), policy, 0.5), features)
    statistic = aope.statistics.kernel_statistic(system, aope.Tabular())
    found = self_normalized_statistic(system, aope.Tabular(), statistic, 1.0, 0.1, 300)
    K = block(aope.Tabular(), system.points, system.points)
    inner = np.eye(300) + BALANCE / 300 * K
    columns = system.columns()
    np.testing.assert_allclose(found.statistic.pair_gram, columns.T @ K @ np.linalg.inv(inner) @ columns, rtol=1e-8, atol=1e-8)


def test_many_rows_are_refused_for_an_exact_kernel():
    rows = np.zeros((12_001, 1))
    data = aope.Transitions(rows, np.zeros(12_001, dtype=int), rows[:, 0], rows)
    policy = aope.DiscretePolicy(lambda s: np.ones((len(s), 1)), 1)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), norm_bound=1.0)
    with pytest.raises(aope.InvalidInput, match="refused above 12000 rows"):
        aope.bound_value(
            aope.Problem(data, aope.StartStates(rows[:1]), policy, facts),
            kernel=aope.Gaussian(1.0),
            features=aope.RandomFourier(2),
            radius="self-normalized",
            options=aope.kernels.TileOptions(single_precision=True),
        )


def test_it_is_far_tighter_than_theorem_a_where_norm_and_box_bound_residuals():
    facts = aope.Assumptions(
        discount=0.9, reward_range=(0, 1), reward_noise=False, norm_bound=1.2 * MDP.norm, state_box=((-5.6, -3.5), (5.6, 3.5))
    )
    data = MDP.sample(np.random.default_rng(1), trajectories=40)
    azuma, found = aope.bound_ladder(
        aope.Problem(data, MDP.starts, MDP.policy, facts),
        kernel=aope.Gaussian(1.0),
        features=MDP.features(),
        radii=("azuma", "self-normalized"),
    )
    assert found.lower <= MDP.value <= found.upper and found.check()
    assert found.upper - found.lower < 0.7 * (azuma.upper - azuma.lower)


def test_random_features_are_a_kernel_of_their_own():
    kernel = aope.RandomFeatureKernel(30, 1.5, seed=1)
    assert isinstance(kernel, FiniteRank)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    w = np.random.default_rng(1).normal(size=(30, 3)) * np.sqrt(2) / 1.5
    slow = np.array([[np.mean(np.cos(w @ (a - b))) for b in y] for a in x])
    np.testing.assert_allclose(block(kernel, x, y), slow, atol=1e-12)
    np.testing.assert_allclose(kernel.paired(x[:5], y), np.diagonal(slow), atol=1e-12)
    assert kernel.diagonal(x) == pytest.approx(np.diagonal(block(kernel, x, x)))
    columns = rng.normal(size=(7, 2))
    gram = columns.T @ block(kernel, x, x) @ columns
    projected = kernel.project(x, columns)
    np.testing.assert_allclose(projected.T @ projected, gram, atol=1e-10)
    np.testing.assert_allclose(kernel.gram(x), kernel.features(x).T @ kernel.features(x))
    close = aope.RandomFeatureKernel(20_000, 1.5, seed=0)
    np.testing.assert_allclose(block(close, x, y), block(aope.Gaussian(1.5), x, y), atol=0.03)
