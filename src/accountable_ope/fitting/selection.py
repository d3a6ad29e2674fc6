"""Choosing kernel and features on the earlier rows.

A bound conditions on whatever was chosen before its data happened, so a choice on earlier rows costs rows but no probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..classes.features import RandomFourier
from ..errors import InvalidInput
from ..kernels.kernel import Gaussian, Kernel
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import Transitions
from ..statistics.bellman import bellman_residuals
from ..statistics.statistic import v_statistic
from ..validation import FloatArray, matrix, number, positive, whole
from .least_loss import fit_q

PAPER_BANDWIDTHS = (0.2, 0.5, 0.6, 0.8, 1.0)
"""The bandwidths of the features in the paper's experiments."""

FITTING_SHARE = 0.7
"""The share of the earlier rows that candidates are fitted on; the rest of them compares the candidates."""


@checked
@dataclass(frozen=True)
class Candidates:
    """Random Fourier classes to choose from.

    Parameters
    ----------
    dimension : int
        Features of each class.
    feature_bandwidths : tuple of float
        One class per bandwidth.
    kernel_bandwidth : float, optional
        That of the test kernel; by default the median distance of the earlier points.
    seed : int
        Seed of the random features.
    keep : int
        How many classes are kept, the best ones.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where more classes are to be kept than there are bandwidths.

    Examples
    --------
    >>> from accountable_ope.fitting import Candidates
    >>> [each.bandwidth for each in Candidates(dimension=5, feature_bandwidths=(0.5, 1.0)).classes()]
    [0.5, 1.0]
    """

    dimension: int = 10
    feature_bandwidths: tuple[float, ...] = PAPER_BANDWIDTHS
    kernel_bandwidth: float | None = None
    seed: int = 0
    keep: int = 2
    intercept: bool = True

    def __post_init__(self) -> None:
        many = len(self.classes())
        if not 1 <= whole(self.keep, "keep", least=1) <= many:
            raise InvalidInput(f"`keep` must not exceed the number of `feature_bandwidths` ({many}). Got {self.keep}.")
        if self.kernel_bandwidth is not None:
            positive(self.kernel_bandwidth, "kernel_bandwidth")

    def classes(self) -> list[RandomFourier]:
        """One class per bandwidth."""
        bandwidths = [positive(h, "feature_bandwidths") for h in self.feature_bandwidths]
        return [RandomFourier(self.dimension, h, self.seed, self.intercept) for h in bandwidths]


@dataclass(frozen=True)
class Candidate:
    """A class, and the V-statistic of its fitted Q on rows that the fit did not see."""

    features: RandomFourier
    held_out_loss: float


