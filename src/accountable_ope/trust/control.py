"""Control tasks: Gymnasium's classic ones as equations, and the two of the experiments. Q is known to nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..environments.control_task import ControlTask, roll_out
from ..environments.inverted_pendulum import InvertedPendulum
from ..environments.puck_mountain import PuckMountain
from ..environments.softmax import BEHAVIOR_TEMPERATURE, measured_value, softmax_policy
from ..problem.assumptions import Assumptions
from ..problem.policy import DiscretePolicy
from ..problem.transitions import Transitions, first_rows
from ..validation import FloatArray
from .classic import Acrobot, CartPole, MountainCar, Pendulum
from .task import Target, Task, Truth, simulated

DISCOUNT = 0.95
TOGETHER = 64
"""Episodes that are rolled out at once."""

Chances = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Episodes of a logger, one after the other, the last one cut off at row n."""

    task: ControlTask
    logger: DiscretePolicy

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        parts: list[Transitions] = []
        while sum(map(len, parts)) < n:
            parts.append(roll_out(self.task, self.logger, rng, episodes=TOGETHER))
        return first_rows(parts, n)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A process and named policies of it, whose values are measured by simulation."""

    process: ControlTask
    policies: tuple[tuple[str, DiscretePolicy], ...]

    def task(self, name: str, description: str, logger: DiscretePolicy, logged: ControlTask | None = None) -> Task:
        """logged: the process that the log comes from, where its episodes start elsewhere."""
        process = self.process
        targets = tuple(Target(policy, made, simulated(process.name, policy)) for policy, made in self.policies)
        return _task(process, name, description, targets, Rollouts(logged or process, logger))


def _task(process: ControlTask, name: str, description: str, targets: tuple[Target, ...], draw: Rollouts) -> Task:
    facts = Assumptions(discount=DISCOUNT, reward_range=process.reward_range, terminates=process.terminates)
    return Task(name, description, facts, process.starts, targets, draw)


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -50, 50))))


def mixed(target: DiscretePolicy, share: float) -> DiscretePolicy:
    """The target policy with this share, a uniformly random one else."""

    def chances(states: FloatArray) -> FloatArray:
        asked = np.asarray(target.probabilities(states))
        return np.asarray(share * asked + (1 - share) / asked.shape[1])

    return DiscretePolicy(chances, target.action_vectors)


def _two(process: ControlTask, slope: float, turn: float, least: float) -> DiscretePolicy:
    """CartPole: to the side to which the pole leans and falls, with probability `least` at least to either."""

    def chances(states: FloatArray) -> FloatArray:
        right = least + (1 - 2 * least) * _sigmoid(slope * states[:, 2] + turn * states[:, 3])
        return np.stack([1 - right, right], axis=1)

    return DiscretePolicy(chances, process.actions)


def _along(process: ControlTask, column: int, scale: float) -> DiscretePolicy:
    """Mostly in the direction in which a coordinate moves, of three actions."""

    def chances(states: FloatArray) -> FloatArray:
        right, p = _sigmoid(states[:, column] * scale), np.full((len(states), 3), 0.05)
        p[:, 2] += 0.85 * right
        p[:, 0] += 0.85 * (1 - right)
        return p

    return DiscretePolicy(chances, process.actions)


def _always(process: ControlTask, *chances: float) -> DiscretePolicy:
    return DiscretePolicy(lambda states: np.tile(chances, (len(states), 1)), process.actions)


def _uniform(process: ControlTask) -> DiscretePolicy:
    count = len(process.actions)
    return _always(process, *([1 / count] * count))


def _torque(process: ControlTask, wanted: Chances) -> DiscretePolicy:
    """Pendulum: softmax of -(torque - wanted)^2, so that torques near the wanted one are likely."""

    def chances(states: FloatArray) -> FloatArray:
        scores = np.exp(-((process.actions[:, 0][None, :] - wanted(states)[:, None]) ** 2))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    return DiscretePolicy(chances, process.actions)


def _swing_up(states: FloatArray) -> FloatArray:
    """With the motion while it hangs, against angle and speed near the top."""
    upright = states[:, 0] > 0.8
    hold = np.clip(-8 * states[:, 1] - 2 * states[:, 2], -2, 2)
    return np.asarray(np.where(upright, hold, 2 * np.sign(states[:, 2])))


def cartpole_simulation() -> Simulation:
    """CartPole, with a policy that falls now and then and one that hardly ever does."""
    process = CartPole()
    return Simulation(process, (("leaning", _two(process, 20, 0.9, 0.2)), ("balancing", _two(process, 20, 4, 0.02))))


def mountaincar_simulation() -> Simulation:
    """MountainCar, with a policy that swings up and one that mostly pushes to the right."""
    process = MountainCar()
    return Simulation(process, (("along", _along(process, 1, 200.0)), ("rightward", _always(process, 0.1, 0.1, 0.8))))


def acrobot_simulation() -> Simulation:
    """Acrobot, with a policy that pumps and a random one."""
    process = Acrobot()
    return Simulation(process, (("along", _along(process, 5, 2.0)), ("random", _uniform(process))))


def pendulum_simulation() -> Simulation:
    """Pendulum, with a policy that swings up and one that only brakes."""
    process = Pendulum()
    braking = _torque(process, lambda states: np.clip(-states[:, 2], -2, 2))
    return Simulation(process, (("swing-up", _torque(process, _swing_up)), ("braking", braking)))


SIMULATIONS = (cartpole_simulation, mountaincar_simulation, acrobot_simulation, pendulum_simulation)
"""What examples/measure_trust.py measures, beside planted problems."""


def cartpole() -> Task:
    """Falls are a cliff of Q."""
    simulation = cartpole_simulation()
    logger = mixed(simulation.policies[0][1], 0.5)
    return simulation.task("cartpole", "Gymnasium's CartPole-v1, logged by `leaning`, half of the time at random.", logger)


def cartpole_random() -> Task:
    """Good poles are never logged."""
    simulation = cartpole_simulation()
    logger = _uniform(simulation.process)
    return simulation.task("cartpole-random", "CartPole-v1, logged by random pushes: no log shows a pole that stays up.", logger)


def mountaincar() -> Task:
    """Q jumps where a swing just reaches the top."""
    simulation = mountaincar_simulation()
    logger = mixed(simulation.policies[0][1], 0.5)
    text = "Gymnasium's MountainCar-v0 from anywhere, logged by `along`, half of the time at random."
    return simulation.task("mountaincar", text, logger)


def mountaincar_valley() -> Task:
    """What decides the value is hardly ever logged."""
    simulation = mountaincar_simulation()
    logger = mixed(simulation.policies[0][1], 0.3)
    valley = MountainCar((-0.9, -0.03), (-0.1, 0.03))
    text = "MountainCar-v0; the log starts in the valley and hardly ever reaches the goal."
    return simulation.task("mountaincar-valley", text, logger, valley)


def acrobot() -> Task:
    """Six coordinates, chaotic."""
    simulation = acrobot_simulation()
    logger = mixed(simulation.policies[0][1], 0.5)
    return simulation.task("acrobot", "Gymnasium's Acrobot-v1 from anywhere below, logged by `along`, half at random.", logger)


def pendulum() -> Task:
    """The angle is cut at the bottom, where the cost has a kink."""
    simulation = pendulum_simulation()
    text = "Gymnasium's Pendulum-v1 with five torques, logged at random: never ends, rewards in [-16.3, 0]."
    return simulation.task("pendulum", text, _uniform(simulation.process))


def _softmax_task(name: str, description: str, process: ControlTask, logger: DiscretePolicy | None = None) -> Task:
    targets = tuple(
        Target(f"softmax-{temperature:g}", softmax_policy(process.name, temperature), _measured(process.name, temperature))
        for temperature in (0.1, 0.3)
    )
    return _task(
        process,
        name,
        description,
        targets,
        Rollouts(process, logger or softmax_policy(process.name, BEHAVIOR_TEMPERATURE)),
    )


def _measured(task: str, temperature: float) -> Truth:
    found = measured_value(task, temperature)
    return Truth(found.value, found.standard_error, f"{found.episodes} simulated episodes", found.cut_off)


def puck() -> Task:
    """Walls turn the puck back."""
    return _softmax_task("puck", "Puck-Mountain, logged by softmax(Q) at temperature 1.", PuckMountain())


def puck_random() -> Task:
    """The same where the logger knows nothing."""
    process = PuckMountain()
    return _softmax_task("puck-random", "Puck-Mountain, logged by random pushes.", process, _uniform(process))


def inverted_pendulum() -> Task:
    """A cliff again, with noise."""
    text = "MuJoCo's Inverted-Pendulum with noise, logged by softmax(Q) at temperature 1."
    return _softmax_task("inverted-pendulum", text, InvertedPendulum())
