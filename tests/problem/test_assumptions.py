"""Ranges follow from what was declared, and contradictions are refused in words."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountable_ope import Assumptions, InvalidInput, RelativeNorm, Transitions
from accountable_ope.environments import TabularMDP, random_tabular
from accountable_ope.problem.assumptions import value_ranges
from accountable_ope.problem.contradictions import check_data


def ranges(terminates=False, **declared):
    return value_ranges(Assumptions(**{"discount": 0.95, "reward_range": (0.0, 1.0)} | declared), terminates=terminates)


def test_discounted_rewards():
    r = ranges()
    assert r.value == pytest.approx((0, 20))
    assert r.residual_width == pytest.approx(20)  # random reward: 1 + .95 * 20
    assert ranges(reward_noise=False).residual_width == pytest.approx(19)
    assert r.residual_bound == pytest.approx(40)


def test_finite_horizon():
    total = (1 - 0.95**10) / 0.05
    r = ranges(horizon=10, terminates=True)
    assert r.value == pytest.approx((0, total))
    assert r.residual_width == pytest.approx(total)  # 1 + .95 * (total of nine steps)
    assert ranges(horizon=1, terminates=True).residual_width == pytest.approx(1)
    assert ranges(horizon=5, discount=1.0, terminates=True).value == pytest.approx((0, 5))


def test_declared_value_range():
    r = ranges(value_range=(0.0, 1.0))
    assert r.value == (0, 1)
    assert r.residual_width == pytest.approx(1.95)
    assert ranges(value_range=(0.0, 1.0), reward_noise=False).residual_width == pytest.approx(0.95)
    assert ranges(value_range=(-5.0, 50.0)).value == pytest.approx((0, 20))  # not tighter than the rewards imply


def test_reward_at_the_end_only():
    r = ranges(terminal_reward=True, discount=1.0, terminates=True)
    assert r.value == (0, 1)
    assert r.residual_width == 1
    assert ranges(terminal_reward=True, reward_range=(-2.0, 1.0), terminates=True).residual_width == pytest.approx(3)


def test_declared_one_step_range():
    """It replaces the width where it is smaller, and nothing else."""
    for facts in (
        {},
        {"reward_noise": False},
        {"terminal_reward": True, "terminates": True},
        {"horizon": 10, "terminates": True},
    ):
        plain = ranges(**facts)
        narrow, wide = ranges(**facts, one_step_range=0.25), ranges(**facts, one_step_range=25.0)
        assert narrow.residual_width == 0.25 and wide == plain
        assert (narrow.value, narrow.next_value, narrow.residual_bound) == (plain.value, plain.next_value, plain.residual_bound)


def test_terminal_states_add_zero():
    """Costs of -1 a step: V in [-20, -1] while alive, 0 at the end."""
    alive = ranges(reward_range=(-1.0, -1.0), reward_noise=False)
    ends = ranges(reward_range=(-1.0, -1.0), reward_noise=False, terminates=True)
    assert alive.value == pytest.approx((-20, -20))
    assert ends.value == pytest.approx((-20, -1))
    assert ends.next_value == pytest.approx((-20, 0))
    assert ends.residual_width == pytest.approx(0.95 * 20)


@given(
    st.integers(0, 10**6),
    st.just(0.0) | st.floats(1e-9, 0.95),
    st.floats(-3, 3),
    st.floats(0.01, 4),
    st.booleans(),
    st.booleans(),
)
def test_ranges_hold_on_random_problems(seed, discount, low, width, terminal, bernoulli):
    """Q, V and r + discount V(s') of a random tabular problem lie within the ranges that were derived."""
    base = random_tabular(4, 2, seed=seed, discount=discount)
    end = np.array([False, False, False, terminal])
    mdp = TabularMDP(base.transition, low + width * base.mean_reward, discount, [1.0, 0, 0, 0], end)
    table = np.random.default_rng(seed).dirichlet(np.ones(2), size=4)
    q = mdp.q_values(table)[~end]
    v = np.where(end, 0.0, (mdp.q_values(table) * table).sum(axis=1))
    facts = Assumptions(discount=discount, reward_range=(low, low + width), reward_noise=bernoulli)
    r = value_ranges(facts, terminates=terminal)
    slack = 1e-9 * (1 + abs(low) + width) / (1 - discount)
    assert r.value[0] - slack <= q.min() and q.max() <= r.value[1] + slack
    assert r.next_value[0] - slack <= v.min() and v.max() <= r.next_value[1] + slack
    returns = mdp.mean_reward[~end][:, :, None] + discount * v
    spread = (returns.max(axis=2) - returns.min(axis=2)).max()
    assert spread <= r.residual_width + slack
    assert np.abs(returns - q[:, :, None]).max() <= r.residual_bound + slack


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"discount": 1.0}, r"`discount` must be in \[0, 1\). Got 1"),
        ({"discount": 1.5}, r"`discount` must be in \[0, 1\). Got 1.5"),
        ({"discount": -0.1}, r"`discount` must be in \[0, 1\). Got -0.1"),
        ({"discount": float("nan")}, "`discount` must be a finite number"),
        ({"reward_range": (1.0, 0.0)}, "`reward_range` must have low <= high"),
        ({"reward_range": 3.0}, r"`reward_range` must be a pair \(low, high\). Got 3.0"),
        ({"reward_range": (0.0, float("inf"))}, "`reward_range` must be a finite number"),
        ({"value_range": (50.0, 60.0)}, "no value in common"),
        ({"norm_bound": 0.0}, "`norm_bound` must be positive"),
        ({"norm_bound": -1.0}, "`norm_bound` must be positive"),
        ({"one_step_range": 0.0}, "`one_step_range` must be positive"),
        ({"one_step_range": -1.0}, "`one_step_range` must be positive"),
        ({"one_step_range": float("nan")}, "`one_step_range` must be a finite number"),
        ({"one_step_range": float("inf")}, "`one_step_range` must be a finite number"),
        ({"one_step_range": (0.0, 1.0)}, "`one_step_range` must be a finite number"),
        ({"horizon": 0}, "`horizon` must be a whole number of at least 1"),
        ({"reward_noise": "yes"}, "`reward_noise` must be True or False"),
        ({"terminates": "no"}, "`terminates` must be True or False"),
        ({"terminates": False, "horizon": 3}, "contradicts"),
        ({"terminal_reward": True, "reward_range": (1.0, 2.0)}, "must contain 0"),
        ({"state_box": ([0.0], [1.0, 2.0])}, "`state_box`"),
        ({"state_box": ([0.0, 3.0], [1.0, 2.0])}, "`state_box`"),
        ({"state_box": 4.0}, "`state_box` must be a pair"),
    ],
)
def test_impossible_assumptions_are_refused(declared, message):
    with pytest.raises(InvalidInput, match=message):
        Assumptions(**{"discount": 0.9, "reward_range": (0.0, 1.0)} | declared)


