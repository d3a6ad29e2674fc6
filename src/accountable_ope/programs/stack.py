"""Weighted sums of quadratics, with the sizes of what is added up.

The quadratics of a program lie one under the other, so that a sum is one product: on the small matrices of most programs the
number of calls is all that counts, and a search adds them up a thousand times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..validation import FloatArray
from .constraint import ActiveRows, Constraint
from .quadratic import Quadratic

UNIT = float(np.finfo(np.float64).eps)


class Total(NamedTuple):
    """H, h and the constant term, the sizes of what was added up in each, and the rounding of a sum in units of its size."""

    H: FloatArray
    h: FloatArray
    constant: float
    H_size: FloatArray
    h_size: FloatArray
    size: float
    unit: float


@dataclass(frozen=True, eq=False)
class Stack:
    """An objective and constraints q_j - limit_j, the objective first: matrices (J, m, m), vectors (J, m), constants (J,).

    sizes: of the terms in each, A and a in one row (J, m m + m); constant_sizes (J,).
    """

    matrices: FloatArray
    vectors: FloatArray
    constants: FloatArray
    sizes: FloatArray
    constant_sizes: FloatArray

    @classmethod
    def of(cls, objective: Quadratic, constraints: Sequence[Constraint]) -> Stack:
        quadratics = [objective, *(c.quadratic for c in constraints)]
        limits = np.array([0.0, *(c.limit for c in constraints)])
        count, m = len(quadratics), len(objective.a)
        # Filled in place: stacking a list of matrices takes longer than a factorization.
        matrices, vectors, sizes = np.empty((count, m, m)), np.empty((count, m)), np.empty((count, m * m + m))
        constants, constant_sizes = -limits, np.abs(limits)
        for j, q in enumerate(quadratics):
            A, a, a0 = q.absolute
            matrices[j], vectors[j] = q.A, q.a
            sizes[j, : m * m], sizes[j, m * m :] = A.ravel(), a
            constants[j] += q.a0
            constant_sizes[j] += a0
        return cls(matrices, vectors, constants, sizes, constant_sizes)

    def total(self, multipliers: FloatArray, rows: ActiveRows | None = None) -> Total:
        """The objective plus the sum of multiplier times constraint, and of multiplier times row, those of rows last."""
        terms, m = len(self.constants) - 1, self.vectors.shape[1]
        weights = np.concatenate(([1.0], multipliers[:terms]))
        used = weights != 0  # what does not count may have a limit that is not finite
        H = (weights @ self.matrices.reshape(terms + 1, m * m)).reshape(m, m)
        h = weights @ self.vectors
        sizes = weights @ self.sizes
        constant = float(weights[used] @ self.constants[used])
        size = float(weights[used] @ self.constant_sizes[used])
        H_size, h_size = sizes[: m * m].reshape(m, m), sizes[m * m :]
        if rows is not None:
            chosen, features = multipliers[terms:], rows.features
            weighted = chosen[:, None] * features
            H += features.T @ weighted
            h += rows.middle @ weighted
            constant += float(chosen @ (rows.middle**2 - rows.half**2))
            H_size += np.abs(features).T @ np.abs(weighted)
            h_size += np.abs(rows.middle) @ np.abs(weighted)
            size += float(chosen @ (rows.middle**2 + rows.half**2))
            terms += len(rows)
        return Total(H, h, constant, H_size, h_size, size, (terms + 2) * UNIT)

    def slopes(self, theta: FloatArray) -> FloatArray:
        """A_j theta - a_j of the constraints (J - 1, m)."""
        return np.asarray(self.matrices[1:] @ theta - self.vectors[1:])

    def slack(self, theta: FloatArray, slopes: FloatArray) -> FloatArray:
        """q_j(theta) - limit_j of the constraints (J - 1,)."""
        return np.asarray((slopes - self.vectors[1:]) @ theta + self.constants[1:])
