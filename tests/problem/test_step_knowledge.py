"""What is declared of single steps: what the functions must answer, and what logs contradict."""

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import Assumptions, InvalidInput, StartStates, StepKnowledge, TerminalRegion, Transitions

FACTS = Assumptions(discount=0.5, reward_range=(-10, 10))
POLICY = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
DATA = Transitions([0.0, 1.0, 1.5], [0, 1, 0], [0.0, 1.0, 2.0], [1.0, 1.5, 2.5], [False, False, True])
REGION = TerminalRegion.inside([2.0], [np.inf])


def near(states, actions):
    return states - 1, states + 1


def ask(knowledge, data=DATA, starts=(0.0,), facts=FACTS, policy=POLICY):
    return aope.Problem(data, StartStates(np.array(starts)[:, None]), policy, facts, knowledge=knowledge)


def changed(**columns):
    given = {name: getattr(DATA, name) for name in ("states", "actions", "rewards", "next_states", "terminated")}
    return Transitions(**given | columns)


def test_true_declarations_are_accepted():
    problem = ask(StepKnowledge(REGION, near, lambda states, actions: np.full(len(states), 3.0)))
    rows = problem.row_ranges
    assert rows.certain.tolist() == [False] * 3 and rows.may_end.tolist() == [False, True, True]
    assert repr(rows) == "RowRanges(3 rows: 0 certain to end, 2 that may, 1 that cannot)"
    assert problem.question.on(DATA).knowledge is problem.knowledge
    assert problem.part(DATA.rows(slice(1, 3))).row_ranges.may_end.tolist() == [True, True]


def test_nothing_is_known_unless_said():
    problem = aope.Problem(DATA, StartStates([[0.0]]), POLICY, FACTS)
    assert not problem.knowledge.given and problem.assumptions is FACTS
    rows = problem.row_ranges
    assert rows.may_end.all() and not rows.certain.any() and np.isinf(rows.declared).all() and rows.reach is None
    assert rows.premises() == ()


def test_a_terminal_region_means_that_states_may_be_terminal():
    """Also where no logged row is: the ranges must allow for what was not seen."""
    data = changed(next_states=[1.0, 1.5, 1.75], terminated=None)
    assert not ask(StepKnowledge(), data).terminates
    for problem in (ask(StepKnowledge(REGION), data), ask(StepKnowledge(REGION), data).assuming(FACTS)):
        assert problem.terminates and problem.question.assumptions.terminates and problem.row_ranges.may_end.all()
    with pytest.raises(InvalidInput, match="`terminates=False` contradicts a `terminal_region`"):
        ask(StepKnowledge(REGION), data, facts=replace(FACTS, terminates=False))


SURE = TerminalRegion.where(lambda s: s[:, 0] >= 2, lambda low, high: (high[:, 0] > 1.5, high[:, 0] > 0), name="sure")
BLIND = TerminalRegion.where(lambda s: s[:, 0] >= 2, lambda low, high: (low[:, 0] > 9, low[:, 0] > 9), name="blind")

