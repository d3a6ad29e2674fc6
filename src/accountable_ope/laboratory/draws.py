"""How logged data come about: independent rows, trajectories, adaptive behavior, pooled behavior policies.

Each is a frozen record that is called with (generator, n) and returns exactly n transitions in the order of generation. They are
classes and not closures so that they can be sent to other processes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from math import ceil, log, sqrt
from typing import Protocol, runtime_checkable

import numpy as np

from ..environments.tabular import TabularMDP
from ..errors import InvalidInput
from ..problem.policy import DiscretePolicy
from ..problem.propensities import with_propensities
from ..problem.transitions import Transitions, first_rows
from ..programs.envelope import Steps
from ..radii.earlier_rows import block_edges
from ..radii.envelope import cut_mixture
from ..radii.registry import KERNEL_SHARE
from ..validation import BoolArray, FloatArray, frozen


@runtime_checkable
class Draw(Protocol):
    """n transitions from a generator; every call with the same generator state gives the same rows."""

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        """Draw n rows."""
        ...


class Simulator(Protocol):
    """A problem that simulates its own trajectories."""

    def sample(self, rng: np.random.Generator, trajectories: int, length: int) -> Transitions: ...


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent transitions of a finite MDP, states uniform, actions too unless there is a behavior table."""

    mdp: TabularMDP
    behavior: FloatArray | None = None

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        return self.mdp.sample_iid(n, rng, self.behavior)


@dataclass(frozen=True, eq=False)
class Recorded:
    """Data of another draw, with the probabilities that the behavior policy gave to its actions."""

    draw: Draw
    behavior: DiscretePolicy

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        return with_propensities(self.draw(rng, n), self.behavior)


@dataclass(frozen=True, eq=False)
class Episodes:
    """Episodes of at most `length` steps under one behavior policy; the last one is cut off (not terminated) at row n."""

    mdp: TabularMDP
    behavior: FloatArray
    length: int

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        parts: list[Transitions] = []
        rows, episodes = 0, 0
        while rows < n:
            usual = rows / episodes if episodes else self.length  # episodes that end early leave rows to fill
            more = max(2, ceil((n - rows) / usual))
            parts.append(self.mdp.sample_trajectories(self.behavior, more, self.length, rng))
            rows, episodes = rows + len(parts[-1]), episodes + more
        return first_rows(parts, n)


@dataclass(frozen=True, eq=False)
class Pooled:
    """Data of several behavior policies, one after the other: each episode follows one of them, and nobody recorded which."""

    mdp: TabularMDP
    behaviors: tuple[FloatArray, ...]
    length: int

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        episodes = ceil(n / self.length)
        chosen = rng.integers(len(self.behaviors), size=episodes)
        parts = [
            self.mdp.sample_trajectories(table, int(count), self.length, rng)
            for table, count in zip(self.behaviors, np.bincount(chosen, minlength=len(self.behaviors)), strict=True)
            if count
        ]
        return first_rows(parts, n)


