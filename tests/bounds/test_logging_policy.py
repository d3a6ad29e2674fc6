"""The value of the logging policy: returns by hand, honest tails, coverage at delta = .5, and what is refused."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp

import accountable_ope as aope
from accountable_ope.environments import bandit, chain, clinic, random_tabular
from accountable_ope.report.companions import logged_value_document

UNIFORM = np.full((3, 2), 0.5)
CHAIN = chain(3, discount=0.9)
DATA = CHAIN.sample_trajectories(UNIFORM, episodes=40, length=25, rng=np.random.default_rng(0))
FACTS = aope.Assumptions(discount=0.9, reward_range=(0, 1))


def names(statements) -> set[str]:
    return {each.name for each in statements}


def log(rewards, ended=True, start=0.0):
    """Episodes with these rewards; states count the steps."""
    states, after, paid, ends, labels = [], [], [], [], []
    for episode, values in enumerate(rewards):
        for time, value in enumerate(values):
            states.append(start + time)
            after.append(start + time + 1)
            paid.append(value)
            ends.append(ended and time == len(values) - 1)
            labels.append(episode)
    return aope.Transitions(states, [0] * len(states), paid, after, ends, labels)


# By hand.


def test_returns_of_episodes_that_ended():
    found = aope.logged_value(log([[1.0, 0.5], [0.0], [0.25, 0.25, 1.0]]), discount=0.5, reward_range=(0, 1))
    returns = [1.25, 0.0, 0.625]
    assert found.estimate == pytest.approx(np.mean(returns))
    assert found.standard_error == pytest.approx(np.std(returns, ddof=1) / math.sqrt(3))
    assert (found.episodes, found.truncated, found.truncation, found.count) == (3, 0, 0.0, 6)
    assert found.return_range == (0, 2) and found.normalized == pytest.approx((0.5 * found.lower, 0.5 * found.upper))
    exact = ttest_1samp(returns, 0).confidence_interval(0.9)
    assert found.large_sample == pytest.approx((max(exact.low, 0.0), exact.high))


def test_what_was_cut_off_is_anything_that_rewards_allow():
    data = log([[1.0, 0.5], [0.0]], ended=False)
    found = aope.logged_value(data, discount=0.5, reward_range=(-1, 1))
    # [1.25 +- .25 * 2] and [0 +- .5 * 2]
    assert found.truncated == 2 and found.truncation == pytest.approx((0.5 + 1.0) / 2)
    assert found.estimate == pytest.approx(0.625) and "truncated" in names(found.premises)
    within = aope.Assumptions(discount=0.5, reward_range=(0, 1), horizon=3)
    # one step left, and two: .25 * 1 and .5 * (1 + .5)
    assert aope.logged_value(data, assumptions=within).truncation == pytest.approx((0.125 + 0.375) / 2)
    last = aope.Assumptions(discount=0.5, reward_range=(0, 1), horizon=2)
    assert aope.logged_value(log([[1.0, 0.5], [0.0, 0.0]], ended=False), assumptions=last).truncated == 0


def test_rewards_that_never_vanish_leave_less_open():
    """Rewards in [.4, .6] without an end: what is cut off is worth .4 to .6 a step."""
    data = log([[0.5] * 3, [0.6] * 3], ended=False)
    facts = aope.Assumptions(discount=0.9, reward_range=(0.4, 0.6), terminates=False)
    found = aope.logged_value(data, assumptions=facts)
    assert found.return_range == pytest.approx((4, 6)) and found.truncation == pytest.approx(0.9**3)
    assert found.return_range[0] <= found.lower < found.upper <= found.return_range[1]


def test_the_end_alone_pays():
    mdp = clinic()
    table = np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 300, 500, np.random.default_rng(0))
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    found = aope.logged_value(data, assumptions=facts)
    assert found.truncated == 0 and found.estimate == pytest.approx(data.rewards.sum() / 300)
    assert found.return_range == (0, 1) and found.normalized == (found.lower, found.upper)
    assert mdp.value(table) in found and found.width < 0.25


def test_a_value_range_of_the_target_policy_is_not_used():
    declared = aope.Assumptions(discount=0.9, reward_range=(0, 1), value_range=(3, 4))
    one, other = (aope.logged_value(DATA, assumptions=each) for each in (FACTS, declared))
    assert (one.lower, one.upper, one.return_range) == (other.lower, other.upper, other.return_range)


def test_rows_of_episodes_may_be_interleaved():
    time = np.arange(len(DATA)) % 25
    mixed = DATA.rows(np.lexsort((np.arange(len(DATA)), time)))
    one, other = (aope.logged_value(each, discount=0.9, reward_range=(0, 1)) for each in (DATA, mixed))
    assert (one.estimate, one.lower, one.upper) == pytest.approx((other.estimate, other.lower, other.upper))


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.floats(-2, 3), min_size=1, max_size=6), min_size=2, max_size=8),
    st.just(0.0) | st.floats(1e-50, 0.95),
    st.booleans(),
    st.floats(0.02, 0.4),
)
def test_intervals_are_nested_and_hold_their_estimate_apart_from_the_tail(rewards, discount, ended, delta):
    data = log(rewards, ended)
    wide, narrow = (aope.logged_value(data, discount=discount, reward_range=(-2, 3), delta=d) for d in (delta, 2 * delta))
    assert wide.lower <= narrow.lower and narrow.upper <= wide.upper
    low, high = wide.return_range
    assert low <= wide.lower <= wide.estimate + wide.truncation + 1e-9
    assert wide.estimate - wide.truncation - 1e-9 <= wide.upper <= high
    doubled = aope.Transitions(data.states, data.actions, 2 * data.rewards, data.next_states, data.terminated, data.episodes)
    found = aope.logged_value(doubled, discount=discount, reward_range=(-4, 6), delta=delta)
    assert (found.lower, found.upper) == pytest.approx((2 * wide.lower, 2 * wide.upper), abs=1e-9)


# Coverage.


def test_half_of_the_intervals_may_miss_and_few_do():
    """At delta = .5: betting covers at least half; the t interval about half, which shows that the test can tell."""
    mdp = random_tabular(4, 2, seed=3, discount=0.6, bernoulli=True)
    table = np.random.default_rng(0).dirichlet(np.ones(2), size=4)
    truth, trials, hits, near = mdp.value(table), 300, 0, 0
    for trial in range(trials):
        data = mdp.sample_trajectories(table, 30, 15, np.random.default_rng([9, trial]))
        found = aope.logged_value(data, discount=0.6, reward_range=(0, 1), delta=0.5)
        hits += truth in found
        near += found.large_sample[0] <= truth <= found.large_sample[1]
    assert binom.cdf(hits, trials, 0.5) > 1e-3, hits / trials
    assert binom.cdf(near, trials, 0.5) > 1e-3 and binom.sf(near, trials, 0.5) > 1e-3, near / trials
    # With a premise that is wrong they miss: episodes of another policy.
    other = mdp.value(table[:, ::-1])
    assert abs(other - truth) > 0.09
    long = mdp.sample_trajectories(table, 3000, 15, np.random.default_rng(1))
    assert other not in aope.logged_value(long, discount=0.6, reward_range=(0, 1), delta=0.5)


def test_cut_off_by_what_happened():
    """A logger that stops after a payment: returns as logged are biased, the interval is not."""
    mdp, truth, missed, naive = chain(3, discount=0.8), chain(3, discount=0.8).value(UNIFORM), 0, 0
    for trial in range(100):
        data = mdp.sample_trajectories(UNIFORM, 60, 30, np.random.default_rng([8, trial]))
        paid = np.cumsum(data.rewards) - data.rewards
        begins = np.flatnonzero(np.diff(np.asarray(data.episodes), prepend=-1))
        before = paid - np.repeat(paid[begins], np.bincount(data.episodes))
        stopped = data.rows(before == 0)  # up to and with the first payment
        found = aope.logged_value(stopped, discount=0.8, reward_range=(0, 1), delta=0.5)
        missed += truth not in found
        as_logged = found.estimate - found.truncation  # the tail taken for nothing
        naive += as_logged + 3 * found.standard_error < truth
    assert missed <= 50 and naive == 100


def test_more_episodes_are_narrower_and_a_bandit_is_a_mean():
    mdp, table = bandit(3, 2, 0), np.full((3, 2), 0.5)
    widths = []
    for episodes in (50, 500):
        iid = mdp.sample_iid(episodes, np.random.default_rng(0))
        data = aope.Transitions(iid.states, iid.actions, iid.rewards, iid.next_states, episodes=np.arange(episodes))
        found = aope.logged_value(data, discount=0.0, reward_range=(0, 1))
        assert found.estimate == pytest.approx(iid.rewards.mean()) and found.truncated == 0 and mdp.value(table) in found
        widths.append(found.width)
    assert widths[1] < 0.5 * widths[0]


# What it says, and what it refuses.


def test_a_problem_is_asked_with_its_own_assumptions_and_start_states():
    asked = aope.Problem(DATA, CHAIN.starts(), CHAIN.policy(UNIFORM), FACTS)
    found, alone = aope.logged_value(asked), aope.logged_value(DATA, discount=0.9, reward_range=(0, 1))
    assert (found.lower, found.upper) == (alone.lower, alone.upper) and not found.doubts
    assert {"episodes", "starts", "rewards", "fixed-size", "truncated"} <= names(found.premises)
    elsewhere = aope.Problem(DATA, aope.StartStates([[1.0]]), CHAIN.policy(UNIFORM), FACTS)
    [statement] = aope.logged_value(elsewhere).doubts
    assert statement.name == "starts" and statement.parameter("elsewhere") == 40
    assert "few-episodes" in names(aope.logged_value(log([[1.0], [0.0]]), discount=0.5, reward_range=(0, 1)).doubts)


def test_as_a_document():
    found = aope.logged_value(DATA, discount=0.9, reward_range=(0, 1))
    document = json.loads(json.dumps(logged_value_document(found), allow_nan=False))
    assert document["guarantee"] == "finite-sample" and document["truncated"] == 40 and document["assumed"]


def test_one_reward_for_all_is_known():
    found = aope.logged_value(log([[1.0], [1.0]]), discount=0.0, reward_range=(1, 1))
    assert (found.lower, found.upper, found.estimate) == (1, 1, 1)


BOTH = {"discount": 0.5, "reward_range": (0, 1)}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: aope.logged_value(DATA), "`discount` and `reward_range` are needed, or `assumptions`"),
        (lambda: aope.logged_value(DATA, discount=0.9), "`discount` and `reward_range` are needed"),
        (lambda: aope.logged_value(DATA, assumptions=FACTS, discount=0.9), "not both"),
        (lambda: aope.logged_value(np.zeros(3), **BOTH), "`data` must be a Problem.*or of type Transitions"),
        (
            lambda: aope.logged_value(aope.Problem(DATA, CHAIN.starts(), CHAIN.policy(UNIFORM), FACTS), discount=0.9),
            "are those of the Problem",
        ),
        (
            lambda: aope.logged_value(DATA, assumptions=aope.AverageReward(reward_range=(0, 1), value_span=1.0)),
            "show no long-run average",
        ),
        (lambda: aope.logged_value(CHAIN.sample_iid(20, np.random.default_rng(0)), **BOTH), "`episodes` are needed"),
        (lambda: aope.logged_value(log([[1.0, 0.0]]), **BOTH), "At least two episodes are needed. Got one"),
        (lambda: aope.logged_value(DATA.rows(np.arange(len(DATA)) % 25 != 1), **BOTH), "a return has no gaps. Row 1 is"),
        (lambda: aope.logged_value(log([[1.0], [2.0]]), **BOTH), "`rewards` must lie in the declared reward_range"),
        (lambda: aope.logged_value(log([[1.0], [0.0]]), discount=1.0, reward_range=(0, 1)), "`discount` must be in"),
        (
            lambda: aope.logged_value(
                log([[1.0], [0.0]]), assumptions=aope.Assumptions(discount=1.0, reward_range=(0, 1), value_range=(0, 3))
            ),
            "`discount` 1 leaves returns without a bound",
        ),
        (lambda: aope.logged_value(DATA, **BOTH, delta=0.0), r"`delta` must be in \(0, 1\)"),
        (
            lambda: aope.logged_value(
                aope.Transitions([0.0, 1.0, 0.0], [0, 0, 0], [0, 0, 0], [1.0, 2.0, 1.0], [True, False, False], [0, 0, 1]), **BOTH
            ),
            "`terminated` is True in row 0, but its episode goes on",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(ask, message):
    with pytest.raises(aope.InvalidInput, match=message):
        ask()


# Logs that were cut.


def test_episodes_that_began_before_the_rows_do_not_count():
    steps = np.tile(np.arange(25), 40)
    beside = DATA.rows(np.argsort(steps, kind="stable"))  # all episodes side by side
    whole = aope.logged_value(beside, assumptions=FACTS)
    assert whole.lower == aope.logged_value(DATA, assumptions=FACTS).lower
    _, later = beside.split(0.2)
    with pytest.raises(aope.InvalidInput, match="all began before these rows"):
        aope.logged_value(later, assumptions=FACTS)
    middle = DATA.rows(slice(30, None))  # in the middle of the second episode
    assert (
        aope.logged_value(middle, assumptions=FACTS).lower
        == aope.logged_value(DATA.rows(slice(50, None)), assumptions=FACTS).lower
    )


def test_the_first_answer_compares_with_the_whole_log():
    world = chain(3, discount=0.6)
    data = world.sample_trajectories(UNIFORM, episodes=80, length=30, rng=np.random.default_rng(1))
    beside = data.rows(np.argsort(np.tile(np.arange(30), 80), kind="stable"))
    problem = aope.Problem(beside, world.starts(), world.policy(UNIFORM), aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    interval = aope.bound_value(problem)
    logged = interval.companions().logged
    assert logged is not None and logged.episodes == 80 and world.value(UNIFORM) in logged
    assert interval.better_than_logged().judgment is not aope.bounds.Judgment.SUPPORTED
