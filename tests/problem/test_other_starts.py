"""Episodes that do not begin where the target policy is asked to start: found, and hardly ever where they do."""

from __future__ import annotations

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.problem.other_starts import OTHER_STARTS, starts_p_value

TWO = np.array([[0.0], [1.0]])


def test_the_distance_by_hand() -> None:
    """Three of four begin in state 1, which has half of the weight: D = 1/4."""
    begins = np.array([[0.0], [1.0], [1.0], [1.0]])
    assert starts_p_value(np.repeat(begins, 25, axis=0), aope.StartStates(TWO)) == pytest.approx(2 * np.exp(-2 * 100 / 16))
    drawn = aope.StartStates(np.repeat(TWO, 50, axis=0), exact=False)
    assert starts_p_value(np.repeat(begins, 25, axis=0), drawn) == pytest.approx(2 * np.exp(-2 * 50 / 16))


def test_their_own_first_states_are_no_others() -> None:
    begins = np.random.default_rng(0).normal(size=(50, 3))
    assert starts_p_value(begins, aope.StartStates(begins, exact=False, fixed=False)) == 1.0


@pytest.mark.parametrize("exact", [True, False])
def test_level_and_power(exact: bool) -> None:
    """Of 2000 logs at most a few are found that do begin there; all of which a fifth begins elsewhere."""
    rng, weights = np.random.default_rng(1), np.array([0.6, 0.4])

    def found(share: float) -> bool:
        begins = (rng.uniform(size=(400, 1)) < share).astype(float)
        starts = (
            aope.StartStates(TWO, weights)
            if exact
            else aope.StartStates((rng.uniform(size=(400, 1)) < 0.4).astype(float), exact=False)
        )
        return starts_p_value(begins, starts) < OTHER_STARTS

    assert sum(found(0.4) for _ in range(2000)) <= 8, "binomial(2000, .001) exceeds 8 with a probability of .0002"
    assert sum(found(0.6) for _ in range(50)) >= 48


def test_a_policy_is_not_better_than_itself_from_better_starts() -> None:
    """The logged policy and the target are one; but severe patients, of whom rewards are low, are asked for less often."""
    rng, n = np.random.default_rng(0), 600
    states = (rng.uniform(size=(n, 1)) < 0.3).astype(float)
    rewards = (rng.uniform(size=n) < np.where(states[:, 0] == 1, 0.9, 0.1)).astype(float)
    actions = rng.integers(0, 2, n)
    data = aope.Transitions(states, actions, rewards, states, np.ones(n, bool), np.arange(n))
    coin = aope.DiscretePolicy(lambda at: np.full((len(at), 2), 0.5), actions=2)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    problem = aope.Problem(data, aope.StartStates(TWO, weights=[0.05, 0.95]), coin, facts)
    table = aope.TabularFeatures.grid(TWO, coin.action_vectors)
    interval = aope.bound_value(problem, features=table, kernel=aope.Tabular())
    ruling = interval.better_than_logged()
    assert (ruling.judgment.name, ruling.if_true) == ("DOUBTED", None), "it is not the class that is doubted"
    assert "SUPPORTED" not in str(ruling) and "from other starts" in str(ruling)
    assert "not comparable" in interval.verdict().sentence
    compared = aope.compare(problem, [aope.NamedPolicy("coin", coin)], features=table, kernel=aope.Tabular())
    best = compared.decide("coin")
    assert (best.judgment.name, best.if_true) == ("DOUBTED", None) and "SUPPORTED" not in str(best)
    assert "from other starts" in compared.verdict
    alike = aope.Problem(data, data.first_states(), coin, facts)
    assert aope.bound_value(alike, features=table, kernel=aope.Tabular()).better_than_logged().judgment.name == "UNDECIDED"


def test_the_column_that_differs_most_is_named_and_a_sample_may_be_declared() -> None:
    rng, n = np.random.default_rng(0), 400
    states = np.column_stack([rng.normal(size=n), rng.normal(1.0, 1.0, n)])
    rows = aope.Transitions(states, np.zeros(n, int), rng.uniform(size=n), states, np.ones(n, bool), np.arange(n))
    data = rows.named(aope.Naming(states=["age", "lactate"]))
    stay = aope.DiscretePolicy(lambda at: np.ones((len(at), 1)), actions=1)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))

    def doubts(starts: aope.StartStates) -> str:
        return " ".join(map(str, aope.logged_value(aope.Problem(data, starts, stay, facts)).doubts))

    others = rng.normal(size=(n, 2))
    assert "column lactate differs most" in doubts(aope.StartStates(others, exact=False))
    assert "400 of 400 episodes begin in states" in doubts(aope.StartStates(others))
    assert "`--sampled-starts`" in doubts(aope.StartStates(others))
