"""Weighted returns against loops and against exact expectations over all episodes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountable_ope import DeterministicPolicy, DiscretePolicy, InvalidInput, TabulatedPolicy, Transitions
from accountable_ope.baselines import episode_returns, return_range, taken_probabilities, truncation_gap

TARGET = np.array([[0.7, 0.3], [0.2, 0.8]])
LOGGED = np.array([[0.4, 0.6], [0.5, 0.5]])


def tabular(table):
    return DiscretePolicy(lambda states: np.asarray(table)[states[:, 0].astype(int)], 2)


def random_log(seed, episodes=6, longest=5):
    """Episodes that end after different numbers of steps; rewards in [-1, 2]."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=episodes)
    n = int(lengths.sum())
    label = np.repeat(np.arange(episodes), lengths)
    last = np.cumsum(lengths) - 1
    ended = np.zeros(n, dtype=bool)
    ended[last] = True
    state, action = rng.integers(0, 2, size=n), rng.integers(0, 2, size=n)
    return Transitions(state, action, rng.uniform(-1, 2, size=n), rng.integers(0, 2, size=n), ended, label)


def twin(data, discount, reward_range, horizon):
    """(returns, weights, whole-trajectory X and mirror, per-decision X and mirror) by loops that multiply."""
    low, high = reward_range
    total = sum(discount**t for t in range(horizon))
    found = []
    for label in range(data.number_of_episodes):
        rows = np.flatnonzero(data.episodes == label)[:horizon]
        weight, returned, x, mirrored = 1.0, 0.0, 0.0, 0.0
        for t in range(horizon):
            reward = 0.0
            if t < len(rows):
                s, a, reward = int(data.states[rows[t], 0]), int(data.actions[rows[t]]), data.rewards[rows[t]]
                weight *= TARGET[s, a] / LOGGED[s, a]
            returned += discount**t * reward
            x += discount**t * weight * (reward - low) / (total * (high - low))
            mirrored += discount**t * weight * (high - reward) / (total * (high - low))
        share = (returned - low * total) / (total * (high - low))
        found.append((returned, weight, weight * share, weight * (1 - share), x, mirrored))
    return np.array(found).T


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 0.9, 1.0]), st.integers(5, 8))
def test_weights_through_logarithms_are_products(seed, discount, horizon):
    data = random_log(seed)
    facts = {"discount": discount, "reward_range": (-1.0, 2.0), "horizon": horizon}
    found = episode_returns(data, tabular(TARGET), tabular(LOGGED), **facts)
    whole = found.whole_trajectory
    got = (found.returns, found.weights, whole.x, whole.mirrored, found.per_decision.x, found.per_decision.mirrored)
    for one, other in zip(got, twin(data, discount, (-1.0, 2.0), horizon), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert len(found) == 6


def test_rows_after_the_horizon_are_not_used():
    data = random_log(3, longest=9)
    lengths = np.bincount(data.episodes)
    assert lengths.max() > 4 > lengths.min()
    found = episode_returns(data, tabular(TARGET), tabular(LOGGED), discount=0.9, reward_range=(-1, 2), horizon=4)
    returned, weight, *_ = twin(data, 0.9, (-1.0, 2.0), 4)
    np.testing.assert_allclose(found.returns, returned)
    np.testing.assert_allclose(found.weights, weight)


def test_rows_of_episodes_may_be_interleaved():
    data = random_log(5)
    position = np.concatenate([np.arange(k) for k in np.bincount(data.episodes)])
    mixed = data.rows(np.lexsort((data.episodes, position)))
    facts = {"discount": 0.9, "reward_range": (-1, 2), "horizon": 5}
    plain, other = (episode_returns(one, tabular(TARGET), tabular(LOGGED), **facts) for one in (data, mixed))
    np.testing.assert_allclose(plain.per_decision.x, other.per_decision.x)


@pytest.mark.parametrize("reward", [(-1.0, 2.0), (0.0, 3.0)])
def test_expectations_are_exact(reward):
    """All episodes of a small process, each with its probability under the behavior policy: means are what they should be.

    Two states, two actions, three steps; from state 1 action 1 ends the episode. Rewards are a function of (s, a, s').
    """
    low, high = reward
    step = np.array([[[0.3, 0.7], [0.6, 0.4]], [[0.5, 0.5], [1.0, 0.0]]])
    pay = np.random.default_rng(1).uniform(low, high, size=(2, 2, 2))
    steps, discount = 3, 0.8
    paths = []
    for states in itertools.product(range(2), repeat=steps + 1):
        for actions in itertools.product(range(2), repeat=steps):
            ends = [t for t in range(steps) if (states[t], actions[t]) == (1, 1)]
            stop = ends[0] + 1 if ends else steps
            if any(states[stop + 1 :]) or any(actions[stop:]) or (ends and states[stop] != 0):
                continue  # what comes after the end is one and the same
            logged = 0.5 * math.prod(LOGGED[s, a] for s, a in zip(states[:stop], actions[:stop], strict=True))
            moved = math.prod(step[states[t], actions[t], states[t + 1]] for t in range(stop))
            target = 0.5 * math.prod(TARGET[s, a] for s, a in zip(states[:stop], actions[:stop], strict=True))
            if moved > 0:
                paths.append((states, actions, stop, bool(ends), logged * moved, target * moved))
    assert sum(path[4] for path in paths) == pytest.approx(1)
    assert sum(path[5] for path in paths) == pytest.approx(1)
    assert any(path[3] for path in paths) and not all(path[3] for path in paths)
    rows = [(label, path, t) for label, path in enumerate(paths) for t in range(path[2])]
    data = Transitions(
        [path[0][t] for _, path, t in rows],
        [path[1][t] for _, path, t in rows],
        [pay[path[0][t], path[1][t], path[0][t + 1]] for _, path, t in rows],
        [path[0][t + 1] for _, path, t in rows],
        [path[3] and t == path[2] - 1 for _, path, t in rows],
        [label for label, _, _ in rows],
    )
    found = episode_returns(data, tabular(TARGET), tabular(LOGGED), discount=discount, reward_range=reward, horizon=steps)
    logged, target = np.array([path[4] for path in paths]), np.array([path[5] for path in paths])
    truth, (least, most) = float(target @ found.returns), found.return_range
    share = (truth - least) / (most - least)
    assert logged @ found.weights == pytest.approx(1)
    for samples in (found.whole_trajectory, found.per_decision):
        assert logged @ samples.x == pytest.approx(share)
        assert logged @ samples.mirrored == pytest.approx(1 - share)
        assert samples.x.min() >= 0 and samples.mirrored.min() >= 0
    assert abs(logged @ found.returns - truth) > 0.05  # the weights matter


def test_long_episodes_neither_overflow_nor_lose_a_zero():
    """2,000 factors of 50, or of 1/50, or with one 0 among them."""
    steps = 2000
    states = np.concatenate([np.zeros(steps), np.ones(steps), np.zeros(steps)])
    actions = np.zeros(3 * steps, dtype=int)
    actions[-1] = 1
    data = Transitions(states, actions, np.full(3 * steps, 0.5), states, None, np.repeat([0, 1, 2], steps))
    policy, behavior = tabular([[1.0, 0.0], [0.02, 0.98]]), np.where(states == 0, 0.02, 1.0)
    found = episode_returns(data, policy, behavior, discount=0.99, reward_range=(0, 1), horizon=steps)
    np.testing.assert_allclose(found.log_weights[:2] / (steps * math.log(50)), [1, -1])
    assert found.log_weights[2] == -math.inf
    for samples in (found.whole_trajectory, found.per_decision):
        assert np.isfinite(samples.x).all() and np.isfinite(samples.mirrored).all()
        assert samples.x[0] == pytest.approx(1e150)
    np.testing.assert_array_equal(found.whole_trajectory.x[1:], 0)
    assert found.per_decision.x[1] == pytest.approx(0.02 / (2 * (1 - 0.99**steps) / 0.01), rel=0.03)


def test_probabilities_of_taken_actions():
    states, actions = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 0])
    data = Transitions(states, actions, np.zeros(4), states, None, [0, 0, 1, 1])
    np.testing.assert_allclose(taken_probabilities(tabular(TARGET), data), [0.3, 0.2, 0.8, 0.7])
    table = TabulatedPolicy([[0], [1]], TARGET, 2)
    np.testing.assert_allclose(taken_probabilities(table, data), [0.3, 0.2, 0.8, 0.7])


