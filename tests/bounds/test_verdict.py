"""The verdict: what is said first must follow from the numbers, for every status and tier."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.bounds.companions import Companions
from accountable_ope.bounds.decision import Judgment, compared
from accountable_ope.bounds.verdict import outward, verdict_of
from accountable_ope.environments import PlantedMDP, random_tabular

MDP = PlantedMDP(seed=3, features=5, discount=0.8)
KERNEL = aope.Gaussian(1.0)
WORLD = random_tabular(4, 2, seed=2, discount=0.8, bernoulli=True)
UNIFORM = np.full((4, 2), 0.5)


def planted(radius="certified", features=None, trajectories=40, **changes):
    data = MDP.sample(np.random.default_rng(0), trajectories=trajectories, length=30)
    facts = {"discount": 0.8, "reward_range": (0, 1), "norm_bound": 1.5 * MDP.norm, "reward_noise": False, **changes}
    problem = aope.Problem(data, MDP.starts, MDP.policy, aope.Assumptions(**facts))
    return aope.bound_value(problem, features=MDP.features() if features is None else features, kernel=KERNEL, radius=radius)


def tabular(table, episodes=300, length=25, logger=UNIFORM, starts=None, delta=0.1, radius="certified"):
    log = WORLD.sample_trajectories(logger, episodes, length, np.random.default_rng(0))
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1))
    policy = WORLD.policy(table)
    problem = aope.Problem(log, WORLD.starts() if starts is None else starts, policy, facts)
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors)
    return aope.bound_value(problem, features=features, kernel=aope.Tabular(), delta=delta, radius=radius)


@pytest.fixture(scope="module")
def ordinary():
    return tabular(np.tile([0.52, 0.48], (4, 1)))  # hardly another policy than the logged one


@pytest.fixture(scope="module")
def doubted():
    return planted(features=aope.RandomFourier(dimension=2, bandwidth=1.0, seed=0))


def part(verdict, name):
    return next(each for each in verdict.parts if each.name == name)


def test_the_sentence_has_the_interval_the_logged_value_and_what_follows(ordinary):
    verdict = ordinary.verdict()
    low, high = outward(ordinary.lower, ordinary.upper)
    assert verdict.sentence.startswith(f"With 90% confidence the new policy's value lies between {low} and {high}; the logged")
    assert float(low) <= ordinary.lower <= ordinary.upper <= float(high)
    logged = ordinary.companions().logged
    assert part(verdict, "logged").parameter("lower") == logged.lower
    assert verdict.decision.judgment is compared(ordinary, logged, 0.1).judgment is Judgment.UNDECIDED
    assert verdict.sentence.endswith("not enough data to say that it is better.")
    assert "What a practitioner would bet on, for many rows" in verdict.second_line and "What is proved" in verdict.second_line
    shown = ordinary._repr_html_().replace("&#39;", "'")
    assert verdict.sentence in shown and str(verdict).splitlines()[0] == verdict.sentence


@pytest.mark.slow
def test_better_and_worse_are_said_only_at_half_of_delta_each():
    best = WORLD.q_values(UNIFORM).argmax(axis=1)
    found = tabular(np.eye(2)[best], episodes=2000, logger=np.eye(2)[1 - best] * 0.8 + 0.1)
    ruling = found.better_than_logged()
    assert ruling.judgment is Judgment.SUPPORTED and ruling.delta == 0.1
    assert "each with 95% confidence and both together with 90%" in str(ruling)
    assert found.verdict().sentence.endswith(": it is better.") and found.verdict().decision.judgment is Judgment.SUPPORTED
    wider, logged = found.rebound.at(0.05), aope.logged_value(found.rebound.problem, delta=0.05)
    assert wider.lower > logged.upper and wider.lower <= found.lower
    worst = tabular(np.eye(2)[1 - best], episodes=2000, logger=np.eye(2)[best] * 0.8 + 0.1)
    assert worst.verdict().decision.judgment is Judgment.REFUTED and worst.verdict().sentence.endswith("it is not better.")


def test_what_is_apart_at_delta_each_but_not_at_half_of_it_is_not_called_better(ordinary):
    """The sentence claims both intervals at once, so that two at delta each are not enough."""
    logged = ordinary.companions().logged
    gap = replace(ordinary, lower=logged.upper + 1e-9, upper=logged.upper + 1.0)
    verdict = verdict_of(gap, ordinary.companions())
    assert verdict.decision.judgment is Judgment.UNDECIDED  # asked again at delta / 2, of the interval as it is
    assert compared(gap, logged, 0.1).judgment is Judgment.SUPPORTED


def test_doubted_leads_with_what_does_not_rest_on_the_class(doubted):
    verdict = doubted.verdict()
    crossed = doubted.companions().crossed
    assert doubted.status is aope.Status.DOUBTED
    assert verdict.sentence.startswith("The class is doubted (p ")
    assert outward(crossed.lower, crossed.upper)[0] in verdict.sentence
    low, high = outward(doubted.lower, doubted.upper)
    assert verdict.second_line.startswith(f"Only if the class contains Q: with 90% confidence between {low} and {high}.")
    assert verdict.decision is not None and verdict.decision.judgment is Judgment.DOUBTED


def test_doubted_without_a_large_sample_interval(doubted):
    assert "is not known without it" in verdict_of(doubted).sentence


def test_a_doubted_norm_bound_is_named():
    small = planted(norm_bound=0.7 * MDP.norm, trajectories=80)
    if small.status is aope.Status.DOUBTED:
        assert small.verdict().sentence.startswith("The norm bound is doubted")
    else:
        assert small.status is aope.Status.INCONSISTENT


def test_vacuous_and_inconsistent_say_so():
    vacuous = planted("hoeffding", trajectories=4).verdict()
    assert vacuous.sentence.startswith("These data and assumptions do not bound the new policy's value: anything from 0 to 5")
    assert "Nothing is proved" in vacuous.second_line
    refuted = planted(features=aope.RandomFourier(dimension=2, bandwidth=1.0, seed=5), trajectories=300)
    assert refuted.status is aope.Status.INCONSISTENT
    verdict = refuted.verdict()
    assert verdict.sentence.startswith("No function of the class fits: ") and "lies between" not in verdict.sentence
    assert refuted.decide(0.5).judgment is Judgment.INCONSISTENT and verdict.decision.judgment is Judgment.INCONSISTENT


def test_asymptotic_radii_say_for_many_rows():
    assert (
        planted("wild").verdict().sentence.startswith("For many rows, with 90% confidence, the new policy's value lies between")
    )


def test_unknown_episodes_leave_the_logged_policy_out_with_a_reason():
    data = MDP.sample(np.random.default_rng(0), trajectories=10, length=30)
    rows = aope.Transitions(data.states, data.actions, data.rewards, data.next_states)
    facts = aope.Assumptions(discount=0.8, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False)
    problem = aope.Problem(rows, MDP.starts, MDP.policy, facts)
    found = aope.bound_value(problem, features=MDP.features(), kernel=KERNEL, radius="azuma")
    verdict = found.verdict()
    assert "logged policy" not in verdict.sentence and verdict.decision is None
    assert "The logged policy's value is left out: `episodes` are needed" in verdict.second_line
    with pytest.raises(aope.InvalidInput, match="`episodes` are needed"):
        found.better_than_logged()


def test_logged_episodes_that_start_elsewhere_are_not_compared():
    found = tabular(np.eye(2)[[0, 1, 0, 1]], starts=aope.StartStates([[3.0]]))
    assert found.better_than_logged().judgment is Judgment.DOUBTED
    assert "from other starts" in found.verdict().sentence and "not comparable" in found.verdict().sentence


def test_an_average_reward_has_a_verdict_without_companions():
    data = MDP.sample(np.random.default_rng(0), trajectories=20, length=30)
    facts = aope.AverageReward(reward_range=(0, 1), norm_bound=3.0, value_span=1.0)
    found = aope.bound_average_reward(data, MDP.policy, facts, features=MDP.features(), kernel=KERNEL, radius="azuma")
    verdict = found.verdict()
    assert "average reward" in verdict.sentence and verdict.decision is None and verdict.second_line == ""
    assert found.breakdown() is None
    with pytest.raises(aope.InvalidInput, match="no value of the logged policy"):
        found.better_than_logged()


def test_decisions_follow_the_ends(ordinary):
    low, high = ordinary.lower, ordinary.upper
    assert ordinary.decide(low).judgment is Judgment.SUPPORTED
    assert ordinary.decide(np.nextafter(low, 9)).judgment is Judgment.UNDECIDED
    assert ordinary.decide(high).judgment is Judgment.UNDECIDED
    assert ordinary.decide(np.nextafter(high, 9)).judgment is Judgment.REFUTED
    assert ordinary.decide(low).decided and not ordinary.decide(high).decided
    assert ordinary.verdict(at_least=low).decision.claim == f"value >= {low:g}"


def test_a_doubted_interval_decides_nothing_but_what_the_declared_range_does(doubted):
    inside = doubted.decide(doubted.lower - 0.01)
    assert inside.judgment is Judgment.DOUBTED and inside.if_true is Judgment.SUPPORTED and "SUPPORTED" in str(inside)
    assert doubted.decide(-1.0).judgment is Judgment.SUPPORTED  # rewards are at least 0
    assert doubted.decide(6.0).judgment is Judgment.REFUTED  # and values at most 5


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_numbers_are_rounded_outward_to_two_digits_of_the_width(lower, width):
    upper = lower + width
    low, high = (float(each) for each in outward(lower, upper))
    slack = 1e-8 * max(1.0, abs(lower), abs(upper))
    assert low <= lower + slack and high >= upper - slack
    assert (high - low) <= 1.25 * (upper - lower) + slack


def test_companions_are_those_of_the_same_rows_and_made_once(ordinary):
    first = ordinary.companions()
    assert first is ordinary.companions()
    assert first.logged.lower == aope.logged_value(ordinary.rebound.problem).lower
    assert Companions().why_missing("no-logged-value") == ""


@pytest.mark.parametrize(("lower", "upper"), [(1e8 + 0.2, 1e8 + 0.3), (2500000.1234, 2500000.1334), (1e10 - 9.4, 1e10 + 10.4)])
def test_large_numbers_are_rounded_outward_too(lower, upper):
    low, high = (float(each) for each in outward(lower, upper))
    assert low <= lower and upper <= high


def test_next_to_the_whole_range_reads_like_nothing(ordinary):
    low, high = ordinary.ranges.value
    wide = replace(ordinary, lower=low + 0.01 * (high - low), upper=high)
    assert verdict_of(wide).sentence.startswith("These data and assumptions hardly bound the new policy's value: between 0.0")
    half = replace(ordinary, lower=0.5 * (low + high), upper=high)
    assert verdict_of(half).sentence.startswith("With 90% confidence")


def test_a_threshold_that_no_value_reaches_is_not_refuted_by_the_data(ordinary):
    found = ordinary.decide(at_least=30.0)
    assert found.judgment is Judgment.REFUTED
    assert found.statement.text == "REFUTED: value >= 30, as every possible value lies in [0, 5], whatever the data say."
