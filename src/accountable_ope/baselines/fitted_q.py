"""Linear fitted Q evaluation with a bootstrap over episodes (Hao et al. 2021).

theta_{k+1} = G^{-1} sum_i w_i phi_i (r_i + discount next_i'theta_k), G = sum_i w_i phi_i phi_i' with a small ridge, until
discount^k is small. v of the log; v* of logs of as many episodes drawn with replacement, each fitted anew; the interval is

    [v - q_{1-delta/2}(v* - v), v - q_{delta/2}(v* - v)],

in the limit of many episodes, where the class holds Q and all that the iteration meets. Sampled start states are drawn again
too.
"""

from __future__ import annotations

import math

import numpy as np

from ..problem.statements import Guarantee, premise
from ..validation import FloatArray
from .answer import answered, percentile_ends
from .contestant import Contestant, Entry, Needs
from .episodes import Range
from .interval import BaselineInterval
from .linear_system import LinearSystem, solved
from .lstdq import CLASS, LIMIT, unseen

REFITS = 200
LEAST_LEFT = 1e-8
"""The iteration stops where discount^k is so small."""

EPISODES = premise("episodes", "Episodes are independent and of the same process.")


def fitted_q_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """The interval of a bootstrap over episodes."""
    system, episodes = LinearSystem.of(entry).scaled, entry.problem.data.episodes
    assert episodes is not None
    value = float(system.c0 @ fitted_q(system, None))
    many = int(episodes.max()) + 1
    refits = np.empty(REFITS)
    for k in range(REFITS):
        counts = rng.multinomial(many, np.full(many, 1 / many)).astype(np.float64)
        refits[k] = system.resampled_start(rng) @ fitted_q(system, counts[episodes])
    return answered(
        entry.problem,
        (math.nan, math.nan) if unseen(system) else reflected_ends(value, refits, delta),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.ASYMPTOTIC,
        premises=(EPISODES, CLASS, LIMIT),
    )


def fitted_q(system: LinearSystem, weights: FloatArray | None) -> FloatArray:
    """theta after so many regressions; not finite where they diverge."""
    weighted = system.phi if weights is None else system.phi * weights[:, None]
    gram = weighted.T @ system.phi / len(system) + system.ridge
    step = np.linalg.solve(gram, np.column_stack([weighted.T @ system.rewards, weighted.T @ system.after]) / len(system))
    paid, onward = step[:, 0], system.discount * step[:, 1:]
    if system.discount == 1:  # episodes that end: no power of the discount says when to stop
        return solved(np.eye(len(paid)) - onward, np.asarray(paid))
    theta, power = np.asarray(paid), onward
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(doublings(system.discount)):  # theta_{2k} = theta_k + onward^k theta_k
            theta, power = theta + power @ theta, power @ power
    return theta


def doublings(discount: float) -> int:
    """How often k is doubled, from 1 on, until discount^k is small."""
    return 0 if discount == 0 else max(0, math.ceil(math.log2(math.log(LEAST_LEFT) / math.log(discount))))


def reflected_ends(value: float, refits: FloatArray, delta: float) -> Range:
    """v - quantiles of v* - v; unknown where a fit diverged."""
    low, high = percentile_ends(refits - value, delta)
    return (value - high, value - low)


NAME = "linear fqe bootstrap"
LINEAR_FQE = Contestant(
    name=NAME,
    title="Linear fitted Q evaluation, with a bootstrap over episodes",
    source="Hao, Ji, Duan, Lu, Szepesvari and Wang (2021)",
    guarantee=Guarantee.ASYMPTOTIC,
    needs=Needs(episodes=True, features=True, value_range=True),
    interval=fitted_q_interval,
)
