"""Residuals smoothed by a kernel of finite rank, from sums over rows that are gone: psi(x)'P c at points that were among them."""

from __future__ import annotations

import numpy as np

from ..kernels.kernel import LabeledRank
from ..validation import FloatArray, row_keys
from .partial import PartialStatistic


def smoothed(sums: PartialStatistic, kernel: LabeledRank, points: FloatArray, coefficients: FloatArray) -> FloatArray:
    """sum_i K(x_i, x) C_i c at some of the points that were summed, C = [Z | v | 1].

    Parameters
    ----------
    sums : PartialStatistic
        P = Psi'C.
    kernel : LabeledRank
        That of the sums.
    points : array (n, d)
        Among those that were summed.
    coefficients : array (m + 2, k)
        c, one column for each sum.

    Returns
    -------
    array (n, k)
    """
    projected, names = sums.projected @ coefficients, kernel.labels(points)
    if not np.array_equal(names, sums.labels):  # which features there are depends on the points
        known = row_keys(sums.labels)
        order = np.argsort(known)
        projected = projected[order[np.searchsorted(known, row_keys(names), sorter=order)]]
    return kernel.expand(points, np.ascontiguousarray(projected))
