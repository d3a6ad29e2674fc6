"""Envelopes: slow twins, monotonicity, and affine bounds that are never below the square."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from accountable_ope.programs.envelope import SquaredEnvelope, Steps
from accountable_ope.radii.envelope import RateMixture, SymmetricEnvelope, rate_mixture
from accountable_ope.radii.martingale import empirical_bernstein, gamma_exponential, gaussian_mixture

ranges = st.floats(1e-3, 1e3)
variances = st.floats(0.0, 1e6)
deltas = st.floats(1e-6, 0.9)


def slow_bound(mixture: RateMixture, steps: Steps, v: float) -> float:
    """The root of the mixture, term by term."""
    b, a = steps.largest, steps.observed

    def grown(rate: float, s: float, less: float) -> float:
        return math.exp(min(np.logaddexp(rate * s, -rate * s) - math.log(2) - less, 700.0))

    def excess(s: float) -> float:
        total = 0.0
        for rate, weight in zip(mixture.rates, mixture.weights, strict=True):
            if rate * b < 1:
                total += weight * grown(rate, s, v * quad(lambda x, rate=rate: x / (1 - x), 0, rate * a)[0] / a**2)
        for rate, weight in zip(mixture.azuma_rates, mixture.azuma_weights, strict=True):
            total += weight * grown(rate, s, rate**2 * steps.squares / 8)
        return total - 1 / mixture.delta

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-12 * high, rtol=1e-12))


@pytest.mark.parametrize("planned", [10, 300, 100_000])
@pytest.mark.parametrize("b", [0.2, 1.0, 19.0])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("observed", [1.0, 0.3, 0.01])
def test_the_bound_is_the_root_of_the_mixture(planned, b, scale, observed):
    """psi_E(x) is the integral of t / (1 - t) from 0 to x: the slow twin needs no logarithm of its own."""
    mixture = rate_mixture(1.3 * b, planned, 0.1)
    v = scale * planned * b**2
    for squares in (math.inf, planned * b**2, 0.1 * planned * b**2):
        steps = Steps(b, observed * b, squares)
        found, slow = float(mixture.bound(steps, np.array([v]))[0][0]), slow_bound(mixture, steps, v)
        assert found == pytest.approx(slow, rel=1e-8)
        assert found >= slow * (1 - 1e-10)


def test_weights_are_a_distribution():
    for planned in (2, 50, 10**7):
        mixture = rate_mixture(3.0, planned, 0.1)
        assert mixture.weights.sum() + mixture.azuma_weights.sum() <= 1 + 1e-12
        assert (mixture.weights > 0).all() and (mixture.azuma_weights > 0).all()
        assert (mixture.rates * 3.0 < 1).sum() == 64  # the others count once the range has shrunk
        assert mixture.rates.max() == pytest.approx(12 / 3)


@given(
    b=ranges,
    v=variances,
    delta=deltas,
    share=st.floats(1e-6, 1.0),
    wider=st.floats(1.0, 300.0),
    more=st.floats(1.0, 100.0),
    planned=st.integers(2, 10**6),
)
def test_the_bound_grows_with_steps_variance_and_confidence(b, v, delta, share, wider, more, planned):
    mixture, at = rate_mixture(b, planned, delta), np.array([v])
    steps = Steps(b, share * b, planned * b**2)
    here, slope = mixture.bound(steps, at)
    assert here[0] > 0 and slope[0] >= 0
    for weaker in (
        replace(steps, largest=wider * b),
        replace(steps, observed=min(wider * share, 1.0) * b),
        replace(steps, squares=wider * steps.squares),
        replace(steps, squares=math.inf),
    ):
        assert mixture.bound(weaker, at)[0][0] >= here[0] * (1 - 1e-9)
    assert mixture.bound(steps, more * at)[0][0] >= here[0] * (1 - 1e-9)
    assert replace(mixture, delta=delta / 2).bound(steps, at)[0][0] >= here[0]


@given(
    b=st.floats(0.01, 100.0), share=st.floats(0.0, 0.25), wider=st.floats(1.0, 50.0), planned=st.sampled_from([100, 1000, 10**5])
)
def test_a_larger_declared_range_never_lowers_the_bound(b, share, wider, planned):
    v = np.array([share * planned * b**2])
    narrow, wide = rate_mixture(b, planned, 0.1), rate_mixture(wider * b, planned, 0.1)
    squares = planned * b**2
    above = wide.bound(Steps.within(wider * b, wider**2 * squares), v)[0][0]
    assert above >= narrow.bound(Steps.within(b, squares), v)[0][0] * (1 - 1e-3)


@pytest.mark.parametrize("envelope", [rate_mixture(2.0, 1000, 0.1), SymmetricEnvelope(0.4, 0.1)])
def test_the_bound_is_concave_in_the_variance_and_its_slope_is_right(envelope):
    v = np.linspace(0.0, 4000.0, 2001)
    for steps in (Steps.within(2.0), Steps(2.0, 0.7, 4000.0), Steps(2.0, 2.0, 400.0)):
        u, slope = envelope.bound(steps, v)
        assert (np.diff(u, 2) <= 1e-9 * u.max()).all()
        numeric = (envelope.bound(steps, v[1:] + 1e-3)[0] - envelope.bound(steps, v[1:] - 1e-3)[0]) / 2e-3
        np.testing.assert_allclose(slope[1:], numeric, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("envelope", [rate_mixture(2.0, 1000, 0.1), rate_mixture(0.5, 50, 0.01), SymmetricEnvelope(0.4, 0.1)])
@pytest.mark.parametrize("largest", [1e-3, 1.0, 300.0, 4000.0])
@pytest.mark.parametrize("observed", [1.0, 0.1])
def test_affine_bounds_are_above_the_square_everywhere(envelope, largest, observed):
    b = 2.0 if not isinstance(envelope, RateMixture) or envelope.rates.max() * 2.0 < 1 else 0.5
    steps = Steps(b, observed * b, 50 * b**2)
    squared = SquaredEnvelope(envelope, steps, largest)
    dense = np.concatenate([[0.0], np.geomspace(1e-12 * largest, largest, 30_000)])
    above = envelope.bound(steps, dense)[0] ** 2
    for affine in (squared.at(0.0), squared.chord(), *(squared.touching(largest * t) for t in (1e-6, 1e-3, 0.1, 1.0))):
        assert (affine.level + affine.rate * dense >= above * (1 - 1e-10)).all()
        gap = affine.level + affine.rate * dense - above
        assert gap.min() <= 0.01 * above.max()  # and it touches, up to the grid, which is coarse where U bends


def test_a_bound_of_more_knowledge_is_lower():
    """A smaller largest variance gives lower levels at the same rate, and so do smaller steps in the data."""
    mixture, steps = rate_mixture(2.0, 1000, 0.1), Steps.within(2.0, 4000.0)
    wide, narrow = SquaredEnvelope(mixture, steps, 4000.0), SquaredEnvelope(mixture, steps, 40.0)
    seen = SquaredEnvelope(mixture, replace(steps, observed=0.5), 40.0)
    for rate in (0.0, 1.0, 5.0, 12.0):
        assert narrow.at(rate).level <= wide.at(rate).level * (1 + 1e-6)
        assert seen.at(rate).level <= narrow.at(rate).level * (1 + 1e-6)
    assert seen.at(1.0).level < 0.9 * narrow.at(1.0).level


def test_the_mixture_is_near_the_best_single_rate():
    """Knowing the variance in advance would allow one rate: the mixture costs little more than half as much again."""
    n, b = 1000, 3.0
    mixture = rate_mixture(b, n, 0.1)
    for v in (1e-3, 0.3, 9.0, 90.0, 900.0, 2000.0):
        oracle = min(empirical_bernstein(v, b, rate, 0.1) for rate in np.geomspace(0.01, 0.98, 400) / b)
        found = float(mixture.bound(Steps.within(b), np.array([v]))[0][0])
        assert oracle <= found <= 1.6 * oracle


@given(v=st.floats(0.0, 1e4), rho=st.floats(0.01, 1e3), b=st.floats(0.05, 20.0), delta=st.floats(1e-4, 0.5))
def test_the_gamma_exponential_mixture_is_above_every_oracle_rate(v, rho, b, delta):
    """A mixture cannot beat the best of its rates."""
    found = gamma_exponential(v, b, rho, delta)
    oracle = min(empirical_bernstein(v, b, rate, delta) for rate in np.geomspace(1e-3, 0.999, 300) / b)
    assert found >= oracle * (1 - 1e-2)


def test_gamma_exponential_normalization():
    """E over the mixing density of exp(l s - psi_E(l b) v / b^2), by quadrature."""
    from scipy.special import gammainc, gammaln

    b, rho, v, delta = 0.7, 5.0, 12.0, 0.1
    s = gamma_exponential(v, b, rho, delta)
    r = rho / b**2

    def density(rate: float) -> float:
        y = 1 - b * rate
        return b * math.exp(r * math.log(r) - gammaln(r) + (r - 1) * math.log(y) - r * y) / gammainc(r, r)

    def integrand(rate: float) -> float:
        return density(rate) * math.exp(rate * s - (-math.log1p(-rate * b) - rate * b) * v / b**2)

    assert quad(density, 0, 1 / b - 1e-12)[0] == pytest.approx(1.0, rel=1e-6)
    assert quad(integrand, 0, 1 / b - 1e-12)[0] == pytest.approx(2 / delta, rel=1e-5)


@given(b=st.floats(0.0, 1e4), rho=st.floats(1e-3, 1e3), delta=deltas)
def test_the_gaussian_mixture_is_the_root_of_its_mixture(b, rho, delta):
    """sqrt(rho / (rho + B)) exp(s^2 / (2 (B + rho))) = 1 / delta."""
    squared = float(gaussian_mixture(np.array(b), rho, delta))
    assert 0.5 * math.log(rho / (rho + b)) + squared / (2 * (b + rho)) == pytest.approx(math.log(1 / delta), rel=1e-9, abs=1e-9)
