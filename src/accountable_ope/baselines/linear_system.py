"""The linear system of a class of Q: features of the rows, of what follows them, and of the start states.

Q(s, a) = phi(s, a)'theta, a constant among phi where the class has one. Of row i: phi_i = phi(s_i, a_i), next_i = E_{a ~ pi}
phi(s'_i, a), 0 where s'_i is terminal, z_i = phi_i - discount next_i. c0 = E phi(s_0, a) at the start. With weights w_i of
rows,

    A = sum_i w_i phi_i z_i' / n,   b = sum_i w_i phi_i r_i / n,   A theta = b,   value = c0'theta:

LSTD for Q (Bradtke and Barto 1996; Lagoudakis and Parr 2003). What the rows do not see is shrunk to 0 by `RIDGE`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..classes.features import FeatureMap
from ..classes.function_class import expected_features
from ..problem.policy import Policy, at_start
from ..validation import BoolArray, FloatArray, IntArray
from .contestant import Entry

RIDGE = 1e-8
"""The penalty on coefficients, relative to the mean square of a feature: it decides only what the rows do not."""


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """phi, after: (n, m); starts: (N, m) with their weights, a sample unless they are exact; rewards: (n,)."""

    phi: FloatArray
    after: FloatArray
    rewards: FloatArray
    starts: FloatArray
    start_weights: FloatArray
    starts_exact: bool
    discount: float

    @classmethod
    def of(cls, entry: Entry) -> LinearSystem:
        problem, features = entry.problem, entry.features
        assert features is not None
        data, live = problem.data, ~problem.data.terminated
        after = np.zeros((len(data), features.dimension + int(features.intercept)))
        after[live] = _expected(features, data.next_states[live], problem.policy)
        phi = np.asarray(features(problem.experience.points), dtype=np.float64)
        return cls(
            _with_constant(features, phi),
            after,
            data.rewards,
            _expected(features, problem.starts.states, at_start(problem.policy)),
            problem.starts.weights,
            problem.starts.exact,
            problem.assumptions.discount,
        )

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def scaled(self) -> LinearSystem:
        """The same class with columns of mean square 1, so that the ridge does not hang on units; theta is in these."""
        sizes = np.sqrt(np.mean(self.phi**2, axis=0))
        sizes[sizes == 0] = 1.0
        return replace(self, phi=self.phi / sizes, after=self.after / sizes, starts=self.starts / sizes)

    @cached_property
    def z(self) -> FloatArray:
        return np.asarray(self.phi - self.discount * self.after)

    @cached_property
    def c0(self) -> FloatArray:
        return np.asarray(self.start_weights @ self.starts)

    @cached_property
    def ridge(self) -> FloatArray:
        """Added to A, (m, m)."""
        scale = float(np.mean(self.phi**2))
        return np.asarray(RIDGE * (scale if scale > 0 else 1.0) * np.eye(self.phi.shape[1]))

    def matrix(self, weights: FloatArray | None = None) -> FloatArray:
        """A, with the ridge."""
        weighted = self.phi if weights is None else self.phi * weights[:, None]
        return np.asarray(weighted.T @ self.z / len(self) + self.ridge)

    def vector(self, weights: FloatArray | None = None) -> FloatArray:
        """b."""
        paid = self.rewards if weights is None else weights * self.rewards
        return np.asarray(self.phi.T @ paid / len(self))

    def residuals(self, theta: FloatArray) -> FloatArray:
        """e_i = r_i - z_i'theta."""
        return np.asarray(self.rewards - self.z @ theta)

    def start_variance(self, theta: FloatArray) -> float:
        """The variance of the mean of V over sampled start states; 0 where their distribution is known."""
        if self.starts_exact:
            return 0.0
        count = len(self.starts)
        return float(np.var(self.starts @ theta, ddof=1)) / count if count > 1 else float("inf")

    def resampled_start(self, rng: np.random.Generator) -> FloatArray:
        """c0 of start states drawn again, where they are a sample."""
        if self.starts_exact:
            return self.c0
        count = len(self.starts)
        return np.asarray(rng.multinomial(count, self.start_weights) / count @ self.starts)

    def part(self, rows: IntArray | BoolArray) -> LinearSystem:
        """Some of the rows."""
        return LinearSystem(
            self.phi[rows],
            self.after[rows],
            self.rewards[rows],
            self.starts,
            self.start_weights,
            self.starts_exact,
            self.discount,
        )


def solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """The solution, or NaN where there is none."""
    try:
        found = np.linalg.solve(matrix, vector)
    except np.linalg.LinAlgError:
        return np.full(len(vector), np.nan)
    return np.asarray(found)


def _expected(features: FeatureMap, states: FloatArray, policy: Policy) -> FloatArray:
    return _with_constant(features, expected_features(features, states, policy))


def _with_constant(features: FeatureMap, columns: FloatArray) -> FloatArray:
    return np.concatenate([columns, np.ones((len(columns), 1))], axis=1) if features.intercept else columns
