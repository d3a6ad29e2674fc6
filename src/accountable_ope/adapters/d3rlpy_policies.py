"""Algorithms of d3rlpy, by what they look like: nothing of it is imported."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..arguments import checked, shown
from ..errors import InvalidInput
from ..problem.policy import DeterministicPolicy, DiscretePolicy
from ..validation import FloatArray
from .answers import asked, in_parts, policy_of


@checked
def d3rlpy_policy(algorithm: Any, actions: ArrayLike | int | None = None) -> DiscretePolicy | DeterministicPolicy:
    """The greedy policy of a fitted d3rlpy algorithm: what its `predict` answers. Add chance by `EpsilonGreedy`.

    Parameters
    ----------
    algorithm : object with `predict`
        Such as DiscreteCQL, DQN, CQL or TD3+BC, built and fitted.
    actions : int or array (A, k), optional
        The finite action set: vectors that enter x = (s, a), or their number for one-hot vectors. By default a discrete algorithm
        says how many there are (`action_size`), and any other answers action vectors.

    Returns
    -------
    DiscretePolicy or DeterministicPolicy

    Raises
    ------
    InvalidInput
        Where it has no `predict`, or is not built yet.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.adapters import d3rlpy_policy
    >>> class Fitted:
    ...     def predict(self, x):
    ...         return (x[:, 0] > 0).astype(int)
    >>> [branch.weights.tolist() for branch in d3rlpy_policy(Fitted(), actions=2).branches(np.array([[-1.0], [1.0]]))]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    predict = getattr(algorithm, "predict", None)
    if isinstance(algorithm, type) or not callable(predict):
        raise InvalidInput(f"`algorithm` must be a fitted algorithm with `predict`. Got {shown(algorithm)}.")
    name = type(algorithm).__name__
    if actions is None and _discrete(algorithm):
        actions = getattr(algorithm, "action_size", None)
        if actions is None:
            raise InvalidInput(f"{name} is not built yet: fit it, or give `actions`, the number of actions.")

    def answer(states: FloatArray) -> ArrayLike:
        return in_parts(lambda some: asked(predict, some, name), states)

    return policy_of(answer, "actions", actions, None, name)


def _discrete(algorithm: Any) -> bool:
    kind = getattr(algorithm, "get_action_type", None)
    return callable(kind) and getattr(kind(), "name", "") == "DISCRETE"
