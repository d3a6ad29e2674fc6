"""Sums over all pairs on one GPU, for Gaussian kernels: half-precision products with an error bound of their own.

The bound, in units of sum_ij |c_i||c_j| and with u = 2^-24, for points x in units in which K = 2^(-|x - y|^2) and |x| <= R:

- coordinates in float32 are off by u R, a difference by 2 u R, and K by at most 2 u R times max t 2 log(2) 2^(-t^2) < 1.02;
- d squares and their sum: (d + 2) u of the exponent, and s log(2) 2^(-s) <= 1/e; exp2: 2 units in the last place, 4 u;
- the parts in half precision of K and of C, and the product of their low parts, which is left out: 4 u each;
- the products of a tile: a tensor core is taken to align the terms of a group of 16 to the largest and to cut them off, at most
  2 u of the largest for each (makers do not publish it; the tests measure what is lost), so 2 u for each of its columns and one
  more; tiles are added one after the other, u for each in a block;
- C'(KC) is summed in float64 over blocks of columns.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from ...errors import InvalidInput, MissingExtra
from ...kernels.kernel import Gaussian, Kernel
from ...kernels.products import Progress, TileOptions
from ...kernels.random_features import RandomFeatureKernel
from ...validation import FloatArray
from .cuda_double import double_feature_sums, double_pair_sums
from .growing import CrossSums
from .tiles import PairSums

UNIT = 2.0**-24

COLUMNS = 2**13
"""Columns of K whose products are summed in float32, before such sums are added in float64."""

_NOT_GAUSSIAN = '`device="cuda"` computes sums for Gaussian kernels and random features only. Got {!r}; use `device="cpu"`.'

MOST_DIMENSIONS = 32
"""Coordinates of a point, through which a tile goes one after the other."""


def cuda_sums(
    kernel: Kernel, points: FloatArray, columns: FloatArray, options: TileOptions, progress: Progress | None = None
) -> PairSums:
    """On a GPU: in double precision, or exact pairs by half-precision products where single precision was asked for."""
    if isinstance(kernel, RandomFeatureKernel):
        return double_feature_sums(opened_torch(), kernel, points, columns, progress)
    if options.single_precision:
        return cuda_pair_sums(kernel, points, columns, progress)
    if not isinstance(kernel, Gaussian):
        raise InvalidInput(_NOT_GAUSSIAN.format(kernel))
    return double_pair_sums(opened_torch(), kernel, points, columns, progress)


def cuda_pair_sums(kernel: Kernel, points: FloatArray, columns: FloatArray, progress: Progress | None = None) -> PairSums:
    """C'KC and C' diag(K) C: half of the first from the tiles on or above the diagonal."""
    device = _Device.open()
    x, reach = _coordinates(kernel, points, points)
    half = device.grams(_Rows(x, columns), _Rows(x, columns), progress, symmetric=True)
    diagonal = columns.T @ (columns * kernel.diagonal(points)[:, None])
    return PairSums(half + half.T, 0.5 * (diagonal + diagonal.T), entry_error(x.shape[1], reach, *device.tiles.TILE))


def cuda_cross_sums(
    kernel: Kernel, points: FloatArray, columns: FloatArray, new_points: FloatArray, new_columns: FloatArray
) -> CrossSums:
    """sum over i in O and j in N of c_i K(x_i, x_j) c_j'."""
    device = _Device.open()
    both, reach = _coordinates(kernel, points, new_points)
    old, new = both[: len(points)], both[len(points) :]
    gram = device.grams(_Rows(old, columns), _Rows(new, new_columns), None, symmetric=False)
    return CrossSums(gram, entry_error(both.shape[1], reach, *device.tiles.TILE))


def entry_error(dimension: int, reach: float, least: int, largest: int) -> float:
    """What all of the rounding amounts to, as an error of every entry of K; tiles have from `least` to `largest` columns."""
    entry = 2.04 * reach + 0.37 * (dimension + 2) + 4
    return UNIT * (entry + 3 * 4 + 2 * (largest + 1) + COLUMNS / least + 2)


