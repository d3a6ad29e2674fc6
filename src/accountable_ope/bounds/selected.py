"""Bounds whose kernel and class were chosen on the earlier rows."""

from __future__ import annotations

from dataclasses import replace

from ..classes.rkhs import KernelSections
from ..fitting.selection import Candidates, Selection, median_bandwidth, select
from ..kernels.kernel import Gaussian
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..validation import number, positive, probability_level
from .interval import Interval
from .premises import Choice
from .value import bound_value


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
    """
    # Refused here as well as by bound_value: what is wrong is said before the work of choosing.
    radius_rule(radius)
    probability_level(delta)
    found = select(
        problem.data,
        problem.policy,
        discount=problem.assumptions.discount,
        candidates=candidates,
        earlier_share=earlier_share,
    )
    interval = bound_value(
        replace(problem, data=found.later),
        features=found.features,
        kernel=found.kernel,
        radius=radius,
        delta=delta,
        chosen=Choice(found.earlier_rows, found.kernel_selected),
        options=options,
        progress=progress,
    )
    return interval, found


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
