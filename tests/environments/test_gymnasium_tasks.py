"""The control tasks as Gymnasium environments: the checker, registration, time limits, seeds, and the task underneath."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from accountable_ope.environments.control_task import ControlTask, draw_starts
from accountable_ope.environments.gymnasium_tasks import IDENTIFIERS, TaskEnvironment, inverted_pendulum, puck_mountain
from accountable_ope.environments.inverted_pendulum import InvertedPendulum
from accountable_ope.environments.puck_mountain import PuckMountain
from accountable_ope.errors import InvalidInput

MAKERS = pytest.mark.parametrize("make", [puck_mountain, inverted_pendulum], ids=lambda make: make.__name__)
NAMES = pytest.mark.parametrize("identifier", IDENTIFIERS)
CALM = {"accountable_ope/InvertedPendulum-v0": {"noise": 0.0}, "accountable_ope/PuckMountain-v0": {}}
"""Without noise, pushes that answer the angle hold the pole up for longer than an episode."""


def hold(task: ControlTask, observation: np.ndarray) -> int:
    """The middle action; for the pendulum a push towards the side to which it falls."""
    if not isinstance(task, InvertedPendulum):
        return 1
    _, angle, _, turning = observation * task.scale
    return int(np.digitize(angle + 1.5 * turning, [-0.2, -0.05, -0.01, 0.01, 0.05, 0.2]))


@MAKERS
def test_gymnasiums_checker_has_nothing_to_say(make: Callable[[], TaskEnvironment]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*alternative render modes.*")  # of environments that no `make` made
        check_env(make())


@NAMES
def test_registered_environments_are_made_and_pass_the_checker(identifier: str) -> None:
    with warnings.catch_warnings(), gymnasium.make(identifier) as environment:
        warnings.simplefilter("error")
        assert isinstance(environment.unwrapped, TaskEnvironment)
        check_env(environment.unwrapped)


def test_the_identifiers_belong_to_their_tasks() -> None:
    tasks = {identifier: type(gymnasium.make(identifier).unwrapped.task) for identifier in IDENTIFIERS}
    assert tasks == {
        "accountable_ope/InvertedPendulum-v0": InvertedPendulum,
        "accountable_ope/PuckMountain-v0": PuckMountain,
    }


def test_constants_reach_the_task() -> None:
    assert gymnasium.make("accountable_ope/PuckMountain-v0", push=0.003).unwrapped.task == PuckMountain(push=0.003)


@NAMES
def test_a_specification_can_be_written_down_and_made_again(identifier: str) -> None:
    written = gymnasium.spec(identifier).to_json()
    assert json.loads(written)["entry_point"].startswith("accountable_ope.environments.gymnasium_tasks:")
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(written))
    assert again.spec.max_episode_steps == again.unwrapped.task.horizon


def test_importing_again_registers_nothing_twice() -> None:
    code = (
        "import warnings; warnings.simplefilter('error'); import importlib, gymnasium; before = set(gymnasium.registry); "
        "import accountable_ope.environments.gymnasium_tasks as tasks; importlib.reload(tasks); "
        "print(*sorted(set(gymnasium.registry) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (sorted(IDENTIFIERS), "")


def test_without_gymnasium_the_error_holds_the_pip_command() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import accountable_ope.environments.gymnasium_tasks"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(
        'MissingExtra: Gymnasium environments need gymnasium: pip install "accountable-ope[experiments]".'
    )


@NAMES
def test_the_time_limit_truncates_at_the_horizon(identifier: str) -> None:
    environment = gymnasium.make(identifier, **CALM[identifier])
    task = environment.unwrapped.task
    observation, _ = environment.reset(seed=0)
    for step in range(1, task.horizon + 1):
        observation, _, terminated, truncated, _ = environment.step(hold(task, observation))
        assert not terminated and truncated == (step == task.horizon)


def test_a_fallen_pole_terminates_and_pays_nothing() -> None:
    environment = gymnasium.make("accountable_ope/InvertedPendulum-v0")
    environment.reset(seed=0)
    rewards, terminated, truncated = [], False, False
    while not (terminated or truncated):
        _, reward, terminated, truncated, _ = environment.step(6)
        rewards.append(reward)
    assert terminated and not truncated
    assert rewards[-1] == 0 and set(rewards[:-1]) == {1.0}


@NAMES
def test_a_seed_gives_the_same_episode(identifier: str) -> None:
    def episode(seed: int) -> list[float]:
        environment = gymnasium.make(identifier)
        numbers = list(environment.reset(seed=seed)[0])
        for action in (0, 2, 1):
            observation, reward, terminated, _, _ = environment.step(action)
            numbers += [*observation, reward, terminated]
        return numbers

    assert episode(4) == episode(4) != episode(5)


@NAMES
def test_a_reset_without_a_seed_goes_on(identifier: str) -> None:
    environment = gymnasium.make(identifier)
    starts = environment.unwrapped.task.starts.states
    found = np.array([environment.reset(seed=0 if first else None)[0] for first in [True] + 5 * [False]])
    assert all((one == starts).all(axis=1).any() for one in found)
    assert len(np.unique(found, axis=0)) > 1


@MAKERS
def test_steps_are_those_of_the_task(make: Callable[[], TaskEnvironment]) -> None:
    environment = make()
    task, rng = environment.task, gymnasium.utils.seeding.np_random(7)[0]
    observation, _ = environment.reset(seed=7)
    states = draw_starts(task, rng, 1)
    np.testing.assert_array_equal(observation, states[0])
    for action in (0, 1, 2, 1, 0):
        moved = task.step(states, np.array([action]), rng)
        observation, reward, terminated, truncated, extra = environment.step(np.int64(action))
        np.testing.assert_array_equal(observation, moved.next_states[0])
        assert (reward, terminated, truncated, extra) == (moved.rewards[0], moved.terminated[0], False, {})
        assert type(reward) is float and type(terminated) is bool
        states = moved.next_states


@MAKERS
def test_an_observation_is_the_callers_own(make: Callable[[], TaskEnvironment]) -> None:
    environment, other = make(), make()
    first, _ = environment.reset(seed=0)
    other.reset(seed=0)
    first[:] = 0.9
    after = environment.step(1)[0]
    np.testing.assert_array_equal(after, other.step(1)[0])
    after[:] = -0.9
    np.testing.assert_array_equal(environment.step(1)[0], other.step(1)[0])


@MAKERS
@pytest.mark.parametrize("action", [-1, 7, 0.5, "left", None, np.array([1]), [0]])
def test_a_bad_action_is_one_sentence(make: Callable[[], TaskEnvironment], action: object) -> None:
    environment = make()
    environment.reset(seed=0)
    last = len(environment.task.actions) - 1
    with pytest.raises(InvalidInput, match=f"`action` must be an index from 0 to {last}. Got "):
        environment.step(action)


@NAMES
def test_a_bad_action_is_told_through_the_wrappers_too(identifier: str) -> None:
    environment = gymnasium.make(identifier)
    environment.reset(seed=0)
    with pytest.raises(InvalidInput, match="`action` must be an index from 0 to"):
        environment.step(99)
