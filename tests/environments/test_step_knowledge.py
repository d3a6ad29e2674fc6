"""What the environments say of their single steps: true of every simulated step, and no wider than it must be."""

import pickle

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import (
    InvertedPendulum,
    PlantedMDP,
    PuckMountain,
    TabularMDP,
    chain,
    clinic,
    planar_regulator,
    roll_out,
    scalar_regulator,
    softmax_policy,
)
from accountable_ope.environments.draws import CUT
from accountable_ope.environments.inverted_pendulum import FALLEN


def states_in_box(task, count, rng):
    low, high = task.state_box
    return rng.uniform(low, high, size=(count, len(low)))


@pytest.mark.parametrize(
    "task",
    [PuckMountain(), PuckMountain(push=0.01, gravity=0.0, position_noise=0.05, speed_noise=0.02), PuckMountain(speed_noise=0)],
    ids=["default", "other constants", "no noise in the speed"],
)
def test_a_puck_stays_within_its_reach_and_fills_it(task):
    rng = np.random.default_rng(0)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.97, 0.5], [-0.97, -0.5]], dtype=float)
    states = np.repeat(np.concatenate([states_in_box(task, 100, rng), corners]), 400, axis=0)
    actions = rng.integers(3, size=len(states))
    low, high = task.step_knowledge().reach(states, actions)
    seen = task.step(states, actions, rng).next_states
    assert ((low <= seen) & (seen <= high)).all()
    alike = np.unique(np.column_stack([states, actions]), axis=0, return_inverse=True)[1].reshape(-1)
    for column in range(2):
        least, most = np.full(alike.max() + 1, np.inf), np.full(alike.max() + 1, -np.inf)
        np.minimum.at(least, alike, seen[:, column])
        np.maximum.at(most, alike, seen[:, column])
        width = (high - low)[:, column]
        filled = (most - least)[alike][width > 1e-9] / width[width > 1e-9]
        assert np.median(filled) > 0.85  # the noise is cut at two standard deviations, so its ends are seen


def ends_of_noise(task, states, actions, signs):
    """Steps with every draw at an end of its range."""

    class Ends:
        def standard_normal(self, shape):
            return np.broadcast_to(CUT * next(drawn), shape)

    drawn = iter(signs)
    return task.step(states, actions, Ends()).next_states


def test_the_ends_of_the_noise_are_the_ends_of_the_reach():
    task, rng = PuckMountain(), np.random.default_rng(1)
    states, actions = states_in_box(task, 500, rng), rng.integers(3, size=500)
    low, high = task.step_knowledge().reach(states, actions)
    least, most = (ends_of_noise(task, states, actions, (sign, sign)) for sign in (-1.0, 1.0))
    assert (least[:, 0] == low[:, 0]).all() and (most[:, 0] == high[:, 0]).all()
    free = (np.abs(low[:, 0]) < 1) & (np.abs(high[:, 0]) < 1)
    assert free.sum() > 300 and (least[free] == low[free]).all() and (most[free] == high[free]).all()


def asked(data, starts, policy, knowledge, **facts):
    given = {"discount": 0.9, "reward_range": (0, 1)} | facts
    return aope.Problem(data, starts, policy, aope.Assumptions(**given), knowledge=knowledge)


def test_a_log_of_the_puck_contradicts_nothing():
    task = PuckMountain()
    data = roll_out(task, softmax_policy(task.name, 1.0), np.random.default_rng(0), episodes=20)
    rows = asked(data, task.starts, softmax_policy(task.name, 0.1), task.step_knowledge(), reward_noise=False).row_ranges
    assert not rows.certain.any() and not rows.may_end.any()
    usual = np.array([4 * (task.speed_noise + task.position_noise) / 0.9, 4 * task.speed_noise / 0.07])
    np.testing.assert_allclose(np.median(rows.reach.high - rows.reach.low, axis=0), usual, atol=1e-9)


def test_a_pendulum_falls_where_it_says():
    pytest.importorskip("mujoco")
    task = InvertedPendulum()
    rng, target = np.random.default_rng(0), softmax_policy(task.name, 0.1)
    data = roll_out(task, softmax_policy(task.name, 1.0), rng, episodes=60)
    rows = asked(data, task.starts, target, task.step_knowledge()).row_ranges
    assert rows.certain.any() and rows.may_end.any() and (~rows.certain & ~rows.may_end).any()
    assert data.terminated[rows.certain].all() and not data.terminated[~rows.certain & ~rows.may_end].any()
    inner = (np.abs(rows.reach.low) < 1).all(axis=1) & (np.abs(rows.reach.high) < 1).all(axis=1)
    np.testing.assert_allclose((rows.reach.high - rows.reach.low)[inner], 2 * CUT * task.noise, atol=1e-12)


