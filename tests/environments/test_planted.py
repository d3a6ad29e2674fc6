"""The planted MDP: frozen numbers, the Bellman equation and roll-outs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from accountable_ope.classes.features import FeatureMap, RandomFourier
from accountable_ope.environments import PlantedFeatures, PlantedMDP
from accountable_ope.errors import InvalidInput
from accountable_ope.validation import FloatArray, IntArray

ACTIONS = np.array([-1.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def mdp() -> PlantedMDP:
    return PlantedMDP()


def next_mean(states: FloatArray, actions: IntArray) -> FloatArray:
    matrix = np.array([[0.9, 0.3], [-0.1, 0.8]])
    moved: FloatArray = states @ matrix.T + np.outer(ACTIONS[actions], [0.0, 0.35])
    return moved


def target(states: FloatArray) -> FloatArray:
    weights = np.exp(np.outer(states[:, 0], [3.0, 0.0, -3.0]))
    probabilities: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return probabilities


def test_default_mdp_has_the_frozen_numbers(mdp: PlantedMDP) -> None:
    assert mdp.value == pytest.approx(9.216293378840165, abs=1e-12)
    assert mdp.norm == pytest.approx(1.4278436497148617, abs=1e-12)
    assert mdp.frequencies[0] == pytest.approx([0.345584192064786, 0.8216181435011584, 0.33043707618338714], abs=1e-14)
    assert mdp.frequencies[-1] == pytest.approx([-0.42219041157635356, 0.2136429974986111, 0.21732193102256359], abs=1e-14)
    assert mdp.phases[[0, -1]] == pytest.approx([0.7280051138837079, 4.029583729416905], abs=1e-14)
    theta = [
        -0.26743456934174442,
        -0.14887205950744437,
        -0.015697998300499283,
        -0.20585718871321146,
        -0.021412590169949581,
        0.020805328220562073,
        0.0077540832302469918,
        -0.11031870695482233,
        0.12937507158308048,
        0.19418132703316174,
        9.1272415833685567,
    ]
    assert mdp.theta == pytest.approx(theta, abs=1e-12)
    assert mdp.start_states.shape == (50, 2)
    assert mdp.start_states[0] == pytest.approx([-0.18503024458791884, 0.18141849668071802], abs=1e-14)
    assert mdp.start_states[-1] == pytest.approx([0.2789806463878414, -0.0590182656668895], abs=1e-14)


@pytest.mark.parametrize(
    ("other", "value", "norm"),
    [
        (PlantedMDP(seed=0), 7.748984071696339, 0.9795172655868729),
        (PlantedMDP(seed=3, features=5, discount=0.9, noise=0.1, bandwidth=0.7), 5.446783274175984, 0.6481006236509861),
        (PlantedMDP(bernoulli=True, behavior_temperature=2.0), 9.216293378840165, 1.4278436497148617),
    ],
    ids=["seed 0", "five features", "the data do not change the truth"],
)
def test_other_mdps_have_the_frozen_numbers(other: PlantedMDP, value: float, norm: float) -> None:
    assert other.value == pytest.approx(value, abs=1e-12)
    assert other.norm == pytest.approx(norm, abs=1e-12)


def test_sample_has_the_frozen_numbers(mdp: PlantedMDP) -> None:
    data = mdp.sample(np.random.default_rng(7), trajectories=4, length=6)
    assert data.actions.tolist() == [2, 1, 0, 0, 0, 1, 1, 1, 0, 2, 0, 0, 1, 2, 1, 1, 1, 0, 1, 2, 0, 1, 0, 2]
    assert data.states[[0, 5, 6]] == pytest.approx(
        np.array(
            [
                [0.25019093320933394, 0.794427601939151],
                [1.027377759205797, -0.34762431762614276],
                [0.551371380490387, -0.5495856200188163],
            ]
        ),
        abs=1e-12,
    )
    assert data.next_states[[0, -1]] == pytest.approx(
        np.array([[0.5385001204701458, 1.1855229882303875], [0.29220038400645754, 0.17492861698551032]]), abs=1e-12
    )
    assert data.rewards[[0, 5, -1]] == pytest.approx([0.32523881139777977, 0.48011840295848884, 0.4512984320144433], abs=1e-12)
    assert data.rewards.sum() == pytest.approx(11.465343373635857, abs=1e-11)


def test_bernoulli_sample_has_the_frozen_numbers() -> None:
    data = PlantedMDP(bernoulli=True, behavior_temperature=2.0).sample(np.random.default_rng(7), trajectories=4, length=6)
    assert data.actions.tolist() == [2, 1, 1, 2, 1, 2, 1, 2, 1, 0, 2, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 2, 1, 2]
    assert data.rewards.tolist() == [1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1]
    assert data.next_states.sum() == pytest.approx(10.608585405828201, abs=1e-11)


def test_trajectories_are_ordered_and_never_end(mdp: PlantedMDP) -> None:
    data = mdp.sample(np.random.default_rng(0), trajectories=3, length=5)
    assert data.episodes is not None and data.episodes.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    same = data.episodes[1:] == data.episodes[:-1]
    assert (data.states[1:][same] == data.next_states[:-1][same]).all()
    assert not (data.states[1:][~same] == data.next_states[:-1][~same]).any()
    assert not data.terminated.any()


def test_q_solves_the_bellman_equation(mdp: PlantedMDP) -> None:
    rng = np.random.default_rng(2)
    states, actions = rng.uniform(-1.5, 1.5, size=(200, 2)), rng.integers(0, 3, 200)
    onward = np.zeros(200)
    for shift in itertools.product(np.array([-1.5, -0.5, 0.5, 1.5]) * 0.15, repeat=2):
        after = next_mean(states, actions) + shift
        onward += sum(target(after)[:, a] * mdp.q(after, np.full(200, a)) for a in range(3)) / 16
    assert np.abs(mdp.mean_reward(states, actions) + 0.95 * onward - mdp.q(states, actions)).max() < 1e-10


def test_value_agrees_with_roll_outs_of_the_target(mdp: PlantedMDP) -> None:
    rng = np.random.default_rng(3)
    count, length = 1000, 200
    states, total = mdp.start_states[rng.integers(50, size=count)], np.zeros(count)
    for t in range(length):
        actions = (target(states).cumsum(axis=1) < rng.random((count, 1))).sum(axis=1)
        total += 0.95**t * mdp.mean_reward(states, actions)
        states = next_mean(states, actions) + rng.choice([-1.5, -0.5, 0.5, 1.5], size=(count, 2)) * 0.15
    assert abs(total.mean() - mdp.value) < 5 * total.std() / np.sqrt(count) + 0.95**length / 0.05


@pytest.mark.parametrize("bernoulli", [False, True])
def test_logged_residuals_have_mean_zero(bernoulli: bool) -> None:
    mdp = PlantedMDP(bernoulli=bernoulli)
    data = mdp.sample(np.random.default_rng(4), trajectories=100, length=40)
    residual = data.rewards + 0.95 * mdp.state_values(data.next_states) - mdp.q(data.states, data.actions)
    for weight in (np.ones(len(data)), data.states[:, 0], data.states[:, 1], data.actions - 1.0):
        scores = residual * weight
        assert abs(scores.mean()) < 5 * scores.std() / np.sqrt(len(scores))
    assert residual.std() > 0.01
    assert data.rewards.min() >= 0 and data.rewards.max() <= 1


def test_behavior_probabilities_are_those_of_the_sample() -> None:
    mdp = PlantedMDP(behavior_temperature=0.5)
    data = mdp.sample(np.random.default_rng(5), trajectories=200, length=20)
    probabilities = np.asarray(mdp.behavior.probabilities(data.states))
    for a in range(3):
        scores = ((data.actions == a) - probabilities[:, a]) * data.states[:, 0]
        assert abs(scores.mean()) < 5 * scores.std() / np.sqrt(len(scores))


def test_features_hold_q_with_the_stated_norm(mdp: PlantedMDP) -> None:
    phi = mdp.features()
    assert isinstance(phi, FeatureMap) and isinstance(phi, PlantedFeatures)
    assert phi.dimension == 10 and phi.intercept and not mdp.features(intercept=False).intercept
    rng = np.random.default_rng(6)
    states, actions = rng.uniform(-1, 1, size=(300, 2)), rng.integers(0, 3, 300)
    points = np.column_stack([states, ACTIONS[actions]])
    columns = np.column_stack([phi(points), np.ones(300)])
    coefficients = np.linalg.lstsq(columns, mdp.q(states, actions), rcond=None)[0]
    assert columns @ coefficients == pytest.approx(mdp.q(states, actions), abs=1e-9)
    assert np.linalg.norm(coefficients[:-1]) == pytest.approx(mdp.norm, rel=1e-5)
    assert phi(points) == pytest.approx(RandomFourier(10, bandwidth=1.0, seed=1)(points), abs=1e-12)


def test_q_takes_indices_and_action_vectors(mdp: PlantedMDP) -> None:
    states, actions = np.random.default_rng(7).uniform(-1, 1, size=(6, 2)), np.array([0, 1, 2, 2, 1, 0])
    assert mdp.q(states, actions).tolist() == mdp.q(states, ACTIONS[actions][:, None]).tolist()
    with pytest.raises(InvalidInput, match="index 3"):
        mdp.q(states, actions + 1)


def test_policy_and_starts_give_the_value(mdp: PlantedMDP) -> None:
    starts = mdp.starts
    assert starts.exact and len(starts) == 50
    assert mdp.policy.action_vectors.tolist() == [[-1.0], [0.0], [1.0]]
    probabilities = np.asarray(mdp.policy.probabilities(starts.states))
    assert probabilities == pytest.approx(target(starts.states), abs=1e-12)
    by_action = np.stack([mdp.q(starts.states, np.full(50, a)) for a in range(3)], axis=1)
    assert starts.weights @ (probabilities * by_action).sum(axis=1) == pytest.approx(mdp.value, abs=1e-12)


def test_rewards_outside_the_unit_interval_are_refused() -> None:
    wild = PlantedMDP(noise=3.0)
    with pytest.raises(InvalidInput, match=r"outside \[0, 1\], at state"):
        wild.sample(np.random.default_rng(0), trajectories=200, length=50)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: PlantedMDP(seed=-1), "seed"),
        (lambda: PlantedMDP(features=0), "features"),
        (lambda: PlantedMDP(discount=1.0), "discount"),
        (lambda: PlantedMDP(noise=-0.1), "noise"),
        (lambda: PlantedMDP(bandwidth=0.0), "bandwidth"),
        (lambda: PlantedMDP(behavior_temperature=0.0), "behavior_temperature"),
        (lambda: PlantedMDP(bernoulli=1), "bernoulli"),  # type: ignore[arg-type]
    ],
)
def test_wrong_options_are_refused(call: Callable[[], object], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"`{name}`"):
        call()
