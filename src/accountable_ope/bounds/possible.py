"""What an estimate of Q cannot be under what was declared, and what of it is rounding alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..classes.function_class import Columns, Span
from ..problem.assumptions import Range, ValueRanges
from ..problem.statements import Statement, doubt
from ..statistics.estimates import QColumns
from ..validation import FloatArray
from .evaluation import Evaluation

DIGITS = 1e-7
"""Estimates are known to about seven digits (single precision): what is smaller than this share of them is no evidence."""


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


def rounding_loss(evaluation: Evaluation) -> float:
    """(DIGITS (rms r + rms Q + discount rms V') kappa)^2: the loss that rounding of the estimate alone may make."""
    anchor, experience = _anchor(evaluation), evaluation.problem.experience
    after = np.where(experience.live, anchor.at_next, 0.0)
    size = _rms(experience.data.rewards) + _rms(anchor.at_data) + experience.discount * _rms(after)
    return (DIGITS * size * evaluation.statistics[0].kappa) ** 2


def _anchor(evaluation: Evaluation) -> QColumns:
    assert evaluation.anchor is not None
    return evaluation.anchor


def _columns(evaluation: Evaluation) -> Columns:
    """The features at the rows; those of an RKHS are the coordinates that were chosen."""
    phi, given = evaluation.systems[0].features, evaluation.classes[0]
    return (given if phi is None else Span(phi, given.intercept)).columns(evaluation.problem.experience)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
