"""The linear-quadratic MDP: closed form against roll-outs, and the box that nothing leaves."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from accountable_ope.classes.features import FeatureMap
from accountable_ope.environments import LinearQuadratic, QuadraticFeatures, planar_regulator, scalar_regulator
from accountable_ope.errors import InvalidInput
from accountable_ope.problem.policy import DeterministicPolicy, SampledPolicy
from accountable_ope.validation import FloatArray

MDPS = [scalar_regulator(0.9), planar_regulator(0.9), scalar_regulator(0.8, action_noise=0.0)]


def two_pushes() -> LinearQuadratic:
    """Two states, two actions and a full cost matrix, so that a transposed gain would be noticed."""
    return LinearQuadratic(
        dynamics=[[0.3, 0.2], [-0.1, 0.4]],
        input_map=[[0.2, 0.1], [-0.05, 0.3]],
        state_cost=[[0.2, -0.1], [-0.1, 0.15]],
        action_cost=[[0.1, 0.05], [0.05, 0.1]],
        gain=[[-0.5, 0.2], [0.1, -0.3]],
        behavior_gain=[[0.3, 0.0], [0.0, -0.2]],
        start_states=[[0.9, -0.3], [-0.2, 0.8], [0.5, 0.5]],
        discount=0.9,
        noise=0.1,
        action_noise=0.3,
        behavior_noise=0.6,
    )


MDPS.append(two_pushes())


def edited(**change: object) -> LinearQuadratic:
    base = scalar_regulator()
    names = ("dynamics", "input_map", "state_cost", "action_cost", "gain", "behavior_gain", "start_states")
    numbers = ("discount", "noise", "action_noise", "behavior_noise")
    arguments = {name: getattr(base, name) for name in (*names, *numbers)}
    return LinearQuadratic(**{**arguments, **change})


def nodes(half_width: float, dimension: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights of the uniform distribution on a cube: exact for quadratics."""
    points, weights = np.polynomial.legendre.leggauss(2)
    grid = np.stack(np.meshgrid(*[points * half_width] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    mass = np.stack(np.meshgrid(*[weights / 2] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension).prod(axis=1)
    return grid, mass


@pytest.mark.parametrize("mdp", MDPS, ids=repr)
def test_q_solves_the_bellman_equation(mdp: LinearQuadratic) -> None:
    d, k = mdp.input_map.shape
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-1, 1, size=(40, d)), rng.uniform(-1, 1, size=(40, k))
    onward = np.zeros(40)
    for shift, mass in zip(*nodes(mdp.noise, d), strict=True):
        after = states @ mdp.dynamics.T + actions @ mdp.input_map.T + shift
        for wiggle, action_mass in zip(*nodes(mdp.action_noise, k), strict=True):
            onward += mass * action_mass * mdp.q(after, after @ mdp.gain.T + wiggle)
    reward = (
        1 - np.einsum("ni,ij,nj->n", states, mdp.state_cost, states) - np.einsum("ni,ij,nj->n", actions, mdp.action_cost, actions)
    )
    assert np.abs(reward + mdp.discount * onward - mdp.q(states, actions)).max() < 1e-10
    assert mdp.reward(states, actions) == pytest.approx(reward, abs=1e-12)


@pytest.mark.parametrize("mdp", MDPS, ids=repr)
def test_value_agrees_with_roll_outs_of_the_target(mdp: LinearQuadratic) -> None:
    rng = np.random.default_rng(1)
    d, k = mdp.input_map.shape
    count, length = 4000, 150
    states, total = mdp.start_states[rng.integers(len(mdp.start_states), size=count)], np.zeros(count)
    for t in range(length):
        actions = states @ mdp.gain.T + rng.uniform(-mdp.action_noise, mdp.action_noise, size=(count, k))
        total += mdp.discount**t * mdp.reward(states, actions)
        states = states @ mdp.dynamics.T + actions @ mdp.input_map.T + rng.uniform(-mdp.noise, mdp.noise, size=(count, d))
        assert np.abs(states).max() <= 1 and np.abs(actions).max() <= 1
    left_out = mdp.discount**length / (1 - mdp.discount)
    assert left_out < 1e-5
    assert abs(total.mean() - mdp.value) < 5 * total.std() / np.sqrt(count) + left_out


def test_scalar_value_by_hand() -> None:
    mdp = edited(action_noise=0.0, noise=0.0, discount=0.5, start_states=[[0.5]])
    # Without noise s halves: s' = (0.7 - 0.2 / 2) s = 0.6 s, each step costs (0.6 + 0.3 / 4) s^2.
    cost = 0.675 * 0.25 / (1 - 0.5 * 0.36)
    assert mdp.value == pytest.approx(2 - cost, abs=1e-12)


@pytest.mark.parametrize("mdp", MDPS, ids=repr)
def test_behavior_stays_in_the_box_and_rewards_in_the_unit_interval(mdp: LinearQuadratic) -> None:
    data = mdp.sample(np.random.default_rng(2), trajectories=50, length=60)
    low, high = mdp.state_box
    for states in (data.states, data.next_states):
        assert (states >= low).all() and (states <= high).all()
    assert np.abs(data.actions).max() <= 1
    assert data.rewards.min() >= 0 and data.rewards.max() <= 1


@pytest.mark.parametrize("mdp", MDPS, ids=repr)
def test_logged_residuals_have_mean_zero(mdp: LinearQuadratic) -> None:
    data = mdp.sample(np.random.default_rng(3), trajectories=100, length=40)
    residual = (
        data.rewards + mdp.discount * mdp.state_values(data.next_states) - mdp.q(data.states, data.actions.astype(np.float64))
    )
    for weight in (np.ones(len(data)), data.states[:, 0], data.actions[:, 0]):
        scores = residual * weight
        assert abs(scores.mean()) < 5 * scores.std() / np.sqrt(len(scores))


def test_trajectories_are_ordered_and_start_at_the_start_states() -> None:
    mdp = planar_regulator()
    data = mdp.sample(np.random.default_rng(4), trajectories=3, length=5)
    assert data.episodes is not None and data.episodes.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    same = data.episodes[1:] == data.episodes[:-1]
    assert (data.states[1:][same] == data.next_states[:-1][same]).all()
    listed = {tuple(row) for row in mdp.start_states.tolist()}
    assert {tuple(row) for row in data.first_states().states.tolist()} <= listed
    assert not data.terminated.any() and not data.finite_actions


@pytest.mark.parametrize("mdp", MDPS, ids=repr)
def test_features_hold_q_with_the_stated_norm(mdp: LinearQuadratic) -> None:
    phi = mdp.features()
    d, k = mdp.input_map.shape
    p = d + k
    assert isinstance(phi, FeatureMap) and phi.intercept and not mdp.features(intercept=False).intercept
    assert phi.dimension == p + p * (p + 1) // 2
    points = np.random.default_rng(5).uniform(-1, 1, size=(200, p))
    assert phi(points).shape == (200, phi.dimension)
    columns = np.column_stack([phi(points), np.ones(200)])
    q = mdp.q(points[:, :d], points[:, d:])
    coefficients = np.linalg.lstsq(columns, q, rcond=None)[0]
    assert columns @ coefficients == pytest.approx(q, abs=1e-10)
    assert np.linalg.norm(coefficients[:-1]) == pytest.approx(mdp.norm, abs=1e-9)


def test_policy_averages_to_the_state_value() -> None:
    mdp = two_pushes()
    policy = mdp.policy
    assert isinstance(policy, SampledPolicy)
    states = np.repeat(mdp.start_states, 4000, axis=0)
    actions = np.asarray(policy.sample(states, np.random.default_rng(6)))
    assert np.abs(actions - states @ mdp.gain.T).max() <= mdp.action_noise
    q = mdp.q(states, actions)
    assert abs(q.mean() - mdp.value) < 5 * (q - mdp.state_values(states)).std() / np.sqrt(len(q))
    assert mdp.starts.exact and len(mdp.starts) == 3


def test_policy_without_noise_is_deterministic() -> None:
    mdp = scalar_regulator(action_noise=0.0)
    policy = pickle.loads(pickle.dumps(mdp.policy))
    assert isinstance(policy, DeterministicPolicy)
    actions = np.asarray(policy.act(mdp.start_states))
    assert actions == pytest.approx(-0.5 * mdp.start_states)
    assert mdp.q(mdp.start_states, actions).mean() == pytest.approx(mdp.value, abs=1e-12)


def test_features_by_hand() -> None:
    assert QuadraticFeatures(2)(np.array([[2.0, 3.0]])).tolist() == [[2.0, 3.0, 4.0, 6.0, 9.0]]
    with pytest.raises(InvalidInput, match="2-d points"):
        QuadraticFeatures(2)(np.ones((1, 3)))
    with pytest.raises(InvalidInput, match="variables"):
        QuadraticFeatures(0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dynamics": [[0.9]]}, "states stay bounded"),
        ({"noise": 0.2}, "states stay bounded"),
        ({"gain": [[-0.9]]}, "`action_noise` must be at most 1"),
        ({"behavior_gain": [[0.9]]}, "`behavior_noise` must be at most 1"),
        ({"state_cost": [[0.8]]}, "costs stay bounded"),
        ({"state_cost": [[-0.1]]}, "positive semidefinite"),
        ({"input_map": [[0.1, 0.1]]}, r"`input_map` must have shape \(1, 1\)"),
        ({"start_states": [[1.5]]}, "start_states"),
        ({"discount": 1.0}, "discount"),
        ({"noise": -0.1}, "`noise` must not be negative"),
    ],
)
def test_what_would_break_the_box_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        edited(**change)