CONTRADICTED = {
    "a step too long": (
        StepKnowledge(reach=lambda states, actions: (states - 1, states + 0.75)),
        {},
        r"`reach` says that the next state of row 0 lies in \[-1, 0.75\], but it is \[1.0\]",
    ),
    "a step too long, at the end": (
        StepKnowledge(reach=lambda states, actions: (states - 1, np.maximum(states + 0.75, 1.0))),
        {},
        "`reach` says that the next state of row 2",
    ),
    "an end outside the region": (
        StepKnowledge(TerminalRegion.inside([3.0], [4.0])),
        {},
        r"exactly when it lies inside \[3, 4\], but the next state of row 2, \[2.5\], does not and the row is terminated",
    ),
    "no end inside the region": (
        StepKnowledge(TerminalRegion.inside([1.5], [9.0])),
        {},
        r"but the next state of row 1, \[1.5\], lies there and the row is not terminated",
    ),
    "a state that should have been the last": (
        StepKnowledge(REGION),
        {"data": changed(states=[0.0, 1.0, 2.0])},
        r"but the state of row 2, \[2.0\], lies there, and goes on",
    ),
    "a start that is the end": (
        StepKnowledge(REGION),
        {"starts": (0.0, 2.0)},
        r"but the start state of row 1, \[2.0\], lies there, and goes on",
    ),
    "a certain end that did not come": (
        StepKnowledge(SURE, near),
        {},
        "`reach` lies inside the `terminal_region` at row 1, but the row is not terminated",
    ),
    "an impossible end that came": (
        StepKnowledge(BLIND, near),
        {},
        "`reach` misses the `terminal_region` at row 2, but the row is terminated",
    ),
    "a certain end pays twice": (
        StepKnowledge(REGION, lambda states, actions: (states + 1, states + 2)),
        {
            "data": changed(
                states=[1.5, 1.5, 0.0], actions=[0, 0, 0], next_states=[2.5, 3.0, 1.5], terminated=[True, True, False]
            ),
            "facts": replace(FACTS, reward_noise=False),
        },
        "rows 0 and 1 have the same ones and pay 0 and 1",
    ),
    "a certain end pays what no value allows": (
        StepKnowledge(REGION, lambda states, actions: (states + 0.5, states + 1.0)),
        {"facts": replace(FACTS, reward_noise=False, value_range=(-1.0, 1.5))},
        r"`value_range` leaves \[-1, 1.5\], but row 2 pays 2, so that Q lies in \[2, 2\]",
    ),
    "one pair, further apart than its range": (
        StepKnowledge(one_step_range=lambda states, actions: 0.5 + states[:, 0]),
        {"data": changed(states=[0.0, 0.0, 1.5], actions=[0, 0, 0], next_states=[1.0, 1.0, 2.5])},
        "chance moves reward plus discounted next value by at most 0.5 .* rows 0 and 1 .* differ by at least 1",
    ),
    "states of another width": (
        StepKnowledge(TerminalRegion.inside([0.0, 0.0], [1.0, 1.0])),
        {},
        "`terminal_region` has 2 dimensions, states have 1",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTED)
def test_what_logs_contradict_is_refused(name):
    knowledge, given, message = CONTRADICTED[name]
    with pytest.raises(InvalidInput, match=message) as error:
        ask(knowledge, **given)
    assert "\n" not in str(error.value)


ALLOWED = {
    "rounding": (StepKnowledge(reach=lambda states, actions: (states, states + 1 - 1e-12)), {}),
    "a certain end that pays by chance": (
        StepKnowledge(REGION, lambda states, actions: (states + 0.5, states + 1.0)),
        {"facts": replace(FACTS, value_range=(-1.0, 1.5))},
    ),
    "one pair, as far apart as its range": (
        StepKnowledge(one_step_range=lambda states, actions: 1.0 + states[:, 0]),
        {"data": changed(states=[0.0, 0.0, 1.5], actions=[0, 0, 0], next_states=[1.0, 1.0, 2.5])},
    ),
    "one pair of unknown range": (
        StepKnowledge(one_step_range=lambda states, actions: np.full(len(states), np.inf)),
        {"data": changed(states=[0.0, 0.0, 1.5], actions=[0, 0, 0], next_states=[1.0, 1.0, 2.5])},
    ),
    "nothing known of a coordinate": (StepKnowledge(REGION, lambda states, actions: (states - np.inf, states + np.inf)), {}),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_logs_allow_is_accepted(name):
    knowledge, given = ALLOWED[name]
    assert len(ask(knowledge, **given).row_ranges) == 3


@pytest.mark.parametrize(
    ("reach", "message"),
    [
        (lambda states, actions: states, r"`reach` must answer with a pair \(low, high\)"),
        (lambda states, actions: None, "`reach` must answer with a pair"),
        (
            lambda states, actions: (states[:, 0], states[:, 0]),
            r"of the shape of the states, \(3, 1\). Got float64 of shape \(3,\)",
        ),
        (lambda states, actions: (states > 0, states), "Got bool of shape"),
        (lambda states, actions: (states + 1, states), "low <= high, and holds no state in row 0"),
        (lambda states, actions: (states, np.where(states > 1, np.nan, states)), "holds no state in row 2"),
        (lambda states, actions: (states + np.inf, states + np.inf), "holds no state in row 0"),
        (lambda states, actions: (states * 0, states + states.sum()), "asked for the last row alone, it answered differently"),
    ],
)
def test_a_reach_that_is_none_is_refused(reach, message):
    with pytest.raises(InvalidInput, match=message):
        ask(StepKnowledge(reach=reach))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda states, actions: 1.0, r"one number per row, shape \(3,\). Got float64 of shape \(\)"),
        (lambda states, actions: states + 1, r"Got float64 of shape \(3, 1\)"),
        (lambda states, actions: np.ones(len(states)) > 0, "Got bool"),
        (lambda states, actions: states[:, 0], "`one_step_range` must be positive at every .* Got 0 in row 0"),
        (lambda states, actions: 1 - states[:, 0] + 1e-6, "Got -0.5 in row 2|Got -0.499999 in row 2"),
        (lambda states, actions: np.where(states[:, 0] == 1, np.nan, 1.0), "Got nan in row 1"),
        (lambda states, actions: np.full(len(states), 1e-70), "Got 1e-70 in row 0"),
        (lambda states, actions: np.full(len(states), float(len(states))), "asked for the last row alone"),
    ],
)
def test_a_range_that_is_none_is_refused(function, message):
    with pytest.raises(InvalidInput, match=message):
        ask(StepKnowledge(one_step_range=function))


def test_a_range_is_not_for_sampled_policies():
    """Their residuals hold the Q of drawn actions; where steps end does not depend on that."""
    sampled = aope.SampledPolicy(lambda states, rng: rng.normal(size=(len(states), 2)), draws=2)
    with pytest.raises(InvalidInput, match="`one_step_range` is about reward plus discounted next"):
        ask(StepKnowledge(one_step_range=lambda states, actions: np.ones(len(states))), policy=sampled)
    data = changed(actions=np.zeros((3, 2)))
    assert ask(StepKnowledge(REGION, near), data, policy=sampled).row_ranges.may_end.tolist() == [False, True, True]


@pytest.mark.parametrize("wrong", [2.0, "near", TerminalRegion, None])
def test_wrong_types(wrong):
    with pytest.raises(InvalidInput, match="`knowledge` must be of type StepKnowledge"):
        ask(wrong)
    if wrong is not None:
        with pytest.raises(InvalidInput, match="`reach` must be callable"):
            StepKnowledge(reach=wrong)
        with pytest.raises(InvalidInput, match="`terminal_region` must be of type TerminalRegion"):
            StepKnowledge(terminal_region=wrong)
