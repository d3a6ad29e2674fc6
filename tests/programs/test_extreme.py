"""Extreme values over {loss} and {ball} and {box}: against Clarabel, closed forms, random feasible points and each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, getcontext

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from accountable_ope.programs import Certificate, FeasibleSet, Quadratic, SolveStatus, decompose, extreme_value, least_correction
from accountable_ope.programs.constraint import Constraint, Role
from accountable_ope.validation import FloatArray
from reference import (
    KINDS,
    Program,
    Sphere,
    clarabel_least_loss,
    clarabel_least_norm,
    clarabel_maximum,
    random_program,
    with_rewards_times,
    with_spectrum,
)

COUNT = 40
"""Random programs of each kind: 14 kinds and 560 programs, both ends of each."""


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Two threads cost more than they gain on small matrices, above all beside another worker."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def maximum(program: Program) -> Certificate:
    return extreme_value(program.c, program.feasible_set())


def size(program: Program, value: float) -> float:
    """What errors are measured by: the value, or a thousandth of ||c|| R where that is larger."""
    return max(abs(value), 1e-3 * program.extent)


def assert_sound(program: Program, certificate: Certificate, seed: int = 0) -> None:
    """The certificate holds, its point is feasible and near the bound, and no random feasible point lies beyond it."""
    assert certificate.status is SolveStatus.OPTIMAL
    check = certificate.check()
    assert check.valid, check.message
    assert certificate.point is not None
    assert program.excess(certificate.point)[0] <= 1e-9
    assert -1e-12 * program.extent <= certificate.gap <= 1e-7 * size(program, certificate.bound)
    points = program.points_inside(40, np.random.default_rng(seed))
    assert program.excess(points).max() <= 0
    assert (points @ program.c).max() <= certificate.bound


@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.parametrize("kind", KINDS)
def test_both_ends_agree_with_clarabel(kind: str, seed: int) -> None:
    for program in (random_program(kind, seed), random_program(kind, seed).turned()):
        certificate, expected = maximum(program), clarabel_maximum(program)
        assert expected.solved
        assert abs(certificate.bound - expected.value) <= 1e-6 * size(program, expected.value)
        assert_sound(program, certificate, seed)


@pytest.mark.parametrize(
    ("kind", "ball", "box", "loss"),
    [
        ("inactive ball", False, None, True),
        ("inactive ellipsoid", True, None, False),
        ("no ball", None, None, True),
        ("inactive box", None, False, None),
    ],
)
def test_kinds_are_what_they_say(kind: str, ball: bool | None, box: bool | None, loss: bool | None) -> None:
    for seed in range(10):
        certificate = maximum(random_program(kind, seed))
        for role, active in ((Role.BALL, ball), (Role.BOX, box), (Role.LOSS, loss)):
            if active is not None:
                assert (certificate.multiplier(role) > 0) is active


def test_active_boxes_are_active() -> None:
    active = [maximum(random_program("active box", seed)).multiplier(Role.BOX) > 1e-6 for seed in range(COUNT)]
    assert sum(active) >= COUNT // 2


# Programs with special answers.


def exact_program(seed: int) -> Program:
    """More coefficients than rows, so that the loss can be exactly 0, which is its limit."""
    rng = np.random.default_rng([99, seed])
    m = int(rng.integers(3, 20))
    n = int(rng.integers(1, m))
    B = np.linalg.qr(rng.normal(size=(m, n)))[0].T * rng.uniform(0.3, 1, size=(n, 1))
    true = rng.normal(size=m)
    R = float(np.linalg.norm(true)) * float(rng.uniform(1.05, 3))
    return Program(rng.normal(size=m), Sphere(B, B @ true, 0.0, 0.0), np.ones(m, dtype=bool), R)


@pytest.mark.parametrize("seed", range(COUNT))
def test_radius_zero_has_a_closed_form(seed: int) -> None:
    """On {B theta = b} and the ball: c'theta_0 + ||c on the null space|| sqrt(R^2 - ||theta_0||^2), theta_0 = B^+ b."""
    for program in (exact_program(seed), exact_program(seed).turned()):
        B, c = program.loss.B, program.c
        least = np.linalg.pinv(B) @ program.loss.b
        across = c - np.linalg.pinv(B) @ (B @ c)
        assert program.norm_bound is not None
        expected = float(c @ least + np.linalg.norm(across) * math.sqrt(program.norm_bound**2 - least @ least))
        certificate = maximum(program)
        assert abs(certificate.bound - expected) <= 1e-6 * program.extent
        assert certificate.bound >= expected - 1e-12 * program.extent
        assert certificate.check().valid
        assert certificate.status is SolveStatus.OPTIMAL


