"""Sums on one GPU in double precision: exact pairs with a Gaussian kernel, and random features in one pass.

Slower than half-precision products, and off by little more than on a CPU: intervals of a million rows need that. Of pairs only
blocks on or above the diagonal are computed, and no block is larger than a few hundred mebibytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.blocks import ROWS_AT_ONCE, blocks
from ...kernels.kernel import Gaussian
from ...kernels.products import Progress
from ...kernels.random_features import RandomFeatureKernel
from ...validation import FloatArray
from .finite_rank import diagonal_sums, rank_error
from .tiles import PairSums

UNIT = 2.0**-53


def double_pair_sums(
    torch: Any, kernel: Gaussian, points: FloatArray, columns: FloatArray, progress: Progress | None = None
) -> PairSums:
    """C'KC with -|x - y|^2 = 2 x'y - |x|^2 - |y|^2 as one product of [2x, -|x|^2, 1] and [y, 1, -|y|^2]."""
    x = points / kernel.bandwidth
    x = x - 0.5 * (x.max(axis=0) + x.min(axis=0))
    squares = (x**2).sum(axis=1)
    ones = np.ones(len(x))
    left = torch.as_tensor(np.column_stack([2 * x, -squares, ones]), device="cuda")
    right = torch.as_tensor(np.column_stack([x, ones, -squares]), device="cuda")
    c = torch.as_tensor(np.ascontiguousarray(columns), device="cuda")
    half = torch.zeros(columns.shape[1], columns.shape[1], device="cuda", dtype=torch.float64)
    edges = [rows.start for rows in blocks(len(x))] + [len(x)]
    for at in range(len(edges) - 1):
        here = slice(edges[at], edges[at + 1])
        weighted = torch.zeros(edges[at + 1] - edges[at], columns.shape[1], device="cuda", dtype=torch.float64)
        for other in range(at, len(edges) - 1):
            there = slice(edges[other], edges[other + 1])
            tile = torch.matmul(left[here], right[there].T).clamp_(max=0.0).exp_()
            weighted += torch.matmul(tile, c[there] * (0.5 if other == at else 1.0))
        half += c[here].T @ weighted
        if progress is not None:
            progress(1 - (1 - edges[at + 1] / len(x)) ** 2)
    gram = np.asarray(half.cpu().numpy(), dtype=np.float64)
    diagonal = diagonal_sums(kernel, points, columns)
    reach = float(squares.max(initial=0.0))
    return PairSums(gram + gram.T, 0.5 * (diagonal + diagonal.T), double_error(x.shape[1], reach, len(x)))


def double_error(dimension: int, reach: float, rows: int) -> float:
    """As an error of every entry of K; reach: the largest |x|^2 in units of the kernel.

    The exponent is a sum of d + 2 products of size at most 2 reach each, exp is good to 2 units; sums over a block and over
    blocks, once for KC and once for C'(KC).
    """
    exponent = 4 * (dimension + 4) * reach + 4
    sums = 2 * (ROWS_AT_ONCE + -(-rows // ROWS_AT_ONCE) + 4)
    return UNIT * (exponent + sums)


def double_feature_sums(
    torch: Any, kernel: RandomFeatureKernel, points: FloatArray, columns: FloatArray, progress: Progress | None = None
) -> PairSums:
    """(Psi'C)'(Psi'C), blocks of rows added one after the other."""
    frequencies = torch.as_tensor(kernel.frequencies(points.shape[1]).T.copy(), device="cuda")
    total = torch.zeros(2 * kernel.dimension, columns.shape[1], device="cuda", dtype=torch.float64)
    parts = list(blocks(len(points)))
    for number, rows in enumerate(parts):
        phase = torch.as_tensor(points[rows], device="cuda") @ frequencies
        waves = torch.cat([phase.cos(), phase.sin()], dim=1)
        total += waves.T @ torch.as_tensor(np.ascontiguousarray(columns[rows]), device="cuda")
        if progress is not None:
            progress((number + 1) / len(parts))
    projected = np.asarray(total.cpu().numpy(), dtype=np.float64) / np.sqrt(kernel.dimension)
    diagonal = diagonal_sums(kernel, points, columns)
    # A cosine of a phase that is off by (d + 1) units of it.
    largest = float(np.abs(points).sum(axis=1).max(initial=0.0) * np.abs(kernel.frequencies(points.shape[1])).max(initial=0.0))
    error = rank_error(kernel.supremum, len(projected), ROWS_AT_ONCE + len(parts)) + 4 * UNIT * (points.shape[1] + 2) * largest
    return PairSums(projected.T @ projected, 0.5 * (diagonal + diagonal.T), error)
