"""What data contradict for certain is refused in one sentence that names the rows; what chance allows is not."""

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import Assumptions, InvalidInput, Transitions
from accountable_ope.environments import random_tabular
from accountable_ope.problem import check_data


def log(rewards, terminated, states=None, next_states=None):
    n = len(rewards)
    return Transitions(
        np.zeros(n) if states is None else states,
        np.zeros(n, dtype=int),
        rewards,
        np.arange(1.0, n + 1) if next_states is None else next_states,
        terminated,
    )


def facts(**declared):
    return Assumptions(**{"discount": 0.5, "reward_range": (-10, 10)} | declared)


ENDS, GOES_ON = [True, True], [False, False]

CONTRADICTED = {
    "two ends of one pair": (log([0, 1], ENDS), {"one_step_range": 0.9}, "rows 0 and 1 .* differ by at least 1"),
    "an end and a value that cannot make up for it": (
        log([9, 0], [True, False]),
        {"one_step_range": 1, "value_range": (0, 2)},
        "rows 0 and 1 .* differ by at least 8",
    ),
    "rewards further apart than values can make up for": (
        log([9, 0], GOES_ON),
        {"one_step_range": 2, "value_range": (0, 2)},
        "rows 0 and 1 .* differ by at least 8",
    ),
    "one next state, one next value": (
        log([1, 0], GOES_ON, next_states=[5, 5]),
        {"one_step_range": 0.9},
        "rows 0 and 1 .* differ by at least 1",
    ),
    "a reward that no next value brings into the range": (
        log([0, 5], GOES_ON, states=[0, 1]),
        {"value_range": (0, 2), "reward_noise": False},
        r"leaves \[0, 2\], but row 1 pays 5, so that Q lies in \[5, 6\]",
    ),
    "a reward too low": (
        log([1, -9], GOES_ON, states=[0, 1]),
        {"value_range": (0, 2), "reward_noise": False},
        "row 1 pays -9",
    ),
    "a last payment is all that is paid": (
        log([0.5, 1.5], ENDS, states=[0, 1]),
        {"value_range": (0, 1), "reward_noise": False, "terminal_reward": True},
        r"row 1 pays 1.5, so that Q lies in \[1.5, 1.5\]",
    ),
    "a payment before the end": (
        log([0.5, 0.0], [False, True]),
        {"terminal_reward": True},
        "row 0 is not terminated and pays 0.5",
    ),
}

POSSIBLE = {
    "two ends within the range": (log([0, 1], ENDS), {"one_step_range": 1}),
    "values may make up for rewards": (log([2, 0], GOES_ON), {"one_step_range": 1, "value_range": (0, 2)}),
    "other pairs say nothing": (log([0, 9], ENDS, states=[0, 1]), {"one_step_range": 0.5}),
    "a reward that is random": (log([0, 5], GOES_ON), {"value_range": (0, 2)}),
    "an end that came by chance": (
        log([-0.9, 0], [True, False], states=[0, 1]),
        {"value_range": (0, 2), "reward_noise": False},
    ),
    "a last payment that is random": (log([0, 5], ENDS), {"value_range": (0, 1), "terminal_reward": True}),
    "a rounded sum": (log([0.1 + 0.2, 0.0], ENDS), {"one_step_range": 0.3}),
}


@pytest.mark.parametrize("case", CONTRADICTED)
def test_contradictions_are_refused(case):
    data, declared, message = CONTRADICTED[case]
    with pytest.raises(InvalidInput, match=message):
        check_data(data, facts(**declared))


@pytest.mark.parametrize("case", POSSIBLE)
def test_what_chance_allows_is_not(case):
    data, declared = POSSIBLE[case]
    check_data(data, facts(**declared))


@pytest.mark.parametrize("seed", range(10))
def test_true_declarations_are_never_refused(seed):
    """The tightest ones that are true: the range of Q and V, and the largest that one step moves."""
    mdp, rng = random_tabular(4, 2, seed=seed, discount=0.8), np.random.default_rng(seed)
    target = rng.dirichlet(np.ones(2), size=4)
    q = mdp.q_values(target)
    v = (q * target).sum(axis=1)
    values, moves = np.append(q, v), 0.8 * float(v.max() - v.min())
    declared = Assumptions(0.8, (0, 1), (values.min(), values.max()), reward_noise=False, one_step_range=moves)
    check_data(mdp.sample_iid(400, rng), declared)
    half = 0.5 * (values.min() + values.max())
    with pytest.raises(InvalidInput, match="`value_range`"):
        check_data(mdp.sample_iid(400, rng), Assumptions(0.8, (0, 1), (half, half), reward_noise=False))


def asked(data, starts=0.0, **declared):
    policy = aope.DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
    return aope.Problem(data, aope.StartStates([[starts]]), policy, facts(**declared))


def test_the_last_step_that_a_horizon_allows_has_ended():
    """Otherwise its next state has a value; returns alone need no flag there."""
    columns = ([0.0, 1.0, 0.0], [0, 0, 0], [0.5, 0.5, 0.5], [1.0, 2.0, 1.0])
    open_end, labels = aope.Transitions(*columns, [False] * 3, [0, 0, 1]), "row 1 is step 2 of one and is not terminated"
    check_data(open_end, facts(horizon=2))
    with pytest.raises(InvalidInput, match=labels):
        asked(open_end, horizon=2)
    assert asked(aope.Transitions(*columns, [False, True, False], [0, 0, 1]), horizon=2).terminates
    assert asked(open_end, horizon=3).terminates and asked(aope.Transitions(*columns), horizon=2).terminates
    with pytest.raises(InvalidInput, match="row 0 is step 1 of one"):
        asked(aope.Transitions(*columns), horizon=1)


def test_start_states_lie_in_the_box_of_all_states():
    box = ([0.0], [1.0])
    rows = aope.Transitions([0.0, 1.0], [0, 0], [0.5, 0.5], [1.0, 0.0])
    assert asked(rows, 1.0, state_box=box).starts_are_fixed
    with pytest.raises(InvalidInput, match="`start states` must lie in the declared state_box. 1 do not, first .5.0."):
        asked(rows, 5.0, state_box=box)


@pytest.mark.parametrize("size", [1e-30, 1e-10, 1.0, 1e10])
def test_contradictions_do_not_depend_on_the_unit(size):
    same = np.zeros((2, 1))
    coin = aope.Transitions(same, [0, 0], [0.0, size], same)
    with pytest.raises(InvalidInput, match="rows 0 and 1 have the same ones"):
        check_data(coin, Assumptions(0.9, (0, size), reward_noise=False))
    moved = aope.Transitions(size * np.ones((2, 1)), [0, 0], [0.0, 0.0], 2 * size * np.ones((2, 1)))
    policy = aope.DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
    for reach, refused in ((1.9, True), (2.0, False)):
        knowledge = aope.StepKnowledge(reach=lambda states, actions, reach=reach: (0 * states, reach * states))
        if refused:
            with pytest.raises(InvalidInput, match="`reach` says"):
                aope.Problem(moved, aope.StartStates([[size]]), policy, facts(), knowledge)
        else:
            aope.Problem(moved, aope.StartStates([[size]]), policy, facts(), knowledge)
