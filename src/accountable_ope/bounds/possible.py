"""What an estimate of Q cannot be under what was declared, and what of it is rounding alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..classes.function_class import Columns, Span
from ..problem.assumptions import Range, ValueRanges
from ..problem.statements import Statement, doubt, remark
from ..statistics.estimates import QColumns
from ..validation import FloatArray
from .evaluation import Evaluation

DIGITS = 1e-7
"""Estimates are known to about seven digits (single precision): what is smaller than this share of them is no evidence."""
SAID = 0.01
"""From this share of a radius on, what rounding was allowed is said."""


@dataclass(frozen=True)
class Reached:
    """The least and the largest value of an estimate at logged, next and start states."""

    least: float
    largest: float

    def outside(self, allowed: Range, misfit: float) -> bool:
        """Whether it leaves the values that are allowed, by more than the declared misfit and by more than rounding."""
        low, high = allowed
        slack = misfit + DIGITS * max(abs(low), abs(high))
        return self.least < low - slack or self.largest > high + slack

    def statement(self, what: str, allowed: Range) -> Statement:
        """In words, where it lies and where Q does."""
        low, high = allowed
        return doubt(
            "impossible-values",
            f"{what} takes values from {self.least:.4g} to {self.largest:.4g} at logged, next and start states; under what is "
            f"assumed Q lies in [{low:g}, {high:g}].",
            ("least", self.least),
            ("largest", self.largest),
        )


def possible_residual(residual: float, ranges: ValueRanges) -> bool:
    """Given (s, a), the residual of the true Q has mean 0 and lies in an interval of the declared width."""
    return residual <= ranges.residual_width + 1e-9 * ranges.residual_bound


def reached(evaluation: Evaluation, theta: FloatArray | None = None) -> Reached:
    """The values of the Q at which an evaluation is anchored, plus theta'phi where theta is given."""
    anchor, live = _anchor(evaluation), evaluation.problem.experience.live
    groups = [anchor.at_data, anchor.at_next[live], anchor.at_start]
    if theta is not None and theta.any():
        columns = _columns(evaluation)
        changes = (columns.here, columns.after[live], columns.start)
        m = columns.here.shape[1]
        constant = float(theta[m:].sum())
        groups = [values + rows @ theta[:m] + constant for values, rows in zip(groups, changes, strict=True)]
    values = np.concatenate(groups)
    return Reached(float(values.min()), float(values.max()))


@dataclass(frozen=True)
class Rounding:
    """What rounding of an estimate alone may make, were it known to seven digits.

    Attributes
    ----------
    residual : float
        DIGITS (rms r + rms Q + discount rms V'): of every residual.
    loss : float
        (residual kappa)^2, which is added to the radius.
    """

    residual: float = 0.0
    loss: float = 0.0

    def statements(self, radius: float, estimate: float) -> tuple[Statement, ...]:
        """In words, where it is a part of what a loss was compared with that counts; radius: with it."""
        if not self.loss > SAID * radius:
            return ()
        text = (
            f"The estimate is taken as known to seven digits (single precision): {self.loss:.3g} of the {radius:.3g} that its "
            f"loss may be, {100 * self.loss / radius:.2g}%, is allowed for rounding, so that residuals of up to "
            f"{self.residual:.2g} count as none. Its value is {estimate:.4g}: to have smaller errors found, subtract a constant "
            "from rewards and estimate."
        )
        return (remark("rounding", text, ("loss", self.loss), ("residual", self.residual), ("radius", radius)),)


NO_ROUNDING = Rounding()


def rounding_of(evaluation: Evaluation) -> Rounding:
    """What of the residuals of the Q at which an evaluation is anchored, and of their loss, may be rounding alone."""
    anchor, experience = _anchor(evaluation), evaluation.problem.experience
    after = np.where(experience.live, anchor.at_next, 0.0)
    size = _rms(experience.data.rewards) + _rms(anchor.at_data) + experience.discount * _rms(after)
    return rounding_at(size, evaluation.statistics[0].kappa)


def rounding_at(size: float, kappa: float) -> Rounding:
    """size: rms r + rms Q + discount rms V'."""
    return Rounding(DIGITS * size, (DIGITS * size * kappa) ** 2)


def _anchor(evaluation: Evaluation) -> QColumns:
    assert evaluation.anchor is not None
    return evaluation.anchor


def _columns(evaluation: Evaluation) -> Columns:
    """The features at the rows; those of an RKHS are the coordinates that were chosen."""
    phi, given = evaluation.systems[0].features, evaluation.classes[0]
    return (given if phi is None else Span(phi, given.intercept)).columns(evaluation.problem.experience)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
