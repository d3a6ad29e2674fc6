"""Intervals by betting that are too narrow for their rows: which are doubted, and how often these hold the value."""

from __future__ import annotations

import numpy as np
import pytest

from accountable_ope.baselines import Samples, betting_interval
from accountable_ope.baselines.narrow import NARROW, interval_doubts, share_of_normal

LOGGER, TARGET = np.array([0.7, 0.2, 0.05, 0.05]), np.array([0.1, 0.2, 0.6, 0.1])
MEANS = np.array([0.2, 0.4, 0.3, 0.6])
VALUE = float(TARGET @ MEANS)


def weighted(seed: int, rows: int = 500, logger: np.ndarray = LOGGER) -> Samples:
    """Weighted rewards of a bandit with four arms, with right probabilities, and their mirror images."""
    rng = np.random.default_rng(seed)
    arms = rng.choice(4, size=rows, p=logger)
    rewards, weights = rng.uniform(size=rows) < MEANS[arms], (TARGET / logger)[arms]
    return Samples(weights * rewards, weights * ~rewards)


def test_the_share_is_of_the_narrower_normal_interval_within_the_possible_values() -> None:
    rng = np.random.default_rng(0)
    samples = Samples(rng.uniform(size=400), 3 * rng.uniform(size=400))
    width = 2 * 1.6448536 * float(samples.x.std(ddof=1)) / 20
    assert share_of_normal(samples, (0.4, 0.6), 0.1) == pytest.approx(0.2 / width)
    seldom = Samples(np.eye(400)[0], 1 - np.eye(400)[0])
    half = 1.6448536 * float(seldom.x.std(ddof=1)) / 20
    assert share_of_normal(seldom, (0.0, 0.01), 0.1) == pytest.approx(0.01 / (half + 1 / 400)), "no mean is below 0"
    assert share_of_normal(Samples(np.zeros(400), np.ones(400)), (0.0, 0.01), 0.1) == np.inf, "what never varies has no width"


def test_crossed_narrow_and_ordinary_ends_are_told_apart() -> None:
    samples = weighted(0)
    low, high = betting_interval(samples, 0.1)
    assert interval_doubts(samples, (low, high), 0.1, "betting") == ()
    middle, width = 0.5 * (low + high), (high - low) / share_of_normal(samples, (low, high), 0.1)
    for share, names in ((NARROW + 0.01, []), (NARROW - 0.01, ["narrow"]), (-0.1, ["crossed"])):
        ends = (middle - 0.5 * share * width, middle + 0.5 * share * width)
        assert [each.name for each in interval_doubts(samples, ends, 0.1, "betting")] == names
    (said,) = interval_doubts(samples, (0.6, 0.5), 0.1, "betting")
    assert "at most 10% if all that is assumed is right" in said.text
    assert interval_doubts(samples, (middle, middle + 1e-6), 0.1, "hcope") == (), "measured of bets alone"


@pytest.mark.slow
@pytest.mark.parametrize("logger", [LOGGER, np.full(4, 0.25)], ids=["seldom", "uniform"])
@pytest.mark.parametrize(("delta", "doubted", "others", "share"), [(0.1, 0.85, 0.94, 0.1), (0.5, 0.35, 0.7, 0.15)])
def test_doubted_ones_hold_the_value_too_seldom_and_the_others_do_not(
    logger: np.ndarray, delta: float, doubted: float, others: float, share: float
) -> None:
    """Over 400 logs; of the intervals that hold the value hardly one is doubted."""
    held: dict[bool, list[bool]] = {True: [], False: []}
    for seed in range(400):
        samples = weighted(seed, logger=logger)
        low, high = betting_interval(samples, delta)
        found = [each.name for each in interval_doubts(samples, (low, high), delta, "betting")]
        if found != ["crossed"]:
            held[found == ["narrow"]].append(low <= VALUE <= high)
    assert 5 <= len(held[True]) <= share * 400
    assert np.mean(held[True]) < doubted and np.mean(held[False]) > others
    assert sum(held[True]) < 0.07 * (sum(held[True]) + sum(held[False]))
