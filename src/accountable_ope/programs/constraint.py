"""Constraints q(theta) <= limit, what they say, and from what they can be derived again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray
from .quadratic import Quadratic


class Role(Enum):
    """What a constraint says."""

    LOSS = "loss"
    BALL = "ball"
    REST = "rest"
    ENCLOSING = "enclosing"
    BOX = "box"
    VARIANCE = "variance"


@dataclass(frozen=True)
class LossOrigin:
    """Which joint constraint a loss is: of which evidence, at which rate q, from what was known before which round."""

    evidence: int = 0
    rate: float = 0.0
    round: int = 0


@dataclass(frozen=True, eq=False)
class RowsOrigin:
    """Which points a box is averaged over: low_i <= f_i'theta <= high_i, with weights.

    Of residuals (then targets are not None) there are targets_i - f_i'theta, known to be small before the round of this number;
    ranges are those of `StepRows`. missed: what an unseen part of norm one can add there, for which the limits have room.
    """

    features: FloatArray
    low: FloatArray
    high: FloatArray
    weights: FloatArray
    round: int = 0
    targets: FloatArray | None = None
    missed: FloatArray | None = None
    ranges: FloatArray | None = None


@checked
@dataclass(frozen=True, eq=False)
class Constraint:
    """q(theta) <= limit.

    Attributes
    ----------
    role : Role
        What it says: loss, ball, box or variance.
    quadratic : Quadratic
        q.
    limit : float
    origin : LossOrigin, RowsOrigin or None
        From what it can be derived again.
    """

    role: Role
    quadratic: Quadratic
    limit: float
    origin: LossOrigin | RowsOrigin | None = None


@checked
def ball(penalized: BoolArray, radius: float, role: Role = Role.BALL) -> Constraint:
    """||theta||^2 <= radius^2 over the penalized coordinates.

    Parameters
    ----------
    penalized : array (m,) of bool
    radius : float
    role : Role
        What it says: BALL, or REST for the part of Q that features miss.

    Returns
    -------
    Constraint

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import ball
    >>> around = ball(np.array([True, False]), 2.0)
    >>> around.limit, around.quadratic(np.array([1.0, 7.0]))
    (4.0, 1.0)
    """
    if abs(radius) > math.sqrt(np.finfo(np.float64).max):
        raise InvalidInput(f"`radius` must have a square that does not overflow. Got {radius!r}.")
    return Constraint(role, Quadratic(np.diag(penalized.astype(float)), np.zeros(len(penalized)), 0.0), radius**2)


@dataclass(frozen=True, eq=False)
class ActiveRows:
    """(f_i'theta - middle_i)^2 <= half_i^2 for every row f_i: quadratics of rank one, each with a multiplier of its own."""

    features: FloatArray
    middle: FloatArray
    half: FloatArray

    def __len__(self) -> int:
        return len(self.middle)
