"""Control tasks: mechanics against scalar twins and Gymnasium, declared ranges, roll-outs row by row, values that are known."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountable_ope.environments.control_task import (
    ControlTask,
    Step,
    draw_actions,
    draw_starts,
    monte_carlo_value,
    roll_out,
)
from accountable_ope.environments.draws import cut_normal
from accountable_ope.environments.inverted_pendulum import FALLEN, InvertedPendulum
from accountable_ope.environments.puck_mountain import PuckMountain
from accountable_ope.errors import InvalidInput
from accountable_ope.problem.policy import DiscretePolicy
from accountable_ope.problem.transitions import StartStates, Transitions
from accountable_ope.validation import FloatArray, IntArray

TASKS = [PuckMountain(), InvertedPendulum()]
CUT = 2.0
"""Noise is cut at this many standard deviations."""
BOTH = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


class GivenDraws:
    """A generator whose draws are those of the test."""

    def __init__(self, *draws: Sequence[float] | FloatArray) -> None:
        self._draws: Iterator[FloatArray] = iter([np.asarray(one, dtype=np.float64) for one in draws])

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        drawn = next(self._draws)
        assert drawn.shape == shape
        return drawn

    def random(self, count: int) -> FloatArray:
        return self.standard_normal((count,))


def uniform(task: ControlTask) -> DiscretePolicy:
    count = len(task.actions)
    return DiscretePolicy(lambda states: np.full((len(states), count), 1 / count), task.actions)


def states_in_box(task: ControlTask, count: int, rng: np.random.Generator) -> FloatArray:
    low, high = task.state_box
    return rng.uniform(low, high, size=(count, len(low)))


# Puck-Mountain


def puck_twin(
    task: PuckMountain, state: Sequence[float], action: int, speed_draw: float, position_draw: float
) -> tuple[float, float, float]:
    """One step of one puck: (scaled position, scaled speed, reward)."""
    position, speed = -0.3 + 0.9 * state[0], 0.07 * state[1]
    reward = 0.8 * (math.sin(3 * position) + 1) / 2 + 0.2 * (speed / 0.07) ** 2
    speed += task.push * (-1, 0, 1)[action] - task.gravity * math.cos(3 * position)
    speed += task.speed_noise * max(-CUT, min(CUT, speed_draw))
    speed = max(-0.07, min(0.07, speed))
    position += speed + task.position_noise * max(-CUT, min(CUT, position_draw))
    if position >= 0.6:
        position, speed = 0.6, -speed / 2
    elif position <= -1.2:
        position, speed = -1.2, -speed / 2
    return (position + 0.3) / 0.9, speed / 0.07, reward


@pytest.mark.parametrize(
    "task",
    [
        PuckMountain(),
        PuckMountain(position_noise=0, speed_noise=0),
        PuckMountain(push=0.004, gravity=0.001, position_noise=0.02, speed_noise=0.01),
    ],
    ids=["default", "without noise", "other constants"],
)
def test_puck_steps_as_its_scalar_twin(task: PuckMountain) -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.99, 0.5], [-0.99, -0.5]], dtype=float)
    states = np.concatenate([states_in_box(task, 600, rng), corners])
    actions = rng.integers(3, size=len(states))
    draws = 2 * rng.standard_normal((2, len(states)))  # many of them beyond the cut
    moved = task.step(states, actions, GivenDraws(*draws))
    twin = np.array([puck_twin(task, s, a, u, w) for s, a, u, w in zip(states, actions, *draws, strict=True)])
    np.testing.assert_allclose(moved.next_states, twin[:, :2], rtol=0, atol=1e-13)
    np.testing.assert_allclose(moved.rewards, twin[:, 2], rtol=0, atol=1e-15)
    assert not moved.terminated.any() and moved.terminated.dtype == bool
    assert (np.abs(moved.next_states[:, 0]) == 1).any()  # some did reach a roof


def test_puck_without_noise_needs_no_draws_to_be_known() -> None:
    """At rest at the bottom, cos(3 p) = 0: only the push moves it."""
    task = PuckMountain(position_noise=0, speed_noise=0)
    bottom = (-math.pi / 6 + 0.3) / 0.9
    moved = task.step(np.tile([bottom, 0.0], (3, 1)), np.arange(3), np.random.default_rng(0))
    np.testing.assert_allclose(moved.next_states[:, 1] * 0.07, [-task.push, 0, task.push], atol=1e-15)
    np.testing.assert_allclose(moved.next_states[:, 0] - bottom, np.array([-task.push, 0, task.push]) / 0.9, atol=1e-15)
    np.testing.assert_allclose(moved.rewards, 0, atol=1e-15)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_roof_turns_the_puck_back_at_half_its_speed(side: float) -> None:
    task = PuckMountain(push=0, gravity=0, position_noise=0, speed_noise=0)
    moved = task.step(np.array([[0.98 * side, 0.6 * side]]), np.array([1]), np.random.default_rng(0))
    assert moved.next_states[0, 0] == side
    assert moved.next_states[0, 1] == pytest.approx(-0.3 * side, abs=1e-15)
    back = task.step(moved.next_states, np.array([1]), np.random.default_rng(0))
    assert back.next_states[0].tolist() == pytest.approx([side - side * 0.3 * 0.07 / 0.9, -0.3 * side], abs=1e-15)


def test_puck_reward_is_a_function_of_the_state() -> None:
    task = PuckMountain()
    assert not task.reward_noise
    states = states_in_box(task, 200, np.random.default_rng(1))
    found = {
        tuple(task.step(states, np.full(200, a), np.random.default_rng(seed)).rewards) for a in range(3) for seed in range(3)
    }
    assert len(found) == 1
    moves = [task.step(states, np.ones(200, dtype=int), np.random.default_rng(seed)).next_states for seed in range(2)]
    assert not np.array_equal(*moves)  # the same draws would make this test say nothing


def test_puck_reward_reaches_both_ends_of_its_range() -> None:
    task = PuckMountain()
    bottom, top = (-math.pi / 6 + 0.3) / 0.9, (math.pi / 6 + 0.3) / 0.9
    assert task.reward(np.array([[bottom, 0.0], [top, 1.0], [top, -1.0]])).tolist() == pytest.approx([0, 1, 1], abs=1e-15)


def test_puck_starts_around_the_bottom() -> None:
    starts = PuckMountain().starts
    assert starts.exact and starts.states.shape == (100, 2)
    np.testing.assert_allclose(starts.weights, 0.01)
    position, speed = -0.3 + 0.9 * starts.states[:, 0], 0.07 * starts.states[:, 1]
    # Mean and spread of 100 normal draws: within four standard errors, 0.4 and 0.29 standard deviations.
    assert abs(position.mean() + math.pi / 6) < 0.4 * 0.05 and abs(speed.mean()) < 0.4 * 0.005
    assert abs(position.std() / 0.05 - 1) < 0.29 and abs(speed.std() / 0.005 - 1) < 0.29
    np.testing.assert_array_equal(starts.states, PuckMountain(push=0.1).starts.states)


# Inverted-Pendulum


@pytest.fixture(scope="module")
def pendulum_of_gymnasium() -> Iterator[gymnasium.Env]:
    with gymnasium.make("InvertedPendulum-v5", reset_noise_scale=0.01) as environment:
        yield environment


def test_pendulum_without_noise_is_gymnasiums(pendulum_of_gymnasium: gymnasium.Env) -> None:
    """Episode by episode and step for step; only where the pole has fallen may the box cut the angle."""
    task, rng = InvertedPendulum(noise=0.0), np.random.default_rng(0)
    scale, steps, falls = np.array(task.scale), 0, 0
    for episode in range(30):
        observed, _ = pendulum_of_gymnasium.reset(seed=episode)
        states, fallen = observed[None] / scale, False
        for _ in range(task.horizon):
            action = int(rng.integers(len(task.actions)))
            observed, reward, fallen, _, _ = pendulum_of_gymnasium.step(task.actions[action])
            moved = task.step(states, np.array([action]), rng)
            wanted = observed / scale
            assert fallen or (np.abs(wanted) < 1).all()
            np.testing.assert_allclose(moved.next_states[0], np.clip(wanted, -1, 1), rtol=0, atol=1e-12)
            assert (bool(moved.terminated[0]), moved.rewards[0]) == (fallen, reward)
            steps += 1
            if fallen:
                break
            states = moved.next_states
        falls += fallen
    assert falls > 20 and steps > 200


def test_pendulum_steps_any_state_as_gymnasium_does(pendulum_of_gymnasium: gymnasium.Env) -> None:
    """States all over the box, all actions, many at a time against one at a time."""
    task, rng = InvertedPendulum(noise=0.0), np.random.default_rng(1)
    scale = np.array(task.scale)
    states = states_in_box(task, 140, rng) * [0.9, 0.8, 1, 1]
    actions = np.arange(140) % 7
    moved = task.step(states, actions, rng)
    simulator = pendulum_of_gymnasium.unwrapped
    for state, action, after, fallen in zip(states * scale, actions, moved.next_states, moved.terminated, strict=True):
        pendulum_of_gymnasium.reset(seed=0)
        simulator.set_state(state[:2], state[2:])
        observed, _, terminated, _, _ = simulator.step(task.actions[action])
        np.testing.assert_allclose(after, np.clip(observed / scale, -1, 1), rtol=0, atol=1e-10)
        assert fallen == terminated
    assert 20 < moved.terminated.sum() < 120


def test_pendulum_noise_is_added_in_scaled_units_and_cut() -> None:
    task, rng = InvertedPendulum(noise=0.05), np.random.default_rng(2)
    states = states_in_box(task, 300, rng)
    actions = rng.integers(7, size=300)
    draws = 2 * rng.standard_normal((300, 4))
    still = InvertedPendulum(noise=0.0).step(states, actions, rng).next_states
    noisy = task.step(states, actions, GivenDraws(draws))
    inside = np.abs(still) < 1  # elsewhere the noise-free state was cut by the box already
    np.testing.assert_allclose(
        noisy.next_states[inside], np.clip(still + 0.05 * np.clip(draws, -CUT, CUT), -1, 1)[inside], rtol=0, atol=1e-13
    )
    assert (np.abs(draws) > CUT).any() and inside.mean() > 0.8
    np.testing.assert_array_equal(noisy.terminated, np.abs(task.scale[1] * noisy.next_states[:, 1]) > FALLEN)
    np.testing.assert_array_equal(noisy.rewards, 1.0 - noisy.terminated)
    assert 0 < noisy.terminated.sum() < 300


def test_pendulum_reward_is_random_where_it_says_so() -> None:
    task = InvertedPendulum()
    leaning = np.tile([0.0, 0.8, 0.0, 0.0], (200, 1))
    moved = task.step(leaning, np.full(200, 3), np.random.default_rng(0))
    assert task.reward_noise and set(moved.rewards) == {0.0, 1.0}


def test_pendulum_starts_near_the_top() -> None:
    task = InvertedPendulum()
    starts = task.starts
    assert starts.exact and starts.states.shape == (100, 4)
    before = np.abs(starts.states * task.scale)
    assert before.max() <= 0.01 and (before.max(axis=0) > 0.009).all()


# What both declare


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_box_and_reward_range_hold_step_after_step(task: ControlTask, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = (np.array(side) for side in task.state_box)
    states = np.concatenate([task.starts.states, states_in_box(task, 300, rng), low[None], high[None]])
    seen = [states]
    for _ in range(60):
        moved = task.step(states, rng.integers(len(task.actions), size=len(states)), rng)
        assert (moved.next_states >= low).all() and (moved.next_states <= high).all()
        assert (moved.rewards >= task.reward_range[0]).all() and (moved.rewards <= task.reward_range[1]).all()
        assert np.isfinite(moved.next_states).all()
        assert task.terminates or not moved.terminated.any()
        seen.append(moved.next_states)
        states = np.where(moved.terminated[:, None], states, moved.next_states)
    reached = np.abs(np.concatenate(seen[1:])).max(axis=0)
    assert (reached > 0.9).all()  # the box is not much larger than what happens


@settings(max_examples=60)
@given(
    state=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    action=st.integers(0, 2),
    draws=st.tuples(st.floats(-8, 8), st.floats(-8, 8)),
    noise=st.floats(0, 0.5),
)
def test_no_puck_leaves_the_box(state: tuple[float, float], action: int, draws: tuple[float, float], noise: float) -> None:
    task = PuckMountain(position_noise=noise, speed_noise=noise)
    moved = task.step(np.array([state]), np.array([action]), GivenDraws([draws[0]], [draws[1]]))
    assert (np.abs(moved.next_states) <= 1).all() and 0 <= moved.rewards[0] <= 1
    assert moved.next_states[0].tolist() == pytest.approx(puck_twin(task, state, action, *draws)[:2], abs=1e-12)


@BOTH
def test_declared_shapes_agree(task: ControlTask) -> None:
    low, high = task.state_box
    assert task.actions.ndim == 2 and len(np.unique(task.actions, axis=0)) == len(task.actions)
    assert task.starts.states.shape[1] == len(low) == len(high)
    assert (task.starts.states >= low).all() and (task.starts.states <= high).all()
    assert task.reward_range[0] < task.reward_range[1] and task.horizon >= 1


def test_the_pushes_are_those_that_are_described() -> None:
    assert PuckMountain().actions.tolist() == [[-1], [0], [1]]
    assert InvertedPendulum().actions.tolist() == [[-1], [-0.3], [-0.2], [0], [0.2], [0.3], [1]]


@BOTH
def test_a_row_does_not_depend_on_the_rows_beside_it(task: ControlTask) -> None:
    rng = np.random.default_rng(5)
    still = type(task)(**{name: 0.0 for name in ("noise", "speed_noise", "position_noise") if hasattr(task, name)})
    states = states_in_box(task, 20, rng)
    actions = rng.integers(len(task.actions), size=20)
    together = still.step(states, actions, rng)
    for row in range(20):
        alone = still.step(states[row : row + 1], actions[row : row + 1], rng)
        np.testing.assert_array_equal(alone.next_states[0], together.next_states[row])
        assert (alone.rewards[0], alone.terminated[0]) == (together.rewards[row], together.terminated[row])


def test_cut_normal_is_normal_up_to_the_cut() -> None:
    drawn = cut_normal(np.random.default_rng(0), (200_000,))
    beyond = math.erfc(CUT / math.sqrt(2))
    assert drawn.min() == -CUT and drawn.max() == CUT
    assert np.mean(np.abs(drawn) == CUT) == pytest.approx(beyond, abs=5 * math.sqrt(beyond / 200_000))
    raw = np.random.default_rng(0).standard_normal(200_000)
    np.testing.assert_array_equal(drawn[np.abs(raw) < CUT], raw[np.abs(raw) < CUT])


# Roll-outs, on a task of which every row is known


@dataclass(frozen=True)
class Ladder:
    """Starts at 100, 200, 300 with these lives; a step adds one; the reward is the action; a life ends by termination."""

    lives: tuple[int, ...] = (3, 50, 7)
    horizon: int = 10
    name: str = "ladder"
    reward_range: tuple[float, float] = (0.0, 1.0)
    reward_noise: bool = False
    terminates: bool = True
    state_box: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,), (1000.0,))

    @property
    def actions(self) -> FloatArray:
        return np.array([[0.0], [1.0]])

    @property
    def starts(self) -> StartStates:
        return StartStates(100.0 * np.arange(1, len(self.lives) + 1)[:, None])

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        assert len(states) > 0
        moved = states + 1
        rung = (moved[:, 0] // 100).astype(int) - 1
        return Step(moved, np.asarray(actions, dtype=float), moved[:, 0] % 100 >= np.array(self.lives)[rung])


def episodes_of(data: Transitions) -> list[Transitions]:
    """Every episode has at least two rows here, as Transitions need."""
    assert data.episodes is not None
    return [data.rows(data.episodes == label) for label in range(int(data.episodes.max()) + 1)]


def test_rows_are_in_order_and_end_where_they_must() -> None:
    task = Ladder()
    data = roll_out(task, uniform(task), np.random.default_rng(0), episodes=40)
    assert data.episodes is not None
    assert (np.diff(data.episodes) >= 0).all() and set(data.episodes) == set(range(40))
    starts = []
    for episode in episodes_of(data):
        first = episode.states[0, 0]
        life = task.lives[int(first // 100) - 1]
        steps = min(life, task.horizon)
        np.testing.assert_array_equal(episode.states[:, 0], first + np.arange(steps))
        np.testing.assert_array_equal(episode.next_states[:, 0], first + np.arange(steps) + 1)
        np.testing.assert_array_equal(episode.rewards, episode.actions)
        assert not episode.terminated[:-1].any()
        assert episode.terminated[-1] == (life <= task.horizon)  # truncation is no termination
        starts.append(first)
    assert set(starts) == {100.0, 200.0, 300.0}


@pytest.mark.parametrize("length", [2, 3, 4, 60])
def test_the_length_replaces_the_horizon(length: int) -> None:
    task = Ladder()
    data = roll_out(task, uniform(task), np.random.default_rng(0), episodes=30, length=length)
    for episode in episodes_of(data):
        life = task.lives[int(episode.states[0, 0] // 100) - 1]
        assert len(episode) == min(life, length) and episode.terminated[-1] == (life <= length)


@BOTH
def test_roll_outs_of_the_tasks(task: ControlTask) -> None:
    data = roll_out(task, uniform(task), np.random.default_rng(3), episodes=25)
    assert data.number_of_episodes == 25
    lengths, ended = [], 0
    for episode in episodes_of(data):
        np.testing.assert_array_equal(episode.next_states[:-1], episode.states[1:])
        assert (episode.states[0] == task.starts.states).all(axis=1).any()
        assert not episode.terminated[:-1].any()
        assert episode.terminated[-1] or len(episode) == task.horizon
        lengths.append(len(episode))
        ended += int(episode.terminated[-1])
    assert ended == (25 if task.terminates else 0) and (len(set(lengths)) > 1) == task.terminates
    assert data.actions.dtype == np.int64 and set(data.actions) == set(range(len(task.actions)))


@BOTH
def test_the_seed_decides(task: ControlTask) -> None:
    one, same, other = (roll_out(task, uniform(task), np.random.default_rng(s), episodes=6, length=8) for s in (1, 1, 2))
    for name in ("states", "actions", "rewards", "next_states", "terminated", "episodes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert one.states.shape != other.states.shape or not np.array_equal(one.states, other.states)


def test_a_generator_that_went_on_gives_a_new_batch() -> None:
    task, rng = PuckMountain(), np.random.default_rng(0)
    first, second = (roll_out(task, uniform(task), rng, episodes=5, length=10) for _ in range(2))
    assert not np.array_equal(first.next_states, second.next_states)


# Draws


def test_actions_come_with_the_policys_probabilities() -> None:
    """Frequencies within five standard deviations: a false alarm in one of nine cells has probability below 1e-5."""
    table = np.array([[0.2, 0.3, 0.5], [0.9, 0.1, 0.0], [0.0, 0.001, 0.999]])
    policy = DiscretePolicy(lambda states: table[states[:, 0].astype(int)], 3)
    states = np.repeat(np.arange(3.0), 60_000)[:, None]
    drawn = draw_actions(policy, states, np.random.default_rng(0))
    assert drawn.shape == (180_000,) and drawn.dtype.kind == "i"
    for row, probabilities in enumerate(table):
        found = np.bincount(drawn[states[:, 0] == row], minlength=3) / 60_000
        assert (np.abs(found - probabilities) <= 5 * np.sqrt(probabilities * (1 - probabilities) / 60_000)).all()


def test_an_action_of_probability_zero_is_never_drawn() -> None:
    policy = DiscretePolicy(lambda states: np.tile([0.0, 0.5, 0.5, 0.0], (len(states), 1)), 4)
    drawn = draw_actions(policy, np.zeros((4, 1)), GivenDraws([0.0, 0.5 - 2**-53, 0.5, 1 - 2**-53]))
    assert drawn.tolist() == [1, 1, 2, 2]


def test_probabilities_that_rounding_took_below_one_still_give_an_action() -> None:
    policy = DiscretePolicy(lambda states: np.tile([0.3, 0.7 - 1e-9], (len(states), 1)), 2)
    assert draw_actions(policy, np.zeros((2, 1)), GivenDraws([0.0, 1 - 2**-53])).tolist() == [0, 1]


def test_starts_come_with_their_weights() -> None:
    class Weighted(Ladder):
        @property
        def starts(self) -> StartStates:
            return StartStates([[100.0], [200.0], [300.0]], [0.7, 0.3, 0.0])

    drawn = draw_starts(Weighted(), np.random.default_rng(0), 50_000)[:, 0]
    assert set(drawn) == {100.0, 200.0}
    assert np.mean(drawn == 100.0) == pytest.approx(0.7, abs=5 * math.sqrt(0.21 / 50_000))


# Values


@dataclass(frozen=True)
class Coin:
    """One state; action 1 pays one; every step ends the episode with probability `stop`, whatever was done."""

    stop: float
    horizon: int = 10
    name: str = "coin"
    reward_range: tuple[float, float] = (0.0, 1.0)
    reward_noise: bool = False
    state_box: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,), (0.0,))
    terminates: bool = True

    @property
    def actions(self) -> FloatArray:
        return np.array([[0.0], [1.0]])

    @property
    def starts(self) -> StartStates:
        return StartStates([[0.0]])

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        return Step(states, np.asarray(actions, dtype=float), rng.random(len(states)) < self.stop)


def paying(share: float) -> DiscretePolicy:
    return DiscretePolicy(lambda states: np.tile([1 - share, share], (len(states), 1)), 2)


@pytest.mark.parametrize(("share", "stop", "discount"), [(0.4, 0.1, 0.9), (1.0, 0.3, 0.95), (0.7, 0.0, 0.8)])
def test_the_value_and_its_standard_error_are_right(share: float, stop: float, discount: float) -> None:
    """G = A + discount * alive * G': the mean is share / (1 - goes), and the second moment follows in the same way."""
    episodes = 45_000  # more than two batches
    found = monte_carlo_value(Coin(stop), paying(share), np.random.default_rng(0), discount=discount, episodes=episodes)
    goes = discount * (1 - stop)
    mean = share / (1 - goes)
    spread = (share + 2 * goes * share * mean) / (1 - discount * goes) - mean**2
    assert found.episodes == episodes
    assert found.standard_error == pytest.approx(math.sqrt(spread / episodes), rel=0.03)
    # 4.5 standard errors: a false alarm has probability 7e-6.
    assert abs(found.value - mean) < 4.5 * math.sqrt(spread / episodes) + found.cut_off
    assert 0 < found.cut_off <= 1e-6 / (1 - discount)


