"""bound_value: from logged transitions to a certified interval (Algorithm 1), as a composition of the public steps."""

from __future__ import annotations

from collections.abc import Sequence

from ..arguments import checked
from ..classes.function_class import Features, as_classes
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..radii.premises import BEFORE_THE_DATA, Choice
from ..radii.registry import DEFAULT_RADIUS, LADDER, radius_rule
from ..statistics.estimates import AnyQ
from ..validation import probability_level
from .evaluation import evaluate
from .interval import Interval
from .unfit import refuse_unfit


@checked
def bound_value(
    problem: Problem,
    *,
    features: Features | Sequence[Features],
    kernel: Kernel,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    pointwise: bool | None = None,
    chosen: Choice = BEFORE_THE_DATA,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Interval:
    """The largest and smallest value over all Q of the class whose kernel Bellman loss is consistent with the data.

    Parameters
    ----------
    problem : Problem
        The question: data, start states, target policy, assumptions.
    features : feature map, FunctionClass, or a sequence of them
        The class of Q functions. Several give the hull of their intervals, valid at the same delta if Q is in at least one.
    kernel : Kernel
        The test kernel.
    radius : str
        One of the names in `accountable_ope.radii.RULES`, such as "certified", "azuma" or "symmetric"; see docs/radii.md.
    delta : float
        Failure probability of the two-sided statement.
    pointwise : bool, optional
        Q lies in the value range at the logged points themselves, not only on average over them; by default where the radius
        follows the variance.
    chosen : Choice, optional
        When class and kernel were chosen; by default before any of the data.
    options : TileOptions, optional
        How the pass over the pairs of rows is cut up.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Interval
        Both ends, status, premises, doubts and certificates.

    Raises
    ------
    InvalidInput
        Where the radius needs something that was not declared, or says nothing about the class.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> mdp.value in interval, interval.check()
    (True, True)
    """
    found = bound_ladder(
        problem,
        features=features,
        kernel=kernel,
        radii=(radius,),
        delta=delta,
        pointwise=pointwise,
        chosen=chosen,
        options=options,
        progress=progress,
    )
    return found[0]


@checked
def bound_ladder(
    problem: Problem,
    *,
    features: Features | Sequence[Features],
    kernel: Kernel,
    radii: Sequence[str] = LADDER,
    delta: float = 0.1,
    pointwise: bool | None = None,
    anchor: AnyQ | None = None,
    chosen: Choice = BEFORE_THE_DATA,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Interval, ...]:
    """`bound_value` for several radii, from one statistic. Each interval is valid on its own; do not pick the narrowest.

    Parameters
    ----------
    problem : Problem
    features, kernel
        As in `bound_value`.
    radii : sequence of str
        The radii by name.
    delta, pointwise
        As in `bound_value`.
    anchor : callable, object with `predict_value`, or QColumns, optional
        An existing Q around which the class lies (see `diagnose`).
    chosen, options, progress
        As in `bound_value`.

    Returns
    -------
    tuple of Interval
        One per radius.

    Raises
    ------
    InvalidInput
        Where a radius needs something that was not declared, or says nothing about the class.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> ladder = aope.bound_ladder(problem, features=mdp.features(), kernel=aope.Gaussian(1.0), radii=["hoeffding", "azuma"])
    >>> [(interval.radius.name, mdp.value in interval) for interval in ladder]
    [('hoeffding', True), ('azuma', True)]
    """
    probability_level(delta)
    refuse_unfit([radius_rule(name) for name in radii], as_classes(features), kernel, problem)  # before any work
    evaluation = evaluate(
        problem, features=features, kernel=kernel, anchor=anchor, chosen=chosen, options=options, progress=progress
    )
    return evaluation.ladder(radii, delta, pointwise=pointwise)
