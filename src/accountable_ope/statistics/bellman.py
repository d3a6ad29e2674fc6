"""Data, policy and features -> the linear system of Bellman residuals.

For Q = theta'phi the residual of row i is eps_i = r_i + discount E_{a'~pi} Q(s'_i, a') - Q(x_i) = v_i - Z_i theta, with
Z_i = phi(x_i) - discount E phi(s'_i, a') and v_i = r_i. A terminal next state is worth 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..classes.features import FeatureMap, KernelSections, Precomputed
from ..classes.sections import SectionFeatures, Sections, pivoted_coordinates
from ..errors import InvalidInput
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import StartStates, Transitions
from ..validation import BoolArray, FloatArray, refuse_non_finite

QFunction = Callable[[Any, Any], ArrayLike]
"""q(states, actions) -> values; actions as in the data: indices of a finite set, or vectors."""

BOX_ROWS = 2000
"""So many data, next and start points are kept for a value box at every point."""

ROWS_AT_ONCE = 8192
"""Rows of features computed together, which bounds the temporary memory."""


@dataclass(frozen=True, eq=False)
class Remainder:
    """What finitely many coordinates of an RKHS miss: for g orthogonal to them, with norm s,

    |eps_i(Q) - eps_i(Q - g)| <= s rows_i, |value(Q) - value(Q - g)| <= s objective, and over the points of the value box
    |g(y)| <= s box in root mean square.
    """

    rows: FloatArray
    objective: float
    box: float


@dataclass(frozen=True, eq=False)
class AnchorValues:
    """An existing Q as columns: at the data, at the next and at the start states, the last two averaged over the policy."""

    at_data: FloatArray
    at_next: FloatArray
    at_start: FloatArray


@dataclass(frozen=True, eq=False)
class BellmanSystem:
    """Everything that the program needs to know of data, policy and features.

    points:      x_i = (s_i, a_i), (n, d).
    residuals:   Z (n, m); the column of the unpenalized constant, if any, is the last.
    target:      v (n,): the rewards, or the residuals of the Q at which the class is anchored.
    objective:   c0 (m,), so that the value of Q is offset + c0'theta.
    penalized:   (m,) which coefficients the norm counts.
    box_moments: the mean of u u' over data, next and start points (a third each), u = [phi, 1], or [phi, 1, anchor].
    box_rows:    some of these points themselves, [phi, anchor] with an anchor of 0 where there is none: for a box at every point.
    offset:      the value of the anchor, 0 without one.
    remainder:   what the coordinates miss, None where the class is what they span.
    features:    phi as a function of points, None where it is known at the rows only.
    """

    points: FloatArray
    residuals: FloatArray
    target: FloatArray
    objective: FloatArray
    penalized: np.ndarray[Any, np.dtype[np.bool_]]
    box_moments: FloatArray
    box_rows: FloatArray
    discount: float
    offset: float = 0.0
    remainder: Remainder | None = None
    features: FeatureMap | None = None

    @property
    def dimension(self) -> int:
        return int(self.residuals.shape[1])

    def columns(self) -> FloatArray:
        """C = [Z | v | 1], and what is missed where there is a remainder; the ones give kappa^2 = 1'K1 / n^2 of the misfit."""
        columns = [self.residuals, self.target, np.ones(len(self.target))]
        return np.column_stack(columns if self.remainder is None else [*columns, self.remainder.rows])


@dataclass(frozen=True, eq=False)
class _Columns:
    """Features at the data, at the next states (0 where terminated) and at the start states; what they miss."""

    here: FloatArray
    after: FloatArray
    start: FloatArray
    features: FeatureMap | None = None
    remainder: Remainder | None = None


