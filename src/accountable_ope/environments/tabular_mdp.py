"""Finite MDPs whose values follow from a linear solve: the truth that intervals are tested against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import DiscretePolicy
from ..problem.step_knowledge import StepKnowledge
from ..problem.terminal_region import TerminalRegion
from ..problem.transitions import StartStates, Transitions
from ..validation import BoolArray, FloatArray, IntArray, float_array, frozen, number, probability_rows, raw_array, vector, whole
from .draws import draw_indices
from .tabular_steps import OneStepRange, Reach, TerminalStates


@checked
@dataclass(frozen=True, eq=False, init=False)
class TabularMDP:
    """A finite MDP. A state is its index, as a one-column float; actions are indices.

    Parameters
    ----------
    transition : array (S, A, S)
        P(s' | s, a).
    mean_reward : array (S, A)
        E[r | s, a].
    discount : float
        In [0, 1].
    start : array (S,)
        The start distribution, without mass on terminal states.
    terminal : array (S,) of bool, optional
        Where a state is terminal and worth 0: its rows in the other tables are never used.
    bernoulli : bool
        True: r is 1 with probability mean_reward(s, a), else 0. False: r = mean_reward(s, a).
    arrival_reward : array (S,), optional
        Given: r = arrival_reward(s'), so mean_reward(s, a) = sum_s' P(s' | s, a) arrival_reward(s').

    Raises
    ------
    InvalidInput
        Where shapes disagree, rows are no probabilities, or rewards contradict `bernoulli` or `arrival_reward`.

    Examples
    --------
    >>> from accountable_ope.environments import TabularMDP
    >>> mdp = TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]], discount=0.5, start=[1.0, 0.0])
    >>> mdp.value([[1.0], [1.0]])
    1.5
    """

    transition: FloatArray
    mean_reward: FloatArray
    discount: float
    start: FloatArray
    terminal: BoolArray
    bernoulli: bool
    arrival_reward: FloatArray | None

    def __init__(
        self,
        transition: ArrayLike,
        mean_reward: ArrayLike,
        discount: float,
        start: ArrayLike,
        terminal: ArrayLike | None = None,
        bernoulli: bool = False,
        arrival_reward: ArrayLike | None = None,
    ) -> None:
        p = float_array(transition, "transition", dimensions=(3,))
        if p.shape[0] != p.shape[2] or 0 in p.shape:
            raise InvalidInput(f"`transition` must have shape (S, A, S). Got {p.shape}.")
        states, actions = p.shape[:2]
        p = probability_rows(p.reshape(-1, states), "transition, as (S * A, S)").reshape(p.shape)
        reward = float_array(mean_reward, "mean_reward", dimensions=(2,))
        if reward.shape != (states, actions):
            raise InvalidInput(f"`mean_reward` must have shape ({states}, {actions}), as `transition` says. Got {reward.shape}.")
        if not 0 <= number(discount, "discount") <= 1:
            raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
        ends = np.zeros(states, dtype=bool) if terminal is None else raw_array(terminal)
        if ends.dtype != bool or ends.shape != (states,):
            raise InvalidInput(f"`terminal` must be {states} times True or False. Got {ends.dtype} of shape {ends.shape}.")
        first = probability_rows(_per_state(start, "start", states)[None], "start")[0]
        if first[ends].any():
            raise InvalidInput("`start` must not put mass on terminal states: an episode that starts there has no transition.")
        if not isinstance(bernoulli, (bool, np.bool_)):
            raise InvalidInput(f"`bernoulli` must be True or False. Got {bernoulli!r}.")
        if bernoulli and ((reward < 0) | (reward > 1)).any():
            raise InvalidInput(
                f"`mean_reward` must be in [0, 1] with `bernoulli=True`. Got {reward.min():.6g} to {reward.max():.6g}."
            )
        arrival = None if arrival_reward is None else _per_state(arrival_reward, "arrival_reward", states)
        if arrival is not None:
            if bernoulli:
                raise InvalidInput(
                    "`bernoulli=True` contradicts `arrival_reward`: the reward is either a coin or a function of s'."
                )
            if np.abs(p @ arrival - reward)[~ends].max() > 1e-9:
                raise InvalidInput("`mean_reward` must be `transition @ arrival_reward` at states that are not terminal.")
        object.__setattr__(self, "transition", frozen(p))
        object.__setattr__(self, "mean_reward", frozen(reward))
        object.__setattr__(self, "discount", float(discount))
        object.__setattr__(self, "start", frozen(first))
        object.__setattr__(self, "terminal", frozen(ends))
        object.__setattr__(self, "bernoulli", bool(bernoulli))
        object.__setattr__(self, "arrival_reward", None if arrival is None else frozen(arrival))

    def __repr__(self) -> str:
        states, actions = self.mean_reward.shape
        return f"TabularMDP({states} states ({int(self.terminal.sum())} terminal), {actions} actions, discount={self.discount})"

    def q_values(self, policy_table: ArrayLike) -> FloatArray:
        """Q = r + discount P V, where V = pi Q solves (I - discount P_pi) V = r_pi; both are 0 at terminal states.

        A discount of 1 needs a policy under which every episode ends almost surely, wherever it starts.
        """
        table = self._table(policy_table, "policy_table")
        if self.discount == 1:
            ends = _reachable(np.einsum("sa,sat->st", table, self.transition))[:, self.terminal].any(axis=1)
            if not ends.all():
                raise InvalidInput(
                    f"With `discount` 1 episodes must end under the policy, but from state {int(np.argmin(ends))} no terminal "
                    "state can be reached, so the value is not defined."
                )
        live = ~self.terminal
        reward = self.mean_reward * live[:, None]
        onward = self.discount * self.transition * live[:, None, None]
        v = np.linalg.solve(
            np.eye(len(live)) - np.einsum("sa,sat->st", table, onward),
            (table * reward).sum(axis=1),
        )
        q: FloatArray = reward + onward @ v
        return q

    def value(self, policy_table: ArrayLike) -> float:
        """sum_s start(s) sum_a pi(a | s) Q(s, a)."""
        q = self.q_values(policy_table)
        return float(self.start @ (self._table(policy_table, "policy_table") * q).sum(axis=1))

    def average_reward(self, policy_table: ArrayLike) -> float:
        """sum_s d(s) r_pi(s) with the stationary distribution d = d P_pi, whatever the start and the discount."""
        table = self._table(policy_table, "policy_table")
        if self.terminal.any():
            raise InvalidInput("`average_reward` needs an MDP without terminal states: this one ends.")
        p = np.einsum("sa,sat->st", table, self.transition)
        # A finite chain has one closed class, hence one stationary distribution, exactly when some state is reachable from all.
        if not _reachable(p).all(axis=0).any():
            raise InvalidInput("`average_reward` needs one recurrent class: under this policy the limit depends on the start.")
        # The rows of (I - P)' sum to zero, so any one of them can give way to sum d = 1.
        system = np.eye(len(p)) - p.T
        system[-1] = 1.0
        stationary = np.linalg.solve(system, np.eye(len(p))[-1])
        return float(stationary @ (table * self.mean_reward).sum(axis=1))

    def sample_trajectories(self, behavior_table: ArrayLike, episodes: int, length: int, rng: np.random.Generator) -> Transitions:
        """Episodes of at most `length` steps from the start distribution, one after the other; termination ends one early."""
        table = self._table(behavior_table, "behavior_table")
        running = np.arange(whole(episodes, "episodes", least=1))
        whole(length, "length", least=1)
        state = draw_indices(np.broadcast_to(self.start, (episodes, len(self.start))), rng)
        labels, states, actions, rewards, next_states = [], [], [], [], []
        for _ in range(length):
            action = draw_indices(table[state], rng)
            reward, after = self._step(state, action, rng)
            labels.append(running)
            states.append(state)
            actions.append(action)
            rewards.append(reward)
            next_states.append(after)
            going_on = ~self.terminal[after]
            running, state = running[going_on], after[going_on]
            if len(running) == 0:
                break
        label = np.concatenate(labels)
        by_episode = np.argsort(label, kind="stable")  # stable: time order is kept within an episode
        return self._transitions(
            np.concatenate(states)[by_episode],
            np.concatenate(actions)[by_episode],
            np.concatenate(rewards)[by_episode],
            np.concatenate(next_states)[by_episode],
            label[by_episode],
        )

    def sample_iid(self, count: int, rng: np.random.Generator, behavior_table: ArrayLike | None = None) -> Transitions:
        """Independent transitions: s uniform over states that are not terminal, a uniform or a ~ behavior(s)."""
        whole(count, "count", least=2)
        actions = self.mean_reward.shape[1]
        state = np.flatnonzero(~self.terminal)[rng.integers(int((~self.terminal).sum()), size=count)]
        if behavior_table is None:
            action: IntArray = rng.integers(actions, size=count)
        else:
            action = draw_indices(self._table(behavior_table, "behavior_table")[state], rng)
        reward, after = self._step(state, action, rng)
        return self._transitions(state, action, reward, after, None)

    def policy(self, table: ArrayLike) -> DiscretePolicy:
        """The policy of a table (S, A); its action vectors are the indices as floats, shape (A, 1)."""
        checked = self._table(table, "table")
        return DiscretePolicy(_TableLookup(frozen(checked)), np.arange(checked.shape[1], dtype=np.float64)[:, None])

    def starts(self) -> StartStates:
        """The start distribution, exactly."""
        states = np.flatnonzero(self.start)
        return StartStates(states[:, None], self.start[states], exact=True)

    def step_knowledge(self, policy_table: ArrayLike | None = None) -> StepKnowledge:
        """What a single step can do: from the least to the largest index of a next state of positive probability.

        Where states are terminal, they are the terminal region. With the table of a target policy, b(s, a) is how far chance
        moves r + discount V(s') under that policy, exactly (and a little above 0 where it moves nothing).
        """
        region = None
        if self.terminal.any():
            names = ", ".join(map(str, np.flatnonzero(self.terminal)))
            region = TerminalRegion(f"in {{{names}}}", TerminalStates(self.terminal))
        moves = None if policy_table is None else OneStepRange(frozen(self._one_step_range(policy_table)))
        return StepKnowledge(region, Reach(self.transition), moves)

    def _one_step_range(self, policy_table: ArrayLike) -> FloatArray:
        """max - min of r + discount V(s') over what is possible at every (s, a)."""
        value = (self._table(policy_table, "policy_table") * self.q_values(policy_table)).sum(axis=1)
        outcome = self.discount * value + (0.0 if self.arrival_reward is None else self.arrival_reward)
        possible = self.transition > 0
        most = np.where(possible, outcome, -np.inf).max(axis=2)
        least = np.where(possible, outcome, np.inf).min(axis=2)
        coin = self.bernoulli & (self.mean_reward > 0) & (self.mean_reward < 1)
        # Values are solved for, with rounding; a range of 0 is no range that can be declared.
        return np.asarray((most - least + coin) * (1 + 1e-9) + 1e-9)

    def _table(self, values: ArrayLike, name: str) -> FloatArray:
        table = float_array(values, name, dimensions=(2,))
        if table.shape != self.mean_reward.shape:
            raise InvalidInput(f"`{name}` must have shape {self.mean_reward.shape}: a row per state. Got {table.shape}.")
        return probability_rows(table, name)

    def _step(self, state: IntArray, action: IntArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """(r, s') for each (s, a)."""
        after = draw_indices(self.transition[state, action], rng)
        if self.arrival_reward is not None:
            return self.arrival_reward[after], after
        reward: FloatArray = self.mean_reward[state, action]
        if self.bernoulli:
            reward = (rng.random(len(reward)) < reward).astype(np.float64)
        return reward, after

    def _transitions(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, next_states: IntArray, episodes: IntArray | None
    ) -> Transitions:
        return Transitions(states[:, None], actions, rewards, next_states[:, None], self.terminal[next_states], episodes)


@dataclass(frozen=True, eq=False)
class _TableLookup:
    """states (n, 1) of indices -> the rows of a table; a class and not a closure, so that policies can be pickled."""

    table: FloatArray

    def __call__(self, states: FloatArray) -> FloatArray:
        count = len(self.table)
        known = states.shape[1] == 1 and np.isin(states[:, 0], np.arange(count)).all()
        if not known:
            raise InvalidInput(f"States of a tabular policy must be one column of indices 0 to {count - 1}.")
        return self.table[states[:, 0].astype(np.int64)]


def _per_state(values: ArrayLike, name: str, states: int) -> FloatArray:
    array = vector(values, name)
    if len(array) != states:
        raise InvalidInput(f"`{name}` must be one number per state ({states}). Got {len(array)}.")
    return array


def _reachable(transition: FloatArray) -> BoolArray:
    """(S, S), whether a path of positive probability leads from a row's state to a column's, by repeated squaring."""
    reach = (transition > 0) | np.eye(len(transition), dtype=bool)
    for _ in range(len(transition).bit_length()):
        reach = reach @ reach
    return reach
