"""The same functions in other units: features whose coefficients are measured in values, and features that are scaled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, frozen, matrix, positive, vector
from .features import BoundedFeatures, FeatureMap, for_threads

FLOOR = 1e-4
"""Directions whose variance is below this share of the largest one are scaled as if it were that: rounding is no direction."""


@checked
@dataclass(frozen=True, eq=False)
class WhitenedFeatures:
    """W(x) = D'(phi(x) - center): the norm of a coefficient vector is a size of values, whatever the units of phi.

    Over the points that they were whitened on (`whiten`), W has mean 0 and a covariance of at most the identity. So
    alpha'W + constant differs from a constant by at most ||alpha|| in root mean square over those points: a ball is a statement
    about values, which a person can judge.

    Parameters
    ----------
    base : FeatureMap
        phi.
    center : array (m,)
        The mean of phi over the points.
    directions : array (m, k)
        D.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where center or directions do not fit the features.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import RandomFourier
    >>> from accountable_ope.classes import whiten
    >>> points = np.random.default_rng(0).normal(size=(500, 2))
    >>> W = whiten(RandomFourier(3), points)(points)
    >>> np.cov(W.T, bias=True).round(3).tolist() == np.eye(3).tolist()
    True
    """

    base: FeatureMap
    center: FloatArray
    directions: FloatArray
    intercept: bool = True

    def __post_init__(self) -> None:
        center, directions = frozen(vector(self.center, "center")), frozen(matrix(self.directions, "directions"))
        m = self.base.dimension
        if len(center) != m or len(directions) != m or directions.shape[1] == 0:
            raise InvalidInput(
                f"`center` and `directions` of WhitenedFeatures must have {m} rows, as the features have columns. "
                f"Got {len(center)} and {len(directions)}."
            )
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "directions", directions)

    def __repr__(self) -> str:
        return f"WhitenedFeatures({self.base!r}, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return int(self.directions.shape[1])

    @property
    def diameter(self) -> float:
        """That of phi, times how much D stretches it."""
        if not isinstance(self.base, BoundedFeatures):
            return float("inf")
        return self.base.diameter * float(np.linalg.norm(self.directions, 2))

    @property
    def for_threads(self) -> bool:
        return for_threads(self.base)

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.asarray((self.base(points) - self.center) @ self.directions)


@checked
@dataclass(frozen=True, eq=False)
class ScaledFeatures:
    """factor * phi(x): the ball of norm R over these is the ball of norm factor * R over phi.

    A result has one norm bound for all of its classes; this brings classes with different balls to one.

    Parameters
    ----------
    base : FeatureMap
        phi.
    factor : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import RandomFourier
    >>> from accountable_ope.classes import ScaledFeatures
    >>> ScaledFeatures(RandomFourier(3), 2.0).diameter
    4.0
    """

    base: FeatureMap
    factor: float

    def __post_init__(self) -> None:
        positive(self.factor, "factor")

    def __repr__(self) -> str:
        return f"ScaledFeatures({self.base!r}, factor={self.factor!r})"

    @property
    def dimension(self) -> int:
        return self.base.dimension

    @property
    def intercept(self) -> bool:
        return self.base.intercept

    @property
    def diameter(self) -> float:
        """That of phi, scaled."""
        return self.factor * self.base.diameter if isinstance(self.base, BoundedFeatures) else float("inf")

    @property
    def for_threads(self) -> bool:
        return for_threads(self.base)

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.base(points))


@checked
def whiten(base: FeatureMap, points: ArrayLike) -> WhitenedFeatures:
    """The features, whitened on these points, which the bound must not use.

    D = V diag(1 / sqrt(max(l, 1e-4 l_1))) for the eigenvalues l_1 >= l_2 >= ... of the covariance of phi and its eigenvectors V.

    Parameters
    ----------
    base : FeatureMap
        phi.
    points : array (n, d)
        Rows of (s, a).

    Returns
    -------
    WhitenedFeatures

    Raises
    ------
    InvalidInput
        Where phi is the same at all points.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import RandomFourier
    >>> from accountable_ope.classes import whiten
    >>> whiten(RandomFourier(3), np.random.default_rng(0).normal(size=(500, 2))).dimension
    3
    """
    rows = matrix(points, "points")
    if len(rows) < 2:
        raise InvalidInput(f"`points` must have at least two rows. Got {len(rows)}.")
    values = base(rows)
    center = values.mean(axis=0)
    centered = values - center
    variances, vectors = np.linalg.eigh(centered.T @ centered / len(values))
    if not variances[-1] > 0:
        raise InvalidInput("`points` must differ in their features: these are the same at all of them.")
    directions = vectors / np.sqrt(np.maximum(variances, FLOOR * variances[-1]))
    return WhitenedFeatures(base, center, directions, base.intercept)
