"""Point estimates from the kernel loss: against explicit matrices, explicit loops and a planted Q."""

from __future__ import annotations

import re

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import InvalidInput, RandomFourier, StartStates, Transitions
from accountable_ope.classes.linear_q import LinearQ
from accountable_ope.environments import PlantedMDP
from accountable_ope.fitting.least_loss import descend, fit_q
from accountable_ope.kernels.kernel import block
from accountable_ope.problem.problem import Experience
from accountable_ope.statistics import bellman_system

KERNEL = aope.Gaussian(1.0)
RIDGE = 1e-3


@pytest.fixture(scope="module")
def mdp() -> PlantedMDP:
    return PlantedMDP(seed=2, features=5, discount=0.6)


@pytest.fixture(scope="module")
def few(mdp: PlantedMDP) -> Transitions:
    data = mdp.sample(np.random.default_rng(0), trajectories=3, length=25)
    ended = np.arange(len(data)) % 25 == 24
    return Transitions(data.states, data.actions, data.rewards, data.next_states, ended, data.episodes)


@pytest.fixture(scope="module")
def many(mdp: PlantedMDP) -> Transitions:
    return mdp.sample(np.random.default_rng(1), trajectories=100, length=50)


def value_of(q: LinearQ, mdp: PlantedMDP) -> float:
    return float(np.mean(sum(b.weights * q(mdp.start_states, b.actions) for b in mdp.policy.branches(mdp.start_states))))


