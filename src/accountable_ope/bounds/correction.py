"""The smallest change that makes an existing Q estimate consistent with the data (Algorithm 2)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from ..arguments import checked
from ..classes.features import FeatureMap
from ..classes.function_class import Features, as_classes
from ..classes.linear_q import LinearQ, save_linear_q
from ..defaults.choosing import unseen
from ..defaults.recipe import Recipe
from ..errors import InvalidInput
from ..io.display import ends_text, result_html
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..problem.statements import Statement, Status
from ..programs.ellipsoid_ball import Decomposition, decompose
from ..programs.envelope import SquaredEnvelope
from ..programs.evidence import difference
from ..programs.extreme import least_correction
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.doubts import statements
from ..radii.registry import DEFAULT_RADIUS, LossKind, Radius, radius_rule
from ..statistics.estimates import AnyQ, as_function, q_at
from ..validation import FloatArray, probability_level
from .class_certificates import ClassCertificates
from .evaluation import Evaluation, evaluate
from .first_answer import asked_recipe, names_a_class, only_statistic, recipe_evaluation
from .interval import Interval
from .possible import NO_ROUNDING, Rounding, reached, rounding_of
from .unfit import refuse_unfit


class CorrectionStatus(Enum):
    """How a correction ended; the value is the advice."""

    UNCHANGED = "The loss of the estimate is within the radius already: nothing was changed."
    CORRECTED = "The smallest change that makes the estimate consistent with the data was added."
    INFEASIBLE = (
        "No change within the class makes the estimate consistent with the data: the least loss exceeds the radius. "
        "Use more or other features."
    )


@checked
@dataclass(frozen=True, eq=False)
class Correction(Shown, Drawn):
    """estimate + change, with the change of least norm; callable like any Q where the features are a function of points.

    Attributes
    ----------
    status : CorrectionStatus
    theta : array (m,)
        The coefficients of the change.
    norm : float
        Counts every coefficient of the change, a constant too.
    estimate_before, estimate_after : float
        The values that estimate and corrected estimate give.
    loss_before, loss_after : float
        Their kernel Bellman losses.
    least_loss : float
        The least loss of any change.
    radius : Radius
    interval : Interval
        The post-hoc one, anchored at the estimate.
    note : str
        Why the corrected value may lie outside the interval.
    doubts : tuple of Statement
        Where the corrected Q leaves the values that are possible.
    q : callable, object with `predict_value`, fitted regressor, or QColumns
        The estimate.
    features : FeatureMap or None
        None where they are known at the rows only.
    action_vectors : array (A, k) or None
    rounding : Rounding
        What of the loss of an estimate that is left unchanged may be rounding alone, beside the radius.
    """

    status: CorrectionStatus
    theta: FloatArray
    norm: float
    estimate_before: float
    estimate_after: float
    loss_before: float
    loss_after: float
    least_loss: float
    radius: Radius
    interval: Interval
    note: str
    doubts: tuple[Statement, ...]
    q: AnyQ
    features: FeatureMap | None
    action_vectors: FloatArray | None
    rounding: Rounding = NO_ROUNDING

    def __repr__(self) -> str:
        return f"Correction({self.status.name}, {self.estimate_before:.4g} -> {self.estimate_after:.4g}, norm {self.norm:.4g})"

    def _repr_html_(self) -> str:
        rows = (
            ("value", f"{self.estimate_before:.4g} -> {self.estimate_after:.4g}"),
            ("kernel Bellman loss", f"{self.loss_before:.3g} -> {self.loss_after:.3g}, radius {self.radius.total:.3g}"),
            ("norm of the change", f"{self.norm:.4g}"),
            ("interval around the estimate", ends_text(self.interval.lower, self.interval.upper)),
        )
        doubts = (*self.doubts, *self.remarks, *statements(self.interval.doubts))
        return result_html("Correction of an estimate of Q", self.status, rows, self.interval.premises, doubts)

    @property
    def premises(self) -> tuple[Statement, ...]:
        """What the interval rests on. That the corrected Q is the true one is not claimed."""
        return self.interval.premises

    @property
    def remarks(self) -> tuple[Statement, ...]:
        """What was allowed for beside chance where nothing was changed: rounding, where that is no small part of it."""
        return self.rounding.statements(self.radius.total + self.rounding.loss, self.estimate_before)

    @property
    def change(self) -> LinearQ:
        """The change alone, as a function."""
        if self.features is None:
            raise InvalidInput("This correction is known at the rows only: its features were given as columns.")
        return LinearQ(self.features, self.theta, self.action_vectors)

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        """The corrected Q."""
        return np.asarray(q_at(as_function(self.q, self.change.action_vectors), states, actions) + self.change(states, actions))

    predict_value = __call__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the change as .npz; `load_linear_q` reads it, and `CorrectedQ` adds it to the estimate again."""
        save_linear_q(self.change, path)


