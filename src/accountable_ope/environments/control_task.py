"""Control problems that are known only by simulation: many states are stepped at once, values are measured by Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import InvalidInput
from ..problem.policy import DiscretePolicy
from ..problem.transitions import StartStates, Transitions
from ..validation import BoolArray, FloatArray, IntArray, number, whole

BATCH = 20_000
"""Episodes that are simulated side by side."""


class Step(NamedTuple):
    """What follows from states and actions, row by row."""

    next_states: FloatArray
    rewards: FloatArray
    terminated: BoolArray


class ControlTask(Protocol):
    """A Markov decision process that can be simulated. States are scaled to about [-1, 1].

    starts:       the start distribution itself: finitely many states, equally likely.
    state_box:    lowest and highest value of every coordinate of every state that can occur.
    reward_noise: whether the reward is random given (s, a).
    horizon:      after this many steps a logged episode is cut off (truncated, not terminated).
    """

    @property
    def name(self) -> str: ...
    @property
    def actions(self) -> FloatArray: ...
    @property
    def starts(self) -> StartStates: ...
    @property
    def state_box(self) -> tuple[tuple[float, ...], tuple[float, ...]]: ...
    @property
    def reward_range(self) -> tuple[float, float]: ...
    @property
    def reward_noise(self) -> bool: ...
    @property
    def terminates(self) -> bool: ...
    @property
    def horizon(self) -> int: ...

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step: ...


@dataclass(frozen=True)
class MonteCarlo:
    """A mean of independent returns, its standard error, and the most that cutting the returns off can have moved it."""

    value: float
    standard_error: float
    episodes: int
    cut_off: float


def roll_out(
    task: ControlTask, policy: DiscretePolicy, rng: np.random.Generator, *, episodes: int, length: int | None = None
) -> Transitions:
    """Episodes of at most `length` steps (the task's horizon), from start states drawn anew; a terminated one ends earlier.

    Rows are in order of generation, one episode after the other.
    """
    count = whole(episodes, "episodes", least=1)
    steps = task.horizon if length is None else whole(length, "length", least=1)
    states = draw_starts(task, rng, count)
    alive = np.arange(count)
    parts: list[tuple[IntArray, IntArray, FloatArray, IntArray, Step]] = []
    for time in range(steps):
        actions = draw_actions(policy, states, rng)
        moved = task.step(states, actions, rng)
        parts.append((alive, np.full(len(alive), time), states, actions, moved))
        going = ~moved.terminated
        alive, states = alive[going], moved.next_states[going]
        if len(alive) == 0:
            break
    episode = np.concatenate([part[0] for part in parts])
    order = np.lexsort((np.concatenate([part[1] for part in parts]), episode))
    return Transitions(
        states=np.concatenate([part[2] for part in parts])[order],
        actions=np.concatenate([part[3] for part in parts])[order],
        rewards=np.concatenate([part[4].rewards for part in parts])[order],
        next_states=np.concatenate([part[4].next_states for part in parts])[order],
        terminated=np.concatenate([part[4].terminated for part in parts])[order],
        episodes=episode[order],
    )


def monte_carlo_value(
    task: ControlTask,
    policy: DiscretePolicy,
    rng: np.random.Generator,
    *,
    discount: float,
    episodes: int,
    length: int | None = None,
) -> MonteCarlo:
    """The mean discounted return over simulated episodes.

    length: steps after which returns are cut off; None: until the rest is worth less than 1e-6 of the largest return.
    """
    if not 0 <= number(discount, "discount") < 1:
        raise InvalidInput(f"`discount` must be in [0, 1). Got {discount!r}.")
    count = whole(episodes, "episodes", least=2)
    if length is not None:
        whole(length, "length", least=1)
    else:
        length = 1 if discount == 0 else int(np.ceil(np.log(1e-6) / np.log(discount)))
    returns = np.concatenate(
        [_returns(task, policy, rng, min(BATCH, count - done), discount, length) for done in range(0, count, BATCH)]
    )
    largest = max(map(abs, task.reward_range)) / (1 - discount)
    return MonteCarlo(
        value=float(returns.mean()),
        standard_error=float(returns.std(ddof=1) / np.sqrt(count)),
        episodes=count,
        cut_off=discount**length * largest,
    )


def draw_starts(task: ControlTask, rng: np.random.Generator, count: int) -> FloatArray:
    """States of the start distribution."""
    return task.starts.states[rng.choice(len(task.starts.states), size=count, p=task.starts.weights)]


def draw_actions(policy: DiscretePolicy, states: FloatArray, rng: np.random.Generator) -> IntArray:
    """One action index per state, by inversion."""
    cumulative = np.cumsum(np.asarray(policy.probabilities(states), dtype=np.float64), axis=1)
    drawn = rng.random(len(states))[:, None] * cumulative[:, -1:]
    return np.asarray(np.minimum((drawn >= cumulative).sum(axis=1), cumulative.shape[1] - 1))


def cut_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Standard normal draws, cut at two: one step has a farthest reach, and so a range that can be declared."""
    return np.asarray(np.clip(rng.standard_normal(shape), -2.0, 2.0))


def _returns(
    task: ControlTask, policy: DiscretePolicy, rng: np.random.Generator, count: int, discount: float, length: int
) -> FloatArray:
    states, alive, weight = draw_starts(task, rng, count), np.arange(count), 1.0
    returns = np.zeros(count)
    for _ in range(length):
        moved = task.step(states, draw_actions(policy, states, rng), rng)
        returns[alive] += weight * moved.rewards
        weight *= discount
        going = ~moved.terminated
        alive, states = alive[going], moved.next_states[going]
        if len(alive) == 0:
            break
    return returns
