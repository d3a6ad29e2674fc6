"""The pointwise value box: against CVXPY, all rows at once, random feasible points, closed forms, and solvers that stop early."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (before the threads are limited, so that its BLAS is limited too)
from threadpoolctl import threadpool_limits

from accountable_ope import InvalidInput
from accountable_ope.programs import Quadratic, SolveStatus, extreme_value
from accountable_ope.programs.constraint import Constraint, Role, ball
from accountable_ope.programs.lagrangian import lagrangian_value
from accountable_ope.programs.multipliers import maximize_dual
from accountable_ope.programs.pointwise import PointwiseBound, pointwise_bound, with_rows
from accountable_ope.programs.pointwise_rows import PointwiseRows
from accountable_ope.validation import FloatArray
from reference import ClarabelAnswer, Program, _cones, _solve, random_program

CONVEX = (
    "generic",
    "rank-deficient",
    "singular",
    "unpenalized constant",
    "no ball",
    "active box",
    "box without ball",
    "small rewards",
    "large rewards",
    "kernel",
)
SEEDS = 11
"""110 convex programs."""


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@cache
def with_random_rows(kind: str, seed: int, tightness: float = 0.4) -> tuple[Program, PointwiseRows]:
    """A program and rows of different spans that its inner point meets and its maximizer mostly does not."""
    program = random_program(kind, seed)
    rng = np.random.default_rng([7, seed])
    features = rng.normal(size=(int(rng.integers(3, 300)), program.dimension))
    certificate = extreme_value(program.c, program.feasible_set())
    assert certificate.point is not None
    assert program.inside is not None
    reach = float(np.abs(features @ (certificate.point - program.inside)).max())
    middle = features @ program.inside + 0.1 * tightness * reach * rng.uniform(-1, 1, size=len(features))
    half = tightness * reach * rng.uniform(0.3, 3, size=len(features))
    return program, PointwiseRows(features, middle - half, middle + half)


def by_cvxpy(program: Program, rows: PointwiseRows) -> ClarabelAnswer:
    """The largest c'theta with every row as a linear constraint, theta measured in `unit`."""
    y, length = cp.Variable(program.dimension), float(np.linalg.norm(program.c))
    span = rows.high - rows.low
    values = (rows.features * program.unit / span[:, None]) @ y
    limits = [values <= rows.high / span, values >= rows.low / span]
    answer = _solve(cp.Maximize((program.c / length) @ y), [*_cones(program, y), *limits])
    return replace(answer, value=answer.value * length * program.unit)


def size(program: Program, value: float) -> float:
    return max(abs(value), 1e-3 * program.extent)


def bounds_of(program: Program, rows: PointwiseRows) -> tuple[PointwiseBound, PointwiseBound]:
    """From the quadratics alone, and from the certificate without rows."""
    feasible = program.feasible_set()
    return pointwise_bound(program.c, feasible.constraints, rows), with_rows(extreme_value(program.c, feasible), rows)


# Convex programs.


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", CONVEX)
def test_bound_agrees_with_cvxpy(kind: str, seed: int) -> None:
    program, rows = with_random_rows(kind, seed)
    expected = by_cvxpy(program, rows)
    assert expected.solved
    without = extreme_value(program.c, program.feasible_set()).bound
    for found in bounds_of(program, rows):
        assert abs(found.bound - expected.value) <= 1e-6 * size(program, expected.value)
        assert found.bound >= expected.value - 1e-8 * size(program, expected.value)
        assert found.bound <= without + 1e-9 * size(program, without)
        check = found.check(rows)
        assert check.valid, check.message
        assert found.status is SolveStatus.OPTIMAL
        assert found.violated_left == 0
        assert found.theta is not None
        assert program.excess(found.theta)[0] <= 1e-6
        assert rows.violations(found.theta).max() <= 1e-7


