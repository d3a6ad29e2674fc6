"""The equations of classic control against Gymnasium's own environments, step by step."""

import numpy as np
import pytest

from accountable_ope.environments.control_task import ControlTask
from accountable_ope.trust.classic import Acrobot, CartPole, MountainCar, Pendulum

SINGLE = 1e-5
"""Gymnasium shows states as single floats."""


def angles(state):
    return np.array([np.arctan2(state[1], state[0]), np.arctan2(state[3], state[2]), state[4], state[5]])


CASES = {
    "CartPole-v1": (CartPole(), lambda s: np.array(s), lambda a: a),
    "MountainCar-v0": (MountainCar(), lambda s: np.array(s), lambda a: a),
    "Acrobot-v1": (Acrobot(), angles, lambda a: a),
    "Pendulum-v1": (Pendulum(), lambda s: np.array([np.arctan2(s[1], s[0]), s[2]]), lambda a: Pendulum().actions[a]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step_is_gymnasiums(name):
    gymnasium = pytest.importorskip("gymnasium")
    task, inner, action_of = CASES[name]
    environment = gymnasium.make(name).unwrapped
    environment.reset(seed=0)
    rng = np.random.default_rng(0)
    states, ends = task.starts.states, 0
    for _ in range(60):
        actions = rng.integers(0, len(task.actions), len(states))
        found = task.step(states, actions, rng)
        for row in range(0, len(states), 7):
            environment.state = inner(states[row])
            environment.steps_beyond_terminated = None
            after, reward, terminated, _, _ = environment.step(action_of(actions[row]))
            np.testing.assert_allclose(found.next_states[row], after, atol=SINGLE, rtol=SINGLE)
            assert found.rewards[row] == pytest.approx(reward, abs=1e-9)
            assert found.terminated[row] == terminated
        ends += int(found.terminated.sum())
        states = np.where(found.terminated[:, None], task.starts.states, found.next_states)
    assert (ends > 0) == task.terminates  # both ways of a step were compared


@pytest.mark.parametrize("task", [CartPole(), MountainCar(), Acrobot(), Pendulum()], ids=lambda task: task.name)
def test_states_and_rewards_stay_where_they_are_said_to_be(task):
    assert isinstance(task, ControlTask)
    rng = np.random.default_rng(1)
    states = np.repeat(task.starts.states, 20, axis=0)
    low, high = np.array(task.state_box[0]), np.array(task.state_box[1])
    for _ in range(100):
        found = task.step(states, rng.integers(0, len(task.actions), len(states)), rng)
        assert (found.rewards >= task.reward_range[0]).all() and (found.rewards <= task.reward_range[1]).all()
        assert (found.next_states >= low - 1e-12).all() and (found.next_states <= high + 1e-12).all()
        states = np.where(found.terminated[:, None], np.repeat(task.starts.states, 20, axis=0), found.next_states)
