"""The families: every assumption that they declare is true, and their data are of the kind that they name."""

import pickle

import numpy as np
import pytest

from accountable_ope.environments import PlantedMDP
from accountable_ope.errors import InvalidInput
from accountable_ope.laboratory import (
    FAMILY_NAMES,
    DataKind,
    early_stopper,
    families_named,
    family_named,
    methods_named,
    outcomes,
)
from accountable_ope.laboratory.continuous import LENGTH, planted_box
from accountable_ope.laboratory.draws import Greedy, PlayAgainstRadius, Pooled, Recorded, Simulated, StopWhenExtreme
from accountable_ope.laboratory.families import GROUPS, OTHERS, group_title
from accountable_ope.problem.assumptions import value_ranges
from accountable_ope.problem.contradictions import check_data
from accountable_ope.problem.policy import state_action_points


def true_values(family, data):
    """(Q at the rows, V at the next states), 0 where terminated."""
    if isinstance(family.draw, Simulated):
        problem = family.draw.problem
        return problem.q(data.states, data.actions), problem.state_values(data.next_states)
    if isinstance(family.draw, StopWhenExtreme | PlayAgainstRadius):
        return np.full(len(data), 0.5), np.full(len(data), 0.5)
    mdp = family.draw.draw.mdp if isinstance(family.draw, Recorded) else family.draw.mdp
    table = np.asarray(family.policy.probabilities(np.arange(len(mdp.start), dtype=float)[:, None]))
    q = mdp.q_values(table)
    before, after = data.states[:, 0].astype(int), data.next_states[:, 0].astype(int)
    return q[before, data.actions], (table * q).sum(axis=1)[after]


def residuals(family, data):
    q, v = true_values(family, data)
    return data.rewards + family.assumptions.discount * v - q


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_draws_are_exact_in_number_and_repeatable(name):
    family = family_named(name)
    assert family.name == name
    for n in (2, 7, 333):
        data = family.draw(np.random.default_rng(1), n)
        again = pickle.loads(pickle.dumps(family)).draw(np.random.default_rng(1), n)
        assert len(data) == n
        assert (data.states == again.states).all() and (data.actions == again.actions).all()
        assert (data.rewards == again.rewards).all() and (data.next_states == again.next_states).all()
        other = family.draw(np.random.default_rng(2), n)
        assert n == 2 or len(set(data.rewards)) < 2 or (data.rewards != other.rewards).any()


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_residuals_at_the_truth_have_mean_zero_and_the_declared_range(name):
    family = family_named(name)
    data = family.draw(np.random.default_rng(3), 8000)
    check_data(data, family.assumptions)
    ranges = value_ranges(family.assumptions, terminates=bool(data.terminated.any()))
    q, _ = true_values(family, data)
    assert (q >= ranges.value[0]).all() and (q <= ranges.value[1]).all()
    eps = residuals(family, data)
    assert np.abs(eps).max() <= ranges.residual_width + 1e-9
    points = state_action_points(data.states, data.actions, family.policy)
    # Products with functions of (s, a) are martingale differences, whatever the behavior.
    for weight in (np.ones(len(data)), *points.T, *(points.T > 0)):
        scores = eps * weight
        assert abs(scores.mean()) <= 5 * scores.std() / np.sqrt(len(scores)) + 1e-12


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_truth_and_class(name):
    """The value follows from Q at the start states, and Q lies in the span of the features."""
    family = family_named(name)
    data = family.draw(np.random.default_rng(4), 2000)
    q, _ = true_values(family, data)
    phi = family.features(state_action_points(data.states, data.actions, family.policy))
    columns = np.column_stack([phi, np.ones(len(phi))]) if family.features.intercept else phi
    theta = np.linalg.lstsq(columns, q, rcond=None)[0]
    assert columns @ theta == pytest.approx(q, abs=1e-8)
    bound = family.assumptions.norm_bound
    if bound is not None:
        assert np.linalg.norm(theta[:-1]) <= bound
    if family.starts is not None and family.policy.exact:
        value = 0.0
        for branch in family.policy.branches(family.starts.states):
            at = family.features(np.concatenate([family.starts.states, branch.actions], axis=1))
            at = np.column_stack([at, np.ones(len(at))]) if family.features.intercept else at
            value += float(family.starts.weights @ (branch.weights * (at @ theta)))
        assert value == pytest.approx(family.truth, abs=1e-8)


