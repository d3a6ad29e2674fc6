"""The linear system of Bellman residuals against explicit loops over rows and actions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import accountable_ope.kernels.blocks
from accountable_ope import (
    DeterministicPolicy,
    DiscretePolicy,
    InvalidInput,
    Precomputed,
    RandomFourier,
    SampledPolicy,
    StartStates,
    TabularFeatures,
    TabulatedPolicy,
    Transitions,
)
from accountable_ope.classes.function_class import expected_features
from accountable_ope.problem.problem import Experience
from accountable_ope.statistics import BellmanSystem, bellman_residuals, bellman_system
from accountable_ope.validation import FloatArray
from reference import explicit_system

DISCOUNT = 0.9
VECTORS = np.array([[-1.0, 0.0], [0.0, 0.5], [1.0, 1.0]])


def softmax(states: FloatArray) -> FloatArray:
    weights = np.exp(np.outer(states[:, 0], [1.0, 0.0, -0.5]))
    return weights / weights.sum(axis=1, keepdims=True)


POLICY = DiscretePolicy(softmax, VECTORS)


def transitions(seed: int = 0, n: int = 30, terminated: float = 0.2) -> Transitions:
    rng = np.random.default_rng(seed)
    return Transitions(
        states=rng.normal(size=(n, 2)),
        actions=rng.integers(0, 3, size=n),
        rewards=rng.uniform(size=n),
        next_states=rng.normal(size=(n, 2)),
        terminated=rng.uniform(size=n) < terminated,
    )


def start_states(seed: int = 1) -> StartStates:
    rng = np.random.default_rng(seed)
    return StartStates(rng.normal(size=(4, 2)), weights=rng.uniform(size=4))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_system_equals_explicit_loops(intercept: bool, discount: float) -> None:
    data, starts = transitions(), start_states()
    features = RandomFourier(5, seed=2, intercept=intercept)
    w, b = features.frequencies(4)

    def feature(x: FloatArray) -> FloatArray:
        cosines = [math.cos(float(w[k] @ x) + b[k]) / math.sqrt(5) for k in range(5)]
        return np.array(cosines + [1.0] * intercept)

    system = bellman_system(Experience(data, starts, POLICY, discount), features)
    expected = explicit_system(data, starts, lambda s: softmax(s[None])[0], VECTORS, feature, discount)
    assert system.residuals == pytest.approx(expected.Z, abs=1e-13)
    assert system.target == pytest.approx(expected.v, abs=0)
    assert system.objective == pytest.approx(expected.c0, abs=1e-13)
    assert system.points.tolist() == [[*s, *VECTORS[a]] for s, a in zip(data.states, data.actions, strict=True)]
    assert system.penalized.tolist() == [True] * 5 + [False] * intercept
    assert system.columns() == pytest.approx(np.column_stack([expected.Z, expected.v, np.ones(30)]), abs=1e-13)
    assert system.dimension == 5 + intercept


def test_box_moments_are_second_moments_over_data_next_and_start_points() -> None:
    data, starts = transitions(), start_states()
    features = RandomFourier(3, seed=2)
    here = features(np.column_stack([data.states, VECTORS[data.actions]]))
    after = expected_features(features, data.next_states[~data.terminated], POLICY)
    start = expected_features(features, starts.states, POLICY)

    def moments(values: FloatArray, weights: FloatArray) -> FloatArray:
        rows = [np.append(row, [1.0, 1.0]) for row in values]
        return sum(weight * np.outer(row, row) for row, weight in zip(rows, weights, strict=True))

    parts = [
        moments(here, np.full(30, 1 / 30)),
        moments(after, np.full(len(after), 1 / len(after))),
        moments(start, starts.weights),
    ]
    system = bellman_system(Experience(data, starts, POLICY, DISCOUNT), features)
    assert system.box_moments == pytest.approx(sum(parts) / 3, abs=1e-13)


def test_terminal_next_states_are_worth_nothing() -> None:
    data = transitions(terminated=1.0)
    features = RandomFourier(4, seed=0)
    system = bellman_system(Experience(data, start_states(), POLICY, DISCOUNT), features)
    assert system.residuals[:, :4] == pytest.approx(features(system.points), abs=0)
    assert system.residuals[:, 4].tolist() == [1.0] * 30


def test_rows_that_are_not_terminated_go_on() -> None:
    data = transitions(terminated=0.3)
    system = bellman_system(Experience(data, start_states(), POLICY, DISCOUNT), RandomFourier(4, seed=0))
    assert system.residuals[:, -1] == pytest.approx(np.where(data.terminated, 1.0, 1 - DISCOUNT), abs=1e-15)
    assert 0 < data.terminated.sum() < len(data)


def test_a_truncated_episode_differs_from_a_terminated_one_in_its_last_row_only() -> None:
    data = transitions(n=6, terminated=0.0)
    ended = Transitions(data.states, data.actions, data.rewards, data.next_states, terminated=[0, 0, 0, 0, 0, 1])
    features = RandomFourier(4, seed=0)
    truncated, terminated = (bellman_system(Experience(one, start_states(), POLICY, DISCOUNT), features) for one in (data, ended))
    assert np.array_equal(truncated.residuals[:5], terminated.residuals[:5])
    after = expected_features(features, data.next_states[5:], POLICY)[0]
    assert terminated.residuals[5, :4] - truncated.residuals[5, :4] == pytest.approx(DISCOUNT * after, abs=1e-14)


def test_precomputed_features_equal_the_same_features_evaluated() -> None:
    data, starts = transitions(), start_states()
    features = RandomFourier(5, seed=2)
    given = Precomputed(
        features(np.column_stack([data.states, VECTORS[data.actions]])),
        expected_features(features, data.next_states, POLICY),
        expected_features(features, starts.states, POLICY),
    )
    assert_same(
        bellman_system(Experience(data, starts, POLICY, DISCOUNT), given),
        bellman_system(Experience(data, starts, POLICY, DISCOUNT), features),
        1e-14,
    )


def test_tabulated_policy_equals_the_discrete_one() -> None:
    data, starts = transitions(), start_states()
    states = np.concatenate([data.next_states, starts.states])
    table = TabulatedPolicy(states, softmax(states), VECTORS)
    features = RandomFourier(5, seed=2)
    assert_same(
        bellman_system(Experience(data, starts, table, DISCOUNT), features),
        bellman_system(Experience(data, starts, POLICY, DISCOUNT), features),
        1e-14,
    )


def test_action_vectors_equal_action_indices() -> None:
    data, starts = transitions(), start_states()
    vectors = Transitions(data.states, VECTORS[data.actions], data.rewards, data.next_states, data.terminated)
    features = RandomFourier(5, seed=2)
    assert_same(
        bellman_system(Experience(vectors, starts, POLICY, DISCOUNT), features),
        bellman_system(Experience(data, starts, POLICY, DISCOUNT), features),
        0.0,
    )


def test_deterministic_policy_is_a_discrete_one_with_certain_actions() -> None:
    data, starts = transitions(), start_states()

    def chosen(states: FloatArray) -> FloatArray:
        return (states[:, 0] > 0).astype(int)

    certain = DiscretePolicy(lambda states: np.eye(3)[chosen(states)], VECTORS)
    act = DeterministicPolicy(lambda states: VECTORS[chosen(states)])
    vectors = Transitions(data.states, VECTORS[data.actions], data.rewards, data.next_states, data.terminated)
    features = RandomFourier(5, seed=2)
    assert_same(
        bellman_system(Experience(vectors, starts, act, DISCOUNT), features),
        bellman_system(Experience(data, starts, certain, DISCOUNT), features),
        1e-14,
    )


def test_sampled_policy_converges_to_the_expectation() -> None:
    """For a ~ N(s, 0.3^2), E cos(w_s s + w_a a + b) = cos((w_s + w_a) s + b) exp(-0.3^2 w_a^2 / 2)."""
    features = RandomFourier(6, seed=5)
    w, b = features.frequencies(2)
    states = np.random.default_rng(0).normal(size=(50, 1))
    exact = np.cos(states @ w.sum(axis=1)[None] + b) * np.exp(-0.045 * w[:, 1] ** 2) / math.sqrt(6)

    def error(draws: int) -> float:
        policy = SampledPolicy(lambda s, generator: s + 0.3 * generator.normal(size=s.shape), draws=draws, seed=3)
        return float(np.sqrt(np.mean((expected_features(features, states, policy) - exact) ** 2)))

    few, many = error(10), error(4000)
    assert many <= 0.3 / math.sqrt(4000)
    assert many <= 0.1 * few


def test_draws_do_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = SampledPolicy(lambda states, generator: generator.normal(size=(len(states), 1)), draws=3, seed=0)
    features, states = RandomFourier(4, seed=0), np.zeros((20, 1))
    whole = expected_features(features, states, policy)
    assert len(np.unique(whole[:, 0])) == 20
    monkeypatch.setattr(accountable_ope.kernels.blocks, "ROWS_AT_ONCE", 7)
    assert expected_features(features, states, policy) == pytest.approx(whole, abs=1e-15)
    data = transitions()
    in_blocks = bellman_system(Experience(data, start_states(), POLICY, DISCOUNT), features)
    monkeypatch.undo()
    assert_same(in_blocks, bellman_system(Experience(data, start_states(), POLICY, DISCOUNT), features), 1e-15)


def test_residuals_of_a_function_equal_the_system_at_its_coefficients() -> None:
    data, starts = transitions(), start_states()
    features = RandomFourier(5, seed=2)
    theta = np.random.default_rng(3).normal(size=6)
    system = bellman_system(Experience(data, starts, POLICY, DISCOUNT), features)

    def q(states: FloatArray, actions: FloatArray) -> FloatArray:
        return features(np.column_stack([states, VECTORS[actions]])) @ theta[:5] + theta[5]

    found = bellman_residuals(q, data, POLICY, DISCOUNT)
    assert found == pytest.approx(system.target - system.residuals @ theta, abs=1e-13)


def test_residuals_ask_for_actions_as_the_data_have_them() -> None:
    data = transitions()
    vectors = Transitions(data.states, VECTORS[data.actions], data.rewards, data.next_states, data.terminated)
    by_index = bellman_residuals(lambda s, a: s[:, 0] * a, data, POLICY, DISCOUNT)
    by_vector = bellman_residuals(lambda s, a: s[:, 0] * (a[:, 0] + 1), vectors, POLICY, DISCOUNT)
    assert by_index == pytest.approx(by_vector, abs=1e-14)


def test_residuals_of_the_true_q_of_a_certain_process_are_zero() -> None:
    """Two states in turn, reward = state: Q(0) = gamma Q(1), Q(1) = 1 + gamma Q(0)."""
    states = np.array([[0.0], [1.0], [0.0], [1.0]])
    data = Transitions(states, [0, 0, 0, 0], states[:, 0], 1 - states)
    q1 = 1 / (1 - DISCOUNT**2)
    found = bellman_residuals(
        lambda s, a: np.where(s[:, 0] == 1, q1, DISCOUNT * q1), data, DiscretePolicy(lambda s: np.ones((len(s), 1)), 1), DISCOUNT
    )
    assert found == pytest.approx(np.zeros(4), abs=1e-14)


def test_residuals_of_terminated_rows_are_rewards_less_q() -> None:
    data = transitions(terminated=1.0)
    found = bellman_residuals(lambda s, a: s[:, 1], data, POLICY, DISCOUNT)
    assert np.array_equal(found, data.rewards - data.states[:, 1])


@dataclass(frozen=True)
class BrokenFeatures:
    value: float
    columns: int
    dimension: int = 2
    intercept: bool = True

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.full((len(points), self.columns), self.value)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "start states of another width": (
        lambda: bellman_system(Experience(transitions(), StartStates(np.zeros((2, 3))), POLICY, DISCOUNT), RandomFourier(2)),
        "`start states` must have as many columns as `states` (2). Got 3.",
    ),
    "precomputed for other data": (
        lambda: bellman_system(
            Experience(transitions(), start_states(), POLICY, DISCOUNT),
            Precomputed(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((4, 2))),
        ),
        "Precomputed features must have 30 data rows and 4 start rows. Got 2 and 4.",
    ),
    "precomputed for other starts": (
        lambda: bellman_system(
            Experience(transitions(), start_states(), POLICY, DISCOUNT),
            Precomputed(np.zeros((30, 2)), np.zeros((30, 2)), np.zeros((1, 2))),
        ),
        "Precomputed features must have 30 data rows and 4 start rows. Got 30 and 1.",
    ),
    "features nan": (
        lambda: bellman_system(Experience(transitions(), start_states(), POLICY, DISCOUNT), BrokenFeatures(math.nan, 2)),
        "`features` has 60 NaN or infinite entries, first in row 0.",
    ),
    "features of another shape": (
        lambda: bellman_system(Experience(transitions(), start_states(), POLICY, DISCOUNT), BrokenFeatures(0.0, 3)),
        "`features` must give shape (30, 2). Got (30, 3).",
    ),
    "unlisted points": (
        lambda: bellman_system(Experience(transitions(), start_states(), POLICY, DISCOUNT), TabularFeatures(np.zeros((1, 4)))),
        "TabularFeatures does not list 30 of the points",
    ),
    "policy with other action vectors than the data": (
        lambda: bellman_system(
            Experience(
                Transitions(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3), np.zeros((3, 2))),
                start_states(),
                DeterministicPolicy(lambda states: np.zeros((len(states), 1))),
                DISCOUNT,
            ),
            RandomFourier(2),
        ),
        "columns",
    ),
    "q of two columns": (
        lambda: bellman_residuals(lambda s, a: np.zeros((len(s), 2)), transitions(), POLICY, DISCOUNT),
        "`q` must give one value per row (",
    ),
    "q nan": (
        lambda: bellman_residuals(lambda s, a: np.full(len(s), math.nan), transitions(terminated=1.0), POLICY, DISCOUNT),
        "`values of q` has 30 NaN or infinite entries, first in row 0.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_systems_are_refused(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        make()


def assert_same(first: BellmanSystem, second: BellmanSystem, tolerance: float) -> None:
    for name in ("points", "residuals", "target", "objective", "box_moments"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), abs=tolerance), name
    assert np.array_equal(first.penalized, second.penalized)
