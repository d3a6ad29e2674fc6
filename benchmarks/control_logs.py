"""Logs of classic control tasks with known values: the equations of Gymnasium's tasks, many episodes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PuckMountain, measured_value, softmax_policy
from accountable_ope.validation import BoolArray, FloatArray, IntArray

Step = Callable[[FloatArray, IntArray, np.random.Generator], tuple[FloatArray, FloatArray, BoolArray]]
Chances = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Task:
    """A simulated process, a logger, a target policy, and the value of the latter.

    truth: None where it is to be simulated.
    """

    name: str
    discount: float
    reward_range: tuple[float, float]
    horizon: int
    starts: FloatArray
    logged_starts: Callable[[np.random.Generator, int], FloatArray]
    target: Chances
    behavior: Chances
    step: Step
    truth: float
    terminates: bool = True

    @property
    def span(self) -> float:
        return (self.reward_range[1] - self.reward_range[0]) / (1 - self.discount)

    def problem(self, rows: int, seed: int) -> aope.Problem:
        actions = self.target(self.starts[:1]).shape[1]
        facts = aope.Assumptions(discount=self.discount, reward_range=self.reward_range, terminates=self.terminates)
        policy = aope.DiscretePolicy(self.target, actions)
        return aope.Problem(self.log(rows, seed), aope.StartStates(self.starts), policy, facts)

    def log(self, rows: int, seed: int) -> aope.Transitions:
        """Episodes one after the other."""
        rng, found, count, episodes = np.random.default_rng(1000 + seed), [], 0, 0
        while count < rows:
            batch = self._episodes(rng, 64)
            found.append((*batch[:-1], batch[-1] + episodes))
            count, episodes = count + len(batch[0]), episodes + 64
        columns = [np.concatenate(each)[:rows] for each in zip(*found, strict=True)]
        return aope.Transitions(*columns)

    def _episodes(self, rng: np.random.Generator, many: int) -> tuple[np.ndarray, ...]:
        states, alive, parts = self.logged_starts(rng, many), np.arange(many), []
        for time in range(self.horizon):
            actions = drawn(self.behavior(states), rng)
            after, rewards, ended = self.step(states, actions, rng)
            parts.append((states, actions, rewards, after, ended, alive, np.full(len(alive), time)))
            states, alive = after[~ended], alive[~ended]
            if len(alive) == 0:
                break
        *columns, times = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((times, columns[-1]))
        return tuple(each[order] for each in columns)

    def simulated(self, many: int = 200_000, seed: int = 7) -> tuple[float, float]:
        """The value and its standard error."""
        rng = np.random.default_rng(seed)
        states = np.repeat(self.starts, max(1, many // len(self.starts)), axis=0)
        total, index, weight = np.zeros(len(states)), np.arange(len(states)), 1.0
        while len(index) and weight > 1e-5:
            after, rewards, ended = self.step(states, drawn(self.target(states), rng), rng)
            total[index] += weight * rewards
            weight, states, index = weight * self.discount, after[~ended], index[~ended]
        return float(total.mean()), float(total.std() / np.sqrt(len(total)))


def drawn(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """An action per row."""
    above = rng.random(len(chances))[:, None] >= chances.cumsum(axis=1)
    return np.minimum(above.sum(axis=1), chances.shape[1] - 1)


def sigmoid(x: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-np.clip(x, -50, 50)))


def mixed(target: Chances, share: float) -> Chances:
    """The target policy with this share, a uniformly random one else."""

    def chances(states: FloatArray) -> FloatArray:
        asked = target(states)
        return share * asked + (1 - share) / asked.shape[1]

    return chances


# CartPole


def cartpole_step(s: FloatArray, a: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, BoolArray]:
    x, speed, angle, turning = s.T
    force, cosine, sine = np.where(a == 1, 10.0, -10.0), np.cos(angle), np.sin(angle)
    push = (force + 0.05 * turning**2 * sine) / 1.1
    bend = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    pull = push - 0.05 * bend * cosine / 1.1
    after = np.stack([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * bend], axis=1)
    ended = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * 2 * np.pi / 360)
    return after, np.ones(len(s)), ended


def leaning(slope: float, turn: float, least: float) -> Chances:
    def chances(s: FloatArray) -> FloatArray:
        right = least + (1 - 2 * least) * sigmoid(slope * s[:, 2] + turn * s[:, 3])
        return np.stack([1 - right, right], axis=1)

    return chances


def cartpole(name: str, target: Chances, share: float, truth: float) -> Task:
    starts = np.random.default_rng(3).uniform(-0.05, 0.05, (50, 4))
    return Task(
        name, 0.95, (0.0, 1.0), 200, starts, lambda rng, k: rng.uniform(-0.05, 0.05, (k, 4)), target, mixed(target, share),
        cartpole_step, truth,
    )  # fmt: skip


# MountainCar


def mountain_step(s: FloatArray, a: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, BoolArray]:
    place, speed = s.T
    speed = np.clip(speed + (a - 1) * 0.001 - np.cos(3 * place) * 0.0025, -0.07, 0.07)
    place = np.clip(place + speed, -1.2, 0.6)
    speed = np.where((place <= -1.2) & (speed < 0), 0, speed)
    return np.stack([place, speed], axis=1), -np.ones(len(s)), place >= 0.5


def along(column: int, scale: float) -> Chances:
    """Mostly in the direction in which it moves."""

    def chances(s: FloatArray) -> FloatArray:
        right, p = sigmoid(s[:, column] * scale), np.full((len(s), 3), 0.05)
        p[:, 2] += 0.85 * right
        p[:, 0] += 0.85 * (1 - right)
        return p

    return chances


def car(name: str, low: tuple[float, float], high: tuple[float, float], share: float, truth: float) -> Task:
    starts = np.random.default_rng(4)
    starts = np.stack([starts.uniform(-1.1, 0.45, 50), starts.uniform(-0.05, 0.05, 50)], axis=1)
    target = along(1, 200.0)
    return Task(
        name, 0.95, (-1.0, 0.0), 100, starts, lambda rng, k: rng.uniform(low, high, (k, 2)), target, mixed(target, share),
        mountain_step, truth,
    )  # fmt: skip


# Acrobot


def acrobot_seen(z: FloatArray) -> FloatArray:
    return np.stack([np.cos(z[:, 0]), np.sin(z[:, 0]), np.cos(z[:, 1]), np.sin(z[:, 1]), z[:, 2], z[:, 3]], axis=1)


def acrobot_up(z: FloatArray) -> BoolArray:
    return np.asarray(-np.cos(z[:, 0]) - np.cos(z[:, 1] + z[:, 0]) > 1.0)


def acrobot_starts(rng: np.random.Generator, k: int) -> FloatArray:
    z = np.stack([rng.uniform(-reach, reach, 8 * k) for reach in (2, 2, 3, 5)], axis=1)
    return acrobot_seen(z[~acrobot_up(z)][:k])


def acrobot_step(s: FloatArray, a: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, BoolArray]:
    z = np.stack([np.arctan2(s[:, 1], s[:, 0]), np.arctan2(s[:, 3], s[:, 2]), s[:, 4], s[:, 5]], axis=1)
    torque, h = a - 1.0, 0.2

    def moved(z: FloatArray) -> FloatArray:
        t1, t2, v1, v2 = z.T
        d1 = 0.25 + (1 + 0.25 + np.cos(t2)) + 2.0
        d2 = 0.25 + 0.5 * np.cos(t2) + 1.0
        phi2 = 0.5 * 9.8 * np.cos(t1 + t2 - np.pi / 2)
        phi1 = -0.5 * v2**2 * np.sin(t2) - v2 * v1 * np.sin(t2) + 1.5 * 9.8 * np.cos(t1 - np.pi / 2) + phi2
        a2 = (torque + d2 / d1 * phi1 - 0.5 * v1**2 * np.sin(t2) - phi2) / (1.25 - d2**2 / d1)
        return np.stack([v1, v2, -(d2 * a2 + phi1) / d1, a2], axis=1)

    k1 = moved(z)
    k2 = moved(z + h / 2 * k1)
    k3 = moved(z + h / 2 * k2)
    z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + moved(z + h * k3))
    z[:, :2] = (z[:, :2] + np.pi) % (2 * np.pi) - np.pi
    z[:, 2], z[:, 3] = np.clip(z[:, 2], -4 * np.pi, 4 * np.pi), np.clip(z[:, 3], -9 * np.pi, 9 * np.pi)
    ended = acrobot_up(z)
    return acrobot_seen(z), np.where(ended, 0.0, -1.0), ended


def acrobot() -> Task:
    starts, target = acrobot_starts(np.random.default_rng(5), 50), along(5, 2.0)
    return Task("acrobot", 0.95, (-1.0, 0.0), 100, starts, acrobot_starts, target, mixed(target, 0.5), acrobot_step, -14.505)


# Puck-Mountain


def puck(name: str, behavior: Chances | None = None) -> Task:
    environment = PuckMountain()
    target, logger = softmax_policy("puck-mountain", 0.1), softmax_policy("puck-mountain", 1.0)
    starts = np.array(environment.starts.states)

    def step(s: FloatArray, a: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, BoolArray]:
        moved = environment.step(s, a, rng)
        return moved.next_states, moved.rewards, moved.terminated

    return Task(
        name, 0.95, (0.0, 1.0), 100, starts, lambda rng, k: starts[rng.integers(0, len(starts), k)],
        lambda s: np.asarray(target.probabilities(s)), behavior or (lambda s: np.asarray(logger.probabilities(s))), step,
        measured_value("puck-mountain").value, terminates=False,
    )  # fmt: skip
