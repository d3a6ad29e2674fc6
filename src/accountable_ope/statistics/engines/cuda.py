"""Sums over all pairs on one GPU, for Gaussian kernels: half-precision products with an error bound of their own.

The bound, in units of sum_ij |c_i||c_j| and with u = 2^-24, for points x in units in which K = 2^(-|x - y|^2) and |x| <= R:

- coordinates in float32 are off by u R, a difference by 2 u R, and K by at most 2 u R times max t 2 log(2) 2^(-t^2) < 1.02;
- d squares and their sum: (d + 2) u of the exponent, and s log(2) 2^(-s) <= 1/e; exp2: 2 units in the last place, 4 u;
- the parts in half precision of K, and the product of the low parts, which is left out: 4 u each; what the parts of C leave out
  is computed, since it is large for a column of a few large and many tiny values;
- the products of a tile: a tensor core is taken to align the terms of a group of 16 to the largest and to cut them off, at most
  2 u of the largest for each (makers do not publish it; the tests measure what is lost), so 2 u for each of the columns between
  two additions in ordinary arithmetic and one more, and u for each such addition in a block;
- the two products with low parts, at most 2^-11 of the others, are added up by tensor cores over a block: 2 u for each column;
- KC is summed over blocks of columns, and C'(KC) over rows, in float64.
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
    device = Device.open()
    x, reach = device.coordinates(kernel, points)
    rows = device.placed(x, columns)
    half, lost = device.grams(rows, rows, progress, symmetric=True)
    diagonal = device.diagonal(rows)  # a Gaussian is 1 there
    return PairSums(half + half.T, diagonal, entry_error(x.shape[1], reach, device.steps(columns.shape[1]), lost))


def cuda_cross_sums(
    kernel: Kernel, points: FloatArray, columns: FloatArray, new_points: FloatArray, new_columns: FloatArray
) -> CrossSums:
    """sum over i in O and j in N of c_i K(x_i, x_j) c_j'."""
    device = Device.open()
    both, reach = device.coordinates(kernel, np.concatenate([points, new_points]))
    old, new = device.placed(both[: len(points)], columns), device.placed(both[len(points) :], new_columns)
    gram, lost = device.grams(old, new, None, symmetric=False)
    return CrossSums(gram, entry_error(both.shape[1], reach, device.steps(new_columns.shape[1]), lost))


def entry_error(dimension: int, reach: float, steps: tuple[int, ...], lost: float) -> float:
    """What all of the rounding amounts to, as an error of every entry of K.

    steps: columns of K between two additions in ordinary arithmetic; lost: what the half-precision parts of C leave out.
    """
    entry = 2.04 * reach + 0.37 * (dimension + 2) + 4
    sums = max(2 * (step + 1) + COLUMNS / step for step in steps)
    low = 2 * 2 * COLUMNS * 2.0**-11
    return UNIT * (entry + 2 * 4 + sums + low + 2) + lost