def empty_program(kind: str, seed: int) -> tuple[Program, float]:
    """A limit between the least loss of all and the least loss over ball and box, and the latter."""
    program = random_program(kind, seed)
    if program.norm_bound is not None:
        program = replace(program, norm_bound=0.2 * program.norm_bound)
    least = clarabel_least_loss(program)
    everywhere = np.linalg.lstsq(program.loss.B, program.loss.b)[0]
    free = float(program.loss.value(everywhere)[0])
    return replace(program, loss=replace(program.loss, limit=free + 0.6 * (least - free))), least


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("kind", ["generic", "unpenalized constant", "small rewards", "active box"])
def test_an_empty_set_is_proved_empty(kind: str, seed: int) -> None:
    program, least = empty_program(kind, seed)
    assert clarabel_maximum(program).status == "infeasible"
    for one in (program, program.turned()):
        certificate = maximum(one)
        assert certificate.status is SolveStatus.EMPTY
        assert certificate.point is None
        assert math.isnan(certificate.value)
        # The ball alone may prove it already, and then the box is left out.
        assert program.loss.limit < certificate.bound <= least * (1 + 1e-6)
        assert program.box is not None or certificate.bound >= least * (1 - 1e-6)
        check = certificate.check()
        assert check.valid, check.message


@pytest.mark.parametrize("norm_bound", [None, 2.0])
def test_a_limit_below_every_loss_is_empty(norm_bound: float | None) -> None:
    rng = np.random.default_rng(0)
    B, b = rng.normal(size=(6, 3)), rng.normal(size=6)
    program = Program(rng.normal(size=3), Sphere(B, b, 1.0, 1.0), np.ones(3, dtype=bool), norm_bound)
    certificate = maximum(program)
    assert certificate.status is SolveStatus.EMPTY
    assert certificate.check().valid
    assert norm_bound is not None or certificate.bound == pytest.approx(
        float(program.loss.value(np.linalg.lstsq(B, b)[0])[0]), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(2))
def test_a_thousand_coefficients(seed: int) -> None:
    """Too large for CVXPY in a test: the gap between dual bound and feasible point shows the answer."""
    rng = np.random.default_rng(seed)
    m = 1000
    B = rng.normal(size=(m, m)) * 10 ** -np.linspace(0, 4, m)
    true = rng.normal(size=m) / math.sqrt(m)
    b = B @ true + rng.normal(size=m)
    penalized = np.arange(m) < m - 1
    sphere = Sphere(B, b, 0.0, 1.2 * float(np.sum((B @ true - b) ** 2)))
    program = Program(rng.normal(size=m), sphere, penalized, 1.5 * float(np.linalg.norm(true)))
    feasible = program.feasible_set()
    for one in (program, program.turned()):
        certificate = extreme_value(one.c, feasible)
        assert certificate.status is SolveStatus.OPTIMAL
        assert certificate.gap <= 1e-9 * size(one, certificate.bound)
        assert one.excess(certificate.point)[0] <= 1e-9
        assert certificate.check().valid


