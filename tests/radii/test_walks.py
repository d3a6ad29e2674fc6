"""Every concentration bound on walks: how often it is violated, and that half of its squared radius is caught.

A walk with steps +-1 is the hardest case: the supermartingales behind the bounds are nearly martingales for small rates, so that
over a long time a bound at level delta is violated nearly a share delta of the time, and one that is wrong by a factor of two in
the radius (the square of the bound) far more often.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.envelope import RateMixture, SymmetricEnvelope, rate_mixture
from accountable_ope.radii.martingale import (
    azuma,
    azuma_anytime,
    empirical_bernstein,
    gamma_exponential,
    gamma_exponential_rho,
    gaussian_mixture,
    self_normalized,
)

DELTA = 0.3
STEPS = 3000
WALKS = 6000
ONE = Steps.within(1.0)


@dataclass(frozen=True)
class Bound:
    """A bound of |S_n| for every n >= first, for steps +-1."""

    of: Callable[[np.ndarray], np.ndarray]
    first: int = 1


def fixed_time(n: np.ndarray) -> np.ndarray:
    """Theorem A at n = STEPS bounds the largest of all |S_j|."""
    return np.full(len(n), STEPS * math.sqrt(azuma(STEPS, 2.0, 1.0, DELTA)))


def one_rate(n: np.ndarray) -> np.ndarray:
    return np.array([empirical_bernstein(float(v), 1.0, 0.05, DELTA) for v in n])


def gamma_mixture(n: np.ndarray) -> np.ndarray:
    rho = gamma_exponential_rho(50.0, DELTA)
    known = np.unique(np.geomspace(1, STEPS, 60).astype(int))
    bounds = [gamma_exponential(float(v), 1.0, rho, DELTA) for v in known]
    return np.interp(n, known, bounds)  # concave in the variance, so this is below the bound: a stricter test


def directions(n: np.ndarray) -> np.ndarray:
    """Theorem C in one dimension: S^2 / (1 + c n) <= (log(1 + c n) + 2 log(1/delta)) / c."""
    c = 0.05
    return np.sqrt([(1 + c * v) * self_normalized(math.log1p(c * v), c, DELTA) for v in n])


BOUNDS = {
    "azuma": Bound(fixed_time),
    "azuma-anytime": Bound(lambda n: np.array([v * math.sqrt(azuma_anytime(int(v), 2.0, 1.0, DELTA, 200)) for v in n])),
    "gaussian mixture": Bound(lambda n: np.sqrt(gaussian_mixture(n, 20.0, DELTA))),
    "symmetric": Bound(lambda n: SymmetricEnvelope(20.0, DELTA).bound(Steps.within(math.inf), n)[0]),
    "one rate": Bound(one_rate),
    "rate mixture": Bound(lambda n: RateMixture(np.geomspace(0.03, 0.12, 12), np.full(12, 1 / 12), DELTA).bound(ONE, n)[0]),
    "gamma-exponential mixture": Bound(gamma_mixture),
    "self-normalized": Bound(directions),
}


@pytest.fixture(scope="module")
def walks() -> np.ndarray:
    steps = np.random.default_rng(0).integers(0, 2, size=(WALKS, STEPS), dtype=np.int16) * 2 - 1
    return np.abs(np.cumsum(steps, axis=1, dtype=np.int16))


def violated(walks: np.ndarray, bound: np.ndarray) -> int:
    return int((walks > bound).any(axis=1).sum())


@pytest.mark.parametrize("name", BOUNDS)
def test_violated_no_more_often_than_claimed(walks, name):
    count = violated(walks, BOUNDS[name].of(np.arange(1.0, STEPS + 1)))
    assert binom.sf(count - 1, WALKS, DELTA) > 1e-6, f"{count / WALKS:.3f} of the walks, claimed {DELTA}"


@pytest.mark.parametrize("name", BOUNDS)
def test_half_of_the_radius_is_caught(walks, name):
    """The same test fails when the radius, the square of the bound, is wrong by a factor of two."""
    count = violated(walks, BOUNDS[name].of(np.arange(1.0, STEPS + 1)) / math.sqrt(2))
    assert binom.sf(count - 1, WALKS, DELTA) < 1e-6, f"{count / WALKS:.3f} of the walks, claimed {DELTA}"


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.01])
def test_directions_that_depend_on_the_past(chance):
    """Skewed two-point noise, directions in three dimensions that follow the sum so far: never violated too often."""
    rng, n, trials, delta = np.random.default_rng(int(1000 * chance)), 300, 1500, 0.1
    total = np.zeros((trials, 3))
    variance = np.zeros(trials)
    mixture, width = rate_mixture(1.0, n, delta), n * math.sqrt(azuma(n, 1.0, 1.0, delta))
    bad = np.zeros((3, trials), dtype=bool)
    rho = 0.25 * n / 8
    for step in range(1, n + 1):
        noise = np.where(rng.uniform(size=trials) < chance, 1 - chance, -chance)
        away = rng.normal(size=(trials, 3)) + 0.5 * total
        direction = away / np.linalg.norm(away, axis=1, keepdims=True)
        total += noise[:, None] * direction
        variance += noise**2
        length = np.linalg.norm(total, axis=1)
        bad[0] |= length > width
        bad[1] |= length**2 > gaussian_mixture(np.array(step / 4), rho, delta)
        if step % 10 == 0:
            bad[2] |= length > mixture.bound(Steps(1.0, max(chance, 1 - chance), float(step)), variance)[0]
    for count in bad.sum(axis=1):
        assert binom.sf(count - 1, trials, delta) > 1e-6, count


def test_symmetry_is_needed():
    """Rare one-sided jumps: Theorem D does not hold, and is violated far more often than delta."""
    rng, n, trials, chance = np.random.default_rng(5), 100, 4000, 0.01
    noise = np.where(rng.uniform(size=(trials, n)) < chance, 1 - chance, -chance)
    total, variance = np.abs(noise.sum(axis=1)), (noise**2).sum(axis=1)
    bound, _ = SymmetricEnvelope(1e-3, 0.1).bound(Steps.within(math.inf), variance)
    assert (total > bound).mean() > 0.15
