"""K C for a Gaussian K on a GPU, fused: tiles of the kernel matrix live in registers. Needs triton, so imported when asked for.

Entries 2^(-|x - y|^2) come from differences of coordinates in float32, without the cancellation of |x|^2 + |y|^2 - 2 x'y.
Tensor cores multiply K = Kh + Kl / 2048 and C = Ch + Cl / 2048 in three products of half-precision numbers into float32. They
cut off what does not fit when they accumulate, a bias that would grow with the number of rows: so every tile starts from 0 and
is added to the others in ordinary arithmetic, which rounds to nearest.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# fmt: off


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _add_tile(left, right, high, low, ri, j, left_count, right_count, one, total, small, D: tl.constexpr, P: tl.constexpr, BJ: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: E501
    rj = j + tl.arange(0, BJ)
    pk = tl.arange(0, P)
    gap = tl.load(left + ri)[:, None] - tl.load(right + rj)[None, :]
    square = gap * gap
    for k in tl.static_range(1, D):
        gap = tl.load(left + k * left_count + ri)[:, None] - tl.load(right + k * right_count + rj)[None, :]
        square += gap * gap
    entry = tl.exp2(-square)
    entry_high = entry.to(tl.float16)
    entry_low = ((entry - entry_high.to(tl.float32)) * 2048.0).to(tl.float16)
    c_high = tl.load(high + rj[:, None] * P + pk[None, :])
    c_low = tl.load(low + rj[:, None] * P + pk[None, :])
    # `one` is 1, but the compiler does not know: it would fold the sum into the accumulator of the product.
    total = tl.fma(tl.dot(entry_high, c_high), one, total)
    small = tl.dot(entry_high, c_low, small)
    small = tl.dot(entry_low, c_high, small)
    return total, small


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _products(left, right, high, low, out, start, stop, left_count, right_count, one, D: tl.constexpr, P: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr, SYMMETRIC: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: E501
    i = tl.program_id(0)
    ri = i * BI + tl.arange(0, BI)
    total = tl.zeros((BI, P), tl.float32)
    small = tl.zeros((BI, P), tl.float32)
    first = start
    if SYMMETRIC:  # noqa: SIM102, known when it is compiled; tiles on the diagonal, halved, then those to the right of it
        if i * BI >= start:
            first = i * BI + BI
            for j in range(i * BI, i * BI + BI, BJ):
                total, small = _add_tile(left, right, high, low, ri, j, left_count, right_count, one, total, small, D, P, BJ)
            total *= 0.5
            small *= 0.5
    for j in range(first, stop, BJ):
        total, small = _add_tile(left, right, high, low, ri, j, left_count, right_count, one, total, small, D, P, BJ)
    tl.store(out + ri[:, None] * P + tl.arange(0, P)[None, :], total + small * (1.0 / 2048.0))


# fmt: on

SHAPES = {16: (64, 64, 4, 3), 32: (64, 64, 4, 3), 64: (64, 64, 4, 3), 128: (64, 32, 4, 3)}
"""(rows, columns, warps, stages) of a tile by the number of columns of C, the fastest of eight on an H200."""

TILE = (32, 64)
"""The least and the largest number of columns of a tile."""

LONGEST = 128
"""The longest side of a tile."""


class HalfColumns:
    """Columns of at most 1 in absolute value as two half-precision parts."""

    def __init__(self, columns: Any) -> None:
        self.high = columns.half()
        self.low = ((columns - self.high.float()) * 2048.0).half()
        self.width = columns.shape[1]


def products(left: Any, right: Any, columns: HalfColumns, start: int, stop: int, rows: int, *, symmetric: bool) -> Any:
    """sum over start <= j < stop of 2^(-|left_i - right_j|^2) columns_j for i < rows, float32; coordinates are (d, n) float32.

    All numbers of rows are multiples of LONGEST. symmetric: left is right; tiles on or above the diagonal, those on it halved.
    """
    height, length, warps, stages = SHAPES[columns.width]
    out = torch.empty(rows, columns.width, device=right.device, dtype=torch.float32)
    _products[(rows // height,)](
        left, right, columns.high, columns.low, out, start, stop, left.shape[1], right.shape[1], 1.0 + 1e-10,
        right.shape[0], columns.width, height, length, symmetric, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out