@dataclass(frozen=True, eq=False)
class Greedy:
    """Behavior that learns while it logs, in a finite MDP that never ends.

    With probability 1 - exploration it takes the action whose rewards at this state had the larger mean so far, else a random
    one: every action depends on the noise of all earlier rows.
    """

    mdp: TabularMDP
    exploration: float
    length: int

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        mdp = self.mdp
        count_states, count_actions = mdp.mean_reward.shape
        # Plain numbers: the loop is sequential by nature, and arrays of two entries would make it ten times slower.
        onward = [[np.cumsum(row)[:-1].tolist() for row in table] for table in mdp.transition]
        first = np.cumsum(mdp.start)[:-1].tolist()
        mean_reward = mdp.mean_reward.tolist()
        totals = [[0.0] * count_actions for _ in range(count_states)]
        visits = [[0] * count_actions for _ in range(count_states)]
        uniform = rng.random((n, 3)).tolist()
        picks = rng.integers(count_actions, size=n).tolist()
        starts = rng.random(ceil(n / self.length)).tolist()
        states, actions, rewards, after = [0] * n, [0] * n, [0.0] * n, [0] * n
        state = 0
        for row, (explore, coin, move) in enumerate(uniform):
            if row % self.length == 0:
                state = bisect_right(first, starts[row // self.length])
            action = picks[row]
            if explore >= self.exploration:
                means = [total / count if count else 1.0 for total, count in zip(totals[state], visits[state], strict=True)]
                action = means.index(max(means))
            reward = mean_reward[state][action]
            if mdp.bernoulli:
                reward = 1.0 if coin < reward else 0.0
            next_state = bisect_right(onward[state][action], move)
            states[row], actions[row], rewards[row], after[row] = state, action, reward, next_state
            totals[state][action] += reward
            visits[state][action] += 1
            state = next_state
        return Transitions(
            np.array(states, dtype=np.float64)[:, None],
            np.array(actions),
            np.array(rewards),
            np.array(after, dtype=np.float64)[:, None],
            episodes=np.arange(n) // self.length,
        )


@dataclass(frozen=True)
class StopWhenExtreme:
    """One state, two arms: a fair coin, and a sure 1/2. The coin is tossed until its sum is extreme, then the sure arm is pulled.

    With S_j = sum of (reward - 1/2) over the first j tosses, tossing stops as soon as |S_j| > boundary * sqrt(n). The sum then
    stays where it is, so what is checked at the end of the data is what happened at their worst moment.
    """

    boundary: float

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        coins = rng.integers(2, size=n).astype(np.float64)
        return _tossed_until(coins, np.abs(np.cumsum(coins - 0.5)) > self.boundary * sqrt(n))


BEYOND = 1.02
"""How far beyond a boundary: a program bounds the square of an envelope a little from above."""

LARGEST_RESIDUAL = 0.55
"""That of the true Q is a half; of the other functions that an interval still holds, a little more."""


@dataclass(frozen=True)
class PlayAgainstRadius:
    """The same coin and the same sure arm; the logger knows the default radius, n and the delta at which it will be used.

    After the first rows the cut of that radius weighs all tosses alike. So the logger keeps count of the cut's own martingale,
    M_j = sum of (reward - 1/2) over the tosses from there on, and tosses until |M_j| is beyond what the cut allows at the
    variance j / 4. Then it pulls the sure arm, whose residual is 0: the interval is made of the martingale at its worst moment.
    """

    delta: float

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        coins = rng.integers(2, size=n).astype(np.float64)
        crossed = np.zeros(n, dtype=bool)
        edges = block_edges(n, 2)
        if edges:
            later = coins[edges[0] :]
            crossed[edges[0] :] = np.abs(np.cumsum(later - 0.5)) > BEYOND * cut_allows(len(later), self.delta)
        return _tossed_until(coins, crossed)


@cache
def cut_allows(count: int, delta: float) -> FloatArray:
    """What the cut of the default radius allows to |M_j|, j = 1, ..., count, where all residuals of the true Q are a half."""
    share = (1 - KERNEL_SHARE) * delta
    rate = sqrt(8 * log(2 / share) / count)  # that which the first rows choose, about
    # Theorem A has a small part in it; its sum of squared ranges counts all rows, a little more than were tossed.
    steps = Steps(1.0, LARGEST_RESIDUAL, float(count))
    return np.asarray(frozen(cut_mixture(1.0, rate, count, share).bound(steps, np.arange(1, count + 1) / 4)[0]))


def _tossed_until(coins: FloatArray, crossed: BoolArray) -> Transitions:
    """The coin up to the first row that is marked, and the sure arm after it."""
    n = len(coins)
    tosses = int(np.argmax(crossed)) + 1 if crossed.any() else n
    sure = np.arange(n) >= tosses
    return Transitions(np.zeros((n, 1)), sure.astype(np.int64), np.where(sure, 0.5, coins), np.zeros((n, 1)))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Trajectories of a problem with continuous states, the last one cut off at row n.

    The planted problem refuses to log a mean reward outside [0, 1]. That was not seen in a million rows of each of the problems
    used here, but is not impossible; such data are thrown away whole and drawn again.
    """

    problem: Simulator
    length: int

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        for _ in range(3):
            try:
                return first_rows([self.problem.sample(rng, ceil(n / self.length), self.length)], n)
            except InvalidInput as error:
                refused = error
        raise refused
