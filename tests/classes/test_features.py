"""Feature maps: their formulas, their orders and their refusals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope import InvalidInput, Precomputed, RandomFourier, TabularFeatures
from accountable_ope.classes import FeatureMap, expected_features


def test_random_fourier_is_a_cosine_of_every_frequency() -> None:
    features = RandomFourier(dimension=4, bandwidth=0.5, seed=3)
    x = np.random.default_rng(0).normal(size=(5, 2))
    w, b = features.frequencies(2)
    expected = [[math.cos(w[k, 0] * s + w[k, 1] * a + b[k]) / 2 for k in range(4)] for s, a in x]
    assert features(x) == pytest.approx(np.array(expected), abs=1e-14)


def test_random_fourier_depends_on_the_seed_only() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2))
    assert np.array_equal(RandomFourier(6, seed=1)(x), RandomFourier(6, seed=1)(x))
    assert np.abs(RandomFourier(6, seed=1)(x) - RandomFourier(6, seed=2)(x)).max() > 0.1


def test_random_fourier_of_a_row_does_not_depend_on_the_other_rows() -> None:
    x = np.random.default_rng(0).normal(size=(9, 3))
    features = RandomFourier(5, seed=4)
    assert features(x[4:6]) == pytest.approx(features(x)[4:6], abs=1e-15)


def test_random_fourier_tends_to_half_a_gaussian_kernel() -> None:
    h = 1.5
    features = RandomFourier(200_000, bandwidth=h, seed=0)
    x = np.array([[0.0, 0.0], [1.0, -0.5], [2.0, 2.0]])
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    values = features(x)
    assert values @ values.T == pytest.approx(0.5 * np.exp(-squares / (2 * h**2)), abs=5 / math.sqrt(200_000))


@pytest.mark.parametrize("features", [RandomFourier(3), TabularFeatures([[0.0]])], ids=["fourier", "tabular"])
def test_feature_maps_meet_the_protocol(features: object) -> None:
    assert isinstance(features, FeatureMap)
    assert features.intercept is True


def test_tabular_features_are_one_hot_over_the_sorted_points() -> None:
    features = TabularFeatures([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert features.dimension == 3
    assert features.points.tolist() == [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]]
    asked = np.array([[2.0, 0.0], [-0.0, 0.0], [0.0, 1.0], [2.0, -0.0]])
    assert features(asked).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_tabular_features_find_every_one_of_many_points() -> None:
    listed = np.random.default_rng(0).normal(size=(200, 3))
    features = TabularFeatures(listed)
    values = features(listed)
    assert values.sum(axis=1).tolist() == [1.0] * 200
    assert np.array_equal(features.points[values.argmax(axis=1)], listed)


def test_tabular_grid_has_all_pairs() -> None:
    features = TabularFeatures.grid([[0.0], [1.0]], [[-1.0], [1.0], [2.0]], intercept=False)
    pairs = sorted([s, a] for s in (0.0, 1.0) for a in (-1.0, 1.0, 2.0))
    assert features.points.tolist() == pairs
    assert features.intercept is False
    assert repr(features) == "TabularFeatures(6 points, intercept=False)"


def test_precomputed_columns_are_read_only_copies() -> None:
    given = np.ones((3, 2))
    features = Precomputed(given, given, given[:1])
    given[:] = 7.0
    for array in (features.at_data, features.at_next, features.at_start):
        assert (array == 1.0).all()
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 2.0
    assert features.dimension == 2


def test_tabular_points_are_a_read_only_copy() -> None:
    given = np.array([[0.0], [1.0]])
    features = TabularFeatures(given)
    given[0] = 9.0
    assert features.points.tolist() == [[0.0], [1.0]]
    with pytest.raises(ValueError, match="read-only"):
        features.points[0, 0] = 2.0


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "no features": (lambda: RandomFourier(0), "`dimension` must be a whole number of at least 1. Got 0."),
    "half a feature": (lambda: RandomFourier(2.5), "`dimension` must be a whole number. Got 2.5."),  # type: ignore[arg-type]
    "bandwidth zero": (lambda: RandomFourier(2, bandwidth=0.0), "`bandwidth` must be positive. Got 0.0."),
    "bandwidth negative": (lambda: RandomFourier(2, bandwidth=-1.0), "`bandwidth` must be positive. Got -1.0."),
    "bandwidth nan": (lambda: RandomFourier(2, bandwidth=math.nan), "`bandwidth` must be a finite number. Got nan."),
    "bandwidth inf": (lambda: RandomFourier(2, bandwidth=math.inf), "`bandwidth` must be a finite number. Got inf."),
    "negative seed": (lambda: RandomFourier(2, seed=-1), "`seed` must be a whole number of at least 0. Got -1."),
    "equal points": (
        lambda: TabularFeatures([[0.0], [1.0], [-0.0]]),
        "`points` of TabularFeatures must be different from each other.",
    ),
    "points nan": (lambda: TabularFeatures([[0.0], [math.nan]]), "`points` has 1 NaN or infinite entry, first in row 1."),
    "points of two lengths": (
        lambda: TabularFeatures([[0.0], [1.0, 2.0]]),
        "`points` must be numbers of one shape. Got [[0.0], [1.0, 2.0]].",
    ),
    "unlisted points": (
        lambda: TabularFeatures([[0.0], [1.0]])(np.array([[2.0], [0.0], [3.0]])),
        "TabularFeatures does not list 2 of the points, such as [2.0].",
    ),
    "points of another dimension": (
        lambda: TabularFeatures([[0.0], [1.0]])(np.zeros((1, 2))),
        "TabularFeatures lists 1-d points (s, a). Got 2-d ones.",
    ),
    "columns of next": (
        lambda: Precomputed(np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((1, 2))),
        "must have the same columns, the first two the same rows. Got (3, 2), (3, 1), (1, 2).",
    ),
    "rows of next": (lambda: Precomputed(np.zeros((3, 2)), np.zeros((4, 2)), np.zeros((1, 2))), "Got (3, 2), (4, 2), (1, 2)."),
    "columns of start": (
        lambda: Precomputed(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((1, 3))),
        "Got (3, 2), (3, 2), (1, 3).",
    ),
    "precomputed nan": (
        lambda: Precomputed(np.full((3, 2), math.nan), np.zeros((3, 2)), np.zeros((1, 2))),
        "`at_data` has 6 NaN or infinite entries, first in row 0.",
    ),
    "precomputed inf at next": (
        lambda: Precomputed(np.zeros((3, 2)), np.array([[0, 0], [0, np.inf], [0, 0]]), np.zeros((1, 2))),
        "`at_next` has 1 NaN or infinite entry, first in row 1.",
    ),
    "no columns": (lambda: Precomputed(np.zeros((3, 0)), np.zeros((3, 0)), np.zeros((1, 0))), "`at_data` has no columns."),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_wrong_features_are_refused(case: str) -> None:
    make, message = REFUSALS[case]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        make()


def test_an_action_that_is_never_taken_may_be_unknown() -> None:
    """The table lists what the policy does; where its probability is 0, neither features nor an estimate are asked."""
    listed = aope.TabularFeatures([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    policy = aope.DiscretePolicy(lambda states: np.where(states == 0, [1.0, 0.0], [0.25, 0.75]), actions=2)
    states = np.array([[0.0], [1.0]])
    assert expected_features(listed, states, policy).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25]]
    data = aope.Transitions(states, [0, 1], [0.5, 0.0], states[::-1])
    problem = aope.Problem(data, aope.StartStates(states), policy, aope.Assumptions(discount=0.5, reward_range=(0, 1)))
    interval = aope.bound_value(problem, features=listed, kernel=aope.Gaussian(1.0), radius="azuma")
    assert interval.check()
    known = aope.LinearQ(listed, np.array([1.0, 2.0, 3.0, 0.0]), policy.action_vectors)
    assert (
        aope.diagnose(known, problem, features=listed, kernel=aope.Gaussian(1.0), radius="azuma").estimate
        == (1 + 0.25 * 3 + 0.75 * 2) / 2
    )
    with pytest.raises(aope.InvalidInput, match="does not list 1 of the points"):
        expected_features(listed, states, aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2))
