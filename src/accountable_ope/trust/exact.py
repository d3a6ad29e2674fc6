"""Tasks whose values are sums or linear solves, with states or rewards that a smooth class does not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..environments.control_task import Step
from ..environments.linear_quadratic import LinearQuadratic, scalar_regulator
from ..environments.planted import PlantedMDP
from ..environments.tabular import chain, random_tabular
from ..environments.tabular_mdp import TabularMDP
from ..laboratory.draws import Episodes, Simulated
from ..problem.assumptions import Assumptions
from ..problem.policy import DiscretePolicy, SampledPolicy, TabulatedPolicy
from ..problem.transitions import StartStates, Transitions
from ..validation import FloatArray, IntArray
from .task import Target, Task, Truth, simulated

LENGTH = 50
"""Steps of a trajectory."""

UNIT = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Seen:
    """A log of a finite MDP, each state shown as a point; several states may be shown as the same one."""

    draw: Episodes
    points: FloatArray

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        data = self.draw(rng, n)
        before, after = (self.points[side[:, 0].astype(np.int64)] for side in (data.states, data.next_states))
        return Transitions(before, data.actions, data.rewards, after, data.terminated, data.episodes)


def _uniform_table(mdp: TabularMDP) -> FloatArray:
    return np.full(mdp.mean_reward.shape, 1 / mdp.mean_reward.shape[1])


def _facts(discount: float) -> Assumptions:
    return Assumptions(discount=discount, reward_range=UNIT, terminates=False)


def tabular() -> Task:
    """A table holds Q."""
    mdp = random_tabular(10, 2, seed=3, discount=0.9)
    tables = (("first", np.tile([0.8, 0.2], (10, 1))), ("second", np.tile([0.1, 0.9], (10, 1))))
    return Task(
        "tabular",
        "Random MDP with ten states, two actions, discount 0.9: the one task whose Q a class at hand holds, a table.",
        _facts(0.9),
        mdp.starts(),
        tuple(Target(name, mdp.policy(table), Truth(mdp.value(table))) for name, table in tables),
        Episodes(mdp, _uniform_table(mdp), LENGTH),
    )


def rough() -> Task:
    """Neighbors in the plane have nothing in common, so no smooth function is Q."""
    states = 400
    mdp = random_tabular(states, 2, seed=5, discount=0.9)
    points = np.random.default_rng(5).uniform(size=(states, 2))
    best = np.eye(2)[mdp.mean_reward.argmax(axis=1)]
    tables = (("greedy", 0.1 + 0.8 * best), ("first", np.tile([0.9, 0.1], (states, 1))))
    actions = np.arange(2.0)[:, None]
    return Task(
        "rough",
        "Random MDP with 400 states at random places of a square: rewards jump from each state to the next, discount 0.9.",
        _facts(0.9),
        StartStates(points),
        tuple(Target(name, TabulatedPolicy(points, table, actions), Truth(mdp.value(table))) for name, table in tables),
        Seen(Episodes(mdp, _uniform_table(mdp), LENGTH), points),
    )


def coarse() -> Task:
    """Pairs of neighbors are shown as one state."""
    mdp = chain(10, discount=0.9)
    shown = (np.arange(10.0) // 2)[:, None]
    chances = (("right", (0.1, 0.9)), ("left", (0.7, 0.3)))
    start = StartStates(shown[:1])
    return Task(
        "coarse",
        "A chain of ten states seen through coarse features: neighbors look alike, so the state that is logged is not all of it.",
        _facts(0.9),
        start,
        tuple(
            Target(
                name,
                TabulatedPolicy(np.arange(5.0)[:, None], np.tile(both, (5, 1)), np.arange(2.0)[:, None]),
                Truth(mdp.value(np.tile(both, (10, 1)))),
            )
            for name, both in chances
        ),
        Seen(Episodes(mdp, np.tile([0.3, 0.7], (10, 1)), LENGTH), shown),
        hidden=True,
    )


@dataclass(frozen=True, eq=False)
class SineLog:
    """Contexts uniform on [-1, 1], arms at random, rewards coins with the mean `sine_reward`."""

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        contexts, arms = rng.uniform(-1, 1, (n, 1)), rng.integers(0, 2, n)
        rewards = (rng.random(n) < sine_reward(contexts, arms)).astype(np.float64)
        return Transitions(contexts, arms, rewards, contexts)


def sine_reward(contexts: FloatArray, arms: IntArray) -> FloatArray:
    """0.5 + 0.4 sin(25 x + 2 arm)."""
    return np.asarray(0.5 + 0.4 * np.sin(25 * contexts[:, 0] + 2 * arms))


def sine_bandit() -> Task:
    """Waves that are shorter than the features that are chosen for such contexts."""
    grid = np.linspace(-1, 1, 401)[:, None]
    count = len(grid)
    means = np.stack([sine_reward(grid, np.full(count, arm)) for arm in (0, 1)], axis=1)

    def best(contexts: FloatArray) -> FloatArray:
        both = [sine_reward(contexts, np.full(len(contexts), arm)) for arm in (0, 1)]
        better = (both[1] > both[0]).astype(np.float64)[:, None]
        return np.concatenate([1 - better, better], axis=1)

    def halves(contexts: FloatArray) -> FloatArray:
        right = (contexts[:, :1] > 0).astype(np.float64)
        return np.concatenate([1 - right, right], axis=1)

    return Task(
        "sine-bandit",
        "Contexts on a line, two arms, rewards that are coins with the mean 0.5 + 0.4 sin(25 x + 2 arm), discount 0.",
        _facts(0.0),
        StartStates(grid),
        tuple(
            Target(name, DiscretePolicy(chances, 2), Truth(float((chances(grid) * means).sum(axis=1).mean())))
            for name, chances in (("best", best), ("halves", halves))
        ),
        SineLog(),
    )


@dataclass(frozen=True, eq=False)
class PlantedProcess:
    """A planted problem as a control task, to simulate policies that are not the planted one."""

    mdp: PlantedMDP
    horizon: int = LENGTH
    name: str = "planted"
    reward_range: tuple[float, float] = UNIT
    reward_noise: bool = False
    terminates: bool = False
    state_box: tuple[tuple[float, ...], tuple[float, ...]] = ((-float("inf"),) * 2, (float("inf"),) * 2)

    @property
    def actions(self) -> FloatArray:
        return self.mdp.policy.action_vectors

    @property
    def starts(self) -> StartStates:
        return self.mdp.starts

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        return self.mdp.step(states, actions, rng)


def planted_process() -> PlantedProcess:
    """The planted problem of the task."""
    return PlantedProcess(PlantedMDP(seed=1, features=10, discount=0.9))


def timid(process: PlantedProcess) -> DiscretePolicy:
    """Mostly nothing."""
    return DiscretePolicy(lambda states: np.tile([0.1, 0.8, 0.1], (len(states), 1)), process.actions)


def planted() -> Task:
    """The class that holds Q exists, but is not told."""
    process = planted_process()
    mdp = process.mdp
    return Task(
        "planted",
        "Planted Q of ten cosines that nobody tells, 2-d states, three actions, discount 0.9.",
        _facts(0.9),
        mdp.starts,
        (Target("planted", mdp.policy, Truth(mdp.value)), Target("timid", timid(process), simulated("planted", "timid"))),
        Simulated(mdp, LENGTH),
    )


def regulator() -> Task:
    """Q is a quadratic polynomial, which neither trained features nor cosines hold exactly."""
    calm, shaky = scalar_regulator(0.9, 0.0), scalar_regulator(0.9, 0.3)
    return Task(
        "regulator",
        "Linear dynamics, quadratic reward, continuous actions, a deterministic target policy and one that is only sampled.",
        _facts(0.9),
        calm.starts,
        (Target("deterministic", calm.policy, Truth(calm.value)), Target("sampled", _drawn(shaky), Truth(shaky.value))),
        Simulated(calm, LENGTH),
    )


def _drawn(mdp: LinearQuadratic) -> SampledPolicy:
    policy = mdp.policy
    assert isinstance(policy, SampledPolicy)
    return replace(policy, draws=20)
