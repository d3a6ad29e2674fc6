"""Units: how far points lie apart, column by column, so that nothing depends on the units of a state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..fitting.selection import median_bandwidth
from ..kernels.kernel import Gaussian
from ..problem.policy import Policy
from ..validation import FloatArray

KERNEL_WIDTH = 0.7
"""Bandwidths of the test kernel, in units of the median distance of scaled points."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """Scales of the columns of (s, a), and how far scaled points lie apart.

    Attributes
    ----------
    states : array (d,)
        Standard deviations of the states (of the actions too where these are no finite set).
    actions : array (k,)
        Distances of the actions of a finite set; empty where they are among the states.
    median : float
        The median distance of points of which every column was divided by its scale.
    """

    states: FloatArray
    actions: FloatArray
    median: float

    @property
    def units(self) -> FloatArray:
        """One number per column of (s, a)."""
        return np.concatenate([self.states, self.actions])

    def widths(self, multiple: float) -> FloatArray:
        """Bandwidths for the columns of the states."""
        return multiple * self.median * self.states

    def kernel(self) -> Gaussian:
        """The test kernel: exp(-||(x - y) / h||^2)."""
        return Gaussian(np.concatenate([self.widths(KERNEL_WIDTH), self.actions]))


def scaling_of(points: FloatArray, policy: Policy) -> Scaling:
    """Scales from the points of the early rows."""
    vectors = policy.action_vectors
    columns = points.shape[1] - (0 if vectors is None else vectors.shape[1])
    varying = points[:, :columns]
    spread = varying.std(axis=0)
    size = np.abs(varying).max(axis=0)
    # A column that never moved has no scale of its own: if it moves later, its size is all that is known.
    states = np.where(spread > 1e-12 * size, spread, np.where(size > 0, size, 1.0))
    actions = np.zeros(0) if vectors is None else np.full(vectors.shape[1], _nearest(vectors))
    return Scaling(states, actions, median_bandwidth(varying / states))


def _nearest(vectors: FloatArray) -> float:
    """1 for one-hot vectors: the least distance between two actions, over sqrt(2)."""
    if len(vectors) < 2:
        return 1.0
    away = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    return float(away[~np.eye(len(vectors), dtype=bool)].min() / np.sqrt(2))
