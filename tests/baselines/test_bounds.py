"""Lower bounds of means: literal twins, invariants, and coverage that can fail."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from accountable_ope import InvalidInput
from accountable_ope.baselines import (
    Samples,
    betting_interval,
    betting_lower,
    choose_threshold,
    hcope_interval,
    hcope_lower,
    split_hcope_lower,
)
from accountable_ope.baselines.bounds import predictable_bets

numbers = st.lists(st.floats(0, 50).map(lambda v: round(v, 6)), min_size=2, max_size=30)
deltas = st.floats(1e-6, 0.9)


def literal_hcope(x, thresholds, delta):
    """The formula as the paper prints it, thresholds c_i and a double sum."""
    n = len(x)
    scaled = [min(a, c) / c for a, c in zip(x, thresholds, strict=True)]
    share = 1 / sum(1 / c for c in thresholds)
    mean = share * sum(scaled)
    linear = share * 7 * n * math.log(2 / delta) / (3 * (n - 1))
    pairs = sum((a - b) ** 2 for a in scaled for b in scaled)
    return mean - linear - share * math.sqrt(math.log(2 / delta) / (n - 1) * pairs)


def capital(x, m, delta_free_bets):
    """max_t K_t(m) by a loop."""
    value, largest = 1.0, 1.0
    for one, bet in zip(x, delta_free_bets, strict=True):
        value *= 1 + min(bet, 0.75 / m) * (one - m)
        largest = max(largest, value)
    return largest


def too_many(misses, trials, delta):
    """Whether so many misses had probability below 1e-6, were delta right."""
    return binom.sf(misses - 1, trials, delta) < 1e-6


@given(numbers, st.floats(0.01, 60), deltas)
def test_hcope_is_the_printed_formula(x, c, delta):
    assert hcope_lower(x, c, delta) == pytest.approx(literal_hcope(x, [c] * len(x), delta), rel=1e-9, abs=1e-9)


@given(numbers, st.floats(0.01, 60), deltas)
def test_hcope_never_exceeds_its_threshold(x, c, delta):
    assert hcope_lower(x, c, delta) <= c
    assert hcope_lower(np.add(x, 1e6).tolist(), c, delta) <= c  # however large the samples are


def test_a_tiny_threshold_makes_the_bound_vacuous():
    """The paper's c = 1e-5: two thousand returns of about 1/2 bound their mean by no more than a hundred-thousandth."""
    x = np.random.default_rng(0).uniform(0.3, 0.7, size=2000)
    assert 0 < hcope_lower(x, 1e-5, 0.1) <= 1e-5
    assert split_hcope_lower(x, 0.1) > 0.45


@given(numbers, st.integers(5, 5000), st.floats(0.001, 0.5))
def test_the_threshold_maximizes_the_prediction(x, later, delta):
    """No threshold of a fine grid predicts a better bound."""

    def predicted(c):
        y = np.minimum(x, c)
        log = math.log(2 / delta)
        return y.mean() - 7 * c * log / (3 * (later - 1)) - math.sqrt(2 * y.var(ddof=1) * log / later)

    chosen = choose_threshold(x, later, delta)
    assert chosen > 0
    if max(x) > 0:
        grid = np.concatenate([np.linspace(min(v for v in x if v > 0), max(x), 400), np.array(x)[np.array(x) > 0]])
        best = max(predicted(c) for c in grid)
        assert predicted(chosen) >= best - 1e-9 * (1 + abs(best))
        assert predicted(chosen) >= predicted(1.2 * max(x)) - 1e-9


def test_the_best_threshold_can_lie_between_two_samples():
    """So the closed form is needed: the samples themselves are not enough."""
    x = np.array([0.0, 0.2, 0.9, 1.0, 6.0])
    found = [choose_threshold(x, later, 0.05) for later in range(20, 200)]
    assert any(c not in x for c in found)


def test_the_threshold_does_not_look_at_the_samples_it_is_used_on():
    x = np.random.default_rng(1).lognormal(size=200)
    early, late = x[:10], x[10:]
    c = choose_threshold(early, 190, 0.1)
    assert split_hcope_lower(x, 0.1) == hcope_lower(late, c, 0.1)
    other = np.concatenate([early, late[::-1]])
    assert split_hcope_lower(other, 0.1) == pytest.approx(split_hcope_lower(x, 0.1))
    assert choose_threshold(np.zeros(5), 100, 0.1) == 1.0


