"""Recorded probabilities: what carries them, and the weights that they give to rows."""

import dataclasses
import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope import DeterministicPolicy, DiscretePolicy, InvalidInput, Transitions
from accountable_ope.environments import bandit, clinic, softmax_table
from accountable_ope.problem import first_rows, propensity_weights, taken_probabilities, with_propensities

TARGET = np.array([[0.7, 0.3], [0.2, 0.8]])
LOGGED = np.array([[0.4, 0.6], [0.5, 0.5]])
GAMMA = 0.8
FIELDS = [field.name for field in dataclasses.fields(Transitions)]


def tabular(table):
    return DiscretePolicy(lambda states: np.asarray(table)[states[:, 0].astype(int)], 2)


def random_log(seed, rows=30, labels=6, recorded=True):
    """Rows of several episodes, interleaved or not."""
    rng = np.random.default_rng(seed)
    state, action, label = (rng.integers(0, k, size=rows) for k in (2, 2, labels))
    probability = LOGGED[state, action] if recorded else None
    return Transitions(state, action, rng.uniform(size=rows), rng.integers(0, 2, size=rows), None, label, probability)


def changed(data, **fields):
    return Transitions(**{name: getattr(data, name) for name in FIELDS} | fields)


# --- the column


def test_the_column_goes_wherever_the_rows_go():
    data = random_log(0)
    assert data.rows(slice(3, 9)).behavior_probability.tolist() == data.behavior_probability[3:9].tolist()
    earlier, later = data.split(0.5)
    both = np.concatenate([earlier.behavior_probability, later.behavior_probability])
    assert both.tolist() == data.behavior_probability.tolist()
    joined = first_rows([data, data], 40)
    assert joined.behavior_probability.tolist() == [*data.behavior_probability, *data.behavior_probability[:10]]
    with pytest.raises(InvalidInput, match="`parts` must all have `behavior_probability`, or none. 1 of 2 have it"):
        first_rows([data, random_log(1, recorded=False)], 40)
    with pytest.raises(ValueError, match="read-only"):
        data.behavior_probability[0] = 1.0


def test_only_rows_that_have_it_get_another_fingerprint():
    plain = Transitions([0.0, 1.0], [0, 1], [0.5, 0.0], [1.0, 0.0], [False, True], [0, 0])
    lines = [
        f"{name} {shape} {hashlib.sha256(np.array(numbers, dtype='<f8').tobytes()).hexdigest()}\n"
        for name, shape, numbers in (
            ("states", "2 1", [0, 1]),
            ("actions", "2", [0, 1]),
            ("rewards", "2", [0.5, 0]),
            ("next_states", "2 1", [1, 0]),
            ("terminated", "2", [0, 1]),
            ("episodes", "2", [0, 0]),
        )
    ]
    assert plain.sha256 == hashlib.sha256("".join(lines).encode()).hexdigest()  # as docs/certificates.md says
    assert changed(plain, behavior_probability=[0.5, 0.5]).sha256 != plain.sha256
    assert changed(plain, behavior_probability=[0.5, 0.5]).sha256 != changed(plain, behavior_probability=[0.5, 0.6]).sha256


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 0.0, 0.5], r"`behavior_probability` must be that of the logged action, in \(0, 1\]. Got 0 in row 1"),
        ([0.5, 1.5, 0.5], r"in \(0, 1\]. Got 1.5 in row 1"),
        ([0.5, np.nan, 0.5], "`behavior_probability` has 1 NaN or infinite entry, first in row 1"),
        ([0.5, 0.5], r"`behavior_probability` must have one row per row of `states` \(3\). Got 2"),
        ([[0.5, 0.5]] * 3, "`behavior_probability` must be one number per row"),
        (["0.5"] * 3, "`behavior_probability` must be numbers"),
    ],
)
def test_what_is_no_probability_is_one_sentence(given, message):
    with pytest.raises(InvalidInput, match=message):
        Transitions(np.zeros(3), [0, 1, 0], np.zeros(3), np.zeros(3), behavior_probability=given)


