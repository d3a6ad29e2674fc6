"""bound_value: from logged transitions to a certified interval (Algorithm 1), as a composition of the public steps."""

from __future__ import annotations

from collections.abc import Sequence

from ..arguments import checked
from ..classes.function_class import Features, as_classes
from ..defaults.choosing import Stages, unseen
from ..defaults.recipe import Recipe
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.registry import DEFAULT_RADIUS, LADDER, radius_rule
from ..statistics.engines.engine import AnyEngine, refuse_unusable
from ..statistics.estimates import AnyQ
from ..validation import probability_level
from .evaluation import evaluate
from .first_answer import asked_recipe, first_answers, names_a_class, only_statistic
from .interval import Interval
from .unfit import refuse_unfit


@checked
def bound_value(
    problem: Problem,
    *,
    features: Features | Sequence[Features] | None = None,
    kernel: Kernel | None = None,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    pointwise: bool | None = None,
    chosen: Choice = BEFORE_THE_DATA,
    within: float | None = None,
    recipe: Recipe | None = None,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    stages: Stages | None = None,
    engine: AnyEngine = "auto",
) -> Interval:
    """The largest and smallest value over all Q of the class whose kernel Bellman loss is consistent with the data.

    Parameters
    ----------
    problem : Problem
        The question: data, start states, target policy, assumptions.
    features : feature map, FunctionClass, or a sequence of them, optional
        The class of Q functions. Several give the hull of their intervals, valid at the same delta if Q is in at least one. By
        default both class and kernel are chosen on the earliest fifth of the rows (`defaults.choose_recipe`), the bound uses the
        others, and `Interval.recipe` says what was chosen.
    kernel : Kernel, optional
        The test kernel; needed with features, and only with them.
    radius : str
        One of the names in `accountable_ope.radii.RULES`, such as "certified", "azuma" or "symmetric"; see docs/radii.md.
    delta : float
        Failure probability of the two-sided statement.
    pointwise : bool, optional
        Q lies in the value range at the logged points themselves, not only on average over them; by default where the radius
        follows the variance.
    chosen : Choice, optional
        When class and kernel were chosen; by default before any of the data.
    within : float, optional
        Without features: how near Q is asserted to be to a fit to the earliest rows, in root mean square over logged points, as a
        share of the range of values; 0.1 by default. Where the class is a table nothing rests on it, and `Interval.recipe` says
        so (`statements`).
    recipe : Recipe, optional
        Without features: what was chosen on the first of these rows before.
    options : TileOptions, optional
        How the pass over the pairs of rows is cut up.
    progress : callable, optional
        Called with the fraction done of the pass over the pairs of rows.
    stages : callable, optional
        Without features: called with the name of every stage; what it returns, if anything, with the fraction done of it.
    engine : engine, or its name
        Who computes the pass over the pairs of rows: "auto" for what `aope.engines.choose` finds best on this machine by rows,
        kernel, memory and device; "rows" (kernels of finite rank), "tiles" or "cuda" for that one; or a cluster such as
        `aope.engines.Dask(workers=4)`. `Interval.engine` says which it was, and why.

    Returns
    -------
    Interval
        Both ends, status, premises, doubts and certificates.

    Raises
    ------
    InvalidInput
        Where the radius needs something that was not declared, or says nothing about the class; or an engine that was asked for
        by name cannot be had.

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
    >>> print(interval.engine)
    Engine tiles: The processors of this machine compute: a GPU would not be faster for as few as 1000 rows.

    With no class, one is chosen on the earliest rows:

    >>> first = aope.bound_value(aope.Problem(data, mdp.starts, mdp.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1))))
    >>> mdp.value in first, first.count, first.recipe.earlier_rows
    (True, 800, 200)
    """
    if not names_a_class(features, kernel, chosen, {"within": within, "recipe": recipe, "stages": stages}):
        refuse_unusable(engine, None if recipe is None else recipe.kernel, options)
        report = stages or (unseen if progress is None else only_statistic(progress))
        radius_rule(radius), probability_level(delta)  # refused before any work
        asked = asked_recipe(problem, within, recipe, report)
        found = first_answers(
            problem, asked, (radius,), delta, pointwise=pointwise, options=options, stages=report, engine=engine
        )
        return found[0]
    assert features is not None and kernel is not None
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
        engine=engine,
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
    engine: AnyEngine = "auto",
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
    chosen, options, progress, engine
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
        problem, features=features, kernel=kernel, anchor=anchor, chosen=chosen, options=options, progress=progress, engine=engine
    )
    return evaluation.ladder(radii, delta, pointwise=pointwise)
