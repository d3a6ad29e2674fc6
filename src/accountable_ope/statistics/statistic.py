"""The kernel Bellman statistic: all that the data say about Q, in two small matrices.

With C = [Z | v | 1] (and a last column of what an RKHS class misses), pair_gram = C'KC, diag_gram = C' diag(K) C and
w = (theta, -1, 0): V-statistic = w' pair_gram w / n^2 and U-statistic = w' (pair_gram - diag_gram) w / (n (n - 1)).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..programs.quadratic import Quadratic
from ..threads import BLOCK_ROWS, side_by_side, sum_by_blocks
from ..validation import FloatArray, matrix, vector
from .bellman import BellmanSystem
from .engines.engine import AnyEngine, engine_for
from .engines.finite_rank import reduce_pairs
from .engines.tiles import PairSums

_STORED = ("pair_gram", "diag_gram", "column_scale", "scalars")


@checked
@dataclass(frozen=True, eq=False)
class KernelStatistic:
    """C'KC and C' diag(K) C for the columns C = [Z | v | 1], and how exactly they are known.

    Attributes
    ----------
    pair_gram : array (k, k)
        C'KC.
    diag_gram : array (k, k)
        C' diag(K) C.
    column_scale : array (k,)
        Root mean square of every column of C, which turns `kernel_error` into a slack of the loss.
    count : int
        The number n of transitions.
    kernel_supremum : float
        sup K(x, x).
    kernel_error : float
        How far an entry of K may be off.
    has_remainder : bool
        Whether the last column is what the coordinates of an RKHS miss.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.statistics import bellman_system, kernel_statistic
    >>> system = bellman_system(Experience(data, mdp.starts, mdp.policy, discount=0.6), mdp.features())
    >>> statistic = kernel_statistic(system, aope.Gaussian(1.0))
    >>> theta = np.zeros(system.dimension)
    >>> statistic.dimension, statistic.variance()(theta) <= statistic.v_loss()(theta)
    (6, True)
    """

    pair_gram: FloatArray
    diag_gram: FloatArray
    column_scale: FloatArray
    count: int
    kernel_supremum: float
    kernel_error: float
    has_remainder: bool = False

    def __repr__(self) -> str:
        return f"KernelStatistic({self.count} rows, {self.dimension} coefficients)"

    @property
    def dimension(self) -> int:
        return len(self.pair_gram) - 2 - self.has_remainder

    def v_loss(self) -> Quadratic:
        """The V-statistic as a quadratic of theta: (Z theta - v)'K(Z theta - v) / n^2."""
        return self._loss(self.pair_gram / self.count**2)

    def u_loss(self) -> Quadratic:
        """The U-statistic as a quadratic of theta; it need not be convex."""
        return self._loss((self.pair_gram - self.diag_gram) / (self.count * (self.count - 1)))

    def variance(self) -> Quadratic:
        """V_n / n^2 as a quadratic of theta: sum_i K(x_i, x_i) eps_i(theta)^2 / n^2."""
        return self._loss(self.diag_gram / self.count**2)

    def _loss(self, gram: FloatArray) -> Quadratic:
        m = self.dimension
        return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]))

    @property
    def kappa(self) -> float:
        """sqrt(1'K1) / n: what a constant residual of one is worth in the square root of the loss."""
        ones = self.dimension + 1
        return float(np.sqrt(max(self.pair_gram[ones, ones], 0.0)) / self.count)

    @property
    def kappa_variance(self) -> float:
        """sqrt(sum_i K(x_i, x_i)) / n: what a constant residual of one is worth in the square root of V_n / n^2."""
        ones = self.dimension + 1
        return float(np.sqrt(max(self.diag_gram[ones, ones], 0.0)) / self.count)

    @property
    def missed(self) -> float:
        """sqrt(tau'K tau) / n: what an unseen part of norm one can add to the square root of the V-statistic."""
        return float(np.sqrt(max(self.pair_gram[-1, -1], 0.0)) / self.count) if self.has_remainder else 0.0

    @property
    def missed_variance(self) -> float:
        """sqrt(sum_i tau_i^2 K(x_i, x_i)) / n: what an unseen part of norm one can add to the square root of V_n / n^2."""
        return float(np.sqrt(max(self.diag_gram[-1, -1], 0.0)) / self.count) if self.has_remainder else 0.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as .npz, atomically."""
        scalars = np.array([self.count, self.kernel_supremum, self.kernel_error, self.has_remainder])
        save_arrays(path, dict(zip(_STORED, (self.pair_gram, self.diag_gram, self.column_scale, scalars), strict=True)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KernelStatistic:
        """Read what `save` wrote; nothing in the file is executed."""
        arrays = load_arrays(path, "a saved KernelStatistic", _STORED)
        pair_gram, diag_gram, column_scale, scalars = (arrays[name] for name in _STORED)
        if scalars.shape != (4,):
            raise InvalidFile(f"{os.fspath(path)} is not a saved KernelStatistic (it has {scalars.size} scalars).")
        count, supremum, error, remainder = scalars.tolist()
        return cls(pair_gram, diag_gram, column_scale, int(count), supremum, error, bool(remainder))


@checked
def kernel_statistic(
    system: BellmanSystem,
    kernel: Kernel,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    engine: AnyEngine | None = None,
) -> KernelStatistic:
    """The statistic of one system: one symmetric pass over all pairs, memory O(n k).

    Parameters
    ----------
    system : BellmanSystem
    kernel : Kernel
        The test kernel.
    options : TileOptions, optional
        How the pass over the pairs of rows is cut up.
    progress : callable, optional
        Called with the fraction done.
    engine : engine, optional
        Who computes the pass, as in `evaluate`.

    Returns
    -------
    KernelStatistic

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.statistics import bellman_system, kernel_statistic
    >>> system = bellman_system(Experience(data, mdp.starts, mdp.policy, discount=0.6), mdp.features())
    >>> kernel_statistic(system, aope.Gaussian(1.0)).count
    500
    """
    return kernel_statistics([system], kernel, options, progress, engine)[0]


@checked
def kernel_statistics(
    systems: Sequence[BellmanSystem],
    kernel: Kernel,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    engine: AnyEngine | None = None,
) -> list[KernelStatistic]:
    """The statistics of several classes on the same data, from one pass over the pairs.

    Parameters
    ----------
    systems : sequence of BellmanSystem
    kernel : Kernel
        The test kernel.
    options : TileOptions, optional
        How the pass over the pairs of rows is cut up.
    progress : callable, optional
        Called with the fraction done.
    engine : engine, optional
        Who computes the pass, as in `evaluate`.

    Returns
    -------
    list of KernelStatistic

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.statistics import bellman_system, kernel_statistics
    >>> experience = Experience(data, mdp.starts, mdp.policy, discount=0.6)
    >>> systems = [bellman_system(experience, aope.RandomFourier(m)) for m in (3, 8)]
    >>> [statistic.dimension for statistic in kernel_statistics(systems, aope.Gaussian(1.0))]
    [4, 9]
    """
    if not systems:
        raise InvalidInput("`systems` must be at least one system. Got none.")
    columns = [system.columns() for system in systems]
    stacked = columns[0] if len(columns) == 1 else side_by_side(columns)
    points = systems[0].points
    if engine is None:
        sums = reduce_pairs(kernel, points, stacked, options, progress)
    else:
        sums = engine_for(engine, kernel, points, stacked.shape[1], options).pair_sums(kernel, points, stacked, options, progress)
    return statistics_from(systems, stacked, sums, kernel)


def statistics_from(
    systems: Sequence[BellmanSystem], stacked: FloatArray, sums: PairSums, kernel: Kernel
) -> list[KernelStatistic]:
    """The statistic of every class, from sums over the columns of all of them side by side."""
    squares = sum_by_blocks(lambda rows: np.einsum("ij,ij->j", stacked[rows], stacked[rows]), len(stacked), BLOCK_ROWS)
    scale = np.sqrt(squares / len(stacked))
    if not (np.isfinite(sums.pair_gram).all() and np.isfinite(scale).all()):
        raise InvalidInput("The kernel statistic is not finite: states, rewards or features are too large to be squared.")
    statistics, end = [], 0
    for system in systems:
        start, end = end, end + system.dimension + 2 + (system.remainder is not None)
        part = slice(start, end)
        statistics.append(
            KernelStatistic(
                pair_gram=sums.pair_gram[part, part],
                diag_gram=sums.diag_gram[part, part],
                column_scale=scale[part],
                count=len(stacked),
                kernel_supremum=kernel.supremum,
                kernel_error=sums.kernel_error,
                has_remainder=system.remainder is not None,
            )
        )
    return statistics


@checked
def v_statistic(residuals: FloatArray, points: FloatArray, kernel: Kernel) -> float:
    """(1/n^2) sum_ij eps_i K(x_i, x_j) eps_j, for the residuals of any Q (see `bellman_residuals`).

    Parameters
    ----------
    residuals : array (n,)
        eps.
    points : array (n, d)
        x.
    kernel : Kernel

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Gaussian
    >>> from accountable_ope.statistics import v_statistic
    >>> round(v_statistic(np.array([1.0, 1.0]), np.array([[0.0], [1.0]]), Gaussian(1.0)), 4)  # (1 + exp(-1)) / 2
    0.6839
    """
    pairs, _ = _sums_of(residuals, points, kernel)
    return pairs / len(points) ** 2


@checked
def u_statistic(residuals: FloatArray, points: FloatArray, kernel: Kernel) -> float:
    """(1/(n(n-1))) sum_{i != j} eps_i K(x_i, x_j) eps_j.

    Parameters
    ----------
    residuals : array (n,)
        eps.
    points : array (n, d)
        x.
    kernel : Kernel

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Gaussian
    >>> from accountable_ope.statistics import u_statistic
    >>> round(u_statistic(np.array([1.0, 1.0]), np.array([[0.0], [1.0]]), Gaussian(1.0)), 4)  # exp(-1)
    0.3679
    """
    pairs, diagonal = _sums_of(residuals, points, kernel)
    return (pairs - diagonal) / (len(points) * (len(points) - 1))


def _sums_of(residuals: FloatArray, points: FloatArray, kernel: Kernel) -> tuple[float, float]:
    column = vector(residuals, "residuals")[:, None]
    points = matrix(points, "points")
    if len(column) != len(points) or len(points) < 2:
        raise InvalidInput(f"`residuals` must have one entry per point, at least two. Got {len(column)} and {len(points)}.")
    sums = reduce_pairs(kernel, points, column)
    return float(sums.pair_gram[0, 0]), float(sums.diag_gram[0, 0])
