"""Ellipsoids around a set of coefficients, and what bounds the residuals over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ..threads import fill_by_blocks
from ..validation import FloatArray
from .lagrangian import GENEROUS
from .quadratic import Quadratic

BLOCK = 4096
"""Points that are turned together, few enough to stay in the cache of a processor."""


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
        turn, moved, length = np.ascontiguousarray(inverse.T), inverse @ middle, np.empty(len(points))
        along, at_middle = np.empty(len(points)), middle @ center

        def fill(rows: slice) -> None:
            here = points[rows]
            turned = here @ turn
            turned -= moved
            np.einsum("ij,ij->i", turned, turned, out=length[rows])
            np.matmul(here, center, out=along[rows])

        fill_by_blocks(fill, len(points), BLOCK)
        length = self.radius * np.sqrt(length)
        along -= at_middle
        return length + along, length - along


def root_over(squared: Quadratic, around: Ellipsoid) -> float:
    """sqrt(q(theta)) is at most this over the ellipsoid {||L'(theta - c)|| <= r}, for q a squared length of the seen part.

    It is the length of a vector that is affine in theta: sqrt q(theta) <= sqrt q(c) + r sqrt(lambda_max(L^{-1} A L^{-T})), A the
    matrix of q.
    """
    from scipy.linalg import solve_triangular

    m = len(squared.a)
    center = around.center[:m]
    here = squared(center)
    length = np.abs(center)
    size = abs(squared.a0) + float(length @ np.abs(squared.A) @ length) + 2 * float(np.abs(squared.a) @ length)
    matrix = np.zeros_like(around.factor)
    matrix[:m, :m] = squared.A
    half = solve_triangular(around.factor, matrix, lower=True, check_finite=False)
    turned = solve_triangular(around.factor, half.T, lower=True, check_finite=False)
    top = float(np.linalg.eigvalsh(0.5 * (turned + turned.T))[-1])
    slack = GENEROUS * 1e-12 * m * size
    return math.sqrt(max(here, 0.0) + slack) + around.radius * math.sqrt(max(top, 0.0)) * (1 + GENEROUS * 1e-9)


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
