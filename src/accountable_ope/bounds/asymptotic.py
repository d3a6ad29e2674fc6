"""Asymptotic companions: far narrower than any guarantee of finite samples, and right only in the limit of many rows.

All rest on eps_i = v_i - Z_i theta having mean zero given the past at the true Q. Nothing bounds how far they are off at a given
n: where a few rare rows carry the value, all of them fail (docs/asymptotic.md measures it).

With K the kernel matrix of the rows, M = K / n^2, D = diag(K), thetahat the minimizer of the V-statistic and e its residuals:

- wild radius: the quantile of (e w)'K(e w) / n^2 over independent N(0, 1) multipliers w. Residuals are martingale differences, so
  multipliers need no blocks, on trajectories too.
- Anderson-Rubin set: {eps'(K - q D) eps <= 0}, q = wild radius * n^2 / sum_i e_i^2 K_ii: the radius grows with the residuals of
  the Q that is tested, so that the set is unbounded where the data identify nothing.
- sandwich: c0'thetahat +- z se, se^2 = sum_i g_i^2 e_i^2, g = M Z (Z'MZ)^{-1} c0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..classes.function_class import Features, as_classes
from ..errors import InvalidInput
from ..problem.policy import at_start
from ..problem.problem import Problem
from ..problem.statements import Statement, premise
from ..statistics.bellman import BellmanSystem
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray
from .interval import normalizer

FLAT = 1e-12
"""A direction of theta with less of the loss than this, in units where every feature has 1, is not seen by the data."""


@dataclass(frozen=True, eq=False)
class LeastLoss:
    """The minimizer of the V-statistic.

    theta:     thetahat.
    weights:   (Z'MZ)^+ c0; None where c0 is not in the range of Z'MZ.
    condition: the condition number.
    unseen:    the number of unseen directions.
    """

    theta: FloatArray
    weights: FloatArray | None
    condition: float
    unseen: int

    @property
    def seen(self) -> bool:
        """Whether the data see all that the value depends on."""
        return self.weights is not None


def least_loss_solution(statistic: KernelStatistic, objective: FloatArray) -> LeastLoss:
    """thetahat and (Z'MZ)^+ c0.

    Both solutions are of least norm in units where every feature has a loss of 1.
    """
    loss = statistic.v_loss()
    scale = unit_scale(loss.A)
    A, right = scale[:, None] * loss.A * scale, scale[:, None] * np.column_stack([loss.a, objective])
    solved, _, rank, sizes = np.linalg.lstsq(0.5 * (A + A.T), right, rcond=flat(statistic))
    missed = float(np.linalg.norm(A @ solved[:, 1] - right[:, 1]))
    seen = missed <= 1e-6 * float(np.linalg.norm(right[:, 1]))
    condition = float(sizes[0] / sizes[rank - 1]) if rank else math.inf
    return LeastLoss(scale * solved[:, 0], scale * solved[:, 1] if seen else None, condition, len(scale) - int(rank))


def flat(statistic: KernelStatistic) -> float:
    """Below this share of the largest eigenvalue, the data do not see a direction: `FLAT`, or the rounding of the kernel."""
    return max(FLAT, statistic.kernel_error / statistic.kernel_supremum)


def unit_scale(A: FloatArray) -> FloatArray:
    """1 / sqrt(A_ii), 1 for a column of zeros."""
    diagonal = np.diagonal(A)
    return np.asarray(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))


def check_class(features: Features | Sequence[Features], problem: Problem) -> None:
    """Refuse what a limit of many rows says nothing about: several classes, too many coefficients, a misfit."""
    classes, rows = as_classes(features), len(problem.data)
    if len(classes) != 1 or classes[0].dimension is None:
        name = f"{len(classes)} classes" if len(classes) != 1 else type(classes[0]).__name__
        raise InvalidInput(f"`features` must be one feature map or Precomputed, a class of few coefficients. Got {name}.")
    coefficients = classes[0].dimension + classes[0].intercept
    if coefficients >= rows:
        raise InvalidInput(f"`features` has {coefficients} coefficients, which leave nothing of {rows} transitions to judge by.")
    if problem.assumptions.misfit > 0:
        raise InvalidInput("`misfit` must be 0 for an asymptotic interval, which takes the class to contain Q.")


def limit_premise(system: BellmanSystem, count: int | None = None) -> Statement:
    """That the rows are many for so many coefficients; count: how many they are, where the system has some of them."""
    n, m = len(system.residuals) if count is None else count, system.dimension
    text = (
        f"Asymptotic: {n} transitions are many for {m} coefficients, and no few of them, logged or missed by chance, decide the "
        "value. Nothing is guaranteed at a given number of transitions."
    )
    return premise("limit", text, ("rows", n), ("coefficients", m))


def normalized_ends(lower: float, upper: float, discount: float) -> tuple[float, float]:
    """The ends on the scale of one reward."""
    scale = normalizer(discount)
    return (scale * lower, scale * upper)


def start_error(problem: Problem, q: Callable[[FloatArray], FloatArray] | None, values: FloatArray | None) -> float:
    """The standard error of the mean of V over sampled start states, or over sampled actions at known ones; 0 where all is known.

    q: Q of points (s, a), for sampled actions; values: V at every start state, for sampled states.
    """
    if problem.start_is_exact:
        return 0.0
    starts = problem.starts
    if not starts.exact:
        assert values is not None
        columns, weights = values[:, None], np.ones(1)
    elif q is None:
        raise InvalidInput("`features` Precomputed hide how far sampled actions at the start states differ: give a feature map.")
    else:
        branches = at_start(problem.policy).branches(starts.states)
        columns = np.array([q(np.concatenate([starts.states, branch.actions], axis=1)) for branch in branches])
        weights = starts.weights
    if len(columns) < 2:
        raise InvalidInput(
            "At least two sampled start states, or actions per state, are needed to see how far they differ. Got 1."
        )
    return math.sqrt(float(weights**2 @ np.var(columns, axis=0, ddof=1)) / len(columns))
