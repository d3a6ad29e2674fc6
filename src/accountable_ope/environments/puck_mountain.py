"""Puck-Mountain: a puck in a valley, pushed left or right; a roof at both tops turns it back at half its speed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..problem.step_knowledge import StepKnowledge
from ..problem.transitions import StartStates
from ..validation import FloatArray, IntArray, frozen
from .control_task import Step
from .draws import CUT, cut_normal

_LEFT, _RIGHT, _FASTEST = -1.2, 0.6, 0.07
_MIDDLE, _HALF = 0.5 * (_LEFT + _RIGHT), 0.5 * (_RIGHT - _LEFT)


@checked
@dataclass(frozen=True)
class PuckMountain:
    """The mechanics of Mountain-Car without a goal: position p in [-1.2, 0.6], speed |v| <= 0.07, pushes {-1, 0, 1}.

        v <- v + push * action - gravity * cos(3 p) + N(0, speed_noise^2),     p <- p + v + N(0, position_noise^2),

    The noise is cut at two standard deviations, and both are kept within their ranges; where p reaches an end, v becomes -v / 2.
    The reward is a function of the state in which the action is taken, 0.8 (sin(3 p) + 1) / 2 + 0.2 (v / 0.07)^2, in [0, 1].
    Nothing terminates.

    The state is ((p + 0.3) / 0.9, v / 0.07), in [-1, 1]^2. An episode starts in one of 100 states around the bottom of the
    valley, p ~ N(-pi/6, 0.05^2), v ~ N(0, 0.005^2), drawn once and for all.

    Parameters
    ----------
    push, gravity : float
    position_noise, speed_noise : float
        Standard deviations.
    horizon : int
        After this many steps a logged episode is cut off.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import PuckMountain
    >>> task = PuckMountain()
    >>> task.step(task.starts.states[:2], np.array([0, 2]), np.random.default_rng(0)).next_states.shape
    (2, 2)
    """

    push: float = 0.003
    gravity: float = 0.0025
    position_noise: float = 0.01
    speed_noise: float = 0.004
    horizon: int = 100

    @property
    def name(self) -> str:
        return "puck-mountain"

    @property
    def actions(self) -> FloatArray:
        return frozen(np.array([[-1.0], [0.0], [1.0]]))

    @property
    def state_box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return ((-1.0, -1.0), (1.0, 1.0))

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def reward_noise(self) -> bool:
        return False

    @property
    def terminates(self) -> bool:
        return False

    @cached_property
    def starts(self) -> StartStates:
        rng = np.random.default_rng(0)
        position = rng.normal(-np.pi / 6, 0.05, size=100)
        return StartStates(_scaled(position, rng.normal(0.0, 0.005, size=100)))

    def reward(self, states: FloatArray) -> FloatArray:
        """0.8 height + 0.2 squared relative speed."""
        height = 0.5 * (np.sin(3 * (_MIDDLE + _HALF * states[:, 0])) + 1)
        return np.asarray(0.8 * height + 0.2 * states[:, 1] ** 2)

    def step_knowledge(self) -> StepKnowledge:
        """How far a step can go: the noise is cut, and all else is mechanics."""
        return StepKnowledge(reach=self._reach)

    def _reach(self, states: FloatArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Least and largest next state: `step` with the noise at its ends. Each of its sums grows with each of its terms, also
        when rounded, so that no next state lies outside, not even by rounding."""
        position, speed = _MIDDLE + _HALF * states[:, 0], _FASTEST * states[:, 1]
        pushed = self.push * (actions - 1) - self.gravity * np.cos(3 * position)
        slow, fast = (np.clip(speed + pushed + self.speed_noise * end, -_FASTEST, _FASTEST) for end in (-CUT, CUT))
        left = np.clip(position + slow + self.position_noise * -CUT, _LEFT, _RIGHT)
        right = np.clip(position + fast + self.position_noise * CUT, _LEFT, _RIGHT)
        turns = (left == _LEFT) | (right == _RIGHT)
        always = (left == _RIGHT) | (right == _LEFT)
        back, forth = -0.5 * fast, -0.5 * slow
        least = np.where(always, back, np.where(turns, np.minimum(slow, back), slow))
        most = np.where(always, forth, np.where(turns, np.maximum(fast, forth), fast))
        return _scaled(left, least), _scaled(right, most)

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        position, speed = _MIDDLE + _HALF * states[:, 0], _FASTEST * states[:, 1]
        pushed = self.push * (np.asarray(actions) - 1) - self.gravity * np.cos(3 * position)
        speed = speed + pushed + self.speed_noise * cut_normal(rng, (len(states),))
        speed = np.clip(speed, -_FASTEST, _FASTEST)
        position = np.clip(position + speed + self.position_noise * cut_normal(rng, (len(states),)), _LEFT, _RIGHT)
        speed = np.where((position == _LEFT) | (position == _RIGHT), -0.5 * speed, speed)
        return Step(_scaled(position, speed), self.reward(states), np.zeros(len(states), dtype=bool))


def _scaled(position: FloatArray, speed: FloatArray) -> FloatArray:
    # Rounding may put an end of the range a little outside; the box is promised to users.
    return np.clip(np.column_stack([(position - _MIDDLE) / _HALF, speed / _FASTEST]), -1.0, 1.0)
