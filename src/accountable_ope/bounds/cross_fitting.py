"""Q and weights of the rows, each fitted on the other folds: what a doubly robust estimate of the value is made of.

W(x) = [phi, 1, psi](x) are features, a constant and landmark coordinates; L = W(x) - discount E W(s', a'), l0 = E W(s0, a0) and
v = r, so that a function Q = W theta has the residuals v - L theta and the value l0'theta. On all folds but one:

- Q: the theta that minimizes (v - L theta)'P (v - L theta) + sigma^2 (||theta_phi||^2 / b_phi + ||theta_psi||^2 / b_psi), P the
  projection on the columns of W; the constant is free. Both b, and sigma^2, follow the evidence by MacKay's updates,
  b = ||theta_block||^2 / (effective coefficients of the block), sigma^2 = mean e^2.
- weights w = W omega, for which mean(w (v - L theta)) + l0'theta depends on theta as little as may be: the omega that minimizes
  (l0 - L'W omega / n)'B (l0 - L'W omega / n) + (sigma^2 / n) omega'(W'W / n) omega, B the diagonal of b, with a large entry for
  the constant. That is the bias that a Q of the prior's size leaves, plus the variance of the weighted residuals.

Both see the rows by sums over them only, so all folds together need one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import reduce

import numpy as np
from threadpoolctl import threadpool_limits

from ..validation import FloatArray, IntArray

UPDATES = 20
"""MacKay's updates; b and sigma^2 have settled long before."""

FREE = 1e3
"""The weight of the constant against that of the other coefficients: nearly all of it is balanced."""

SIGNAL = 100.0
"""How much larger than the noise Q is taken to be where rewards shall have no part in the weights: rewards that show nothing, as
where an event was missed, would else call for no weights at all. On logs of 10,000 rows of the tasks of `aope trust` effective
rows change by a factor of about 2 at most between 10 and 1000, but in one task."""