def test_without_chance_the_value_is_exact() -> None:
    for discount, length in ((0.9, 7), (0.5, 1), (0.99, 200)):
        found = monte_carlo_value(Coin(0.0), paying(1.0), np.random.default_rng(0), discount=discount, episodes=2, length=length)
        assert found.value == pytest.approx((1 - discount**length) / (1 - discount), rel=1e-12)
        assert found.standard_error == 0
        assert found.value + found.cut_off == pytest.approx(1 / (1 - discount), rel=1e-12)


def test_returns_are_followed_until_the_rest_is_small() -> None:
    found = monte_carlo_value(Coin(0.0), paying(1.0), np.random.default_rng(0), discount=0.9, episodes=2)
    assert 0.9 * 1e-6 < found.cut_off * (1 - 0.9) <= 1e-6
    alone = monte_carlo_value(Coin(0.0), paying(1.0), np.random.default_rng(0), discount=0.0, episodes=2)
    assert (alone.value, alone.cut_off) == (1.0, 0.0)


def test_the_cut_off_counts_negative_rewards() -> None:
    found = monte_carlo_value(
        Coin(0.0, reward_range=(-3.0, 1.0)), paying(1.0), np.random.default_rng(0), discount=0.5, episodes=2, length=2
    )
    assert found.cut_off == pytest.approx(0.25 * 3 / 0.5)


