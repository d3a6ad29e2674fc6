"""The interval by importance sampling, on problems whose return over T steps is known."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.baselines import METHODS, betting_interval, episode_returns
from accountable_ope.environments import TabularMDP, bandit, chain, clinic, softmax_table

TRIALS, DELTA = 300, 0.1


def value_over(mdp: TabularMDP, table, steps: int) -> float:
    """E sum_{t<T} discount^t r_t by going back in time."""
    value = np.zeros(len(mdp.start))
    for _ in range(steps):
        value = (table * (mdp.mean_reward + mdp.discount * mdp.transition @ value)).sum(axis=1) * ~mdp.terminal
    return float(mdp.start @ value)


def tilted(mdp: TabularMDP, seed: int):
    """A target policy and a behavior policy that overlap well."""
    scores = np.random.default_rng(seed).normal(size=mdp.mean_reward.shape)
    return softmax_table(scores, 1.0), softmax_table(0.5 * scores, 1.0)


PROBLEMS = {
    "bandit": (bandit(4, 3, seed=1), 1, 400),
    "chain": (chain(4, 0.9, slip=0.2), 5, 400),
    "clinic": (clinic(seed=1), 6, 400),
}


def interval(mdp, steps, data, target, logged, **choices):
    return aope.baselines.importance_sampling_interval(
        data,
        mdp.policy(target),
        behavior=mdp.policy(logged),
        discount=mdp.discount,
        reward_range=(0.0, 1.0),
        horizon=steps,
        delta=DELTA,
        **choices,
    )


@pytest.mark.parametrize("estimator", ["per-decision", "trajectory"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_intervals_cover_the_return(name, method, estimator):
    mdp, steps, episodes = PROBLEMS[name]
    target, logged = tilted(mdp, 3)
    truth, rng = value_over(mdp, target, steps), np.random.default_rng(4)
    range_of_returns = (1 - mdp.discount**steps) / (1 - mdp.discount) if mdp.discount < 1 else steps
    misses, widths = 0, []
    for _ in range(TRIALS):
        data = mdp.sample_trajectories(logged, episodes, steps, rng)
        found = interval(mdp, steps, data, target, logged, method=method, estimator=estimator)
        misses += not found.lower <= truth <= found.upper
        widths.append(found.width)
        assert found.episodes == episodes
    assert binom.sf(misses - 1, TRIALS, DELTA) > 1e-6, misses
    assert np.mean(widths) < 0.6 * range_of_returns


def test_a_wrong_behavior_policy_is_caught():
    """That coverage can fail: the target policy taken for the behavior policy, so that all weights are 1."""
    mdp, steps, _ = PROBLEMS["bandit"]
    target, logged = tilted(mdp, 3)
    truth, rng = value_over(mdp, target, steps), np.random.default_rng(4)
    wrong = 0
    for _ in range(50):
        data = mdp.sample_trajectories(logged, 2000, steps, rng)
        found = interval(mdp, steps, data, target, target)
        wrong += not found.lower <= truth <= found.upper
    assert binom.sf(wrong - 1, 50, DELTA) < 1e-6


def test_probabilities_in_the_log_serve_as_well_as_a_policy():
    mdp, steps, episodes = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(0))
    column = logged[data.states[:, 0].astype(int), data.actions]
    facts = {"discount": mdp.discount, "reward_range": (0, 1), "horizon": steps}
    found = aope.baselines.importance_sampling_interval(data, mdp.policy(target), behavior=column, **facts)
    same = interval(mdp, steps, data, target, logged)
    assert (found.lower, found.upper) == pytest.approx((same.lower, same.upper))
    assert found.premises == same.premises


def test_each_estimator_weighs_in_its_own_way():
    mdp, steps, episodes = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(2))
    facts = {"discount": mdp.discount, "reward_range": (0, 1), "horizon": steps}
    weighed = episode_returns(data, mdp.policy(target), mdp.policy(logged), **facts)
    least, most = weighed.return_range
    for estimator, samples in (("per-decision", weighed.per_decision), ("trajectory", weighed.whole_trajectory)):
        found = interval(mdp, steps, data, target, logged, estimator=estimator)
        low, high = betting_interval(samples, DELTA)
        assert (found.lower, found.upper) == (least + low * (most - least), least + high * (most - least))
    assert not np.allclose(weighed.per_decision.x, weighed.whole_trajectory.x)


def test_units_of_the_reward_are_units_of_the_interval():
    """Rewards 3 r - 1 have returns 3 J - G, and intervals accordingly."""
    mdp, steps, episodes = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(1))
    other = aope.Transitions(data.states, data.actions, 3 * data.rewards - 1, data.next_states, None, data.episodes)
    plain = interval(mdp, steps, data, target, logged)
    moved = aope.baselines.importance_sampling_interval(
        other, mdp.policy(target), behavior=mdp.policy(logged), discount=0.9, reward_range=(-1, 2), horizon=steps
    )
    total = (1 - 0.9**steps) / 0.1
    assert (moved.lower, moved.upper) == pytest.approx((3 * plain.lower - total, 3 * plain.upper - total))


def test_what_was_assumed_is_listed():
    mdp, steps, episodes = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(1))
    found = interval(mdp, steps, data, target, logged, method="hcope", estimator="trajectory")
    assert found.method == "hcope, trajectory" and found.delta == DELTA
    assert found.estimand == "Return of the target policy over 5 steps"
    text = "\n".join(map(str, found.premises))
    assert "behavior probabilities" in text
    assert "Episodes are independent" in text
    assert "return over 5 steps; the value forever differs from it by at most 5.905" in text
    betting = interval(mdp, steps, data, target, logged)
    assert "Given the episodes before it" in "\n".join(map(str, betting.premises))
    forever = {"discount": 1.0, "reward_range": (0, 1), "horizon": 5, "behavior": mdp.policy(logged)}
    unbounded = aope.baselines.importance_sampling_interval(data, mdp.policy(target), **forever)
    assert "without a bound" in "\n".join(map(str, unbounded.premises))


def test_crossed_ends_refute_what_was_assumed():
    """Actions that the alleged behavior policy never prefers: weights of mean far above 1."""
    n = 200
    data = aope.Transitions(np.zeros(n), np.zeros(n, dtype=int), np.full(n, 0.5), np.zeros(n), None, np.arange(n))
    policy = aope.DiscretePolicy(lambda s: np.tile([0.9, 0.1], (len(s), 1)), 2)
    found = aope.baselines.importance_sampling_interval(
        data, policy, behavior=np.full(n, 0.1), discount=0.0, reward_range=(0, 1), horizon=1, delta=0.01
    )
    assert not found.consistent and found.lower > found.upper
    assert math.isfinite(found.lower) and math.isfinite(found.upper)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"method": "student"}, "`method` must be one of betting, hcope. Got 'student'"),
        ({"estimator": "weighted"}, "`estimator` must be one of per-decision, trajectory, doubly-robust. Got 'weighted'"),
        ({"delta": 0.0}, r"`delta` must be in \(0, 1\)"),
    ],
)
def test_bad_choices_are_one_sentence(choices, message):
    mdp, steps, _ = PROBLEMS["bandit"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, 20, steps, np.random.default_rng(0))
    facts = {"behavior": mdp.policy(logged), "discount": 0.0, "reward_range": (0, 1), "horizon": 1} | choices
    with pytest.raises(aope.InvalidInput, match=message):
        aope.baselines.importance_sampling_interval(data, mdp.policy(target), **facts)


def declared(mdp, steps, data, target, logged, facts, **choices):
    return aope.baselines.importance_sampling_interval(
        data, mdp.policy(target), behavior=mdp.policy(logged), horizon=steps, assumptions=facts, delta=DELTA, **choices
    )


@pytest.mark.parametrize("estimator", ["per-decision", "trajectory"])
@pytest.mark.parametrize("method", METHODS)
def test_declared_assumptions_are_honored_and_the_interval_covers(method, estimator):
    """Only the end pays: the range of returns is that of one payment, not of six; a value range cuts the ends."""
    mdp, steps, episodes = PROBLEMS["clinic"]
    target, logged = tilted(mdp, 3)
    truth, rng = value_over(mdp, target, steps), np.random.default_rng(5)
    facts = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1), terminal_reward=True)
    narrow = aope.Assumptions(mdp.discount, (0, 1), (0.0, 0.97), terminal_reward=True, horizon=steps)
    misses, plain, sharp = 0, [], []
    for _ in range(100):
        data = mdp.sample_trajectories(logged, episodes, steps, rng)
        plain.append(interval(mdp, steps, data, target, logged, method=method, estimator=estimator))
        sharp.append(declared(mdp, steps, data, target, logged, facts, method=method, estimator=estimator))
        misses += truth not in sharp[-1]
    assert misses <= binom.ppf(0.999, 100, DELTA)
    assert np.mean([each.width for each in sharp]) < 0.7 * np.mean([each.width for each in plain])
    assert all(0 <= each.lower <= each.upper <= 1 for each in sharp)
    cut = declared(mdp, steps, data, target, logged, narrow, method=method, estimator=estimator)
    assert cut.upper == min(sharp[-1].upper, 0.97) and cut.return_range == (0, 0.97)
    assert {"terminal-reward", "values"} <= {statement.name for statement in cut.premises}


def test_a_value_range_allows_for_what_comes_after_the_horizon():
    mdp, steps, episodes = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(6))
    facts = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1), value_range=(1.0, 4.0))
    assert declared(mdp, steps, data, target, logged, facts).return_range == (0.0, pytest.approx(4.0))
    assert 4.0 * 0.9**5 > 1.0  # so low says nothing here, and does where the horizon is long
    ended = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1), value_range=(1.0, 4.0), horizon=5)
    assert declared(mdp, steps, data, target, logged, ended).return_range == (1.0, 4.0)


def test_what_contradicts_the_assumptions_is_refused_here_too():
    mdp, steps, episodes = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(6))
    facts = aope.Assumptions(discount=mdp.discount, reward_range=(0, 1), terminal_reward=True)
    with pytest.raises(aope.InvalidInput, match="only the end of an episode pays"):
        declared(mdp, steps, data, target, logged, facts)
    with pytest.raises(aope.InvalidInput, match="not both"):
        declared(mdp, steps, data, target, logged, facts, discount=0.9)
    with pytest.raises(aope.InvalidInput, match="`discount` and `reward_range` are needed"):
        declared(mdp, steps, data, target, logged, None)