def test_rows_matter_in_most_of_these_programs() -> None:
    narrower = 0
    for kind in CONVEX:
        for seed in range(4):
            program, rows = with_random_rows(kind, seed)
            known = extreme_value(program.c, program.feasible_set())
            narrower += with_rows(known, rows, rounds=1).bound < known.bound - 1e-3 * program.extent
    assert narrower >= 30


@pytest.mark.parametrize("seed", range(10))
def test_no_feasible_point_lies_beyond_the_bound(seed: int) -> None:
    program, rows = with_random_rows("active box", seed)
    points = program.points_inside(4000, np.random.default_rng(seed))
    values = points @ rows.features.T
    inside = points[((values >= rows.low) & (values <= rows.high)).all(axis=1)]
    assert len(inside) > 0
    assert (inside @ program.c).max() <= pointwise_bound(program.c, program.feasible_set().constraints, rows).bound


@pytest.mark.parametrize("seed", range(4))
def test_bound_never_widens_from_round_to_round(seed: int) -> None:
    program, rows = with_random_rows("unpenalized constant", seed, tightness=0.2)
    known = extreme_value(program.c, program.feasible_set())
    found = [with_rows(known, rows, rounds=rounds) for rounds in range(7)]
    bounds = [one.bound for one in found]
    assert found[0].bound == pytest.approx(known.bound, rel=1e-9)
    assert [one.rounds for one in found] == [min(rounds, found[-1].rounds) for rounds in range(7)]
    assert bounds == sorted(bounds, reverse=True)
    expected = by_cvxpy(program, rows).value
    assert min(bounds) >= expected - 1e-8 * size(program, expected)


@pytest.mark.parametrize("seed", range(6))
def test_a_wider_box_and_fewer_rows_never_narrow_the_bound(seed: int) -> None:
    program, rows = with_random_rows("active box", seed)
    known = extreme_value(program.c, program.feasible_set())
    room = 0.1 * (rows.high - rows.low)
    boxes = [PointwiseRows(rows.features, rows.low - k * room, rows.high + k * room) for k in (0, 1, 3, 10, 100)]
    fewer = [PointwiseRows(rows.features[k:], rows.low[k:], rows.high[k:]) for k in range(0, len(rows.features), 20)]
    for nested in (boxes, fewer):
        bounds = np.array([with_rows(known, one).bound for one in nested])
        assert (np.diff(bounds) >= -1e-7 * size(program, bounds[0])).all()
    assert with_rows(known, boxes[-1]).bound == known.bound


@pytest.mark.parametrize("kind", ["generic", "active box", "kernel"])
def test_rows_with_room_change_nothing(kind: str) -> None:
    for seed in range(5):
        program = random_program(kind, seed)
        feasible = program.feasible_set()
        features = np.random.default_rng(seed).normal(size=(50, program.dimension))
        certificate = extreme_value(program.c, feasible)
        assert certificate.point is not None
        reach = 2 * float(np.abs(features @ certificate.point).max())
        rows = PointwiseRows.within(features, -reach, reach)
        found = with_rows(certificate, rows)
        assert found.certificate is certificate
        assert len(found.rows) == found.rounds == found.violated_left == 0
        assert found.largest_violation < 0
        again = pointwise_bound(program.c, feasible.constraints, rows)
        assert again.bound == pytest.approx(certificate.bound, abs=1e-8 * size(program, certificate.bound))


def test_violations_of_a_row_and_its_offset() -> None:
    """1 + 2 theta in [0, 4] at theta = 3: 3 / 4 of the span above, and 7 / 4 of it from being below."""
    rows = PointwiseRows.within(np.array([[2.0]]), 0.0, 4.0, np.array([1.0]))
    assert rows.violations(np.array([3.0])).tolist() == [0.75, -1.75]
    assert rows.violations(np.array([-1.0])).tolist() == [-1.25, 0.25]


