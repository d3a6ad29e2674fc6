"""Doubly robust returns: their means by enumeration, their limits, and how often intervals miss."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope import InvalidInput, Transitions
from accountable_ope.baselines import (
    BoundedSamples,
    CorrectedReturns,
    DoublyRobust,
    betting_lower,
    corrected_interval,
    corrected_returns,
    episode_returns,
    fit_returns,
    importance_sampling_interval,
    return_range,
)
from accountable_ope.baselines.doubly_robust import Setting, corrected, two_sides
from accountable_ope.baselines.episodes import read_episodes
from accountable_ope.environments import TabularMDP, bandit, chain, clinic, softmax_table
from accountable_ope.problem import with_propensities

STEPS = 3


def value_over(mdp, table, steps):
    """E sum_{t<T} discount^t r_t by going back in time."""
    value = np.zeros(len(mdp.start))
    for _ in range(steps):
        value = (table * (mdp.mean_reward + mdp.discount * mdp.transition @ value)).sum(axis=1) * ~mdp.terminal
    return float(mdp.start @ value)


def tilted(mdp, seed, heat=0.5):
    """A target policy and a behavior policy that overlap well."""
    scores = np.random.default_rng(seed).normal(size=mdp.mean_reward.shape)
    return softmax_table(scores, 1.0), softmax_table(heat * scores, 1.0)


def ending(seed):
    """Two states and an end, rewards by state and action in [-1, 2]."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(3), size=(3, 2))
    return TabularMDP(transition, rng.uniform(-1, 2, size=(3, 2)), 0.9, [0.5, 0.5, 0.0], terminal=[False, False, True])


def every_episode(mdp, logged):
    """(chances, Transitions) of all episodes of at most three steps."""
    found = []
    for first, *moves in itertools.product(range(2), *[list(itertools.product(range(2), range(3)))] * STEPS):
        chance, state, rows = mdp.start[first], first, []
        for action, after in moves:
            chance *= logged[state, action] * mdp.transition[state, action, after]
            rows.append((state, action, after))
            state = after
            if mdp.terminal[after]:
                break
        found.append((chance, tuple(rows)))
    # Moves after the end were enumerated too: an episode counts once.
    unique = dict(reversed([(rows, chance) for chance, rows in found]))
    chances = np.array(list(unique.values()))
    assert chances.sum() == pytest.approx(1)
    s, a, after = np.array([row for rows in unique for row in rows]).T
    label = np.repeat(np.arange(len(unique)), [len(rows) for rows in unique])
    return chances, Transitions(s, a, mdp.mean_reward[s, a], after, mdp.terminal[after], label, logged[s, a])


def all_returns(mdp, target, logged, estimate, setting, floor=None):
    """(chances, low X, mirrored X, J) with this estimate (T, S, A), f and B."""
    chances, data = every_episode(mdp, logged)
    behavior = mdp.policy(logged) if floor is None else None
    episodes = read_episodes(data, mdp.policy(target), behavior, floor, mdp.discount, (-1.0, 2.0), STEPS, False)

    def guess(states, actions, left):
        return estimate[left - 1, states[:, 0].astype(int), actions[:, 0].astype(int)]

    low, mirrored = (corrected(episodes, side, setting)[0] for side in two_sides(episodes, mdp.policy(target), guess))
    return chances, low, mirrored, value_over(mdp, target, STEPS)


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0.01, 5.0))
@settings(max_examples=40)
def test_means_are_on_the_safe_side_whatever_the_estimate_and_the_clipping(seed, share, reach):
    mdp, rng = ending(seed), np.random.default_rng(seed)
    target, logged = tilted(mdp, seed, heat=-1.0)
    estimate = rng.normal(0, 3, size=(STEPS, 3, 2))
    least, most = return_range(0.9, (-1.0, 2.0), STEPS)
    for floor in (None, 0.9 * logged.min()):
        chances, low, mirrored, truth = all_returns(mdp, target, logged, estimate, Setting(share, reach), floor)
        assert chances @ low <= truth + 1e-9 and chances @ mirrored <= -truth + 1e-9
        assert (low >= least - reach - 1e-9).all() and (mirrored >= -most - reach - 1e-9).all()


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=20)
def test_without_clipping_means_are_exact(seed, share):
    mdp, rng = ending(seed), np.random.default_rng(seed)
    target, logged = tilted(mdp, seed)
    estimate = rng.normal(0, 3, size=(STEPS, 3, 2))
    chances, low, mirrored, truth = all_returns(mdp, target, logged, estimate, Setting(share, 1e6))
    assert (chances @ low, chances @ mirrored) == pytest.approx((truth, -truth))


