"""Diagnosis of an existing Q estimate: is it consistent with the data, and where is it wrong?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from ..arguments import checked
from ..classes.function_class import Features
from ..defaults.choosing import unseen
from ..defaults.recipe import Recipe
from ..io.display import confidence, ends_text, result_html
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, Status, doubt
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.doubts import statements
from ..radii.registry import DEFAULT_RADIUS, LossKind, Radius, radius_rule
from ..statistics.estimates import AnyQ
from ..statistics.witness import Witness, witness_of
from ..validation import probability_level
from .correction import allowed_estimate, refuse_early
from .evaluation import Evaluation, evaluate
from .explanation import Explanation, SeenRows, explanation
from .first_answer import asked_recipe, names_a_class, only_statistic, recipe_evaluation, recipe_interval
from .interval import Interval
from .possible import NO_ROUNDING, Reached, Rounding, possible_residual, reached, rounding_of
from .unfit import refuse_unfit
from .verdict import outward

ACCEPTED = "The rows do not refute the estimate, which does not make it right."
NOTHING_SEEN = Explanation((), (), ())


class EstimateVerdict(Enum):
    """What the data say about an estimate; the value is the advice."""

    CONSISTENT = (
        "The estimate's Bellman residuals are no larger than those of the true Q may be by chance: the data do not refute it. "
        "That does not make it right: look at the interval."
    )
    REJECTED = (
        "With the stated confidence this is not the target policy's Q: its Bellman residuals are too large to be chance, or what "
        "was declared excludes it. See the witness for where, and correct() for the smallest change that makes it consistent."
    )


@checked
@dataclass(frozen=True, eq=False)
class Diagnosis(Shown, Drawn):
    """An estimate against the data.

    Attributes
    ----------
    estimate : float
        The value that the estimate gives.
    loss : float
        Its kernel Bellman loss, compared with radius.total.
    radius : Radius
    verdict : EstimateVerdict
    interval : Interval
        Bounds for the value, the class anchored at the estimate.
    witness : Witness
        Where the estimate is wrong.
    largest_residual : float
        Its largest Bellman residual in absolute value, at any logged row.
    reached : Reached
        Its least and largest values, at logged, next and start states.
    rounding : Rounding
        What of its loss may be rounding alone; the radius holds it.
    explanation : Explanation
        The witness in the names of the log, and rows to look at.
    unnoticed : float
        The largest error in value that the rows may have missed where they do not refute the estimate.
    sentence : str
        The verdict, with that error where there is one.
    """

    estimate: float
    loss: float
    radius: Radius
    verdict: EstimateVerdict
    interval: Interval
    witness: Witness
    largest_residual: float
    reached: Reached
    rounding: Rounding = NO_ROUNDING
    explanation: Explanation = NOTHING_SEEN

    def __repr__(self) -> str:
        return f"Diagnosis({self.verdict.name}, estimate {self.estimate:.4g}, loss {self.loss:.3g}, {self.interval!r})"

    def _repr_html_(self) -> str:
        return result_html(
            "Diagnosis of an estimate of Q",
            self.verdict,
            (
                *((("what could have gone unnoticed", self.sentence),) if self.verdict is EstimateVerdict.CONSISTENT else ()),
                ("estimate of the value", f"{self.estimate:.4g}"),
                ("kernel Bellman loss", f"{self.loss:.3g}, radius {self.radius.total:.3g} ({self.radius.name})"),
                ("interval around the estimate", ends_text(self.interval.lower, self.interval.upper)),
                *(("where it is wrong", sentence) for sentence in self._where_wrong),
            ),
            self.interval.premises,
            (*self.impossible, *self.remarks, *statements(self.interval.doubts)),
        )

    @property
    def impossible(self) -> tuple[Statement, ...]:
        """Why the estimate cannot be the true Q under what was declared; empty where it can. Rounding counts for nothing."""
        found, ranges = [], self.interval.ranges
        if not possible_residual(self.largest_residual, ranges):
            text = (
                f"Its largest residual, {self.largest_residual:.4g}, exceeds {ranges.residual_width:.4g}: under what is assumed "
                "no residual of the true Q can."
            )
            found.append(doubt("impossible-residual", text, ("residual", self.largest_residual)))
        if self.reached.outside(ranges.value, self.interval.assumptions.misfit):
            found.append(self.reached.statement("It", ranges.value))
        return tuple(found)

    @property
    def unnoticed(self) -> float:
        """The largest error in value that an accepted estimate may have: how far the ends of the interval are from it.

        NaN where no function of the class around it fits, so that nothing bounds the error.
        """
        if self.interval.outcome is Status.INCONSISTENT:
            return math.nan
        return max(abs(self.interval.upper - self.estimate), abs(self.estimate - self.interval.lower))

    @property
    def sentence(self) -> str:
        """The verdict. An estimate that is accepted is not called right: what could have gone unnoticed is said."""
        if self.verdict is EstimateVerdict.REJECTED:
            rejected = str(self.verdict.value)
            if self.interval.copied and not self.impossible:
                return f"Only if no rows were copies of others, which some are: {rejected[0].lower()}{rejected[1:]}"
            return rejected
        found = self.interval
        if found.outcome is Status.INCONSISTENT:
            return (
                f"{ACCEPTED} How large an error in value they would miss is not known: no function of the class around it fits."
            )
        low, high = outward(found.lower, found.upper)
        between = f"its value is {self.estimate:.4g}, the new policy's is anything from {low} to {high}"
        if found.outcome is Status.VACUOUS:
            return f"{ACCEPTED} They would miss an error of any size: {between}."
        sure = f"with {confidence(found.delta)} confidence" + (
            ", for many rows" if found.guarantee is Guarantee.ASYMPTOTIC else ""
        )
        size = outward(0.0, self.unnoticed)[1]
        if found.copied:
            held = "only if no rows were copies of others, which some are: the error may be larger"
        elif found.doubted:
            held = "only if the class around it holds Q, which is doubted: the error may be larger"
        else:
            held = "if the class around it holds Q"
        return f"{ACCEPTED} They may miss an error in value of up to {size}: {between} {sure}, {held}."

    @property
    def remarks(self) -> tuple[Statement, ...]:
        """What the verdict allowed for beside chance: rounding of the estimate, where that is no small part of the radius."""
        return self.rounding.statements(self.radius.total, self.estimate)

    @property
    def _where_wrong(self) -> tuple[str, ...]:
        return self.explanation.sentences if self.verdict is EstimateVerdict.REJECTED else ()

    @property
    def premises(self) -> tuple[Statement, ...]:
        """What the interval rests on. The verdict rests on less: that the class holds Q, and its norm, are not needed for it."""
        return self.interval.premises

    @property
    def inside(self) -> bool:
        """Whether the estimate's own value lies in the interval."""
        return self.estimate in self.interval


