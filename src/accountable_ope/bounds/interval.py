"""The result of bounding a value: both ends, what proves them, what was assumed, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..problem.assumptions import Assumptions, ValueRanges
from ..programs.certificate import Certificate, SolveStatus
from ..programs.proofs import Tightening
from ..radii.accounting import DeltaSplit
from ..radii.registry import Guarantee, Radius
from ..statistics.statistic import KernelStatistic


class Status(Enum):
    """What the interval says; the value is the advice."""

    OK = "The data and the assumptions bound the value."
    VACUOUS = (
        "The interval is the whole range of values that the declared ranges allow: the data add nothing at this radius. "
        "More transitions, a smaller discount, a tighter value range or norm bound, or another radius would."
    )
    INCONSISTENT = (
        "No function of the class is consistent with the data at this delta, so the class does not contain Q. "
        "Use more or other features, or a larger norm bound."
    )


@dataclass(frozen=True, eq=False)
class ClassCertificates:
    """What one feature class contributes: both ends with their certificates, or the proof that it is inconsistent.

    least_loss is the smallest loss over ball and box. misfit: where the class is inconsistent, every function of it differs
    from Q somewhere by at least this much, with probability 1 - delta. offset is the value of the Q at which the class is
    anchored; missed is what the coordinates of an RKHS can hide from either end, beyond what is part of the program. tightening:
    the iteration behind a radius that follows the variance. chance_loss: sum_i e_i^2 K(x_i, x_i) / n^2, e the residuals where the
    loss is least; about the mean loss of the true Q, were it in the class (NaN: not computed).
    """

    features: str
    upper: Certificate
    lower: Certificate
    norm_bound: float | None
    least_norm: float | None
    least_loss: float
    misfit: float
    statistic: KernelStatistic
    note: str = ""
    offset: float = 0.0
    missed: float = 0.0
    tightening: Tightening | None = None
    chance_loss: float = math.nan

    @property
    def consistent(self) -> bool:
        return self.upper.status is not SolveStatus.EMPTY

    @property
    def plausibility(self) -> float:
        """In how many data sets, at most, the least loss is so large by chance, were Q in the class; NaN: not known.

        The loss of the true Q is about a sum of mu_j chi^2_1 with sum_j mu_j = chance_loss, for many rows, and the least loss is
        no larger. Of all such sums a single chi^2_1 has the heaviest upper fifth (Szekely and Bakirov, 2003), so the tail of
        least_loss / chance_loss is at most P(chi^2_1 > ratio), wherever that is at most 0.2. Asymptotic: no guarantee.
        """
        if not self.chance_loss > 0:
            return math.nan
        return math.erfc(math.sqrt(max(self.least_loss, 0.0) / (2 * self.chance_loss)))

    def check(self) -> bool:
        """Both certificates hold, and their loss constraints are those that the statistic gives."""
        if not (self.upper.check().valid and self.lower.check().valid):
            return False
        if self.tightening is not None and not self.tightening.check(self.upper, self.lower):
            return False
        return self._same_loss()

    def _same_loss(self) -> bool:
        if self.tightening is not None:
            evidence, loss = self.tightening.tight.evidence[0], self.statistic.v_loss()
            same = np.array_equal(evidence.squared.A, loss.A) and np.array_equal(evidence.squared.a, loss.a)
            return same and np.array_equal(evidence.variance.A, self.statistic.variance().A)
        loss = self.upper.constraints[0].quadratic
        m = self.statistic.dimension  # an unseen part of an RKHS is one more variable, after those of the statistic
        return any(
            np.array_equal(loss.A[:m, :m], q.A) and np.array_equal(loss.a[:m], q.a) and loss.a0 == q.a0
            for q in (self.statistic.v_loss(), self.statistic.u_loss())
        )


@dataclass(frozen=True, eq=False)
class ValueInterval:
    """lower <= value of the target policy <= upper with probability 1 - delta, if the assumptions hold.

    unclipped holds the ends before they were cut to the range of values that the assumptions allow.
    """

    lower: float
    upper: float
    unclipped: tuple[float, float]
    status: Status
    radius: Radius
    start_error: float
    delta: DeltaSplit
    assumptions: Assumptions
    ranges: ValueRanges
    certificates: tuple[ClassCertificates, ...]
    count: int
    kernel: str
    terminates: bool
    premises: tuple[str, ...]
    estimand: str = "Value of the target policy"

    @property
    def guarantee(self) -> Guarantee:
        return self.radius.guarantee

    @property
    def normalized(self) -> tuple[float, float]:
        """(1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself."""
        scale = normalizer(self.assumptions.discount)
        return (scale * self.lower, scale * self.upper)

    @property
    def clipped(self) -> tuple[bool, bool]:
        """Which ends are those of the declared ranges rather than of the data."""
        return (self.unclipped[0] < self.ranges.value[0], self.unclipped[1] > self.ranges.value[1])

    def check(self) -> bool:
        """Every certificate proves its bound again, and the reported ends follow from them."""
        if not all(part.check() for part in self.certificates):
            return False
        return np.array_equal(self.unclipped, hull(self.certificates, self.start_error), equal_nan=True)

    def assumed(self) -> tuple[str, ...]:
        """In words, everything that must be true for the guarantee."""
        return self.premises

    def doubts(self) -> tuple[str, ...]:
        """In words, which classes probably do not contain Q, though the data do not refute them at this radius and size."""
        if self.assumptions.misfit > 0:
            return ()
        return tuple(
            f"Q is probably not in the class of {part.features}: chance alone gives a least loss as large as "
            f"{part.least_loss:.3g} in fewer than {100 * part.plausibility:.2g}% of data sets (for many rows). The interval "
            "holds only if Q is in the class: use more or other features, or declare a misfit."
            for part in self.certificates
            if part.consistent and part.plausibility <= min(self.delta.total, 0.2)
        )


def hull(parts: Sequence[ClassCertificates], start_error: float) -> tuple[float, float]:
    """The lowest lower and the highest upper end over the consistent classes; NaN when there is none."""
    consistent = [part for part in parts if part.consistent]
    lower = min((part.offset - part.lower.bound - part.missed for part in consistent), default=math.nan)
    upper = max((part.offset + part.upper.bound + part.missed for part in consistent), default=math.nan)
    return (lower - start_error, upper + start_error)


def clip(unclipped: tuple[float, float], allowed: tuple[float, float]) -> tuple[float, float, Status]:
    """(lower, upper, status): the ends cut to what the assumptions allow; vacuous when both ends were."""
    low, high = allowed
    if math.isnan(unclipped[0]):
        return math.nan, math.nan, Status.INCONSISTENT
    lower, upper = min(max(unclipped[0], low), high), max(min(unclipped[1], high), low)
    return lower, upper, Status.VACUOUS if unclipped[0] <= low and unclipped[1] >= high else Status.OK


def normalizer(discount: float) -> float:
    """1 - discount, which puts values on the scale of one reward; 1 at discount 1."""
    return 1.0 if discount == 1 else 1 - discount
