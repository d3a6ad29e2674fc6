"""Features side by side: the sums of functions of several classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray
from .features import BoundedFeatures, FeatureMap, SmoothFeatures, for_threads


@checked
@dataclass(frozen=True, eq=False)
class JoinedFeatures:
    """phi(x) = [phi_1(x), phi_2(x), ...]: functions that are a sum of one of every class, ||Q||^2 the sum of their squares.

    Parameters
    ----------
    parts : tuple of FeatureMap
        Their own intercepts are not looked at.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where there are no parts.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import RandomFourier
    >>> from accountable_ope.classes import JoinedFeatures
    >>> joined = JoinedFeatures((RandomFourier(3, bandwidth=0.5), RandomFourier(4, bandwidth=2.0)))
    >>> joined.dimension, joined(np.zeros((2, 1))).shape
    (7, (2, 7))
    """

    parts: tuple[FeatureMap, ...]
    intercept: bool = True

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("`parts` of JoinedFeatures must not be empty.")

    def __repr__(self) -> str:
        return f"JoinedFeatures({' + '.join(map(repr, self.parts))}, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    @property
    def diameter(self) -> float:
        """The root of the sum of squares: all parts may be far apart at once."""
        if not all(isinstance(part, BoundedFeatures) for part in self.parts):
            return float("inf")
        return float(np.linalg.norm([part.diameter for part in self.parts if isinstance(part, BoundedFeatures)]))

    def spread(self, half_widths: FloatArray) -> float:
        """The root of the sum of squares, infinite where a part does not know how much it changes."""
        if not all(isinstance(part, SmoothFeatures) for part in self.parts):
            return float("inf")
        return float(np.linalg.norm([part.spread(half_widths) for part in self.parts if isinstance(part, SmoothFeatures)]))

    @property
    def for_threads(self) -> bool:
        return for_threads(*self.parts)

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.concatenate([part(points) for part in self.parts], axis=1)
