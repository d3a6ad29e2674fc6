"""Terminal regions: boxes against a search over all points that can matter, functions, and answers that make no sense."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountable_ope import InvalidInput, TerminalRegion

INF = np.inf
ENDS = st.sampled_from([-INF, -1.0, 0.0, 0.5, 1.0, INF])
FINITE = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])


@st.composite
def boxes(draw, ends):
    """(lows, highs) in two dimensions, with some state in between."""
    sides = [sorted((draw(ends), draw(ends))) for _ in range(2)]
    sides = [(-INF if low == INF else low, INF if high == -INF else high) for low, high in sides]
    return tuple(zip(*sides, strict=True))


def points_that_matter(low, high, box):
    """All combinations of the ends of a box and of the region, and of their nearest neighbors, that lie in the box."""
    coordinates = []
    for a, b, least, most in zip(low, high, *box, strict=True):
        near = {a, b, least, most, np.nextafter(least, -INF), np.nextafter(most, INF)}
        coordinates.append([x for x in near if a <= x <= b and np.isfinite(x)])
    return np.array(list(itertools.product(*coordinates)))


@given(boxes(ENDS), boxes(FINITE))
def test_boxes_are_decided_exactly(region_box, reach_box):
    for region in (TerminalRegion.inside(*region_box), TerminalRegion.outside(*region_box)):
        low, high = (np.array([side]) for side in reach_box)
        contained = region.contains(points_that_matter(low[0], high[0], region_box))
        certain, possible = region.covers(low, high)
        assert (certain.tolist(), possible.tolist()) == ([contained.all()], [contained.any()])


@given(boxes(ENDS), st.lists(st.tuples(FINITE, FINITE), min_size=1))
def test_outside_is_the_complement_of_inside(box, states):
    inside, outside = TerminalRegion.inside(*box), TerminalRegion.outside(*box)
    assert (inside.contains(np.array(states)) == ~outside.contains(np.array(states))).all()


def test_reach_may_be_infinite():
    fallen = TerminalRegion.outside([-INF, -0.2], [INF, 0.2])
    certain, possible = fallen.covers(
        np.array([[-INF, 0.3], [-INF, -0.1], [0.0, -INF]]), np.array([[INF, 0.4], [INF, 0.1], [0.0, INF]])
    )
    assert (certain.tolist(), possible.tolist()) == ([True, False, False], [True, False, True])


def test_names_are_for_premises():
    assert TerminalRegion.inside([1.0], [INF]).name == "inside [1, inf]"
    assert TerminalRegion.outside([-INF, -0.2], [INF, 0.2]).name == "outside [-inf, inf] x [-0.2, 0.2]"
    assert repr(TerminalRegion.where(np.isnan, name="lost")) == 'TerminalRegion(in the region "lost")'


def disc(states):
    return (states**2).sum(axis=1) <= 1


def disc_and_boxes(low, high):
    nearest, farthest = np.clip(0.0, low, high), np.maximum(np.abs(low), np.abs(high))
    return disc(farthest), disc(nearest)


LOW, HIGH = (
    np.array([[-0.1, 0.0], [0.9, 0.9], [0.5, 0.5], [0.0, 3.0]]),
    np.array([[0.1, 0.2], [2.0, 2.0], [2.0, 0.5], [0.0, 3.0]]),
)


def test_a_function_decides_single_states_only():
    certain, possible = TerminalRegion.where(disc, name="disc").covers(LOW, HIGH)
    assert (certain.tolist(), possible.tolist()) == ([False] * 4, [True, True, True, False])


def test_a_function_of_boxes_decides_boxes():
    certain, possible = TerminalRegion.where(disc, disc_and_boxes, name="disc").covers(LOW, HIGH)
    assert (certain.tolist(), possible.tolist()) == ([True, False, False, False], [True, False, True, False])


def test_boxes_can_be_pickled():
    region = TerminalRegion.outside([-1.0], [1.0])
    assert pickle.loads(pickle.dumps(region)) == region


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda states: states, r"`terminal_region` must answer with one True or False per row, shape \(3,\)"),
        (lambda states: np.zeros(2, dtype=bool), "`terminal_region` must answer"),
        (lambda states: None, "`terminal_region` must answer"),
        (lambda states: np.zeros(3), "`terminal_region` must answer"),
    ],
)
def test_functions_that_do_not_answer_are_refused(answer, message):
    with pytest.raises(InvalidInput, match=message):
        TerminalRegion.where(answer, name="region").contains(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda low, high: True, r"`covers` .* must answer with \(certain, possible\)"),
        (lambda low, high: (np.zeros(3), np.zeros(3)), "`covers` must answer with one True or False"),
        (lambda low, high: (low[:, 0] == 0, low[:, 0] < 0), "`covers` .* says of row 0 that an end is certain and not possible"),
    ],
)
def test_functions_of_boxes_that_do_not_answer_are_refused(answer, message):
    with pytest.raises(InvalidInput, match=message):
        TerminalRegion.where(disc, answer, name="region").covers(np.zeros((3, 2)), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("lows", "highs", "message"),
    [
        ([0.0], [1.0, 2.0], "`lows` and `highs` .* of equal length"),
        ([2.0], [1.0], "low <= high everywhere"),
        ([INF], [INF], "must leave some state in the box"),
        ([np.nan], [1.0], "`lows` of a terminal region must be one number per state column"),
        ([0.0], "x", "`highs` of a terminal region"),
        ([], [], "`lows` of a terminal region"),
        ([[0.0]], [[1.0]], "`lows` of a terminal region"),
    ],
)
def test_boxes_that_are_none_are_refused(lows, highs, message):
    for make in (TerminalRegion.inside, TerminalRegion.outside):
        with pytest.raises(InvalidInput, match=message):
            make(lows, highs)


def test_states_of_other_width_are_refused():
    with pytest.raises(InvalidInput, match="`terminal_region` has 1 dimensions, states have 2"):
        TerminalRegion.inside([0.0], [1.0]).contains(np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="`name` of TerminalRegion must not be empty"):
        TerminalRegion(" ", TerminalRegion.inside([0.0], [1.0]).rule)