@checked
@dataclass(frozen=True, eq=False)
class CorrectedQ:
    """An estimate plus a change that was saved.

    Parameters
    ----------
    q : callable, object with `predict_value`, or fitted regressor
        The estimate.
    change : LinearQ
        As read by `load_linear_q`.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import LinearQ, TabularFeatures
    >>> from accountable_ope.bounds import CorrectedQ
    >>> change = LinearQ(TabularFeatures([[0.0, 1.0]], intercept=False), np.array([-3.0]))
    >>> CorrectedQ(lambda states, actions: np.full(len(states), 8.0), change)(np.array([[0.0]]), np.array([[1.0]])).tolist()
    [5.0]
    """

    q: AnyQ
    change: LinearQ

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        return np.asarray(q_at(as_function(self.q, self.change.action_vectors), states, actions) + self.change(states, actions))

    predict_value = __call__


@checked
def correct(
    q: AnyQ,
    problem: Problem,
    *,
    features: Features | None = None,
    kernel: Kernel | None = None,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    chosen: Choice = BEFORE_THE_DATA,
    within: float | None = None,
    recipe: Recipe | None = None,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Correction:
    """min ||theta||^2 subject to loss(estimate + theta'phi) <= radius: zero exactly when the estimate's loss is within it.

    Parameters
    ----------
    q : callable, object with `predict_value`, fitted regressor, or QColumns
        The estimate.
    problem : Problem
        The question.
    features : feature map or FunctionClass
        The one class in which the change is looked for. Without it the earliest fifth of the rows chooses class and kernel, and
        the change is of least root mean square over those rows; the others say how large it has to be.
    kernel, radius, delta, chosen
        As in `bound_value`.
    within, recipe
        As in `diagnose`.
    options, progress
        As in `bound_value`.

    Returns
    -------
    Correction
        The change of least norm, the value before and after, and the interval around the estimate.

    Raises
    ------
    InvalidInput
        Where the radius bounds a U-statistic, which is not convex, or several classes are given.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=20, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> far_too_high = lambda states, actions: np.full(len(states), 8.0)
    >>> found = aope.correct(far_too_high, problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> found.status.name, found.loss_after < found.loss_before
    ('CORRECTED', True)
    """
    if not names_a_class(features, kernel, chosen, {"within": within, "recipe": recipe}):
        stages = unseen if progress is None else only_statistic(progress)
        refuse_not_convex(radius)
        probability_level(delta)
        judging = replace(asked_recipe(problem, within, recipe, stages), judging=True)
        refuse_unfit([radius_rule(radius)], (), judging.kernel, problem)
        whole = recipe_evaluation(problem, judging, options, stages, judged=q)
        found = correction_of(whole.of_class(0), q, radius, delta)
        return replace(found, interval=replace(found.interval, recipe=judging))
    assert features is not None and kernel is not None
    refuse_early(problem, features, kernel, radius, delta)
    unsaid = replace(chosen, estimate=False)  # what is judged here may have been fitted to these rows
    evaluation = evaluate(problem, features=features, kernel=kernel, anchor=q, chosen=unsaid, options=options, progress=progress)
    return correction_of(evaluation, q, radius, delta)


def correction_of(evaluation: Evaluation, q: AnyQ, radius: str, delta: float) -> Correction:
    """The correction of the Q at which an evaluation is anchored."""
    refuse_not_convex(radius)
    if len(evaluation.classes) != 1:
        raise InvalidInput(f"`features` of a correction must be one class. Got {len(evaluation.classes)}.")
    interval, system = evaluation.bound(radius, delta), evaluation.systems[0]
    part = interval.certificates[0]
    loss = part.statistic.v_loss()
    decomposition = decompose(loss, np.ones(system.dimension, dtype=bool))
    theta = np.zeros(system.dimension)
    status, rounding = CorrectionStatus.UNCHANGED, rounding_of(evaluation)
    if loss.a0 > allowed_loss(interval, theta) + rounding.loss:
        found = _least_change(interval, decomposition)
        status = CorrectionStatus.INFEASIBLE if found is None else CorrectionStatus.CORRECTED
        theta = theta if found is None else found
    after = system.offset + float(system.objective @ theta)
    corrected, allowed = reached(evaluation, theta), interval.ranges.value
    outside = corrected.outside(allowed, interval.assumptions.misfit)
    return Correction(
        status=status,
        theta=theta,
        norm=float(np.linalg.norm(theta)),
        estimate_before=system.offset,
        estimate_after=after,
        loss_before=loss.a0,
        loss_after=loss(theta),
        least_loss=decomposition.least,
        radius=replace(interval.radius, level=allowed_loss(interval, theta) - interval.radius.rounding),
        interval=interval,
        note=outside_note(interval, after, float(np.linalg.norm(theta[system.penalized])), part.norm_bound, status),
        doubts=(corrected.statement("The corrected Q", allowed),) if outside else (),
        q=q,
        features=system.features,
        action_vectors=evaluation.problem.policy.action_vectors,
        rounding=rounding if status is CorrectionStatus.UNCHANGED else NO_ROUNDING,
    )


def refuse_not_convex(radius: str) -> None:
    """A correction is a least norm over a convex set."""
    if radius_rule(radius).loss is not LossKind.V:
        raise InvalidInput(f"`radius` of a correction must bound the V-statistic, which is convex. Got {radius!r}.")


def allowed_loss(interval: Interval, theta: FloatArray) -> float:
    """The largest loss that chance allows to estimate + theta'phi, were it the true Q.

    One number for a constant radius; U(w, V_n)^2 / n^2 at the variance of this very Q for one that follows it, w the declared
    width of the residuals: that Q lies in the class is not needed for it.
    """
    return _allowed_in(interval.certificates[0], theta)


def allowed_estimate(interval: Interval) -> float:
    """The largest loss that chance allows to the estimate itself: the largest over the classes, of which one may hold Q."""
    return max(_allowed_in(part, np.zeros(part.statistic.dimension)) for part in interval.certificates)


def _allowed_in(part: ClassCertificates, theta: FloatArray) -> float:
    constraints = part.constraints
    return constraints.evidence[0].allowed(constraints.range.declared, theta)


def _least_change(interval: Interval, decomposition: Decomposition) -> FloatArray | None:
    """The theta of least norm whose loss is allowed; None when not even the least loss is.

    Where the radius follows the variance, its square lies below p + q V_n, with equality at one variance: the theta of least norm
    with loss - q V_n / n^2 <= p / n^2 is the answer once that variance is its own.
    """
    constraints = interval.certificates[0].constraints
    evidence = constraints.evidence[0]
    if not constraints.follows_variance:
        return least_correction(decomposition, interval.radius.total)
    steps = evidence.steps(constraints.range.declared)
    squared = SquaredEnvelope(evidence.envelope, steps, evidence.count * steps.largest**2)
    least = decomposition.least_loss(None).theta
    if evidence.squared(least) > allowed_loss(interval, least):
        return None
    theta = least
    for _ in range(50):
        affine = squared.touching(evidence.variance(theta) * evidence.count**2)
        joint = decompose(difference(evidence.squared, evidence.variance, affine.rate), decomposition.mask)
        limit = affine.level / evidence.count**2 + evidence.rounding
        found = joint.least_norm(limit) if joint.convex else least_correction(decomposition, allowed_loss(interval, theta))
        if found is None:
            break
        moved, theta = float(np.linalg.norm(found - theta)), found
        if moved <= 1e-9 * float(np.linalg.norm(theta)):
            break
    inside, outside = 1.0, 0.0  # toward the least loss, should the last step have ended just outside
    if evidence.squared(theta) > allowed_loss(interval, theta):
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            point = theta + middle * (least - theta)
            inside, outside = (middle, outside) if evidence.squared(point) <= allowed_loss(interval, point) else (inside, middle)
        theta = theta + inside * (least - theta)
    return theta


def refuse_early(problem: Problem, features: Features | Sequence[Features], kernel: Kernel, radius: str, delta: float) -> None:
    """What is wrong is said before any work."""
    probability_level(delta)
    refuse_unfit([radius_rule(radius)], as_classes(features), kernel, problem)


def outside_note(interval: Interval, after: float, norm: float, norm_bound: float | None, status: CorrectionStatus) -> str:
    """Why a corrected value may lie outside the post-hoc interval."""
    if status is CorrectionStatus.INFEASIBLE or interval.outcome is Status.INCONSISTENT:
        return ""
    if after in interval:
        return ""
    if norm_bound is not None and norm > norm_bound:
        return (
            f"The corrected value {after:.4g} lies outside the post-hoc interval: the change has norm {norm:.4g}, "
            f"more than the declared bound {norm_bound:.4g}."
        )
    cut = interval.unclipped[0] <= after <= interval.unclipped[1]
    more = "which uses more than the loss, such as the ranges of values and residuals, and the change does not"
    why = "which the declared value range cuts" if cut else more
    return f"The corrected value {after:.4g} lies outside the post-hoc interval, {why}."
