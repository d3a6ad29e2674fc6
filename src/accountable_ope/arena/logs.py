"""Logs that the laboratory and the table of trust do not draw: adaptive ones with their probabilities, and one through Minari."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import numpy as np

from ..io.minari import load_minari, save_minari
from ..laboratory.draws import Draw, Greedy
from ..problem.transitions import Transitions
from ..validation import FloatArray

DATASETS = "MINARI_DATASETS_PATH"


@dataclass(frozen=True, eq=False)
class GreedyRecorded:
    """A log of `Greedy` with the probability of every action, as a logger that explores would have recorded it."""

    draw: Greedy

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        data = self.draw(rng, n)
        same = {field.name: getattr(data, field.name) for field in fields(data)}
        return Transitions(**same | {"behavior_probability": self.probabilities(data)})

    def probabilities(self, data: Transitions) -> FloatArray:
        """1 - exploration for the action that paid best so far, and a share of exploration for every one."""
        states, actions = self.draw.mdp.mean_reward.shape
        totals, visits = np.zeros((states, actions)), np.zeros((states, actions))
        share = self.draw.exploration / actions
        found = np.full(len(data), share)
        for row, (state, action, reward) in enumerate(
            zip(data.states[:, 0].astype(np.int64).tolist(), data.actions.tolist(), data.rewards.tolist(), strict=True)
        ):
            means = np.where(visits[state] > 0, totals[state] / np.maximum(visits[state], 1), 1.0)
            if int(np.argmax(means)) == action:
                found[row] += 1 - self.draw.exploration
            totals[state, action] += reward
            visits[state, action] += 1
        return found


@dataclass(frozen=True, eq=False)
class WholeEpisodes:
    """A log without the last episode where that was cut off at row n: weights of whole episodes could not use it."""

    draw: Draw
    horizon: int

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        data = self.draw(rng, n)
        assert data.episodes is not None
        last = data.episodes == data.episodes[-1]
        done = data.terminated[-1] or int(last.sum()) >= self.horizon
        return data if done else data.rows(~last)


@dataclass(frozen=True, eq=False)
class RowsAsEpisodes:
    """A log of a bandit, where every row is an episode of its own."""

    draw: Draw

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        data = self.draw(rng, n)
        same = {field.name: getattr(data, field.name) for field in fields(data)}
        return Transitions(**same | {"episodes": np.arange(len(data))})


@dataclass(frozen=True, eq=False)
class ThroughMinari:
    """A log that is written as a Minari dataset and read back."""

    draw: Draw

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        data = self.draw(rng, n)
        with tempfile.TemporaryDirectory() as folder, _datasets_in(folder):
            return load_minari(save_minari(data, "arena-v0"))


@contextmanager
def _datasets_in(folder: str) -> Iterator[None]:
    """Minari looks for its datasets where the environment says."""
    before = os.environ.get(DATASETS)
    os.environ[DATASETS] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[DATASETS]
        else:
            os.environ[DATASETS] = before
