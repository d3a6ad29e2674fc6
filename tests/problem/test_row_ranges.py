"""Ranges of rows: against all cases enumerated, never larger under a stronger declaration, and true of exact answers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountable_ope import Assumptions, InvalidInput, StepKnowledge, TerminalRegion, Transitions
from accountable_ope.environments import TabularMDP, clinic
from accountable_ope.problem import NextValues, Problem, RowRanges, value_ranges

NUMBERS = st.floats(-3, 3).map(lambda x: round(x, 2))
PAIRS = st.tuples(NUMBERS, NUMBERS).map(lambda pair: tuple(sorted(pair)))


@st.composite
def facts(draw):
    """Assumptions of every kind."""
    last = draw(st.booleans())
    low, high = draw(PAIRS)
    return Assumptions(
        discount=draw(st.sampled_from([0.0, 0.5, 0.9])),
        reward_range=(min(low, 0.0), max(high, 0.0)) if last else (low, high),
        reward_noise=draw(st.booleans()),
        terminal_reward=last,
        horizon=draw(st.none() | st.integers(1, 3)),
    )


def rows_of(assumptions, certain, may_end, declared=np.inf):
    """One row of this kind."""
    ranges = value_ranges(assumptions, terminates=True)
    flags = (np.array([flag]) for flag in (certain, may_end))
    return RowRanges(assumptions, StepKnowledge(), *flags, np.array([declared]), ranges)


def enumerated(assumptions, values, *, certain, may_end):
    """The longest interval between outcomes r + discount V(s') of one (s, a), over all laws that the declarations allow.

    Where rewards are a function of (s, a), outcomes are compared reward by reward; where only the end pays, a step that goes on
    pays nothing, and the range of a step that may end does not use that its reward is a function.
    """
    low, high = assumptions.reward_range
    ended = [(r, r) for r in (low, high)] if certain or may_end else []
    goes_on = []
    if not certain:
        pays = (0.0,) if assumptions.terminal_reward else (low, high)
        goes_on = [(r, r + assumptions.discount * v) for r, v in itertools.product(pays, (values.low, values.high))]
    outcomes = ended + goes_on
    mixed = assumptions.reward_noise or (assumptions.terminal_reward and may_end)
    return max(abs(x - y) for (r, x), (q, y) in itertools.product(outcomes, repeat=2) if mixed or r == q)


@given(facts(), PAIRS, st.sampled_from([(True, False), (False, True), (False, False)]))
def test_bounds_are_the_longest_of_all_cases(assumptions, pair, kind):
    values, (certain, may_end) = NextValues(*pair), kind
    found = rows_of(assumptions, certain, may_end).bounds(values)
    np.testing.assert_allclose(found, [enumerated(assumptions, values, certain=certain, may_end=may_end)], atol=1e-12)


@given(facts(), st.booleans(), st.sampled_from([(True, False), (False, True), (False, False)]), st.floats(0.1, 5.0))
def test_never_longer_than_the_width_of_all_rows(assumptions, terminates, kind, declared):
    if not terminates and (kind != (False, False) or assumptions.horizon is not None or assumptions.terminal_reward):
        return
    assumptions = replace(assumptions, terminates=terminates, one_step_range=declared)
    ranges = value_ranges(assumptions, terminates=terminates)
    found = rows_of(assumptions, *kind, declared).bounds(NextValues.of(ranges))
    assert found <= ranges.residual_width + 1e-12
    if kind == (False, True) and assumptions.horizon is None:
        np.testing.assert_allclose(found, ranges.residual_width, atol=1e-12)


@st.composite
def boxes(draw, outer):
    """Three boxes in two dimensions, each within the outer one."""
    cells = []
    for least, most in zip(*(side.ravel() for side in outer), strict=True):
        cells.append(sorted(least + (most - least) * draw(st.integers(0, 8)) / 8 for _ in range(2)))
    low, high = np.array(cells).T
    return low.reshape(3, 2), high.reshape(3, 2)


@st.composite
def declarations(draw):
    """A weak declaration and a stronger one: smaller boxes, smaller ranges, rewards that are a function, values known better."""
    weak_box = draw(boxes((np.full((3, 2), -4.0), np.full((3, 2), 4.0))))
    strong_box = draw(boxes(weak_box))
    region_box = np.sort([[draw(NUMBERS), draw(NUMBERS)], [draw(NUMBERS), draw(NUMBERS)]], axis=0)
    region = draw(st.sampled_from([TerminalRegion.inside, TerminalRegion.outside]))(*region_box)
    weak_range = np.array([draw(st.floats(0.1, 9.0)) for _ in range(3)])
    strong_range = weak_range * draw(st.sampled_from([1.0, 0.5]))
    weak_facts = draw(facts())
    strong_facts = replace(weak_facts, reward_noise=weak_facts.reward_noise and draw(st.booleans()))
    low, high = draw(PAIRS)
    a, b = sorted((draw(st.floats(0, 1)), draw(st.floats(0, 1))))
    weak_values = NextValues(low, high)
    strong_values = NextValues(low + a * (high - low), low + b * (high - low), draw(st.none() | st.floats(0, 5)))
    omitted = draw(st.sampled_from(["nothing", "reach", "region", "range", "all"]))
    weak = StepKnowledge(
        None if omitted in ("region", "all") else region,
        None if omitted in ("reach", "all") else constant(weak_box),
        None if omitted in ("range", "all") else constant(weak_range),
    )
    strong = StepKnowledge(region, constant(strong_box), constant(strong_range))
    return (weak_facts, weak, weak_values), (strong_facts, strong, strong_values)


def constant(answer):
    """A function of the states 0, 1 and 2 that gives the rows of the answer."""

    def function(states, actions):
        rows = states[:, 0].astype(int)
        return tuple(side[rows] for side in answer) if isinstance(answer, tuple) else answer[rows]

    return function


@given(declarations())
def test_a_stronger_declaration_never_gives_a_longer_range(both):
    """Any part of it: boxes, region, range, noise, values. The first use of a declaration must not make a result worse."""
    data = Transitions(np.column_stack([np.arange(3.0), np.zeros(3)]), [0, 0, 0], np.zeros(3), np.zeros((3, 2)))
    (weak_facts, weak, weak_values), (strong_facts, strong, strong_values) = both
    loose = RowRanges.of(data, weak_facts, weak, terminates=True).bounds(weak_values)
    tight = RowRanges.of(data, strong_facts, strong, terminates=True).bounds(strong_values)
    assert (tight <= loose + 1e-12).all()
    only = [
        RowRanges.of(data, weak_facts, strong, terminates=True).bounds(weak_values),
        RowRanges.of(data, strong_facts, weak, terminates=True).bounds(weak_values),
        RowRanges.of(data, weak_facts, weak, terminates=True).bounds(strong_values),
    ]
    for one in only:
        assert (tight <= one + 1e-12).all() and (one <= loose + 1e-12).all()


def random_ending(seed, *, bernoulli):
    """Twelve states, four of them terminal; a step leads to at most three neighbors, one pair to the end for certain."""
    rng, count = np.random.default_rng(seed), 12
    transition = np.zeros((count, 2, count))
    for state, action in itertools.product(range(count), range(2)):
        near = np.clip(state + np.array([-1, 1, 2]) * rng.integers(0, 2, size=3), 0, count - 1)
        transition[state, action, near] = 1.0
    transition[3, 1] = np.isin(np.arange(count), [4, 5])
    transition /= transition.sum(axis=2, keepdims=True)
    terminal = np.isin(np.arange(count), [4, 5, 10, 11])
    start = np.where(terminal, 0.0, 1.0)
    return TabularMDP(transition, rng.uniform(size=(count, 2)), 0.9, start / start.sum(), terminal, bernoulli)


@pytest.mark.parametrize("bernoulli", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_true_residuals_keep_within_their_ranges(seed, bernoulli):
    """And where an end is certain and rewards are a function, Q = r exactly."""
    mdp = random_ending(seed, bernoulli=bernoulli)
    table = np.random.default_rng(seed).dirichlet(np.ones(2), size=12)
    q = mdp.q_values(table)
    v = (table * q).sum(axis=1)
    live = v[~mdp.terminal]
    values = float(q[~mdp.terminal].min()), float(q.max())
    assumptions = Assumptions(0.9, (0, 1), values, reward_noise=bernoulli)
    data = mdp.sample_iid(3000, np.random.default_rng(seed))
    before, after = data.states[:, 0].astype(int), data.next_states[:, 0].astype(int)
    residuals = data.rewards + 0.9 * v[after] - q[before, data.actions]
    kinds = set()
    for knowledge in (mdp.step_knowledge(), mdp.step_knowledge(table)):
        rows = Problem(data, mdp.starts(), mdp.policy(table), assumptions, knowledge=knowledge).row_ranges
        bounds = rows.bounds(NextValues(float(live.min()), float(live.max())))
        assert (np.abs(residuals) <= bounds + 1e-9).all()
        np.testing.assert_allclose(data.rewards[rows.known], q[before, data.actions][rows.known], atol=1e-12)
        assert rows.known.any() == (rows.certain.any() and not bernoulli)
        kinds |= {*zip(rows.certain.tolist(), rows.may_end.tolist(), strict=True)}
    assert len(kinds) == 3  # all three kinds of rows occur
    # The declared range is that of the outcomes that occur, at every pair: no range can be smaller.
    for pair in np.unique(data.same_pair):
        outcomes = (data.rewards + 0.9 * v[after])[data.same_pair == pair]
        np.testing.assert_allclose(np.ptp(outcomes), rows.declared[pair], atol=1e-6)


def test_where_only_the_end_pays():
    """In the clinic the severest cases may die, the mildest may recover, and in between nobody does either at once."""
    mdp, table = clinic(), np.full((6, 3), 1 / 3)
    data = mdp.sample_trajectories(table, 50, 20, np.random.default_rng(0))
    assumptions = Assumptions(1.0, (0, 1), terminal_reward=True)
    rows = Problem(data, mdp.starts(), mdp.policy(table), assumptions, knowledge=mdp.step_knowledge()).row_ranges
    severity = data.states[:, 0]
    # Recovered is state 4 and died 5: from 0 the box reaches over all states up to 4, from 3 it reaches from 2 to 5.
    assert rows.may_end.tolist() == np.isin(severity, [0, 3]).tolist() and not rows.certain.any()
    assert set(rows.bounds()) == {1.0}
    between = NextValues(0.3, 0.7)
    np.testing.assert_allclose(rows.bounds(between), np.where(rows.may_end, 1.0, 0.4))


def test_spans_may_differ_from_row_to_row():
    assumptions = Assumptions(0.5, (0, 1), reward_noise=False, terminates=True)
    ranges = value_ranges(assumptions, terminates=True)
    kinds = np.array([True, False, False]), np.array([False, True, False])
    rows = RowRanges(assumptions, StepKnowledge(), *kinds, np.full(3, np.inf), ranges)
    low, high = np.array([1.0, 1.0, 1.0]), np.array([2.0, 2.0, 2.0])
    assert rows.bounds(NextValues(low, high, np.array([9.0, 0.2, 0.2]))).tolist() == [0.0, 1.0, 0.1]
    assert rows.bounds(NextValues(low, high)).tolist() == [0.0, 1.0, 0.5]
    assert rows.bounds().tolist() == [0.0, 1.0, 0.5 * (ranges.value[1] - ranges.value[0])]


def test_the_smaller_of_number_and_function_counts():
    data = Transitions([0.0, 1.0, 2.0], [0, 0, 0], np.zeros(3), np.zeros(3))
    assumptions = Assumptions(0.9, (0, 1), one_step_range=1.5)
    knowledge = StepKnowledge(one_step_range=lambda states, actions: 1.0 + states[:, 0])
    rows = RowRanges.of(data, assumptions, knowledge, terminates=False)
    assert rows.declared.tolist() == [1.0, 1.5, 1.5] and rows.bounds().tolist() == [1.0, 1.5, 1.5]
    assert RowRanges.of(data, assumptions, StepKnowledge(), terminates=False).declared.tolist() == [1.5] * 3


def test_a_horizon_of_one_leaves_no_next_value():
    assumptions = Assumptions(0.9, (1, 2), horizon=1, reward_noise=False)
    assert rows_of(assumptions, False, True).bounds().tolist() == [0.0]


def test_premises_say_what_was_declared():
    data = Transitions([0.0, 1.0, 1.5], [0, 1, 0], np.zeros(3), [1.0, 1.5, 2.5], [False, False, True])
    region = TerminalRegion.inside([2.0], [np.inf])
    knowledge = StepKnowledge(region, lambda s, a: (s + 0.5, s + 1), lambda s, a: 1 + s[:, 0])
    rows = RowRanges.of(data, Assumptions(0.9, (0, 1)), knowledge, terminates=True)
    said = {one.name: one for one in rows.premises()}
    assert list(said) == ["terminal-region", "reach", "one-step-range"]
    assert str(said["terminal-region"]) == "A state is terminal exactly when it lies inside [2, inf], as declared."
    assert "at 1 logged rows it must be terminal, at 1 it may be" in str(said["reach"])
    assert (said["reach"].parameter("certain"), said["reach"].parameter("may_end")) == (1, 1)
    assert "between 1 and 2.5." in str(said["one-step-range"])
    assert (said["one-step-range"].parameter("least"), said["one-step-range"].parameter("largest")) == (1.0, 2.5)
    alone = RowRanges.of(data, Assumptions(0.9, (0, 1)), StepKnowledge(reach=knowledge.reach), terminates=True)
    assert [one.name for one in alone.premises()] == ["reach"] and "logged rows" not in str(alone.premises()[0])


def test_a_name_for_certificates():
    data = Transitions([0.0, 1.0], [0, 0], np.zeros(2), np.zeros(2))
    assumptions = Assumptions(0.9, (0, 1))
    named = {
        RowRanges.of(data, assumptions, StepKnowledge(one_step_range=lambda s, a, c=c: c + s[:, 0]), terminates=False).sha256
        for c in (1.0, 1.0, 2.0)
    }
    assert len(named) == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [((1.0, 0.0), "`low` of NextValues"), ((0.0, 1.0, -1.0), "`span` of NextValues"), ((np.nan, 1.0), "`low` of NextValues")],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        NextValues(*values)


def test_wrong_rows_are_refused():
    assumptions = Assumptions(0.9, (0, 1))
    with pytest.raises(InvalidInput, match="`certain` and `may_end` exclude each other, and both hold in row 0"):
        rows_of(assumptions, True, True)
    with pytest.raises(InvalidInput, match="`certain` and `declared` of RowRanges must have one entry per row"):
        replace(rows_of(assumptions, True, False), certain=np.zeros(2, dtype=bool))
