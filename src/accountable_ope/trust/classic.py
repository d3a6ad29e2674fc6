"""Classic control tasks of Gymnasium as equations, many states stepped at once: what a stranger's log often comes from.

`step` does what one step of CartPole-v1, MountainCar-v0, Acrobot-v1 and Pendulum-v1 does (the tests compare them, where Gymnasium
is installed). Start states are 50 that were drawn once and for all, as `ControlTask` wants it; those of MountainCar and Acrobot
are spread wider than Gymnasium's, from which a log of a random policy hardly ever reaches the goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..environments.control_task import Step
from ..problem.transitions import StartStates
from ..validation import BoolArray, FloatArray, IntArray, frozen

STARTS = 50
FREE = float("inf")
Box = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class CartPole:
    """A pole on a cart, pushed left or right; every step pays 1, a fall (12 degrees) or leaving the track (2.4) ends it."""

    horizon: int = 200
    name: str = "cartpole"
    state_box: Box = ((-FREE,) * 4, (FREE,) * 4)
    reward_range: tuple[float, float] = (0.0, 1.0)
    reward_noise: bool = False
    terminates: bool = True

    @property
    def actions(self) -> FloatArray:
        return frozen(np.array([[-1.0], [1.0]]))

    @cached_property
    def starts(self) -> StartStates:
        return StartStates(np.random.default_rng(3).uniform(-0.05, 0.05, (STARTS, 4)))

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        x, speed, angle, turning = states.T
        force, cosine, sine = np.where(actions == 1, 10.0, -10.0), np.cos(angle), np.sin(angle)
        push = (force + 0.05 * turning**2 * sine) / 1.1
        bend = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pull = push - 0.05 * bend * cosine / 1.1
        after = np.stack([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * bend], axis=1)
        ended = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * 2 * np.pi / 360)
        return Step(after, np.ones(len(states)), ended)


@dataclass(frozen=True)
class MountainCar:
    """A weak car in a valley; every step costs 1 until it is at the top.

    low, high: the box of (position, speed) that start states are drawn from.
    """

    low: tuple[float, float] = (-1.1, -0.05)
    high: tuple[float, float] = (0.45, 0.05)
    horizon: int = 100
    name: str = "mountaincar"
    state_box: Box = ((-1.2, -0.07), (0.6, 0.07))
    reward_range: tuple[float, float] = (-1.0, 0.0)
    reward_noise: bool = False
    terminates: bool = True

    @property
    def actions(self) -> FloatArray:
        return frozen(np.array([[-1.0], [0.0], [1.0]]))

    @cached_property
    def starts(self) -> StartStates:
        return StartStates(np.random.default_rng(4).uniform(self.low, self.high, (STARTS, 2)))

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        place, speed = states.T
        speed = np.clip(speed + (actions - 1) * 0.001 - np.cos(3 * place) * 0.0025, -0.07, 0.07)
        place = np.clip(place + speed, -1.2, 0.6)
        speed = np.where((place <= -1.2) & (speed < 0), 0.0, speed)
        return Step(np.stack([place, speed], axis=1), -np.ones(len(states)), (place >= 0.5) & (speed >= 0))


@dataclass(frozen=True)
class Acrobot:
    """Two links, torque at the joint between them; every step costs 1 until the tip is up."""

    horizon: int = 100
    name: str = "acrobot"
    state_box: Box = ((-1.0,) * 4 + (-4 * np.pi, -9 * np.pi), (1.0,) * 4 + (4 * np.pi, 9 * np.pi))
    reward_range: tuple[float, float] = (-1.0, 0.0)
    reward_noise: bool = False
    terminates: bool = True

    @property
    def actions(self) -> FloatArray:
        return frozen(np.array([[-1.0], [0.0], [1.0]]))

    @cached_property
    def starts(self) -> StartStates:
        rng = np.random.default_rng(5)
        angles = np.stack([rng.uniform(-reach, reach, 8 * STARTS) for reach in (2, 2, 3, 5)], axis=1)
        return StartStates(_seen(angles[~_up(angles)][:STARTS]))

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        cos1, sin1, cos2, sin2, speed1, speed2 = states.T
        z = np.stack([np.arctan2(sin1, cos1), np.arctan2(sin2, cos2), speed1, speed2], axis=1)
        torque, h = self.actions[actions, 0], 0.2
        k1 = _swing(z, torque)
        k2 = _swing(z + h / 2 * k1, torque)
        k3 = _swing(z + h / 2 * k2, torque)
        k4 = _swing(z + h * k3, torque)
        z = np.asarray(z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        z[:, :2] = (z[:, :2] + np.pi) % (2 * np.pi) - np.pi
        z[:, 2], z[:, 3] = np.clip(z[:, 2], -4 * np.pi, 4 * np.pi), np.clip(z[:, 3], -9 * np.pi, 9 * np.pi)
        ended = _up(z)
        return Step(_seen(z), np.where(ended, 0.0, -1.0), ended)


@dataclass(frozen=True)
class Pendulum:
    """A pendulum that is to be held upright by one of five torques; never ends. The reward is minus a cost, in [-16.3, 0]."""

    horizon: int = 200
    name: str = "pendulum"
    state_box: Box = ((-1.0, -1.0, -8.0), (1.0, 1.0, 8.0))
    reward_range: tuple[float, float] = (-16.2736045, 0.0)
    reward_noise: bool = False
    terminates: bool = False

    @property
    def actions(self) -> FloatArray:
        return frozen(np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]]))

    @cached_property
    def starts(self) -> StartStates:
        rng = np.random.default_rng(6)
        angle = rng.uniform(-np.pi, np.pi, STARTS)
        return StartStates(np.stack([np.cos(angle), np.sin(angle), rng.uniform(-1, 1, STARTS)], axis=1))

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        angle, speed = np.arctan2(states[:, 1], states[:, 0]), states[:, 2]
        torque = self.actions[actions, 0]
        cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * 0.05, -8.0, 8.0)
        angle = angle + speed * 0.05
        after = np.stack([np.cos(angle), np.sin(angle), speed], axis=1)
        return Step(after, -cost, np.zeros(len(states), dtype=bool))


def _seen(z: FloatArray) -> FloatArray:
    return np.stack([np.cos(z[:, 0]), np.sin(z[:, 0]), np.cos(z[:, 1]), np.sin(z[:, 1]), z[:, 2], z[:, 3]], axis=1)


def _up(z: FloatArray) -> BoolArray:
    return np.asarray(-np.cos(z[:, 0]) - np.cos(z[:, 1] + z[:, 0]) > 1.0)


def _swing(z: FloatArray, torque: FloatArray) -> FloatArray:
    """The derivatives of angles and speeds of the two links."""
    t1, t2, v1, v2 = z.T
    d1 = 0.25 + (1 + 0.25 + np.cos(t2)) + 2.0
    d2 = 0.25 + 0.5 * np.cos(t2) + 1.0
    phi2 = 0.5 * 9.8 * np.cos(t1 + t2 - np.pi / 2)
    phi1 = -0.5 * v2**2 * np.sin(t2) - v2 * v1 * np.sin(t2) + 1.5 * 9.8 * np.cos(t1 - np.pi / 2) + phi2
    a2 = (torque + d2 / d1 * phi1 - 0.5 * v1**2 * np.sin(t2) - phi2) / (1.25 - d2**2 / d1)
    return np.stack([v1, v2, -(d2 * a2 + phi1) / d1, a2], axis=1)
