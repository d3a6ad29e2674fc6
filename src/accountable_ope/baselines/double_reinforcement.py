"""Double reinforcement learning with linear nuisances (Kallus and Uehara 2020, 2022): cross-fitted, efficient influence function.

On all folds but the k-th: Q = phi'theta with A theta = b, and the ratio w of the target policy's discounted visits to those of
the log, w = phi'omega with A'omega = c0 (so that sum_i w_i z_i / n = c0: minimax weight learning with a linear class). On the
k-th:

    psi_i = c0'theta + w(x_i) (r_i - z_i'theta),    value = mean psi,    se^2 = var(psi) / n.

It is right in the limit where both are estimated at some rate, and to first order errors of one are multiplied by those of the
other. Folds are of whole episodes, in order, where these are known. `bounds.cross_fitted_interval` is a relative: it adds
landmarks of a kernel to both classes, penalties that the data choose, and an error judged by episodes, so that it survives a
wrong class.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from ..problem.statements import Guarantee, premise
from ..problem.transitions import Transitions
from ..validation import IntArray
from .answer import answered
from .contestant import Contestant, Entry, Needs
from .interval import BaselineInterval
from .linear_system import LinearSystem, solved
from .lstdq import LIMIT, ORDER, unseen

FOLDS = 5


def double_reinforcement_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """mean psi +- z_{1-delta/2} se."""
    system = LinearSystem.of(entry).scaled
    psi, of_starts, known = np.empty(len(system)), 0.0, True
    folds = fold_of(entry.problem.data)
    for k in range(int(folds.max()) + 1):
        others = system.part(folds != k)
        known = known and not unseen(others)
        a = others.matrix()
        theta, omega = solved(a, others.vector()), solved(a.T, system.c0)
        here = system.part(folds == k)
        psi[folds == k] = system.c0 @ theta + (here.phi @ omega) * here.residuals(theta)
        of_starts = max(of_starts, system.start_variance(theta))
    value = float(psi.mean())
    error = math.sqrt(float(psi.var(ddof=1)) / len(psi) + of_starts)
    reach = -NormalDist().inv_cdf(0.5 * delta) * error
    return answered(
        entry.problem,
        (value - reach, value + reach) if known and math.isfinite(reach) else (math.nan, math.nan),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.ASYMPTOTIC,
        premises=(ORDER, BOTH, LIMIT),
    )


BOTH = premise("class", "Q and the ratio of visits lie in the class of the features, or nearly, chosen without these data.")


def fold_of(data: Transitions) -> IntArray:
    """Of every row its fold: contiguous parts, of whole episodes where these are known and there are as many as folds."""
    known = data.number_of_episodes
    units = data.episodes if data.episodes is not None and known is not None and known >= 2 else np.arange(len(data))
    many = int(units.max()) + 1
    edges = np.linspace(0, many, min(FOLDS, many) + 1).round().astype(np.int64)
    found = np.empty(len(data), dtype=np.int64)
    for k, (begin, end) in enumerate(pairwise(edges)):
        found[(units >= begin) & (units < end)] = k
    return found


NAME = "double reinforcement learning"
DOUBLE_REINFORCEMENT = Contestant(
    name=NAME,
    title="Double reinforcement learning, cross-fitted",
    source="Kallus and Uehara (2022)",
    guarantee=Guarantee.ASYMPTOTIC,
    needs=Needs(features=True, value_range=True),
    interval=double_reinforcement_interval,
)
