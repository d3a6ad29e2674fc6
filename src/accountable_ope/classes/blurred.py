"""Kernels between points whose actions are normal around a mean.

With K_a(a, b) = exp(-||(a - b) / h||^2) = exp(-d'H^{-1}d / 2), d = a - b and H = diag(h^2 / 2), and independent normal errors of
covariance C on none, one or both of the two actions (t = 0, 1, 2),

    E K_a(a + e, b + f) = (det H / det(H + tC))^{1/2} exp(-d'(H + tC)^{-1} d / 2).

So <E K((s, a + e), .), E K((t, b + f), .)> = K_s(s, t) times that: sections averaged over normal actions need no draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InvalidInput
from ..kernels.kernel import Gaussian, Kernel, block
from ..problem.gaussian_policy import NO_LIST
from ..validation import FloatArray
from .bundles import factors


@dataclass(frozen=True, eq=False)
class BlurredKernel:
    """K_s(s, t) E K_a(a + e, b + f) between points (s, a) and (t, b).

    states: so many columns of a point, the first ones, are its state.
    """

    state_kernel: Kernel
    widths: FloatArray
    covariance: FloatArray
    states: int

    @classmethod
    def of(cls, kernel: Kernel, covariance: FloatArray, states: int, columns: int) -> BlurredKernel:
        """Raises where the kernel is no product of one over states and a Gaussian over actions."""
        parts = factors(kernel, states, columns)
        if parts is None or not isinstance(parts[1], Gaussian):
            raise InvalidInput(f"{kernel!r}: {NO_LIST}")
        return cls(parts[0], np.broadcast_to(parts[1].bandwidth, (columns - states,)), covariance, states)

    def block(self, x: FloatArray, y: FloatArray, normal: int) -> FloatArray:
        """All pairs; normal: how many of both actions are normal, 0 to 2."""
        d, (whiten, factor) = self.states, self._forms[normal]
        actions = block(Gaussian(1.0), x[:, d:] @ whiten, y[:, d:] @ whiten)
        return np.asarray(
            block(self.state_kernel, np.ascontiguousarray(x[:, :d]), np.ascontiguousarray(y[:, :d])) * factor * actions
        )

    def paired(self, x: FloatArray, y: FloatArray, normal: int) -> FloatArray:
        """Row by row."""
        d, (whiten, factor) = self.states, self._forms[normal]
        actions = Gaussian(1.0).paired(x[:, d:] @ whiten, y[:, d:] @ whiten)
        return np.asarray(self.state_kernel.paired(x[:, :d], y[:, :d]) * factor * actions)

    @cached_property
    def _forms(self) -> tuple[tuple[FloatArray, float], ...]:
        """For t = 0, 1, 2: a matrix W with d'(H + tC)^{-1} d / 2 = ||W'd||^2, and the factor of the determinants."""
        found = []
        for t in range(3):
            inner = np.diag(self.widths**2 / 2) + t * self.covariance
            factor = np.linalg.cholesky(inner)
            shrunk = float(np.exp(np.log(self.widths / np.sqrt(2)).sum() - np.log(np.diag(factor)).sum()))
            found.append((np.linalg.inv(factor).T / np.sqrt(2), shrunk))
        return tuple(found)
