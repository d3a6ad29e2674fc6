"""Coordinates of a kernel at some of the logged points, and a kernel for who has none in mind.

Both look at points (s, a) alone, never at a reward or a next state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..classes.blurred import BlurredKernel
from ..classes.function_class import Columns
from ..fitting.selection import median_bandwidth
from ..kernels.kernel import Gaussian, Kernel, Tabular, block, distinct_rows
from ..problem.gaussian_policy import GaussianPolicy
from ..problem.policy import Branch, Policy, at_start
from ..problem.problem import Experience
from ..validation import FloatArray

ROWS_PER_LANDMARK, ROWS_PER_CELL = 10, 5
"""So many rows at least for every landmark; and for every pair (s, a) of a table, where there are no others."""

NARROWER = 0.7
"""The bandwidth is this share of the median distance: Q is rougher than the points are far apart."""

FLAT = 1e-6
"""Directions with less than this share of the largest eigenvalue are left out."""

ROWS_AT_ONCE = 2048

SEED = 0


@dataclass(frozen=True, eq=False)
class Landmarks:
    """psi(x) = R'(K(x, u_1), ..., K(x, u_D)), with R such that psi(x)'psi(y) = K(x, y) at the landmarks."""

    kernel: Kernel
    points: FloatArray
    every: bool
    """Whether all different points of the log are landmarks."""

    @classmethod
    def of(cls, kernel: Kernel, points: FloatArray, most: int) -> Landmarks:
        """Different points of the log, drawn from their sorted list: which they are does not depend on the order of rows."""
        different = np.unique(points, axis=0)
        if len(different) <= min(most, len(points) // ROWS_PER_CELL):
            return cls(kernel, different, every=True)
        size = min(most, max(1, len(points) // ROWS_PER_LANDMARK), len(different))
        chosen = np.random.default_rng(SEED).choice(len(different), size, replace=False)
        return cls(kernel, different[np.sort(chosen)], every=size == len(different))

    @cached_property
    def rotation(self) -> FloatArray:
        """R."""
        values, vectors = np.linalg.eigh(block(self.kernel, self.points, self.points))
        kept = values > FLAT * values[-1]
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def dimension(self) -> int:
        return int(self.rotation.shape[1])

    def __call__(self, points: FloatArray) -> FloatArray:
        return block(self.kernel, points, self.points) @ self.rotation

    def columns(self, experience: Experience) -> tuple[Columns, float]:
        """The coordinates at the rows, and the share of next and start pairs that were never logged, where that is known."""
        points, live, starts = experience.points, experience.live, experience.starts
        here = np.empty((len(points), self.dimension))
        for begin in range(0, len(points), ROWS_AT_ONCE):
            here[begin : begin + ROWS_AT_ONCE] = self(points[begin : begin + ROWS_AT_ONCE])
        after = np.zeros_like(here)
        after[live], logged = self._expected(experience.data.next_states[live], experience.policy)
        start, at_first = self._expected(starts.states, at_start(experience.policy))
        known = self.every and isinstance(self.kernel, Tabular)
        unlogged = 1 - float(np.concatenate([logged, at_first]).mean()) if known else 0.0
        return Columns(here, after, start), max(unlogged, 0.0)

    def _expected(self, states: FloatArray, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """E psi(s, a) over the policy's actions, and E sum_j K((s, a), u_j): rotated once and not for every action."""
        out, total = np.empty((len(states), self.dimension)), np.empty(len(states))
        if len(states) == 0:
            return out, total
        if isinstance(policy, GaussianPolicy):
            branches, entries = [Branch(policy.means(states), np.ones(len(states)))], self._over_normal(policy)
        else:
            branches, entries = list(policy.branches(states)), partial(block, self.kernel)
        for begin in range(0, len(states), ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            sums = np.zeros((len(states[rows]), len(self.points)))
            for actions, weights, _ in branches:
                sums += weights[rows, None] * entries(np.concatenate([states[rows], actions[rows]], axis=1), self.points)
            out[rows], total[rows] = sums @ self.rotation, sums.sum(axis=1)
        return out, total

    def _over_normal(self, policy: GaussianPolicy) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """The kernel averaged over normal actions of the left points."""
        columns = self.points.shape[1]
        blurred = BlurredKernel.of(self.kernel, policy.covariance, columns - len(policy.covariance), columns)
        return partial(blurred.block, normal=1)


def default_kernel(experience: Experience, most: int) -> Kernel:
    """Equality of points where they are few against the rows; else a Gaussian, states in units of their standard deviation."""
    points, count = experience.points, len(experience.points)
    if len(distinct_rows(points)[0]) <= min(most, count // ROWS_PER_CELL):
        return Tabular()
    vectors = experience.policy.action_vectors
    scaled = points if vectors is None else experience.data.states
    deviation = scaled.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    bandwidth = NARROWER * median_bandwidth(scaled / deviation) * deviation
    if vectors is not None:
        bandwidth = np.concatenate([bandwidth, np.full(vectors.shape[1], _action_bandwidth(vectors))])
    return Gaussian(bandwidth)


def _action_bandwidth(vectors: FloatArray) -> float:
    """Two actions of a finite set resemble each other as one-hot vectors do at bandwidth 1: by exp(-2)."""
    if len(vectors) == 1:
        return 1.0
    squares = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    return math.sqrt(float(squares.sum()) / (len(vectors) * (len(vectors) - 1)) / 2)