def test_the_formula_of_the_literature():
    """Where nothing is clipped: V(s_0) + sum_t discount^t w_t (r_t + discount V(s_{t+1}) - Q(s_t, a_t)), by loops."""
    mdp = ending(3)
    target, logged = tilted(mdp, 3)
    estimate = np.random.default_rng(3).uniform(-0.5, 0.5, size=(STEPS, 3, 2))  # inside all ranges
    _, low, mirrored, _ = all_returns(mdp, target, logged, estimate, Setting(1.0, 1e6))
    _, data = every_episode(mdp, logged)
    for label in range(data.number_of_episodes):
        rows = np.flatnonzero(data.episodes == label)
        values = np.einsum("tsa,sa->ts", estimate, target)
        weight, x = 1.0, values[STEPS - 1, int(data.states[rows[0], 0])]
        for t, row in enumerate(rows):
            s, a, after = int(data.states[row, 0]), int(data.actions[row]), int(data.next_states[row, 0])
            weight *= target[s, a] / logged[s, a]
            onward = 0.0 if data.terminated[row] or t == STEPS - 1 else values[STEPS - t - 2, after]
            x += 0.9**t * weight * (data.rewards[row] + 0.9 * onward - estimate[STEPS - t - 1, s, a])
        assert (low[label], mirrored[label]) == pytest.approx((x, -x))


def test_without_an_estimate_it_is_importance_sampling_per_decision():
    mdp = ending(5)
    target, logged = tilted(mdp, 5)
    _, low, mirrored, _ = all_returns(mdp, target, logged, np.zeros((STEPS, 3, 2)), Setting(0.0, 0.0))
    _, data = every_episode(mdp, logged)
    facts = {"discount": 0.9, "reward_range": (-1.0, 2.0), "horizon": STEPS}
    weighed = episode_returns(data, mdp.policy(target), **facts)  # with the probabilities that the data have
    least, most = weighed.return_range
    # The two differ where an episode has ended: here 0 is paid at once, there step by step, at the same weight.
    assert low == pytest.approx(least + (most - least) * weighed.per_decision.x)
    assert mirrored == pytest.approx(-most + (most - least) * weighed.per_decision.mirrored)


def test_the_exact_estimate_leaves_nothing_to_chance_but_the_state():
    """A bandit with fixed rewards and the true Q: every X is V(s)."""
    mdp, rng, n = bandit(4, 3, seed=1), np.random.default_rng(0), 400
    target, logged = tilted(mdp, 1)
    s = rng.integers(0, 4, size=n)
    a = np.array([rng.choice(3, p=logged[k]) for k in s])
    data = Transitions(s, a, mdp.mean_reward[s, a], s, np.ones(n, bool), np.arange(n), logged[s, a])
    policies = mdp.policy(target), mdp.policy(logged)
    episodes = read_episodes(data, *policies, None, 0.0, (0.0, 1.0), 1, False)

    def truth(states, actions, left):
        return mdp.mean_reward[states[:, 0].astype(int), actions[:, 0].astype(int)]

    values = (target * mdp.mean_reward).sum(axis=1)[s]
    for side, sign in zip(two_sides(episodes, policies[0], truth), (1, -1), strict=True):
        x, lost = corrected(episodes, side, Setting(1.0, 100.0))
        assert x == pytest.approx(sign * values) and not lost.any()


def test_fitted_returns_are_those_of_the_process():
    mdp = clinic(seed=1)
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, 20_000, 6, np.random.default_rng(0))
    ranges = np.array([(0.0, 0.0), *(return_range(mdp.discount, (0, 1), k) for k in range(1, 7))])
    fitted = fit_returns(data, mdp.policy(target), None, ranges, mdp.discount)
    states = np.flatnonzero(~mdp.terminal & (np.bincount(data.states[:, 0].astype(int), minlength=len(mdp.start)) > 2000))
    value = np.zeros(len(mdp.start))
    for left in range(1, 7):
        q = mdp.mean_reward + mdp.discount * mdp.transition @ value
        value = (target * q).sum(axis=1) * ~mdp.terminal
        for action in range(q.shape[1]):
            found = fitted(states[:, None].astype(float), np.full((len(states), 1), float(action)), np.full(len(states), left))
            assert found == pytest.approx(q[states, action], abs=0.05)


def test_with_many_states_the_fit_is_quadratic():
    rng = np.random.default_rng(0)
    s = rng.uniform(-1, 1, size=(3000, 2))
    a = rng.integers(0, 2, size=3000)
    data = Transitions(s, a, 0.5 + 0.2 * s[:, 0] * s[:, 1] + 0.1 * a, s, np.ones(3000, bool))
    policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    fitted = fit_returns(data, policy, None, np.array([[0.0, 0.0], [0.0, 1.0]]), 0.0)
    at = np.array([[0.5, -0.5]])
    assert fitted(at, np.array([[0.0, 1.0]]), np.array([1])) == pytest.approx([0.55], abs=0.01)


