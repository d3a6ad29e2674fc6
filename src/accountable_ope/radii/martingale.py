"""Radii from the martingale sum S_n = sum_i eps_i K(x_i, .) in the Hilbert space of the kernel: loss = ||S_n||^2 / n^2.

At Q of the target policy eps_i has mean 0 given the past and x_i. V_n = sum_i eps_i^2 K(x_i, x_i) is its quadratic variation, and
psi_E(x) = -log(1 - x) - x.
"""

from __future__ import annotations

import math

import numpy as np

from ..validation import FloatArray


def azuma(n: int, residual_width: float, kernel_supremum: float, delta: float) -> float:
    """Theorem A (Hilbert-space Azuma-Hoeffding with a predictable direction).

    If eps_i has conditional mean 0 and lies in an interval of length w given the past and x_i, then
    P( max_{j<=n} ||S_j|| >= r ) <= 2 exp(-2 r^2 / (n w^2 Kmax)), so with probability 1 - delta
        V-statistic <= w^2 Kmax log(2/delta) / (2 n).
    """
    return residual_width**2 * kernel_supremum * math.log(2 / delta) / (2 * n)


def azuma_anytime(n: int, residual_width: float, kernel_supremum: float, delta: float, planned: int) -> float:
    """Theorem A' (the Gaussian mixture of Theorem A), valid for all n at once.

    With B_n = n w^2 Kmax / 4 and rho > 0 fixed in advance, with probability 1 - delta, for all n,
        ||S_n||^2 <= 2 (B_n + rho) (log(1/delta) + log(1 + B_n/rho) / 2).
    rho = B_planned / 8, about best near n = `planned`, which is a choice made before the data and costs nothing but tightness.
    """
    variance = n * residual_width**2 * kernel_supremum / 4
    rho = planned * residual_width**2 * kernel_supremum / 32
    if rho == 0:
        return 0.0
    return float(gaussian_mixture(np.array(variance), rho, delta)) / n**2


def gaussian_mixture(variance: FloatArray, rho: float, delta: float) -> FloatArray:
    """f_rho(B) = 2 (B + rho) (log(1/delta) + log(1 + B/rho) / 2), increasing and convex in B; its square root is concave.

    Theorem A': ||S_n||^2 <= f_rho(B_n) for all n. Theorem D: where eps_i is symmetric about 0 given the past,
    ||S_n||^2 <= f_rho(V_n) for all n, with the observed V_n at Q and no range at all.
    """
    return np.asarray(2 * (variance + rho) * (math.log(1 / delta) + 0.5 * np.log1p(variance / rho)))


def psi_exponential(x: FloatArray) -> FloatArray:
    """psi_E(x) = -log(1 - x) - x on [0, 1)."""
    return np.asarray(-np.log1p(-x) - x)


def empirical_bernstein(variance: float, residual_bound: float, rate: float, delta: float) -> float:
    """Theorem B at one rate: a bound of ||S_n|| for all n at once, with probability 1 - delta.

    If ||eps_i K(x_i, .)|| <= b, then for every rate l in (0, 1/b), fixed in advance,
        ||S_n|| <= (log(2/delta) + psi_E(l b) V_n / b^2) / l.
    """
    b = residual_bound
    return float((math.log(2 / delta) + psi_exponential(np.array(rate * b)) * variance / b**2) / rate)


def gamma_exponential(variance: float, residual_bound: float, rho: float, delta: float) -> float:
    """Theorem B mixed over rates by a truncated gamma density (B3): a bound of ||S_n|| for all n at once.

    The root s of log m(s, V_n) = log(2/delta) with, for r = rho/b^2, A = (V + rho)/b^2, X = (b s + V + rho)/b^2,
        log m = r log r - lnGamma(r) - ln P(r, r) + lnGamma(A) + ln P(A, X) - A ln X + (b s + V)/b^2,
    P the regularized lower incomplete gamma function; rho > 0 is fixed in advance.
    """
    from scipy.optimize import brentq
    from scipy.special import gammainc, gammaln

    b2 = residual_bound**2
    r, a = rho / b2, (variance + rho) / b2
    lead = r * math.log(r) - gammaln(r) - math.log(gammainc(r, r)) + gammaln(a) - math.log(2 / delta)

    def excess(s: float) -> float:
        x = (residual_bound * s + variance + rho) / b2
        return float(lead + np.log(gammainc(a, x)) - a * math.log(x) + (residual_bound * s + variance) / b2)

    high = residual_bound + math.sqrt(variance)
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-12 * high))


def gamma_exponential_rho(planned_variance: float, delta: float) -> float:
    """The rho at which `gamma_exponential` is about tightest near V_n = planned_variance."""
    log = math.log(1 / delta)
    return planned_variance / (2 * log + math.log1p(2 * log))


def self_normalized(log_determinant: float, scale: float, delta: float) -> float:
    """Theorem C (self-normalized, a Gaussian mixture over directions), valid for all n at once.

    If eps_i is w/2-sub-Gaussian given the past (an interval of length w suffices) and c > 0 is fixed in advance, then with
    probability 1 - delta, sigma = w/2,
        eps' K (I + c sigma^2 K)^{-1} eps <= (log det(I + c sigma^2 K) + 2 log(1/delta)) / c.
    """
    return (log_determinant + 2 * math.log(1 / delta)) / scale