def test_densities_may_exceed_one_and_must_be_positive():
    vectors = np.zeros((3, 1))
    assert Transitions(vectors, vectors, np.zeros(3), vectors, behavior_probability=[0.1, 7.0, 2.0]).behavior_probability[1] == 7
    with pytest.raises(InvalidInput, match="the density of the logged action, which is positive. Got -1 in row 2"):
        Transitions(vectors, vectors, np.zeros(3), vectors, behavior_probability=[0.1, 7.0, -1.0])


def test_a_known_policy_is_recorded():
    data = random_log(0, recorded=False)
    found = with_propensities(data, tabular(LOGGED))
    assert found.behavior_probability.tolist() == random_log(0).behavior_probability.tolist()
    assert all(np.array_equal(getattr(found, name), getattr(data, name)) for name in FIELDS[:-1])
    with pytest.raises(InvalidInput, match="`behavior` gives probability 0 to the action taken in row"):
        with_propensities(data, tabular([[1.0, 0.0], [1.0, 0.0]]))


# --- the weights


def twin(data, discount, scale):
    """By loops that multiply."""
    weights = []
    for i in range(len(data)):
        episode = [k for k in range(i + 1) if data.episodes[k] == data.episodes[i]]
        product = scale(episode[0], int(data.episodes[i])) * discount ** (len(episode) - 1)
        for k in episode:
            s, a = int(data.states[k, 0]), int(data.actions[k])
            product *= TARGET[s, a] / data.behavior_probability[k]
        weights.append(product)
    return weights


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 1.0]), st.integers(1, 30))
def test_weights_are_products_over_the_episode_so_far(seed, discount, labels):
    data = random_log(seed, labels=labels)
    found = propensity_weights(data, tabular(TARGET), discount)
    assert found == pytest.approx(twin(data, discount, lambda first, before: first / before if before else 1.0))
    planned = propensity_weights(data, tabular(TARGET), discount, rows_per_episode=7)
    assert planned == pytest.approx(twin(data, discount, lambda first, before: 7))


@given(st.integers(0, 10**6), st.integers(1, 28))
def test_no_weight_depends_on_what_comes_after_its_action(seed, row):
    """Everything after row i is replaced, and so are the reward and the next state of row i itself."""
    one, other = random_log(seed, labels=3), random_log(seed + 1, labels=8)

    def until(name):
        """Rows up to i from the first log, all others from the second; the outcome of row i already from the second."""
        last = row if name in ("rewards", "next_states") else row + 1
        return np.concatenate([getattr(one, name)[:last], getattr(other, name)[last:]])

    mixed = Transitions(*(until(name) for name in FIELDS))
    kept = propensity_weights(mixed, tabular(TARGET), 0.9)[: row + 1]
    assert kept.tolist() == propensity_weights(one, tabular(TARGET), 0.9)[: row + 1].tolist()


def episodes_of(mdp, table, longest):
    """(probability, rows) of every episode, which all end within `longest` steps."""
    states, actions = mdp.mean_reward.shape

    def onward(state, steps):
        if mdp.terminal[state]:
            yield 1.0, ()
            return
        assert steps > 0, "an episode does not end"
        for action, after in itertools.product(range(actions), range(states)):
            chance = table[state, action] * mdp.transition[state, action, after]
            if chance > 0:
                for rest, rows in onward(after, steps - 1):
                    yield chance * rest, ((state, action, after), *rows)

    for first in np.flatnonzero(mdp.start):
        for chance, rows in onward(first, longest):
            yield mdp.start[first] * chance, rows


def layered():
    """Two steps and the end: 0 -> 1 or 2 or the end -> the end (3)."""
    transition = np.zeros((4, 2, 4))
    transition[0, 0], transition[0, 1] = [0, 0.5, 0.3, 0.2], [0, 0.1, 0.6, 0.3]
    transition[1:, :, 3] = 1.0
    reward = np.random.default_rng(0).uniform(size=(4, 2))
    return aope.environments.TabularMDP(transition, reward, GAMMA, [0.6, 0.4, 0, 0], terminal=[False, False, False, True])


