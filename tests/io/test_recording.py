"""Gymnasium environments whose steps are written down."""

import sys

import gymnasium
import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.io import record_episodes, recorder


class Walk(gymnasium.Env):
    """A walk on 0, 1, ..., that ends at 3; actions are numbered from 1."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action):
        self.at += action - 1
        return self.at, float(self.at), self.at == 3, False, {}


def test_every_step_is_written_down():
    walk = recorder(Walk())
    walk.reset(seed=0)
    for action in (2, 1, 2, 2):
        walk.step(action)
    walk.reset()
    walk.step(2)
    data = walk.transitions()
    assert data.states[:, 0].tolist() == [0, 1, 1, 2, 0] and data.next_states[:, 0].tolist() == [1, 1, 2, 3, 1]
    assert data.actions.tolist() == [1, 0, 1, 1, 1] and data.rewards.tolist() == [1, 1, 2, 3, 1]
    assert data.terminated.tolist() == [False, False, False, True, False] and data.episodes.tolist() == [0, 0, 0, 0, 1]


def test_an_episode_that_was_cut_off_is_not_terminated():
    data = record_episodes(gymnasium.wrappers.TimeLimit(Walk(), 2), lambda seen: 2, episodes=3)
    assert len(data) == 6 and not data.terminated.any() and data.number_of_episodes == 3


def test_vectors_are_copied():
    data = record_episodes(gymnasium.make("Pendulum-v1", max_episode_steps=5), lambda seen: np.array([0.5]), episodes=2)
    assert data.states.shape == (10, 3) and data.actions.tolist() == [[0.5]] * 10
    assert (np.diff(data.states[:5], axis=0) != 0).any() and np.array_equal(data.next_states[0], data.states[1])


def test_probabilities_of_a_policy_are_logged_and_the_seed_decides(tmp_path):
    policy = aope.DiscretePolicy(lambda states: np.tile([0.25, 0.75], (len(states), 1)), actions=2)
    data = record_episodes(Walk(), policy, tmp_path / "walk.parquet", episodes=40, seed=7)
    assert data.terminated.sum() == 40
    assert set(zip(data.actions.tolist(), data.behavior_probability.tolist(), strict=True)) == {(0, 0.25), (1, 0.75)}
    assert 0.6 < data.actions.mean() < 0.9
    assert aope.load_transitions(tmp_path / "walk.parquet").sha256 == data.sha256
    assert record_episodes(Walk(), policy, episodes=40, seed=7).sha256 == data.sha256
    assert record_episodes(Walk(), policy, episodes=40, seed=8).sha256 != data.sha256


def test_an_episode_that_never_ends_is_cut_off():
    data = record_episodes(Walk(), lambda seen: 1, episodes=2, longest=5)
    assert len(data) == 10 and not data.terminated.any()


def test_other_wrappers_and_agents_take_it_for_an_environment():
    walk = gymnasium.wrappers.TimeLimit(recorder(Walk()), 3)
    assert isinstance(walk, gymnasium.Env) and walk.action_space == Walk.action_space


class Words(Walk):
    observation_space = gymnasium.spaces.Text(3)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (None, "must be a Gymnasium environment. Got None"),
        (Walk, "must be a Gymnasium environment. Got the class Walk"),
        (Words(), "observations of kind Box, .* Got Text"),
        (gymnasium.vector.SyncVectorEnv([Walk, Walk]), "Got a vector of several"),
    ],
)
def test_what_is_no_environment_is_refused(environment, message):
    with pytest.raises(aope.InvalidInput, match=message):
        recorder(environment)


def test_a_policy_of_other_actions_is_refused():
    policy = aope.DiscretePolicy(lambda states: np.full((len(states), 3), 1 / 3), actions=3)
    with pytest.raises(aope.InvalidInput, match="probabilities of the actions of the environment .2."):
        record_episodes(Walk(), policy, episodes=1)


def test_steps_before_a_reset_are_refused():
    with pytest.raises(aope.InvalidInput, match="must be reset before its first step"):
        recorder(Walk()).step(1)


def test_without_gymnasium_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(aope.MissingExtra, match="pip install"):
        recorder(None)


def test_a_policy_of_action_vectors_is_asked_for_as_a_function():
    policy = aope.DeterministicPolicy(lambda states: states[:, :1])
    with pytest.raises(aope.InvalidInput, match="must be a function of an observation that returns an action"):
        record_episodes(gymnasium.make("Pendulum-v1"), policy, episodes=1)
