"""Intervals of a class that was chosen on the earliest rows, and is bounded on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..classes.features import FeatureMap, TabularFeatures
from ..classes.semi_parametric import SemiParametric
from ..defaults.choosing import Stages, choose_recipe, unseen
from ..defaults.recipe import Ball, ClassKind, Recipe
from ..errors import InvalidInput
from ..kernels.kernel import Gaussian
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..problem.statements import Status
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.doubts import TestedClass, all_doubted
from ..radii.registry import radius_rule
from ..statistics.engines.engine import AnyEngine
from ..statistics.estimates import AnyQ, QColumns
from .evaluation import Evaluation, evaluate
from .interval import Interval
from .unfit import refuse_unfit

STATISTIC = "kernel statistic"
"""The stage that passes over the pairs of rows."""


def recipe_evaluation(
    problem: Problem,
    recipe: Recipe,
    options: TileOptions | None = None,
    stages: Stages = unseen,
    engine: AnyEngine = "auto",
    judged: AnyQ | None = None,
) -> Evaluation:
    """The later rows, with the chosen classes; a table lists what later rows show, too.

    judged: an estimate around which the classes lie, in the place of the fit; nobody says when it was made.
    """
    later = recipe.later(problem)
    classes: Sequence[FeatureMap] = recipe.classes
    chosen = recipe.choice
    if isinstance(recipe.features, TabularFeatures):
        classes, chosen = _whole_table(recipe.features, later, chosen)
    evaluation = evaluate(
        later,
        features=list(classes),
        kernel=recipe.kernel,
        anchor=recipe.estimate if judged is None else _at_later_rows(judged, recipe),
        chosen=chosen if judged is None else replace(chosen, estimate=False),
        options=options,
        progress=stages(STATISTIC),
        engine=engine,
    )
    return replace(evaluation, log=problem.data)


def first_answers(
    problem: Problem,
    recipe: Recipe,
    radii: Sequence[str],
    delta: float,
    *,
    pointwise: bool | None = None,
    options: TileOptions | None = None,
    stages: Stages = unseen,
    engine: AnyEngine = "auto",
) -> tuple[Interval, ...]:
    """One interval per radius, each with its recipe; where the class around the estimate is doubted, the hull with a wider one.

    If Q lies in the class, the hull covers wherever the class alone does; if only in the wider one, then the hull does: whichever
    is reported, the chance that its premises hold and it fails is at most delta.
    """
    refuse_unfit([radius_rule(name) for name in radii], (), recipe.kernel, problem)
    evaluation = recipe_evaluation(problem, recipe, options, stages, engine)
    stages("bounding")
    return tuple(recipe_interval(evaluation, recipe, radius, delta, pointwise=pointwise) for radius in radii)


def recipe_interval(
    evaluation: Evaluation, recipe: Recipe, radius: str, delta: float, *, pointwise: bool | None = None
) -> Interval:
    """Of the class around the estimate alone, or where that is doubted or refuted the hull with the wider one."""
    alone = evaluation if len(evaluation.classes) == 1 or _doubted(evaluation) else evaluation.of_class(0)
    interval = alone.bound(radius, delta, pointwise=pointwise)
    if alone is not evaluation and interval.outcome is Status.INCONSISTENT:
        interval = evaluation.bound(radius, delta, pointwise=pointwise)
    return replace(interval, recipe=recipe)


def asked_recipe(
    problem: Problem,
    within: float | None,
    recipe: Recipe | None,
    stages: Stages = unseen,
) -> Recipe:
    """What was chosen before, or what the earliest rows choose now."""
    if recipe is None:
        return choose_recipe(problem, within=within, stages=stages)
    if within is not None:
        raise InvalidInput("`within` was chosen with the `recipe`: leave it out.")
    return recipe


def names_a_class(features: object, kernel: object, chosen: Choice, unnamed: Mapping[str, object]) -> bool:
    """Whether a class is named, by features and kernel; raises where only one of them is, or where something has no effect.

    unnamed: what goes without a class only.
    """
    if (features is None) != (kernel is None):
        raise InvalidInput("`features` and `kernel` go together: give both, or neither to have them chosen on the earliest rows.")
    if features is None:
        if chosen != BEFORE_THE_DATA:
            raise InvalidInput("`chosen` is of a class that was given: leave it out, or give `features` and `kernel`.")
        return False
    for name, value in unnamed.items():
        if value is not None:
            raise InvalidInput(
                f"`{name}` is for a class that is chosen on the earliest rows: leave it out, or leave out `features`."
            )
    return True


@dataclass(frozen=True)
class MisfitRKHS:
    """The RKHS of what the chosen features miss.

    Attributes
    ----------
    landmarks : int or None
        How many coordinates it has; None: as many as it takes.
    bandwidth : float or None
        Of its Gaussian kernel, the same for all columns; None: those of the chosen test kernel, which follow the columns.
    """

    landmarks: int | None
    bandwidth: float | None = None


def misfit_answers(
    problem: Problem,
    recipe: Recipe,
    missed: MisfitRKHS,
    radii: Sequence[str],
    delta: float,
    *,
    pointwise: bool | None = None,
    options: TileOptions | None = None,
    stages: Stages = unseen,
    engine: AnyEngine = "auto",
) -> tuple[Interval, ...]:
    """One interval per radius, of the chosen class around its fit and a ball of an RKHS for what that misses.

    `norm_bound` and `misfit_norm` of the assumptions are those of the two parts: the first is how far Q without what is missed
    may be from the fit, in root mean square over the earlier rows, since the chosen features are in units of values.
    """
    radius, norm = problem.assumptions.norm_bound, problem.assumptions.misfit_norm
    if not isinstance(radius, float) or norm is None:
        raise InvalidInput("`norm_bound` and `misfit_norm` must both be numbers, where features may miss something.")
    if recipe.whitened is None or recipe.ball is None:
        found = "nothing was logged that could decide a value" if recipe.kind is ClassKind.NONE else "a table of all states"
        raise InvalidInput(f"`misfit_norm` is of features that may miss something, and what was chosen is {found}. Leave it out.")
    span = recipe.ball.span
    declared = replace(recipe, ball=Ball(radius / span, span, 1.0, recipe.ball.overlap, recipe.ball.wider))
    kernel = recipe.kernel if missed.bandwidth is None else Gaussian(missed.bandwidth)
    later = declared.later(problem)
    around = SemiParametric(recipe.whitened, kernel, missed.landmarks)
    refuse_unfit([radius_rule(name) for name in radii], (around,), recipe.kernel, later)
    evaluation = evaluate(
        later,
        features=around,
        kernel=recipe.kernel,
        anchor=recipe.estimate,
        chosen=recipe.choice,
        options=options,
        progress=stages(STATISTIC),
        engine=engine,
    )
    evaluation = replace(evaluation, log=problem.data)
    stages("bounding")
    return tuple(replace(evaluation.bound(name, delta, pointwise=pointwise), recipe=declared) for name in radii)


def _at_later_rows(q: AnyQ, recipe: Recipe) -> AnyQ:
    """Columns of an estimate without those of the rows that chose."""
    if not isinstance(q, QColumns):
        return q
    return QColumns(q.at_data[recipe.earlier_rows :], q.at_next[recipe.earlier_rows :], q.at_start)


def _doubted(evaluation: Evaluation) -> bool:
    """Whether the class around the estimate, or its ball, is doubted; that does not depend on the radius."""
    member = evaluation.member(0)
    tested = TestedClass(member.name, member.tests.specification, member.tests.norm)
    return all_doubted([tested], evaluation.problem.assumptions.misfit)


def _whole_table(table: TabularFeatures, later: Problem, chosen: Choice) -> tuple[Sequence[FeatureMap], Choice]:
    """The table of the early rows, or where later ones show other states one that lists them, too, and says so."""
    data, vectors = later.data, later.policy.action_vectors
    assert vectors is not None
    shown = np.concatenate([data.states, data.next_states[~data.terminated], later.starts.states]) + 0.0
    states = np.unique(np.concatenate([table.points[:, : shown.shape[1]], shown]), axis=0)
    if len(states) * len(vectors) == table.dimension:
        return (table,), chosen
    return (TabularFeatures.grid(states, vectors, table.intercept),), replace(chosen, points=False)


def only_statistic(progress: Progress) -> Stages:
    """Of all stages the pass over the pairs of rows alone."""
    return lambda stage: progress if stage == STATISTIC else None
