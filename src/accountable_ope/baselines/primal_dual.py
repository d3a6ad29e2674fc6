"""The kernel primal and dual bounds of Feng, Tang, Zhang and Liu (2021).

The kernel Bellman loss of Q is a norm, that of S(Q) = (1/n) sum_i eps_i(Q) K(x_i, .) with eps_i(Q) = r_i + discount V(s'_i) -
Q(x_i). At the true Q it is a martingale in a Hilbert space, and by Pinelis's inequality, with probability at least 1 - delta,

    ||S(Q)||_K <= e = sqrt(2 c log(2 / delta) / n),   c = sup eps(Q)^2 sup_x K(x, x).

So the value is at most the primal max { c0'theta : ||S(theta)||_K <= e, ||theta|| <= B }, and for every omega of the RKHS at
most

    (1/n) sum_i omega(x_i) r_i + I(omega) + e ||omega||_K,
    I(omega) = sup_{||theta|| <= B} (c0 - (1/n) sum_i omega(x_i) z_i)'theta,

the dual, which at its least is the primal. What is returned is the dual at omega = -2 mu S(theta), from the multipliers mu of
the loss and kappa mu of the norm: any of them give a valid bound, so an unfinished search widens the interval. Both ends hold
on one event.

Of c: at the true Q, eps is at most w, the length of the range of r + discount V(s') given (s, a), which the declared ranges
give. Our radius `azuma` stands on the same loss and the same ball, and has w / 2 where this one has w; `certified` looks at the
variance too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..kernels.products import kernel_product
from ..problem.statements import Guarantee, premise
from ..validation import FloatArray
from .answer import answered
from .contestant import Contestant, Entry, Needs
from .episodes import Range
from .interval import BaselineInterval
from .linear_system import LinearSystem
from .lstdq import CLASS, ORDER

START_SHARE = 0.1
"""Of delta, for start states that are a sample."""

GRID = np.concatenate([[0.0], np.logspace(-12, 12, 145)])
"""kappa that are tried, in units of the ratio of both quadratics."""


@dataclass(frozen=True, eq=False)
class KernelLoss:
    """q(theta) = theta' zz theta - 2 zv'theta + vv = ||S(theta)||^2."""

    zz: FloatArray
    zv: FloatArray
    vv: float

    @classmethod
    def of(cls, entry: Entry, system: LinearSystem) -> KernelLoss:
        assert entry.kernel is not None
        columns = np.column_stack([system.z, system.rewards])
        smoothed = kernel_product(entry.kernel, entry.problem.experience.points, columns)
        gram = columns.T @ smoothed / len(system) ** 2
        gram = 0.5 * (gram + gram.T)
        return cls(gram[:-1, :-1], gram[:-1, -1], float(gram[-1, -1]))

    def __call__(self, theta: FloatArray) -> float:
        return max(float(theta @ self.zz @ theta - 2 * self.zv @ theta) + self.vv, 0.0)


def primal_dual_interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """Both dual bounds, and what sampled start states cost by Hoeffding's inequality."""
    problem, system = entry.problem, LinearSystem.of(entry)
    share = 0.0 if system.starts_exact else START_SHARE
    assert entry.kernel is not None and entry.features is not None and entry.norm_bound is not None
    c = problem.ranges.residual_width**2 * entry.kernel.supremum
    reach = math.sqrt(2 * c * math.log(2 / ((1 - share) * delta)) / len(system))
    norm = np.ones(system.phi.shape[1])
    if entry.features.intercept:
        norm[-1] = 0.0
    loss = KernelLoss.of(entry, system)
    ends = [dual_bound(loss, sign * system.c0, norm, reach, entry.norm_bound) for sign in (-1.0, 1.0)]
    least, most = problem.ranges.value
    of_starts = 0.0 if share == 0 else (most - least) * math.sqrt(math.log(2 / (share * delta)) / (2 * len(system.starts)))
    # Where no function of the class has so small a loss, both ends cross.
    found: Range = (most, least) if -math.inf in ends else (-ends[0] - of_starts, ends[1] + of_starts)
    return answered(
        problem,
        found,
        method=NAME,
        delta=delta,
        guarantee=Guarantee.FINITE_SAMPLE,
        premises=(
            ORDER,
            CLASS,
            premise("norm", f"||Q|| <= {entry.norm_bound:g}, as declared or as a table's range of values implies."),
            premise("fixed-size", "The number of rows was not chosen by looking at them."),
        ),
    )


def dual_bound(loss: KernelLoss, c0: FloatArray, norm: FloatArray, reach: float, bound: float) -> float:
    """The least dual value that was found; infinite where there is none, minus infinite where no theta is feasible.

    For kappa and H = zz + kappa diag(norm) the Lagrangian is c0'H^-1 c0 / (4 mu) + c0'H^-1 zv + mu d, with
    d = e^2 + kappa B^2 - (vv - zv'H^-1 zv), least at mu = sqrt(c0'H^-1 c0 / (4 d)), and d < 0 proves that nothing is feasible.
    """
    unit = max(float(np.trace(loss.zz)), 1e-300) / len(c0)
    best = math.inf
    for kappa in unit * GRID:
        h = loss.zz + kappa * np.diag(norm)
        try:
            np.linalg.cholesky(h + 1e-15 * unit * np.eye(len(c0)))
            of_value, of_data = np.linalg.solve(h, np.column_stack([c0, loss.zv])).T
        except np.linalg.LinAlgError:
            continue
        slack = reach**2 + kappa * bound**2 - (loss.vv - float(loss.zv @ of_data))
        if slack < -1e-9 * (loss.vv + reach**2):
            return -math.inf
        mu = math.sqrt(max(float(c0 @ of_value), 0.0) / (4 * max(slack, 1e-300)))
        if mu > 0 and math.isfinite(mu):
            best = min(best, dual_value(loss, c0, norm, reach, bound, mu, of_data + of_value / (2 * mu)))
    return best


def dual_value(
    loss: KernelLoss, c0: FloatArray, norm: FloatArray, reach: float, bound: float, mu: float, theta: FloatArray
) -> float:
    """(1/n) sum omega r + I(omega) + e ||omega|| at omega = -2 mu S(theta); infinite where a free constant is not balanced."""
    paid = -2 * mu * (loss.vv - float(loss.zv @ theta))
    left = c0 + 2 * mu * (loss.zv - loss.zz @ theta)
    if (np.abs(left[norm == 0]) > 1e-7 * (1 + np.abs(c0).max())).any():
        return math.inf
    found = paid + bound * float(np.linalg.norm(left[norm > 0])) + 2 * mu * reach * math.sqrt(loss(theta))
    rounding = 1e-12 * 2 * mu * (loss.vv + float(np.abs(loss.zv) @ np.abs(theta)))
    return found + rounding if math.isfinite(found) else math.inf


NAME = "kernel primal-dual"
PRIMAL_DUAL = Contestant(
    name=NAME,
    title="Kernel primal and dual bounds",
    source="Feng, Tang, Zhang and Liu (2021)",
    guarantee=Guarantee.FINITE_SAMPLE,
    needs=Needs(features=True, kernel=True, norm_bound=True, value_range=True, exact_policy=True),
    interval=primal_dual_interval,
)
