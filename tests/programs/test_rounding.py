"""The bound of any multipliers, against exact rational arithmetic: rounding is counted before anything cancels."""

from fractions import Fraction

import numpy as np
import pytest

from accountable_ope.programs import Certificate, SolveStatus
from accountable_ope.programs.constraint import Constraint, Role, ball
from accountable_ope.programs.lagrangian import lagrangian, lagrangian_value
from accountable_ope.programs.quadratic import Quadratic


def exact_value(objective, constraints, multipliers):
    """inf of the Lagrangian in rational numbers; None where the matrix is not positive definite."""
    m = len(objective.a)
    weighed = [(Fraction(1), objective, Fraction(0))]
    weighed += [(Fraction(float(a)), c.quadratic, Fraction(c.limit)) for a, c in zip(multipliers, constraints, strict=True)]
    H = [[sum(a * Fraction(float(q.A[i, j])) for a, q, _ in weighed) for j in range(m)] for i in range(m)]
    h = [sum(a * Fraction(float(q.a[i])) for a, q, _ in weighed) for i in range(m)]
    constant = sum(a * (Fraction(float(q.a0)) - limit) for a, q, limit in weighed)
    right, taken = h[:], Fraction(0)
    for k in range(m):  # Gaussian elimination: h'H^{-1}h is the sum of right_k^2 / pivot_k
        if H[k][k] <= 0:
            return None
        taken += right[k] ** 2 / H[k][k]
        for i in range(k + 1, m):
            share = H[i][k] / H[k][k]
            right[i] -= share * right[k]
            for j in range(k + 1, m):
                H[i][j] -= share * H[k][j]
    return constant - taken


def canceling(seed, size, left):
    """Two losses with huge multipliers whose matrices, vectors and constants cancel but for a little, and a ball."""
    rng, m = np.random.default_rng(seed), 3
    root = rng.normal(size=(m, m))
    A, a, a0 = root @ root.T, rng.normal(size=m), float(rng.normal())
    share = rng.uniform(0.5, 2)
    A2, a2 = -share * A + left * np.eye(m), -share * a + left * rng.normal(size=m)
    constraints = (
        Constraint(Role.LOSS, Quadratic(A, a, a0), 0.3),
        Constraint(Role.LOSS, Quadratic(A2, a2, -share * a0), 0.1 * rng.uniform()),
        ball(np.ones(m, dtype=bool), 1.7),
    )
    weight = float(size * rng.uniform(1, 2))
    return Quadratic.linear(rng.normal(size=m)), constraints, np.array([weight, weight / share, 0.37])


@pytest.mark.parametrize(("size", "left"), [(1.0, 1.0), (1e6, 1e-6), (1e10, 1e-10), (1e12, 1e-13), (1e14, 1e-14), (1e16, 1e-16)])
def test_the_bound_is_below_the_exact_one_however_much_cancels(size, left):
    proved = 0
    for seed in range(50):
        program = canceling(seed, size, left)
        value, _ = lagrangian_value(*program)
        exact = exact_value(*program)
        assert value == -np.inf or (exact is not None and Fraction(value) <= exact)
        proved += value > -np.inf
    assert size > 1e12 or proved == 50  # and where digits are left, it is still a bound


def test_without_cancellation_nothing_is_lost():
    for seed in range(20):
        objective, constraints, multipliers = canceling(seed, 1.0, 1.0)
        kept = (constraints[0], constraints[2])
        found = lagrangian(objective, kept, multipliers[[0, 2]])
        exact = float(exact_value(objective, kept, multipliers[[0, 2]]))
        assert found is not None and 0 <= exact - found.value <= 1e-13 * found.magnitude


def test_a_certificate_of_noise_is_not_accepted():
    """Multipliers of 1e17: what is left of the matrix is rounding, and positive definite by chance in one of eight cases."""
    for seed in range(100):
        objective, constraints, multipliers = canceling(seed, 1e17, 1e-18)
        certificate = Certificate(2 * objective.a, constraints, multipliers, 1e30, None, SolveStatus.BOUND_ONLY)
        exact, found = exact_value(objective, constraints, multipliers), certificate.check()
        assert not found.valid or (exact is not None and Fraction(found.bound) >= -exact)
