"""Random draws that several environments share."""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray, IntArray

CUT = 2.0
"""Where normal draws are cut."""


def draw_indices(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """One index per row of probabilities (n, K), by inversion."""
    cumulative = np.cumsum(probabilities, axis=1)
    # The last reachable index gets exactly 1, above every uniform draw: indices of probability 0 are never returned.
    cumulative /= cumulative[:, -1:]
    return np.asarray((cumulative <= rng.random(len(cumulative))[:, None]).sum(axis=1))


def cut_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Standard normal draws, cut at two: one step has a farthest reach, and so a range that can be declared."""
    return np.asarray(np.clip(rng.standard_normal(shape), -CUT, CUT))
