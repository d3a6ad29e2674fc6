"""Inverted-Pendulum: MuJoCo's pole on a cart, seven pushes, Gaussian noise on the state after every step."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import checked
from ..errors import MissingExtra
from ..problem.step_knowledge import StepKnowledge
from ..problem.terminal_region import TerminalRegion
from ..problem.transitions import StartStates
from ..validation import FloatArray, IntArray, frozen
from .control_task import Step
from .draws import CUT, cut_normal

FRAME_SKIP = 2
"""Steps of the simulator per action, as in Gymnasium's InvertedPendulum-v5: 0.04 seconds."""

FALLEN = 0.2
"""The angle, in radians, at which the pole counts as fallen."""


@checked
@dataclass(frozen=True)
class InvertedPendulum:
    """The physics of Gymnasium's `InvertedPendulum-v5` with pushes {-1, -0.3, -0.2, 0, 0.2, 0.3, 1}.

    After every step N(0, noise^2), cut at two standard deviations, is added to each coordinate of the scaled state, which is then
    kept in [-1, 1]^4. The reward is 1 where the pole is up after the step; a fall, |angle| > 0.2, terminates and pays 0. The
    state is (x, angle, speed of x, angular speed) / scale. An episode starts in one of 100 states, every coordinate
    U(-0.01, 0.01) before scaling, drawn once and for all.

    Parameters
    ----------
    noise : float
        Standard deviation in every scaled coordinate.
    scale : tuple of four floats
        What the coordinates are divided by.
    horizon : int
        After this many steps a logged episode is cut off.

    Raises
    ------
    MissingExtra
        In `step`, where MuJoCo or Gymnasium is not installed.

    Examples
    --------
    >>> from accountable_ope.environments import InvertedPendulum
    >>> InvertedPendulum().reward_range
    (0.0, 1.0)
    """

    noise: float = 0.05
    scale: tuple[float, float, float, float] = (1.0, 0.25, 3.0, 3.0)
    horizon: int = 50

    @property
    def name(self) -> str:
        return "inverted-pendulum"

    @property
    def actions(self) -> FloatArray:
        return frozen(np.array([[-1.0], [-0.3], [-0.2], [0.0], [0.2], [0.3], [1.0]]))

    @property
    def state_box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return ((-1.0,) * 4, (1.0,) * 4)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def reward_noise(self) -> bool:
        return True

    @property
    def terminates(self) -> bool:
        return True

    @cached_property
    def starts(self) -> StartStates:
        rng = np.random.default_rng(0)
        return StartStates(rng.uniform(-0.01, 0.01, size=(100, 4)) / np.array(self.scale))

    @cached_property
    def _physics(self) -> tuple[Any, Any, Any]:
        """The simulator, a model and scratch memory; made once."""
        try:
            mujoco = importlib.import_module("mujoco")
            rollout = importlib.import_module("mujoco.rollout")
            gymnasium = importlib.import_module("gymnasium")
        except ImportError as error:
            raise MissingExtra('The inverted pendulum needs MuJoCo: pip install "accountable-ope[experiments]".') from error
        assets = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets"
        model = mujoco.MjModel.from_xml_path(str(assets / "inverted_pendulum.xml"))
        return rollout, model, mujoco.MjData(model)

    def step_knowledge(self) -> StepKnowledge:
        """Where the pole has fallen, and how far a step can go.

        Given state and push the simulator has one answer, and the noise that follows is cut.
        """
        upright = FALLEN / self.scale[1]  # the largest number that `step` does not take for a fall
        while upright * self.scale[1] > FALLEN:
            upright = math.nextafter(upright, 0.0)
        while math.nextafter(upright, math.inf) * self.scale[1] <= FALLEN:
            upright = math.nextafter(upright, math.inf)
        free = math.inf
        region = TerminalRegion.outside((-free, -upright, -free, -free), (free, upright, free, free))
        return StepKnowledge(region, self._reach)

    def _reach(self, states: FloatArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        moved = self._moved(states, actions)
        return np.clip(moved - self.noise * CUT, -1.0, 1.0), np.clip(moved + self.noise * CUT, -1.0, 1.0)

    def _moved(self, states: FloatArray, actions: IntArray) -> FloatArray:
        """The next states before noise, a function of state and action: every roll-out of the simulator starts afresh."""
        rollout, model, scratch = self._physics
        scale = np.array(self.scale)
        control = np.repeat(self.actions[np.asarray(actions)][:, None, :], FRAME_SKIP, axis=1)
        time = np.zeros((len(states), 1))
        found, _ = rollout.rollout(model, scratch, np.concatenate([time, states * scale], axis=1), control)
        return np.asarray(found[:, -1, 1:] / scale)

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        moved = self._moved(states, actions) + self.noise * cut_normal(rng, (len(states), 4))
        moved = np.clip(moved, -1.0, 1.0)
        fallen = np.abs(moved[:, 1] * self.scale[1]) > FALLEN
        return Step(moved, (~fallen).astype(np.float64), fallen)