def test_the_weighted_residual_of_features_has_the_gradient_of_the_value_as_its_mean():
    """E sum_t discount^t rho_{0:t} Z_t = c0, over all episodes and for every feature (s, a), exactly."""
    mdp, rng = layered(), np.random.default_rng(3)
    target, logged = (softmax_table(rng.normal(size=(4, 2)), 1.0) for _ in range(2))
    chances, rows = zip(*episodes_of(mdp, logged, 3), strict=True)
    assert sum(chances) == pytest.approx(1)
    s, a, after = np.array([row for episode in rows for row in episode]).T
    label = np.repeat(np.arange(len(rows)), [len(episode) for episode in rows])
    data = Transitions(s, a, np.zeros(len(s)), after, mdp.terminal[after], label, logged[s, a])
    weights = propensity_weights(data, mdp.policy(target), GAMMA, rows_per_episode=1)
    z = np.zeros((len(s), 4, 2))
    z[np.arange(len(s)), s, a] = 1.0
    onward = GAMMA * target[after] * ~mdp.terminal[after][:, None]
    z[np.arange(len(s)), after] -= onward
    mean = np.einsum("i,isa->sa", np.array(chances)[label] * weights, z)
    assert mean == pytest.approx(mdp.start[:, None] * target)
    # And a wrong probability is not aimed there: the test has power.
    wrong = changed(data, behavior_probability=np.full(len(s), 0.5))
    elsewhere = np.einsum("i,isa->sa", np.array(chances)[label] * propensity_weights(wrong, mdp.policy(target), GAMMA), z)
    assert np.abs(elsewhere - mdp.start[:, None] * target).max() > 0.01


def test_as_a_mean_over_rows_the_weights_estimate_the_gradient():
    """With scales that only the past decides, and episodes of random lengths."""
    mdp = clinic(seed=1)
    scores = np.random.default_rng(3).normal(size=mdp.mean_reward.shape)
    target, logged = softmax_table(scores, 1.0), softmax_table(0.5 * scores, 1.0)
    rolled = mdp.sample_trajectories(logged, 20_000, 50, np.random.default_rng(0))
    data = with_propensities(rolled, mdp.policy(logged))
    weights = propensity_weights(data, mdp.policy(target), mdp.discount)
    states, actions = data.states[:, 0].astype(int), data.actions
    value = mdp.q_values(target)
    after = np.where(data.terminated, 0.0, (target * value).sum(axis=1)[data.next_states[:, 0].astype(int)])
    # Z of Q itself, so that c0 is the value.
    estimate = weights @ (value[states, actions] - mdp.discount * after) / len(data)
    assert estimate == pytest.approx(mdp.value(target), rel=0.05)


def test_rows_without_labels_are_episodes_where_nothing_follows():
    data = changed(random_log(0), episodes=None)
    ratios = taken_probabilities(tabular(TARGET), data) / data.behavior_probability
    assert propensity_weights(data, tabular(TARGET), 0.0) == pytest.approx(ratios)
    ended = changed(data, terminated=np.ones(len(data)))
    assert propensity_weights(ended, tabular(TARGET), 0.9) == pytest.approx(ratios)
    with pytest.raises(InvalidInput, match="`episodes` are needed: the weight of a row is a product over its episode so far"):
        propensity_weights(data, tabular(TARGET), 0.9)


