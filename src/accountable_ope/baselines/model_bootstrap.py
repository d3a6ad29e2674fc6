"""A model of the process with a bootstrap over episodes (Hanna, Stone and Niekum 2017).

A table: the frequencies of what followed (s, a) and its mean reward, of which the value is solved for; a pair that was never
logged is taken to be like all rows together. Continuous states: with points x = (s, a), in units of their standard deviations,
and phi(x) their coordinates, squares and products, ridge regressions of s' - s, of the reward and of termination on phi; the
target policy is run in this model from start states, with residuals of logged rows drawn for the noise, until discount^t is
small. Both are made again for each draw of as many episodes with replacement; the interval is [q_{delta/2}, q_{1-delta/2}] of
the values.

It is right in the limit of many episodes for a table. A model of continuous states that is wrong is wrong at any number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..classes.features import ListedFeatures
from ..problem.policy import Policy
from ..problem.problem import Problem
from ..problem.statements import Guarantee, premise
from ..validation import FloatArray
from .answer import answered, percentile_ends
from .contestant import Contestant, Entry, Needs
from .fitted_returns import Quadratic
from .interval import BaselineInterval
from .lstdq import LIMIT
from .table import Table

REFITS = 200
"""Tables."""

CONTINUOUS_REFITS, RUNS = 40, 100
"""Models of continuous states, and runs in each."""

LEAST_LEFT, MOST_STEPS = 0.01, 500
"""Runs stop where discount^t is so small, or after so many steps."""

RIDGE = 1e-3
EPISODES = premise("episodes", "Episodes are independent and of the same process.")


def model_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """Quantiles of the values in models of episodes drawn again."""
    problem, data = entry.problem, entry.problem.data
    assert data.episodes is not None
    many = int(data.episodes.max()) + 1
    listed = isinstance(entry.features, ListedFeatures) and data.finite_actions and problem.policy.action_vectors is not None
    counts = rng.multinomial(many, np.full(many, 1 / many), size=REFITS if listed else CONTINUOUS_REFITS).astype(np.float64)
    if listed:
        table = Table.of(entry)
        known = table.missing == 0
        values = np.array([table_value(table, drawn[data.episodes], problem, rng) for drawn in counts])
        model = premise("table", "The table lists all states that there are.")
    else:
        known, values = True, StepModel.of(problem).values(problem, counts, rng)
        model = premise("model", "What follows (s, a) is quadratic in it, with noise that does not depend on it.")
    return answered(
        problem,
        percentile_ends(values, delta) if known else (math.nan, math.nan),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.ASYMPTOTIC,
        premises=(EPISODES, model, LIMIT),
    )


def table_value(table: Table, weights: FloatArray, problem: Problem, rng: np.random.Generator) -> float:
    """(I - discount P_pi) V = r_pi at the weighted frequencies."""
    counts, paid = table.counts(weights), table.paid(weights)
    visits = counts.sum(axis=2)
    seen = np.where(visits > 0, visits, 1.0)
    total = counts.sum(axis=(0, 1))
    p = np.where(visits[:, :, None] > 0, counts / seen[:, :, None], total / total.sum())
    r = np.where(visits > 0, paid / seen, paid.sum() / total.sum())
    onward = np.einsum("sa,sat->st", table.policy, p[:, :, :-1])
    starts = table.start
    if not problem.starts.exact:
        count = len(problem.starts)
        starts = rng.multinomial(count, starts / starts.sum()) / count
    try:
        values = np.linalg.solve(np.eye(len(onward)) - problem.assumptions.discount * onward, (table.policy * r).sum(axis=1))
    except np.linalg.LinAlgError:  # undiscounted, and some state never ends
        return math.nan
    return float(starts @ values)


@dataclass(frozen=True, eq=False)
class StepModel:
    """What regressions stand on: phi (n, m), targets (n, d + 2) of moves, rewards and ends; how points become phi."""

    features: Quadratic
    phi: FloatArray
    targets: FloatArray
    box: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, problem: Problem) -> StepModel:
        data, points = problem.data, problem.experience.points
        deviation = points.std(axis=0)
        features = Quadratic(points.mean(axis=0), np.where(deviation > 0, deviation, 1.0))
        moves = np.where(data.terminated[:, None], 0.0, data.next_states - data.states)
        seen = np.concatenate([data.states, data.next_states[~data.terminated]])
        targets = np.column_stack([moves, data.rewards, data.terminated])
        return cls(features, _phi(features, points), targets, (seen.min(axis=0), seen.max(axis=0)))

    def values(self, problem: Problem, counts: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The value in the model of every row of counts, all of them run side by side."""
        data, facts = problem.data, problem.assumptions
        assert data.episodes is not None
        many, rows = len(counts), np.empty((len(counts), MOST_STEPS, RUNS), dtype=np.int64)
        maps = np.empty((many, self.phi.shape[1], self.targets.shape[1]))
        steps = _steps(facts.discount)
        for k, drawn in enumerate(counts):
            weights = drawn[data.episodes]
            maps[k] = self._fit(weights)
            rows[k, :steps] = rng.choice(len(data), size=(steps, RUNS), p=weights / weights.sum())
        states = problem.starts.states[rng.choice(len(problem.starts), size=(many, RUNS), p=problem.starts.weights)]
        alive, total = np.ones((many, RUNS)), np.zeros((many, RUNS))
        low, high = self.box
        for time in range(steps):
            flat = states.reshape(-1, states.shape[2])
            points = np.concatenate([flat, drawn_actions(problem.policy, flat, rng)], axis=1)
            phi = _phi(self.features, points).reshape(many, RUNS, -1)
            found = phi @ maps
            at = rows[:, time]
            noise = self.targets[at] - self.phi[at] @ maps
            rewards = np.clip(found[:, :, -2] + noise[:, :, -2], *facts.reward_range)
            # The last step pays for all that are left, as if nothing changed any more.
            more = 1.0 if time < steps - 1 or facts.discount == 1 else 1 / (1 - facts.discount)
            total += facts.discount**time * more * alive * rewards
            alive *= 1 - np.clip(found[:, :, -1], 0.0, 1.0) if problem.terminates else 1.0
            states = np.clip(states + found[:, :, :-2] + noise[:, :, :-2], low, high)
        return np.asarray(total.mean(axis=1))

    def _fit(self, weights: FloatArray) -> FloatArray:
        weighted = self.phi * weights[:, None]
        gram = weighted.T @ self.phi
        penalty = RIDGE * np.trace(gram) / len(gram)
        return np.asarray(np.linalg.solve(gram + penalty * np.eye(len(gram)), weighted.T @ self.targets))


def drawn_actions(policy: Policy, states: FloatArray, rng: np.random.Generator) -> FloatArray:
    """An action of the policy at every state."""
    branches = list(policy.branches(states))
    weights = np.cumsum([branch.weights for branch in branches], axis=0)
    chosen = (rng.random(len(states)) * weights[-1] >= weights).sum(axis=0)
    vectors = np.stack([branch.actions for branch in branches])
    return np.asarray(vectors[np.minimum(chosen, len(branches) - 1), np.arange(len(states))])


def _phi(features: Quadratic, points: FloatArray) -> FloatArray:
    return np.concatenate([features(points), np.ones((len(points), 1))], axis=1)


def _steps(discount: float) -> int:
    if discount == 0:
        return 1
    return MOST_STEPS if discount == 1 else min(MOST_STEPS, math.ceil(math.log(LEAST_LEFT) / math.log(discount)))


NAME = "model bootstrap"
MODEL_BOOTSTRAP = Contestant(
    name=NAME,
    title="A model of the process, with a bootstrap over episodes",
    source="Hanna, Stone and Niekum (2017)",
    guarantee=Guarantee.ASYMPTOTIC,
    needs=Needs(episodes=True, value_range=True),
    interval=model_interval,
)