def explicit(data: Transitions, mdp: PlantedMDP, features: aope.classes.FeatureMap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(H, a, penalized) of the ridged loss theta'H theta - 2 a'theta + ..., from the whole kernel matrix."""
    system = bellman_system(Experience(data, StartStates(data.states[:1]), mdp.policy, mdp.discount), features)
    K = block(KERNEL, system.points, system.points) / len(data) ** 2
    A = system.residuals.T @ K @ system.residuals
    H = A + RIDGE * np.mean(np.diagonal(A)) * np.diag(system.penalized.astype(float))
    return H, system.residuals.T @ K @ system.target, system.penalized


@pytest.mark.parametrize("intercept", [True, False])
def test_the_closed_form_is_a_least_squares_fit(mdp: PlantedMDP, few: Transitions, intercept: bool) -> None:
    features = RandomFourier(6, seed=4, intercept=intercept)
    system = bellman_system(Experience(few, StartStates(few.states[:1]), mdp.policy, mdp.discount), features)
    Z, v, n = system.residuals, system.target, len(few)
    values, vectors = np.linalg.eigh(block(KERNEL, system.points, system.points))
    root = (vectors * np.sqrt(np.maximum(values, 0))).T / n  # root'root = K / n^2
    size = np.mean(np.einsum("ij,ij->j", root @ Z, root @ Z))
    penalty = np.sqrt(RIDGE * size) * np.diag(system.penalized.astype(float))
    direct = np.linalg.lstsq(np.vstack([root @ Z, penalty]), np.concatenate([root @ v, np.zeros(len(penalty))]), rcond=None)[0]
    q = fit_q(few, mdp.policy, kernel=KERNEL, features=features, discount=mdp.discount, ridge=RIDGE)
    assert q.theta == pytest.approx(direct, rel=1e-6, abs=1e-8)


def test_no_other_q_nearby_has_a_smaller_loss(mdp: PlantedMDP, few: Transitions) -> None:
    features = RandomFourier(6, seed=4)
    q = fit_q(few, mdp.policy, kernel=KERNEL, features=features, discount=mdp.discount, ridge=0.0)
    points = np.concatenate([few.states, mdp.policy.action_vectors[few.actions]], axis=1)

    def loss(theta: np.ndarray) -> float:
        other = LinearQ(features, theta, mdp.policy.action_vectors)
        return aope.statistics.v_statistic(
            aope.statistics.bellman_residuals(other, few, mdp.policy, mdp.discount), points, KERNEL
        )

    least = loss(q.theta)
    rng = np.random.default_rng(0)
    assert all(loss(q.theta + 0.01 * rng.normal(size=7)) > least for _ in range(50))


def test_the_planted_q_is_recovered(mdp: PlantedMDP, many: Transitions) -> None:
    q = fit_q(many, mdp.policy, kernel=KERNEL, features=mdp.features(), discount=mdp.discount)
    error = abs(value_of(q, mdp) - mdp.value)
    off = np.sqrt(np.mean((q(many.states, many.actions) - mdp.q(many.states, many.actions)) ** 2))
    print(f"value error {error:.2e} of {mdp.value:.3f}, root mean square error of Q {off:.2e}")
    assert error < 0.01
    assert off < 0.02
    elsewhere = fit_q(many, mdp.policy, kernel=KERNEL, features=mdp.features(intercept=False), discount=mdp.discount)
    assert abs(value_of(elsewhere, mdp) - mdp.value) > 3 * error  # a class without Q does worse


@pytest.mark.parametrize("steps", [0, 1, 2, 37])
def test_steps_are_those_of_a_gradient_loop(mdp: PlantedMDP, few: Transitions, steps: int) -> None:
    features = RandomFourier(6, seed=4)
    H, a, _ = explicit(few, mdp, features)
    theta, rate = np.zeros(len(a)), 1 / (2 * np.linalg.eigvalsh(H)[-1])
    for _ in range(steps):
        theta = theta - rate * 2 * (H @ theta - a)
    q = fit_q(few, mdp.policy, kernel=KERNEL, features=features, discount=mdp.discount, ridge=RIDGE, steps=steps)
    assert q.theta == pytest.approx(theta, rel=1e-8, abs=1e-11)


def test_few_steps_are_biased_and_many_converge(mdp: PlantedMDP, many: Transitions) -> None:
    def fitted(steps: int | None) -> LinearQ:
        return fit_q(many, mdp.policy, kernel=KERNEL, features=mdp.features(), discount=mdp.discount, steps=steps)

    exact = fitted(None)
    distances = [float(np.linalg.norm(fitted(k).theta - exact.theta)) for k in (0, 10, 100, 10_000, 10_000_000)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-3 * distances[0]
    truth = mdp.q(many.states, many.actions)
    errors = [float(np.std(q(many.states, many.actions) - truth)) for q in (fitted(3), exact)]
    assert errors[0] > 10 * errors[1]


def test_a_flat_loss_leaves_theta_at_zero() -> None:
    zero = aope.programs.Quadratic(np.zeros((2, 2)), np.zeros(2), 1.0)
    assert descend(zero, np.array([True, False]), 0.1, 5).tolist() == [0.0, 0.0]


def test_a_linear_q_takes_indices_and_vectors(mdp: PlantedMDP, few: Transitions) -> None:
    q = fit_q(few, mdp.policy, kernel=KERNEL, features=RandomFourier(3, seed=1), discount=mdp.discount)
    vectors = mdp.policy.action_vectors[few.actions]
    by_hand = RandomFourier(3, seed=1)(np.concatenate([few.states, vectors], axis=1)) @ q.theta[:3] + q.theta[3]
    assert q(few.states, few.actions) == pytest.approx(by_hand, abs=1e-14)
    assert np.array_equal(q(few.states, few.actions), q(few.states, vectors))
    assert np.array_equal(q.predict_value(few.states, few.actions), q(few.states, few.actions))
    with pytest.raises(InvalidInput, match="`actions` are indices"):
        LinearQ(q.features, q.theta)(few.states, few.actions)


@pytest.mark.parametrize(
    ("ridge", "steps", "message"),
    [(-1.0, None, "`ridge` must not be negative."), (0.0, -1, "`steps` must be a whole"), (0.0, 1.5, "`steps` must be a whole")],
)
def test_refusals(mdp: PlantedMDP, few: Transitions, ridge: float, steps: int | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        fit_q(few, mdp.policy, kernel=KERNEL, features=RandomFourier(3), discount=mdp.discount, ridge=ridge, steps=steps)