def opened_torch() -> Any:
    """torch with a GPU that it can use, or one sentence that says why there is none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra('`device="cuda"` needs torch: pip install "accountable-ope[gpu]".') from error
    if not torch.cuda.is_available():
        raise InvalidInput('`device="cuda"` needs a GPU that torch can use, and it finds none here. Use `device="cpu"`.')
    return torch


class PlacedRows(NamedTuple):
    """On the device: coordinates (d, n) in float32, and columns (n, k) in float64 of at most 1, with their scales.

    Padded by rows of 0 to a multiple of the longest side of a tile.
    """

    x: Any
    columns: Any
    scale: Any


class Device(NamedTuple):
    """torch, and the tiles that need triton."""

    torch: Any
    tiles: Any

    @classmethod
    def open(cls) -> Device:
        """The first GPU, or one sentence that says why there is none."""
        torch = opened_torch()
        try:
            return cls(torch, importlib.import_module(".cuda_tiles", __package__))
        except ImportError as error:
            raise MissingExtra('`device="cuda"` needs triton: pip install "accountable-ope[gpu]".') from error

    def coordinates(self, kernel: Kernel, points: FloatArray) -> tuple[Any, float]:
        """Points (n, d) on the device, scaled so that K = 2^(-|x - y|^2), around their middle; and the largest |x|."""
        if not isinstance(kernel, Gaussian):
            raise InvalidInput(_NOT_GAUSSIAN.format(kernel))
        if points.shape[1] > MOST_DIMENSIONS:
            raise InvalidInput(f'`device="cuda"` takes points of at most {MOST_DIMENSIONS} coordinates. Got {points.shape[1]}.')
        x = self._sent(points) * float(np.sqrt(1 / np.log(2)) / kernel.bandwidth)
        x -= 0.5 * (x.amax(dim=0) + x.amin(dim=0))
        return x, float((x**2).sum(dim=1).max().sqrt())

    def placed(self, x: Any, columns: FloatArray) -> PlacedRows:
        """Rows as the tiles want them."""
        torch = self.torch
        count, padded = len(columns), -(-len(columns) // self.tiles.LONGEST) * self.tiles.LONGEST
        places = torch.zeros(x.shape[1], padded, device="cuda", dtype=torch.float32)
        places[:, :count] = x.T
        unit = torch.zeros(padded, columns.shape[1], device="cuda", dtype=torch.float64)
        unit[:count] = self._sent(columns)
        scale = unit.abs().amax(dim=0).clamp(min=float(np.finfo(np.float64).tiny))
        return PlacedRows(places, unit.div_(scale), scale)

    def grams(
        self, left: PlacedRows, right: PlacedRows, progress: Progress | None, *, symmetric: bool
    ) -> tuple[FloatArray, float]:
        """C_left' K C_right, (k, k), symmetric: half of it, up to transposition; and what the half-precision parts leave out."""
        torch, tiles = self.torch, self.tiles
        c, d, widest = left.columns, right.columns, max(tiles.SHAPES)
        gram = torch.zeros(c.shape[1], d.shape[1], device="cuda", dtype=torch.float64)
        parts, lost = range(0, d.shape[1], widest), 0.0
        for at, first in enumerate(parts):
            part = slice(first, min(first + widest, d.shape[1]))
            columns = tiles.HalfColumns(d[:, part])
            lost = max(lost, columns.lost)
            product = torch.zeros(len(c), columns.width, device="cuda", dtype=torch.float64)  # KC
            for start in range(0, len(d), COLUMNS):
                stop = min(start + COLUMNS, len(d))
                rows = stop if symmetric else len(c)
                product[:rows] += tiles.products(left.x, right.x, columns, start, stop, rows, symmetric=symmetric)
                if progress is not None:
                    done = (stop / len(d)) ** 2 if symmetric else stop / len(d)
                    progress((at + done) / len(parts))
            gram[:, part] = c.T @ product[:, : part.stop - part.start]
        return self._fetched(gram * (left.scale[:, None] * right.scale / tiles.SCALE**2)), lost

    def diagonal(self, rows: PlacedRows) -> FloatArray:
        """C'C."""
        gram = (rows.columns.T @ rows.columns) * (rows.scale[:, None] * rows.scale)
        return self._fetched(0.5 * (gram + gram.T))

    def steps(self, columns: int) -> tuple[int, ...]:
        """Columns of K between two additions in ordinary arithmetic, for so many columns of C."""
        widest = max(self.tiles.SHAPES)
        widths = {self.tiles.width_for(min(widest, columns - first)) for first in range(0, columns, widest)}
        return tuple(self.tiles.SHAPES[width].step for width in sorted(widths))

    def _sent(self, values: FloatArray) -> Any:
        return self.torch.as_tensor(np.ascontiguousarray(values), device="cuda")

    def _fetched(self, values: Any) -> FloatArray:
        return np.asarray(values.cpu().numpy(), dtype=np.float64)
