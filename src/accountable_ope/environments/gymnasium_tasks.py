"""The control problems as Gymnasium environments. Importing this module registers them.

import gymnasium
import accountable_ope.environments.gymnasium_tasks

gymnasium.make("accountable_ope/PuckMountain-v0")
gymnasium.make("accountable_ope/InvertedPendulum-v0")
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput, MissingExtra
from .control_task import ControlTask, draw_starts
from .inverted_pendulum import InvertedPendulum
from .puck_mountain import PuckMountain

try:
    import gymnasium
except ImportError as error:
    raise MissingExtra('Gymnasium environments need gymnasium: pip install "accountable-ope[experiments]".') from error

IDENTIFIERS = ("accountable_ope/InvertedPendulum-v0", "accountable_ope/PuckMountain-v0")


class TaskEnvironment(gymnasium.Env[Any, Any]):
    """One simulated state of a control task, stepped by action index."""

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own name and type

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


def _register() -> None:
    for name, make, task in zip(IDENTIFIERS, (inverted_pendulum, puck_mountain), (InvertedPendulum, PuckMountain), strict=True):
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=make, max_episode_steps=task.horizon)


_register()
