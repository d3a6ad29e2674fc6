"""Half of a class of features: what is left when every other feature is taken away."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..errors import InvalidInput
from ..problem.gaussian_policy import NO_LIST
from ..validation import FloatArray
from .features import BoundedFeatures, FeatureMap, ListedFeatures, NormalMeans, SmoothFeatures
from .function_class import FunctionClass, Span
from .semi_parametric import SemiParametric


@dataclass(frozen=True)
class EveryOther:
    """The first feature of a map, the third, and so on: a part of each of its parts, in whatever order they come."""

    base: FeatureMap

    @property
    def dimension(self) -> int:
        return (self.base.dimension + 1) // 2

    @property
    def intercept(self) -> bool:
        return self.base.intercept

    @property
    def diameter(self) -> float:
        """Fewer coordinates are no further apart."""
        return self.base.diameter if isinstance(self.base, BoundedFeatures) else math.inf

    def __call__(self, points: FloatArray) -> FloatArray:
        return self.base(points)[:, ::2]

    def normal_means(self, points: FloatArray, covariance: FloatArray) -> FloatArray:
        """Those of the features that are left."""
        if not isinstance(self.base, NormalMeans):
            raise InvalidInput(f"{type(self.base).__name__}: {NO_LIST}")
        return self.base.normal_means(points, covariance)[:, ::2]


@dataclass(frozen=True)
class EveryOtherSmooth(EveryOther):
    """The same of features that know how much they change nearby."""

    def spread(self, half_widths: FloatArray) -> float:
        assert isinstance(self.base, SmoothFeatures)
        return self.base.spread(half_widths)


@dataclass(frozen=True, eq=False)
class Half:
    """A class with every other of its features; how many these are, and how many there were."""

    kept: FunctionClass
    features: int
    of: int


def half_class(function_class: FunctionClass) -> Half | None:
    """Half of a class; None of a table, a whole RKHS, columns of numbers, or a single feature."""
    semi = function_class if isinstance(function_class, SemiParametric) else None
    features = function_class.feature_map if semi is None else semi.features
    if features is None or isinstance(features, ListedFeatures) or features.dimension < 2:
        return None
    left = EveryOtherSmooth(features) if isinstance(features, SmoothFeatures) else EveryOther(features)
    kept = Span(left, function_class.intercept) if semi is None else replace(semi, features=left)
    return Half(kept, left.dimension, features.dimension)
