"""Ellipsoids around a set of coefficients, and what bounds the residuals over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ..validation import FloatArray


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{theta: ||factor'(theta - center)|| <= radius}."""

    center: FloatArray
    factor: FloatArray
    radius: float

    def reach(self, points: FloatArray, middle: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The largest d'theta and -d'theta over the ellipsoid, for every row d of points - middle.

        Points that have fewer coordinates than the center are 0 in the others.
        """
        from scipy.linalg.lapack import dtrtri

        inverse, _ = dtrtri(self.factor, lower=1)
        inverse, center = inverse[:, : points.shape[1]], self.center[: points.shape[1]]
        turned = inverse @ points.T
        turned -= (inverse @ middle)[:, None]
        turned *= turned
        length = self.radius * np.sqrt(turned.sum(axis=0))
        along = points @ center - middle @ center
        return length + along, length - along


@runtime_checkable
class Reach(Protocol):
    """How large a residual of Q can be, for all coefficients of a set; `classes.ranges` implements it."""

    @property
    def largest_value(self) -> float:
        """The largest |value| that the assumptions allow."""
        ...

    @property
    def declared(self) -> float: ...

    def over_ball(self, norm_bound: float) -> float: ...

    def over(self, ellipsoids: Sequence[Ellipsoid], norm_bound: float) -> float: ...

    def extremes(self, ellipsoids: Sequence[Ellipsoid]) -> tuple[FloatArray, ...]: ...
