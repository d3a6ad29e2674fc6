"""The pivoted Cholesky factor by columns, against its twin on the full matrix."""

from __future__ import annotations

import numpy as np
import pytest

from accountable_ope.programs.cholesky import pivoted_cholesky
from accountable_ope.validation import FloatArray


def eliminate(A: FloatArray, rank: int, floor: float) -> tuple[FloatArray, list[int]]:
    """What is left of A after its pivots are eliminated one by one, and the pivots."""
    left, pivots = A.copy(), []
    while len(pivots) < rank and np.diag(left).max() > floor:
        pivot = int(np.argmax(np.diag(left)))
        left = left - np.outer(left[:, pivot], left[:, pivot]) / left[pivot, pivot]
        left[[*pivots, pivot]] = 0.0
        left[:, [*pivots, pivot]] = 0.0
        pivots.append(pivot)
    return left, pivots


def matrix(n: int, rank: int, seed: int = 0) -> FloatArray:
    root = np.random.default_rng(seed).normal(size=(n, rank))
    return root @ root.T


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rank", [1, 5, 12, 30])
def test_pivots_and_rest_are_those_of_elimination(rank: int, order: str) -> None:
    A = matrix(30, 12)
    asked: list[int] = []
    L, pivots = pivoted_cholesky(np.diag(A), lambda j: asked.append(j) or A[:, j], rank=rank, floor=1e-9 * A.max(), order=order)
    left, expected = eliminate(A, rank, 1e-9 * A.max())
    assert pivots == expected == asked
    assert L.shape == (30, min(rank, 12))
    np.testing.assert_allclose(A - L @ L.T, left, atol=1e-9)
    assert np.triu(L[pivots], 1) == pytest.approx(0.0, abs=1e-9)


def test_nothing_above_the_floor_is_left() -> None:
    A = matrix(40, 40)
    L, pivots = pivoted_cholesky(np.diag(A), lambda j: A[:, j], rank=40, floor=10.0)
    rest = np.diag(A - L @ L.T)
    assert 0 < len(pivots) < 40 and rest.max() <= 10.0
    short = L[:, :-1]
    assert np.diag(A - short @ short.T).max() > 10.0


def test_a_first_column_is_eliminated_before_any_pivot() -> None:
    A, first = matrix(20, 20), np.random.default_rng(1).normal(size=20)
    whole = A + np.outer(first, first)
    L, pivots = pivoted_cholesky(np.diag(whole), lambda j: whole[:, j], rank=8, floor=0.0, first=first)
    rest, expected = eliminate(A, 7, 0.0)
    assert np.array_equal(L[:, 0], first)
    assert pivots == expected
    np.testing.assert_allclose(whole - L @ L.T, rest, atol=1e-10)


def test_a_matrix_below_the_floor_has_no_factor() -> None:
    L, pivots = pivoted_cholesky(np.zeros(4), lambda j: np.zeros(4), rank=4, floor=0.0)
    assert L.shape == (4, 0) and pivots == []
