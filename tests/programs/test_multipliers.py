"""Newton's method on the multipliers: convex programs against Clarabel, others against brute force and random points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from accountable_ope import DiscretePolicy, Gaussian, RandomFourier, StartStates, Transitions
from accountable_ope.problem.problem import Experience
from accountable_ope.programs import Certificate, FeasibleSet, Quadratic, SolveStatus, decompose, extreme_value
from accountable_ope.programs.constraint import Constraint, Role, ball
from accountable_ope.programs.lagrangian import lagrangian, lagrangian_value
from accountable_ope.programs.multipliers import maximize_dual
from accountable_ope.statistics import bellman_system, kernel_statistic
from accountable_ope.validation import FloatArray
from reference import clarabel_least_loss, clarabel_maximum, random_program


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.mark.parametrize("kind", ["generic", "rank-deficient", "unpenalized constant", "active box", "box without ball"])
def test_dual_of_a_convex_program_agrees_with_clarabel(kind: str) -> None:
    for seed in range(10):
        program = random_program(kind, seed)
        constraints = program.feasible_set().constraints
        start = program.extent / np.array([c.limit for c in constraints])
        dual = maximize_dual(Quadratic.linear(program.c), constraints, start)
        expected = clarabel_maximum(program)
        assert dual is not None
        assert expected.solved
        assert abs(-dual.bound - expected.value) <= 1e-6 * max(abs(expected.value), 1e-3 * program.extent)
        assert program.excess(dual.theta)[0] <= 1e-6


def test_dual_of_the_least_loss_agrees_with_clarabel() -> None:
    for seed in range(10):
        program = random_program("active box", seed)
        assert program.norm_bound is not None
        program = replace(program, norm_bound=0.3 * program.norm_bound)
        loss, *others = program.feasible_set().constraints
        start = np.array([loss.quadratic.a0 / c.limit for c in others])
        dual = maximize_dual(loss.quadratic, tuple(others), start)
        assert dual is not None
        assert dual.bound == pytest.approx(clarabel_least_loss(program), rel=1e-6)


def test_bound_is_the_lagrangian_at_the_multipliers() -> None:
    for seed in range(10):
        program = random_program("active box", seed)
        constraints = program.feasible_set().constraints
        objective = Quadratic.linear(program.c)
        dual = maximize_dual(objective, constraints, program.extent / np.array([c.limit for c in constraints]))
        assert dual is not None
        assert (dual.multipliers > 0).all()
        found = lagrangian(objective, constraints, dual.multipliers)
        assert found is not None
        assert found.value - 1e-12 * found.magnitude <= dual.bound <= found.value
        assert lagrangian_value(objective, constraints, dual.multipliers)[0] == found.value


def test_lagrangian_is_the_least_value_over_all_theta() -> None:
    rng = np.random.default_rng(0)
    program = random_program("active box", 1)
    constraints = program.feasible_set().constraints
    objective, alpha = Quadratic.linear(program.c), np.array([0.5, 2.0, 0.1])

    def value(theta: FloatArray) -> float:
        return objective(theta) + sum(a * (c.quadratic(theta) - c.limit) for a, c in zip(alpha, constraints, strict=True))

    found = lagrangian(objective, constraints, alpha)
    assert found is not None
    assert found.value == pytest.approx(value(found.theta), rel=1e-12)
    for step in (1e-6, 1e-3, 1.0):
        for direction in rng.normal(size=(20, program.dimension)):
            assert value(found.theta + step * direction) >= found.value - 1e-12 * found.magnitude


def test_lagrangian_needs_a_positive_definite_matrix() -> None:
    saddle = Constraint(Role.LOSS, Quadratic(np.diag([1.0, -1.0]), np.zeros(2), 0.0), 1.0)
    assert lagrangian(Quadratic.linear(np.ones(2)), (saddle,), np.array([1.0])) is None
    assert lagrangian_value(Quadratic.linear(np.ones(2)), (saddle,), np.array([1.0]))[0] == -math.inf


def test_lagrangian_on_the_border_counts_flat_directions_of_the_objective() -> None:
    """max theta_1 over theta_1^2 <= 4 with multiplier 1/4: the second coordinate is free, and the bound is 2."""
    line = Constraint(Role.LOSS, Quadratic(np.diag([1.0, 0.0]), np.zeros(2), 0.0), 4.0)
    along, across = Quadratic.linear(np.array([1.0, 0.0])), Quadratic.linear(np.array([1.0, 1.0]))
    assert lagrangian_value(along, (line,), np.array([0.25]))[0] == pytest.approx(-2.0, rel=1e-14)
    assert lagrangian_value(across, (line,), np.array([0.25]))[0] == -math.inf


def test_nothing_is_found_where_nothing_is_bounded() -> None:
    line = Constraint(Role.LOSS, Quadratic(np.diag([1.0, 0.0]), np.zeros(2), 0.0), 4.0)
    assert maximize_dual(Quadratic.linear(np.array([1.0, 1.0])), (line,), np.ones(1)) is None


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e5])
def test_constraints_may_come_in_any_unit(unit: float) -> None:
    for seed in range(5):
        program = random_program("active box", seed)
        constraints = program.feasible_set().constraints
        scaled = tuple(
            Constraint(c.role, Quadratic(unit * c.quadratic.A, unit * c.quadratic.a, unit * c.quadratic.a0), unit * c.limit)
            for c in constraints
        )
        start = program.extent / np.array([c.limit for c in constraints])
        objective = Quadratic.linear(program.c)
        plain, other = maximize_dual(objective, constraints, start), maximize_dual(objective, scaled, start / unit)
        assert plain is not None
        assert other is not None
        assert other.bound == pytest.approx(plain.bound, abs=1e-8 * program.extent)


# Losses that are not convex.


@dataclass(frozen=True, eq=False)
class Saddle:
    """A random indefinite loss over a ball, with points of the ball and their losses."""

    loss: Quadratic
    radius: float
    points: FloatArray
    values: FloatArray

    @property
    def mask(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.ones(len(self.loss.a), dtype=bool)


def saddle(seed: int, m: int | None = None, count: int = 4000) -> Saddle:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9)) if m is None else m
    vectors = np.linalg.qr(rng.normal(size=(m, m)))[0]
    values = rng.normal(size=m)
    values[:2] = [-abs(values[0]) - 0.1, abs(values[1]) + 0.1]
    A = (vectors * values) @ vectors.T
    loss = Quadratic(0.5 * (A + A.T), rng.normal(size=m), float(rng.normal()))
    radius = 10 ** float(rng.uniform(-1, 1))
    points = rng.normal(size=(count, m))
    lengths = radius * rng.uniform(size=count) ** (1 / m)
    lengths[::2] = radius * (1 - 1e-14)
    points *= (lengths / np.linalg.norm(points, axis=1))[:, None]
    return Saddle(loss, radius, points, np.array([loss(point) for point in points]))


def assert_bounds_points(certificate: Certificate, points: FloatArray) -> None:
    assert len(points) > 0
    assert certificate.status in (SolveStatus.OPTIMAL, SolveStatus.BOUND_ONLY)
    assert math.isfinite(certificate.bound)
    check = certificate.check()
    assert check.valid, check.message
    assert (points @ certificate.objective).max() <= certificate.bound


@pytest.mark.parametrize("quantile", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(15))
def test_bound_of_an_indefinite_loss_is_above_every_feasible_point(seed: int, quantile: float) -> None:
    one = saddle(seed)
    limit = max(float(np.quantile(one.values, quantile)), 1e-3 * float(np.abs(one.values).max()))
    decomposition = decompose(one.loss, one.mask)
    assert not decomposition.convex
    inside = one.points[one.values <= limit]
    for c in np.random.default_rng(seed).normal(size=(3, len(one.loss.a))):
        assert_bounds_points(extreme_value(c, FeasibleSet(decomposition, limit, one.radius)), inside)


@pytest.mark.parametrize("seed", range(10))
def test_bound_of_an_indefinite_loss_with_a_box(seed: int) -> None:
    one = saddle(seed)
    m = len(one.loss.a)
    D = np.random.default_rng(seed + 50).normal(size=(3 * m, m))
    squares = ((one.points @ D.T) ** 2).sum(axis=1)
    box = Constraint(Role.BOX, Quadratic(D.T @ D, np.zeros(m), 0.0), float(np.quantile(squares, 0.6)))
    limit = max(float(np.quantile(one.values, 0.5)), 1e-3 * float(np.abs(one.values).max()))
    inside = one.points[(one.values <= limit) & (squares <= box.limit)]
    c = np.random.default_rng(seed).normal(size=m)
    certificate = extreme_value(c, FeasibleSet(decompose(one.loss, one.mask), limit, one.radius, box))
    assert_bounds_points(certificate, inside)
    without = extreme_value(c, FeasibleSet(decompose(one.loss, one.mask), limit, one.radius))
    assert certificate.bound <= without.bound + 1e-6 * abs(without.bound)


@pytest.mark.parametrize("seed", range(4))
def test_bound_of_an_indefinite_loss_with_a_negative_limit(seed: int) -> None:
    """A U-statistic can be negative, and so can its limit."""
    one = saddle(seed)
    shifted = replace(one, loss=replace(one.loss, a0=one.loss.a0 - one.values.max()), values=one.values - one.values.max())
    limit = float(np.quantile(shifted.values, 0.3))
    certificate = extreme_value(np.eye(len(one.loss.a))[0], FeasibleSet(decompose(shifted.loss, one.mask), limit, one.radius))
    assert certificate.constraints[0].limit == pytest.approx(limit, rel=1e-9)
    assert_bounds_points(certificate, one.points[shifted.values <= limit])


def test_a_negative_limit_out_of_reach_is_proved_empty() -> None:
    """theta_2^2 - theta_1^2 >= -4 in the ball of radius 2."""
    loss = Quadratic(np.diag([-1.0, 1.0]), np.zeros(2), 0.0)
    certificate = extreme_value(np.array([0.0, 1.0]), FeasibleSet(decompose(loss, np.ones(2, dtype=bool)), -5.0, 2.0))
    assert certificate.status is SolveStatus.EMPTY
    assert certificate.bound == pytest.approx(-4.0, rel=1e-6)
    assert certificate.check().valid


@pytest.mark.parametrize("seed", range(10))
def test_least_value_of_an_indefinite_quadratic_over_a_ball_is_exact(seed: int) -> None:
    """The trust-region problem has no gap: min over the circle by brute force, m = 2."""
    one = saddle(seed, m=2)
    angles = np.linspace(0, 2 * np.pi, 200_001)
    circle = one.radius * np.column_stack([np.cos(angles), np.sin(angles)])
    brute = ((circle @ one.loss.A) * circle).sum(axis=1) - 2 * circle @ one.loss.a + one.loss.a0
    constraint = ball(one.mask, one.radius)
    dual = maximize_dual(one.loss, (constraint,), np.array([abs(one.loss.a0) / constraint.limit]))
    assert dual is not None
    size = float(np.abs(brute).max())
    assert brute.min() - 1e-6 * size <= dual.bound <= brute.min() + 1e-9 * size


@pytest.mark.parametrize("seed", range(5))
def test_u_statistic_of_few_transitions(seed: int) -> None:
    """A real indefinite loss: its matrix has negative eigenvalues when there are few transitions."""
    rng = np.random.default_rng(seed)
    n, m = 12, 6
    data = Transitions(
        rng.uniform(-1, 1, size=(n, 1)), rng.integers(0, 2, size=n), rng.uniform(size=n), rng.uniform(-1, 1, size=(n, 1))
    )
    policy = DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    system = bellman_system(Experience(data, StartStates([0.0]), policy, 0.5), RandomFourier(m, seed=seed, intercept=False))
    loss = kernel_statistic(system, Gaussian(0.3)).u_loss()
    decomposition = decompose(loss, system.penalized)
    assert not decomposition.convex
    points = rng.normal(size=(5000, m))
    points *= (3 * rng.uniform(size=5000) ** (1 / m) / np.linalg.norm(points, axis=1))[:, None]
    limit = max(float(np.quantile([loss(point) for point in points], 0.2)), 1e-3)
    inside = points[np.array([loss(point) for point in points]) <= limit]
    for c in (system.objective, -system.objective):
        assert_bounds_points(extreme_value(c, FeasibleSet(decomposition, limit, 3.0)), inside)


@pytest.mark.parametrize("limit", [-1.0, -1e-6])
def test_over_an_empty_set_multipliers_grow_only_so_far(limit) -> None:
    """They prove that the set is empty, and what is computed from them later (squares, products with rates) must stay finite."""
    nothing = Constraint(Role.LOSS, Quadratic(np.eye(2), np.zeros(2), 0.0), limit)
    found = maximize_dual(Quadratic.linear(np.array([1.0, 0.0])), (nothing, ball(np.array([True, True]), 3.0)), np.ones(2))
    assert found is not None and found.bound > 1e6
    assert np.isfinite(found.multipliers**2 * 1e100).all()
