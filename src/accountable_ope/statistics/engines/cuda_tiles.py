"""K C for a Gaussian K on a GPU, fused: tiles of the kernel matrix live in registers. Needs triton, so imported when asked for.

Entries 2^(-|x - y|^2) come from differences of coordinates in float32, without the cancellation of |x|^2 + |y|^2 - 2 x'y.
Tensor cores multiply K = Kh + Kl and C = Ch + Cl in three products of half-precision numbers into float32; both are scaled by
2^11 first, K inside of its exponent and C before, so that the low parts of what counts are no subnormal numbers. Tensor cores
cut off what does not fit when they accumulate, a bias that would grow with the number of rows: so every few tiles the sum starts
from 0 and is added to the others in ordinary arithmetic, which rounds to nearest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

SCALE = 2.0**11
"""Of K, and of C: their product is too large by its square."""

# fmt: off


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _add_tiles(left, right, high, low, ri, j, left_count, right_count, one, total, small, D: tl.constexpr, P: tl.constexpr, BJ: tl.constexpr, CHAIN: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: E501
    pk = tl.arange(0, P)
    part = tl.zeros((ri.shape[0], P), tl.float32)
    for link in tl.static_range(CHAIN):
        rj = j + link * BJ + tl.arange(0, BJ)
        gap = tl.load(left + ri)[:, None] - tl.load(right + rj)[None, :]
        square = tl.fma(gap, gap, -11.0)
        for k in tl.static_range(1, D):
            gap = tl.load(left + k * left_count + ri)[:, None] - tl.load(right + k * right_count + rj)[None, :]
            square = tl.fma(gap, gap, square)
        entry = tl.exp2(-square)
        entry_high = entry.to(tl.float16)
        entry_low = (entry - entry_high.to(tl.float32)).to(tl.float16)
        c_high = tl.load(high + rj[:, None] * P + pk[None, :])
        c_low = tl.load(low + rj[:, None] * P + pk[None, :])
        part = tl.dot(entry_high, c_high, part)
        small = tl.dot(entry_high, c_low, small)
        small = tl.dot(entry_low, c_high, small)
    # `one` is 1, but the compiler does not know: it would fold the sum into the accumulator of the product.
    return tl.fma(part, one, total), small


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _products(left, right, high, low, out, start, stop, left_count, right_count, one, D: tl.constexpr, P: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr, CHAIN: tl.constexpr, SYMMETRIC: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: E501
    i = tl.program_id(0)
    ri = i * BI + tl.arange(0, BI)
    total = tl.zeros((BI, P), tl.float32)
    small = tl.zeros((BI, P), tl.float32)
    first = start
    if SYMMETRIC:  # noqa: SIM102, known when it is compiled; tiles on the diagonal, halved, then those to the right of it
        if i * BI >= start:
            first = i * BI + BI
            for j in range(i * BI, i * BI + BI, BJ * CHAIN):
                total, small = _add_tiles(left, right, high, low, ri, j, left_count, right_count, one, total, small, D, P, BJ, CHAIN)  # noqa: E501
            total *= 0.5
            small *= 0.5
    for j in range(first, stop, BJ * CHAIN):
        total, small = _add_tiles(left, right, high, low, ri, j, left_count, right_count, one, total, small, D, P, BJ, CHAIN)
    tl.store(out + ri[:, None] * P + tl.arange(0, P)[None, :], total + small)


# fmt: on


class Shape(NamedTuple):
    """A tile: its rows and columns, how many of them are multiplied before their sum is added, and how triton runs it."""

    rows: int
    columns: int
    chain: int
    warps: int
    stages: int

    @property
    def step(self) -> int:
        """Columns of K between two additions in ordinary arithmetic."""
        return self.columns * self.chain


SHAPES = {16: Shape(64, 32, 1, 2, 3), 32: Shape(64, 64, 1, 4, 3), 64: Shape(64, 32, 2, 4, 3), 128: Shape(128, 32, 2, 8, 3)}
"""By the number of columns of C, the fastest of those tried on an H200."""

LONGEST = 128
"""The longest side of a tile."""


def width_for(columns: int) -> int:
    """The least width of SHAPES that so many columns of C fit into."""
    return min(width for width in SHAPES if width >= columns)


class HalfColumns:
    """Columns of at most 1 in absolute value, scaled, as two half-precision parts.

    lost: the largest sum of what the parts leave out, over rows, as a share of the sum of a column's absolute values.
    """

    def __init__(self, columns: Any) -> None:
        self.width = width_for(columns.shape[1])
        scaled = torch.zeros(len(columns), self.width, device=columns.device, dtype=torch.float64)
        scaled[:, : columns.shape[1]] = SCALE * columns
        self.high = scaled.half()
        rest = scaled - self.high
        self.low = rest.half()
        missed, all_of_it = (rest - self.low).abs().sum(dim=0), scaled.abs().sum(dim=0)
        self.lost = float((missed / all_of_it.clamp(min=torch.finfo(torch.float64).tiny)).max())


def products(left: Any, right: Any, columns: HalfColumns, start: int, stop: int, rows: int, *, symmetric: bool) -> Any:
    """SCALE^2 times sum over start <= j < stop of 2^(-|left_i - right_j|^2) columns_j for i < rows, float32.

    Coordinates are (d, n) float32. All numbers of rows are multiples of LONGEST. symmetric: left is right; tiles on or above the
    diagonal, those on it halved.
    """
    shape = SHAPES[columns.width]
    out = torch.empty(rows, columns.width, device=right.device, dtype=torch.float32)
    _products[(rows // shape.rows,)](
        left, right, columns.high, columns.low, out, start, stop, left.shape[1], right.shape[1], 1.0 + 1e-10,
        right.shape[0], columns.width, shape.rows, shape.columns, shape.chain, symmetric,
        num_warps=shape.warps, num_stages=shape.stages,
    )  # fmt: skip
    return out