@pytest.mark.parametrize("excess", [1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("kind", ["generic", "rank-deficient", "unpenalized constant", "active box"])
def test_barely_feasible_sets(kind: str, excess: float) -> None:
    """The limit is the least loss and a little more; Clarabel stalls on most of these, so primal and dual judge each other."""
    for seed in range(8):
        program = random_program(kind, seed)
        least = program.feasible_set().least_loss
        program = replace(program, loss=replace(program.loss, limit=least.loss * (1 + excess)))
        certificate = maximum(program)
        assert certificate.status is SolveStatus.OPTIMAL
        assert certificate.check().valid
        assert program.excess(certificate.point)[0] <= 1e-9
        # The last digits of the loss decide ever more of the answer.
        allowed = max(1e-7, 1e-11 / math.sqrt(excess)) * (1 if program.box is None else 10)
        assert -1e-10 * program.extent <= certificate.gap <= allowed * program.extent
        assert program.c @ least.theta <= certificate.bound
        expected = clarabel_maximum(program)
        if expected.solved and excess >= 1e-6:
            assert abs(certificate.bound - expected.value) <= 1e-6 * program.extent


@pytest.mark.parametrize("norm_bound", [10.0, None])
@pytest.mark.parametrize("excess", [1e-3, 1e-9, 1e-12, 1e-15, 0.0])
def test_a_limit_at_the_least_loss_does_not_break_the_bound(excess: float, norm_bound: float | None) -> None:
    """(theta_2 - 1)^2 + 1 <= 1 + excess and ||theta|| <= 2 as a box: (sqrt 3, 1) is feasible, with the value sqrt 3 + 0.3."""
    loss = Quadratic(np.diag([0.0, 1.0]), np.array([0.0, 1.0]), 2.0)
    box = Constraint(Role.BOX, Quadratic(np.eye(2), np.zeros(2), 0.0), 4.0)
    feasible = FeasibleSet(decompose(loss, np.ones(2, dtype=bool)), 1 + excess, norm_bound, box)
    certificate = extreme_value(np.array([1.0, 0.3]), feasible)
    assert certificate.bound >= math.sqrt(3) + 0.3
    assert certificate.check().valid
    assert math.isnan(certificate.gap) or certificate.gap >= 0


@pytest.mark.parametrize("slack", [1e-3, 1e-6, 1e-9, 1e-12])
def test_bound_is_not_below_the_maximum_in_exact_arithmetic(slack: float) -> None:
    """A theta^2 - 2 a theta + a0 <= limit has the largest root (a + sqrt(a^2 - A (a0 - limit))) / A, here with 60 digits."""
    getcontext().prec = 60
    for seed in range(100):
        B, true = np.random.default_rng(seed).normal(size=2), np.random.default_rng(seed + 1000).normal()
        sphere = Sphere(B[:, None], B * true, 0.0, slack * float(B @ B) * true**2)
        loss = sphere.quadratic()
        A, a, a0, limit = (Decimal(float(x)) for x in (loss.A[0, 0], loss.a[0], loss.a0, sphere.limit))
        root = (a + (a * a - A * (a0 - limit)).sqrt()) / A
        certificate = maximum(Program(np.ones(1), sphere, np.zeros(1, dtype=bool), 1000.0))
        assert Decimal(certificate.bound) >= root


@pytest.mark.parametrize("norm_bound", [None, 100.0])
@pytest.mark.parametrize("spread", [4, 5, 6, 7])
def test_a_nearly_singular_loss_is_certified(spread: int, norm_bound: float | None) -> None:
    """Eigenvalues of the loss down to 10^(-2 spread): rounding moves the bound, but what is reported can be checked."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        B = with_spectrum(rng, 60, 30, spread)
        true = rng.normal(size=30)
        b = B @ true + rng.normal(size=60) / 80
        loss = Sphere(B, b, 0.0, 2 * float(np.sum((B @ true - b) ** 2)))
        program = Program(rng.normal(size=30), loss, np.ones(30, dtype=bool), norm_bound, inside=true)
        certificate = maximum(program)
        check = certificate.check()
        assert check.valid, check.message
        assert (program.points_inside(40, rng) @ program.c).max() <= certificate.bound


def test_a_loss_that_ignores_theta_leaves_the_ball() -> None:
    loss = Quadratic(np.zeros((2, 2)), np.zeros(2), 0.5)
    decomposition = decompose(loss, np.ones(2, dtype=bool))
    assert decomposition.convex
    certificate = extreme_value(np.array([3.0, 4.0]), FeasibleSet(decomposition, 1.0, 2.0))
    assert certificate.bound == pytest.approx(10.0, rel=1e-9)
    assert certificate.status is SolveStatus.OPTIMAL


def test_nothing_bounds_a_direction_without_loss_and_ball() -> None:
    sphere = Sphere(np.array([[1.0, 0.0]]), np.array([1.0]), 0.0, 0.25)
    across = Program(np.array([1.0, 1.0]), sphere, np.ones(2, dtype=bool), None)
    certificate = maximum(across)
    assert certificate.status is SolveStatus.UNBOUNDED
    assert certificate.bound == math.inf
    assert certificate.check().valid
    along = replace(across, c=np.array([2.0, 0.0]))
    assert maximum(along).bound == pytest.approx(3.0, rel=1e-12)
    assert maximum(along).status is SolveStatus.OPTIMAL


def test_nothing_bounds_an_unpenalized_direction_without_loss() -> None:
    sphere = Sphere(np.array([[1.0, 0.0]]), np.array([1.0]), 0.0, 0.25)
    certificate = maximum(Program(np.ones(2), sphere, np.array([True, False]), 3.0))
    assert certificate.status is SolveStatus.UNBOUNDED


def bounded_by_its_box(seed: int, rows: int) -> tuple[Program, float]:
    """c lies in the range of the box, whose matrix is singular, as start states alone make it; and what the box allows."""
    rng = np.random.default_rng(seed)
    B, D = rng.normal(size=(rows, 6)), rng.normal(size=(3, 6))
    c = D.T @ rng.normal(size=3)
    program = Program(c, Sphere(B, np.zeros(rows), 0.0, 1.0), np.ones(6, dtype=bool), None, Sphere(D, np.zeros(3), 0.0, 1.0))
    return program, float(np.linalg.norm(np.linalg.lstsq(D.T, c)[0]))


@pytest.mark.parametrize("seed", range(40))
def test_the_box_alone_bounds_where_the_loss_does_not(seed) -> None:
    program, by_the_box = bounded_by_its_box(seed, rows=3)
    certificate = maximum(program)
    assert certificate.status in (SolveStatus.OPTIMAL, SolveStatus.BOUND_ONLY)
    assert certificate.check().valid
    assert certificate.bound == pytest.approx(by_the_box, rel=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_a_direction_that_nothing_bounds_makes_no_bound_false(seed) -> None:
    """Loss and box leave one of six directions open, which c ignores: every matrix is singular, and rounding alone decides
    how near a bound comes to the best one."""
    program, by_the_box = bounded_by_its_box(seed, rows=2)
    certificate = maximum(program)
    assert certificate.bound >= by_the_box * (1 - 1e-9)
    if math.isfinite(certificate.bound):
        assert certificate.check().valid
    if certificate.status is SolveStatus.OPTIMAL:
        assert certificate.bound == pytest.approx(by_the_box, rel=1e-5)


def test_an_objective_of_zero_has_the_value_zero() -> None:
    program = random_program("generic", 0)
    certificate = maximum(replace(program, c=np.zeros(program.dimension)))
    assert certificate.bound == 0.0
    assert certificate.check().valid


# How answers move with the program.

FACTORS = (1.0, 1.001, 1.2, 3.0, 30.0)


@pytest.mark.parametrize("kind", ["generic", "rank-deficient", "unpenalized constant", "active box", "kernel"])
def test_bound_grows_with_the_limit(kind: str) -> None:
    grown = 0
    for seed in range(10):
        program = random_program(kind, seed)
        bounds = [maximum(replace(program, loss=replace(program.loss, limit=program.loss.limit * f))).bound for f in FACTORS]
        assert (np.diff(bounds) >= -1e-9 * program.extent).all()
        grown += bounds[-1] > bounds[0] + 1e-3 * program.extent
    assert grown >= 5


@pytest.mark.parametrize("kind", ["generic", "rank-deficient", "unpenalized constant", "active box", "kernel"])
def test_bound_grows_with_the_norm_bound(kind: str) -> None:
    grown = 0
    for seed in range(10):
        program = random_program(kind, seed)
        assert program.norm_bound is not None
        bounds = [maximum(replace(program, norm_bound=program.norm_bound * f)).bound for f in FACTORS]
        unbounded = maximum(replace(program, norm_bound=None)).bound
        assert (np.diff([*bounds, unbounded]) >= -1e-9 * program.extent).all()
        grown += unbounded > bounds[0] + 1e-3 * program.extent
    assert grown >= 1


def test_bound_grows_without_the_box() -> None:
    grown = 0
    for seed in range(20):
        program = random_program("active box", seed)
        with_box, without = maximum(program).bound, maximum(replace(program, box=None)).bound
        assert without >= with_box - 1e-9 * program.extent
        grown += without > with_box + 1e-3 * program.extent
    assert grown >= 5


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("kind", ["generic", "unpenalized constant", "active box"])
def test_bound_is_in_the_unit_of_the_rewards(kind: str, scale: float) -> None:
    for seed in range(5):
        program = random_program(kind, seed)
        plain, scaled = maximum(program).bound, maximum(with_rewards_times(program, scale)).bound
        assert abs(scaled / scale - plain) <= 1e-8 * size(program, plain)


@pytest.mark.parametrize("kind", ["generic", "rank-deficient", "singular", "unpenalized constant", "active box", "kernel"])
def test_one_decomposition_serves_every_limit_and_norm_bound(kind: str) -> None:
    program = random_program(kind, 3)
    shared = program.feasible_set()
    for limit in (1.0, 1.5, 10.0):
        for norm_bound in (0.95, 1.0, 4.0, None):
            R = None if norm_bound is None or program.norm_bound is None else program.norm_bound * norm_bound
            one = replace(program, loss=replace(program.loss, limit=program.loss.limit * limit), norm_bound=R)
            again = FeasibleSet(shared.decomposition, one.loss.limit, R, shared.box)
            for c in (program.c, -program.c):
                first, fresh = extreme_value(c, again), extreme_value(c, one.feasible_set())
                assert first.status is fresh.status
                assert first.bound == fresh.bound
                assert np.array_equal(first.multipliers, fresh.multipliers)


def test_both_ends_enclose_the_value_of_a_feasible_point() -> None:
    for kind in KINDS:
        program = random_program(kind, 1)
        inside = program.feasible_set().least_loss.theta
        assert -maximum(program.turned()).bound <= program.c @ inside <= maximum(program).bound


def test_least_loss_agrees_with_clarabel() -> None:
    for kind in ("generic", "unpenalized constant", "active box", "box without ball", "kernel"):
        for seed in range(8):
            program = random_program(kind, seed)
            if program.norm_bound is not None:
                program = replace(program, norm_bound=0.5 * program.norm_bound)
            found, expected = program.feasible_set().least_loss, clarabel_least_loss(program)
            scale = float(program.loss.b @ program.loss.b)
            assert found.lower_bound == pytest.approx(expected, rel=1e-6, abs=1e-9 * scale)
            assert found.lower_bound <= found.loss + 1e-12 * scale


# The least correction.


def correction(program: Program) -> FloatArray | None:
    return least_correction(decompose(program.loss.quadratic(), program.penalized), program.loss.limit)


@pytest.mark.parametrize("share", [1e-3, 0.3])
@pytest.mark.parametrize("kind", ["generic", "rank-deficient", "singular", "one coordinate", "unpenalized constant", "kernel"])
def test_least_correction_agrees_with_clarabel(kind: str, share: float) -> None:
    solved = 0
    for seed in range(10):
        program = random_program(kind, seed)
        least = float(program.loss.value(np.linalg.lstsq(program.loss.B, program.loss.b)[0])[0])
        nothing = float(program.loss.b @ program.loss.b) + program.loss.extra
        program = replace(program, loss=replace(program.loss, limit=least + share * (nothing - least)))
        theta, expected = correction(program), clarabel_least_norm(program)
        assert theta is not None
        assert float(program.loss.value(theta)[0]) <= program.loss.limit * (1 + 1e-9)
        if expected.solved:
            solved += 1
            norm = float(np.linalg.norm(theta[program.penalized]))
            assert abs(norm - expected.value) <= 1e-6 * max(expected.value, 1e-3 * program.unit)
    assert solved >= 8


def test_least_correction_is_zero_exactly_when_zero_is_feasible() -> None:
    for seed in range(20):
        program = random_program("generic", seed)
        at_zero = float(program.loss.b @ program.loss.b) + program.loss.extra
        enough = correction(replace(program, loss=replace(program.loss, limit=at_zero * (1 + 1e-9))))
        short = correction(replace(program, loss=replace(program.loss, limit=at_zero * (1 - 1e-6))))
        assert enough is not None and (enough == 0).all()
        assert short is not None and np.linalg.norm(short) > 0


def test_least_correction_leaves_the_constant_free() -> None:
    for seed in range(20):
        program = random_program("unpenalized constant", seed)
        B, b = program.loss.B, program.loss.b
        constant = float(B[:, -1] @ b / (B[:, -1] @ B[:, -1]))
        at_constant = float(np.sum((B[:, -1] * constant - b) ** 2)) + program.loss.extra
        theta = correction(replace(program, loss=replace(program.loss, limit=at_constant * (1 + 1e-9))))
        assert theta is not None
        assert (theta[:-1] == 0).all()
        assert theta[-1] == pytest.approx(constant, rel=1e-9)


def test_least_correction_is_none_when_no_theta_reaches_the_limit() -> None:
    for kind in ("generic", "rank-deficient", "unpenalized constant"):
        for seed in range(10):
            program = random_program(kind, seed)
            least = float(program.loss.value(np.linalg.lstsq(program.loss.B, program.loss.b)[0])[0])
            below = replace(program, loss=replace(program.loss, limit=least * (1 - 1e-6)))
            above = replace(program, loss=replace(program.loss, limit=least * (1 + 1e-6)))
            assert correction(below) is None
            assert correction(above) is not None


def test_least_correction_is_the_smallest_ball_that_is_not_empty() -> None:
    for seed in range(10):
        program = random_program("unpenalized constant", seed)
        theta = correction(program)
        assert theta is not None
        norm = float(np.linalg.norm(theta[program.penalized]))
        assert norm > 0
        assert maximum(replace(program, norm_bound=norm * (1 + 1e-6))).status is not SolveStatus.EMPTY
        assert maximum(replace(program, norm_bound=norm * (1 - 1e-4))).status is SolveStatus.EMPTY
