"""LSTDQ with the sandwich: value +- z se, in the limit of many rows.

thetahat = A^{-1} b, u = A^{-T} c0, and with the residuals e_i the value's error is, to first order, (1/n) sum_i u'phi_i eps_i,
a sum of martingale differences where the class holds Q: se^2 = (1/n^2) sum_i (u'phi_i)^2 e_i^2 (Luckett et al. 2020; Shi et al.
2022, SAVE). Sampled start states add the variance of their mean. `bounds.sandwich_interval` has another instrument: the
residuals smoothed by a kernel in the place of phi. With the tabular kernel and one-hot features, every pair logged, both have
the same estimate.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from ..problem.statements import Guarantee, premise
from .answer import answered
from .contestant import Contestant, Entry, Needs
from .interval import BaselineInterval
from .linear_system import LinearSystem, solved

CLASS = premise("class", "Q lies in the class of the features, chosen without looking at these data.")
LIMIT = premise("limit", "Asymptotic: rows are many and cover what the target policy does. Nothing is guaranteed.")
ORDER = premise(
    "order",
    "State and action hold all that matters for what comes next: given the past, (r, s') follows the same law at (s, a), whoever "
    "chose a.",
)


def lstdq_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """c0'thetahat +- z_{1-delta/2} se."""
    system = LinearSystem.of(entry).scaled
    a = system.matrix()
    theta, u = solved(a, system.vector()), solved(a.T, system.c0)
    influences = (system.phi @ u) * system.residuals(theta)
    error = math.sqrt(float(influences @ influences) / len(system) ** 2 + system.start_variance(theta))
    value, reach = float(system.c0 @ theta), -NormalDist().inv_cdf(0.5 * delta) * error
    # Where a feature of the start is seen in no row, the ridge alone decides: nothing is known.
    known = math.isfinite(reach) and not unseen(system)
    return answered(
        entry.problem,
        (value - reach, value + reach) if known else (math.nan, math.nan),
        method=NAME,
        delta=delta,
        guarantee=Guarantee.ASYMPTOTIC,
        premises=(ORDER, CLASS, LIMIT),
    )


def unseen(system: LinearSystem) -> bool:
    """Whether the value depends on a coefficient that the rows say nothing of: c0 is not among what A' gives."""
    plain = system.phi.T @ system.z / len(system)
    weights, *_ = np.linalg.lstsq(plain.T, system.c0, rcond=1e-10)
    left = plain.T @ weights - system.c0
    return bool(np.linalg.norm(left) > 1e-6 * np.linalg.norm(system.c0))


NAME = "lstdq sandwich"
LSTDQ = Contestant(
    name=NAME,
    title="LSTD for Q, with the sandwich",
    source="Shi, Zhang, Lu and Song (2022)",
    guarantee=Guarantee.ASYMPTOTIC,
    needs=Needs(features=True, value_range=True),
    interval=lstdq_interval,
)