def test_ratios_that_all_but_vanish_still_have_a_threshold():
    x = np.concatenate([[1e-90, 6e-85], np.full(38, 1e-80)])
    assert choose_threshold(x[:2], 38, 0.1) == pytest.approx(1e-60)
    assert split_hcope_lower(x, 0.1) <= 1e-80  # the truth, were all episodes alike


@given(numbers, st.floats(0.01, 0.9))
def test_betting_is_where_the_capital_reaches_its_goal(x, delta):
    bound, bets = betting_lower(x, delta), predictable_bets(np.array(x))
    assert 0 <= bound <= max(x)
    if bound > 0:
        assert capital(x, bound, bets) >= (1 - 1e-8) / delta
    assert capital(x, bound * (1 + 1e-6) + 1e-12, bets) <= (1 + 1e-6) / delta


@given(numbers, st.floats(0.01, 60), st.floats(1.0, 3.0))
def test_the_capital_falls_as_the_mean_grows(x, m, factor):
    """What bisection rests on."""
    bets = predictable_bets(np.array(x))
    assert capital(x, m * factor, bets) <= capital(x, m, bets) * (1 + 1e-12)


@given(numbers, st.integers(0, 29), st.floats(0, 50))
def test_bets_are_made_before_they_are_decided(x, where, other):
    where = min(where, len(x) - 1)
    changed = [*x[:where], other, *x[where + 1 :]]
    np.testing.assert_array_equal(predictable_bets(np.array(x))[: where + 1], predictable_bets(np.array(changed))[: where + 1])


@given(numbers, st.floats(0.01, 60), deltas, st.floats(0.1, 0.99))
def test_a_smaller_delta_never_raises_a_bound(x, c, delta, factor):
    assert hcope_lower(x, c, delta * factor) <= hcope_lower(x, c, delta) + 1e-12
    assert betting_lower(x, delta * factor) <= betting_lower(x, delta) + 1e-12


@given(numbers, st.floats(0.01, 60), st.randoms(use_true_random=False))
def test_hcope_does_not_see_the_order_and_betting_does(x, c, random):
    shuffled = random.sample(x, len(x))
    assert hcope_lower(shuffled, c, 0.1) == pytest.approx(hcope_lower(x, c, 0.1), abs=1e-9)
    late = [0.1] * 20 + [0.9] * 20
    assert betting_lower(late, 0.1) != pytest.approx(betting_lower(late[::-1], 0.1), rel=1e-3)


@given(numbers, st.floats(0.01, 60), st.floats(0.01, 100))
def test_hcope_scales_with_its_units(x, c, factor):
    scaled = [factor * one for one in x]
    assert hcope_lower(scaled, factor * c, 0.1) == pytest.approx(factor * hcope_lower(x, c, 0.1), rel=1e-9, abs=1e-9)


def test_nothing_but_zeros_is_bounded_by_zero():
    assert betting_lower(np.zeros(50), 0.1) == 0
    assert hcope_lower(np.zeros(50), 1.0, 0.1) < 0
    assert hcope_interval(Samples(np.zeros(50), np.zeros(50)), 0.1) == (0, 1)


def test_one_huge_weight_is_no_accident():
    """A number that is 1e150 times the others has a probability of at most 1e-150 under any small mean: the bound says so."""
    x = np.random.default_rng(5).uniform(0.2, 0.8, size=400)
    plain, x[200] = betting_lower(x, 0.05), 1e150
    assert 0.4 < plain < 0.6
    assert 1 < betting_lower(x, 0.05) < 1e150
    assert split_hcope_lower(x, 0.05) < 1  # what is cut off does not count


def weighted_bernoulli(rng, n, overlap):
    """Weights of mean 1 times returns of 0 or 1, of mean .6."""
    weight = rng.choice([overlap, 2 - overlap], size=n)
    share = rng.random(n) < 0.6
    return Samples(weight * share, weight * ~share)


@pytest.mark.parametrize(("lower", "best"), [(split_hcope_lower, 0.54), (betting_lower, 0.56)])
def test_lower_bounds_cover_and_say_something(lower, best):
    rng, delta, trials = np.random.default_rng(2), 0.1, 300
    found = np.array([lower(weighted_bernoulli(rng, 2000, 0.4).x, delta) for _ in range(trials)])
    assert not too_many(int((found > 0.6).sum()), trials, delta)
    assert found.mean() > best


