"""Positive definite kernels K(x, y) on points x = (s, a): block, diagonal and supremum.

`prepare` does the work that is shared by all tiles of the n x n matrix once, and returns an object that fills a tile. A tile
is (rows x columns) of the matrix, never the whole of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..validation import FloatArray, float_array, frozen, row_keys, whole

Tile = NDArray[Any]
"""A float64 or float32 buffer for a block of the kernel matrix."""


class Prepared(Protocol):
    """A kernel bound to points: fills tiles, and bounds its own rounding error in any entry."""

    entry_error: float

    def fill(self, rows: slice, columns: slice, out: Tile) -> None: ...


@runtime_checkable
class Kernel(Protocol):
    """A bounded positive definite kernel."""

    @property
    def supremum(self) -> float:
        """sup_x K(x, x)."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether K(x, y) >= 0 everywhere."""
        ...

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> Prepared: ...

    def diagonal(self, points: FloatArray) -> FloatArray: ...

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """K(x_i, y_i), row by row."""
        ...


@runtime_checkable
class FiniteRank(Protocol):
    """A kernel K = Psi Psi' with few features: its sums over pairs need one pass over the rows, not over the pairs."""

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        """Psi'C, (features, k)."""
        ...

    def gram(self, points: FloatArray) -> FloatArray:
        """Psi'Psi, (features, features)."""
        ...


def block(kernel: Kernel, x: FloatArray, y: FloatArray) -> FloatArray:
    """The whole matrix K(x_i, y_j), for small inputs."""
    out = np.empty((len(x), len(y)))
    kernel.prepare(x, y, np.float64).fill(slice(0, len(x)), slice(0, len(y)), out)
    return out


@dataclass(frozen=True, eq=False, init=False)
class Gaussian:
    """K(x, y) = exp(-||(x - y) / h||^2), h a number or one bandwidth per dimension (no factor 2, as in the paper)."""

    bandwidth: FloatArray
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __init__(self, bandwidth: ArrayLike = 0.5) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(bandwidth))

    def __repr__(self) -> str:
        return f"Gaussian(bandwidth={_show(self.bandwidth)})"

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> Prepared:
        scaled_rows, scaled_columns = _scale(rows, columns, self.bandwidth)
        largest = max(_largest_square(scaled_rows), _largest_square(scaled_columns))
        unit = np.finfo(dtype).eps
        # The product form cancels |x|^2 against 2 x'y, so its error grows with |x|^2; far-spread points take differences instead.
        if 8 * unit * largest > (1e-12 if np.dtype(dtype) == np.float64 else 1e-4):
            return _DifferenceTiles(scaled_rows.astype(dtype), scaled_columns.astype(dtype), squared=True)
        return _ProductTiles(scaled_rows, scaled_columns, dtype, entry_error=float(unit * (8 * largest + 2 * rows.shape[1] + 8)))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-(((x - y) / self.bandwidth) ** 2).sum(axis=1)))


@dataclass(frozen=True, eq=False, init=False)
class Laplace:
    """K(x, y) = exp(-||(x - y) / h||_1), h a number or one bandwidth per dimension."""

    bandwidth: FloatArray
    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __init__(self, bandwidth: ArrayLike = 1.0) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(bandwidth))

    def __repr__(self) -> str:
        return f"Laplace(bandwidth={_show(self.bandwidth)})"

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> Prepared:
        scaled_rows, scaled_columns = _scale(rows, columns, self.bandwidth)
        return _DifferenceTiles(scaled_rows.astype(dtype), scaled_columns.astype(dtype), squared=False)

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-np.abs((x - y) / self.bandwidth).sum(axis=1)))


