"""The variance over an ellipsoid, the residuals of rows over it, and what a step of the iteration makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountable_ope.programs.ellipsoid import Ellipsoid, root_over
from accountable_ope.programs.envelope import ConstantEnvelope
from accountable_ope.programs.evidence import Evidence
from accountable_ope.programs.quadratic import Quadratic
from accountable_ope.programs.step_rows import StepRows
from accountable_ope.verification import ranges
from accountable_ope.verification.dual import Form

seeds = st.integers(0, 10**6)


def drawn(seed: int, m: int, rows: int, scale: float = 1.0, more: int = 0) -> tuple[Evidence, Ellipsoid, np.ndarray, np.ndarray]:
    """Rows Z, v with V = ||Z theta - v||^2, and an ellipsoid; more: variables beyond the coefficients."""
    rng = np.random.default_rng(seed)
    Z, v = rng.normal(size=(rows, m)) * 10.0 ** rng.uniform(-2, 2, m), scale * rng.normal(size=rows)
    variance = Quadratic(Z.T @ Z, Z.T @ v, float(v @ v))
    evidence = Evidence("kernel", variance, variance, rows, 1.0, float(rows), ConstantEnvelope(1.0))
    basis = rng.normal(size=(m + more, m + more)) + 0.1 * np.eye(m + more)
    around = Ellipsoid(rng.normal(size=m + more), np.linalg.cholesky(basis @ basis.T), float(10.0 ** rng.uniform(-3, 1)))
    return evidence, around, Z, v


def points_of(around: Ellipsoid, many: int = 300) -> np.ndarray:
    """On its boundary, (many, m)."""
    away = np.random.default_rng(0).normal(size=(many, len(around.center)))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    return around.center + around.radius * np.linalg.solve(around.factor.T, away.T).T


@given(seeds, st.integers(1, 6), st.integers(1, 12), st.sampled_from([0.0, 1.0, 1e3]), st.integers(0, 1))
def test_no_point_of_an_ellipsoid_has_a_larger_variance(seed, m, rows, scale, more):
    evidence, around, Z, v = drawn(seed, m, rows, scale, more)
    bound = root_over(evidence.variance, around)
    found = np.linalg.norm(points_of(around)[:, :m] @ Z.T - v, axis=1)
    assert found.max() <= bound * (1 + 1e-9)
    if more == 0:  # the two ways to compute it agree
        again = ranges.root_variance(
            Form.of(evidence.variance.A, evidence.variance.a, evidence.variance.a0),
            ranges.Ellipsoid(around.center, around.factor, around.radius),
        )
        assert again == pytest.approx(bound, rel=1e-5)


@given(seeds)
def test_it_is_exact_for_one_row(seed):
    """sqrt V is |z'theta - v|, the length of one number: it grows by the reach of z and no less."""
    evidence, around, Z, v = drawn(seed, 3, 1)
    up, down = around.reach(Z, np.zeros(3))
    exact = max(float(up[0] - v[0]), float(down[0] + v[0]))
    assert root_over(evidence.variance, around) == pytest.approx(exact, rel=1e-4, abs=1e-6)


@given(seeds, st.integers(1, 10))
def test_it_is_exact_in_one_dimension_where_rows_agree(seed, rows):
    """All residuals of one sign pattern along the only direction: v = Z c + Z, so V grows straight along it."""
    evidence, around, Z, _ = drawn(seed, 1, rows)
    v = Z[:, 0] * (around.center[0] + 2.0)
    evidence = Evidence(
        "kernel", evidence.squared, Quadratic(Z.T @ Z, Z.T @ v, float(v @ v)), rows, 1.0, float(rows), ConstantEnvelope(1.0)
    )
    exact = float(np.linalg.norm(Z)) * (2.0 + around.radius / around.factor[0, 0])
    assert root_over(evidence.variance, around) == pytest.approx(exact, rel=1e-4)


@given(seeds, st.integers(1, 5), st.booleans())
def test_residuals_of_rows_over_ellipsoids(seed, m, both):
    """Never below that of a point of all ellipsoids, attained by one of a single ellipsoid; what is hidden is added."""
    _, around, Z, v = drawn(seed, m, 7)
    rng = np.random.default_rng(seed)
    missed = rng.random(7)
    ellipsoids = [around]
    if both:  # a larger one around it changes nothing
        ellipsoids.append(Ellipsoid(around.center, around.factor, 3 * around.radius))
    rows = StepRows(Z, v)
    largest = rows.largest(ellipsoids, norm_bound=2.0)
    points = points_of(around)
    assert (np.abs(v - points @ Z.T).max(axis=0) <= largest * (1 + 1e-9) + 1e-12).all()
    turned = np.linalg.solve(around.factor, Z.T)
    sign = np.where(Z @ around.center > v, 1.0, -1.0)
    far = around.center + around.radius * (np.linalg.solve(around.factor.T, turned / np.linalg.norm(turned, axis=0)) * sign).T
    np.testing.assert_allclose(np.abs(v - np.einsum("ij,ij->i", far, Z)), largest, rtol=1e-6, atol=1e-9)
    hidden = StepRows(Z, v, gap=0.5, missed=missed).largest(ellipsoids, norm_bound=2.0)
    np.testing.assert_allclose(hidden, largest + 0.5 + 2.0 * missed, rtol=1e-9)


def test_declared_ranges_bound_rows_as_they_are():
    rows = StepRows(np.ones((3, 1)), np.zeros(3), ranges=np.array([0.5, np.inf, 2.0]))
    assert rows.bounds(1.0).tolist() == [0.5, 1.0, 1.0]
    assert StepRows(np.ones((3, 1)), np.zeros(3)).bounds(1.0).tolist() == [1.0, 1.0, 1.0]


@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 2000), st.booleans())
def test_the_largest_step_is_found_without_looking_at_every_row(seed, m, many, count, hides):
    """Only the largest scale_i |eps_i| is exact, and no row is below what it can reach."""
    rng = np.random.default_rng(seed)
    _, _, Z, v = drawn(seed, m, count)
    ellipsoids = [drawn(seed + k, m, 1)[1] for k in range(many)]
    missed = rng.random(count) if hides else None
    rows = StepRows(Z, v, gap=0.1, missed=missed)
    scales = [10.0 ** rng.uniform(-2, 2, count) for _ in range(2)]
    exact, quick = rows.largest(ellipsoids, 2.0), rows.largest(ellipsoids, 2.0, scales)
    assert (quick >= exact * (1 - 1e-12)).all()
    for scale in scales:
        assert (scale * quick).max() == pytest.approx((scale * exact).max(), rel=1e-12)