def test_relative_norm_is_at_least_one():
    with pytest.raises(InvalidInput, match="at least 1"):
        RelativeNorm(0.5)


def transitions(rewards=(0.0, 1.0), terminated=(False, True)):
    return Transitions([[0.0], [1.0]], [0, 1], list(rewards), [[1.0], [2.0]], list(terminated))


@pytest.mark.parametrize(
    ("declared", "data", "message"),
    [
        (
            {},
            transitions(rewards=(0.0, 1.5)),
            r"`rewards` must lie in the declared reward_range \[0, 1\]. 1 does not, first 1.5 in row 1",
        ),
        ({"terminal_reward": True}, transitions(rewards=(0.5, 1.0)), "row 0 is not terminated and pays 0.5"),
        ({"terminates": False}, transitions(), "`terminates=False`, but row 1 is terminated"),
        ({"discount": 1.0, "value_range": (0.0, 1.0)}, transitions(terminated=(False, False)), "no row is terminated"),
        ({"state_box": ([0.0], [0.5])}, transitions(), "`states` must lie in the declared state_box. 1 do"),
        ({"state_box": ([0.0, 0.0], [5.0, 5.0])}, transitions(), "`state_box` has 2 dimensions, states have 1"),
    ],
)
def test_data_that_contradict_the_assumptions_are_refused(declared, data, message):
    with pytest.raises(InvalidInput, match=message):
        check_data(data, Assumptions(**{"discount": 0.9, "reward_range": (0.0, 1.0)} | declared))


def test_terminal_next_states_may_lie_outside_the_box():
    check_data(transitions(), Assumptions(discount=0.9, reward_range=(0, 1), state_box=([0.0], [1.0])))


def test_an_episode_longer_than_the_horizon_is_a_contradiction():
    rows = np.zeros((5, 1))
    data = Transitions(rows, [0] * 5, np.zeros(5), rows, [False, False, True, False, True], episodes=[0, 0, 0, 1, 1])
    check_data(data, Assumptions(discount=0.9, reward_range=(0, 1), horizon=3))
    with pytest.raises(InvalidInput, match=r"ends within 2 steps, but episode number 0 \(from 0\) has 3 rows"):
        check_data(data, Assumptions(discount=0.9, reward_range=(0, 1), horizon=2))


def test_two_rewards_at_one_state_and_action_are_no_function_of_them():
    states = np.array([[0.0], [1.0], [0.0], [0.0]])
    data = Transitions(states, [0, 0, 1, 0], [0.5, 0.1, 0.2, 0.6], states)
    facts = Assumptions(discount=0.9, reward_range=(0, 1))
    check_data(data, facts)
    with pytest.raises(InvalidInput, match="rows 0 and 3 have the same ones and pay 0.5 and 0.6"):
        check_data(data, replace(facts, reward_noise=False))
    check_data(data.rows(slice(0, 3)), replace(facts, reward_noise=False))
