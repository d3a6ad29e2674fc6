"""Theorem B', with the largest step that was observed, and Theorem A in the same mixture: inequalities, walks and their power.

Walks have two-point noise, rare and one-sided or not, in directions that follow the sum so far. The bound is asked for at every n
at once, with the largest step and the variance of the very walk. Where little is wasted, a cost of half the size is refuted
by the same count of violations.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.envelope import RateMixture, rate_mixture, step_cost
from accountable_ope.radii.martingale import azuma, empirical_bernstein
from crossing import crossing_probability

DELTA, TRIALS, STEPS = 0.5, 400, 2000
SLOW = RateMixture(np.geomspace(0.04, 0.2, 8), np.full(8, 1 / 8), DELTA)
"""Rates at which walks of these lengths waste little."""


def psi(x: np.ndarray | float) -> np.ndarray:
    return -np.log1p(-np.asarray(x)) - x


@pytest.mark.parametrize("dimension", [1, 3])
def test_one_step_of_the_supermartingale(dimension):
    """cosh(l||x + d||) exp(-psi_E(l||d||)) <= cosh(l||x||) + l t sinh(l||x||), t the part of d along x; half the cost fails."""
    rng, many = np.random.default_rng(dimension), 200_000
    along = rng.normal(size=(many, dimension))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    turned = rng.normal(size=(many, dimension))
    turned = np.where(rng.random((many, 1)) < 0.3, np.sign(rng.normal(size=(many, 1))) * along, turned)
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    # In units of 1/l; steps up to the very ceiling.
    length, step = (
        10.0 ** rng.uniform(-4, 1.5, many),
        np.where(rng.random(many) < 0.5, rng.random(many), 1 - 1e-3 * rng.random(many)),
    )
    x, d = length[:, None] * along, step[:, None] * turned
    after, t = np.linalg.norm(x + d, axis=1), np.einsum("ij,ij->i", along, d)

    def left_over(share: float) -> np.ndarray:
        """Right less left side, in units of cosh(l||x||)."""
        grown = np.logaddexp(after, -after) - np.logaddexp(length, -length) - share * psi(step)
        return 1 + t * np.tanh(length) - np.exp(grown)

    assert left_over(1.0).min() >= -1e-11
    assert left_over(0.5).min() < -0.05


@given(st.floats(1e-6, 0.989), st.floats(1e-6, 1.0))
def test_small_steps_cost_less_than_the_largest(x, share):
    """psi_E(l||d||) <= ||d||^2 psi_E(l a) / a^2 for ||d|| <= a: what turns a sum over steps into the variance."""
    rate, a = 1.7, x / 1.7
    cost = float(step_cost(np.array([rate]), a)[0])
    assert psi(rate * share * a) <= (share * a) ** 2 * cost * (1 + 1e-9) + 1e-18
    assert cost >= rate**2 / 2 * (1 - 1e-12)


def violations(mixture: RateMixture, chance: float, dimension: int, cost: float = 1.0, every: int = 1) -> int:
    """In how many walks ||S_n|| is ever beyond U(b, a_n, cost V_n), b = 1 the width of the noise."""
    rng = np.random.default_rng([int(1000 * chance), dimension])
    total, variance, observed = np.zeros((TRIALS, dimension)), np.zeros(TRIALS), np.zeros(TRIALS)
    beyond = np.zeros(TRIALS, dtype=bool)
    for step in range(1, STEPS + 1):
        noise = np.where(rng.random(TRIALS) < chance, 1 - chance, -chance)
        away = 0.3 * rng.normal(size=(TRIALS, dimension)) + total
        total += noise[:, None] * away / np.linalg.norm(away, axis=1, keepdims=True)
        variance += noise**2
        observed = np.maximum(observed, np.abs(noise))
        if step % every == 0:
            length = np.linalg.norm(total, axis=1)
            for largest in np.unique(observed):
                steps = Steps(1.0, float(largest), float(step))
                far = np.flatnonzero((observed == largest) & ~beyond)
                if len(far):  # U grows with V, so few walks have to be looked at closely
                    far = far[length[far] > mixture.bound(steps, cost * variance[far].min(keepdims=True))[0]]
                if len(far):
                    beyond[far] = length[far] > mixture.bound(steps, cost * variance[far])[0]
    return int(beyond.sum())


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("chance", [0.5, 0.1, 0.01])
def test_violated_no_more_often_than_claimed(chance, dimension):
    for mixture, every in ((SLOW, 1), (rate_mixture(1.0, STEPS, DELTA), 7)):
        count = violations(mixture, chance, dimension, every=every)
        assert binom.sf(count - 1, TRIALS, DELTA) > 1e-6, count


def test_half_of_the_cost_is_caught():
    """At every chance where a walk has room to drift: the same count of violations refutes a variance that counts half."""
    counts = {chance: violations(SLOW, chance, 3, cost=0.5, every=5) for chance in (0.5, 0.1)}
    refuted = [chance for chance, count in counts.items() if binom.sf(count - 1, TRIALS, DELTA) < 1e-6]
    assert 0.5 in refuted, counts


@given(v=st.floats(0.0, 1e4), b=st.floats(1e-2, 1e2), x=st.floats(1e-3, 0.99), delta=st.floats(1e-6, 0.9))
def test_one_rate_at_the_full_range_is_theorem_b(v, b, x, delta):
    """cosh(l s) = exp(psi_E(l b) V / b^2) / delta has a closed form, below log(2 / delta) / l + psi_E(l b) V / (b^2 l)."""
    rate = x / b
    found = float(RateMixture(np.array([rate]), np.ones(1), delta).bound(Steps.within(b), np.array([v]))[0][0])
    log = math.log(1 / delta) + float(psi(x)) * v / b**2
    exact = (log + math.log1p(math.sqrt(-math.expm1(-2 * log)))) / rate  # arccosh(exp(log))
    assert found == pytest.approx(exact, rel=1e-7)
    assert found <= empirical_bernstein(v, b, rate, delta) * (1 + 1e-7)


def test_a_step_that_was_not_seen_helps():
    """Steps in the data of a tenth of the range: at the top rate the variance costs a fraction of what it did."""
    mixture, v = rate_mixture(1.0, 1000, 0.1), np.array([0.1, 1.0, 10.0])
    wide, seen = (mixture.bound(Steps(1.0, a, 1000.0), v)[0] for a in (1.0, 0.1))
    assert (seen <= wide).all() and (seen < 0.95 * wide).any()
    limit = mixture.bound(Steps(1.0, 0.0, 1000.0), v)[0]
    np.testing.assert_allclose(limit, mixture.bound(Steps(1.0, 1e-7, 1000.0), v)[0], rtol=1e-6)


# Theorem A in the same mixture


@pytest.mark.parametrize("planned", [60, 1000, 10**5])
@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-3])
def test_a_huge_variance_leaves_what_theorem_a_says(planned, delta):
    """Its best rate has 6 percent of delta: (log(2 / (.06 delta)) + l^2 B / 2) / l, l^2 B / 2 = log(2 / (.1 delta))."""
    b = 3.0
    mixture, B = rate_mixture(b, planned, delta), planned * b**2 / 4
    found = float(mixture.bound(Steps.within(b, 4 * B), np.array([1e30]))[0][0])
    rate = math.sqrt(2 * math.log(2 / (0.1 * delta)) / B)
    allowed = (math.log(2 / (0.06 * delta)) + rate**2 * B / 2) / rate
    alone = planned * math.sqrt(azuma(planned, b, 1.0, 0.06 * delta))  # Theorem A at 6 percent of delta
    assert found <= allowed * (1 + 1e-9) and found <= 1.01 * alone
    assert found >= planned * math.sqrt(azuma(planned, b, 1.0, delta)) * 0.98  # and it is no better than all of delta
    assert float(mixture.bound(Steps.within(b), np.array([1e30]))[0][0]) > 100 * found


def test_the_crossing_of_theorem_a_is_exact_and_half_of_its_widths_is_caught():
    """Noise of +-1/2 fills its width. All weight on the atoms, whatever the variance: a sum over paths has no sampling error."""
    n, delta = 1000, 0.5
    rates = math.sqrt(8 * math.log(2 / delta) / n) * np.array([1.0, 1.5, 2.25])
    atoms = RateMixture(np.zeros(0), np.zeros(0), delta, rates, np.array([0.6, 0.25, 0.15]))

    def boundary(share: float):
        known = [float(atoms.bound(Steps.within(1.0, share * j), np.zeros(1))[0][0]) ** 2 for j in range(n + 1)]
        return lambda j, variance: known[j]

    assert 0.6 * delta < crossing_probability(boundary(1.0), n, 0.5) <= delta
    assert crossing_probability(boundary(0.5), n, 0.5) > 1.2 * delta
    assert crossing_probability(boundary(1.0), n, 0.03) <= delta


def test_only_known_widths_count():
    """Without them the atoms say nothing: the bound is that of the other rates with the weight they have."""
    mixture, v = rate_mixture(1.0, 500, 0.1), np.array([0.0, 3.0, 100.0])
    without = RateMixture(mixture.rates, mixture.weights, 0.1)
    np.testing.assert_allclose(mixture.bound(Steps.within(1.0), v)[0], without.bound(Steps.within(1.0, 5.0), v)[0], rtol=1e-12)
    assert mixture.weights.sum() == pytest.approx(0.9)
