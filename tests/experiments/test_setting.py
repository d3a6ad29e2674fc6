"""Data, truth and declared ranges of the experiments, checked against a solution of Puck-Mountain on a grid."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.sparse import csr_matrix
from scipy.stats import norm

from accountable_ope.environments.control_task import roll_out
from accountable_ope.environments.puck_mountain import PuckMountain
from accountable_ope.environments.softmax import (
    TASKS,
    control_task,
    measured_value,
    q_network,
    softmax_policy,
)
from accountable_ope.errors import InvalidInput
from accountable_ope.experiments.setting import DISCOUNT, ONE_STEP_RANGE, Setting, assumptions, draw_rows, truth
from accountable_ope.runner.run import trial_seed

CUT = 2.0


def puck_outcomes(states, action, speed_noise, position_noise):
    """Puck-Mountain once more, for given noise: the mechanics of its docstring."""
    task = PuckMountain()
    position, speed = -0.3 + 0.9 * states[:, 0], 0.07 * states[:, 1]
    speed = speed + task.push * (action - 1) - task.gravity * np.cos(3 * position) + speed_noise
    speed = np.clip(speed, -0.07, 0.07)
    position = np.clip(position + speed + position_noise, -1.2, 0.6)
    speed = np.where((position <= -1.2) | (position >= 0.6), -speed / 2, speed)
    return np.clip(np.column_stack([(position + 0.3) / 0.9, speed / 0.07]), -1, 1)


@cache
def solve_puck(discount, cells=81, nodes=9):
    """V of the target policy on a grid, and the largest range of discount V(s') given (s, a)."""
    task, policy = PuckMountain(), softmax_policy("puck-mountain", 0.1)
    axis = np.linspace(-1, 1, cells)
    states = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    noise = np.linspace(-CUT, CUT, nodes)
    edges = np.concatenate([[-np.inf], 0.5 * (noise[1:] + noise[:-1]), [np.inf]])
    mass = np.diff(norm.cdf(edges))
    chosen = policy.probabilities(states)
    rows, columns, weights, outcomes = [], [], [], {}
    for action in range(3):
        for i, u in enumerate(noise):
            for j, v in enumerate(noise):
                after = puck_outcomes(states, action, task.speed_noise * u, task.position_noise * v)
                outcomes.setdefault(action, []).append(after)
                place = (after + 1) / 2 * (cells - 1)
                corner = np.minimum(place.astype(int), cells - 2)
                share = place - corner
                for a in (0, 1):
                    for b in (0, 1):
                        part = (share[:, 0] if a else 1 - share[:, 0]) * (share[:, 1] if b else 1 - share[:, 1])
                        rows.append(np.arange(len(states)))
                        columns.append((corner[:, 0] + a) * cells + corner[:, 1] + b)
                        weights.append(chosen[:, action] * mass[i] * mass[j] * part)
    moves = csr_matrix((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), shape=(len(states),) * 2)
    reward, value = task.reward(states), np.zeros(len(states))
    for _ in range(int(math.log(1e-8) / math.log(discount))):
        value = reward + discount * (moves @ value)
    look_up = RegularGridInterpolator((axis, axis), value.reshape(cells, cells))
    widest = max(float(np.ptp(np.stack([discount * look_up(x) for x in found]), axis=0).max()) for found in outcomes.values())
    return float(look_up(task.starts.states).mean()), widest


def test_measured_truth_of_the_puck_is_that_of_the_grid():
    """Two ways that share nothing but the constants; the grid's own error is about one percent."""
    value, _ = solve_puck(DISCOUNT)
    measured = measured_value("puck-mountain")
    assert abs(value - measured.value) <= 4 * measured.standard_error + 0.02 * measured.value


def test_declared_one_step_range_holds_and_is_not_idle():
    _, widest = solve_puck(DISCOUNT)
    declared = ONE_STEP_RANGE["puck-mountain"]
    assert declared is not None
    assert 1.03 * widest <= declared <= 1.3 * widest  # a little room for what a grid does not see, and no more


@pytest.mark.parametrize("task", TASKS)
def test_rows_are_exactly_as_many_as_asked_and_those_of_the_seed(task):
    data = draw_rows(task, 1.0, 333, 7)
    assert len(data) == 333
    again, other = draw_rows(task, 1.0, 333, 7), draw_rows(task, 1.0, 333, 8)
    assert np.array_equal(data.states, again.states) and not np.array_equal(data.states, other.states)
    assert data.episodes is not None
    same = data.episodes[1:] == data.episodes[:-1]
    assert np.array_equal(data.next_states[:-1][same], data.states[1:][same])
    assert np.bincount(data.episodes).max() <= control_task(task).horizon


def test_seeds_depend_on_what_is_drawn():
    assert trial_seed("a", 1) == trial_seed("a", 1) != trial_seed("a", 2)
    assert len({Setting("puck-mountain", 100).draw(k).states[5, 0] for k in range(4)}) == 4


@pytest.mark.parametrize("task", TASKS)
def test_target_is_better_than_behavior_and_not_perfect(task):
    best = 1 / (1 - DISCOUNT)
    target, behavior = measured_value(task), measured_value(task, 1.0)
    assert behavior.value + 20 * behavior.standard_error < target.value < 0.96 * best
    assert truth(task) == pytest.approx(target.value / best)
    assert target.standard_error / best < 1e-3 and target.cut_off < 1e-3


def test_unmeasured_temperatures_and_unknown_tasks_are_refused():
    with pytest.raises(InvalidInput, match="No value was measured for puck-mountain at temperature 0.7"):
        measured_value("puck-mountain", 0.7)
    for call in (control_task, q_network, measured_value):
        with pytest.raises(InvalidInput, match="must be one of inverted-pendulum, puck-mountain"):
            call("cart-pole")
    with pytest.raises(InvalidInput, match="temperature"):
        softmax_policy("puck-mountain", 0.0)


@pytest.mark.parametrize("task", TASKS)
def test_softmax_of_the_network(task):
    states = control_task(task).starts.states
    q = q_network(task)(states)
    cold, hot = (softmax_policy(task, t).probabilities(states) for t in (1e-3, 1e3))
    assert np.array_equal(cold.argmax(axis=1), q.argmax(axis=1))
    assert np.allclose(hot, 1 / q.shape[1], atol=0.01)
    expected = np.exp(q[0]) / np.exp(q[0]).sum()
    assert softmax_policy(task, 1.0).probabilities(states)[0] == pytest.approx(expected)


def test_assumptions_say_what_the_task_is():
    falls, stays = assumptions("inverted-pendulum", 3.0), assumptions("puck-mountain", 3.0, symmetric=True)
    assert falls.terminates and falls.reward_noise and falls.one_step_range is None
    assert not stays.terminates and not stays.reward_noise and stays.symmetric_noise and stays.one_step_range == 4.0


def test_values_at_other_discounts_agree_with_short_episodes():
    """At discount 0.5 a hundred steps are forever: rewards of logged episodes must give the same value."""
    data = roll_out(PuckMountain(), softmax_policy("puck-mountain", 0.1), np.random.default_rng(0), episodes=3000, length=30)
    returns = (data.rewards.reshape(3000, 30) * 0.5 ** np.arange(30)).sum(axis=1)
    value, _ = solve_puck(0.5)
    assert abs(returns.mean() - value) <= 5 * returns.std() / math.sqrt(3000) + 0.01 * value
