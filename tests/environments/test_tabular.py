"""Exact values of finite MDPs against roll-outs, and what the samplers promise."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from accountable_ope.environments import TabularMDP, bandit, chain, clinic, mixture, random_tabular, rare_jump, softmax_table
from accountable_ope.errors import InvalidInput
from accountable_ope.problem.transitions import Transitions
from accountable_ope.validation import FloatArray


def uniform(mdp: TabularMDP) -> FloatArray:
    return np.full(mdp.mean_reward.shape, 1 / mdp.mean_reward.shape[1])


def skewed(mdp: TabularMDP) -> FloatArray:
    """A policy without symmetry, so that a transposed table would be noticed."""
    return softmax_table(np.random.default_rng(5).normal(size=mdp.mean_reward.shape), 0.7)


def returns(data: Transitions, discount: float) -> FloatArray:
    """sum_t discount^t r_t of every episode, from the rows alone."""
    assert data.episodes is not None
    totals = np.zeros(int(data.episodes.max()) + 1)
    step = 0
    for row in range(len(data)):
        step = 0 if row == 0 or data.episodes[row] != data.episodes[row - 1] else step + 1
        totals[data.episodes[row]] += discount**step * data.rewards[row]
    return totals


def within_five_standard_errors(sample: FloatArray, truth: float, slack: float = 0.0) -> bool:
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    return bool(abs(sample.mean() - truth) <= 5 * error + slack)


ENDLESS = [
    random_tabular(6, 3, seed=0, discount=0.8),
    random_tabular(5, 2, seed=1, discount=0.9, bernoulli=True),
    chain(5, discount=0.9),
    rare_jump(0.1, discount=0.9),
    bandit(4, 3, seed=2),
]


@pytest.mark.parametrize("mdp", [*ENDLESS, clinic(), clinic(seed=3, discount=0.9)], ids=repr)
def test_q_solves_the_bellman_equation(mdp: TabularMDP) -> None:
    table = skewed(mdp)
    q = mdp.q_values(table)
    for s in range(len(q)):
        for a in range(q.shape[1]):
            if mdp.terminal[s]:
                assert q[s, a] == 0
                continue
            onward = sum(mdp.transition[s, a, t] * (table[t] @ q[t]) for t in range(len(q)) if not mdp.terminal[t])
            assert abs(mdp.mean_reward[s, a] + mdp.discount * onward - q[s, a]) < 1e-10
    assert mdp.value(table) == pytest.approx(sum(mdp.start[s] * (table[s] @ q[s]) for s in range(len(q))), abs=1e-12)


@pytest.mark.parametrize("mdp", ENDLESS, ids=repr)
def test_value_agrees_with_roll_outs(mdp: TabularMDP) -> None:
    length = 90
    data = mdp.sample_trajectories(skewed(mdp), 1500, length, np.random.default_rng(11))
    left_out = mdp.discount**length / (1 - mdp.discount)  # rewards are in [0, 1]
    assert left_out < 1e-3
    assert within_five_standard_errors(returns(data, mdp.discount), mdp.value(skewed(mdp)), left_out)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_clinic_value_agrees_with_roll_outs_that_end(discount: float) -> None:
    mdp = clinic(discount=discount)
    data = mdp.sample_trajectories(skewed(mdp), 4000, 500, np.random.default_rng(12))
    assert data.terminated.sum() == data.number_of_episodes == 4000
    assert within_five_standard_errors(returns(data, discount), mdp.value(skewed(mdp)))


def test_clinic_pays_at_recovery_only_and_its_value_is_the_probability_to_recover() -> None:
    mdp = clinic()
    data = mdp.sample_trajectories(uniform(mdp), 500, 500, np.random.default_rng(0))
    recovered = data.next_states[:, 0] == 4
    assert (data.rewards[recovered] == 1).all() and (data.rewards[~recovered] == 0).all()
    assert 0 < recovered.sum() < 500
    assert (data.terminated == (data.next_states[:, 0] >= 4)).all()
    values = (uniform(mdp) * mdp.q_values(uniform(mdp))).sum(axis=1)
    # Gambler's ruin by matrix powers: the mass in `recovered` after many steps.
    step = np.einsum("sa,sat->st", uniform(mdp), mdp.transition)
    assert values[:4] == pytest.approx(np.linalg.matrix_power(step, 5000)[:4, 4], abs=1e-10)
    assert 0.05 < mdp.value(uniform(mdp)) < 0.95


def test_clinic_treatments_differ_and_seeds_differ() -> None:
    first, other = clinic(0), clinic(1)
    assert not np.allclose(first.transition, other.transition)
    always = [first.value(np.eye(3)[[a] * 6]) for a in range(3)]
    assert max(always) - min(always) > 0.02


@pytest.mark.parametrize("mdp", ENDLESS, ids=repr)
def test_average_reward_is_the_long_run_mean(mdp: TabularMDP) -> None:
    table = skewed(mdp)
    step = np.linalg.matrix_power(np.einsum("sa,sat->st", table, mdp.transition), 20000)
    assert mdp.average_reward(table) == pytest.approx(mdp.start @ step @ (table * mdp.mean_reward).sum(axis=1), abs=1e-9)


def test_chain_by_hand() -> None:
    mdp = chain(2, discount=0.5, slip=0.0)
    right = np.array([[0.0, 1.0], [0.0, 1.0]])
    # Going right pays 0, then 1 forever: V(1) = 1 / (1 - 0.5) = 2, V(0) = 0.5 * 2; going left first delays by a step.
    assert mdp.q_values(right) == pytest.approx(np.array([[0.5, 1.0], [1.5, 2.0]]), abs=1e-12)
    assert mdp.average_reward(right) == pytest.approx(1.0)
    assert chain(3, 0.5, slip=0.2).transition[1, 1].tolist() == pytest.approx([0.2, 0.0, 0.8])


def test_rare_jump_misleads_data_without_a_jump() -> None:
    mdp = rare_jump(0.02, discount=0.95)
    cautious, bold = np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]] * 2)
    assert mdp.mean_reward[0, 1] > mdp.mean_reward[0, 0]
    assert mdp.value(bold) < mdp.value(cautious)
    # d(bad) = p / (p + leave) for the two-state chain.
    assert mdp.average_reward(bold) == pytest.approx(0.55 * 0.02 / (0.02 + 0.02))


def test_bandit_value_is_the_mean_reward() -> None:
    mdp = bandit(4, 3, seed=9)
    assert mdp.value(skewed(mdp)) == pytest.approx((skewed(mdp) * mdp.mean_reward).sum() / 4)
    assert set(mdp.sample_iid(200, np.random.default_rng(0)).rewards.tolist()) == {0.0, 1.0}


def test_trajectories_are_ordered_episode_by_episode() -> None:
    mdp = clinic()
    data = mdp.sample_trajectories(uniform(mdp), 200, 6, np.random.default_rng(3))
    assert data.episodes is not None and data.actions.dtype == np.int64 and data.states.shape == (len(data), 1)
    assert (np.diff(data.episodes) >= 0).all()
    same = data.episodes[1:] == data.episodes[:-1]
    assert (data.states[1:][same] == data.next_states[:-1][same]).all()
    last = np.append(~same, True)
    assert not data.terminated[~last].any()
    lengths = np.bincount(data.episodes)
    # An episode is shorter than the limit exactly when it ended; at the limit it may also be cut, and then it is not terminated.
    assert (data.terminated[last][lengths < 6]).all()
    assert lengths.max() == 6 and not data.terminated[last].all() and data.terminated.any()


def test_trajectories_start_and_move_as_the_tables_say() -> None:
    mdp = random_tabular(4, 2, seed=8, discount=0.9)
    table = skewed(mdp)
    data = mdp.sample_trajectories(table, 4000, 3, np.random.default_rng(4))
    first = data.first_states().states[:, 0]
    assert np.bincount(first.astype(int), minlength=4) / 4000 == pytest.approx(mdp.start, abs=5 * np.sqrt(0.25 / 4000))
    state, action, after = data.states[:, 0].astype(int), data.actions, data.next_states[:, 0].astype(int)
    for s in range(4):
        here = state == s
        assert abs((action[here] == 1).mean() - table[s, 1]) < 5 * np.sqrt(0.25 / here.sum())
        for a in range(2):
            taken = here & (action == a)
            frequency = np.bincount(after[taken], minlength=4) / taken.sum()
            assert np.abs(frequency - mdp.transition[s, a]).max() < 5 * np.sqrt(0.25 / taken.sum())
            assert (data.rewards[taken] == mdp.mean_reward[s, a]).all()


def test_bernoulli_rewards_have_the_right_mean() -> None:
    mdp = random_tabular(2, 2, seed=1, discount=0.5, bernoulli=True)
    data = mdp.sample_iid(8000, np.random.default_rng(0))
    for s in range(2):
        for a in range(2):
            rewards = data.rewards[(data.states[:, 0] == s) & (data.actions == a)]
            assert set(rewards.tolist()) == {0.0, 1.0}
            assert within_five_standard_errors(rewards, mdp.mean_reward[s, a])


def test_iid_draws_are_uniform_over_states_that_go_on() -> None:
    mdp = clinic()
    data = mdp.sample_iid(12000, np.random.default_rng(0))
    assert data.episodes is None
    cells = np.bincount(data.states[:, 0].astype(int) * 3 + data.actions, minlength=18)
    assert (cells[12:] == 0).all()
    assert np.abs(cells[:12] - 1000).max() < 5 * np.sqrt(12000 * (1 / 12) * (11 / 12))
    assert (data.terminated == (data.next_states[:, 0] >= 4)).all() and data.terminated.any()


def test_iid_draws_follow_a_behavior() -> None:
    mdp = random_tabular(3, 2, seed=0, discount=0.9)
    table = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    data = mdp.sample_iid(4000, np.random.default_rng(0), table)
    for s in range(3):
        here = data.states[:, 0] == s
        assert abs(here.mean() - 1 / 3) < 5 * np.sqrt(2 / 9 / 4000)
        assert abs((data.actions[here] == 1).mean() - table[s, 1]) <= 5 * np.sqrt(table[s, 0] * table[s, 1] / here.sum())


def test_moves_of_probability_zero_never_happen() -> None:
    mdp = chain(4, discount=0.9, slip=0.0)
    right = np.tile([0.0, 1.0], (4, 1))
    data = mdp.sample_trajectories(right, 50, 20, np.random.default_rng(0))
    assert (data.actions == 1).all()
    assert (data.next_states == np.minimum(data.states + 1, 3)).all()


def test_sampling_is_repeatable() -> None:
    mdp = random_tabular(4, 2, seed=8, discount=0.9, bernoulli=True)
    one, two = (mdp.sample_trajectories(uniform(mdp), 5, 5, np.random.default_rng(1)) for _ in range(2))
    assert (one.states == two.states).all() and (one.rewards == two.rewards).all() and (one.actions == two.actions).all()


def test_policy_looks_states_up() -> None:
    mdp = random_tabular(3, 2, seed=0, discount=0.9)
    policy = pickle.loads(pickle.dumps(mdp.policy(skewed(mdp))))
    assert policy.action_vectors.tolist() == [[0.0], [1.0]]
    states = np.array([[2.0], [0.0], [2.0]])
    assert policy.probabilities(states) == pytest.approx(skewed(mdp)[[2, 0, 2]])
    for wrong in (np.array([[3.0]]), np.array([[-1.0]]), np.array([[0.5]]), np.array([[0.0, 1.0]])):
        with pytest.raises(InvalidInput, match="indices 0 to 2"):
            policy.probabilities(wrong)


def test_starts_are_exact() -> None:
    starts = clinic().starts()
    assert starts.exact
    assert starts.states[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert starts.weights == pytest.approx([0.1, 0.3, 0.4, 0.2])


def test_softmax_and_mixture() -> None:
    scores = np.log([[1.0, 4.0], [9.0, 1.0]])
    assert softmax_table(scores, 1.0) == pytest.approx(np.array([[0.2, 0.8], [0.9, 0.1]]))
    assert softmax_table(scores, 2.0) == pytest.approx(np.array([[1 / 3, 2 / 3], [0.75, 0.25]]))
    assert softmax_table([[1e6, 0.0]], 1.0).tolist() == [[1.0, 0.0]]
    assert mixture([[1.0, 0.0]], [[0.0, 1.0]], 0.25).tolist() == [[0.25, 0.75]]
    with pytest.raises(InvalidInput, match="weight"):
        mixture([[1.0, 0.0]], [[0.0, 1.0]], 1.5)
    with pytest.raises(InvalidInput, match="same shape"):
        mixture([[1.0, 0.0]], [[1.0]], 0.5)
    with pytest.raises(InvalidInput, match="temperature"):
        softmax_table(scores, 0.0)


def test_records_are_private_and_read_only() -> None:
    transition, start = np.ones((1, 1, 1)), np.ones(1)
    mdp = TabularMDP(transition, [[0.5]], 0.5, start)
    transition[0, 0, 0] = 7.0
    start[0] = 7.0
    assert mdp.transition[0, 0, 0] == 1 and mdp.start[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        mdp.mean_reward[0, 0] = 2.0


def test_wrong_tables_are_refused() -> None:
    stay = np.ones((1, 2, 1))
    with pytest.raises(InvalidInput, match=r"\(S, A, S\)"):
        TabularMDP(np.ones((1, 2, 2)) / 2, [[0.0, 0.0]], 0.9, [1.0])
    with pytest.raises(InvalidInput, match="Row 1 sums to 0.5"):
        TabularMDP([[[1.0], [0.5]]], [[0.0, 0.0]], 0.9, [1.0])
    with pytest.raises(InvalidInput, match="mean_reward"):
        TabularMDP(stay, [[0.0]], 0.9, [1.0])
    with pytest.raises(InvalidInput, match=r"in \[0, 1\] with `bernoulli=True`"):
        TabularMDP(stay, [[0.0, 1.5]], 0.9, [1.0], bernoulli=True)
    with pytest.raises(InvalidInput, match="discount"):
        TabularMDP(stay, [[0.0, 0.0]], 1.1, [1.0])
    with pytest.raises(InvalidInput, match="start"):
        TabularMDP(stay, [[0.0, 0.0]], 0.9, [0.5])
    with pytest.raises(InvalidInput, match="start"):
        TabularMDP(stay, [[0.0, 0.0]], 0.9, [0.5, 0.5])
    with pytest.raises(InvalidInput, match="terminal states"):
        TabularMDP(stay, [[0.0, 0.0]], 0.9, [1.0], terminal=[True])
    with pytest.raises(InvalidInput, match="`terminal` must be"):
        TabularMDP(stay, [[0.0, 0.0]], 0.9, [1.0], terminal=[0])
    with pytest.raises(InvalidInput, match="arrival_reward"):
        TabularMDP(stay, [[0.0, 0.0]], 0.9, [1.0], arrival_reward=[1.0])
    with pytest.raises(InvalidInput, match="contradicts"):
        TabularMDP(stay, [[1.0, 1.0]], 0.9, [1.0], bernoulli=True, arrival_reward=[1.0])


def test_wrong_policies_are_refused() -> None:
    mdp = chain(3, discount=0.9)
    with pytest.raises(InvalidInput, match=r"`policy_table` must have shape \(3, 2\)"):
        mdp.q_values(np.ones((2, 2)) / 2)
    with pytest.raises(InvalidInput, match="must sum to one"):
        mdp.value(np.ones((3, 2)))
    with pytest.raises(InvalidInput, match="`behavior_table`"):
        mdp.sample_trajectories(np.ones((3, 3)) / 3, 2, 2, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="`episodes`"):
        mdp.sample_trajectories(np.ones((3, 2)) / 2, 0, 2, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="`count`"):
        mdp.sample_iid(1, np.random.default_rng(0))


def test_values_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no terminal state can be reached"):
        chain(3, discount=1.0).value(np.ones((3, 2)) / 2)
    # Ends under action 0 only: the policy decides whether the value exists.
    transition = np.zeros((2, 2, 2))
    transition[0, 0, 1] = transition[0, 1, 0] = 1.0
    transition[1, :, 1] = 1.0
    mdp = TabularMDP(transition, [[0.25, 0.25], [9.0, 9.0]], 1.0, [1.0, 0.0], terminal=[False, True])
    assert mdp.value([[0.5, 0.5], [0.5, 0.5]]) == pytest.approx(0.5)
    with pytest.raises(InvalidInput, match="from state 0"):
        mdp.value([[0.0, 1.0], [0.5, 0.5]])
    with pytest.raises(InvalidInput, match="without terminal states"):
        mdp.average_reward([[0.5, 0.5], [0.5, 0.5]])
    two_worlds = TabularMDP(np.eye(2)[:, None], [[0.0], [1.0]], 0.9, [0.5, 0.5])
    with pytest.raises(InvalidInput, match="depends on the start"):
        two_worlds.average_reward([[1.0], [1.0]])


def test_wrong_constructor_arguments_are_refused() -> None:
    calls: list[tuple[Callable[[], TabularMDP], str]] = [
        (lambda: random_tabular(0, 2, 0, 0.9), "states"),
        (lambda: chain(1, 0.9), "states"),
        (lambda: chain(3, 0.9, slip=2.0), "slip"),
        (lambda: rare_jump(0.0, 0.9), "probability"),
        (lambda: clinic(seed=-1), "seed"),
        (lambda: bandit(2, 0, 0), "arms"),
    ]
    for call, name in calls:
        with pytest.raises(InvalidInput, match=name):
            call()