def bellman_system(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    features: FeatureMap | KernelSections | Precomputed,
    discount: float,
    anchor: AnchorValues | None = None,
) -> BellmanSystem:
    """Z, v and c0 of Algorithm 1, with expectations over the policy's actions taken as exactly as the policy allows.

    With an anchor the class is anchor + features, and v are the anchor's residuals (Algorithm 2).
    """
    if not 0 <= discount <= 1:
        raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
    points = state_action_points(data.states, data.actions, policy)
    if starts.states.shape[1] != data.states.shape[1]:
        raise InvalidInput(
            f"`start states` must have as many columns as `states` ({data.states.shape[1]}). Got {starts.states.shape[1]}."
        )
    _check_action_width(policy, starts.states[:1], points.shape[1] - data.states.shape[1])
    live = ~data.terminated
    if isinstance(features, Precomputed):
        columns = _precomputed(features, data, starts)
    elif isinstance(features, KernelSections):
        columns = _section_columns(features, points, data, starts, policy, discount)
    else:
        here = _evaluate(features, points)
        after = np.zeros_like(here)
        after[live] = expected_features(features, data.next_states[live], policy)
        columns = _Columns(here, after, expected_features(features, starts.states, policy), features)
    here, after, start = columns.here, columns.after, columns.start
    if features.intercept:
        here = np.column_stack([here, np.ones(len(here))])
        after = np.column_stack([after, live.astype(float)])
        start = np.column_stack([start, np.ones(len(start))])
    penalized = np.ones(here.shape[1], dtype=bool)
    if features.intercept:
        penalized[-1] = False
    target, offset = data.rewards, 0.0
    values: tuple[FloatArray | None, FloatArray | None, FloatArray | None] = (None, None, None)
    if anchor is not None:
        target = data.rewards + discount * np.where(live, anchor.at_next, 0.0) - anchor.at_data
        offset = float(starts.weights @ anchor.at_start)
        values = (anchor.at_data, anchor.at_next[live], anchor.at_start)
    moments = [_second_moments(here, values[0], None), _second_moments(start, values[2], starts.weights)]
    if live.any():
        moments.append(_second_moments(after[live], values[1], None))
    groups = ((here, values[0]), (after[live], values[1]), (start, values[2]))
    return BellmanSystem(
        points=points,
        residuals=here - discount * after,
        target=target,
        objective=starts.weights @ start,
        penalized=penalized,
        box_moments=np.mean(moments, axis=0),
        box_rows=np.concatenate([_some_rows(rows, anchored) for rows, anchored in groups]),
        discount=discount,
        offset=offset,
        remainder=columns.remainder,
        features=columns.features,
    )


def _precomputed(features: Precomputed, data: Transitions, starts: StartStates) -> _Columns:
    if len(features.at_data) != len(data) or len(features.at_start) != len(starts):
        raise InvalidInput(
            f"Precomputed features must have {len(data)} data rows and {len(starts)} start rows. "
            f"Got {len(features.at_data)} and {len(features.at_start)}."
        )
    return _Columns(features.at_data, features.at_next * ~data.terminated[:, None], features.at_start)


def _section_columns(
    features: KernelSections, points: FloatArray, data: Transitions, starts: StartStates, policy: Policy, discount: float
) -> _Columns:
    """Coordinates of the RKHS in which the sections f_0 (the start) and f_i (the residuals) have their largest parts."""
    live = ~data.terminated
    onward = (
        [
            (
                _spread(np.concatenate([data.next_states[live], branch.actions], axis=1), live, points),
                _spread(branch.weights, live, None),
            )
            for branch in policy.branches(data.next_states[live])
        ]
        if live.any()
        else []
    )
    at_data = Sections(((points, np.ones(len(data))),))
    at_next = Sections(tuple(onward)) if onward else Sections(((points, np.zeros(len(data))),))
    at_start = Sections(
        tuple((np.concatenate([starts.states, b.actions], axis=1), b.weights) for b in policy.branches(starts.states))
    )
    residuals = Sections((*at_data.branches, *((y, -discount * w) for y, w in at_next.branches)))
    found = pivoted_coordinates(features.kernel, residuals, at_start, starts.weights, features.landmarks)
    here, missed_here = found.basis.coordinates(at_data)
    after, missed_after = found.basis.coordinates(at_next)
    start, missed_start = found.basis.coordinates(at_start)
    shares = [missed_here.mean(), float(starts.weights @ missed_start)]
    if live.any():
        shares.append(missed_after[live].mean())
    remainder = Remainder(np.sqrt(found.missed), float(np.sqrt(found.start_missed)), float(np.sqrt(np.mean(shares))))
    return _Columns(here, after, start, SectionFeatures(found.basis, features.intercept), remainder)


