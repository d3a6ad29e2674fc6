"""The tasks of the table of trust: their logs, their policies, and the truths about them."""

import numpy as np
import pytest

from accountable_ope.environments.control_task import monte_carlo_value
from accountable_ope.errors import InvalidInput
from accountable_ope.trust import task as task_module
from accountable_ope.trust.control import DISCOUNT, SIMULATIONS
from accountable_ope.trust.exact import Seen, planted_process, sine_reward, timid
from accountable_ope.trust.task import simulated
from accountable_ope.trust.tasks import TASK_NAMES, task_named, tasks_named


def test_there_are_ten_tasks_with_two_policies_each():
    tasks, skipped = tasks_named()
    assert len(tasks) + len(skipped) == len(TASK_NAMES) >= 10
    for task in tasks:
        assert len({target.name for target in task.targets}) == 2
        assert task.name in TASK_NAMES and task_named(task.name) is task


@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_log_keeps_what_is_declared(name):
    tasks, skipped = tasks_named([name])
    if skipped:
        pytest.skip(skipped[0].reason)
    [task] = tasks
    data = task.draw(np.random.default_rng(0), 200)
    again = task.draw(np.random.default_rng(0), 200)
    assert len(data) == 200 and data.sha256 == again.sha256
    low, high = task.assumptions.reward_range
    assert data.rewards.min() >= low and data.rewards.max() <= high
    for target in task.targets:
        problem = task.problem(target.name, data, seed=0)  # refuses what contradicts the declarations
        least, most = problem.ranges.value
        assert least <= target.truth.value <= most
        assert target.truth.standard_error < 2e-3 * (most - least)
        weights = sum(branch.weights for branch in target.policy.branches(data.states))
        np.testing.assert_allclose(weights, 1.0)


SIMULATED = [(simulation().process, *policy) for simulation in SIMULATIONS for policy in simulation().policies]


@pytest.mark.parametrize(("process", "name", "policy"), SIMULATED, ids=lambda one: getattr(one, "name", None))
def test_stored_values_are_simulated_again(process, name, policy):
    truth = simulated(process.name, name)
    found = monte_carlo_value(process, policy, np.random.default_rng(1), discount=DISCOUNT, episodes=500)
    error = np.hypot(found.standard_error, truth.standard_error)
    assert abs(found.value - truth.value) < 5 * error + found.cut_off
    assert error < 0.02 * abs(process.reward_range[1] - process.reward_range[0]) / (1 - DISCOUNT)  # a wrong value would be seen


def test_the_planted_values_are_simulated_again():
    process = planted_process()
    for policy, value in ((process.mdp.policy, process.mdp.value), (timid(process), simulated("planted", "timid").value)):
        found = monte_carlo_value(process, policy, np.random.default_rng(2), discount=0.9, episodes=60)
        assert abs(found.value - value) < 5 * found.standard_error + 0.002
        assert found.standard_error < 0.03


@pytest.mark.parametrize("name", ["rough", "coarse"])
def test_exact_values_are_those_of_the_policies_as_they_are_seen(name):
    """Trajectories in which actions follow the policy of the points that are shown, and not a table of states."""
    task = task_named(name)
    seen = task.draw
    assert isinstance(seen, Seen)
    mdp, rng, count = seen.draw.mdp, np.random.default_rng(3), 1000
    for target in task.targets:
        state = rng.choice(len(mdp.start), size=count, p=mdp.start)
        total = np.zeros(count)
        for time in range(80):
            right = np.asarray([branch.weights for branch in target.policy.branches(seen.points[state])])[1]
            action = (rng.random(count) < right).astype(np.int64)
            total += 0.9**time * mdp.mean_reward[state, action]
            chances = mdp.transition[state, action].cumsum(axis=1)
            state = np.minimum((chances < rng.random(count)[:, None]).sum(axis=1), len(mdp.start) - 1)
        assert abs(total.mean() - target.truth.value) < 5 * total.std() / np.sqrt(count) + 0.9**80 * 10


def test_the_value_of_a_sine_bandit_is_a_mean_over_its_contexts():
    task = task_named("sine-bandit")
    for target in task.targets:
        arms = [branch.weights for branch in target.policy.branches(task.starts.states)]
        means = [sine_reward(task.starts.states, np.full(len(task.starts.states), arm)) for arm in (0, 1)]
        value = float(np.mean(arms[0] * means[0] + arms[1] * means[1]))
        assert target.truth.value == pytest.approx(value, abs=1e-12)


def test_a_task_that_cannot_be_run_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(task_module, "find_spec", lambda name: None)
    tasks, skipped = tasks_named()
    assert [(each.name, each.reason) for each in skipped] == [("inverted-pendulum", "mujoco and gymnasium not installed")]
    assert len(tasks) == len(TASK_NAMES) - 1


def test_unknown_names_are_one_sentence():
    with pytest.raises(InvalidInput, match="`task` must be one of cartpole, .* Got 'bogus'"):
        tasks_named(["bogus"])
    with pytest.raises(InvalidInput, match="No value was measured for bold in cartpole"):
        simulated("cartpole", "bold")
