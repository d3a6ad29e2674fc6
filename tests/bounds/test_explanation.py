"""A rejection in the names of the log, and estimates of every kind that give the same diagnosis."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.adapters import sklearn_q
from accountable_ope.bounds.explanation import COLUMNS, _Words
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem import Categories
from accountable_ope.statistics import q_columns

MDP = PlantedMDP(seed=3, features=4, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=20, length=50)
NAMES = aope.Naming(["lactate", "age"], ["none", "some", "much"][: len(MDP.policy.action_vectors)])
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False)
OPTIONS = {"kernel": aope.Gaussian(1.0), "features": aope.RandomFourier(12, bandwidth=1.0, seed=4), "radius": "azuma"}
BUMP = np.array([0.6, -0.4])


def wrong(states, actions):
    return MDP.q(states, actions) + 2.0 * np.exp(-((states - BUMP) ** 2).sum(axis=1) / 0.3)


def asked(data):
    return aope.Problem(data, MDP.starts, MDP.policy, FACTS)


def test_a_rejection_is_explained_in_the_names_of_the_log():
    problem = asked(DATA.named(NAMES))
    found = aope.diagnose(wrong, problem, **OPTIONS)
    assert found.verdict.name == "REJECTED"
    seen = found.explanation
    columns = q_columns(wrong, problem.experience)
    for place, sentence, region in zip(seen.places, seen.sentences, found.witness.regions, strict=True):
        state = DATA.states[region.row]
        action = NAMES.actions[int(DATA.actions[region.row])]
        assert place == f"lactate {state[0]:.4g}, age {state[1]:.4g}, action {action}"
        assert place in sentence and ("too high" in sentence) == (region.witness < 0)
    assert [each.row for each in seen.rows] == found.witness.top_rows[:5].tolist()
    for row in seen.rows:
        i = row.row
        assert row.state == tuple(DATA.states[i]) and row.next_state == tuple(DATA.next_states[i])
        assert row.reward == DATA.rewards[i] and row.q == columns.at_data[i]
        assert row.onward == pytest.approx(0.6 * columns.at_next[i])
        assert row.residual == pytest.approx(DATA.rewards[i] + 0.6 * columns.at_next[i] - columns.at_data[i])
        assert f"row {i}: lactate" in row.sentence() and row.sentence("line 7").startswith("line 7: lactate")
    text = str(seen)
    assert all(sentence in text for sentence in seen.sentences) and "Rows to look at" in text
    assert seen.sentences[0] in found._repr_html_()


def test_columns_of_words_are_said_in_words():
    """What stands in columns of zeros and ones is one word, however many words there are beside it."""
    words = ("emergency", "general", "icu", "other", "surgery", "transplant")
    flags = np.eye(6)[np.arange(60) % 6]
    states = np.column_stack([flags, np.linspace(0, 1, 60)])
    states[7, :6] = 0.5  # between words, as a mean of rows may be
    log = aope.Transitions(states, np.arange(60) % 2, np.arange(60) % 2.0, states, episodes=np.zeros(60, dtype=int))
    names = aope.Naming([f"ward={each}" for each in words] + ["age"], categories=[Categories("ward", 0, words)])
    said = _Words(log.named(names))
    assert said.where(2) == f"ward icu, age {states[2, 6]:.4g}, action 0"
    assert said.where(7).startswith("ward=emergency 0.5, ward=general 0.5, ") and "..." not in said.where(7)


def test_names_change_no_number_and_are_not_needed():
    named, plain = (aope.diagnose(wrong, asked(data), **OPTIONS) for data in (DATA.named(NAMES), DATA))
    assert named.loss == plain.loss and named.interval.lower == plain.interval.lower
    assert plain.explanation.places[0].startswith("state_0 ")
    consistent = aope.diagnose(MDP.q, asked(DATA), **OPTIONS)
    assert consistent.verdict.name == "CONSISTENT"
    assert consistent.explanation.sentences[0] not in consistent._repr_html_()
    assert all("the estimate may be too" in each for each in consistent.explanation.sentences)  # chance may have made it


def test_the_end_of_an_episode_and_action_vectors_are_told():
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(60, 1)), rng.normal(size=(60, 2))
    data = aope.Transitions(states, actions, np.full(60, 0.5), states, terminated=np.ones(60, dtype=bool))
    policy = aope.DeterministicPolicy(lambda s: np.zeros((len(s), 2)))
    problem = aope.Problem(data, aope.StartStates([[0.0]]), policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    high = lambda s, a: np.full(len(s), 1.0)  # noqa: E731
    row = aope.diagnose(high, problem, features=aope.RandomFourier(5), kernel=aope.Gaussian(1.0)).explanation.rows[0]
    assert row.onward == 0 and row.next_state == () and "and the end" in row.sentence()
    assert row.action == tuple(actions[row.row])


def test_of_many_columns_the_unusual_ones_are_named():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(80, 12))
    states[:, 9] = 0.0
    data = aope.Transitions(states, rng.integers(0, 2, 80), np.full(80, 0.5), states)
    policy = aope.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), actions=2)
    problem = aope.Problem(data, aope.StartStates(states[:1]), policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    far = aope.diagnose(lambda s, a: np.full(len(s), 2.0), problem, features=aope.RandomFourier(5), kernel=aope.Gaussian(3.0))
    where = far.explanation.rows[0].where
    named = [int(word.removeprefix("state_")) for word in where.replace(",", "").split() if word.startswith("state_")]
    spread = np.where(states.std(axis=0) > 0, states.std(axis=0), np.inf)
    state = np.abs(states[far.explanation.rows[0].row] - np.median(states, axis=0)) / spread
    assert len(named) == COLUMNS and set(named) == set(np.argsort(-state)[:COLUMNS])
    assert "..." in where


class Fitted:
    """As FQE of d3rlpy."""

    def predict_value(self, x, action):
        return wrong(x, action)


class Trees:
    """As a regressor that was fitted on states beside one-hot or other vectors of actions."""

    n_features_in_ = 2 + MDP.policy.action_vectors.shape[1]

    def predict(self, rows):
        vectors = MDP.policy.action_vectors
        index = np.argmin(((rows[:, None, 2:] - vectors) ** 2).sum(axis=2), axis=1)
        return wrong(rows[:, :2], index)


def test_an_estimate_of_any_kind_has_one_diagnosis():
    problem = asked(DATA)
    wanted = aope.diagnose(wrong, problem, **OPTIONS)
    forms = (Fitted(), Trees(), sklearn_q(Trees(), MDP.policy.action_vectors), q_columns(wrong, problem.experience))
    for q in forms:
        found = aope.diagnose(q, problem, **OPTIONS)
        assert (found.loss, found.estimate, found.verdict) == (wanted.loss, wanted.estimate, wanted.verdict)
        assert found.interval.lower == wanted.interval.lower
    smallest = aope.correct(wrong, problem, **OPTIONS)
    for q in (Fitted(), Trees()):
        change = aope.correct(q, problem, **OPTIONS)
        assert change.norm == smallest.norm
        np.testing.assert_allclose(change(DATA.states, DATA.actions), smallest(DATA.states, DATA.actions))


def test_a_fitted_regressor_of_scikit_learn_is_diagnosed():
    ensemble = pytest.importorskip("sklearn.ensemble")
    for columns in (MDP.policy.action_vectors[DATA.actions], DATA.actions[:, None]):
        points = np.column_stack([DATA.states, columns])
        fitted = ensemble.ExtraTreesRegressor(20, random_state=0).fit(points, wrong(DATA.states, DATA.actions))
        assert aope.diagnose(fitted, asked(DATA), **OPTIONS).verdict.name == "REJECTED"


def test_what_is_no_estimate_is_refused():
    for q in (3, "q", object()):
        with pytest.raises(aope.InvalidInput, match="fitted regressor"):
            aope.diagnose(q, asked(DATA), **OPTIONS)
