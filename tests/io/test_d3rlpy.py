"""Datasets of the shape of d3rlpy's."""

from types import SimpleNamespace

import numpy as np
import pytest

import accountable_ope as aope


def episode(length=4, terminated=False, actions=None, **changes):
    found = {
        "observations": np.arange(2.0 * length, dtype=np.float32).reshape(length, 2),
        "actions": np.arange(length)[:, None] % 2 if actions is None else actions,
        "rewards": np.full((length, 1), 0.5, dtype=np.float32),
        "terminated": terminated,
    }
    return SimpleNamespace(**{name: each for name, each in {**found, **changes}.items() if each is not ...})


def dataset(*episodes, space=None):
    info = SimpleNamespace(action_space=SimpleNamespace(name=space))
    return SimpleNamespace(episodes=list(episodes), dataset_info=info)


def test_an_episode_that_was_cut_off_loses_its_last_row():
    data = aope.from_d3rlpy(dataset(episode(terminated=True), episode(3), space="DISCRETE"))
    assert len(data) == 6 and data.left_out == 1 and data.terminated.tolist() == [False] * 3 + [True] + [False] * 2
    assert data.next_states[:3].tolist() == data.states[1:4].tolist() and data.episodes.tolist() == [0, 0, 0, 0, 1, 1]
    assert data.actions.tolist() == [0, 1, 0, 1, 0, 1] and data.actions.dtype == np.int64


def test_pictures_are_flattened_and_actions_may_be_vectors():
    seen = np.zeros((4, 1, 3, 3), dtype=np.uint8)
    moves = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)
    data = aope.from_d3rlpy(dataset(episode(observations=seen, actions=moves), space="CONTINUOUS"))
    assert data.states.shape == (3, 9) and data.actions.shape == (3, 2)


def test_whole_numbers_of_a_continuous_space_are_no_indices():
    data = aope.from_d3rlpy(dataset(episode(), space="CONTINUOUS"))
    assert data.actions.shape == (3, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "Got None"),
        ("buffer.h5", "Got 'buffer.h5'"),
        (dataset(), "at least one episode"),
        (SimpleNamespace(episodes=[1, 2]), "Episode 0 has no `observations`"),
        (dataset(episode(), episode(terminated=...)), "Episode 1 has no `terminated`"),
        (dataset(episode(terminated=np.array([0, 1]))), "whether it is terminated"),
        (dataset(episode(rewards=np.zeros((3, 1)))), r"one reward per step. Episode 0: observations \(4, 2\).*rewards \(3, 1\)"),
        (dataset(episode(rewards=np.zeros((4, 2)))), "one reward per step"),
        (dataset(episode(observations=(np.zeros((4, 2)), np.zeros((4, 1))))), "Episode 0 has several, a tuple of them"),
        (dataset(episode(observations=np.full((4, 2), "x"))), "observations that are numbers"),
        (dataset(episode(observations=np.zeros((0, 2)))), "observations that are numbers, a row per step"),
        (dataset(episode(observations=np.full((4, 2), np.nan))), "NaN"),
        (dataset(episode(), episode(observations=np.zeros((4, 3)))), "of one shape"),
        (dataset(episode(actions=np.full((4, 1), 0.5)), space="DISCRETE"), "whole numbers for discrete actions. Got 0.5"),
        (dataset(episode(actions=np.full((4, 1), -1))), "indices from 0"),
        (dataset(episode(2)), "At most one row has a next state"),
        (dataset(episode(), episode(1)), "one row only"),
    ],
)
def test_what_is_refused(wrong, message):
    with pytest.raises(aope.InvalidInput, match=message) as caught:
        aope.from_d3rlpy(wrong)
    assert "\n" not in str(caught.value)


def test_what_d3rlpy_itself_makes():
    """Row by row what its own picker of transitions gives; only where it is installed, since it pins an old Gymnasium."""
    d3rlpy = pytest.importorskip("d3rlpy", reason="d3rlpy is not installed")
    rng = np.random.default_rng(0)
    ended, cut = np.zeros(12), np.zeros(12)
    ended[5] = cut[11] = 1
    seen, paid = rng.normal(size=(12, 3)).astype(np.float32), rng.random(12).astype(np.float32)
    made = d3rlpy.dataset.MDPDataset(seen, rng.integers(0, 2, 12), paid, ended, cut)
    data = aope.from_d3rlpy(made)
    steps = [made.transition_picker(each, k) for each in made.episodes for k in range(each.transition_count)]
    assert len(data) == made.transition_count == 11 and data.finite_actions
    for row, step in enumerate(steps):
        assert np.array_equal(step.observation, data.states[row]) and step.reward[0] == data.rewards[row]
        assert step.action[0] == data.actions[row] and bool(step.terminal) == data.terminated[row]
        assert step.terminal or np.array_equal(step.next_observation, data.next_states[row])
    again = d3rlpy.dataset.ReplayBuffer(d3rlpy.dataset.InfiniteBuffer(), episodes=made.episodes)
    assert aope.from_d3rlpy(again).sha256 == data.sha256
    moves = d3rlpy.dataset.MDPDataset(seen, rng.normal(size=(12, 2)).astype(np.float32), paid, ended, cut)
    assert aope.from_d3rlpy(moves).actions.shape == (11, 2)