@checked
def diagnose(
    q: AnyQ,
    problem: Problem,
    *,
    features: Features | Sequence[Features] | None = None,
    kernel: Kernel | None = None,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    chosen: Choice = BEFORE_THE_DATA,
    within: float | None = None,
    recipe: Recipe | None = None,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Whether an estimate is consistent with the data, what it implies for the value, and where it is wrong.

    Parameters
    ----------
    q : callable, object with `predict_value`, fitted regressor with `predict`, or QColumns
        The estimate. It may have been fitted on the same data: the event behind the guarantee is about the true Q alone.
    problem : Problem
        The question. The norm bound of its assumptions is on the true Q minus the estimate.
    features, kernel, radius, delta, chosen
        As in `bound_value`; the class is estimate + features. Without them the earliest fifth of the rows chooses both, and the
        others are the rows of verdict, interval and witness; `Diagnosis.interval.recipe` says what was chosen.
    within : float, optional
        Without features: how near Q is asserted to be to the estimate, for the interval, in root mean square over logged points,
        as a share of the range of values; 0.1 by default. The verdict does not rest on it.
    recipe : Recipe, optional
        Without features: what was chosen on the first of these rows before.
    options, progress
        As in `bound_value`.

    Returns
    -------
    Diagnosis
        The verdict, the interval around the estimate, and the witness of where it is wrong.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=20, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> far_too_high = lambda states, actions: np.full(len(states), 8.0)
    >>> aope.diagnose(far_too_high, problem, features=mdp.features(), kernel=aope.Gaussian(1.0)).verdict.name
    'REJECTED'

    With no class, one is chosen on the earliest rows:

    >>> asked = aope.Problem(data, mdp.starts, mdp.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    >>> first = aope.diagnose(far_too_high, asked)
    >>> first.verdict.name, first.interval.recipe.earlier_rows
    ('REJECTED', 200)
    """
    if not names_a_class(features, kernel, chosen, {"within": within, "recipe": recipe}):
        radius_rule(radius), probability_level(delta)
        stages = unseen if progress is None else only_statistic(progress)
        judging = replace(asked_recipe(problem, within, recipe, stages), judging=True)
        refuse_unfit([radius_rule(radius)], (), judging.kernel, problem)
        evaluation = recipe_evaluation(problem, judging, options, stages, judged=q)
        return diagnosis_of(evaluation, radius, delta, judging)
    assert features is not None and kernel is not None
    refuse_early(problem, features, kernel, radius, delta)
    unsaid = replace(chosen, estimate=False)  # what is judged here may have been fitted to these rows
    evaluation = evaluate(problem, features=features, kernel=kernel, anchor=q, chosen=unsaid, options=options, progress=progress)
    return diagnosis_of(evaluation, radius, delta)


def diagnosis_of(evaluation: Evaluation, radius: str, delta: float, recipe: Recipe | None = None) -> Diagnosis:
    """The diagnosis of the Q at which an evaluation is anchored; recipe: what chose its classes, on rows before its own."""
    system, problem = evaluation.systems[0], evaluation.problem
    earlier = 0 if recipe is None else recipe.earlier_rows
    numbers = None if recipe is None else np.arange(earlier, earlier + len(problem.data))
    witness = witness_of(system.target, system.points, evaluation.kernel).counted_from(earlier)
    assert evaluation.anchor is not None
    seen = EstimateSeen(
        estimate=system.offset,
        witness=witness,
        largest_residual=float(np.abs(system.target).max()),
        reached=reached(evaluation),
        rounding=rounding_of(evaluation),
        explanation=explanation(witness, SeenRows(problem.data, evaluation.anchor, numbers), problem.assumptions.discount),
    )
    if recipe is None:
        return diagnosed(evaluation.bound(radius, delta), seen)
    return diagnosed(recipe_interval(evaluation, recipe, radius, delta), seen)


@dataclass(frozen=True, eq=False)
class EstimateSeen:
    """What rows and start states show of an estimate; see `Diagnosis`."""

    estimate: float
    witness: Witness
    largest_residual: float
    reached: Reached
    rounding: Rounding
    explanation: Explanation


def diagnosed(interval: Interval, seen: EstimateSeen) -> Diagnosis:
    """The verdict; interval: of the class anchored at the estimate."""
    statistic = interval.certificates[0].statistic
    loss = (statistic.v_loss() if interval.radius.loss is LossKind.V else statistic.u_loss()).a0
    allowed = allowed_estimate(interval) + seen.rounding.loss
    found = Diagnosis(
        estimate=seen.estimate,
        loss=loss,
        radius=replace(interval.radius, level=allowed - interval.radius.rounding),
        verdict=EstimateVerdict.CONSISTENT if loss <= allowed else EstimateVerdict.REJECTED,
        interval=interval,
        witness=seen.witness,
        largest_residual=seen.largest_residual,
        reached=seen.reached,
        rounding=seen.rounding,
        explanation=seen.explanation,
    )
    if found.impossible:
        found = replace(found, verdict=EstimateVerdict.REJECTED)
    rejected = found.verdict is EstimateVerdict.REJECTED
    return found if rejected else replace(found, explanation=seen.explanation.by_chance())
