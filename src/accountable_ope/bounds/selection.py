"""Choosing kernel and features on the earlier rows, and bounding on the later ones.

A bound conditions on whatever was chosen before its data happened, so a choice on earlier rows costs rows but no probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..classes.features import KernelSections, RandomFourier
from ..errors import InvalidInput
from ..fitting.least_loss import fit_q
from ..kernels.kernel import Gaussian, Kernel
from ..problem.assumptions import Assumptions
from ..problem.contradictions import check_data
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import StartStates, Transitions
from ..radii.registry import radius_rule
from ..statistics.bellman import bellman_residuals
from ..statistics.engines.tiles import Progress, TileOptions
from ..statistics.statistic import v_statistic
from ..validation import FloatArray, matrix, number, positive, probability_level, whole
from .interval import ValueInterval
from .premises import kernel_premise
from .value import DEFAULT_RADIUS, bound_value

PAPER_BANDWIDTHS = (0.2, 0.5, 0.6, 0.8, 1.0)
"""The bandwidths of the features in the paper's experiments."""

FITTING_SHARE = 0.7
"""The share of the earlier rows that candidates are fitted on; the rest of them compares the candidates."""

_UNTOUCHED = "chosen without looking at these data"


@dataclass(frozen=True)
class Candidate:
    """A feature class, and the V-statistic of its fitted Q on rows that the fit did not see."""

    features: RandomFourier
    held_out_loss: float


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen on the first `earlier_rows` rows, and the rows that are left for a bound.

    kernel_selected: whether the bandwidth of the kernel was chosen on those rows too, rather than given.
    table:           every candidate in the order given.
    """

    kernel: Gaussian
    kernel_selected: bool
    features: tuple[RandomFourier, ...]
    earlier_rows: int
    later: Transitions
    table: tuple[Candidate, ...]


def median_bandwidth(points: ArrayLike, limit: int = 1000) -> float:
    """The median of ||x_i - x_j||, i < j, over at most `limit` evenly spaced points; never 0."""
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


def pessimistic_union(dimension: int = 10, seed: int = 0, intercept: bool = True) -> list[RandomFourier]:
    """The paper's classes, one per bandwidth; given together to `bound_value` they give the hull of their intervals."""
    return [RandomFourier(dimension, bandwidth, seed, intercept) for bandwidth in PAPER_BANDWIDTHS]


def select(
    data: Transitions,
    policy: Policy,
    *,
    discount: float,
    dimension: int = 10,
    feature_bandwidths: Sequence[float] = PAPER_BANDWIDTHS,
    kernel_bandwidth: float | None = None,
    earlier_share: float = 0.2,
    seed: int = 0,
    keep: int = 2,
    intercept: bool = True,
) -> Selection:
    """The `keep` best random Fourier classes by held-out kernel loss, all on the earlier rows.

    The earlier rows are split once more: `fit_q` on the first of them, (1/n^2) sum_ij eps_i K(x_i, x_j) eps_j of its residuals
    on the others. kernel_bandwidth=None: the median distance of the earlier points.
    """
    if not 0 <= number(discount, "discount") <= 1:
        raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
    classes = [RandomFourier(dimension, positive(h, "feature_bandwidths"), seed, intercept) for h in feature_bandwidths]
    if not 1 <= whole(keep, "keep", least=1) <= len(classes):
        raise InvalidInput(f"`keep` must not exceed the number of `feature_bandwidths` ({len(classes)}). Got {keep}.")
    earlier, later = data.split(number(earlier_share, "earlier_share"))
    fitting, comparing = _inner_split(earlier, earlier_share)
    points = state_action_points(earlier.states, earlier.actions, policy)
    kernel = Gaussian(median_bandwidth(points) if kernel_bandwidth is None else positive(kernel_bandwidth, "kernel_bandwidth"))
    table = tuple(Candidate(one, _held_out_loss(one, fitting, comparing, policy, kernel, discount)) for one in classes)
    best = sorted(table, key=lambda candidate: candidate.held_out_loss)[:keep]
    return Selection(kernel, kernel_bandwidth is None, tuple(one.features for one in best), len(earlier), later, table)


def bound_selected(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    earlier_share: float = 0.2,
    dimension: int = 10,
    feature_bandwidths: Sequence[float] = PAPER_BANDWIDTHS,
    kernel_bandwidth: float | None = None,
    seed: int = 0,
    keep: int = 2,
    intercept: bool = True,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> tuple[ValueInterval, Selection]:
    """`select` on the earlier rows, `bound_value` on the later ones; the premises say so.

    The choice costs no probability, but it does not make the class contain Q: that one of the chosen classes does is a premise.
    """
    # Refused here as well as by bound_value: what is wrong is said before the work of choosing.
    radius_rule(radius)
    probability_level(delta)
    check_data(data, assumptions)
    chosen = select(
        data,
        policy,
        discount=assumptions.discount,
        dimension=dimension,
        feature_bandwidths=feature_bandwidths,
        kernel_bandwidth=kernel_bandwidth,
        earlier_share=earlier_share,
        seed=seed,
        keep=keep,
        intercept=intercept,
    )
    interval = bound_value(
        chosen.later,
        starts,
        policy,
        assumptions=assumptions,
        kernel=chosen.kernel,
        features=chosen.features,
        radius=radius,
        delta=delta,
        options=options,
        progress=progress,
    )
    return state_choice(interval, chosen.earlier_rows, kernel_selected=chosen.kernel_selected), chosen


def bound_rkhs(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    landmarks: int | None = 300,
    bandwidth: float | None = None,
    kernel_bandwidth: float | None = None,
    earlier_share: float = 0.2,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    intercept: bool = True,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> ValueInterval:
    """`bound_value` over a ball of a Gaussian RKHS; a bandwidth that is not given is the median distance of the earlier points.

    When both are given there is nothing to choose, and the bound uses every row.
    """
    if bandwidth is not None and kernel_bandwidth is not None:
        earlier_rows, later, median = 0, data, 1.0
    else:
        earlier, later = data.split(number(earlier_share, "earlier_share"))
        earlier_rows = len(earlier)
        median = median_bandwidth(state_action_points(earlier.states, earlier.actions, policy))
    space = Gaussian(median if bandwidth is None else positive(bandwidth, "bandwidth"))
    interval = bound_value(
        later,
        starts,
        policy,
        assumptions=assumptions,
        kernel=Gaussian(median if kernel_bandwidth is None else positive(kernel_bandwidth, "kernel_bandwidth")),
        features=KernelSections(space, landmarks, intercept),
        radius=radius,
        delta=delta,
        options=options,
        progress=progress,
    )
    return interval if earlier_rows == 0 else state_choice(interval, earlier_rows, kernel_selected=kernel_bandwidth is None)


def state_choice(interval: ValueInterval, earlier_rows: int, *, kernel_selected: bool = True) -> ValueInterval:
    """The same interval, its premises saying that the class (and the kernel) were chosen on rows before its own.

    For features of any kind that were trained on the first part of a `Transitions.split`, when the bound uses the second.
    """
    whole(earlier_rows, "earlier_rows", least=1)
    kernel = kernel_premise(interval.kernel)
    elsewhere = f"chosen on the first {earlier_rows} rows, which the bound does not use"
    lines = [
        line if line == kernel and not kernel_selected else line.replace(_UNTOUCHED, elsewhere) for line in interval.premises
    ]
    return replace(interval, premises=(*lines, f"The bound uses the remaining {interval.count} rows, which came later."))


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