def test_a_terminal_step_pays_and_nothing_after_it() -> None:
    """Lives of 3, 50 and 7 steps, one paid per step; the horizon of the logs does not cut returns."""
    task, discount = Ladder(), 0.9
    found = monte_carlo_value(task, paying(1.0), np.random.default_rng(0), discount=discount, episodes=30_000)
    worth = np.array([(1 - discount**life) / (1 - discount) for life in task.lives])
    assert abs(found.value - worth.mean()) < 4.5 * worth.std() / math.sqrt(30_000)
    assert found.standard_error == pytest.approx(worth.std() / math.sqrt(30_000), rel=0.02)


def test_batches_cover_all_episodes_and_share_no_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    drawn: list[float] = []

    class Counted(Coin):
        def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
            sizes.append(len(states))
            rewards = rng.random(len(states))
            drawn.extend(rewards)
            return Step(states, rewards, np.ones(len(states), dtype=bool))

    monkeypatch.setattr(sys.modules["accountable_ope.environments.control_task"], "BATCH", 7)
    found = monte_carlo_value(Counted(0.0), paying(1.0), np.random.default_rng(0), discount=0.9, episodes=20)
    assert sizes == [7, 7, 6] and len(set(drawn)) == 20
    assert found.value == pytest.approx(np.mean(drawn)) and found.episodes == 20
    assert found.standard_error == pytest.approx(np.std(drawn, ddof=1) / math.sqrt(20))