def test_rows_bound_what_the_quadratics_do_not() -> None:
    """max theta_1 + theta_2 over theta_1^2 <= 4 and -1 <= theta_2 <= 3."""
    line = Constraint(Role.LOSS, Quadratic(np.diag([1.0, 0.0]), np.zeros(2), 0.0), 4.0)
    rows = PointwiseRows.within(np.array([[0.0, 1.0]]), -1.0, 3.0)
    found = pointwise_bound(np.array([1.0, 1.0]), (line,), rows)
    assert found.bound == pytest.approx(5.0, rel=1e-7)
    assert found.bound >= 5.0
    assert found.check(rows).valid
    nowhere = pointwise_bound(np.array([1.0, 1.0]), (line,), PointwiseRows.within(np.array([[1.0, 0.0]]), -1.0, 3.0))
    assert nowhere.status is SolveStatus.UNBOUNDED
    assert nowhere.bound == math.inf


def test_one_row_across_a_ball_has_a_closed_form() -> None:
    """max theta_1 over the unit ball and theta_1 + theta_2 <= 0 is 1 / sqrt(2)."""
    rows = PointwiseRows.within(np.array([[1.0, 1.0]]), -3.0, 0.0)
    found = pointwise_bound(np.array([1.0, 0.0]), (ball(np.ones(2, dtype=bool), 1.0),), rows)
    assert found.bound == pytest.approx(math.sqrt(0.5), rel=1e-9)
    assert found.rows.tolist() == [0]
    assert found.weights.tolist() == [1.0]
    # (1, 0) = 2 nu theta + mu (1, 1) at theta = (1, -1) / sqrt(2) gives mu = 1/2 and nu = sqrt(2) / 4.
    assert found.certificate.multipliers[-1] * 3.0 == pytest.approx(0.5, rel=1e-5)
    assert found.multipliers == pytest.approx([math.sqrt(2) / 4], rel=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_averaged_box_proves_at_least_what_linear_multipliers_prove(seed: int) -> None:
    program, rows = with_random_rows("active box", seed)
    rng = np.random.default_rng(seed)
    constraints = program.feasible_set().constraints
    alpha = rng.exponential(size=len(constraints)) * program.extent / np.array([one.limit for one in constraints])
    upper, lower = rng.exponential(size=(2, len(rows.features))) * rng.uniform(size=(2, len(rows.features))) ** 8
    turned = 0.5 * (program.c - rows.features.T @ (upper - lower))
    constant = float(lower @ rows.low - upper @ rows.high)
    m = program.dimension
    linear, _ = lagrangian_value(Quadratic(np.zeros((m, m)), turned, constant), constraints, alpha)
    weights = (upper + lower) / (rows.high - rows.low)
    box = rows.averaged(np.arange(len(weights)), weights / weights.sum())
    averaged, size_ = lagrangian_value(Quadratic.linear(program.c), (*constraints, box), np.append(alpha, weights.sum()))
    assert averaged >= linear - 1e-12 * size_


# Large programs.


def smooth_program(count: int, m: int) -> tuple[FloatArray, tuple[Constraint, ...], PointwiseRows]:
    """Cosine features with a constant: a loss of 2000 rows, a wide ball, the averaged box, and `count` points beyond the data."""
    rng = np.random.default_rng(0)
    frequencies, phases = rng.normal(size=(3, m - 1)), rng.uniform(0, 2 * np.pi, m - 1)

    def phi(points: FloatArray) -> FloatArray:
        return np.column_stack([np.cos(points @ frequencies + phases) / math.sqrt(m - 1), np.ones(len(points))])

    true = np.append(rng.normal(size=m - 1), 0.0)
    B = (phi(rng.uniform(-1, 1, (2000, 3))) - 0.9 * phi(rng.uniform(-1, 1, (2000, 3)))) / math.sqrt(2000)
    target = B @ true
    features = phi(rng.uniform(-1.5, 1.5, (count, 3)))
    values = features @ true
    low, high = float(values.min()) - 0.1, float(values.max()) + 0.1
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    constraints = (
        Constraint(Role.LOSS, Quadratic(B.T @ B, B.T @ target, float(target @ target)), 0.02),
        ball(np.arange(m) < m - 1, 5 * float(np.linalg.norm(true))),
        Constraint(Role.BOX, Quadratic(features.T @ features / count, middle * features.mean(axis=0), middle**2), half**2),
    )
    objective = phi(rng.uniform(-1.5, 1.5, (20, 3))).mean(axis=0)
    return objective, constraints, PointwiseRows.within(features, low, high)


def test_a_hundred_thousand_points() -> None:
    objective, constraints, rows = smooth_program(100_000, 100)
    for c in (objective, -objective):
        begun = time.perf_counter()
        found = pointwise_bound(c, constraints, rows)
        seconds = time.perf_counter() - begun
        without = pointwise_bound(c, constraints, rows, rounds=0).bound
        print(f"{without:.4f} -> {found.bound:.4f} in {found.rounds} rounds, {len(found.rows)} rows, {seconds:.1f} s")
        assert found.violated_left == 0
        assert found.status is SolveStatus.OPTIMAL
        assert found.theta is not None
        assert found.bound - float(c @ found.theta) <= 1e-6
        assert found.bound < without - 0.1
        assert found.check(rows).valid
        assert found.rounds <= 12
        assert seconds < 60


# Sets that the rows make empty.


def separated(seed: int, gap: float) -> tuple[Program, PointwiseRows]:
    """A row that asks for more (gap > 0) than the largest c'theta without rows, among others that have room."""
    program = random_program("active box", seed)
    largest = extreme_value(program.c, program.feasible_set()).bound
    rng = np.random.default_rng(seed)
    features = np.vstack([program.c, rng.normal(size=(20, program.dimension))])
    low = np.append(largest + gap * program.extent, np.full(20, -1e3 * program.extent))
    return program, PointwiseRows(features, low, low + np.append(1.0, np.full(20, 2e3)) * program.extent)


@pytest.mark.parametrize("seed", range(8))
def test_rows_out_of_reach_are_proved_so(seed: int) -> None:
    program, rows = separated(seed, gap=0.05)
    assert by_cvxpy(program, rows).status == "infeasible"
    for one in (program, program.turned()):
        found = pointwise_bound(one.c, one.feasible_set().constraints, rows)
        assert found.status is SolveStatus.EMPTY
        assert found.bound > program.loss.limit
        assert found.theta is None
        check = found.check(rows)
        assert check.valid, check.message
        assert not replace(found, certificate=replace(found.certificate, bound=2 * found.bound)).check(rows).valid


@pytest.mark.parametrize("seed", range(8))
def test_rows_just_in_reach_are_not_called_empty(seed: int) -> None:
    program, rows = separated(seed, gap=-0.01)
    found = pointwise_bound(-program.c, program.feasible_set().constraints, rows)
    assert found.status is not SolveStatus.EMPTY
    assert found.bound == pytest.approx(-float(rows.low[0]), abs=1e-6 * program.extent)


def test_rows_that_contradict_each_other_without_the_loss() -> None:
    program = random_program("generic", 0)
    m = program.dimension
    features = np.vstack([np.eye(m)[0], np.eye(m)[0]])
    rows = PointwiseRows(features, np.array([-1.0, 2.0]) * program.extent, np.array([1.0, 3.0]) * program.extent)
    found = pointwise_bound(program.c, program.feasible_set().constraints, rows)
    assert found.status is SolveStatus.EMPTY
    assert found.check(rows).valid


def test_what_cannot_be_proved_empty_is_not_called_so() -> None:
    """Without a loss there is no least loss to report: the bound without rows stays valid."""
    unit = ball(np.ones(2, dtype=bool), 1.0)
    rows = PointwiseRows.within(np.eye(2), 2.0, 3.0)
    found = pointwise_bound(np.array([1.0, 0.0]), (unit,), rows)
    assert found.status is not SolveStatus.EMPTY
    assert found.bound <= 1 + 1e-9
    assert found.check(rows).valid


# Quadratics that are not convex.


@cache
def saddle(seed: int) -> tuple[FloatArray, tuple[Constraint, ...], PointwiseRows, FloatArray]:
    """An indefinite loss over a ball, with rows, and points of the set."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9))
    vectors, values = np.linalg.qr(rng.normal(size=(m, m)))[0], rng.normal(size=m)
    values[:2] = [-abs(values[0]) - 0.1, abs(values[1]) + 0.1]
    A = (vectors * values) @ vectors.T
    loss = Quadratic(0.5 * (A + A.T), rng.normal(size=m), float(rng.normal()))
    radius = 10 ** float(rng.uniform(-1, 1))
    points = rng.normal(size=(20_000, m))
    points *= (radius * rng.uniform(size=len(points)) ** (1 / m) / np.linalg.norm(points, axis=1))[:, None]
    losses = ((points @ loss.A) * points).sum(axis=1) - 2 * points @ loss.a + loss.a0
    limit = max(float(np.quantile(losses, 0.3)), 1e-3 * float(np.abs(losses).max()))
    features = rng.normal(size=(40, m))
    half = float(np.quantile(np.abs(points @ features.T), 0.9))
    rows = PointwiseRows.within(features, -0.9 * half, 1.1 * half)
    met = ((points @ features.T <= 1.1 * half) & (points @ features.T >= -0.9 * half)).all(axis=1)
    constraints = (Constraint(Role.LOSS, loss, limit), ball(np.ones(m, dtype=bool), radius))
    return rng.normal(size=m), constraints, rows, points[met & (losses <= limit)]


@cache
def saddle_bounds(seed: int) -> tuple[PointwiseBound, PointwiseBound]:
    """With and without the rows."""
    c, constraints, rows, _ = saddle(seed)
    return pointwise_bound(c, constraints, rows), pointwise_bound(c, constraints, rows, rounds=0)


@pytest.mark.parametrize("seed", range(20))
def test_bound_of_an_indefinite_quadratic_with_rows(seed: int) -> None:
    """Above every feasible point, and at most what all rows at once, as so many quadratics, and no rows at all prove."""
    c, constraints, rows, inside = saddle(seed)
    assert len(inside) > 0
    found, without = saddle_bounds(seed)
    check = found.check(rows)
    assert check.valid, check.message
    assert (inside @ c).max() <= found.bound <= without.bound
    if found.status is SolveStatus.OPTIMAL:
        each = tuple(rows.averaged(np.array([i]), np.ones(1)) for i in range(len(rows.features)))
        start = np.append(without.multipliers, np.full(len(each), 1e-3 * without.bound / each[0].limit))
        together = maximize_dual(Quadratic.linear(c), (*constraints, *each), start)
        assert together is not None
        assert found.bound == pytest.approx(-together.bound, rel=1e-5)


@pytest.mark.parametrize("seed", [8, 12, 16, 19])
def test_bound_of_an_indefinite_quadratic_never_widens_from_round_to_round(seed: int) -> None:
    c, constraints, rows, _ = saddle(seed)
    bounds = [pointwise_bound(c, constraints, rows, rounds=rounds).bound for rounds in range(4)]
    assert bounds == sorted(bounds, reverse=True)


def test_rows_matter_for_indefinite_quadratics_and_mostly_close_the_gap() -> None:
    found = [saddle_bounds(seed) for seed in range(20)]
    assert sum(one.bound < 0.95 * without.bound for one, without in found) >= 15
    assert sum(one.status is SolveStatus.OPTIMAL for one, _ in found) >= 14


def test_an_indefinite_program_that_the_rows_make_empty() -> None:
    """theta_2^2 - theta_1^2 <= -1 in the ball of radius 2 has |theta_1| >= 1, and the row has |theta_1| <= 1/2."""
    loss = Constraint(Role.LOSS, Quadratic(np.diag([-1.0, 1.0]), np.zeros(2), 0.0), -1.0)
    rows = PointwiseRows.within(np.array([[1.0, 0.0]]), -0.5, 0.5)
    found = pointwise_bound(np.array([0.3, 1.0]), (loss, ball(np.ones(2, dtype=bool), 2.0)), rows)
    assert found.status is SolveStatus.EMPTY
    assert found.bound == pytest.approx(-0.25, abs=1e-6)
    assert found.check(rows).valid


# Results and input.


def test_a_check_finds_what_was_tampered_with() -> None:
    program, rows = with_random_rows("active box", 3)
    found = pointwise_bound(program.c, program.feasible_set().constraints, rows)
    assert len(found.rows) > 1
    assert found.check(rows).valid
    assert "negative" in found_message(replace(found, weights=-found.weights), rows)
    assert "not that of the rows" in found_message(replace(found, weights=found.weights[::-1].copy()), rows)
    assert "not that of the rows" in found_message(found, PointwiseRows(rows.features, rows.low - 1, rows.high))
    assert "not that of the rows" in found_message(found, PointwiseRows(-rows.features, rows.low, rows.high))
    lower = replace(found.certificate, bound=found.bound - 1e-3 * program.extent)
    assert "prove only" in found_message(replace(found, certificate=lower), rows)
    without_box = found.certificate.multipliers * np.append(np.ones(len(found.multipliers)), 0.5)
    assert not replace(found, certificate=replace(found.certificate, multipliers=without_box)).check(rows).valid


def found_message(found: PointwiseBound, rows: PointwiseRows) -> str:
    check = found.check(rows)
    assert not check.valid
    return check.message


def test_wrong_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"must be \(N, m\)"):
        PointwiseRows(np.ones((3, 2)), np.zeros(2), np.ones(3))
    with pytest.raises(InvalidInput, match="`low` must be below `high` in every row. Got 1.0 and 1.0 in row 1"):
        PointwiseRows(np.ones((2, 2)), np.array([0.0, 1.0]), np.ones(2))
    with pytest.raises(InvalidInput, match="`features` has 1 NaN"):
        PointwiseRows.within(np.array([[np.nan, 1.0]]), 0.0, 1.0)
    with pytest.raises(InvalidInput, match="`features` must have 2 columns. Got 3"):
        pointwise_bound(np.ones(2), (ball(np.ones(2, dtype=bool), 1.0),), PointwiseRows.within(np.ones((1, 3)), 0.0, 1.0))


@pytest.mark.parametrize("m", [3, 5, 20])
@pytest.mark.parametrize("decades", [0.0, 4.0, 12.0])
def test_strains_that_count_are_exact(m: int, decades: float) -> None:
    """Beyond the level that counts they are those of every row; below it none is above that level."""
    rng = np.random.default_rng(m)
    features = rng.normal(size=(9000, m))
    rows = PointwiseRows.within(features, low=-2.0, high=2.0)
    basis = np.linalg.qr(rng.normal(size=(m, m)))[0]
    spread, theta = (basis * np.logspace(0, -decades, m)) @ basis.T, rng.normal(size=m) / m
    middle, half = 0.0, 2.0
    second = (features @ theta - middle) ** 2 + np.einsum("ij,jk,ik->i", features, spread, features)
    exact = (np.sqrt(second) - half) / 4.0
    level = float(np.quantile(exact, 0.9))
    found = rows.strain(theta, spread, above=level)
    counts = exact > level + 1e-9
    np.testing.assert_allclose(found[counts], exact[counts], rtol=1e-9)
    assert (found[~counts] <= level + 1e-8).all() and (found >= exact - 1e-9).all()
    np.testing.assert_allclose(rows.strain(theta, spread), exact, rtol=1e-9, atol=1e-12)
