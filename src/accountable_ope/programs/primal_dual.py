"""The best multipliers of convex quadratics in a dozen factorizations, where a search along the barrier takes thirty.

With H = A_0 + sum_j alpha_j A_j, theta = H^{-1} h and g_j = q_j(theta) - limit_j, the best multipliers and the slacks s solve

    g_j + s_j = 0,    alpha_j s_j = 0,    alpha, s >= 0.

A multiplier that does not count runs to 0 at the speed of its own slack, not at that of a barrier: Mehrotra's method, which looks
where a step to alpha_j s_j = 0 would lead, and from that says how far to go. Both of its systems have one row per constraint;
what takes time, the factorization of H, is shared. The result is a proposal: any alpha >= 0 gives a valid bound, which is then
computed again with its rounding counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..validation import FloatArray
from .stack import Stack

STEPS = 30
"""A program that takes longer is left to the search along the barrier."""

BACK = 0.95
"""The share of the way to the border that a step takes."""


class Proposal(NamedTuple):
    """Multipliers, the bound that they give but for rounding, and its theta."""

    multipliers: FloatArray
    bound: float
    theta: FloatArray


class _Point(NamedTuple):
    """What is known at some multipliers: the Lagrangian bound, theta, its gradient g and minus its second derivative."""

    bound: float
    theta: FloatArray
    gradient: FloatArray
    curvature: FloatArray


def propose_multipliers(stack: Stack, start: FloatArray, relative_gap: float, absolute_gap: float) -> Proposal | None:
    """Multipliers of convex quadratics whose bound is off by no more than the gap; None where the method does not arrive.

    start: multipliers to start from, positive.
    """
    alpha, here = start, _evaluate(stack, start)
    if here is None:
        return None
    slack = np.maximum(-here.gradient, float(np.mean(alpha * np.abs(here.gradient))) / alpha)
    for step in range(STEPS):
        gap = max(relative_gap * abs(here.bound), absolute_gap)
        if float(alpha @ np.abs(here.gradient)) <= gap and (float(here.gradient.max()) <= 0 or step > STEPS // 2):
            return Proposal(alpha, here.bound, here.theta)
        turned = _direction(alpha, slack, here, 0.2 * gap)
        if turned is None:
            return None
        along, falling = turned
        alpha = alpha + _share(alpha, along) * along
        slack = slack + _share(slack, falling) * falling
        found = _evaluate(stack, alpha) if min(float(alpha.min()), float(slack.min())) > 1e-150 else None
        if found is None:
            return None
        here = found
    return None


def _evaluate(stack: Stack, alpha: FloatArray) -> _Point | None:
    """None where H is not positive definite or something overflows."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    m = stack.vectors.shape[1]
    weights = np.concatenate(([1.0], alpha))
    H, h = (weights @ stack.matrices.reshape(len(weights), m * m)).reshape(m, m), weights @ stack.vectors
    factor, failed = dpotrf(H.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return None
    theta, _ = dpotrs(factor, h, lower=1)
    slopes = stack.slopes(theta)
    solved, _ = dpotrs(factor, slopes.T, lower=1)
    curvature, gradient = np.asarray(2 * slopes @ solved), stack.slack(theta, slopes)
    point = _Point(float(weights @ stack.constants - h @ theta), theta, gradient, curvature)
    return point if math.isfinite(point.bound + float(gradient.sum() + curvature.sum())) else None


def _direction(alpha: FloatArray, slack: FloatArray, here: _Point, floor: float) -> tuple[FloatArray, FloatArray] | None:
    """The steps of multipliers and slacks: toward alpha s = 0 first, then corrected for where that leads.

    floor: of alpha's, so that theta ends inside of the set and not at its border, which rounding has on either side.
    """
    from scipy.linalg.lapack import dpotrf, dpotrs

    matrix = here.curvature.copy()
    matrix.flat[:: len(alpha) + 1] += slack / alpha
    scale = 1 / np.sqrt(np.diagonal(matrix))
    factor, failed = dpotrf(scale[:, None] * matrix * scale, lower=1)  # one row per constraint: calls are all that counts
    if failed:
        return None
    along = scale * dpotrs(factor, scale * here.gradient, lower=1)[0]
    falling = here.curvature @ along - here.gradient - slack
    now = float(alpha @ slack)
    reached = float((alpha + _share(alpha, along, 1.0) * along) @ (slack + _share(slack, falling, 1.0) * falling))
    target = max(min((reached / now) ** 3, 0.5) * now, floor) / len(alpha)
    along = scale * dpotrs(factor, scale * (here.gradient + (target - along * falling) / alpha), lower=1)[0]
    falling = here.curvature @ along - here.gradient - slack
    return (along, falling) if math.isfinite(float(along.sum() + falling.sum())) else None


def _share(values: FloatArray, step: FloatArray, back: float = BACK) -> float:
    """How much of the step keeps the values positive; all of it, where all of it does."""
    steepest = float((step / values).min())
    return 1.0 if steepest > -1 else -back / steepest
