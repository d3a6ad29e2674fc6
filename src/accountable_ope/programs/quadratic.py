"""Quadratic functions of the coefficients theta: the loss, the ball and the value box are all of this form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..validation import FloatArray


@checked
@dataclass(frozen=True, eq=False)
class Quadratic:
    """q(theta) = theta'A theta - 2 a'theta + a0.

    Parameters
    ----------
    A : array (m, m)
        Symmetric.
    a : array (m,)
    a0 : float
    magnitudes : tuple, optional
        The sizes of the terms that were added up in A, a and a0, where something may have canceled.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import Quadratic
    >>> loss = Quadratic(np.eye(2), np.array([1.0, 0.0]), 1.0)  # (theta_1 - 1)^2 + theta_2^2
    >>> loss(np.array([0.0, 2.0]))
    5.0
    """

    A: FloatArray
    a: FloatArray
    a0: float
    magnitudes: tuple[FloatArray, FloatArray, float] | None = None

    def __repr__(self) -> str:
        return f"Quadratic({len(self.a)} coefficients, {self.a0:.4g} at 0)"

    @cached_property
    def absolute(self) -> tuple[FloatArray, FloatArray, float]:
        """|A|, |a| and |a0|, entry by entry, of the terms that were added up in them."""
        return (np.abs(self.A), np.abs(self.a), abs(self.a0)) if self.magnitudes is None else self.magnitudes

    @cached_property
    def sizes(self) -> tuple[FloatArray, FloatArray]:
        """sqrt|A_ii| and |a|."""
        return np.sqrt(np.abs(np.diagonal(self.A))), np.abs(self.a)

    @cached_property
    def eigenvalues(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of A."""
        if not self.A.any():
            return 0.0, 0.0
        values = np.linalg.eigvalsh(0.5 * (self.A + self.A.T))
        return float(values[0]), float(values[-1])

    @property
    def convex(self) -> bool:
        """Whether no eigenvalue is negative beyond rounding."""
        least, largest = self.eigenvalues
        return least >= -1e-12 * len(self.a) * abs(largest)

    def __call__(self, theta: FloatArray) -> float:
        return float(theta @ (self.A @ theta) - 2 * (self.a @ theta) + self.a0)

    @classmethod
    def linear(cls, c: FloatArray) -> Quadratic:
        """q(theta) = -c'theta, whose least value is the largest c'theta with the sign turned."""
        return cls(np.zeros((len(c), len(c))), 0.5 * c, 0.0)