def _spread(values: FloatArray, live: BoolArray, fill: FloatArray | None) -> FloatArray:
    """Rows of the live transitions put back in place, the others filled (with a weight of 0 their points do not matter)."""
    out = np.zeros(len(live)) if fill is None else fill.copy()
    out[live] = values
    return out


def expected_features(features: FeatureMap, states: FloatArray, policy: Policy) -> FloatArray:
    """E_{a ~ pi(s)} phi(s, a), one row per state."""
    total = np.zeros((len(states), features.dimension))
    if len(states) == 0:
        return total
    for actions, weights, _ in policy.branches(states):
        for start in range(0, len(states), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            part = _checked(features, np.concatenate([states[rows], actions[rows]], axis=1))
            total[rows] += weights[rows, None] * part
    return total


def bellman_residuals(q: QFunction, data: Transitions, policy: Policy, discount: float) -> FloatArray:
    """eps_i(Q) = r_i + discount E_{a' ~ pi} Q(s'_i, a') - Q(s_i, a_i) for any Q, terminal next states worth 0."""
    state_action_points(data.states, data.actions, policy)  # refuses actions outside the policy's set
    live = ~data.terminated
    after = np.zeros(len(data))
    after[live] = q_expected(q, data.next_states[live], policy, finite=data.finite_actions)
    return np.asarray(data.rewards + discount * after - q_at(q, data.states, data.actions))


def q_expected(q: QFunction, states: FloatArray, policy: Policy, *, finite: bool) -> FloatArray:
    """E_{a ~ pi(s)} Q(s, a); `finite`: Q takes indices of a finite action set, else vectors."""
    total = np.zeros(len(states))
    if len(states) == 0:
        return total
    for actions, weights, index in policy.branches(states):
        total += weights * q_at(q, states, np.full(len(states), index) if finite and index is not None else actions)
    return total


def _check_action_width(policy: Policy, state: FloatArray, width: int) -> None:
    """The policy's actions must be vectors of the same length as those of the data."""
    given = next(iter(policy.branches(state))).actions.shape[1]
    if given != width:
        raise InvalidInput(f"The policy's actions have {given} columns, those of the data {width}.")


def q_at(q: QFunction, states: FloatArray, actions: Any) -> FloatArray:
    """Q at rows of states and actions, checked."""
    values = np.asarray(q(states, actions), dtype=np.float64)
    if values.size != len(states):
        raise InvalidInput(f"`q` must give one value per row ({len(states)}). Got an array of shape {values.shape}.")
    refuse_non_finite(values, "values of q")
    return values.reshape(len(states))


def _evaluate(features: FeatureMap, points: FloatArray) -> FloatArray:
    out = np.empty((len(points), features.dimension))
    for start in range(0, len(points), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        out[rows] = _checked(features, points[rows])
    return out


def _checked(features: FeatureMap, points: FloatArray) -> FloatArray:
    values = np.asarray(features(points), dtype=np.float64)
    if values.shape != (len(points), features.dimension):
        raise InvalidInput(f"`features` must give shape {(len(points), features.dimension)}. Got {values.shape}.")
    refuse_non_finite(values, "features")
    return values


def _some_rows(values: FloatArray, anchor: FloatArray | None) -> FloatArray:
    """[phi, anchor] at up to BOX_ROWS of the points, evenly spread: Q lies in the value range at all of them, so any will do."""
    chosen = np.unique(np.linspace(0, len(values) - 1, min(BOX_ROWS, len(values))).astype(int)) if len(values) else slice(0)
    return np.column_stack([values[chosen], np.zeros(len(values))[chosen] if anchor is None else anchor[chosen]])


def _second_moments(values: FloatArray, anchor: FloatArray | None, weights: FloatArray | None) -> FloatArray:
    """mean of u u', u = [phi, 1] or [phi, 1, anchor]."""
    augmented = np.column_stack([values, np.ones(len(values))] if anchor is None else [values, np.ones(len(values)), anchor])
    if weights is None:
        return np.asarray(augmented.T @ augmented / len(values))
    return np.asarray(augmented.T @ (augmented * weights[:, None]))
