"""Steps to spheres and into balls, in coordinates where both are diagonal."""

from __future__ import annotations

import math

import numpy as np

from ..validation import FloatArray

UNIT = float(np.finfo(np.float64).eps)


def inside_ball(v: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """v / b and 1 / b (0 where v = b = 0) when v / b lies in the unit ball."""
    flat = b == 0
    if v[flat].any():
        return None
    inverse = np.where(flat, 0.0, 1 / np.where(flat, 1.0, b))
    t = v * inverse
    return (t, inverse) if float(t @ t) <= 1 else None


def step_to_sphere(offset: FloatArray, direction: FloatArray, weights: FloatArray, limit: float) -> float:
    """The largest step in [0, 1] with sum w (offset + step direction)^2 <= limit."""
    a = float(weights @ direction**2)
    b = float(weights @ (offset * direction))
    c = float(weights @ offset**2) - limit
    if a == 0 or c >= 0:
        return 0.0
    return min(1.0, max(0.0, (-b + math.sqrt(b * b - a * c)) / a))


def least_loss_multiplier(g: FloatArray, t0: FloatArray, radius: float) -> float:
    """nu > 0 with ||g t0 / (nu + g)|| = radius, by monotone Newton on 1/norm from below."""
    v = g * t0
    nu = max(1e-300, float((np.abs(v) / radius - g).max(initial=0.0)))
    for _ in range(100):
        denominator = nu + g
        t = v / denominator
        square = float(t @ t)
        step = (math.sqrt(square) / radius - 1) * square / float((t * t) @ (1 / denominator))
        if not math.isfinite(step) or step <= 4 * UNIT * nu:
            break
        nu += step
    return nu
