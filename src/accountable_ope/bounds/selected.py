"""Bounds whose kernel and class were chosen on the earlier rows."""

from __future__ import annotations

from ..arguments import checked
from ..classes.rkhs import KernelSections
from ..fitting.selection import Candidates, Selection, median_bandwidth, select
from ..kernels.kernel import Gaussian
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..radii.choice import Choice
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..validation import number, positive, probability_level
from .interval import Interval
from .value import bound_value


@checked
def bound_selected(
    problem: Problem,
    *,
    candidates: Candidates = Candidates(),  # noqa: B008  a frozen record
    earlier_share: float = 0.2,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Interval, Selection]:
    """`select` on the earlier rows, `bound_value` on the later ones; the premises say so.

    The choice costs no probability, but it does not make the class contain Q: that one of the chosen classes does is a premise.

    Parameters
    ----------
    problem : Problem
    candidates : Candidates
        What to choose from, and how many to keep.
    earlier_share : float
        The share of the rows that the choice is made on.
    radius, delta, options, progress
        As in `bound_value`.

    Returns
    -------
    Interval
        From the later rows.
    Selection
        What was chosen.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> from accountable_ope.fitting import Candidates
    >>> interval, selection = aope.bound_selected(problem, candidates=Candidates(dimension=5, keep=1), earlier_share=0.4)
    >>> interval.count, selection.earlier_rows, len(interval.certificates)
    (300, 200, 1)
    """
    # Refused here as well as by bound_value: what is wrong is said before the work of choosing.
    radius_rule(radius)
    probability_level(delta)
    selection = select(
        problem.data,
        problem.policy,
        discount=problem.assumptions.discount,
        candidates=candidates,
        earlier_share=earlier_share,
    )
    interval = bound_value(
        problem.part(selection.later),
        features=selection.features,
        kernel=selection.kernel,
        radius=radius,
        delta=delta,
        chosen=Choice(selection.earlier_rows, selection.kernel_selected),
        options=options,
        progress=progress,
    )
    return interval, selection


@checked
def bound_rkhs(
    problem: Problem,
    *,
    landmarks: int | None = 300,
    bandwidth: float | None = None,
    kernel_bandwidth: float | None = None,
    earlier_share: float = 0.2,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    intercept: bool = True,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Interval:
    """`bound_value` over a ball of a Gaussian RKHS; a bandwidth that is not given is the median distance of the earlier points.

    When both are given there is nothing to choose, and the bound uses every row.

    Parameters
    ----------
    problem : Problem
    landmarks : int or None
        Coordinates of the RKHS; None: as many as it takes. See `KernelSections`.
    bandwidth : float, optional
        Of the RKHS.
    kernel_bandwidth : float, optional
        Of the test kernel.
    earlier_share : float
        The share of the rows that a bandwidth is chosen on.
    radius, delta
        As in `bound_value`.
    intercept : bool
        Whether an unpenalized constant is added.
    options, progress
        As in `bound_value`.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_rkhs(problem, landmarks=20, bandwidth=1.0, kernel_bandwidth=1.0, radius="azuma")
    >>> interval.count, interval.check()
    (500, True)
    """
    later, median, chosen = problem, 1.0, Choice()
    if bandwidth is None or kernel_bandwidth is None:
        earlier, later = problem.split(number(earlier_share, "earlier_share"))
        median = median_bandwidth(earlier.experience.points)
        chosen = Choice(len(earlier.data), kernel=kernel_bandwidth is None)
    space = Gaussian(median if bandwidth is None else positive(bandwidth, "bandwidth"))
    return bound_value(
        later,
        features=KernelSections(space, landmarks, intercept),
        kernel=Gaussian(median if kernel_bandwidth is None else positive(kernel_bandwidth, "kernel_bandwidth")),
        radius=radius,
        delta=delta,
        chosen=chosen,
        options=options,
        progress=progress,
    )