def opened_torch() -> Any:
    """torch with a GPU that it can use, or one sentence that says why there is none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra('`device="cuda"` needs torch: pip install "accountable-ope[gpu]".') from error
    if not torch.cuda.is_available():
        raise InvalidInput('`device="cuda"` needs a GPU that torch can use, and it finds none here. Use `device="cpu"`.')
    return torch


class _Rows(NamedTuple):
    """Points in units of the kernel (n, d) and the columns (n, k) beside them."""

    x: FloatArray
    columns: FloatArray


class _Device(NamedTuple):
    """torch, and the tiles that need triton."""

    torch: Any
    tiles: Any

    @classmethod
    def open(cls) -> _Device:
        """The first GPU, or one sentence that says why there is none."""
        torch = opened_torch()
        try:
            return cls(torch, importlib.import_module(".cuda_tiles", __package__))
        except ImportError as error:
            raise MissingExtra('`device="cuda"` needs triton: pip install "accountable-ope[gpu]".') from error

    def grams(self, left: _Rows, right: _Rows, progress: Progress | None, *, symmetric: bool) -> FloatArray:
        """C_left' K C_right, (k, k); symmetric: half of it, up to transposition."""
        torch, tiles = self.torch, self.tiles
        x, c, scale = self._placed(left)
        y, d, other = (x, c, scale) if symmetric else self._placed(right)
        gram = torch.zeros(c.shape[1], d.shape[1], device="cuda", dtype=torch.float64)
        stops = range(0, len(d), COLUMNS)
        parts = range(0, d.shape[1], max(tiles.SHAPES))
        for at, first in enumerate(parts):
            part = slice(first, min(first + max(tiles.SHAPES), d.shape[1]))
            columns = tiles.HalfColumns(self._widened(d[:, part]))
            for start in stops:
                stop = min(start + COLUMNS, len(d))
                rows = stop if symmetric else len(c)
                product = tiles.products(x, y, columns, start, stop, rows, symmetric=symmetric)
                gram[:, part] += c[:rows].T @ product[:, : part.stop - part.start].double()
                if progress is not None:
                    done = (stop / len(d)) ** 2 if symmetric else stop / len(d)
                    progress((at + done) / len(parts))
        return np.asarray((gram * scale[:, None] * other).cpu().numpy(), dtype=np.float64)

    def _placed(self, rows: _Rows) -> tuple[Any, Any, Any]:
        """Coordinates (d, n) in float32, and columns (n, k) in float64 of at most 1, with their scales; padded by rows of 0."""
        torch, tiles = self.torch, self.tiles
        n, padded = len(rows.x), -(-len(rows.x) // tiles.LONGEST) * tiles.LONGEST
        x = torch.zeros(rows.x.shape[1], padded, device="cuda", dtype=torch.float32)
        x[:, :n] = torch.as_tensor(rows.x, device="cuda").T
        scale = np.maximum(np.abs(rows.columns).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
        columns = torch.zeros(padded, rows.columns.shape[1], device="cuda", dtype=torch.float64)
        columns[:n] = torch.as_tensor(rows.columns / scale, device="cuda")
        return x, columns, torch.as_tensor(scale, device="cuda")

    def _widened(self, columns: Any) -> Any:
        """float32, with columns of 0 up to a width that tiles have."""
        width = min(width for width in self.tiles.SHAPES if width >= columns.shape[1])
        widened = self.torch.zeros(len(columns), width, device="cuda", dtype=self.torch.float32)
        widened[:, : columns.shape[1]] = columns
        return widened


def _coordinates(kernel: Kernel, points: FloatArray, others: FloatArray) -> tuple[FloatArray, float]:
    """Points, and after them `others` unless they are the same, so that K = 2^(-|x - y|^2); and the largest |x|."""
    if not isinstance(kernel, Gaussian):
        raise InvalidInput(_NOT_GAUSSIAN.format(kernel))
    if points.shape[1] > MOST_DIMENSIONS:
        raise InvalidInput(f'`device="cuda"` takes points of at most {MOST_DIMENSIONS} coordinates. Got {points.shape[1]}.')
    both = points if others is points else np.concatenate([points, others])
    scaled = both * (np.sqrt(1 / np.log(2)) / kernel.bandwidth)
    scaled -= 0.5 * (scaled.max(axis=0) + scaled.min(axis=0))
    return scaled, float(np.sqrt((scaled**2).sum(axis=1).max(initial=0.0)))
