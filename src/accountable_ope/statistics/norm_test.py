"""Does the best fit of a class lie in the declared norm ball? Asymptotic, and no guarantee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..programs.quadratic import Quadratic
from ..validation import BoolArray
from .specification import Fit, range_and_complement
from .weighted_chi_square import weighted_chi_square_tail


@dataclass(frozen=True)
class NormTest:
    """Whether the class fits much better outside of the ball than within it.

    Attributes
    ----------
    norm_bound : float
        The declared one.
    norm : float
        That of the best fit without a ball.
    p_value : float
        In how many data sets, for many rows, chance alone gives as much, were Q in the class and in the ball.
    """

    norm_bound: float
    norm: float
    p_value: float


def norm_test(fit: Fit, penalized: BoolArray, norm_bound: float) -> NormTest:
    """min over the ball of ||Psi'v - A theta||^2 less the least anywhere, against sum_j w_j chi^2_1, w the eigenvalues of U'GU.

    U is a basis of the range of A. The true theta, in the ball, loses ||U'Psi'eps||^2, and the best one there no more.
    """
    from ..programs.ellipsoid_ball import decompose  # a solver, which a verifier that only reads tests has no use for

    A, b = fit.matrix, fit.target
    norm = float(np.linalg.norm(fit.theta[penalized]))
    if norm <= norm_bound:
        return NormTest(norm_bound, norm, 1.0)
    inside = decompose(Quadratic(A.T @ A, A.T @ b, float(b @ b)), penalized).least_loss(norm_bound).theta
    gain = float(np.sum((b - A @ inside) ** 2) - np.sum((b - A @ fit.theta) ** 2))
    U = range_and_complement(A)[0]
    return NormTest(
        norm_bound, norm, weighted_chi_square_tail(gain, np.maximum(np.linalg.eigvalsh(U.T @ fit.covariance @ U), 0.0))
    )
