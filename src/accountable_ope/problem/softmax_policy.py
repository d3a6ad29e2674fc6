"""The policy that an estimate of Q stands for: greedy, or a softmax of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, float_array, frozen, number
from .policy import Branch, action_vectors, finite_branches


@checked
@dataclass(frozen=True, eq=False, init=False)
class SoftmaxPolicy:
    """pi(a | s) proportional to exp(Q(s, a) / temperature); temperature 0 takes the action of the largest Q, the first of equals.

    Parameters
    ----------
    q : callable or object with `predict_value`
        (states (n, d), action indices (n,)) -> values (n,).
    actions : int or array (A, k)
        Vectors that enter x = (s, a); or the number A, for one-hot vectors.
    temperature : float
        At least 0, in the unit of values.

    Raises
    ------
    InvalidInput
        Where `q` is no function, the temperature is negative, or, when asked for, values are none.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import SoftmaxPolicy
    >>> policy = SoftmaxPolicy(lambda states, actions: states[:, 0] * actions, actions=2, temperature=1.0)
    >>> [branch.weights.round(3).tolist() for branch in policy.branches(np.array([[0.0], [1.0]]))]
    [[0.5, 0.269], [0.5, 0.731]]
    """

    q: Callable[[Any, Any], ArrayLike]
    action_vectors: FloatArray
    temperature: float
    exact: bool = True

    def __init__(self, q: Any, actions: ArrayLike | int, temperature: float = 0.0) -> None:
        function = q if callable(q) else getattr(q, "predict_value", None)
        if isinstance(q, type) or not callable(function):
            raise InvalidInput(
                f"`q` must be callable (states, actions) -> values, or have `predict_value`. Got {type(q).__name__}."
            )
        if number(temperature, "temperature") < 0:
            raise InvalidInput(f"`temperature` must be at least 0. Got {temperature!r}.")
        object.__setattr__(self, "q", function)
        object.__setattr__(self, "action_vectors", frozen(action_vectors(actions)))
        object.__setattr__(self, "temperature", float(temperature))
        object.__setattr__(self, "exact", True)

    def __repr__(self) -> str:
        return f"SoftmaxPolicy({len(self.action_vectors)} actions, temperature {self.temperature:g})"

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        count = len(self.action_vectors)
        values = np.empty((len(states), count))
        for action in range(count):
            found = float_array(self.q(states, np.full(len(states), action)), "values of q", dimensions=(0, 1, 2, 3))
            if found.size != len(states):
                raise InvalidInput(f"`q` must give one value per row ({len(states)}). Got an array of shape {found.shape}.")
            values[:, action] = found.reshape(-1)
        return finite_branches(softmax(values, self.temperature), self.action_vectors)


def softmax(values: FloatArray, temperature: float) -> FloatArray:
    """exp(values / temperature) over its sum, row by row; at 0 the first of the largest."""
    if temperature == 0:
        return np.asarray(np.eye(values.shape[1])[np.argmax(values, axis=1)])
    with np.errstate(over="ignore"):  # a difference far above the temperature is infinite, and its weight 0
        weights = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
