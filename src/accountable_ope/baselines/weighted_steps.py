"""Weights and rewards of every episode, step by step, and the estimators that are made of them.

With w_it = prod_{k<=t} pi(a_k | s_k) / b(a_k | s_k) in episode i = 1, ..., N and w_i = w_{i,T-1},

    trajectory:            (1/N) sum_i w_i sum_t discount^t r_it
    per decision:          (1/N) sum_i sum_t discount^t w_it r_it
    weighted trajectory:   sum_i w_i sum_t discount^t r_it / sum_i w_i
    weighted per decision: sum_t discount^t sum_i w_it r_it / sum_i w_it

(Precup, Sutton and Singh 2000). The first two are means of independent numbers. The others are ratios, whose error is, to first
order, that of the mean of their influences: with m_t the ratio at step t, psi_i = sum_t discount^t w_it (r_it - m_t) over the
mean weight of the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..problem.policy import Policy
from ..problem.propensities import recorded_probabilities, taken_probabilities
from ..problem.transitions import Transitions
from ..validation import FloatArray
from .episodes import whole_episodes


@dataclass(frozen=True, eq=False)
class WeightedSteps:
    """log_weights, payments: (N, T), of discounted rewards; after an episode the weight stays and nothing is paid."""

    log_weights: FloatArray
    payments: FloatArray

    @classmethod
    def of(cls, data: Transitions, policy: Policy, discount: float, steps: int) -> WeightedSteps:
        order, first, lengths = whole_episodes(data, steps)
        with np.errstate(divide="ignore"):
            ratios = np.log(taken_probabilities(policy, data)) - np.log(recorded_probabilities(data))
        time = np.arange(steps)
        inside = time < lengths[:, None]
        rows = order[np.where(inside, first[:, None] + time, first[:, None])]
        logs = np.cumsum(np.where(inside, ratios[rows], 0.0), axis=1)
        return cls(logs, np.where(inside, discount**time * data.rewards[rows], 0.0))

    @property
    def whole(self) -> WeightedSteps:
        """One step, with the weight and the return of the whole episode."""
        return WeightedSteps(self.log_weights[:, -1:], self.payments.sum(axis=1, keepdims=True))

    @property
    def ever_weighted(self) -> bool:
        """Whether some episode has a weight at every step: where none has, the logs say nothing of the target policy."""
        return bool((self.log_weights.max(axis=0) > -math.inf).all())

    def samples(self) -> FloatArray:
        """Numbers whose mean is the estimate, one of each episode."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((np.exp(self.log_weights) * self.payments).sum(axis=1))

    def normalized(self) -> tuple[FloatArray, FloatArray]:
        """(w_it, w_it r_it), the weights in units of the largest of their step: a ratio knows no unit."""
        largest = self.log_weights.max(axis=0)
        weights = np.exp(self.log_weights - np.where(largest > -math.inf, largest, 0.0))
        return weights, weights * self.payments

    def ratios(self, counts: FloatArray) -> FloatArray:
        """sum_t of the ratios, for rows of counts of the episodes, (B, N) -> (B,)."""
        weights, paid = self.normalized()
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(((counts @ paid) / (counts @ weights)).sum(axis=1))

    def influences(self) -> FloatArray:
        """The estimate plus psi_i, (N,): their mean is the estimate."""
        weights, paid = self.normalized()
        with np.errstate(divide="ignore", invalid="ignore"):
            means = paid.sum(axis=0) / weights.sum(axis=0)
            return np.asarray(means.sum() + ((paid - weights * means) / weights.mean(axis=0)).sum(axis=1))
