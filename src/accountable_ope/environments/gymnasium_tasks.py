"""The control problems as Gymnasium environments. Importing this module registers them.

import gymnasium
import accountable_ope.environments.gymnasium_tasks

gymnasium.make("accountable_ope/PuckMountain-v0")
gymnasium.make("accountable_ope/InvertedPendulum-v0")
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidInput, MissingExtra
from .control_task import ControlTask, draw_starts
from .inverted_pendulum import InvertedPendulum
from .puck_mountain import PuckMountain

try:
    import gymnasium
except ImportError as error:
    raise MissingExtra('Gymnasium environments need gymnasium: pip install "accountable-ope[experiments]".') from error


class TaskEnvironment(gymnasium.Env[Any, Any]):
    """One simulated state of a control task, stepped by action index.

    It never truncates by itself: the registered environments are cut off by Gymnasium's TimeLimit, at the task's horizon.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, task: ControlTask) -> None:
        low, high = (np.array(side) for side in task.state_box)
        self.task = task
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(len(task.actions))
        self._state = task.starts.states[:1]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = draw_starts(self.task, self.np_random, 1)
        return self._state[0].copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise InvalidInput(f"`action` must be an index from 0 to {len(self.task.actions) - 1}. Got {action!r}.")
        moved = self.task.step(self._state, np.array([action]), self.np_random)
        self._state = moved.next_states
        return self._state[0].copy(), float(moved.rewards[0]), bool(moved.terminated[0]), False, {}


def puck_mountain(**constants: Any) -> TaskEnvironment:
    """A TaskEnvironment of PuckMountain(**constants)."""
    return TaskEnvironment(PuckMountain(**constants))


def inverted_pendulum(**constants: Any) -> TaskEnvironment:
    """A TaskEnvironment of InvertedPendulum(**constants)."""
    return TaskEnvironment(InvertedPendulum(**constants))


_MAKERS: dict[str, tuple[str, int]] = {
    "accountable_ope/InvertedPendulum-v0": (inverted_pendulum.__name__, InvertedPendulum.horizon),
    "accountable_ope/PuckMountain-v0": (puck_mountain.__name__, PuckMountain.horizon),
}
IDENTIFIERS = tuple(_MAKERS)


def _register() -> None:
    for identifier, (maker, horizon) in _MAKERS.items():
        if identifier not in gymnasium.registry:
            # Named, not passed: a specification that holds a function cannot be written into a dataset's metadata.
            gymnasium.register(id=identifier, entry_point=f"{__name__}:{maker}", max_episode_steps=horizon)


_register()
