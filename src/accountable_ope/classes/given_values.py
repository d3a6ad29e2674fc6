"""An estimate of Q that exists already, as one feature: the class then holds it, and whatever is near it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, IntArray, float_array, frozen, matrix, positive, whole


@checked
@dataclass(frozen=True, eq=False)
class GivenValues:
    """phi(s, a) = (q(s, a) - center) / scale: one column.

    Parameters
    ----------
    q : callable
        q(states, actions) -> values; actions as indices of a finite set where there are vectors of it, else as vectors.
    state_columns : int
        How many columns of a point are the state.
    action_vectors : array (A, k), optional
        What action indices stand for.
    center, scale : float
        So that the column is of the size of others.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        When called, where q gives something else than one finite number per point.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.classes import GivenValues
    >>> column = GivenValues(lambda states, actions: states[:, 0] + 10 * actions, 1, np.eye(2))
    >>> column(np.array([[0.5, 0.0, 1.0]])).tolist()
    [[10.5]]
    """

    q: Callable[[Any, Any], ArrayLike]
    state_columns: int
    action_vectors: FloatArray | None = None
    center: float = 0.0
    scale: float = 1.0
    intercept: bool = True

    def __post_init__(self) -> None:
        whole(self.state_columns, "state_columns", least=1)
        positive(self.scale, "scale")
        if self.action_vectors is not None:
            object.__setattr__(self, "action_vectors", frozen(matrix(self.action_vectors, "action_vectors")))

    def __repr__(self) -> str:
        return f"GivenValues(a given estimate, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return 1

    def __call__(self, points: FloatArray) -> FloatArray:
        states, vectors = points[:, : self.state_columns], points[:, self.state_columns :]
        actions: FloatArray | IntArray = vectors
        if self.action_vectors is not None:
            away = vectors[:, :, None] - self.action_vectors.T[None]
            actions = np.argmin((away**2).sum(axis=1), axis=1)
        values = float_array(self.q(states, actions), "q", dimensions=(1, 2))
        if values.size != len(points):
            raise InvalidInput(f"`q` must give one value per point. Got {values.shape} for {len(points)} points.")
        return np.asarray((values.reshape(-1, 1) - self.center) / self.scale)
