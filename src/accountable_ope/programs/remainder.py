"""A feasible set of coordinates, widened by what the coordinates of an RKHS miss: one more variable, its norm s.

For Q = Q_P + g with ||g|| = s orthogonal to the coordinates, ||theta||^2 + s^2 <= R^2,
    sqrt(loss(Q_P)) <= sqrt(loss(Q)) + s T,   |value(Q) - value(Q_P)| <= s tau_0,   rms of g over the box points <= s tau_box,
and (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2 for every z > 0 keeps every constraint one quadratic in (theta, s).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..validation import FloatArray
from .ellipsoid_ball import decompose
from .extreme import FeasibleSet
from .lagrangian import Constraint
from .quadratic import Quadratic

NEGLIGIBLE = 1e-4
"""Below this share of the square root of the radius, what is missed is added as a constant, which keeps the program convex."""


class Missing(Protocol):
    """What is missed of the objective and, in root mean square, at the box points, per unit of norm."""

    @property
    def objective(self) -> float: ...

    @property
    def box(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Widened:
    """The widened set, the objectives of both ends in its variables, and a constant to add to both ends."""

    feasible: FeasibleSet
    upward: FloatArray
    downward: FloatArray
    missed: float


def with_remainder(feasible: FeasibleSet, missing: Missing, missed_loss: float, objective: FloatArray) -> Widened:
    """`missed_loss` is T = sqrt(tau'K tau) / n, for a kernel without negative entries."""
    R = feasible.norm_bound
    if R is None:
        return Widened(feasible, objective, -objective, math.inf)
    if R * missed_loss <= NEGLIGIBLE * math.sqrt(feasible.limit):
        limit = (math.sqrt(feasible.limit) + R * missed_loss) ** 2
        box = feasible.box
        if box is not None:
            box = Constraint(box.role, box.quadratic, (math.sqrt(box.limit) + R * missing.box) ** 2)
        return Widened(FeasibleSet(feasible.decomposition, limit, R, box), objective, -objective, R * missing.objective)
    loss, limit = one_more(feasible.decomposition.quadratic, feasible.limit, missed_loss, R)
    box = feasible.box
    if box is not None:
        quadratic, box_limit = one_more(box.quadratic, box.limit, missing.box, R)
        box = Constraint(box.role, quadratic, box_limit)
    decomposition = decompose(loss, np.append(feasible.decomposition.mask, True))
    wider = FeasibleSet(decomposition, limit, R, box)
    return Widened(wider, np.append(objective, missing.objective), np.append(-objective, missing.objective), 0.0)


def one_more(q: Quadratic, limit: float, missed: float, R: float) -> tuple[Quadratic, float]:
    """q(theta) - (1 + 1/z) missed^2 s^2 <= (1 + z) limit; z is best where the whole norm is hidden (s = R)."""
    z = max(R * missed / math.sqrt(limit), 1e-12)
    m = len(q.a)
    A = np.zeros((m + 1, m + 1))
    A[:m, :m] = q.A
    A[m, m] = -(1 + 1 / z) * missed**2
    return Quadratic(A, np.append(q.a, 0.0), q.a0), (1 + z) * limit
