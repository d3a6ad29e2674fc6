"""Post-hoc diagnosis and correction of an existing Q estimate (Algorithm 2)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..classes.features import FeatureMap, KernelSections, Precomputed
from ..classes.linear_q import LinearQ, save_linear_q
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import StartStates, Transitions
from ..programs.ellipsoid_ball import Decomposition, decompose
from ..programs.envelope import SquaredEnvelope
from ..programs.evidence import difference
from ..programs.extreme import least_correction
from ..radii.registry import LossKind, Radius, radius_rule
from ..statistics.bellman import AnchorValues, QFunction, bellman_system, q_at, q_expected
from ..statistics.engines.tiles import Progress, TileOptions
from ..statistics.witness import Witness, witness
from ..validation import FloatArray, vector
from .interval import Status, ValueInterval
from .value import DEFAULT_RADIUS, bound_ladder


@runtime_checkable
class ValuePredictor(Protocol):
    """What fitted estimators of other libraries look like."""

    def predict_value(self, states: Any, actions: Any) -> Any: ...


@dataclass(frozen=True, eq=False, init=False)
class QColumns:
    """An existing Q as columns: at the data, and averaged over the target policy at the next and at the start states."""

    at_data: FloatArray
    at_next: FloatArray
    at_start: FloatArray

    def __init__(self, at_data: Any, at_next: Any, at_start: Any) -> None:
        for name, values in (("at_data", at_data), ("at_next", at_next), ("at_start", at_start)):
            object.__setattr__(self, name, vector(values, name))


AnyQ = QFunction | ValuePredictor | QColumns
AnyClass = FeatureMap | KernelSections | Precomputed


class Verdict(Enum):
    """What the data say about an estimate; the value is the advice."""

    CONSISTENT = (
        "The estimate's Bellman residuals are no larger than those of the true Q may be by chance: the data do not refute it. "
        "That does not make it right: look at the interval."
    )
    REJECTED = (
        "With the stated confidence this is not the target policy's Q: its Bellman residuals are too large to be chance. "
        "See the witness for where, and correct() for the smallest change that makes it consistent."
    )


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """An estimate against the data.

    estimate: the value that the estimate gives. loss: its kernel Bellman loss, compared with radius.total.
    interval: bounds for the value, the class anchored at the estimate. witness: where it is wrong.
    """

    estimate: float
    loss: float
    radius: Radius
    verdict: Verdict
    interval: ValueInterval
    witness: Witness

    @property
    def inside(self) -> bool:
        """Whether the estimate's own value lies in the interval."""
        return self.interval.lower <= self.estimate <= self.interval.upper


