"""Positive definite kernels K(x, y) on points x = (s, a): tiles, diagonal and supremum.

`prepare` does the work that is shared by all tiles of the n x n matrix once, and returns an object that fills a tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, IntArray, float_array, frozen, row_keys, whole
from .blocks import blocks
from .tiles import DifferenceTiles, EqualityTiles, ExponentTiles, KernelTiles, ProductTiles


@runtime_checkable
class Kernel(Protocol):
    """A bounded positive definite kernel; any object with these members is one."""

    @property
    def supremum(self) -> float:
        """sup_x K(x, x)."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether K(x, y) >= 0 everywhere."""
        ...

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        """The kernel bound to two sets of points, for tiles of float64 or float32."""
        ...

    def diagonal(self, points: FloatArray) -> FloatArray:
        """K(x_i, x_i)."""
        ...

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """K(x_i, y_i), row by row."""
        ...


@runtime_checkable
class FiniteRank(Protocol):
    """A kernel K = Psi Psi' with few features: its sums over pairs need one pass over the rows, not over the pairs.

    Which features there are may depend on the points; their order does not depend on the order of the points.
    """

    def rank(self, points: FloatArray) -> int:
        """How many features there are."""
        ...

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        """Psi'C, (rank, k)."""
        ...

    def expand(self, points: FloatArray, projected: FloatArray) -> FloatArray:
        """Psi P, (n, k), for P (rank, k)."""
        ...

    def gram(self, points: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Psi' diag(weights) Psi, (rank, rank); None for weights of 1."""
        ...


@runtime_checkable
class LabeledRank(FiniteRank, Protocol):
    """A kernel of finite rank whose features have names, so that sums over parts of the rows can be added.

    Equal labels are equal features, whatever the points are that they were asked for with.
    """

    def labels(self, points: FloatArray) -> FloatArray:
        """What names the features, (rank, any), each row another one, in the order of `project`."""
        ...


@checked
def block(kernel: Kernel, x: FloatArray, y: FloatArray) -> FloatArray:
    """The whole matrix K(x_i, y_j), for small inputs.

    Parameters
    ----------
    kernel : Kernel
    x : array (n, d)
    y : array (m, d)

    Returns
    -------
    array (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Gaussian
    >>> from accountable_ope.kernels.kernel import block
    >>> block(Gaussian(1.0), np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]])).round(4)
    array([[1.    , 0.3679]])
    """
    out = np.empty((len(x), len(y)))
    kernel.prepare(x, y, np.float64).fill(slice(0, len(x)), slice(0, len(y)), out)
    return out


def distinct_rows(points: FloatArray) -> tuple[IntArray, IntArray]:
    """Where each different row occurs first, and for every row which of them it is."""
    _, first, group = np.unique(row_keys(points), return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def group_sums(group: IntArray, columns: FloatArray) -> FloatArray:
    """The sum of the rows of `columns` over each group."""
    count = int(group.max(initial=-1)) + 1
    total = np.zeros((count, columns.shape[1]))
    for rows in blocks(len(group)):
        total += np.column_stack([np.bincount(group[rows], weights=column, minlength=count) for column in columns[rows].T])
    return total


@checked
@dataclass(frozen=True, eq=False, init=False)
class Gaussian:
    """K(x, y) = exp(-||(x - y) / h||^2), without a factor 2 below the square, as in the paper.

    Parameters
    ----------
    bandwidth : float or array (d,)
        h, one for all columns of the points (s, a) or one for each.

    Raises
    ------
    InvalidInput
        Where a bandwidth is not positive.

    Examples
    --------
    >>> from accountable_ope import Gaussian
    >>> Gaussian([0.5, 2.0])
    Gaussian(bandwidth=[0.5, 2.0])
    """

    bandwidth: FloatArray
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __init__(self, bandwidth: ArrayLike = 0.5) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(bandwidth))

    def __repr__(self) -> str:
        return f"Gaussian(bandwidth={_show(self.bandwidth)})"

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        scaled_rows, scaled_columns = _scale(rows, columns, self.bandwidth)
        largest = max(_largest_square(scaled_rows), _largest_square(scaled_columns))
        unit = np.finfo(dtype).eps
        # The product form cancels |x|^2 against 2 x'y, so its error grows with |x|^2; far-spread points take differences instead.
        if 8 * unit * largest > (1e-12 if np.dtype(dtype) == np.float64 else 1e-4):
            return DifferenceTiles(scaled_rows.astype(dtype), scaled_columns.astype(dtype), squared=True)
        return ExponentTiles(scaled_rows, scaled_columns, dtype, entry_error=float(unit * (8 * largest + 2 * rows.shape[1] + 8)))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        away = (x - y) / self.bandwidth
        return np.asarray(np.exp(-np.einsum("ij,ij->i", away, away)))


@checked
@dataclass(frozen=True, eq=False, init=False)
class Laplace:
    """K(x, y) = exp(-||(x - y) / h||_1).

    Parameters
    ----------
    bandwidth : float or array (d,)
        h, one for all columns of the points (s, a) or one for each.

    Raises
    ------
    InvalidInput
        Where a bandwidth is not positive.

    Examples
    --------
    >>> from accountable_ope import Laplace
    >>> Laplace(2.0)
    Laplace(bandwidth=2)
    """

    bandwidth: FloatArray
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __init__(self, bandwidth: ArrayLike = 1.0) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(bandwidth))

    def __repr__(self) -> str:
        return f"Laplace(bandwidth={_show(self.bandwidth)})"

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        scaled_rows, scaled_columns = _scale(rows, columns, self.bandwidth)
        return DifferenceTiles(scaled_rows.astype(dtype), scaled_columns.astype(dtype), squared=False)

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-np.abs((x - y) / self.bandwidth).sum(axis=1)))


