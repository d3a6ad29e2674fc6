"""Ranges of residuals: never below what some Q of the set can do at some pair of points."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes.features import BoundedFeatures, SmoothFeatures
from accountable_ope.classes.function_class import as_class
from accountable_ope.classes.ranges import residual_range
from accountable_ope.environments import PlantedMDP, clinic
from accountable_ope.problem.assumptions import value_ranges
from accountable_ope.programs.ellipsoid import Ellipsoid

MDP = PlantedMDP(seed=1, features=6, discount=0.9)
BOX = ((-2.0, -1.0), (2.0, 1.5))
FACTS = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False, norm_bound=0.8, state_box=BOX)


def of(features=None, facts=FACTS, terminates=False, policy=MDP.policy):
    chosen = MDP.features() if features is None else features
    return residual_range(as_class(chosen), policy, facts, value_ranges(facts, terminates=terminates), terminates=terminates)


def points_in_box(rng: np.random.Generator, count: int) -> np.ndarray:
    states = rng.uniform(BOX[0], BOX[1], size=(count, 2))
    return np.column_stack([states, rng.integers(-1, 2, count)])


MAPS = (MDP.features(), aope.RandomFourier(8, 0.7, seed=3), aope.RandomFourier(8, 0.7, seed=3, intercept=False))


@pytest.mark.parametrize("features", MAPS, ids=repr)
def test_features_know_their_diameter_and_their_slope(features):
    assert isinstance(features, BoundedFeatures) and isinstance(features, SmoothFeatures)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 3)) * 3, rng.normal(size=(20_000, 3)) * 3
    assert np.linalg.norm(features(x) - features(y), axis=1).max() <= features.diameter
    half = np.array([0.2, 0.05, 0.0])
    near = x + rng.uniform(-1, 1, size=x.shape) * half
    assert np.linalg.norm(features(near) - features(x), axis=1).max() <= features.spread(half)
    assert features.spread(half) <= 2 * np.linalg.norm(half) * 3  # and not absurdly large


def test_neural_features_know_them_too():
    rng = np.random.default_rng(1)
    features = aope.NeuralFeatures((rng.normal(size=(7, 3)), rng.normal(size=(4, 7))), (np.zeros(7), np.ones(4)), np.full(4, 0.3))
    x, y = rng.normal(size=(5000, 3)), rng.normal(size=(5000, 3))
    assert np.linalg.norm(features(x) - features(y), axis=1).max() <= features.diameter
    half = np.full(3, 0.01)
    near = x + rng.uniform(-1, 1, size=x.shape) * half
    assert np.linalg.norm(features(near) - features(x), axis=1).max() <= features.spread(half)


@pytest.mark.parametrize("features", MAPS, ids=repr)
@pytest.mark.parametrize("bernoulli", [False, True])
def test_no_q_of_the_ball_has_a_larger_span(features, bernoulli):
    """Over the box, and with it between the grid points."""
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=bernoulli, norm_bound=0.8, state_box=BOX)
    found = of(features, facts)
    rng = np.random.default_rng(2)
    phi = features(points_in_box(rng, 4000))
    noise = 1.0 if bernoulli else 0.0
    widest = 0.0
    for _ in range(300):
        i, j = rng.integers(len(phi), size=2)
        theta = phi[i] - phi[j] if rng.uniform() < 0.7 else rng.normal(size=phi.shape[1])
        theta *= 0.8 / max(np.linalg.norm(theta), 1e-12)
        widest = max(widest, noise + 0.9 * float(np.ptp(phi @ theta)))
    assert widest <= found.over_ball(0.8) <= found.declared
    assert found.over_ball(0.8) <= 1.35 * widest  # the grid is fine enough to be of use


def test_without_a_box_the_diameter_decides():
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False, norm_bound=0.8)
    assert of(facts=facts).over_ball(0.8) == pytest.approx(0.9 * 0.8 * 2.0)
    assert of(facts=facts).over_ball(1e6) == of(facts=facts).declared == pytest.approx(9.0)
    assert of(aope.Precomputed(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((1, 1))), facts).over_ball(0.1) == pytest.approx(9.0)


def test_nothing_is_known_of_an_anchored_class():
    ranges = value_ranges(FACTS, terminates=False)
    found = residual_range(as_class(MDP.features()), MDP.policy, FACTS, ranges, terminates=False, anchored=True)
    assert found.over_ball(1e-3) == found.declared


def test_a_misfit_widens_the_range_by_twice_itself():
    from dataclasses import replace

    plain, wide = of(), of(facts=replace(FACTS, misfit=0.1))
    assert wide.over_ball(0.8) == pytest.approx(plain.over_ball(0.8) + 0.9 * 0.2)


@pytest.mark.parametrize("terminates", [False, True])
def test_no_q_of_an_ellipsoid_has_a_larger_range(terminates):
    facts = aope.Assumptions(discount=0.9, reward_range=(-1, 1), reward_noise=False, norm_bound=2.0, state_box=BOX)
    found = of(facts=facts, terminates=terminates)
    rng = np.random.default_rng(3)
    m = MDP.features().dimension + 1
    factor = np.tril(rng.normal(size=(m, m))) + 4 * np.eye(m)
    ellipsoid = Ellipsoid(rng.normal(size=m) * 0.3, factor, 1.0)
    bound = found.over([ellipsoid], 2.0)
    phi = np.column_stack([MDP.features()(points_in_box(rng, 3000)), np.ones(3000)])
    widest = 0.0
    for _ in range(300):
        direction = rng.normal(size=m)
        theta = ellipsoid.center + np.linalg.solve(factor.T, direction / np.linalg.norm(direction))
        if np.linalg.norm(theta[:-1]) > 2.0:
            continue
        values = np.append(phi @ theta, 0.0) if terminates else phi @ theta
        widest = max(widest, 0.9 * float(np.ptp(values)))
    assert 0 < widest <= bound
    assert bound <= found.declared
    for direction in found.extremes([ellipsoid]):
        assert direction.shape == (m,)


def test_terminal_rewards_use_the_hull():
    mdp = clinic(discount=1.0)
    policy = mdp.policy(np.full((6, 3), 1 / 3))
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=False)
    found = residual_range(as_class(features), policy, facts, value_ranges(facts, terminates=True), terminates=True)
    assert found.declared == found.over_ball(0.01) == 1.0
    small = Ellipsoid(np.full(12, 0.5), 1e6 * np.eye(12), 1.0)
    assert found.over([small], 1.0) == pytest.approx(1.0)  # a final reward may still be 0 or 1