def diagnose(
    q: AnyQ,
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    kernel: Kernel,
    features: AnyClass | Sequence[AnyClass],
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Is this estimate consistent with the data, what does it imply for the value, and where is it wrong?

    The norm bound of the assumptions is on the true Q minus the estimate. The estimate may have been fitted on the same data: the
    event behind the guarantee is about the true Q alone.
    """
    anchor = anchor_values(q, data, starts, policy)
    interval = _anchored(anchor, data, starts, policy, assumptions, kernel, features, radius, delta, options, progress)
    statistic = interval.certificates[0].statistic
    loss = (statistic.v_loss() if interval.radius.loss is LossKind.V else statistic.u_loss()).a0
    allowed = allowed_loss(interval, np.zeros(statistic.dimension))
    residuals = data.rewards + assumptions.discount * np.where(data.terminated, 0.0, anchor.at_next) - anchor.at_data
    points = state_action_points(data.states, data.actions, policy)
    return Diagnosis(
        estimate=float(starts.weights @ anchor.at_start),
        loss=loss,
        radius=replace(interval.radius, level=allowed - interval.radius.rounding),
        verdict=Verdict.CONSISTENT if loss <= allowed else Verdict.REJECTED,
        interval=interval,
        witness=witness(residuals, points, kernel),
    )


class CorrectionStatus(Enum):
    """How a correction ended; the value is the advice."""

    UNCHANGED = "The estimate is consistent with the data already: nothing was changed."
    CORRECTED = "The smallest change that makes the estimate consistent with the data was added."
    INFEASIBLE = (
        "No change within the class makes the estimate consistent with the data: the least loss exceeds the radius. "
        "Use more or other features."
    )


@dataclass(frozen=True, eq=False)
class Correction:
    """estimate + change, with the change of least norm; callable like any Q where the features are a function of points.

    norm counts every coefficient of the change, a constant too. interval is the post-hoc one, anchored at the estimate.
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
    interval: ValueInterval
    note: str
    q: AnyQ
    features: FeatureMap | None
    action_vectors: FloatArray | None

    @property
    def change(self) -> LinearQ:
        """The change alone, as a function."""
        if self.features is None:
            raise InvalidInput("This correction is known at the rows only: its features were given as columns.")
        return LinearQ(self.features, self.theta, self.action_vectors)

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        """The corrected Q."""
        return np.asarray(q_at(_as_function(self.q), states, actions) + self.change(states, actions))

    predict_value = __call__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the change as .npz; `load_linear_q` reads it, and `CorrectedQ` adds it to the estimate again."""
        save_linear_q(self.change, path)


@dataclass(frozen=True, eq=False)
class CorrectedQ:
    """An estimate plus a change that was saved."""

    q: AnyQ
    change: LinearQ

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        return np.asarray(q_at(_as_function(self.q), states, actions) + self.change(states, actions))

    predict_value = __call__


def correct(
    q: AnyQ,
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    kernel: Kernel,
    features: AnyClass,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Correction:
    """min ||theta||^2 subject to loss(estimate + theta'phi) <= radius: zero exactly when the estimate is consistent already."""
    if radius_rule(radius).loss is not LossKind.V:
        raise InvalidInput(f"`radius` of a correction must bound the V-statistic, which is convex. Got {radius!r}.")
    anchor = anchor_values(q, data, starts, policy)
    interval = _anchored(anchor, data, starts, policy, assumptions, kernel, features, radius, delta, options, progress)
    system = bellman_system(data, starts, policy, features, assumptions.discount, anchor)
    part = interval.certificates[0]
    loss = part.statistic.v_loss()
    decomposition = decompose(loss, np.ones(system.dimension, dtype=bool))
    theta = np.zeros(system.dimension)
    status = CorrectionStatus.UNCHANGED
    if loss.a0 > allowed_loss(interval, theta):
        found = _least_change(interval, decomposition)
        status = CorrectionStatus.INFEASIBLE if found is None else CorrectionStatus.CORRECTED
        theta = theta if found is None else found
    after = system.offset + float(system.objective @ theta)
    norm = float(np.linalg.norm(theta))
    return Correction(
        status=status,
        theta=theta,
        norm=norm,
        estimate_before=system.offset,
        estimate_after=after,
        loss_before=loss.a0,
        loss_after=loss(theta),
        least_loss=decomposition.least,
        radius=replace(interval.radius, level=allowed_loss(interval, theta) - interval.radius.rounding),
        interval=interval,
        note=outside_note(interval, after, float(np.linalg.norm(theta[system.penalized])), part.norm_bound, status),
        q=q,
        features=system.features,
        action_vectors=policy.action_vectors,
    )


def allowed_loss(interval: ValueInterval, theta: FloatArray) -> float:
    """The largest loss that chance allows to estimate + theta'phi, were it the true Q.

    One number for a constant radius. A radius that follows the variance is U(w, V_n)^2 / n^2 at the variance of this very Q, w
    the declared width of the residuals: that Q lies in the class is not needed for it.
    """
    part = interval.certificates[0]
    if part.tightening is None:
        return interval.radius.total
    one = part.tightening.tight.evidence[0]
    variance = one.variance(theta) * one.count**2
    u, _ = one.envelope.bound(part.tightening.tight.range.declared * one.reach, np.array([max(variance, 0.0)]))
    return float(u[0]) ** 2 / one.count**2 + interval.radius.rounding


def _least_change(interval: ValueInterval, decomposition: Decomposition) -> FloatArray | None:
    """The theta of least norm whose loss is allowed; None when not even the least loss is.

    Where the radius follows the variance, its square lies below p + q V_n, with equality at one variance: the theta of least norm
    with loss - q V_n / n^2 <= p / n^2 is the answer once that variance is its own.
    """
    part = interval.certificates[0]
    if part.tightening is None:
        return least_correction(decomposition, interval.radius.total)
    one, rounding = part.tightening.tight.evidence[0], interval.radius.rounding
    step = part.tightening.tight.range.declared * one.reach
    squared = SquaredEnvelope(one.envelope, step, one.count * step**2)
    least = decomposition.least_loss(None).theta
    if one.squared(least) > allowed_loss(interval, least):
        return None
    theta = least
    for _ in range(50):
        affine = squared.touching(one.variance(theta) * one.count**2)
        joint = decompose(difference(one.squared, one.variance, affine.rate), decomposition.mask)
        limit = affine.level / one.count**2 + rounding
        found = joint.least_norm(limit) if joint.convex else least_correction(decomposition, allowed_loss(interval, theta))
        if found is None:
            break
        moved, theta = float(np.linalg.norm(found - theta)), found
        if moved <= 1e-9 * float(np.linalg.norm(theta)):
            break
    inside, outside = 1.0, 0.0  # towards the least loss, should the last step have ended just outside
    if one.squared(theta) > allowed_loss(interval, theta):
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            point = theta + middle * (least - theta)
            inside, outside = (middle, outside) if one.squared(point) <= allowed_loss(interval, point) else (inside, middle)
        theta = theta + inside * (least - theta)
    return theta


def anchor_values(q: AnyQ, data: Transitions, starts: StartStates, policy: Policy) -> AnchorValues:
    """An estimate at the data, and averaged over the target policy at the next and at the start states."""
    if isinstance(q, QColumns):
        if len(q.at_data) != len(data) or len(q.at_next) != len(data) or len(q.at_start) != len(starts):
            raise InvalidInput(
                f"Columns of q must have {len(data)}, {len(data)} and {len(starts)} rows (data, next, start). "
                f"Got {len(q.at_data)}, {len(q.at_next)}, {len(q.at_start)}."
            )
        return AnchorValues(q.at_data, q.at_next, q.at_start)
    function = _as_function(q)
    live = ~data.terminated
    at_next = np.zeros(len(data))
    at_next[live] = q_expected(function, data.next_states[live], policy, finite=data.finite_actions)
    at_start = q_expected(function, starts.states, policy, finite=data.finite_actions)
    return AnchorValues(q_at(function, data.states, data.actions), at_next, at_start)


def _anchored(
    anchor: AnchorValues,
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    assumptions: Assumptions,
    kernel: Kernel,
    features: AnyClass | Sequence[AnyClass],
    radius: str,
    delta: float,
    options: TileOptions | None,
    progress: Progress | None,
) -> ValueInterval:
    """The post-hoc interval: the class is anchor + features."""
    return bound_ladder(
        data,
        starts,
        policy,
        assumptions=assumptions,
        kernel=kernel,
        features=features,
        radii=(radius,),
        delta=delta,
        options=options,
        progress=progress,
        anchor=anchor,
    )[0]


def _as_function(q: AnyQ) -> QFunction:
    if isinstance(q, QColumns):
        raise InvalidInput("This estimate is known at the rows only: it was given as columns.")
    if callable(q):
        return q
    if isinstance(q, ValuePredictor):
        return q.predict_value
    raise InvalidInput(f"`q` must be callable (states, actions) -> values, or have `predict_value`. Got {type(q).__name__}.")


def outside_note(interval: ValueInterval, after: float, norm: float, norm_bound: float | None, status: CorrectionStatus) -> str:
    """Why a corrected value may lie outside the post-hoc interval."""
    if status is CorrectionStatus.INFEASIBLE or interval.status is Status.INCONSISTENT:
        return ""
    if interval.lower <= after <= interval.upper:
        return ""
    if norm_bound is not None and norm > norm_bound:
        return (
            f"The corrected value {after:.4g} lies outside the post-hoc interval: the change has norm {norm:.4g}, "
            f"more than the declared bound {norm_bound:.4g}."
        )
    return f"The corrected value {after:.4g} lies outside the post-hoc interval, which the declared value range cuts."
