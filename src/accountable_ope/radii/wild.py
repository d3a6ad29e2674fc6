"""The wild radius: a quantile of the loss under Gaussian multiples of the residuals."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..kernels.kernel import FiniteRank, Kernel, distinct_rows, group_sums
from ..programs.cholesky import pivoted_cholesky
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray, probability_level, whole

RANK = 300
"""So many eigenvalues of the law of the wild radius are computed."""

NEGLIGIBLE = 1e-12
"""Eigenvalues below this share of the largest count as none."""


@checked
def wild_radius(
    system: BellmanSystem, kernel: Kernel, theta: FloatArray, delta: float, *, draws: int = 10_000, seed: int = 0
) -> float:
    """The (1 - delta) quantile of (e w)'K(e w) / n^2 over w ~ N(0, I), e the residuals at theta.

    theta is to be the minimizer of the loss over a class that is small against the data: too many coefficients leave no residual.
    The law is that of sum_j mu_j chi2_1, mu_j the eigenvalues of diag(e) K diag(e) / n^2; they add up to sum_i e_i^2 K_ii / n^2.
    The RANK largest come from a pivoted Cholesky factorization, O(n RANK^2). The others, if any, are taken as equal to the
    smallest of them, the most that their sum can vary. The quantile is that of `draws` from this law.

    Parameters
    ----------
    system : BellmanSystem
    kernel : Kernel
    theta : array (m,)
        The minimizer of the loss.
    delta : float
    draws : int
        How many draws the quantile is taken of.
    seed : int
        Seed of the draws.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.statistics import bellman_system, kernel_statistic
    >>> system = bellman_system(Experience(data, mdp.starts, mdp.policy, discount=0.6), mdp.features())
    >>> from accountable_ope.radii import wild_radius
    >>> kernel = aope.Gaussian(1.0)
    >>> theta = aope.fit_q(data, mdp.policy, kernel=kernel, features=mdp.features(), discount=0.6).theta
    >>> wild_radius(system, kernel, theta, 0.01) > wild_radius(system, kernel, theta, 0.1) > 0
    True
    """
    probability_level(delta)
    generator = np.random.default_rng(whole(seed, "seed", least=0))
    whole(draws, "draws", least=1)
    mu, others = _spectrum(kernel, system.points, system.residuals_at(theta))
    sums = np.zeros(draws)
    for eigenvalue in mu:
        sums += eigenvalue * generator.standard_normal(draws) ** 2
    if others > 0:
        sums += mu[-1] * generator.chisquare(others / mu[-1], draws)
    return float(np.quantile(sums, 1 - delta)) / len(system.target) ** 2


def _spectrum(kernel: Kernel, points: FloatArray, e: FloatArray) -> tuple[FloatArray, float]:
    """The largest eigenvalues of diag(e) K diag(e), largest first, and the sum of the others."""
    total = float(e**2 @ kernel.diagonal(points))
    if total == 0:
        return np.zeros(0), 0.0
    # Many thin products: more than one BLAS thread only gets in its own way.
    with threadpool_limits(limits=1, user_api="blas"):
        mu = np.linalg.eigvalsh(_weighted_gram(kernel, points, e))[::-1]
    mu = mu[mu > NEGLIGIBLE * mu[0]]
    return mu, max(total - float(mu.sum()), 0.0)


def _weighted_gram(kernel: Kernel, points: FloatArray, e: FloatArray) -> FloatArray:
    """Psi'Psi with Psi Psi' = diag(e) K diag(e), as nearly as RANK columns allow; all of it where the kernel has few features."""
    # Rows at the same point add up to one Gaussian of variance sum e_i^2, so only distinct points count.
    first, group = distinct_rows(points)
    distinct, squares = points[first], group_sums(group, e[:, None] ** 2)[:, 0]
    if isinstance(kernel, FiniteRank) and kernel.rank(distinct) < len(distinct):
        return kernel.gram(distinct, squares)
    weights, diagonal = np.sqrt(squares), squares * kernel.diagonal(distinct)
    tiles, column = kernel.prepare(distinct, distinct, np.float64), np.empty((len(distinct), 1))

    def weighted_column(j: int) -> FloatArray:
        tiles.fill(slice(0, len(distinct)), slice(j, j + 1), column)
        return np.asarray(weights * weights[j] * column[:, 0])

    rank = min(RANK, len(distinct))
    L, _ = pivoted_cholesky(diagonal, weighted_column, rank=rank, floor=1e-6 * float(diagonal.max()), order="F")
    return np.asarray(L.T @ L)
