"""Doubly robust returns without a limit, cross-fitted: what is weighted is what an estimate from other episodes has not foretold.

    X_i = V_0(s_0) + sum_{t<T} discount^t w_t (r_t + discount V_{t+1}(s_{t+1}) - Q_t(s_t, a_t))

(Jiang and Li 2016). Q of the steps left is fitted by regressions on the other folds of episodes (`fit_returns`), so that X_i is
independent of it and has the mean J_T whatever the fit is.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ..problem.transitions import Transitions
from ..validation import FloatArray
from .contestant import Entry
from .doubly_robust import Setting, corrected, two_sides
from .episodes import Episodes, read_episodes
from .fitted_returns import fit_returns

FOLDS = 5
"""Parts of the episodes, or as many as there are episodes."""

UNCLIPPED = Setting(1.0, math.inf)


def foretold_returns(entry: Entry, data: Transitions, steps: int) -> FloatArray:
    """X of every episode."""
    policy, facts = entry.problem.policy, entry.problem.assumptions
    assert data.behavior_probability is not None
    # What the logger gave to other actions is asked for by clipping alone.
    least = float(data.behavior_probability.min())
    low, high = facts.reward_range
    paid = (min(low, float(data.rewards.min())), max(high, float(data.rewards.max())))
    if paid[0] == paid[1]:
        paid = (paid[0], paid[0] + max(1.0, abs(paid[0])))
    if data.terminated.any():
        paid = (min(paid[0], 0.0), max(paid[1], 0.0))
    episodes = read_episodes(data, policy, None, least, facts.discount, paid, steps, False)
    found = np.empty(len(episodes))
    count = min(FOLDS, len(episodes))
    edges = [round(k * len(episodes) / count) for k in range(count + 1)]
    for begin, end in pairwise(edges):
        others = _others(episodes, begin, end)
        estimate = fit_returns(others, policy, None, episodes.ranges, facts.discount)
        here = episodes.part(begin, end)
        found[begin:end] = corrected(here, two_sides(here, policy, estimate)[0], UNCLIPPED)[0]
    return found


def _others(episodes: Episodes, begin: int, end: int) -> Transitions:
    """The rows of all other episodes."""
    kept = np.ones(len(episodes.data), dtype=bool)
    kept[episodes.first[begin] : episodes.first[end - 1] + episodes.lengths[end - 1]] = False
    return episodes.data.rows(kept)