@checked
@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen on the first rows, and the rows that are left for a bound.

    Attributes
    ----------
    kernel : Gaussian
    kernel_selected : bool
        Whether the bandwidth of the kernel was chosen on the earlier rows too, rather than given.
    features : tuple of RandomFourier
        The best classes, best first.
    earlier_rows : int
        How many rows the choice was made on.
    later : Transitions
        The others.
    table : tuple of Candidate
        Every candidate in the order given.
    """

    kernel: Gaussian
    kernel_selected: bool
    features: tuple[RandomFourier, ...]
    earlier_rows: int
    later: Transitions
    table: tuple[Candidate, ...]

    def __repr__(self) -> str:
        return f"Selection({self.kernel!r}, {list(self.features)!r}, on {self.earlier_rows} earlier rows)"


@checked
def median_bandwidth(points: ArrayLike, limit: int = 1000) -> float:
    """The median of ||x_i - x_j||, i < j, over at most `limit` evenly spaced points; never 0.

    Parameters
    ----------
    points : array (n, d)
        At least two.
    limit : int

    Returns
    -------
    float

    Examples
    --------
    >>> from accountable_ope.fitting import median_bandwidth
    >>> median_bandwidth([[0.0], [1.0], [3.0]])
    2.0
    """
    from scipy.spatial.distance import pdist

    rows = matrix(points, "points")
    if len(rows) < 2:
        raise InvalidInput(f"`points` must have at least two rows. Got {len(rows)}.")
    whole(limit, "limit", least=2)
    if len(rows) > limit:
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, limit).astype(np.int64))]
    distances = pdist(rows)
    # Where more than half of the pairs coincide, as in a table, a kernel far narrower than the rest tells points apart.
    return float(max(np.median(distances), 1e-3 * distances.max(), 1e-6))


@checked
def pessimistic_union(dimension: int = 10, seed: int = 0, intercept: bool = True) -> list[RandomFourier]:
    """The paper's classes, one per bandwidth; given together to `bound_value` they give the hull of their intervals.

    Parameters
    ----------
    dimension : int
        Features of each class.
    seed : int
    intercept : bool
        Whether an unpenalized constant is added.

    Returns
    -------
    list of RandomFourier

    Examples
    --------
    >>> from accountable_ope.fitting import pessimistic_union
    >>> [each.bandwidth for each in pessimistic_union(dimension=5)]
    [0.2, 0.5, 0.6, 0.8, 1.0]
    """
    return Candidates(dimension, seed=seed, intercept=intercept).classes()


@checked
def select(
    data: Transitions,
    policy: Policy,
    *,
    discount: float,
    candidates: Candidates = Candidates(),  # noqa: B008  a frozen record
    earlier_share: float = 0.2,
) -> Selection:
    """The best random Fourier classes by held-out kernel loss, all on the earlier rows.

    The earlier rows are split once more: `fit_q` on the first of them, (1/n^2) sum_ij eps_i K(x_i, x_j) eps_j of its residuals
    on the others.

    Parameters
    ----------
    data : Transitions
        All rows, in the order of generation.
    policy : Policy
        The target policy.
    discount : float
        The discount factor.
    candidates : Candidates
        What to choose from, and how many to keep.
    earlier_share : float
        The share of the rows that the choice is made on.

    Returns
    -------
    Selection

    Raises
    ------
    InvalidInput
        Where the earlier share leaves too few rows on one side.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> from accountable_ope.fitting import Candidates, select
    >>> found = select(data, mdp.policy, discount=0.6, candidates=Candidates(dimension=5, keep=1), earlier_share=0.4)
    >>> len(found.features), found.earlier_rows, len(found.later)
    (1, 200, 300)
    """
    if not 0 <= number(discount, "discount") <= 1:
        raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
    earlier, later = data.split(number(earlier_share, "earlier_share"))
    fitting, comparing = _inner_split(earlier, earlier_share)
    given = candidates.kernel_bandwidth
    kernel = Gaussian(median_bandwidth(state_action_points(earlier.states, earlier.actions, policy)) if given is None else given)
    table = tuple(
        Candidate(each, _held_out_loss(each, fitting, comparing, policy, kernel, discount)) for each in candidates.classes()
    )
    best = sorted(table, key=lambda candidate: candidate.held_out_loss)[: candidates.keep]
    return Selection(kernel, given is None, tuple(each.features for each in best), len(earlier), later, table)


def _held_out_loss(
    features: RandomFourier, fitting: Transitions, comparing: Transitions, policy: Policy, kernel: Kernel, discount: float
) -> float:
    q = fit_q(fitting, policy, kernel=kernel, features=features, discount=discount)
    points: FloatArray = state_action_points(comparing.states, comparing.actions, policy)
    return v_statistic(bellman_residuals(q, comparing, policy, discount), points, kernel)


def _inner_split(earlier: Transitions, earlier_share: float) -> tuple[Transitions, Transitions]:
    try:
        return earlier.split(FITTING_SHARE)
    except InvalidInput as error:
        raise InvalidInput(
            f"`earlier_share` {earlier_share!r} leaves {len(earlier)} rows to choose on, too few to fit and to compare."
        ) from error
