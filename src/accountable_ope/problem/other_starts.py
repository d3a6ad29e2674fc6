"""Whether logged episodes begin where the target policy is asked to start.

A test, column by column, of the distribution functions F of the start states and G of the first states of m logged episodes. With
D the largest |F - G| over all columns and values, N = m where F is known, and N = m k / (m + k) where it is that of k draws,

    p = min(1, 2 d exp(-2 N D^2))

for d columns: the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart, which for two samples is Smirnov's limit. It needs no
more than that the first states are draws; where starts are the first states themselves, D = 0.
"""

from __future__ import annotations

import math

import numpy as np

from ..validation import FloatArray
from .transitions import StartStates

OTHER_STARTS = 1e-3
"""Below this p, logged episodes begin elsewhere: a decision that compares with them is doubted."""

SAMPLE = "Start states that are a sample of many more are declared as one: `StartStates(..., exact=False)`, `--sampled-starts`."
"""What to do where start states were taken for all that there are."""


def starts_p_value(begins: FloatArray, starts: StartStates) -> float:
    """p of the hypothesis that the states in which episodes begin, (m, d), are draws of the start states."""
    distances = column_distances(begins, starts)
    columns, distance = len(distances), max(distances, default=0.0)
    if not columns:
        return 1.0
    m, drawn = len(begins), len(starts)
    count = m if starts.exact else m * drawn / (m + drawn)
    return float(min(1.0, 2 * columns * math.exp(-2 * count * distance**2)))


def column_distances(begins: FloatArray, starts: StartStates) -> list[float]:
    """D of every column; none where there is nothing to compare."""
    columns = starts.states.shape[1]
    if begins.shape[1] != columns or not len(begins):
        return []
    return [_distance(begins[:, k], starts.states[:, k], starts.weights) for k in range(columns)]


def _distance(drawn: FloatArray, values: FloatArray, weights: FloatArray) -> float:
    """The largest difference of two distribution functions."""
    at = np.unique(np.concatenate([drawn, values]))
    order = np.argsort(values)
    known = np.concatenate([[0.0], np.cumsum(weights[order])])[np.searchsorted(values[order], at, side="right")]
    seen = np.searchsorted(np.sort(drawn), at, side="right") / len(drawn)
    return float(np.abs(known - seen).max())
