"""Radii from the martingale sum S_n = sum_i eps_i K(x_i, .) in the Hilbert space of the kernel: loss = ||S_n||^2 / n^2."""

from __future__ import annotations

import math


def azuma(n: int, residual_width: float, kernel_supremum: float, delta: float) -> float:
    """Theorem A (Hilbert-space Azuma-Hoeffding with a predictable direction).

    If eps_i has conditional mean 0 and lies in an interval of length w given the past and x_i, then
    P( max_{j<=n} ||S_j|| >= r ) <= 2 exp(-2 r^2 / (n w^2 Kmax)), so with probability 1 - delta
        V-statistic <= w^2 Kmax log(2/delta) / (2 n).
    """
    return residual_width**2 * kernel_supremum * math.log(2 / delta) / (2 * n)