def test_range_and_gap():
    assert return_range(0.5, (-1.0, 2.0), 3) == pytest.approx((-1.75, 3.5))
    assert return_range(1.0, (0.0, 2.0), 3) == pytest.approx((0.0, 6.0))
    assert truncation_gap(0.95, (0.0, 1.0), 50) == pytest.approx(20 * 0.95**50)  # 7.7% of the range
    assert truncation_gap(0.5, (-3.0, 1.0), 2) == pytest.approx(1.5)
    assert truncation_gap(1.0, (0.0, 1.0), 10) == math.inf
    assert truncation_gap(0.0, (0.0, 1.0), 1) == 0


def log(rewards=(0.0, 1.0, 0.5, 0.5), terminated=None, episodes=(0, 0, 1, 1), actions=(0, 1, 1, 0)):
    return Transitions([0, 1, 1, 0], np.array(actions), list(rewards), [1, 0, 0, 1], terminated, episodes)


@pytest.mark.parametrize(
    ("data", "behavior", "changed", "message"),
    [
        (log(), [0.5, 0.0, 0.5, 0.5], {}, "`behavior` gives probability 0 to the action taken in row 1"),
        (log(), tabular([[0.5, 0.5], [1.0, 0.0]]), {}, "`behavior` gives probability 0 to the action taken in row 1"),
        (log(), [0.5, 0.5, 1.2, 0.5], {}, r"`behavior` must be probabilities, in \(0, 1\]. Got 1.2 in row 2"),
        (log(), [0.5, 0.5, 0.5, -0.1], {}, r"Got -0.1 in row 3"),
        (log(), [0.5, 0.5], {}, r"`behavior` must have one row per row of `states` \(4\). Got 2"),
        (log(), [0.5, math.nan, 0.5, 0.5], {}, "`behavior` has 1 NaN or infinite entry"),
        (log(episodes=None), [0.5] * 4, {}, "`episodes` are needed"),
        (log(episodes=(0, 0, 0, 0)), [0.5] * 4, {}, "At least two episodes are needed. Got one"),
        (log(rewards=(0, 1, 2, 0)), [0.5] * 4, {}, r"declared reward_range \[0, 1\]. Got 2 in row 2"),
        (log(terminated=[False, True, False, True]), [0.5] * 4, {"reward_range": (-1, -0.5)}, "rewards` must lie"),
        (
            log(rewards=(0.5, 1, 0.5, 1), terminated=[False, True, False, True]),
            [0.5] * 4,
            {"reward_range": (0.5, 1)},
            "must contain 0 where episodes terminate",
        ),
        (log(terminated=[True, False, False, False]), [0.5] * 4, {}, "`terminated` is True in row 0, but its episode goes on"),
        (log(), [0.5] * 4, {"horizon": 3}, "`horizon` is 3, but 2 episodes were cut off before, the first after 2 rows"),
        (log(), [0.5] * 4, {"horizon": 0}, "`horizon` must be a whole number of at least 1"),
        (log(), [0.5] * 4, {"discount": 1.1}, r"`discount` must be in \[0, 1\]. Got 1.1"),
        (log(), [0.5] * 4, {"reward_range": (1, 1)}, "`reward_range` must have low < high"),
        (log(actions=(0, 1, 2, 0)), [0.5] * 4, {}, "`actions` has index 2 in row 2, but `policy` has 2 actions"),
        (log(actions=[[0.0], [1.0], [1.0], [0.0]]), [0.5] * 4, {}, r"`policy` must have a method density\(states, actions\)"),
        (log(), DeterministicPolicy(lambda s: s), {}, "`behavior` must be a policy over a finite action set"),
    ],
)
def test_bad_input_is_one_sentence(data, behavior, changed, message):
    facts = {"discount": 0.9, "reward_range": (0.0, 1.0), "horizon": 2} | changed
    with pytest.raises(InvalidInput, match=message):
        episode_returns(data, tabular(TARGET), behavior, **facts)


def test_a_target_policy_without_probabilities_is_refused():
    with pytest.raises(InvalidInput, match="`policy` must be a policy over a finite action set"):
        episode_returns(log(), DeterministicPolicy(lambda s: s), [0.5] * 4, discount=0.9, reward_range=(0, 1), horizon=2)
