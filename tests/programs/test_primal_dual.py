"""The quick method for convex quadratics against the search along the barrier, its slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountable_ope.programs import multipliers
from accountable_ope.programs.constraint import Constraint, Role
from accountable_ope.programs.multipliers import maximize_dual
from accountable_ope.programs.primal_dual import propose_multipliers
from accountable_ope.programs.quadratic import Quadratic
from accountable_ope.programs.stack import Stack


def program(seed: int, m: int, count: int, spread: float) -> tuple[Quadratic, tuple[Constraint, ...], np.ndarray]:
    """A linear objective over ellipsoids with an inner point in common, eigenvalues over `spread` decades, and a start."""
    rng = np.random.default_rng(seed)
    inside = rng.normal(size=m) / math.sqrt(m)
    constraints = []
    for _ in range(count):
        root = np.logspace(0, -spread / 2, m)[:, None] * np.linalg.qr(rng.normal(size=(m, m)))[0]
        center = root @ inside + 0.1 * rng.normal(size=m) / math.sqrt(m)
        quadratic = Quadratic(root.T @ root, root.T @ center, float(center @ center))
        constraints.append(Constraint(Role.BOX, quadratic, quadratic(inside) + 10.0 ** rng.uniform(-3, 0)))
    objective = rng.normal(size=m)
    start = float(np.linalg.norm(objective)) / np.array([c.limit for c in constraints])
    return Quadratic.linear(objective), tuple(constraints), start


def by_barrier(objective: Quadratic, constraints: tuple[Constraint, ...], start: np.ndarray) -> float:
    enough = multipliers._Enough(1e-10, 0.0, math.inf, 0.25)
    found = multipliers._climb(multipliers._Program(objective, constraints, None), start, enough)
    assert found is not None
    return found.bound


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 25),
    count=st.integers(1, 5),
    spread=st.floats(0.0, 5.0),
    scale=st.floats(-8.0, 8.0),
)
def test_it_finds_what_the_search_along_the_barrier_finds(seed, m, count, spread, scale):
    objective, constraints, start = program(seed, m, count, spread)
    units = [Constraint(c.role, Quadratic(*(10**scale * p for p in (q.A, q.a, q.a0))), 10**scale * c.limit)
             for c in constraints for q in (c.quadratic,)]  # fmt: skip
    found = maximize_dual(objective, tuple(units), start / 10**scale)
    slow = by_barrier(objective, constraints, start)
    assert found is not None and found.bound == pytest.approx(slow, rel=1e-7, abs=1e-9)
    # A bound is a bound: no point of the set lies below it.
    theta = found.theta
    if all(c.quadratic(theta) <= c.limit for c in constraints):
        assert objective(theta) >= found.bound - 1e-9 * abs(found.bound)


def test_it_arrives_in_few_steps_and_inside():
    arrived = 0
    for seed in range(50):
        objective, constraints, start = program(seed, 12, 3, 4.0)
        found = propose_multipliers(Stack.of(objective, constraints), start, 1e-10, 0.0)
        if found is not None:
            arrived += 1
            assert all(c.quadratic(found.theta) <= c.limit + 1e-9 for c in constraints)
    assert arrived >= 48


def test_over_an_empty_set_it_gives_up():
    """Two disks that do not meet: multipliers that grow without end prove that, along the barrier."""
    apart = [Quadratic(np.eye(2), np.array([x, 0.0]), x * x) for x in (-2.0, 2.0)]
    disks = tuple(Constraint(Role.BALL, q, 1.0) for q in apart)
    objective = Quadratic.linear(np.array([1.0, 0.0]))
    with np.errstate(over="ignore", invalid="ignore"):
        assert propose_multipliers(Stack.of(objective, disks), np.ones(2), 1e-10, 0.0) is None
    found = maximize_dual(objective, disks, np.ones(2))
    assert found is None or found.bound > 10


def test_a_matrix_that_is_not_positive_definite_is_left_alone():
    flat = Constraint(Role.BALL, Quadratic(np.diag([1.0, 0.0]), np.zeros(2), 0.0), 1.0)
    assert propose_multipliers(Stack.of(Quadratic.linear(np.ones(2)), (flat,)), np.ones(1), 1e-10, 0.0) is None
