"""Features by action, side by side, and of trees: against what they say they are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes import ActionProducts, ActionTiles, GivenValues, JoinedFeatures, Span, TreeValues
from accountable_ope.classes.description import describe_class, described_class

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(30, 2))
TAKEN = RNG.integers(0, 3, 30)
POINTS = np.concatenate([STATES, np.eye(3)[TAKEN]], axis=1)


def farthest(values: np.ndarray) -> float:
    return float(max(np.linalg.norm(one - other) for one in values for other in values))


def test_products_of_every_action() -> None:
    features = ActionProducts(np.array([0.1, -0.2]), np.array([1.0, 2.0]), 2, np.eye(3))
    values = features(POINTS)
    for i in range(30):
        u, v = np.tanh((STATES[i] - [0.1, -0.2]) / [1.0, 2.0])
        wanted = np.zeros((3, 6))
        wanted[TAKEN[i]] = [1, u, v, u * u, u * v, v * v]
        np.testing.assert_allclose(values[i], wanted.ravel()[1:], rtol=0, atol=1e-15)
    assert values.shape == (30, features.dimension) and farthest(values) <= features.diameter
    assert np.isfinite(features(POINTS * 1e6)).all()


def test_tiles_of_every_action() -> None:
    tiles = ActionTiles(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), 4, 2, np.eye(3))
    values = tiles(POINTS)
    assert values.shape == (30, 96) == (30, tiles.dimension)
    np.testing.assert_allclose((values**2).sum(axis=1), 1)
    for i, grid in product(range(30), range(2)):
        place = (STATES[i] - [-1, -2]) / [2, 4] * 4 + (-0.25, 0.25)[grid]
        first, second = (int(min(max(np.floor(each), 0), 3)) for each in place)
        assert values[i].reshape(3, 2, 16)[TAKEN[i], grid, first + 4 * second] == pytest.approx(np.sqrt(0.5))
    assert farthest(values) <= tiles.diameter + 1e-12
    assert ActionTiles(np.zeros(2), np.ones(2), 3)(STATES).shape == (30, 18)


def test_joined_features_stand_side_by_side() -> None:
    one, other = aope.RandomFourier(3, 0.5), aope.RandomFourier(4, 2.0)
    joined = JoinedFeatures((one, other))
    np.testing.assert_array_equal(joined(POINTS), np.concatenate([one(POINTS), other(POINTS)], axis=1))
    assert joined.diameter == pytest.approx(np.sqrt(8)) and joined.dimension == 7
    assert joined.spread(np.full(5, 0.1)) == pytest.approx(np.hypot(one.spread(np.full(5, 0.1)), other.spread(np.full(5, 0.1))))
    unknown = JoinedFeatures((one, GivenValues(lambda s, a: s[:, 0], 2, np.eye(3))))
    assert unknown.diameter == unknown.spread(np.ones(5)) == np.inf


def by_hand(trees: TreeValues, point: np.ndarray) -> float:
    """Down every tree, node by node."""
    found = []
    for column, child, threshold, value in zip(trees.column, trees.child, trees.threshold, trees.value, strict=True):
        node = 0
        while child[node] > 0:
            node = child[node] + (1 if point[column[node]] > threshold[node] else 0)
        found.append(value[node])
    return (np.mean(found) - trees.center) / trees.scale


def test_values_of_trees() -> None:
    child = np.array([[1, 3, 0, 0, 0], [1, 0, 3, 0, 0]])
    trees = TreeValues(RNG.integers(0, 5, (2, 5)), child, RNG.normal(size=(2, 5)) * 0.3, RNG.normal(size=(2, 5)), 0.3, 2.0)
    np.testing.assert_allclose(trees(POINTS)[:, 0], [by_hand(trees, point) for point in POINTS])
    assert farthest(trees(POINTS)) <= trees.diameter


def test_what_is_no_tree_is_refused() -> None:
    zeros, ones = np.zeros((1, 3)), np.zeros((1, 3), dtype=int)
    with pytest.raises(aope.InvalidInput, match="one shape"):
        TreeValues(ones, ones, zeros, np.zeros((1, 2)))
    for child in ([[0, 1, 0]], [[2, 0, 0]], [[1, 1, 0]]):  # its own child, no sibling, and a circle
        with pytest.raises(aope.InvalidInput, match="come after its parent"):
            TreeValues(ones, np.array(child), zeros, zeros)
    with pytest.raises(aope.InvalidInput, match="at least 3-d points"):
        TreeValues(ones + 2, np.array([[1, 0, 0]]), zeros, zeros)(STATES)


def test_a_given_estimate_is_asked_with_actions_as_it_knows_them() -> None:
    values = GivenValues(lambda states, actions: states[:, 1] + 10 * actions, 2, np.eye(3), center=1.0, scale=2.0)(POINTS)
    np.testing.assert_allclose(values[:, 0], (STATES[:, 1] + 10 * TAKEN - 1) / 2)
    whole = GivenValues(lambda states, actions: states[:, 0] * actions[:, 2], 2)(POINTS)
    np.testing.assert_allclose(whole[:, 0], STATES[:, 0] * POINTS[:, 4])
    with pytest.raises(aope.InvalidInput, match="one value per point"):
        GivenValues(lambda states, actions: states, 2)(POINTS)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ActionProducts(np.zeros(2), np.array([1.0, 0.0])), "`scale` must be"),
        (lambda: ActionProducts(np.zeros(2), np.ones(3)), "equally long"),
        (lambda: ActionTiles(np.zeros(2), np.zeros(2), 3), "`high - low` must be"),
        (lambda: ActionTiles(np.zeros(2), np.ones(1), 3), "equally long"),
        (lambda: JoinedFeatures(()), "must not be empty"),
        (lambda: ActionTiles(np.zeros(2), np.ones(2), 3)(POINTS), "2-d points"),
        (lambda: ActionProducts(np.zeros(2), np.ones(2), 2, np.eye(3))(STATES), "5-d points"),
    ],
)
def test_what_does_not_fit_is_one_sentence(make: object, text: str) -> None:
    with pytest.raises(aope.InvalidInput, match=text):
        make()  # type: ignore[operator]


def test_features_are_made_again_from_their_description() -> None:
    """What a certificate says of a class is enough to have it again, to the last digit."""
    child = np.array([[1, 3, 0, 0, 0], [1, 0, 3, 0, 0]])
    trees = TreeValues(RNG.integers(0, 5, (2, 5)), child, RNG.normal(size=(2, 5)), RNG.normal(size=(2, 5)), 0.3, 2.0)
    products = ActionProducts(np.array([0.1, -0.2]), np.array([1.0, 2.0]), 2, np.eye(3))
    tiles = ActionTiles(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), 4, 2, np.eye(3))
    for features in (trees, products, tiles, JoinedFeatures((products, trees))):
        again = described_class(describe_class(Span(features, True)))
        assert repr(again) == repr(features)
        np.testing.assert_array_equal(again(POINTS), features(POINTS))
    given = JoinedFeatures((products, GivenValues(lambda s, a: s[:, 0], 2, np.eye(3))))
    with pytest.raises(aope.InvalidFile, match="give it as `features`"):
        described_class(describe_class(Span(given, True)))