@pytest.mark.parametrize("lower", [split_hcope_lower, betting_lower])
def test_lower_bounds_cover_for_heavy_tails(lower):
    """Log-normal weights whose variance is a thousand times their squared mean."""
    rng, delta, trials, sigma = np.random.default_rng(3), 0.2, 400, math.sqrt(math.log(1001))
    found = np.array([lower(np.exp(sigma * rng.normal(size=150) - sigma**2 / 2), delta) for _ in range(trials)])
    assert not too_many(int((found > 1).sum()), trials, delta)


def test_half_of_the_penalty_is_caught():
    """Where the theorem wastes least, a small delta and a fair coin, half of what is subtracted is not enough."""
    rng, delta, trials, n = np.random.default_rng(5), 1e-3, 500, 10_000
    honest, halved = 0, 0
    for _ in range(trials):
        x = (rng.random(n) < 0.5).astype(float)
        bound = hcope_lower(x, 1.0, delta)
        honest += bound > 0.5
        halved += 0.5 * (bound + x.mean()) > 0.5
    assert not too_many(honest, trials, delta)
    assert too_many(halved, trials, delta), halved


def test_half_of_the_goal_is_caught():
    """log(1/delta) is the penalty of betting; half of it is the bound at sqrt(delta)."""
    rng, delta, trials, n = np.random.default_rng(6), 1e-3, 2000, 300
    honest, halved = 0, 0
    for _ in range(trials):
        x = (rng.random(n) < 0.5).astype(float)
        honest += betting_lower(x, delta) > 0.5
        halved += betting_lower(x, math.sqrt(delta)) > 0.5
    assert not too_many(honest, trials, delta)
    assert too_many(halved, trials, delta), halved


@pytest.mark.parametrize("overlap", [0.9, 0.4, 0.05])
@pytest.mark.parametrize("n", [50, 500])
def test_betting_is_tighter_than_hcope(n, overlap):
    rng = np.random.default_rng(7)
    for _ in range(10):
        samples = weighted_bernoulli(rng, n, overlap)
        (low, high), (wide_low, wide_high) = betting_interval(samples, 0.1), hcope_interval(samples, 0.1)
        assert 0 <= wide_low <= low <= high <= wide_high <= 1


def test_each_side_gets_half_of_delta():
    samples = weighted_bernoulli(np.random.default_rng(8), 200, 0.4)
    assert betting_interval(samples, 0.1) == (betting_lower(samples.x, 0.05), 1 - betting_lower(samples.mirrored, 0.05))
    low, high = hcope_interval(samples, 0.1)
    assert (low, high) == (split_hcope_lower(samples.x, 0.05), 1 - split_hcope_lower(samples.mirrored, 0.05))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hcope_lower([1.0, 2.0], 0.0, 0.1), "`threshold` must be positive"),
        (lambda: hcope_lower([1.0, 2.0], -1.0, 0.1), "`threshold` must be positive"),
        (lambda: hcope_lower([1.0, 2.0], math.nan, 0.1), "`threshold` must be a finite number"),
        (lambda: hcope_lower([1.0], 1.0, 0.1), "At least 2 episodes are needed. Got 1"),
        (lambda: hcope_lower([], 1.0, 0.1), "At least 2 episodes are needed. Got 0"),
        (lambda: hcope_lower([1.0, -2.0], 1.0, 0.1), "`x` must not be negative"),
        (lambda: split_hcope_lower([1.0, 2.0, 1.0], 0.1), "At least 4 episodes are needed. Got 3"),
        (lambda: choose_threshold([1.0, 2.0], 1, 0.1), "`n_post` must be a whole number of at least 2"),
        (lambda: betting_lower([1.0], 0.1), "At least 2 episodes"),
        (lambda: betting_lower([1.0, 2.0], 1.0), r"`delta` must be in \(0, 1\)"),
        (lambda: hcope_lower([1.0, 2.0], 1.0, 0.0), r"`delta` must be in \(0, 1\)"),
        (lambda: betting_lower([1.0, math.inf], 0.1), "`x` has 1 NaN or infinite entry"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