@dataclass(frozen=True, eq=False)
class Design:
    """W, L, v and l0, with the columns of W in blocks: features, the constant, landmark coordinates."""

    here: FloatArray
    """W (n, p)."""
    steps: FloatArray
    """L (n, p)."""
    target: FloatArray
    """v (n,)."""
    start: FloatArray
    """W at the start states, averaged over the policy, (N, p)."""
    objective: FloatArray
    """l0 (p,)."""
    constant: int
    """Which column is the constant: features before it, landmark coordinates after it."""

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The columns that are shrunk together."""
        blocks = (slice(0, self.constant), slice(self.constant + 1, self.here.shape[1]))
        return tuple(each for each in blocks if each.stop > each.start)

    def sums(self, rows: IntArray) -> Sums:
        """What the fits need of some of the rows."""
        W, L, v = self.here[rows], self.steps[rows], self.target[rows]
        return Sums(W.T @ W, W.T @ L, L.T @ L, W.T @ v, L.T @ v, v @ v, float(len(v)))


@dataclass(frozen=True, eq=False)
class Sums:
    """W'W, W'L, L'L, W'v, L'v, v'v and the number of rows."""

    ww: FloatArray
    wl: FloatArray
    ll: FloatArray
    wv: FloatArray
    lv: FloatArray
    vv: FloatArray
    count: float

    def plus(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, eq=False)
class QFit:
    """theta, and the sizes that the evidence gives to its blocks and to the noise."""

    theta: FloatArray
    sizes: tuple[float, ...]
    noise: float


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Out of fold, row by row: weight times residual, the weight, and theta of every fold."""

    weighted: FloatArray
    weights: FloatArray
    blind: FloatArray
    """Weights as if nothing were known of rewards, which show what the target policy does whatever was earned."""
    theta: FloatArray
    """The mean of the folds' theta, by rows."""

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2, of these weights or those."""
        return min(_effective(self.weights), _effective(self.blind))


def cross_fit(design: Design, folds: IntArray) -> CrossFit:
    """Q and weights for every row from the rows of the other folds."""
    rows = [np.flatnonzero(folds == k) for k in range(int(folds.max()) + 1)]
    parts = [design.sums(each) for each in rows]
    weighted, weights, blind = np.empty((3, len(folds)))
    mean, unknown = np.zeros_like(design.objective), _unknown(design)
    # Matrices are small here, and threads that wait for each other cost more than they save.
    with threadpool_limits(limits=1, user_api="blas"):
        for k, here in enumerate(rows):
            others = reduce(Sums.plus, parts[:k] + parts[k + 1 :])  # no subtraction: nothing of the fold is left over
            q = fit_q_by_evidence(others, design)
            w = design.here[here] @ fit_weights(others, design, q)
            weighted[here] = w * (design.target[here] - design.steps[here] @ q.theta)
            weights[here] = w
            blind[here] = design.here[here] @ fit_weights(others, design, unknown)
            mean += q.theta * (len(here) / len(folds))
    return CrossFit(weighted, weights, blind, mean)


def _unknown(design: Design) -> QFit:
    """A Q of which nothing is known but that landmark coordinates follow it: features are in any unit, and are left out."""
    landmarks = design.blocks[-1].start > design.constant
    sizes = (*(0.0 for _ in design.blocks[1:]), SIGNAL) if landmarks else tuple(SIGNAL for _ in design.blocks)
    return QFit(np.zeros_like(design.objective), sizes, 1.0)


def _effective(weights: FloatArray) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0


def fit_q_by_evidence(sums: Sums, design: Design) -> QFit:
    """theta by two-stage least squares with a ridge of each block that the evidence chooses."""
    from scipy.linalg import cho_factor, cho_solve, solve_triangular

    p, n, blocks = len(sums.lv), sums.count, design.blocks
    factor = np.linalg.cholesky(sums.ww + _jitter(sums.ww, 1e-9))
    A, b = (solve_triangular(factor, right, lower=True, check_finite=False) for right in (sums.wl, sums.wv))
    H, r = A.T @ A, A.T @ b
    unit = float(sums.vv) / n or 1.0  # of squared rewards, so that nothing depends on their unit
    noise, sizes = unit, [10 * unit] * (len(blocks) - 1) + [unit]
    # The constant is free, and directions that no row sees are not blown up.
    floor, theta = 1e-10 * float(np.trace(H)) / p, np.zeros(p)
    for _ in range(UPDATES):
        ridge = np.full(p, floor)
        for block, size in zip(blocks, sizes, strict=True):
            ridge[block] = max(noise / size, 1e-3 * floor)
        cholesky = cho_factor(H + np.diag(ridge), check_finite=False)
        theta = cho_solve(cholesky, r, check_finite=False)
        diagonal = np.diagonal(cho_solve(cholesky, np.eye(p), check_finite=False))
        noise = max(float(sums.vv - 2 * theta @ sums.lv + theta @ sums.ll @ theta) / n, 1e-12 * unit)
        for index, block in enumerate(blocks):
            effective = max(float((1 - ridge[block] * diagonal[block]).sum()), 0.1)
            sizes[index] = float(np.clip((theta[block] ** 2).sum() / effective, 1e-8 * unit, 1e8 * unit))
    return QFit(theta, tuple(sizes), noise)


def fit_weights(sums: Sums, design: Design, q: QFit) -> FloatArray:
    """omega."""
    n, G = sums.count, sums.wl.T / sums.count
    prior = np.empty(len(G))
    prior[design.constant] = FREE * max(*q.sizes, q.noise)
    for block, size in zip(design.blocks, q.sizes, strict=True):
        prior[block] = size
    M = (G.T * prior) @ G + q.noise / n * sums.ww / n
    return np.asarray(np.linalg.solve(M + _jitter(M, 1e-12), (G.T * prior) @ design.objective))


def _jitter(matrix: FloatArray, share: float) -> FloatArray:
    """A small multiple of the identity, for columns that repeat each other."""
    size = len(matrix)
    return np.asarray(share * float(np.trace(matrix)) / size * np.eye(size))
