"""A class of Q given as columns, where features are known at the rows only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import Policy
from ..problem.problem import Experience
from ..validation import FloatArray, frozen, matrix
from .function_class import Columns, StateBox


@checked
@dataclass(frozen=True, eq=False, init=False)
class Precomputed:
    """Features as columns: at the data, at the next and at the start states, the last two averaged over the policy.

    Parameters
    ----------
    at_data, at_next : array (n, m)
        Features at every row, and at its next state.
    at_start : array (starts, m)
        Features at every start state.
    intercept : bool
        Whether an unpenalized constant is added.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.Precomputed([[1.0], [0.5]], [[0.5], [0.2]], [[0.3]])
    Precomputed(2 rows, 1 column, intercept=True)
    """

    at_data: FloatArray
    at_next: FloatArray
    at_start: FloatArray
    intercept: bool

    def __init__(self, at_data: ArrayLike, at_next: ArrayLike, at_start: ArrayLike, intercept: bool = True) -> None:
        data, after, start = matrix(at_data, "at_data"), matrix(at_next, "at_next"), matrix(at_start, "at_start")
        if data.shape != after.shape or data.shape[1] != start.shape[1]:
            raise InvalidInput(
                f"`at_data`, `at_next` and `at_start` must have the same columns, the first two the same rows. "
                f"Got {data.shape}, {after.shape}, {start.shape}."
            )
        object.__setattr__(self, "at_data", frozen(data))
        object.__setattr__(self, "at_next", frozen(after))
        object.__setattr__(self, "at_start", frozen(start))
        object.__setattr__(self, "intercept", bool(intercept))

    def __repr__(self) -> str:
        rows, columns = self.at_data.shape
        return f"Precomputed({rows} rows, {columns} column{'s' * (columns > 1)}, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return int(self.at_data.shape[1])

    @property
    def diameter(self) -> float:
        """How far apart features are at other points is not known."""
        return np.inf

    @property
    def feature_map(self) -> None:
        return None

    @property
    def at_rows_only(self) -> bool:
        return True

    @property
    def has_remainder(self) -> bool:
        return False

    def columns(self, experience: Experience) -> Columns:
        rows, starts = len(experience.data), len(experience.starts)
        if len(self.at_data) != rows or len(self.at_start) != starts:
            raise InvalidInput(
                f"Precomputed features must have {rows} data rows and {starts} start rows. "
                f"Got {len(self.at_data)} and {len(self.at_start)}."
            )
        return Columns(self.at_data, self.at_next * experience.live[:, None], self.at_start)

    def cover(self, policy: Policy, state_box: StateBox | None) -> None:
        return None

    def norm_of_values(self, largest: float) -> float:
        return np.inf

    def relative(self) -> Precomputed:
        return Precomputed(self.at_data, self.at_next, self.at_next[:1], intercept=False)  # one row, which is not looked at
