"""Policies made of policies and of estimates."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.errors import InvalidInput

STATES = np.array([[0.0], [1.0], [3.0]])


def probabilities(policy, states=STATES):
    branches = list(policy.branches(states))
    assert [branch.action for branch in branches] == list(range(len(policy.action_vectors)))
    return np.column_stack([branch.weights for branch in branches])


def q(states, actions):
    return states[:, 0] * actions


GREEDY = aope.SoftmaxPolicy(q, actions=3)


def test_a_softmax_without_temperature_is_greedy():
    assert probabilities(GREEDY).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]  # the first of equals


def test_a_softmax_is_one():
    warm = probabilities(aope.SoftmaxPolicy(q, actions=3, temperature=0.5))
    wanted = np.exp(np.outer(STATES[:, 0], np.arange(3)) / 0.5)
    assert np.allclose(warm, wanted / wanted.sum(axis=1, keepdims=True))
    assert probabilities(aope.SoftmaxPolicy(q, actions=3, temperature=1e-300))[1].tolist() == [0, 0, 1]


def test_a_predictor_serves_as_q():
    class Fitted:
        def predict_value(self, states, actions):
            return q(states, actions)

    assert np.array_equal(probabilities(aope.SoftmaxPolicy(Fitted(), actions=3)), probabilities(GREEDY))


def test_epsilon_is_shared_by_all_actions():
    assert np.allclose(probabilities(aope.EpsilonGreedy(GREEDY, 0.3))[1], [0.1, 0.1, 0.8])
    assert np.array_equal(probabilities(aope.EpsilonGreedy(GREEDY, 0.0)), probabilities(GREEDY))


def test_a_mixture_is_the_mean_of_its_parts():
    warm = aope.SoftmaxPolicy(q, actions=3, temperature=1.0)
    mixed = aope.MixturePolicy([GREEDY, warm], [0.25, 0.75])
    assert np.allclose(probabilities(mixed), 0.25 * probabilities(GREEDY) + 0.75 * probabilities(warm))


def test_a_mixture_of_vectors_keeps_its_parts():
    mixed = aope.MixturePolicy([aope.DeterministicPolicy(lambda s: -s), aope.DeterministicPolicy(lambda s: s)])
    assert [(b.actions[1].tolist(), b.weights[1]) for b in mixed.branches(STATES)] == [([-1.0], 0.5), ([1.0], 0.5)]


def test_they_answer_a_question():
    data = aope.Transitions([[0.0], [1.0]] * 20, [0, 1] * 20, [0.0, 1.0] * 20, [[1.0], [0.0]] * 20)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    table = aope.TabularFeatures.grid([[0.0], [1.0]], np.eye(2))
    two = aope.SoftmaxPolicy(q, actions=2)
    for policy in (aope.EpsilonGreedy(two, 0.1), aope.MixturePolicy([two, aope.EpsilonGreedy(two, 1.0)]), two):
        problem = aope.Problem(data, aope.StartStates([[1.0]]), policy, facts)
        assert aope.bound_value(problem, features=table, kernel=aope.Tabular()).check()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: aope.EpsilonGreedy(aope.DeterministicPolicy(lambda s: s), 0.1), "finite action set"),
        (lambda: aope.EpsilonGreedy(GREEDY, 1.5), r"\[0, 1\]"),
        (lambda: aope.MixturePolicy([]), "at least one"),
        (lambda: aope.MixturePolicy([GREEDY, GREEDY], [0.5, 0.6]), "sum to one"),
        (lambda: aope.MixturePolicy([GREEDY, aope.SoftmaxPolicy(q, actions=2)]), "same actions"),
        (lambda: aope.MixturePolicy([aope.SampledPolicy(lambda s, g: s)]), "SampledPolicy"),
        (lambda: aope.MixturePolicy([aope.GaussianPolicy(lambda s: s, 1.0)]), "GaussianPolicy"),
        (lambda: aope.SoftmaxPolicy(3, actions=2), "predict_value"),
        (lambda: aope.SoftmaxPolicy(q, actions=2, temperature=-1.0), "at least 0"),
        (lambda: list(aope.SoftmaxPolicy(lambda s, a: s * np.nan, actions=2).branches(STATES)), "NaN"),
        (lambda: list(aope.SoftmaxPolicy(lambda s, a: [1.0], actions=2).branches(STATES)), "one value per row"),
    ],
)
def test_what_is_no_policy_is_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()
