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

from .errors import InvalidInput
from .features import FeatureMap, Precomputed
from .policy import Policy, state_action_points
from .transitions import StartStates, Transitions
from .validation import FloatArray, refuse_non_finite

QFunction = Callable[[Any, Any], ArrayLike]
"""q(states, actions) -> values; actions as in the data: indices of a finite set, or vectors."""

ROWS_AT_ONCE = 8192
"""Rows of features computed together, which bounds the temporary memory."""


@dataclass(frozen=True, eq=False)
class BellmanSystem:
    """Everything that the program needs to know of data, policy and features.

    points:      x_i = (s_i, a_i), (n, d).
    residuals:   Z (n, m); the column of the unpenalised constant, if any, is the last.
    target:      v (n,).
    objective:   c0 (m,), so that the value of Q is c0'theta.
    penalised:   (m,) which coefficients the norm counts.
    box_moments: (m + 1, m + 1), the mean of [phi, 1][phi, 1]' over data, next and start points (a third each).
    """

    points: FloatArray
    residuals: FloatArray
    target: FloatArray
    objective: FloatArray
    penalised: np.ndarray[Any, np.dtype[np.bool_]]
    box_moments: FloatArray
    discount: float

    @property
    def dimension(self) -> int:
        return int(self.residuals.shape[1])

    def columns(self) -> FloatArray:
        """C = [Z | v | 1]; the ones give kappa^2 = 1'K1 / n^2 of the misfit bound."""
        return np.column_stack([self.residuals, self.target, np.ones(len(self.target))])


def bellman_system(
    data: Transitions, starts: StartStates, policy: Policy, features: FeatureMap | Precomputed, discount: float
) -> BellmanSystem:
    """Z, v and c0 of Algorithm 1, with expectations over the policy's actions taken as exactly as the policy allows."""
    points = state_action_points(data.states, data.actions, policy)
    if starts.states.shape[1] != data.states.shape[1]:
        raise InvalidInput(
            f"`start states` must have as many columns as `states` ({data.states.shape[1]}). Got {starts.states.shape[1]}."
        )
    _check_action_width(policy, starts.states[:1], points.shape[1] - data.states.shape[1])
    live = ~data.terminated
    if isinstance(features, Precomputed):
        if len(features.at_data) != len(data) or len(features.at_start) != len(starts):
            raise InvalidInput(
                f"Precomputed features must have {len(data)} data rows and {len(starts)} start rows. "
                f"Got {len(features.at_data)} and {len(features.at_start)}."
            )
        here, after, start = features.at_data, features.at_next * live[:, None], features.at_start
    else:
        here = _evaluate(features, points)
        after = np.zeros_like(here)
        after[live] = expected_features(features, data.next_states[live], policy)
        start = expected_features(features, starts.states, policy)
    if features.intercept:
        here = np.column_stack([here, np.ones(len(here))])
        after = np.column_stack([after, live.astype(float)])
        start = np.column_stack([start, np.ones(len(start))])
    penalised = np.ones(here.shape[1], dtype=bool)
    if features.intercept:
        penalised[-1] = False
    moments = [_second_moments(here, None), _second_moments(start, starts.weights)]
    if live.any():
        moments.append(_second_moments(after[live], None))
    return BellmanSystem(
        points=points,
        residuals=here - discount * after,
        target=data.rewards,
        objective=starts.weights @ start,
        penalised=penalised,
        box_moments=np.mean(moments, axis=0),
        discount=discount,
    )


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
    live = ~data.terminated
    states = data.next_states[live]
    after = np.zeros(len(data))
    if live.any():
        for actions, weights, index in policy.branches(states):
            asked = np.full(len(states), index) if data.finite_actions and index is not None else actions
            after[live] += weights * _values(q, states, asked)
    return np.asarray(data.rewards + discount * after - _values(q, data.states, data.actions))


def _check_action_width(policy: Policy, state: FloatArray, width: int) -> None:
    """The policy's actions must be vectors of the same length as those of the data."""
    given = next(iter(policy.branches(state))).actions.shape[1]
    if given != width:
        raise InvalidInput(f"The policy's actions have {given} columns, those of the data {width}.")


def _values(q: QFunction, states: FloatArray, actions: Any) -> FloatArray:
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


def _second_moments(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """mean of [phi, 1][phi, 1]'."""
    augmented = np.column_stack([values, np.ones(len(values))])
    if weights is None:
        return np.asarray(augmented.T @ augmented / len(values))
    return np.asarray(augmented.T @ (augmented * weights[:, None]))
