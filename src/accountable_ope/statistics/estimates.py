"""Existing estimates of Q: functions, fitted objects of other libraries, or columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..adapters.sklearn_models import Regressor, RegressorQ
from ..arguments import checked
from ..classes.function_class import expected_features
from ..classes.linear_q import LinearQ
from ..errors import InvalidInput
from ..problem.gaussian_policy import GaussianPolicy
from ..problem.policy import Policy, at_start
from ..problem.problem import Experience
from ..validation import FloatArray, float_array, frozen, vector

QFunction = Callable[[Any, Any], ArrayLike]
"""q(states, actions) -> values; actions as in the data: indices of a finite set, or vectors."""


@runtime_checkable
class ValuePredictor(Protocol):
    """What fitted estimators of other libraries look like."""

    def predict_value(self, states: Any, actions: Any) -> Any: ...


@checked
@dataclass(frozen=True, eq=False, init=False)
class QColumns:
    """An existing Q as columns: at the data, and averaged over the target policy at the next and at the start states.

    Parameters
    ----------
    at_data, at_next : array (n,)
        Q at every row, and its mean over the policy's actions at the next state.
    at_start : array (starts,)
        Its mean over the policy's actions at every start state.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.QColumns([1.0, 2.0], [0.5, 0.0], [1.5]).at_start
    array([1.5])
    """

    at_data: FloatArray
    at_next: FloatArray
    at_start: FloatArray

    def __init__(self, at_data: ArrayLike, at_next: ArrayLike, at_start: ArrayLike) -> None:
        for name, values in (("at_data", at_data), ("at_next", at_next), ("at_start", at_start)):
            object.__setattr__(self, name, frozen(vector(values, name)))

    def __repr__(self) -> str:
        return f"QColumns({len(self.at_data)} rows, {len(self.at_start)} start states)"


AnyQ = QFunction | ValuePredictor | Regressor | QColumns


@checked
def q_columns(q: AnyQ, experience: Experience, reference: float = 0.0) -> QColumns:
    """An estimate at the data, and averaged over the target policy at the next and at the start states.

    Parameters
    ----------
    q : callable, object with `predict_value`, regressor, or QColumns
    experience : Experience
    reference : float
        A constant from which values are counted.

    Returns
    -------
    QColumns

    Raises
    ------
    InvalidInput
        Where given columns do not have as many rows as the data and the start states.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.statistics import q_columns
    >>> data = aope.Transitions([[0.0], [1.0]], [0, 1], [0.5, 0.0], [[1.0], [0.0]], terminated=[False, True])
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> experience = Experience(data, aope.StartStates([[2.0]]), policy, discount=0.5)
    >>> columns = q_columns(lambda states, actions: states[:, 0] + actions, experience)
    >>> columns.at_data.tolist(), columns.at_next.tolist(), columns.at_start.tolist()
    ([0.0, 2.0], [1.5, 0.0], [2.5])
    """
    data, starts, policy = experience.data, experience.starts, experience.policy
    if isinstance(q, QColumns):
        if len(q.at_data) != len(data) or len(q.at_next) != len(data) or len(q.at_start) != len(starts):
            raise InvalidInput(
                f"Columns of q must have {len(data)}, {len(data)} and {len(starts)} rows (data, next, start). "
                f"Got {len(q.at_data)}, {len(q.at_next)}, {len(q.at_start)}."
            )
        return QColumns(q.at_data - reference, q.at_next - reference, q.at_start - reference) if reference else q
    # A constant coefficient is the place to subtract from: sums with a large one have fewer digits.
    exact = isinstance(q, LinearQ) and q.features.intercept
    counted = q.minus(reference) if exact and isinstance(q, LinearQ) and reference else q
    function, live = as_function(counted, policy.action_vectors), experience.live
    rest = 0.0 if exact else reference
    at_next = np.zeros(len(data))
    at_next[live] = q_expected(function, data.next_states[live], policy, finite=data.finite_actions)
    starting = q_expected(function, starts.states, at_start(policy), finite=data.finite_actions)
    return QColumns(q_at(function, data.states, data.actions) - rest, at_next - rest, starting - rest)


def as_function(q: AnyQ, action_vectors: FloatArray | None = None) -> QFunction:
    """The estimate as a function of states and actions; action_vectors: what a regressor takes for indices."""
    if isinstance(q, QColumns):
        raise InvalidInput("This estimate is known at the rows only: it was given as columns.")
    if callable(q):
        return q
    if isinstance(q, ValuePredictor):
        return q.predict_value
    if isinstance(q, Regressor):
        return RegressorQ(q, action_vectors)
    raise InvalidInput(
        "`q` must be callable (states, actions) -> values, have `predict_value`, or be a fitted regressor with `predict`. "
        f"Got {type(q).__name__}."
    )


def q_at(q: QFunction, states: FloatArray, actions: Any) -> FloatArray:
    """Q at rows of states and actions, checked."""
    values = float_array(q(states, actions), "values of q", dimensions=(0, 1, 2, 3))
    if values.size != len(states):
        raise InvalidInput(f"`q` must give one value per row ({len(states)}). Got an array of shape {values.shape}.")
    return values.reshape(len(states))


def q_expected(q: QFunction, states: FloatArray, policy: Policy, *, finite: bool) -> FloatArray:
    """E_{a ~ pi(s)} Q(s, a); `finite`: Q takes indices of a finite action set, else vectors."""
    total = np.zeros(len(states))
    if len(states) == 0:
        return total
    if isinstance(policy, GaussianPolicy) and isinstance(q, LinearQ):
        means = expected_features(q.features, states, policy) @ q.theta[: q.features.dimension]
        return np.asarray(means + q.theta[-1] if q.features.intercept else means)
    for actions, weights, index in policy.branches(states):
        taken = np.flatnonzero(weights)  # an action that is never taken may be unknown to the estimate
        if len(taken):
            asked = np.full(len(taken), index) if finite and index is not None else actions[taken]
            total[taken] += weights[taken] * q_at(q, states[taken], asked)
    return total
