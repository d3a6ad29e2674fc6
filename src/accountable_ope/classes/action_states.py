"""Features of the state for every action apart, with a scale of their own for every column: products, and tiles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, IntArray, frozen, matrix, positive, vector, whole


@checked
@dataclass(frozen=True, eq=False)
class ActionProducts:
    """phi(s, a) = e_a (x) [products of up to `degree` of u_1, ..., u_d], u = tanh((s - center) / scale), e_a one-hot.

    Smooth functions of the state for every action: few columns, and bounded, so that a state far away does not decide a fit. The
    first column, the constant of the first action, is left out: with the others it would make the intercept once more. With no
    actions, points are taken as a whole.

    Parameters
    ----------
    center, scale : array (d,)
        Of the columns of the state.
    degree : int
        How many factors a product has at most; the product of none, 1, is a feature too.
    actions : array (A, k), optional
        The vectors that actions stand for; a point has the action whose vector is nearest.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where a scale is not positive or, when called, points have another number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.classes import ActionProducts
    >>> features = ActionProducts(np.zeros(2), np.ones(2), 2, np.eye(3))
    >>> features.dimension, float(features(np.array([[0.0, 0.0, 0.0, 1.0, 0.0]]))[0, 5])
    (17, 1.0)
    """

    center: FloatArray
    scale: FloatArray
    degree: int = 2
    actions: FloatArray | None = None
    intercept: bool = True
    for_threads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_columns(self, self.center, self.scale)
        whole(self.degree, "degree", least=1)

    def __repr__(self) -> str:
        return f"ActionProducts(degree {self.degree}{_many(self.actions)}, {self.dimension} columns, intercept={self.intercept})"

    @property
    def products(self) -> int:
        """How many per action."""
        return comb(len(self.center) + self.degree, self.degree)

    @property
    def dimension(self) -> int:
        return self.products * (1 if self.actions is None else len(self.actions)) - 1

    @property
    def diameter(self) -> float:
        """Every product lies in [-1, 1]."""
        return 2 * float(np.sqrt(self.products))

    def __call__(self, points: FloatArray) -> FloatArray:
        states, taken = _apart(points, len(self.center), self.actions, "ActionProducts")
        u = np.tanh((states - self.center) / self.scale)
        columns = [np.ones(len(points))]
        for degree in range(1, self.degree + 1):
            columns += [u[:, list(which)].prod(axis=1) for which in combinations_with_replacement(range(u.shape[1]), degree)]
        return _placed(np.stack(columns, axis=1), taken, 1 if self.actions is None else len(self.actions))[:, 1:]


@checked
@dataclass(frozen=True, eq=False)
class ActionTiles:
    """phi(s, a) = e_a (x) [s in a tile of grid g] / sqrt(grids): functions that are sums of steps, for every action apart.

    Every grid has `cells` cells along every column from `low` to `high`, shifted against the others by a fraction of a cell; what
    lies outside belongs to the cell at the border.

    Parameters
    ----------
    low, high : array (d,)
        Of the columns of the state.
    cells, grids : int
    actions : array (A, k), optional
        The vectors that actions stand for; a point has the action whose vector is nearest.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where a column has no length or, when called, points have another number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.classes import ActionTiles
    >>> tiles = ActionTiles(np.zeros(1), np.ones(1), cells=4, grids=1, actions=np.eye(2))
    >>> tiles(np.array([[0.6, 0.0, 1.0]])).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]
    """

    low: FloatArray
    high: FloatArray
    cells: int
    grids: int = 2
    actions: FloatArray | None = None
    intercept: bool = True
    for_threads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        low, high = vector(self.low, "low"), vector(self.high, "high")
        if len(low) != len(high):
            raise InvalidInput(f"`low` and `high` must be equally long. Got {len(low)} and {len(high)}.")
        _check_columns(self, self.low, high - low, ("low", "high"))
        object.__setattr__(self, "high", frozen(high))
        whole(self.cells, "cells", least=1)
        whole(self.grids, "grids", least=1)

    def __repr__(self) -> str:
        size = " x ".join([str(self.cells)] * len(self.low))
        return f"ActionTiles({self.grids} grids of {size} cells{_many(self.actions)}, intercept={self.intercept})"

    @property
    def tiles(self) -> int:
        """How many per action."""
        return int(self.grids * self.cells ** len(self.low))

    @property
    def dimension(self) -> int:
        return self.tiles * (1 if self.actions is None else len(self.actions))

    @property
    def diameter(self) -> float:
        """Two different unit vectors."""
        return float(np.sqrt(2.0))

    def __call__(self, points: FloatArray) -> FloatArray:
        states, taken = _apart(points, len(self.low), self.actions, "ActionTiles")
        place = (states - self.low) / (self.high - self.low) * self.cells
        out = np.zeros((len(points), self.tiles))
        rows, each = np.arange(len(points)), self.cells ** len(self.low)
        for grid in range(self.grids):
            shift = (grid + 0.5) / self.grids - 0.5  # symmetric about the middle: no side has finer cells
            cell = np.clip(np.floor(np.clip(place + shift, 0, self.cells)), 0, self.cells - 1).astype(np.int64)
            out[rows, grid * each + cell @ self.cells ** np.arange(len(self.low))] = 1 / np.sqrt(self.grids)
        return _placed(out, taken, 1 if self.actions is None else len(self.actions))


def _check_columns(
    features: ActionProducts | ActionTiles, first: FloatArray, lengths: FloatArray, names: tuple[str, str] = ("center", "scale")
) -> None:
    """Finite numbers, positive lengths, actions as a matrix; all of them frozen."""
    start, scale = frozen(vector(first, names[0])), frozen(vector(lengths, names[1]))
    if len(start) != len(scale):
        raise InvalidInput(f"`{names[0]}` and `{names[1]}` must be equally long. Got {len(start)} and {len(scale)}.")
    for length in scale.tolist():
        positive(length, names[1] if names[1] == "scale" else "high - low")
    object.__setattr__(features, names[0], start)
    if names[1] == "scale":
        object.__setattr__(features, "scale", scale)
    if features.actions is not None:
        object.__setattr__(features, "actions", frozen(matrix(features.actions, "actions")))


def _many(actions: FloatArray | None) -> str:
    return "" if actions is None else f" for each of {len(actions)} actions"


def _apart(points: FloatArray, columns: int, actions: FloatArray | None, name: str) -> tuple[FloatArray, IntArray]:
    """States, and which action each point has; 0 where there are no actions."""
    wanted = columns + (0 if actions is None else actions.shape[1])
    if points.shape[1] != wanted:
        raise InvalidInput(f"{name} takes {wanted}-d points (s, a). Got {points.shape[1]}-d ones.")
    if actions is None:
        return points, np.zeros(len(points), dtype=np.int64)
    away = points[:, columns:, None] - actions.T[None]
    return points[:, :columns], np.argmin((away**2).sum(axis=1), axis=1)


def _placed(columns: FloatArray, taken: IntArray, actions: int) -> FloatArray:
    """Columns in the block of the action that was taken."""
    out = np.zeros((len(columns), actions, columns.shape[1]))
    out[np.arange(len(columns)), taken] = columns
    return out.reshape(len(columns), -1)
