"""A log as a table: how often each action led from each state where, and what it paid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..classes.features import ListedFeatures
from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray, IntArray, row_keys
from .contestant import Entry


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as indices, of S states and A actions; a next state S is the end.

    state, action, after, rewards: (n,).
    policy: pi (S, A), start: (S,).
    """

    state: IntArray
    action: IntArray
    after: IntArray
    rewards: FloatArray
    policy: FloatArray
    start: FloatArray

    @classmethod
    def of(cls, entry: Entry) -> Table:
        problem, data = entry.problem, entry.problem.data
        assert isinstance(entry.features, ListedFeatures)
        listed = np.unique(entry.features.one_hot_points[:, : data.states.shape[1]] + 0.0, axis=0)
        listed = listed[np.argsort(row_keys(listed))]
        policy = np.column_stack([branch.weights for branch in problem.policy.branches(listed)])
        after = np.full(len(data), len(listed))
        live = ~data.terminated
        after[live] = _index(listed, data.next_states[live], "next_states")
        starts = _index(listed, problem.starts.states, "start states")
        return cls(
            _index(listed, data.states, "states"),
            np.asarray(data.actions, dtype=np.int64),
            after,
            data.rewards,
            policy,
            np.bincount(starts, weights=problem.starts.weights, minlength=len(listed)),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return self.policy.shape

    def counts(self, weights: FloatArray | None = None) -> FloatArray:
        """(S, A, S + 1), of rows that count so often."""
        states, actions = self.shape
        cell = (self.state * actions + self.action) * (states + 1) + self.after
        found = np.bincount(cell, weights, minlength=states * actions * (states + 1))
        return np.asarray(found.reshape(states, actions, states + 1), dtype=np.float64)

    def paid(self, weights: FloatArray | None = None) -> FloatArray:
        """The sum of rewards, (S, A)."""
        states, actions = self.shape
        rewards = self.rewards if weights is None else weights * self.rewards
        return np.asarray(np.bincount(self.state * actions + self.action, rewards, states * actions).reshape(self.shape))

    @cached_property
    def reached(self) -> BoolArray:
        """Where the target policy can be, as far as the log shows: (S,)."""
        found = self.start > 0
        moves = np.einsum("sa,sat->st", self.policy, self.counts()[:, :, :-1]) > 0
        while True:
            more = found | moves[found].any(axis=0)
            if (more == found).all():
                return found
            found = more

    @property
    def missing(self) -> int:
        """How many pairs that the target policy gets to, as far as the log shows, were never logged."""
        visits = self.counts().sum(axis=2)
        return int(((self.policy > 0) & (visits == 0) & self.reached[:, None]).sum())


def _index(listed: FloatArray, states: FloatArray, name: str) -> IntArray:
    keys, asked = row_keys(listed), row_keys(states)
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    unknown = keys[at] != asked
    if unknown.any():
        raise InvalidInput(f"`{name}` has a state that the table does not list, {states[int(np.argmax(unknown))].tolist()}.")
    return np.asarray(at, dtype=np.int64)