@pytest.mark.parametrize("name", [name for name in FAMILY_NAMES if family_named(name).symmetric])
def test_declared_symmetry_is_true(name):
    """Given (s, a), every value of a residual comes with its opposite, equally often."""
    family = family_named(name)
    data = family.draw(np.random.default_rng(5), 20_000)
    eps = residuals(family, data)
    points = state_action_points(data.states, data.actions, family.policy)
    for point in np.unique(points, axis=0):
        own = eps[(points == point).all(axis=1)]
        assert np.unique(np.abs(own).round(9)).size == 1
        if np.abs(own[0]) > 1e-9 and name not in ("early-stopper", "adversary"):
            assert abs((own > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(len(own))


def test_there_are_symmetric_families_and_others():
    symmetric = {family.name for family in families_named() if family.symmetric}
    assert symmetric == {"fair-steps", "fair-coin", "early-stopper", "adversary"}
    assert {family.data_kind for family in families_named()} == set(DataKind)
    assert len(FAMILY_NAMES) >= 10
    assert {family.assumptions.discount for family in families_named()} >= {0.0, 0.5, 0.9, 0.95, 1.0}


def test_descriptions_are_sentences():
    for family in families_named():
        assert family.description.endswith(".") and "\n" not in family.description


def test_unknown_families_are_named():
    with pytest.raises(InvalidInput, match="`family` must be one of tabular-50, .* Got 'bogus'"):
        families_named(["bogus"])
    assert [family.name for family in families_named(["chain", "bandit", "chain"])] == ["chain", "bandit"]


def test_every_family_is_in_one_group_and_a_group_names_its_families():
    assert [name for group in GROUPS for name in group.families] == list(FAMILY_NAMES)
    assert len(set(FAMILY_NAMES)) == len(FAMILY_NAMES)
    assert not {group.name for group in GROUPS} & set(FAMILY_NAMES)
    for group in GROUPS:
        assert [family.name for family in families_named([group.name])] == list(group.families)
        assert {group_title(name) for name in group.families} == {group.title}
    assert group_title("one of my own") == OTHERS
    assert [family.name for family in families_named(["fair-coin", "bandits"])] == ["fair-coin", "bandit", "bandit-logged"]


def test_greedy_behavior_follows_the_rows_before():
    """Recomputed from scratch at every row: without exploration the action is the one with the larger mean so far."""
    draw = family_named("adaptive-50").draw
    assert isinstance(draw, Greedy)
    data = Greedy(draw.mdp, 0.0, 20)(np.random.default_rng(6), 400)
    for row in range(400):
        means = []
        for action in range(2):
            seen = (data.states[:row, 0] == data.states[row, 0]) & (data.actions[:row] == action)
            means.append(data.rewards[:row][seen].mean() if seen.any() else 1.0)
        assert data.actions[row] == int(np.argmax(np.round(means, 12)))
    follows = data.next_states[:-1, 0] == data.states[1:, 0]
    assert follows[data.episodes[1:] == data.episodes[:-1]].all()


def test_pooled_behavior_differs_between_episodes():
    draw = family_named("mixture-50").draw
    assert isinstance(draw, Pooled)
    data = draw(np.random.default_rng(7), 30_000)
    thirds = [data.actions[part].mean() for part in (slice(0, 8000), slice(22_000, None))]
    assert abs(thirds[0] - thirds[1]) > 0.05


def test_the_coin_is_left_when_its_sum_is_extreme():
    family, stopped = early_stopper(0.5), 0
    for seed in range(50):
        data = family.draw(np.random.default_rng(seed), 100)
        tosses = int((data.actions == 0).sum())
        assert (data.actions[:tosses] == 0).all() and (data.rewards[tosses:] == 0.5).all()
        path = np.abs(np.cumsum(data.rewards[:tosses] - 0.5))
        assert (path[:-1] <= 5).all()
        if tosses < 100:
            stopped += 1
            assert path[-1] > 5
    assert 10 < stopped < 50


def test_the_adversary_stops_where_the_default_radius_is_beaten():
    """It tosses until the cut's own sum of residuals is beyond what the cut allows, and the interval of that log misses."""
    family, default = family_named("adversary"), methods_named(["certified"])
    n, delta = 200, family.draw.delta
    stopped, missed = 0, 0
    for seed in range(200):
        data = family.draw(np.random.default_rng(seed), n)
        tosses = int((data.actions == 0).sum())
        assert (data.actions[:tosses] == 0).all() and (data.rewards[tosses:] == 0.5).all()
        if tosses < n:
            stopped += 1
            if stopped <= 4:
                [found] = outcomes(family, data, default, delta, seed)
                missed += not found.lower <= family.truth <= found.upper
    assert 0.02 * 200 < stopped < delta * 200
    assert missed >= 3


def test_recorded_probabilities_are_those_of_the_behavior():
    family = family_named("bandit-logged")
    data = family.draw(np.random.default_rng(8), 4000)
    assert family.problem(data, seed=0).propensity_weights is not None
    for state in (0, 1):
        for action in (0, 1):
            here = (data.states[:, 0] == state) & (data.actions == action)
            [recorded] = set(data.behavior_probability[here])
            share = here.sum() / (data.states[:, 0] == state).sum()
            assert share == pytest.approx(recorded, abs=5 * 0.5 / np.sqrt(2000))


def test_what_is_known_of_steps_is_true_and_narrows():
    family, plain = family_named("clinic-known"), family_named("clinic")
    assert family.truth == plain.truth
    data = family.draw(np.random.default_rng(9), 2000)
    eps, points = residuals(family, data), state_action_points(data.states, data.actions, family.policy)
    allowed = family.knowledge.step_ranges(data)
    for point in np.unique(points, axis=0):
        here = (points == point).all(axis=1)
        assert np.ptp(eps[here]) <= allowed[here].min() + 1e-9
    low, high = family.knowledge.boxes(data)
    assert (low <= data.next_states).all() and (data.next_states <= high).all()
    known, unknown = (outcomes(each, data, methods_named(["certified"]), 0.1, 9)[0] for each in (family, plain))
    assert known.upper - known.lower < unknown.upper - unknown.lower


def test_episodes_end_where_the_process_ends():
    data = family_named("clinic").draw(np.random.default_rng(8), 3000)
    assert data.terminated.any()
    same = data.episodes[1:] == data.episodes[:-1]
    assert not (data.terminated[:-1] & same).any()
    assert (data.next_states[:-1][same] == data.states[1:][same]).all()


def test_the_planted_box_is_where_the_worst_trajectory_goes():
    """Pushes and noise that all point the same way reach the box; with the dynamics of the problem, read off its data."""
    mdp = PlantedMDP(seed=1, features=5)
    data = mdp.sample(np.random.default_rng(9), trajectories=20)
    inputs = np.column_stack([data.states, mdp.policy.action_vectors[data.actions][:, 0]])
    dynamics = np.array([[0.9, 0.3, 0.0], [-0.1, 0.8, 0.35]])
    noise = data.next_states - inputs @ dynamics.T
    assert np.abs(noise).max() == pytest.approx(1.5 * mdp.noise)
    _, high = planted_box(mdp, LENGTH)
    for coordinate in range(2):
        reached = 0.0
        for steps in range(1, LENGTH + 1):
            powers = [np.linalg.matrix_power(dynamics[:, :2], k) for k in range(steps + 1)]
            # The signs that push s_t as far as it goes.
            state = np.sign(powers[steps][coordinate])
            for left in range(steps - 1, -1, -1):
                direction = powers[left][coordinate]
                state = dynamics[:, :2] @ state + dynamics[:, 2] * np.sign(direction[1]) + 1.5 * mdp.noise * np.sign(direction)
            reached = max(reached, abs(state[coordinate]))
        assert reached == pytest.approx(high[coordinate], rel=1e-9)


def test_planted_data_stay_in_the_declared_box():
    for name in ("planted-5", "planted-bernoulli"):
        family = family_named(name)
        low, high = family.assumptions.state_box
        data = family.draw(np.random.default_rng(10), 5000)
        assert (data.next_states > low).all() and (data.next_states < high).all()