@dataclass(frozen=True)
class Tabular:
    """K(x, y) = 1 where x = y exactly, else 0: the kernel of finite state and action sets.

    Its features are one-hot, one for each different point, so sums over pairs take one pass over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Tabular
    >>> Tabular().paired(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]))
    array([1.])
    """

    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        _, group = distinct_rows(np.concatenate([rows, columns]))
        return EqualityTiles(group[: len(rows)], group[len(rows) :])

    def rank(self, points: FloatArray) -> int:
        return len(distinct_rows(points)[0])

    def labels(self, points: FloatArray) -> FloatArray:
        """The different points themselves."""
        return np.asarray(points[distinct_rows(points)[0]])

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        return group_sums(distinct_rows(points)[1], columns)

    def expand(self, points: FloatArray, projected: FloatArray) -> FloatArray:
        return np.asarray(projected[distinct_rows(points)[1]])

    def gram(self, points: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        return np.diag(np.bincount(distinct_rows(points)[1], weights=weights).astype(np.float64))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((x == y).all(axis=1), dtype=np.float64)


@checked
@dataclass(frozen=True)
class Product:
    """K(x, y) = K_state(s, t) K_action(a, b) for points x = (s, a) and y = (t, b).

    Parameters
    ----------
    state_kernel, action_kernel : Kernel
    state_dimension : int
        How many columns of a point, the first ones, are the state.

    Raises
    ------
    InvalidInput
        Where `state_dimension` is not a whole number of at least 1; in use, where points have no further columns.

    Examples
    --------
    >>> from accountable_ope import Gaussian, Product, Tabular
    >>> Product(Gaussian(0.5), Tabular(), state_dimension=2).supremum
    1.0
    """

    state_kernel: Kernel
    action_kernel: Kernel
    state_dimension: int

    def __post_init__(self) -> None:
        whole(self.state_dimension, "state_dimension", least=1)

    @property
    def nonnegative(self) -> bool:
        return self.state_kernel.nonnegative and self.action_kernel.nonnegative

    @property
    def supremum(self) -> float:
        return self.state_kernel.supremum * self.action_kernel.supremum

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> KernelTiles:
        d = self.state_dimension
        if rows.shape[1] <= d:
            raise InvalidInput(f"`state_dimension` of Product is {d}, but points have only {rows.shape[1]} columns.")
        first = self.state_kernel.prepare(rows[:, :d], columns[:, :d], dtype)
        second = self.action_kernel.prepare(rows[:, d:], columns[:, d:], dtype)
        error = first.entry_error * self.action_kernel.supremum + second.entry_error * self.state_kernel.supremum
        return ProductTiles(first, second, error + float(np.finfo(dtype).eps) * self.supremum)

    def diagonal(self, points: FloatArray) -> FloatArray:
        d = self.state_dimension
        return self.state_kernel.diagonal(points[:, :d]) * self.action_kernel.diagonal(points[:, d:])

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        d = self.state_dimension
        return self.state_kernel.paired(x[:, :d], y[:, :d]) * self.action_kernel.paired(x[:, d:], y[:, d:])


def _bandwidth(value: ArrayLike) -> FloatArray:
    array = float_array(value, "bandwidth", dimensions=(0, 1))
    if (array <= 0).any() or array.size == 0:
        raise InvalidInput(f"`bandwidth` must be positive. Got {array.tolist()}.")
    return frozen(array)


def _scale(rows: FloatArray, columns: FloatArray, bandwidth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both sets divided by the bandwidth and centered alike, which keeps squares small and differences unchanged."""
    if bandwidth.ndim == 1 and len(bandwidth) != rows.shape[1]:
        raise InvalidInput(
            f"`bandwidth` has {len(bandwidth)} entries, but points (s, a) have {rows.shape[1]} columns: "
            "give one number or one per column."
        )
    center = rows.mean(axis=0)
    return (rows - center) / bandwidth, (columns - center) / bandwidth


def _largest_square(points: FloatArray) -> float:
    return float(np.einsum("ij,ij->i", points, points).max(initial=0.0))


def _show(bandwidth: FloatArray) -> str:
    return f"{float(bandwidth):g}" if bandwidth.ndim == 0 else str(bandwidth.tolist())