# --- intervals

PROBLEMS = {
    "bandit": (bandit(4, 3, seed=1), 1, 150),
    "chain": (chain(4, 0.9, slip=0.2), 5, 100),
    "clinic": (clinic(seed=1), 6, 100),
}


def robust(mdp, steps, data, target, logged, **choices):
    return importance_sampling_interval(
        data,
        mdp.policy(target),
        **{"behavior": mdp.policy(logged), "estimator": "doubly-robust"}
        | {"discount": mdp.discount, "reward_range": (0.0, 1.0), "horizon": steps}
        | choices,
    )


@pytest.mark.parametrize("method", ["betting", "hcope"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_intervals_cover_the_return(name, method):
    mdp, steps, episodes = PROBLEMS[name]
    target, logged = tilted(mdp, 3)
    truth, rng, trials = value_over(mdp, target, steps), np.random.default_rng(4), 200
    misses = 0
    for _ in range(trials):
        data = mdp.sample_trajectories(logged, episodes, steps, rng)
        misses += truth not in robust(mdp, steps, data, target, logged, method=method, delta=0.5)
    assert binom.sf(misses - 1, trials, 0.5) > 1e-6, misses


def test_a_hopeless_estimate_and_no_overlap_are_covered_too():
    """The estimate says the opposite of the truth, and the logger never takes one of the actions."""
    mdp = bandit(3, 3, seed=2)
    target = np.full((3, 3), 1 / 3)
    logged = np.tile([0.5, 0.5, 0.0], (3, 1))
    truth, rng = value_over(mdp, target, 1), np.random.default_rng(0)
    wrong = DoublyRobust(q=lambda states, actions: 1 - mdp.mean_reward[states[:, 0].astype(int), actions[:, 0].astype(int)])
    for _ in range(20):
        data = mdp.sample_trajectories(logged, 300, 1, rng)
        found = robust(mdp, 1, data, target, logged, estimator=wrong)
        assert truth in found and found.width > 1 / 3  # a third of the value is not known from such data


def test_a_wrong_behavior_policy_is_caught():
    """That coverage can fail."""
    mdp, steps, _ = PROBLEMS["bandit"]
    target, logged = tilted(mdp, 3)
    truth, rng = value_over(mdp, target, steps), np.random.default_rng(4)
    wrong = 0
    for _ in range(20):
        data = mdp.sample_trajectories(logged, 2000, steps, rng)
        off = DoublyRobust(q=lambda states, actions: np.zeros(len(states)))  # nothing to lean on
        wrong += truth not in robust(mdp, steps, data, target, logged, behavior=mdp.policy(target), estimator=off)
    assert wrong > 12


@pytest.mark.parametrize("name", ["chain", "clinic"])
def test_what_is_foretold_need_not_be_weighted(name):
    mdp, steps, _ = PROBLEMS[name]
    target, logged = tilted(mdp, 3)
    data = mdp.sample_trajectories(logged, 2000, steps, np.random.default_rng(1))
    plain = robust(mdp, steps, data, target, logged, estimator="per-decision")
    found = robust(mdp, steps, data, target, logged)
    assert found.width < 0.6 * plain.width
    assert found.method == "betting, doubly-robust" and found.episodes == 1900


def test_recorded_probabilities_serve_with_a_declared_least():
    mdp, steps, _ = PROBLEMS["chain"]
    target, uniform = tilted(mdp, 3)[0], np.full((4, 2), 0.5)
    rolled = mdp.sample_trajectories(uniform, 300, steps, np.random.default_rng(1))
    data = with_propensities(rolled, mdp.policy(uniform))
    known = robust(mdp, steps, data, target, uniform)
    found = robust(mdp, steps, data, target, uniform, behavior=None, estimator=DoublyRobust(least_probability=0.5))
    assert (found.lower, found.upper) == pytest.approx((known.lower, known.upper))
    assert {"least-probability"} == {each.name for each in found.premises} - {each.name for each in known.premises}
    looser = robust(mdp, steps, data, target, uniform, behavior=None, estimator=DoublyRobust(least_probability=0.2))
    assert looser.width > 0.9 * found.width
    with pytest.raises(InvalidInput, match="`least_probability` of DoublyRobust is needed"):
        robust(mdp, steps, data, target, uniform, behavior=None)
    with pytest.raises(InvalidInput, match="`least_probability` is declared as 0.6, but row 0 has 0.5"):
        robust(mdp, steps, data, target, uniform, behavior=None, estimator=DoublyRobust(least_probability=0.6))
    plain = robust(mdp, steps, data, target, uniform, behavior=None, estimator="per-decision")
    same = robust(mdp, steps, data, target, uniform, estimator="per-decision")
    assert (plain.lower, plain.upper) == pytest.approx((same.lower, same.upper))


def test_nothing_that_comes_later_changes_a_sample():
    """The last episodes are replaced: samples before them stay."""
    mdp, steps, _ = PROBLEMS["chain"]
    target, logged = tilted(mdp, 3)
    one, other = (mdp.sample_trajectories(logged, 200, steps, np.random.default_rng(k)) for k in (0, 1))
    rows = 120 * steps
    mixed = Transitions(
        *(
            np.concatenate([getattr(one, name)[:rows], getattr(other, name)[rows:]])
            for name in ("states", "actions", "rewards", "next_states", "terminated", "episodes")
        )
    )
    facts = {"discount": mdp.discount, "reward_range": (0, 1), "horizon": steps}
    first, second = (corrected_returns(data, mdp.policy(target), mdp.policy(logged), **facts) for data in (one, mixed))
    for k in range(2):
        assert first[k].x[:110].tolist() == second[k].x[:110].tolist()
        assert first[k].lowest[:110].tolist() == second[k].lowest[:110].tolist()
        assert first[k].x[110:].tolist() != second[k].x[110:].tolist()


def test_other_limits_shift_a_betting_bound():
    x = np.random.default_rng(0).uniform(size=300)
    plain = betting_lower(x, 0.05)
    guess = (0.5, 0.5)
    assert betting_lower(x, 0.05, lowest=0.0, guess=guess) == plain
    assert betting_lower(x - 3, 0.05, lowest=-3.0, guess=(-2.5, 0.5)) == pytest.approx(plain - 3)
    assert betting_lower(x, 0.05, lowest=np.zeros(300), guess=guess) == pytest.approx(plain)
    mixed = betting_lower(x, 0.05, lowest=np.where(np.arange(300) < 150, -50.0, 0.0), guess=guess)
    assert betting_lower(x, 0.05, lowest=-50.0, guess=guess) <= mixed < plain
    with pytest.raises(InvalidInput, match="must have one row per row of `x`"):
        betting_lower(x, 0.05, lowest=np.zeros(3))
    samples = BoundedSamples(x, np.zeros(300), guess)
    with pytest.raises(InvalidInput, match="`method` must be one of betting, hcope. Got 'student'"):
        corrected_interval(CorrectedReturns(samples, samples), 0.1, "student")


def small(**fields):
    names = ("states", "actions", "rewards", "next_states")
    given = dict(zip(names, ([0, 1] * 8, [0, 1] * 8, [0.5] * 16, [1, 0] * 8), strict=True))
    return Transitions(**given | {"episodes": np.repeat(np.arange(8), 2)} | fields)


HALF = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)


@pytest.mark.parametrize(
    ("data", "choices", "message"),
    [
        (small(episodes=None), {}, "`episodes` are needed"),
        (
            small(episodes=np.repeat(np.arange(2), 8)),
            {},
            "At least 8 episodes are needed, some to fit and",
        ),
        (
            small(next_states=[0, 1] * 8),
            {},
            "`states` must be the `next_states` of the row before, inside an episode. Row 1 is",
        ),
        (small(rewards=[2.0] * 16), {}, "`rewards` must lie in the declared reward_range"),
        (small(actions=np.zeros((16, 1))), {}, "`actions` must be indices of a finite action set"),
        (small(), {"behavior": None}, "`behavior_probability` is needed"),
        (
            small(),
            {"estimator": DoublyRobust(least_probability=0.5)},
            "`least_probability` has no effect",
        ),
        (small(), {"estimator": DoublyRobust(features=lambda points: points[:3])}, "`features` must have one row per row"),
        (small(), {"estimator": DoublyRobust(q=lambda states, actions: [np.nan] * len(states))}, "`q` has .* NaN"),
    ],
)
def test_bad_input_is_one_sentence(data, choices, message):
    facts = {"behavior": HALF, "discount": 0.9, "reward_range": (0, 1), "horizon": 2, "estimator": "doubly-robust"}
    with pytest.raises(InvalidInput, match=message):
        importance_sampling_interval(data, HALF, **facts | choices)


def test_bad_options_are_one_sentence():
    with pytest.raises(InvalidInput, match="`features` have no effect beside `q`"):
        DoublyRobust(q=lambda states, actions: states, features=lambda points: points)
    with pytest.raises(InvalidInput, match=r"`least_probability` must be in \(0, 1\]. Got 2"):
        DoublyRobust(least_probability=2)
    with pytest.raises(InvalidInput, match="`ranges` must be a pair"):
        fit_returns(small(), HALF, None, np.zeros((1, 2)), 0.9)
