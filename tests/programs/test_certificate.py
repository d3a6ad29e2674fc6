"""Certificates: what they prove, and that a tampered one proves nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from accountable_ope.programs import Certificate, FeasibleSet, Quadratic, SolveStatus, decompose, extreme_value
from accountable_ope.programs.constraint import Constraint, Role
from reference import Program, random_program

KINDS = ("generic", "rank-deficient", "unpenalized constant", "no ball", "active box", "small rewards", "large rewards", "kernel")


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def certified(kind: str, seed: int) -> tuple[Program, Certificate]:
    program = random_program(kind, seed)
    return program, extreme_value(program.c, program.feasible_set())


def refused(certificate: Certificate) -> str:
    check = certificate.check()
    assert not check.valid
    return check.message


def test_a_certificate_knows_its_value_gap_and_multipliers() -> None:
    program, certificate = certified("active box", 2)
    assert certificate.point is not None
    assert certificate.value == pytest.approx(program.c @ certificate.point, rel=1e-15)
    assert certificate.gap == certificate.bound - certificate.value
    roles = [c.role for c in certificate.constraints]
    assert roles == [Role.LOSS, Role.BALL, Role.BOX]
    assert [certificate.multiplier(role) for role in roles] == certificate.multipliers.tolist()
    assert certified("generic", 0)[1].multiplier(Role.BOX) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_check_computes_the_bound_again(kind: str) -> None:
    for seed in range(5):
        program, certificate = certified(kind, seed)
        check = certificate.check()
        assert check.valid
        assert check.message == "the multipliers prove the bound"
        assert abs(check.bound - certificate.bound) <= 1e-7 * max(abs(certificate.bound), 1e-3 * program.extent)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_lowered_by_one_percent_is_refused(kind: str) -> None:
    for seed in range(5):
        _, certificate = certified(kind, seed)
        lowered = replace(certificate, bound=certificate.bound - 0.01 * abs(certificate.bound))
        assert refused(lowered).startswith("the multipliers prove only")


@pytest.mark.parametrize("kind", KINDS)
def test_a_raised_bound_is_a_weaker_claim_and_holds(kind: str) -> None:
    _, certificate = certified(kind, 0)
    assert replace(certificate, bound=certificate.bound + 0.5 * abs(certificate.bound)).check().valid


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_scaled_multipliers_are_refused(kind: str, factor: float) -> None:
    for seed in range(3):
        _, certificate = certified(kind, seed)
        assert refused(replace(certificate, multipliers=factor * certificate.multipliers)).startswith(
            "the multipliers prove only"
        )


@pytest.mark.parametrize("multipliers", [0.0, -1.0, math.nan, math.inf])
def test_multipliers_that_prove_nothing_are_refused(multipliers: float) -> None:
    _, certificate = certified("generic", 0)
    message = refused(replace(certificate, multipliers=np.full(2, multipliers)))
    expected = "the multipliers prove no finite bound" if multipliers == 0 else "a multiplier is negative or not finite"
    assert message == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_outside_the_set_is_refused(kind: str) -> None:
    for seed in range(5):
        program, certificate = certified(kind, seed)
        assert certificate.point is not None
        out = certificate.point + 0.01 * program.extent * program.c / float(program.c @ program.c)
        assert program.excess(out)[0] > 0
        assert "the feasible point breaks the" in refused(replace(certificate, point=out))


def test_the_message_names_the_broken_constraint() -> None:
    """On the line theta <= 1 (loss), |theta| <= 2 (ball): 1.5 breaks the loss, and with a wider loss 2.5 breaks the ball."""
    for limit, point, name in ((1.0, 1.5, "loss"), (100.0, 2.5, "ball")):
        feasible = FeasibleSet(decompose(Quadratic(np.eye(1), np.zeros(1), 0.0), np.ones(1, dtype=bool)), limit, 2.0)
        certificate = extreme_value(np.ones(1), feasible)
        assert certificate.bound == pytest.approx(min(math.sqrt(limit), 2.0), rel=1e-9)
        message = refused(replace(certificate, point=np.array([point])))
        assert message == f"the feasible point breaks the {name} constraint"


@pytest.mark.parametrize("kind", KINDS)
def test_a_larger_set_needs_its_own_certificate(kind: str) -> None:
    for seed in range(5):
        _, certificate = certified(kind, seed)
        wider = tuple(replace(c, limit=1.5 * c.limit) for c in certificate.constraints)
        assert refused(replace(certificate, constraints=wider)).startswith("the multipliers prove only")


def test_huge_multipliers_do_not_hide_a_false_bound() -> None:
    """(theta_2 - 1)^2 + 1 <= 1 and ||theta|| <= 2: the value at (sqrt 3, 1) is above the claimed bound."""
    loss = Constraint(Role.LOSS, Quadratic(np.diag([0.0, 1.0]), np.array([0.0, 1.0]), 2.0), 1.0)
    box = Constraint(Role.BOX, Quadratic(np.eye(2), np.zeros(2), 0.0), 4.0)
    point = np.array([math.sqrt(3) * (1 - 1e-12), 1.0])
    for multiplier in (1e16, 1e20, 1e25):
        multipliers = np.array([multiplier, 0.3])
        false = Certificate(np.array([1.0, 0.3]), (loss, box), multipliers, -16.0, point, SolveStatus.OPTIMAL)
        refused(false)
        refused(replace(false, point=None, status=SolveStatus.BOUND_ONLY))


def empty() -> Certificate:
    """theta in [1, 3] by the loss, |theta| <= 0.5 by the ball: the least loss over the ball is 2.25, its limit 1."""
    loss = Quadratic(np.eye(1), np.array([2.0]), 4.0)
    certificate = extreme_value(np.ones(1), FeasibleSet(decompose(loss, np.ones(1, dtype=bool)), 1.0, 0.5))
    assert certificate.status is SolveStatus.EMPTY
    return certificate


def test_an_empty_set_is_certified_by_its_least_loss() -> None:
    certificate = empty()
    assert certificate.bound == pytest.approx(2.25, rel=1e-9)
    assert certificate.multipliers == pytest.approx([1.0, 3.0], rel=1e-6)
    check = certificate.check()
    assert check.valid
    assert check.message == "the least loss exceeds the radius"
    assert math.isnan(certificate.value)
    assert math.isnan(certificate.gap)


def test_a_tampered_proof_of_emptiness_is_refused() -> None:
    certificate = empty()
    loss, norm = certificate.constraints
    message = "the multipliers prove a least loss of only"
    assert message in refused(replace(certificate, bound=1.01 * certificate.bound))
    assert message in refused(replace(certificate, multipliers=0.5 * certificate.multipliers))
    assert message in refused(replace(certificate, multipliers=np.array([1.0, 0.0])))
    assert message in refused(replace(certificate, constraints=(replace(loss, limit=2.3), norm)))
    assert message in refused(replace(certificate, constraints=(loss, replace(norm, limit=1.0))))


def test_a_set_with_points_is_not_certified_as_empty() -> None:
    for seed in range(10):
        program, certificate = certified("generic", seed)
        for multiplier in (0.0, 1e-3, 1.0, 1e3):
            claimed = replace(
                certificate,
                multipliers=np.array([1.0, multiplier]),
                bound=2 * program.loss.limit,
                point=None,
                status=SolveStatus.EMPTY,
            )
            refused(claimed)


def test_unbounded_claims_nothing() -> None:
    loss = Quadratic(np.diag([1.0, 0.0]), np.zeros(2), 0.0)
    certificate = extreme_value(np.ones(2), FeasibleSet(decompose(loss, np.ones(2, dtype=bool)), 1.0, None))
    assert certificate.status is SolveStatus.UNBOUNDED
    assert certificate.check().valid
    refused(replace(certificate, bound=5.0))


def test_a_certificate_with_the_bound_only_still_proves_it() -> None:
    _, certificate = certified("generic", 0)
    bound_only = replace(certificate, point=None, status=SolveStatus.BOUND_ONLY)
    assert bound_only.check().valid
    assert math.isnan(bound_only.gap)
    refused(replace(bound_only, bound=bound_only.bound - 0.01 * abs(bound_only.bound)))
