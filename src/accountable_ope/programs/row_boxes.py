"""Boxes at every row: Q lies in its range at every point, and the residual of every row in its own.

Neither spends any probability: both are true of the true Q whatever the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..threads import one_below_the_other
from ..validation import FloatArray, IntArray
from .constraint import Constraint, RowsOrigin
from .pointwise_rows import PointwiseRows
from .step_rows import StepRows

LEAST_HALF = 1e-4
"""A residual that must be 0 is held to this share of its target and of the range of all, which keeps the program well scaled."""


@dataclass(frozen=True, eq=False)
class RowBoxes:
    """low_i <= f_i'theta <= high_i at points, and |eps_i(theta)| <= b_i at the rows of the data.

    values:    None where nothing is known of values at points.
    residuals: None where the radius has no range.
    variables: how many there are, one more than coefficients where the norm of what is unseen is one.
    """

    values: PointwiseRows | None
    residuals: StepRows | None
    variables: int

    @cached_property
    def _features(self) -> FloatArray:
        parts = [] if self.values is None else [self.values.features]
        if self.residuals is not None:
            parts.append(self.residuals.residuals)
        return one_below_the_other(parts, self.variables)

    @cached_property
    def points(self) -> int:
        """How many rows are about values."""
        return 0 if self.values is None else len(self.values.features)

    def known(self, residual_bound: float, norm_bound: float, number: int) -> KnownBoxes:
        """The boxes for residuals of the true Q within this bound, known before the round of this number."""
        low = [] if self.values is None else [self.values.low]
        high = [] if self.values is None else [self.values.high]
        if self.residuals is not None:
            rows = self.residuals
            half = rows.bounds(residual_bound) + rows.hidden(norm_bound)
            half = np.maximum(half, LEAST_HALF * (np.abs(rows.target) + residual_bound))
            low.append(rows.target - half)
            high.append(rows.target + half)
        empty = np.zeros(0)
        return KnownBoxes(
            PointwiseRows.known(self._features, np.concatenate([empty, *low]), np.concatenate([empty, *high])), self, number
        )


@dataclass(frozen=True, eq=False)
class KnownBoxes:
    """The boxes of one round, as rows."""

    rows: PointwiseRows
    origin: RowBoxes
    number: int

    def averaged(self, index: IntArray, weights: FloatArray) -> tuple[tuple[Constraint, ...], FloatArray]:
        """Boxes averaged over rows with these multipliers, one of values and one of residuals, and the multipliers of both."""
        found, totals = [], []
        for residual in (False, True):
            chosen = ((index >= self.origin.points) == residual) & (weights > 0)
            total = float(weights[chosen].sum())
            if total == 0:
                continue
            box = self.rows.averaged(index[chosen], weights[chosen] / total)
            origin_of_rows = box.origin
            assert isinstance(origin_of_rows, RowsOrigin)
            if residual:
                rows, steps = index[chosen] - self.origin.points, self.origin.residuals
                assert steps is not None
                origin = replace(
                    origin_of_rows,
                    round=self.number,
                    targets=steps.target[rows],
                    missed=None if steps.missed is None else steps.missed[rows],
                    ranges=None if steps.ranges is None else steps.ranges[rows],
                )
                box = replace(box, origin=origin)
            elif self.origin.values is not None and self.origin.values.missed is not None:
                seen = replace(origin_of_rows, missed=self.origin.values.missed[index[chosen]])
                box = replace(box, origin=seen)
            found.append(box)
            totals.append(total)
        return tuple(found), np.array(totals)
