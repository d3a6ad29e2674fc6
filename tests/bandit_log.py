"""A bandit with more cells than a few rows can learn, logged by a coin that hardly ever agrees with the target policy.

The ratios of probabilities point at the value from the first row on, so the default radius takes them for the weights of its cut.
"""

from __future__ import annotations

import numpy as np

import accountable_ope as aope

CELLS, ROWS, RARE = 6, 60, 0.15
MEANS = np.outer(np.linspace(0.2, 0.8, CELLS), [1.0, 0.5])
"""The mean reward of every cell and action."""

TARGET = np.array([0.8, 0.2])
POLICY = aope.DiscretePolicy(lambda states: np.tile(TARGET, (len(states), 1)), actions=2)
STARTS = aope.StartStates(np.arange(float(CELLS))[:, None])
FEATURES = aope.TabularFeatures.grid(np.arange(float(CELLS)), POLICY.action_vectors, intercept=False)
FACTS = aope.Assumptions(discount=0.0, reward_range=(0, 1))
VALUE = float((MEANS @ TARGET).mean())


def logged(seed: int, rows: int = ROWS) -> aope.Transitions:
    """Rows with the probabilities of their actions as they were."""
    rng = np.random.default_rng(seed)
    cells, actions = rng.integers(0, CELLS, rows), (rng.uniform(size=rows) >= RARE).astype(np.int64)
    rewards = (rng.uniform(size=rows) < MEANS[cells, actions]).astype(np.float64)
    return recorded(cells.astype(float), actions, rewards, np.array([RARE, 1 - RARE])[actions])


def recorded(cells: np.ndarray, actions: np.ndarray, rewards: np.ndarray, probability: np.ndarray) -> aope.Transitions:
    """Rows that lead nowhere, with what was recorded of their actions."""
    return aope.Transitions(cells[:, None], actions, rewards, cells[:, None], behavior_probability=probability)


def asked(data: aope.Transitions, *, propensities: bool = True) -> aope.Problem:
    return aope.Problem(data, STARTS, POLICY, FACTS, propensities=propensities)


def evaluated(data: aope.Transitions, *, propensities: bool = True) -> aope.bounds.Evaluation:
    return aope.evaluate(asked(data, propensities=propensities), features=FEATURES, kernel=aope.Tabular())
