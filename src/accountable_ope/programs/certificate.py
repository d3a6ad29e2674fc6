"""A bound that can be checked again: multipliers, dual value, primal point, gap and status."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ..arguments import checked
from ..validation import FloatArray
from .constraint import Constraint, Role
from .lagrangian import counted_value, lagrangian_value
from .quadratic import Quadratic


class SolveStatus(Enum):
    """How a program ended. The bound is valid in every case."""

    OPTIMAL = "the dual bound is attained by a feasible point, up to the gap"
    BOUND_ONLY = "the dual bound is valid, but no feasible point comes near it"
    UNBOUNDED = "nothing bounds the value: the class is unconstrained in a direction that matters"
    EMPTY = "no function of the class meets all constraints, as the multipliers prove"


@dataclass(frozen=True, eq=False)
class Argument:
    """Constraints and a multiplier for each: what a bound is proved with."""

    constraints: tuple[Constraint, ...] = ()
    multipliers: FloatArray = field(default_factory=lambda: np.zeros(0))


NOTHING = Argument()


@dataclass(frozen=True, eq=False)
class LeastNormFound:
    """The least norm of a function that is consistent with the data, and what proves that none is smaller."""

    value: float
    argument: Argument = NOTHING


@dataclass(frozen=True, eq=False)
class CertificateCheck:
    """What `Certificate.check` found: the bound computed again from the program, and whether it supports what was reported."""

    valid: bool
    bound: float
    message: str


@checked
@dataclass(frozen=True, eq=False)
class Certificate:
    """Evidence that objective'theta <= bound for every theta that meets the constraints.

    For status EMPTY the multipliers (1 for the loss) prove that the least loss exceeds its limit: `bound` is that least loss.

    Attributes
    ----------
    objective : array (m,)
    constraints : tuple of Constraint
    multipliers : array
        One per constraint. Any non-negative ones prove a bound; these prove `bound`.
    bound : float
    point : array (m,) or None
        A feasible theta (None when there is none), whose value shows how tight the bound is.
    status : SolveStatus

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import FeasibleSet, Quadratic, decompose, extreme_value
    >>> loss = Quadratic(np.eye(2), np.array([1.0, 0.0]), 1.0)
    >>> feasible = FeasibleSet(decompose(loss, np.array([True, True])), limit=0.25, norm_bound=4.0)
    >>> certificate = extreme_value(np.array([1.0, 0.0]), feasible)
    >>> certificate.check().valid, abs(certificate.gap) < 1e-6
    (True, True)
    """

    objective: FloatArray
    constraints: tuple[Constraint, ...]
    multipliers: FloatArray
    bound: float
    point: FloatArray | None
    status: SolveStatus

    def __repr__(self) -> str:
        return f"Certificate({self.status.name}, bound {self.bound:.6g}, {len(self.constraints)} constraints)"

    @property
    def value(self) -> float:
        """The value at the feasible point."""
        return math.nan if self.point is None else float(self.objective @ self.point)

    @property
    def gap(self) -> float:
        """Bound minus value at the feasible point: how much the bound could still improve, at most."""
        return self.bound - self.value

    def multiplier(self, role: Role) -> float:
        """The multiplier of the constraint with this role, 0 when there is none."""
        return sum(float(m) for c, m in zip(self.constraints, self.multipliers, strict=True) if c.role is role)

    def check(self, tolerance: float = 1e-6) -> CertificateCheck:
        """Compute the bound again from the constraints and the multipliers alone, by one Cholesky factorization."""
        if not (np.isfinite(self.multipliers).all() and (self.multipliers >= 0).all()):
            return CertificateCheck(False, math.nan, "a multiplier is negative or not finite")
        if self.status is SolveStatus.UNBOUNDED:
            return CertificateCheck(self.bound == math.inf, math.inf, "no finite bound is claimed")
        if self.status is SolveStatus.EMPTY:
            return self._check_empty(tolerance)
        value, _ = lagrangian_value(Quadratic.linear(self.objective), self.constraints, self.multipliers)
        if value == -math.inf:
            return CertificateCheck(False, math.inf, "the multipliers prove no finite bound")
        bound = -value
        size = abs(self.bound) if self.point is None else abs(self.bound) + float(np.abs(self.objective) @ np.abs(self.point))
        slack = tolerance * size
        if bound > self.bound + slack:
            return CertificateCheck(False, bound, f"the multipliers prove only {bound:.9g}, not {self.bound:.9g}")
        if self.point is not None:
            for c in self.constraints:
                terms = (
                    abs(c.limit) + abs(c.quadratic.a0) + float(np.abs(self.point) @ np.abs(c.quadratic.A) @ np.abs(self.point))
                )
                if c.quadratic(self.point) > c.limit + 1e-9 * terms:
                    return CertificateCheck(False, bound, f"the feasible point breaks the {c.role.value} constraint")
            if self.value > self.bound + slack:
                return CertificateCheck(False, bound, "a feasible point lies beyond the bound")
        return CertificateCheck(True, bound, "the multipliers prove the bound")

    def _check_empty(self, tolerance: float) -> CertificateCheck:
        """The least loss over the other constraints, bounded from below, must exceed the limit of the loss."""
        # By its place: the same constraint may stand there twice.
        place = next(index for index, c in enumerate(self.constraints) if c.role is Role.LOSS)
        loss, others = self.constraints[place], (*self.constraints[:place], *self.constraints[place + 1 :])
        weights = np.delete(self.multipliers, place)
        least, _ = lagrangian_value(loss.quadratic, others, weights)
        slack = tolerance * max(abs(least), abs(self.bound))
        # Rounding may be counted in more than one way, and what is claimed lies between them.
        fewest = least if abs(least - self.bound) <= slack else counted_value(loss.quadratic, others, weights)
        valid = least > loss.limit and fewest - slack <= self.bound <= least + slack
        message = "the least loss exceeds the radius" if valid else f"the multipliers prove a least loss of only {least:.9g}"
        return CertificateCheck(valid, least, message)
