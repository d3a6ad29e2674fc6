"""Fitted Q evaluation with extremely randomized trees: an estimate from the early rows that is rough where Q is.

Trees are grown to r + discount E Q(s', .), a level at a time and all at once: of `TRIES` random columns and thresholds every node
keeps the one that lowers the sum of squares most. Then leaves take the mean of r + discount E Q(s', .) over their rows, swept
until it settles, and trees are grown anew to what was found. Averages of leaves never leave the range of values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..classes.tree_values import TreeValues, leaves_of
from ..problem.policy import Policy
from ..problem.problem import Experience
from ..validation import BoolArray, FloatArray, IntArray

TREES, TRIES, FEWEST_IN_LEAF, LEVELS = 20, 10, 3, 9
ROUNDS, SWEEPS = 2, 60
CLEARLY = 1 + 1e-9
"""A split must be better by this factor: rounding decides nothing, so that units of a state do not."""

NOTHING = 1e-15
"""A split that lowers the sum of squares by no more than this share of it lowers nothing."""


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees by nodes; child 0 marks a leaf."""

    column: IntArray
    child: IntArray
    threshold: FloatArray

    def leaves(self, points: FloatArray) -> IntArray:
        return leaves_of(self.column, self.child, self.threshold, points)


def fitted_trees(experience: Experience, seed: int) -> TreeValues:
    """The estimate as one feature, of mean 0 and standard deviation 1 over these rows."""
    rng, data, x = np.random.default_rng(seed), experience.data, experience.points
    ahead = _ahead(data.asked_next_states, experience.live, experience.policy)
    q_next = np.zeros(len(x))
    for _ in range(ROUNDS):
        grown = grow(x, data.rewards + experience.discount * q_next, rng)
        here, after = grown.leaves(x), [(grown.leaves(points), weights) for points, weights in ahead]
        values, q_next = _swept(grown, here, after, data.rewards, experience.discount, q_next)
    found = np.take_along_axis(values, here, axis=1).mean(axis=0)
    center, scale = float(found.mean()), float(found.std())
    scale = scale if scale > 1e-12 * np.abs(found).max() else 1.0
    return TreeValues(grown.column, grown.child, grown.threshold, values, center, scale)


def _ahead(states: FloatArray, live: BoolArray, policy: Policy) -> list[tuple[FloatArray, FloatArray]]:
    """Points of every branch of the policy at the next states, with their weights, 0 where the episode ended."""
    return [
        (np.concatenate([states, branch.actions], axis=1), np.where(live, branch.weights, 0.0))
        for branch in policy.branches(states)
    ]


def _swept(
    grown: Grown,
    here: IntArray,
    after: list[tuple[IntArray, FloatArray]],
    rewards: FloatArray,
    discount: float,
    q_next: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Values of all nodes, and the mean of Q at the next states, after sweeps of averaging."""
    trees, nodes = grown.child.shape
    flat = here + nodes * np.arange(trees)[:, None]
    counts = np.maximum(np.bincount(flat.ravel(), minlength=trees * nodes), 1)
    places = [(leaves + nodes * np.arange(trees)[:, None], weights) for leaves, weights in after]
    values = np.zeros(trees * nodes)
    for _ in range(SWEEPS):
        target = np.broadcast_to(rewards + discount * q_next, here.shape)
        values = np.bincount(flat.ravel(), weights=target.ravel(), minlength=trees * nodes) / counts
        q_next = np.asarray(sum(weights * values[leaves].mean(axis=0) for leaves, weights in places))
    return values.reshape(trees, nodes), q_next


def grow(points: FloatArray, target: FloatArray, rng: np.random.Generator) -> Grown:
    """`TREES` trees of at most `LEVELS` levels, all of them a level at a time."""
    n = len(points)
    nodes = min(2 ** (LEVELS + 1) - 1, 2 * (n // FEWEST_IN_LEAF) + 1)
    column, child = np.zeros((TREES, nodes), dtype=np.int64), np.zeros((TREES, nodes), dtype=np.int64)
    threshold, used = np.zeros((TREES, nodes)), np.ones(TREES, dtype=np.int64)
    where = np.zeros((TREES, n), dtype=np.int64)
    centered = target - target.mean()
    tree = np.arange(TREES)[:, None]
    open_from = np.zeros(TREES, dtype=np.int64)  # nodes before these are done
    for _ in range(LEVELS):
        best, col, cut = _best_splits(points, centered, where, nodes, rng)
        best[np.arange(nodes)[None] < open_from[:, None]] = 0.0
        open_from = used.copy()
        split = best > 0
        if not split.any():
            break
        order = np.cumsum(split, axis=1) - 1
        child[split] = (used[:, None] + 2 * order)[split]
        column[split], threshold[split] = col[split], cut[split]
        used = used + 2 * split.sum(axis=1)
        moving = split[tree, where]
        right = points[np.arange(n)[None], column[tree, where]] > threshold[tree, where]
        where = np.where(moving, child[tree, where] + right, where)
    kept = int(used.max())
    return Grown(column[:, :kept], child[:, :kept], threshold[:, :kept])


def _best_splits(
    points: FloatArray, target: FloatArray, where: IntArray, nodes: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, FloatArray]:
    """By how much the best of some random splits of every node lowers the sum of squares, its column and its threshold."""
    n, d = points.shape
    shape, size = (TREES, nodes), TREES * nodes
    flat = (where + nodes * np.arange(TREES)[:, None]).ravel()
    counts = np.bincount(flat, minlength=size)
    totals = np.bincount(flat, weights=np.tile(target, TREES), minlength=size)
    rows = np.tile(np.arange(n), TREES)
    low, high = np.full((d, size), np.inf), np.full((d, size), -np.inf)
    order = np.argsort(flat, kind="stable")
    first = np.flatnonzero(np.diff(flat[order], prepend=-1))
    met = flat[order][first]
    for j in range(d):
        sorted_values = points[rows[order], j]
        low[j, met], high[j, met] = np.minimum.reduceat(sorted_values, first), np.maximum.reduceat(sorted_values, first)
    best, column, cut = np.zeros(size), np.zeros(size, dtype=np.int64), np.zeros(size)
    for _ in range(TRIES):
        tried = rng.integers(d, size=size)
        least, most = low[tried, np.arange(size)], high[tried, np.arange(size)]
        long = most > least
        at = np.where(long, least, 0.0) + rng.random(size) * np.where(long, most - np.where(long, least, 0.0), 0.0)
        left = points[rows, tried[flat]] <= at[flat]
        few = np.bincount(flat, weights=left, minlength=size)
        sums = np.bincount(flat, weights=left * np.tile(target, TREES), minlength=size)
        right = counts - few
        fits = long & (few >= FEWEST_IN_LEAF) & (right >= FEWEST_IN_LEAF)
        gain = np.where(fits, sums**2 / np.maximum(few, 1) + (totals - sums) ** 2 / np.maximum(right, 1), 0.0)
        gain = np.where(fits, gain - totals**2 / np.maximum(counts, 1), 0.0)
        better = gain > np.maximum(CLEARLY * best, NOTHING * float(target @ target))
        best[better], column[better], cut[better] = gain[better], tried[better], at[better]
    return best.reshape(shape), column.reshape(shape), cut.reshape(shape)
