"""Control problems that are known only by simulation: many states are stepped at once, values are measured by Monte Carlo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import DiscretePolicy
from ..problem.transitions import StartStates, Transitions
from ..validation import BoolArray, FloatArray, IntArray, number, whole
from .draws import draw_indices

BATCH = 20_000
"""Episodes that are simulated side by side."""


class Step(NamedTuple):
    """What follows from states and actions, row by row."""

    next_states: FloatArray
    rewards: FloatArray
    terminated: BoolArray


@runtime_checkable
class ControlTask(Protocol):
    """A Markov decision process that can be simulated. States are scaled to about [-1, 1].

    Attributes
    ----------
    name : str
    actions : array (A, k)
        The vectors of the finite action set.
    starts : StartStates
        The start distribution itself: finitely many states, equally likely.
    state_box : tuple of two tuples
        Lowest and highest value of every coordinate of every state that can occur.
    reward_range : tuple of two floats
    reward_noise : bool
        Whether the reward is random given (s, a).
    terminates : bool
        Whether episodes can end.
    horizon : int
        After this many steps a logged episode is cut off (truncated, not terminated).
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

    def step(self, states: FloatArray, actions: IntArray, rng: np.random.Generator) -> Step:
        """One step from every state, with actions as indices."""
        ...


@checked
@dataclass(frozen=True)
class MonteCarlo:
    """A mean of independent returns.

    Attributes
    ----------
    value : float
    standard_error : float
    episodes : int
    cut_off : float
        The most that cutting the returns off can have moved the mean.
    """

    value: float
    standard_error: float
    episodes: int
    cut_off: float


@checked
def roll_out(
    task: ControlTask, policy: DiscretePolicy, rng: np.random.Generator, *, episodes: int, length: int | None = None
) -> Transitions:
    """Episodes from start states drawn anew, in order of generation, one after the other.

    Parameters
    ----------
    task : ControlTask
    policy : DiscretePolicy
        Draws the actions.
    rng : numpy.random.Generator
    episodes : int
    length : int, optional
        Steps after which an episode is cut off; None for the task's horizon. A terminated one ends earlier.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidInput
        Where `episodes` or `length` is not a whole number of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import PuckMountain, roll_out, softmax_policy
    >>> policy = softmax_policy("puck-mountain", temperature=1.0)
    >>> roll_out(PuckMountain(), policy, np.random.default_rng(0), episodes=2, length=3)
    Transitions(6 rows, 2 episodes, 2-d states, 0 terminated)
    """
    count = whole(episodes, "episodes", least=1)
    steps = task.horizon if length is None else whole(length, "length", least=1)
    running, states, actions, moves = zip(*_steps(task, policy, rng, count, steps), strict=True)
    episode = np.concatenate(running)
    order = np.argsort(episode, kind="stable")  # stable: time order is kept within an episode
    return Transitions(
        states=np.concatenate(states)[order],
        actions=np.concatenate(actions)[order],
        rewards=np.concatenate([moved.rewards for moved in moves])[order],
        next_states=np.concatenate([moved.next_states for moved in moves])[order],
        terminated=np.concatenate([moved.terminated for moved in moves])[order],
        episodes=episode[order],
    )


@checked
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

    Parameters
    ----------
    task : ControlTask
    policy : DiscretePolicy
    rng : numpy.random.Generator
    discount : float
        In [0, 1).
    episodes : int
        At least 2.
    length : int, optional
        Steps after which returns are cut off; None for as many as it takes until the rest is worth less than 1e-6 of the
        largest return.

    Returns
    -------
    MonteCarlo

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import PuckMountain, monte_carlo_value, softmax_policy
    >>> policy = softmax_policy("puck-mountain", temperature=1.0)
    >>> found = monte_carlo_value(PuckMountain(), policy, np.random.default_rng(0), discount=0.5, episodes=100)
    >>> 0 < found.value < 2 and found.standard_error < 0.1
    True
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
    """One action index per state."""
    return draw_indices(np.asarray(policy.probabilities(states), dtype=np.float64), rng)


def _steps(
    task: ControlTask, policy: DiscretePolicy, rng: np.random.Generator, count: int, length: int
) -> Iterator[tuple[IntArray, FloatArray, IntArray, Step]]:
    """The episodes that still run, their states, actions and what follows, step by step."""
    states, running = draw_starts(task, rng, count), np.arange(count)
    for _ in range(length):
        actions = draw_actions(policy, states, rng)
        moved = task.step(states, actions, rng)
        yield running, states, actions, moved
        going_on = ~moved.terminated
        running, states = running[going_on], moved.next_states[going_on]
        if len(running) == 0:
            break


def _returns(
    task: ControlTask, policy: DiscretePolicy, rng: np.random.Generator, count: int, discount: float, length: int
) -> FloatArray:
    returns, weight = np.zeros(count), 1.0
    for running, _, _, moved in _steps(task, policy, rng, count, length):
        returns[running] += weight * moved.rewards
        weight *= discount
    return returns
