"""The result of bounding a value: both ends, what proves them, what was assumed, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .assumptions import Assumptions, RelativeNorm, ValueRanges
from .concentration.accounting import DeltaSplit
from .programs.certificate import Certificate, SolveStatus
from .radius import Guarantee, Radius
from .statistic import KernelStatistic


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
    anchored; missed is what the coordinates of an RKHS can hide from either end, beyond what is part of the program.
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

    @property
    def consistent(self) -> bool:
        return self.upper.status is not SolveStatus.EMPTY

    def check(self) -> bool:
        """Both certificates hold, and their loss constraint is the one that the statistic gives."""
        return self.upper.check().valid and self.lower.check().valid and self._same_loss()

    def _same_loss(self) -> bool:
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

    @property
    def guarantee(self) -> Guarantee:
        return self.radius.guarantee

    @property
    def normalized(self) -> tuple[float, float]:
        """(1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself."""
        scale = _normaliser(self.assumptions.discount)
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
        return _assumed(self)


def hull(parts: tuple[ClassCertificates, ...], start_error: float) -> tuple[float, float]:
    """The lowest lower and the highest upper end over the consistent classes; NaN when there is none."""
    consistent = [part for part in parts if part.consistent]
    lower = min((part.offset - part.lower.bound - part.missed for part in consistent), default=math.nan)
    upper = max((part.offset + part.upper.bound + part.missed for part in consistent), default=math.nan)
    return (lower - start_error, upper + start_error)


def _normaliser(discount: float) -> float:
    return 1.0 if discount == 1 else 1 - discount


def _assumed(interval: ValueInterval) -> tuple[str, ...]:
    facts = interval.assumptions
    low, high = interval.ranges.value
    lines = [
        "Rows are in the order of generation; given the past, (r, s') follows the same law at (s, a), whoever chose a.",
        f"Every reward lies in [{facts.reward_range[0]:g}, {facts.reward_range[1]:g}]; "
        + ("it may be random given (s, a)." if facts.reward_noise else "it is a function of (s, a)."),
        f"Q and V of the target policy lie in [{low:g}, {high:g}]"
        + (", as declared." if facts.value_range is not None else ", which follows from the rewards and the discount."),
    ]
    if facts.terminal_reward:
        lines.append("Only the transition that ends an episode pays.")
    if facts.horizon is not None:
        lines.append(f"Every episode ends within {facts.horizon} steps.")
    lines.append(
        "Terminal states are worth 0."
        if interval.terminates
        else "No state is terminal" + (" (no row is terminated)." if facts.terminates is None else ", as declared.")
    )
    classes = " or ".join(part.features for part in interval.certificates)
    lines.append(f"Q lies in the class of {classes}, chosen without looking at these data.")
    for part in interval.certificates:
        if part.norm_bound is None:
            lines.append("No bound on the norm of Q." + (f" {part.note}" if part.note else ""))
        elif isinstance(facts.norm_bound, RelativeNorm):
            lines.append(
                f"||Q|| <= {part.norm_bound:.4g}, {facts.norm_bound.multiple:g} times the least norm consistent with the data."
            )
        else:
            lines.append(f"||Q|| <= {part.norm_bound:.4g}, as declared (an unpenalised constant is left out).")
        if isinstance(facts.norm_bound, float) or facts.norm_bound is None:
            break
    lines.append(f"The kernel {interval.kernel} was chosen without looking at these data.")
    if interval.start_error:
        lines.append("Start states (or actions there) are an i.i.d. sample of their distribution.")
    return tuple(lines)