@dataclass(frozen=True)
class Tabular:
    """K(x, y) = 1 where x = y exactly, else 0: the kernel of finite state and action sets."""

    supremum: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> Prepared:
        _, labels = np.unique(np.concatenate([rows, columns]) + 0.0, axis=0, return_inverse=True)
        labels = labels.reshape(-1)
        return _EqualityTiles(labels[: len(rows)], labels[len(rows) :])

    def project(self, points: FloatArray, columns: FloatArray) -> FloatArray:
        """The sum of the rows of `columns` over each group of equal points: the features are one-hot."""
        _, labels = np.unique(row_keys(points), return_inverse=True)
        labels = labels.reshape(-1)
        return np.column_stack([np.bincount(labels, weights=column) for column in columns.T])

    def gram(self, points: FloatArray) -> FloatArray:
        """How often each point occurs, on the diagonal."""
        return np.diag(np.unique(row_keys(points), return_counts=True)[1].astype(np.float64))

    def diagonal(self, points: FloatArray) -> FloatArray:
        return np.ones(len(points))

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((x == y).all(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class Product:
    """K(x, y) = K_state(s, t) K_action(a, b), the first `state_dimension` columns of x being the state."""

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

    def prepare(self, rows: FloatArray, columns: FloatArray, dtype: Any) -> Prepared:
        d = self.state_dimension
        if rows.shape[1] <= d:
            raise InvalidInput(f"`state_dimension` of Product is {d}, but points have only {rows.shape[1]} columns.")
        first = self.state_kernel.prepare(rows[:, :d], columns[:, :d], dtype)
        second = self.action_kernel.prepare(rows[:, d:], columns[:, d:], dtype)
        error = first.entry_error * self.action_kernel.supremum + second.entry_error * self.state_kernel.supremum
        return _ProductOfTiles(first, second, error + float(np.finfo(dtype).eps) * self.supremum)

    def diagonal(self, points: FloatArray) -> FloatArray:
        d = self.state_dimension
        return self.state_kernel.diagonal(points[:, :d]) * self.action_kernel.diagonal(points[:, d:])

    def paired(self, x: FloatArray, y: FloatArray) -> FloatArray:
        d = self.state_dimension
        return self.state_kernel.paired(x[:, :d], y[:, :d]) * self.action_kernel.paired(x[:, d:], y[:, d:])


class _ProductTiles:
    """Gaussian tiles by one matrix product: [2x, -|x|^2, 1] [y, 1, -|y|^2]' = -|x - y|^2."""

    def __init__(self, rows: FloatArray, columns: FloatArray, dtype: Any, entry_error: float) -> None:
        row_squares, column_squares = np.einsum("ij,ij->i", rows, rows), np.einsum("ij,ij->i", columns, columns)
        self._left = np.column_stack([2 * rows, -row_squares, np.ones(len(rows))]).astype(dtype)
        # One row per coordinate: the product with a contiguous right factor is up to twice as fast.
        self._right = np.vstack([columns.T, np.ones(len(columns)), -column_squares]).astype(dtype, order="C")
        self._row_norms, self._column_norms = np.sqrt(row_squares), np.sqrt(column_squares)
        self._reach = float(np.sqrt(-np.log(np.finfo(dtype).tiny)))
        self.entry_error = entry_error

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        np.matmul(self._left[rows], self._right[:, columns], out=out)
        _exp(out, clip=self._row_norms[rows].max() + self._column_norms[columns].max() > self._reach)


class _DifferenceTiles:
    """exp(-sum_j |x_j - y_j|^p), p = 1 or 2, one dimension after the other."""

    def __init__(self, rows: Tile, columns: Tile, *, squared: bool) -> None:
        self._rows, self._columns, self._squared = rows, columns, squared
        # x exp(-x) <= 1/e bounds what a relative error of the exponent can do to an entry; far points underflow to 0.
        spread = float(np.abs(rows).max(initial=0) + np.abs(columns).max(initial=0))
        self.entry_error = float(np.finfo(rows.dtype).eps) * (4 * rows.shape[1] + 8 + spread * rows.shape[1])

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        difference = np.empty_like(out)
        out.fill(0)
        for j in range(self._rows.shape[1]):
            np.subtract(self._rows[rows, j, None], self._columns[None, columns, j], out=difference)
            if self._squared:
                np.multiply(difference, difference, out=difference)
            else:
                np.abs(difference, out=difference)
            np.subtract(out, difference, out=out)
        _exp(out, clip=True)


class _EqualityTiles:
    entry_error = 0.0

    def __init__(self, rows: NDArray[Any], columns: NDArray[Any]) -> None:
        self._rows, self._columns = rows, columns

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        np.equal(self._rows[rows, None], self._columns[None, columns], out=out, casting="unsafe")


class _ProductOfTiles:
    def __init__(self, first: Prepared, second: Prepared, entry_error: float) -> None:
        self._first, self._second, self.entry_error = first, second, entry_error

    def fill(self, rows: slice, columns: slice, out: Tile) -> None:
        self._first.fill(rows, columns, out)
        other = np.empty_like(out)
        self._second.fill(rows, columns, other)
        np.multiply(out, other, out=out)


def _exp(tile: Tile, *, clip: bool) -> None:
    """exp in place. Subnormal results, and products with them, take up to a hundred times as long: exponents stop well before."""
    if clip:
        # exp of this is far below any rounding error, and still normal after a product with small numbers.
        np.maximum(tile, -600.0 if tile.dtype == np.float64 else -60.0, out=tile)
    np.exp(tile, out=tile)


def _bandwidth(value: ArrayLike) -> FloatArray:
    array = float_array(value, "bandwidth", dimensions=(0, 1))
    if (array <= 0).any() or array.size == 0:
        raise InvalidInput(f"`bandwidth` must be positive. Got {array.tolist()}.")
    return frozen(array)


def _scale(rows: FloatArray, columns: FloatArray, bandwidth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both sets divided by the bandwidth and centerd alike, which keeps squares small and differences unchanged."""
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