def test_the_policy_matters_to_the_puck() -> None:
    """Pushing with the motion climbs; pushing against it rests at the bottom, where nothing is paid."""
    task = PuckMountain()

    def value(sign: float) -> float:
        policy = DiscretePolicy(lambda s: np.eye(3)[(1 + np.sign(sign * s[:, 1])).astype(int)], task.actions)
        return monte_carlo_value(task, policy, np.random.default_rng(0), discount=0.95, episodes=100).value

    assert value(1.0) > 3 * value(-1.0) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 0}, "`episodes` must be a whole number of at least 1. Got 0"),
        ({"episodes": 2.5}, "`episodes` must be a whole number"),
        ({"episodes": True}, "`episodes` must be a whole number"),
        ({"episodes": 3, "length": 0}, "`length` must be a whole number of at least 1. Got 0"),
        ({"episodes": 3, "length": 1.0}, "`length` must be a whole number"),
    ],
)
def test_bad_roll_outs_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        roll_out(Ladder(), paying(0.5), np.random.default_rng(0), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"discount": 1.0}, r"`discount` must be in \[0, 1\). Got 1.0"),
        ({"discount": -0.1}, "`discount` must be in"),
        ({"discount": float("nan")}, "`discount` must be a finite number"),
        ({"episodes": 1}, "`episodes` must be a whole number of at least 2. Got 1"),
    ],
)
def test_bad_values_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        monte_carlo_value(Ladder(), paying(0.5), np.random.default_rng(0), **({"discount": 0.9, "episodes": 5} | arguments))
