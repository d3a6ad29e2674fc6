"""Lagrangian bounds with their rounding counted, against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from accountable_ope.verification.dual import Bound, Form, least_value


def exact_least(A: np.ndarray, a: np.ndarray, a0: float, terms: list[tuple[Form, float, float]]) -> Fraction | None:
    """inf of the Lagrangian in rational numbers, by elimination; None where it is minus infinity."""
    m = len(a)
    H = [[Fraction(A[i, j]) for j in range(m)] for i in range(m)]
    h = [Fraction(x) for x in a]
    value = Fraction(a0)
    for form, limit, alpha in terms:
        weight = Fraction(alpha)
        for i in range(m):
            h[i] += weight * Fraction(form.a[i])
            for j in range(m):
                H[i][j] += weight * Fraction(form.A[i, j])
        value += weight * (Fraction(form.a0) - Fraction(limit))
    for k in range(m):  # Gaussian elimination of a symmetric matrix: all pivots must be positive
        if H[k][k] <= 0:
            return None
        value -= h[k] * h[k] / H[k][k]
        for i in range(k + 1, m):
            ratio = H[i][k] / H[k][k]
            h[i] -= ratio * h[k]
            for j in range(k + 1, m):
                H[i][j] -= ratio * H[k][j]
    return value


def random_form(rng: np.random.Generator, m: int, scale: float) -> Form:
    root = rng.normal(size=(m, m))
    return Form.of(scale * root @ root.T, scale * rng.normal(size=m), float(rng.normal()))


@pytest.mark.parametrize("seed", range(40))
def test_it_is_below_the_exact_value_and_near_it(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    goal = Form.linear(rng.normal(size=m))
    terms = [
        (random_form(rng, m, 10.0 ** rng.uniform(-3, 3)), float(rng.uniform(0, 2)), float(rng.uniform(0, 2))) for _ in range(3)
    ]
    found = least_value(goal, [Bound(form, limit) for form, limit, _ in terms], [alpha for *_, alpha in terms])
    exact = exact_least(goal.A, goal.a, goal.a0, terms)
    assert exact is not None and Fraction(found) <= exact
    assert found == pytest.approx(float(exact), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e8, 1e12, 1e15])
def test_what_cancels_is_counted(size):
    """Two huge multipliers whose forms cancel: the value as computed may be anything, what is reported is not above the truth."""
    rng = np.random.default_rng(5)
    first = random_form(rng, 3, 1.0)
    second = Form.of(-first.A, -first.a, -first.a0)
    ball = Form.of(np.eye(3), np.zeros(3), 0.0)
    terms = [(first, 0.25, size), (second, -0.25, size * (1 + 2**-40)), (ball, 1.0, 1.0)]
    goal = Form.linear(np.array([1.0, -2.0, 0.5]))
    found = least_value(goal, [Bound(form, limit) for form, limit, _ in terms], [alpha for *_, alpha in terms])
    exact = exact_least(goal.A, goal.a, goal.a0, terms)
    assert found == -math.inf if exact is None else Fraction(found) <= exact if math.isfinite(found) else True


def test_nothing_is_proved_without_curvature_or_by_negative_multipliers():
    goal = Form.linear(np.array([1.0, 1.0]))
    flat = Bound(Form.of(np.diag([1.0, 0.0]), np.zeros(2), 0.0), 1.0)
    ball = Bound(Form.of(np.eye(2), np.zeros(2), 0.0), 1.0)
    assert least_value(goal, [flat], [1.0]) == -math.inf
    assert least_value(goal, [ball], [-1.0]) == least_value(goal, [ball], [math.nan]) == -math.inf
    assert least_value(goal, [ball], [1 / math.sqrt(2)]) == pytest.approx(-math.sqrt(2))


def test_a_direction_in_which_nothing_changes_is_left_out():
    """One-hot features and a constant: moving the constant into the features changes no value."""
    along = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    box = Bound(Form.of(along.T @ along, np.zeros(3), 0.0), 2.0)
    goal = Form.linear(along[0])
    assert least_value(goal, [box], [0.5]) == pytest.approx(-1.5)  # the best multiplier is 1 / (2 sqrt 2): -sqrt 2
    assert least_value(Form.linear(np.array([1.0, 0.0, 0.0])), [box], [0.5]) == -math.inf
