"""Boxes at every one of many points, low_i <= f_i'theta <= high_i, each a quadratic of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..threads import fill_by_blocks
from ..validation import FloatArray, IntArray, refuse_non_finite
from .constraint import ActiveRows, Constraint, Role, RowsOrigin
from .lagrangian import ROUNDING
from .quadratic import Quadratic

MANY = 4096
"""Up to so many rows are looked at at once, few enough to stay in the cache of a processor."""

LEADING = 4
"""Eigenvalues of a covariance that are looked at one by one."""


@checked
@dataclass(frozen=True, eq=False)
class PointwiseRows:
    """low_i <= f_i'theta <= high_i for every row f_i.

    Parameters
    ----------
    features : array (N, m)
        The rows f_i.
    low, high : array (N,)
    missed : array (N,) or None
        Where coordinates miss a part of what is bounded, how much of it per unit of its norm: low and high have room for it.

    Raises
    ------
    InvalidInput
        Where shapes do not fit, a number is not finite, or `low` is not below `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import PointwiseRows
    >>> rows = PointwiseRows.within(np.array([[1.0, 0.0], [0.0, 1.0]]), low=0.0, high=2.0)
    >>> rows.violations(np.array([3.0, 1.0])).tolist()
    [0.5, -0.5, -1.5, -0.5]
    """

    features: FloatArray
    low: FloatArray
    high: FloatArray
    missed: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not self.low.shape == self.high.shape == (len(self.features),):
            raise InvalidInput(
                "`features` must be (N, m), `low` and `high` (N,). "
                f"Got shapes {self.features.shape}, {self.low.shape} and {self.high.shape}."
            )
        for name in ("features", "low", "high"):
            refuse_non_finite(getattr(self, name), name)
        wrong = ~(self.low < self.high)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidInput(f"`low` must be below `high` in every row. Got {self.low[row]} and {self.high[row]} in row {row}.")

    @classmethod
    def known(cls, features: FloatArray, low: FloatArray, high: FloatArray) -> PointwiseRows:
        """Rows that were checked before: many, and looked at again and again."""
        rows = object.__new__(cls)
        for name, value in (("features", features), ("low", low), ("high", high), ("missed", None)):
            object.__setattr__(rows, name, value)
        return rows

    @classmethod
    def within(cls, features: FloatArray, low: float, high: float, offsets: FloatArray | None = None) -> PointwiseRows:
        """low <= offset_i + f_i'theta <= high; offsets are the values of a Q at which the class is anchored."""
        shift = np.zeros(len(features)) if offsets is None else offsets
        return cls(features, low - shift, high - shift)

    def with_room(self, missed: FloatArray, norm: float) -> PointwiseRows:
        """Limits wider by what a part of at most this norm, which coordinates miss, can add at each point."""
        return replace(self, low=self.low - norm * missed, high=self.high + norm * missed, missed=missed)

    def padded(self, variables: int) -> PointwiseRows:
        """With columns of zeros for variables that come after those of the features."""
        wider = np.column_stack([self.features, np.zeros((len(self.features), variables - self.features.shape[1]))])
        return replace(self, features=wider)

    def violations(self, theta: FloatArray) -> FloatArray:
        """How far each row is above its upper limit, then how far each is below its lower one, in units of its span (2 N,)."""
        values, span = self.features @ theta, self.high - self.low
        return np.concatenate([(values - self.high) / span, (self.low - values) / span])

    def strain(self, theta: FloatArray, spread: FloatArray | None, above: float = -math.inf) -> FloatArray:
        """sqrt((f'theta - middle)^2 + f'S f) - half, in units of the span of the row (N,), S the covariance of theta.

        above: only strains beyond this count; others may come out too large, up to it.
        """
        large = spread is not None and len(self.features) > MANY and len(spread) > LEADING
        leading = _Leading.of(spread) if large and spread is not None else None
        found = np.empty(len(self.features))

        def fill(some: slice) -> None:
            features, low, high = self.features[some], self.low[some], self.high[some]
            span, away = high - low, np.abs(features @ theta - 0.5 * (low + high))
            if spread is None:
                found[some] = away / span - 0.5
                return
            if leading is None:
                found[some] = np.hypot(away, np.sqrt(_variances(features, spread))) / span - 0.5
                return
            strain = np.hypot(away, np.sqrt(leading.most(features))) / span - 0.5
            rows = np.flatnonzero(strain > above)
            strain[rows] = np.hypot(away[rows], np.sqrt(_variances(features[rows], spread))) / span[rows] - 0.5
            found[some] = strain

        fill_by_blocks(fill, len(found), MANY)
        return found

    def part(self, index: IntArray) -> PointwiseRows:
        """Some of the rows."""
        return PointwiseRows.known(self.features[index], self.low[index], self.high[index])

    def half_squares(self, index: IntArray) -> FloatArray:
        """half_i^2 of some of the rows."""
        return np.asarray(0.25 * (self.high[index] - self.low[index]) ** 2)

    def active(self, index: IntArray) -> ActiveRows:
        """Some of the rows, each a quadratic of its own."""
        low, high = self.low[index], self.high[index]
        return ActiveRows(self.features[index], 0.5 * (low + high), 0.5 * (high - low))

    def averaged(self, index: IntArray, weights: FloatArray) -> Constraint:
        """The box averaged over some rows; its limit is raised by what rounding may have taken from it."""
        features, low, high = self.features[index], self.low[index], self.high[index]
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        weighted = weights[:, None] * features
        constant, limit = float(weights @ middle**2), float(weights @ half**2)
        sizes = np.abs(weighted)
        magnitudes = (np.abs(features).T @ sizes, np.abs(middle) @ sizes, float(weights @ (np.abs(middle) + np.abs(low)) ** 2))
        quadratic = Quadratic(features.T @ weighted, middle @ weighted, constant, magnitudes)
        origin = RowsOrigin(features, low, high, weights, missed=None if self.missed is None else self.missed[index])
        return Constraint(Role.BOX, quadratic, limit + ROUNDING * (constant + limit), origin)


def _variances(features: FloatArray, spread: FloatArray) -> FloatArray:
    """f'S f."""
    found: FloatArray = np.maximum(np.einsum("ij,ij->i", features @ spread, features), 0.0)
    return found


@dataclass(frozen=True, eq=False)
class _Leading:
    """Most of a covariance: its leading eigenvectors with their eigenvalues, and the largest of the other ones."""

    vectors: FloatArray
    values: FloatArray
    largest_other: float

    @classmethod
    def of(cls, spread: FloatArray) -> _Leading:
        values, vectors = np.linalg.eigh(spread)
        return cls(vectors[:, -LEADING:], np.maximum(values[-LEADING:], 0.0), max(float(values[-LEADING - 1]), 0.0))

    def most(self, features: FloatArray) -> FloatArray:
        """f'S f is at most this, which for most rows is enough to know."""
        along = (features @ self.vectors) ** 2
        rest = np.maximum(np.einsum("ij,ij->i", features, features) - along.sum(axis=1), 0.0)
        most: FloatArray = along @ self.values + self.largest_other * rest
        return most
