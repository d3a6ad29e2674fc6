"""What regression trees say of a point, as one feature: rough where Q is rough, and one coefficient only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, IntArray, float_array, frozen


@checked
@dataclass(frozen=True, eq=False)
class TreeValues:
    """phi(x) = ((1/T) sum_t value of the leaf of tree t that x falls into - center) / scale: one column.

    Node k of tree t asks whether x[column[t, k]] <= threshold[t, k], and sends x to child[t, k] or the node after that one. A
    leaf has child 0. Node 0 is the root.

    Parameters
    ----------
    column, child : array (T, N) of int
    threshold, value : array (T, N)
    center, scale : float
        So that the column is of the size of others.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where the arrays are no trees: of different shapes, or with a child that comes before its parent.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.classes import TreeValues
    >>> step = TreeValues(np.zeros((1, 3), int), np.array([[1, 0, 0]]), np.full((1, 3), 0.5), np.array([[0.0, 2.0, 5.0]]))
    >>> step(np.array([[0.2], [0.9]])).tolist()
    [[2.0], [5.0]]
    """

    column: IntArray
    child: IntArray
    threshold: FloatArray
    value: FloatArray
    center: float = 0.0
    scale: float = 1.0
    intercept: bool = True

    def __post_init__(self) -> None:
        for name in ("column", "child"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.int64))
            getattr(self, name).flags.writeable = False
        for name in ("threshold", "value"):
            object.__setattr__(self, name, frozen(float_array(getattr(self, name), name, dimensions=(2,))))
        shape = self.column.shape
        fits = len(shape) == 2 and min(shape) > 0 and shape == self.child.shape == self.threshold.shape == self.value.shape
        if not fits:
            raise InvalidInput("`column`, `child`, `threshold` and `value` of TreeValues must have one shape, trees by nodes.")
        after = (self.child == 0) | ((self.child > np.arange(shape[1])) & (self.child + 1 < shape[1]))
        if not after.all() or self.column.min() < 0 or not (np.isfinite(self.center) and 0 < self.scale < np.inf):
            raise InvalidInput("`child` of TreeValues must come after its parent, with a sibling; `scale` must be positive.")

    def __repr__(self) -> str:
        return f"TreeValues({len(self.column)} trees, intercept={self.intercept}, digest={self.digest})"

    @property
    def digest(self) -> str:
        """Eight letters that name these trees."""
        arrays = (self.column, self.child, self.threshold, self.value, np.array([self.center, self.scale]))
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:8]

    @property
    def dimension(self) -> int:
        return 1

    @property
    def diameter(self) -> float:
        """The mean over trees of how far their leaves are apart."""
        leaf = self.child == 0
        high = np.where(leaf, self.value, -np.inf).max(axis=1)
        low = np.where(leaf, self.value, np.inf).min(axis=1)
        return float((high - low).mean()) / self.scale

    def leaves(self, points: FloatArray) -> IntArray:
        """The node of every tree that each point ends in, (T, n)."""
        if self.column.max() >= points.shape[1]:
            raise InvalidInput(f"TreeValues take at least {int(self.column.max()) + 1}-d points. Got {points.shape[1]}-d ones.")
        return leaves_of(self.column, self.child, self.threshold, points)

    def __call__(self, points: FloatArray) -> FloatArray:
        nodes = self.leaves(points)
        values = np.take_along_axis(self.value, nodes, axis=1).mean(axis=0)
        return np.asarray((values - self.center) / self.scale)[:, None]


def leaves_of(column: IntArray, child: IntArray, threshold: FloatArray, points: FloatArray) -> IntArray:
    """Down all trees at once, a level per step."""
    trees, rows = np.arange(len(column))[:, None], np.arange(len(points))[None]
    node = np.zeros((len(column), len(points)), dtype=np.int64)
    while True:
        below = child[trees, node]
        moving = below > 0
        if not moving.any():
            return node
        right = points[rows, column[trees, node]] > threshold[trees, node]
        node = np.where(moving, below + right, node)
