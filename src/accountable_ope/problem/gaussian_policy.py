"""Normal actions around a mean: expectations in closed form, and no draws.

For a ~ N(mean(s), C) and x = (s, a), E cos(w'x + b) = cos(w'(s, mean(s)) + b) exp(-w_a'C w_a / 2), w_a the part of w that meets
the action; and a Gaussian kernel between two such points is a Gaussian in the difference of their means again. Classes that know
such means (`classes.features.NormalMeans`, `KernelSections` of a Gaussian) take them; others are told to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, float_array, frozen, matrix
from .policy import Branch, SampledPolicy, action_rows

NO_LIST = (
    "The actions of a GaussianPolicy can be neither listed nor, unasked, drawn: it goes with RandomFourier features and with "
    "KernelSections of a Gaussian, whose means over normal actions are known. Elsewhere use policy.sampled(draws=10)."
)


@checked
@dataclass(frozen=True, eq=False, init=False)
class GaussianPolicy:
    """a ~ N(mean(s), C), with the expectations of cosines and of Gaussian kernels in closed form: nothing is drawn.

    Parameters
    ----------
    mean : callable
        States (n, d) -> (n, k).
    covariance : array (k, k) or (k,), or float
        C, the same at every state; a vector holds the variances of independent coordinates, a number that of the only one.

    Raises
    ------
    InvalidInput
        Where the covariance is none, or, when asked for, the means are no action vectors of its size.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import GaussianPolicy, RandomFourier
    >>> from accountable_ope.classes import expected_features
    >>> policy = GaussianPolicy(lambda states: -0.5 * states, covariance=0.04)
    >>> expected_features(RandomFourier(3), np.array([[2.0]]), policy).round(4)
    array([[-0.2854,  0.4999, -0.2306]])
    """

    mean: Callable[[FloatArray], ArrayLike]
    covariance: FloatArray
    exact: bool = True
    action_vectors: None = None

    def __init__(self, mean: Callable[[FloatArray], ArrayLike], covariance: ArrayLike) -> None:
        if isinstance(mean, type) or not callable(mean):
            raise InvalidInput("`mean` must be callable: states (n, d) -> actions (n, k).")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", frozen(_covariance(covariance)))
        object.__setattr__(self, "exact", True)
        object.__setattr__(self, "action_vectors", None)

    def __repr__(self) -> str:
        return f"GaussianPolicy({len(self.covariance)}-d actions)"

    def means(self, states: FloatArray) -> FloatArray:
        """The mean actions (n, k) at states (n, d)."""
        found = matrix(action_rows(self.mean(states), len(states), "mean actions of the policy"), "mean actions of the policy")
        if found.shape[1] != len(self.covariance):
            raise InvalidInput(
                f"`covariance` is of {len(self.covariance)}-d actions, but the policy's means have {found.shape[1]} columns."
            )
        return found

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        """Refused: a sum over finitely many actions is no expectation of this policy."""
        raise InvalidInput(NO_LIST)

    def density(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """The density of actions (n, k) at states (n, d)."""
        away = matrix(actions, "actions") - self.means(states)
        try:
            factor = np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError:
            raise InvalidInput("`covariance` is singular: actions of this policy have no density.") from None
        scaled = np.linalg.solve(factor, away.T)
        scale = np.prod(np.diag(factor)) * (2 * np.pi) ** (len(factor) / 2)
        return np.asarray(np.exp(-0.5 * (scaled**2).sum(axis=0)) / scale)

    @checked
    def sampled(self, draws: int = 10, seed: int = 0) -> SampledPolicy:
        """The same policy by draws, for classes that know no means over normal actions."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))

        def sample(states: FloatArray, generator: np.random.Generator) -> FloatArray:
            return np.asarray(self.means(states) + generator.normal(size=(len(states), len(root))) @ root.T)

        return SampledPolicy(sample, draws=draws, seed=seed)


def _covariance(values: ArrayLike) -> FloatArray:
    array = float_array(values, "covariance", dimensions=(0, 1, 2))
    found = np.diag(np.atleast_1d(array)) if array.ndim < 2 else array
    if found.shape[0] != found.shape[1] or found.size == 0:
        raise InvalidInput(f"`covariance` must be a square matrix, a vector of variances or a number. Got shape {array.shape}.")
    scale = float(np.abs(found).max())
    if not np.allclose(found, found.T, rtol=0, atol=1e-9 * scale):
        raise InvalidInput("`covariance` must be symmetric.")
    found = (found + found.T) / 2
    if float(np.linalg.eigvalsh(found).min()) < -1e-9 * scale:
        raise InvalidInput("`covariance` must not be negative in any direction: its least eigenvalue is below 0.")
    return found