def test_long_episodes_neither_overflow_nor_lose_a_zero():
    n = 3000
    state = np.zeros(n)
    data = Transitions(state, np.zeros(n, int), state, state, None, np.zeros(n, int), np.full(n, 0.1))
    weights = propensity_weights(data, tabular(TARGET), 1.0)
    assert np.isfinite(weights).all() and weights.max() == pytest.approx(1e60)
    actions = np.zeros(n, int)
    actions[10] = 1
    never = tabular([[1.0, 0.0], [1.0, 0.0]])
    weights = propensity_weights(changed(data, actions=actions), never, 1.0)
    assert (weights[:10] > 0).all() and not weights[10:].any()


class Uniform:
    """A density on [0, width]."""

    exact, action_vectors = True, None

    def __init__(self, width):
        self.width = width

    def branches(self, states):
        raise NotImplementedError

    def density(self, states, actions):
        return np.where((actions[:, 0] >= 0) & (actions[:, 0] <= self.width), 1 / self.width, 0.0)


def test_action_vectors_need_a_density():
    rng = np.random.default_rng(0)
    actions = rng.uniform(0, 2, size=(20, 1))
    data = Transitions(np.zeros(20), actions, np.zeros(20), np.zeros(20), behavior_probability=np.full(20, 0.5))
    assert propensity_weights(data, Uniform(1.0), 0.0) == pytest.approx(np.where(actions[:, 0] <= 1, 2.0, 0.0))
    with pytest.raises(InvalidInput, match=r"a method density\(states, actions\).*DeterministicPolicy gives none"):
        propensity_weights(data, DeterministicPolicy(lambda states: states), 0.0)


@pytest.mark.parametrize(
    ("fields", "discount", "message"),
    [
        ({"behavior_probability": None}, 0.9, "`behavior_probability` is needed: the data do not say"),
        ({"terminated": np.arange(30) == 0}, 0.9, "`terminated` is True in row 0, but its episode goes on after it"),
        ({}, 1.5, r"`discount` must be in \[0, 1\]. Got 1.5"),
        ({"actions": np.full(30, 2)}, 0.9, "`actions` has index 2 in row 0, but `policy` has 2 actions"),
    ],
)
def test_what_is_missing_is_one_sentence(fields, discount, message):
    with pytest.raises(InvalidInput, match=message):
        propensity_weights(changed(random_log(0), **fields), tabular(TARGET), discount)


# --- the question


def asked(data, **choices):
    facts = aope.Assumptions(discount=GAMMA, reward_range=(0, 1))
    return aope.Problem(data, aope.StartStates([[0.0]]), tabular(TARGET), facts, **choices)


def test_a_problem_uses_them_only_where_asked():
    data = random_log(0)
    assert asked(data).propensity_weights is None and not asked(data).propensities
    problem = asked(data, propensities=True)
    assert problem.propensity_weights.tolist() == propensity_weights(data, tabular(TARGET), GAMMA).tolist()
    assert problem.part(data.rows(slice(0, 9))).propensity_weights.tolist() == problem.propensity_weights[:9].tolist()
    with pytest.raises(InvalidInput, match="`behavior_probability` is needed"):
        asked(random_log(0, recorded=False), propensities=True)
    sampled = aope.SampledPolicy(lambda states, generator: np.eye(2)[generator.integers(0, 2, len(states))])
    facts = aope.Assumptions(discount=GAMMA, reward_range=(0, 1))
    with pytest.raises(InvalidInput, match="finite action set"):
        aope.Problem(data, aope.StartStates([[0.0]]), sampled, facts, propensities=True)


def test_what_is_known_of_a_log_stays_known_with_propensities():
    mdp = bandit(1, 2, seed=0)
    coin = mdp.policy([[0.5, 0.5]])
    log = mdp.sample_iid(20, np.random.default_rng(0), [[0.5, 0.5]])
    labeled = aope.Transitions(log.states, log.actions, log.rewards, log.next_states, episodes=np.repeat(np.arange(4), 5))
    later = labeled.rows(slice(3, None)).having_left_out(4)
    found = with_propensities(later, coin)
    assert found.left_out == 4 and found.headless.tolist() == later.headless.tolist() and found.headless.any()
    assert first_rows([later, later], 20).left_out == 8