def test_the_simulator_is_a_function_of_state_and_push():
    """Which the reach of the pendulum rests on: bit by bit, in any order, alone or among others."""
    pytest.importorskip("mujoco")
    task, rng = InvertedPendulum(), np.random.default_rng(0)
    states, actions = states_in_box(task, 500, rng), rng.integers(7, size=500)
    low, high = task.step_knowledge().reach(states, actions)
    order = rng.permutation(500)
    again = InvertedPendulum().step_knowledge().reach(states[order], actions[order])
    assert (again[0] == low[order]).all() and (again[1] == high[order]).all()
    for row in order[:20]:
        assert (task.step_knowledge().reach(states[[row]], actions[[row]])[0] == low[row]).all()
    seen = task.step(states, actions, rng).next_states
    assert ((low <= seen) & (seen <= high)).all()


@pytest.mark.parametrize("scale", [0.25, 0.3, 0.37, 1 / 3, 0.7])
def test_the_region_of_a_fall_is_exact(scale):
    """To the last bit, whatever the angle is divided by."""
    region = InvertedPendulum(scale=(1.0, scale, 3.0, 3.0)).step_knowledge().terminal_region
    angle = FALLEN / scale
    for _ in range(4):
        angle = np.nextafter(angle, 0.0)
    for _ in range(9):
        states = np.array([[0.0, angle, 0.0, 0.0], [0.0, -angle, 0.0, 0.0]])
        assert region.contains(states).tolist() == (np.abs(states[:, 1] * scale) > FALLEN).tolist()
        angle = np.nextafter(angle, 9.0)


def test_planted_steps_reach_their_outermost_atoms():
    mdp = PlantedMDP(seed=1)
    data = mdp.sample(np.random.default_rng(0), trajectories=40)
    rows = asked(data, mdp.starts, mdp.policy, mdp.step_knowledge(), reward_noise=False).row_ranges
    low, high = rows.reach
    assert ((low <= data.next_states) & (data.next_states <= high)).all()
    assert (data.next_states == low).any(axis=0).all() and (data.next_states == high).any(axis=0).all()


@pytest.mark.parametrize("make", [scalar_regulator, planar_regulator])
def test_regulators_stay_within_the_cube_of_their_noise(make):
    problem = make()
    data = problem.sample(np.random.default_rng(0), trajectories=40)
    low, high = asked(data, problem.starts, problem.policy, problem.step_knowledge()).row_ranges.reach
    assert ((low <= data.next_states) & (data.next_states <= high)).all()
    share = (data.next_states - low) / (high - low)
    assert share.min() < 0.01 and share.max() > 0.99


def test_tables_reach_over_their_support():
    mdp = chain(6, discount=0.9)
    knowledge = mdp.step_knowledge()
    low, high = knowledge.reach(np.array([[0.0], [3.0], [5.0]]), np.array([0, 1, 1]))
    assert low.ravel().tolist() == [0.0, 2.0, 4.0] and high.ravel().tolist() == [1.0, 4.0, 5.0]
    assert knowledge.terminal_region is None and knowledge.one_step_range is None


def test_terminal_states_need_not_lie_side_by_side():
    region = (
        TabularMDP(np.full((5, 1, 5), 0.2), np.zeros((5, 1)), 0.9, [1.0, 0, 0, 0, 0], [False, True, False, True, True])
        .step_knowledge()
        .terminal_region
    )
    assert region.name == "in {1, 3, 4}"
    boxes = [(0, 0), (1, 1), (0, 1), (1, 3), (3, 4), (2.5, 9), (-9, 0.5), (1.2, 1.8), (-np.inf, np.inf)]
    low, high = np.array(boxes).T[:, :, None]
    certain, possible = region.covers(low, high)
    inside = [[k in (1, 3, 4) for k in range(5) if a <= k <= b] for a, b in boxes]
    assert certain.tolist() == [bool(each) and all(each) for each in inside]
    assert possible.tolist() == [any(each) for each in inside]
    with pytest.raises(aope.InvalidInput, match="one column of indices 0 to 4"):
        region.contains(np.array([[0.5]]))


def test_the_range_of_a_step_in_the_clinic():
    """Against a loop over what can happen; at discount 1 V is the chance to recover."""
    mdp, table = clinic(seed=3), np.full((6, 3), 1 / 3)
    v = (table * mdp.q_values(table)).sum(axis=1)
    for state in range(4):
        for action in range(3):
            after = np.flatnonzero(mdp.transition[state, action])
            outcomes = [float(k == 4) + v[k] for k in after]
            found = mdp.step_knowledge(table).one_step_range(np.array([[float(state)]]), np.array([action]))
            assert 0 <= found[0] - (max(outcomes) - min(outcomes)) < 1e-8


@pytest.mark.parametrize(
    "make", [PuckMountain, PlantedMDP, scalar_regulator, clinic, InvertedPendulum], ids=lambda make: make.__name__
)
def test_knowledge_travels_to_other_processes(make):
    knowledge = pickle.loads(pickle.dumps(make().step_knowledge()))
    assert callable(knowledge.reach)
