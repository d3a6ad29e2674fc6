"""Random Fourier features of the state for every action apart, with a scale of their own for every column."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, frozen, matrix, positive, vector, whole
from .features import damping


@checked
@dataclass(frozen=True, eq=False, init=False)
class ActionFourier:
    """phi(s, a) = e_a (x) [cos(w_k'(s / h) + b_k) / sqrt(m)]_k, w_k ~ N(0, I), b_k ~ U[0, 2 pi], k = 1..m, e_a one-hot.

    With no actions, points are taken as a whole: cos(w_k'(x / h) + b_k) / sqrt(m).

    Parameters
    ----------
    cosines : int
        m, per action.
    bandwidths : array (d,)
        h, one per column of the state (of the whole point where there are no actions).
    actions : array (A, k), optional
        The vectors that actions stand for; a point has the action whose vector is nearest.
    seed : int
        Seed of frequencies and phases.
    intercept : bool
        Whether an unpenalized constant is added.

    Raises
    ------
    InvalidInput
        Where a bandwidth is not positive or, when called, points have another number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.classes import ActionFourier
    >>> features = ActionFourier(5, bandwidths=[0.5, 100.0], actions=np.eye(3))
    >>> features.dimension, features(np.array([[0.1, 20.0, 0.0, 1.0, 0.0]]))[0, :5].tolist()
    (15, [0.0, 0.0, 0.0, 0.0, 0.0])
    """

    cosines: int
    bandwidths: FloatArray
    actions: FloatArray | None
    seed: int
    intercept: bool
    for_threads: ClassVar[bool] = True

    def __init__(
        self, cosines: int, bandwidths: ArrayLike, actions: ArrayLike | None = None, seed: int = 0, intercept: bool = True
    ) -> None:
        widths = frozen(vector(bandwidths, "bandwidths"))
        for width in widths.tolist():
            positive(width, "bandwidths")
        object.__setattr__(self, "cosines", whole(cosines, "cosines", least=1))
        object.__setattr__(self, "bandwidths", widths)
        object.__setattr__(self, "actions", None if actions is None else frozen(matrix(actions, "actions")))
        object.__setattr__(self, "seed", whole(seed, "seed", least=0))
        object.__setattr__(self, "intercept", bool(intercept))

    def __repr__(self) -> str:
        many = "" if self.actions is None else f" for each of {len(self.actions)} actions"
        widths = ", ".join(f"{width:.4g}" for width in self.bandwidths.tolist())
        return f"ActionFourier({self.cosines} cosines{many}, bandwidths=({widths}), seed={self.seed}, intercept={self.intercept})"

    @property
    def dimension(self) -> int:
        return self.cosines * (1 if self.actions is None else len(self.actions))

    @property
    def diameter(self) -> float:
        """Every cosine changes by at most 2."""
        return 2.0

    def __call__(self, points: FloatArray) -> FloatArray:
        d = len(self.bandwidths)
        wanted = d + (0 if self.actions is None else self.actions.shape[1])
        if points.shape[1] != wanted:
            raise InvalidInput(f"ActionFourier takes {wanted}-d points (s, a). Got {points.shape[1]}-d ones.")
        w, b = self._frequencies()
        cosines = np.cos((points[:, :d] / self.bandwidths) @ w.T + b) / sqrt(self.cosines)
        if self.actions is None:
            return cosines
        away = points[:, d:, None] - self.actions.T[None]
        taken = np.argmin((away**2).sum(axis=1), axis=1)
        out = np.zeros((len(points), len(self.actions), self.cosines))
        out[np.arange(len(points)), taken] = cosines
        return out.reshape(len(points), -1)

    def normal_means(self, points: FloatArray, covariance: FloatArray) -> FloatArray:
        """As those of `RandomFourier`, where points are taken as a whole."""
        if self.actions is not None:
            raise InvalidInput("ActionFourier has features for every action apart: normal actions are none of them.")
        return self(points) * damping(self._frequencies()[0] / self.bandwidths, covariance)

    def _frequencies(self) -> tuple[FloatArray, FloatArray]:
        generator = np.random.default_rng(self.seed)
        w = generator.normal(size=(self.cosines, len(self.bandwidths)))
        return w, generator.uniform(0.0, 2 * np.pi, self.cosines)
