"""Logged transitions and start states: what they hold, and one clear sentence for everything they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from accountable_ope import InvalidInput, StartStates, Transitions

NAN, INF = float("nan"), float("inf")


def given(**changes: Any) -> dict[str, Any]:
    """Three good transitions, with some arguments replaced."""
    return {
        "states": np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]),
        "actions": np.array([0, 1, 0]),
        "rewards": np.array([0.5, 1.0, 0.0]),
        "next_states": np.array([[1.0, 2.0], [2.0, 3.0], [0.0, 0.0]]),
    } | changes


def test_fields_are_kept_as_they_are() -> None:
    data = Transitions(**given(terminated=[False, False, True], episodes=[7, 7, 3]))
    assert data.states.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert data.actions.tolist() == [0, 1, 0]
    assert data.actions.dtype == np.int64
    assert data.rewards.tolist() == [0.5, 1.0, 0.0]
    assert data.next_states.tolist() == [[1, 2], [2, 3], [0, 0]]
    assert data.terminated.tolist() == [False, False, True]
    assert data.episodes is not None
    assert data.episodes.tolist() == [0, 0, 1]
    assert len(data) == 3
    assert data.number_of_episodes == 2
    assert data.finite_actions
    assert repr(data) == "Transitions(3 rows, 2 episodes, 2-d states, 1 terminated)"


def test_nothing_is_terminated_and_no_episode_known_by_default() -> None:
    data = Transitions(**given())
    assert not data.terminated.any()
    assert data.episodes is None
    assert data.number_of_episodes is None


def test_vectors_become_one_column() -> None:
    data = Transitions([1.0, 2.0], [[0.5], [0.25]], [[1.0], [2.0]], [2.0, 3.0])
    assert data.states.shape == data.next_states.shape == (2, 1)
    assert data.rewards.shape == (2,)
    assert data.actions.tolist() == [[0.5], [0.25]]
    assert not data.finite_actions


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.bool_])
def test_actions_of_any_whole_number_type_are_indices(dtype: type) -> None:
    data = Transitions(**given(actions=np.array([0, 1, 0], dtype=dtype)))
    assert data.actions.tolist() == [0, 1, 0]
    assert data.finite_actions


def test_columns_of_whole_numbers_are_vectors() -> None:
    data = Transitions(**given(actions=np.array([[0], [3], [1]])))
    assert data.actions.dtype == np.float64
    assert not data.finite_actions


@pytest.mark.parametrize("terminated", [[0, 0, 1], [0.0, 0.0, 1.0], [[False], [False], [True]]], ids=["int", "float", "column"])
def test_termination_may_be_zero_and_one(terminated: list[Any]) -> None:
    assert Transitions(**given(terminated=terminated)).terminated.tolist() == [False, False, True]


def test_episode_labels_may_be_text_and_count_in_order_of_appearance() -> None:
    episodes = Transitions(**given(episodes=["z", "a", "z"])).episodes
    assert episodes is not None
    assert episodes.tolist() == [0, 1, 0]


def test_first_states_are_an_inexact_sample_of_episode_starts() -> None:
    starts = Transitions(**given(episodes=[5, 5, 2])).first_states()
    assert starts.states.tolist() == [[0, 1], [2, 3]]
    assert starts.exact is False
    assert starts.weights.tolist() == [0.5, 0.5]


def long_data(episodes: list[int] | None) -> Transitions:
    n = 10 if episodes is None else len(episodes)
    rows = np.arange(float(n))
    return Transitions(rows, [0] * n, rows / 10, rows + 1, terminated=rows % 3 == 2, episodes=episodes)


def test_rows_keep_their_order_and_all_their_fields() -> None:
    data = long_data([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    some = data.rows(np.array([1, 4, 5, 8]))
    assert some.states[:, 0].tolist() == [1, 4, 5, 8]
    assert some.next_states[:, 0].tolist() == [2, 5, 6, 9]
    assert some.rewards.tolist() == [0.1, 0.4, 0.5, 0.8]
    assert some.terminated.tolist() == [False, False, True, True]
    assert some.episodes is not None
    assert some.episodes.tolist() == [0, 1, 1, 2]
    assert len(data.rows(slice(2, 5))) == 3
    assert long_data(None).rows(slice(0, 4)).episodes is None


@pytest.mark.parametrize(
    ("episodes", "share", "cut"),
    [
        (None, 0.3, 3),
        (None, 0.5, 5),
        ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], 0.5, 6),
        ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], 0.4, 6),
        ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], 0.3, 3),
        ([0, 0, 0, 0, 0, 0, 0, 0, 1, 1], 0.3, 6),
        ([0, 1, 0, 1, 2, 3, 2, 3, 4, 4], 0.3, 4),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0.3, 6),
    ],
    ids=["rows", "half", "first after half", "not the nearest", "there", "halfway", "interleaved", "one episode"],
)
def test_split_keeps_the_order_and_cuts_at_the_next_beginning(episodes: list[int] | None, share: float, cut: int) -> None:
    earlier, later = long_data(episodes).split(share)
    assert earlier.states[:, 0].tolist() == list(range(cut))
    assert later.states[:, 0].tolist() == list(range(cut, 10))


LABELS = st.lists(st.integers(0, 5), min_size=12, max_size=12)


@hypothesis.given(LABELS, LABELS)
def test_no_row_after_the_cut_decides_where_it_falls(labels: list[int], others: list[int]) -> None:
    """With other labels from the row after the cut on, the cut is where it was; so a choice before it stays before it."""
    states = np.arange(12.0)[:, None]

    def cut(episodes: list[int]) -> int:
        data = Transitions(states, np.zeros(12, dtype=int), np.zeros(12), states, episodes=episodes)
        return len(data.split(0.4)[0])

    here = cut(labels)
    assert cut([*labels[: here + 1], *others[here + 1 :]]) == here


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, NAN])
def test_a_share_outside_zero_and_one_is_refused(share: float) -> None:
    wanted = "a finite number" if share != share else "in (0, 1)"
    with pytest.raises(InvalidInput, match=re.escape(f"`earlier_share` must be {wanted}. Got {share!r}.")):
        long_data(None).split(share)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_split_with_a_part_too_small_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"`earlier_share` {share!r} leaves fewer than two transitions")):
        long_data(None).split(share)


@pytest.mark.parametrize("name", ["states", "actions", "rewards", "next_states", "terminated", "episodes"])
def test_arrays_are_read_only_copies(name: str) -> None:
    arguments = given(terminated=np.array([False, False, True]), episodes=np.array([0, 0, 1]))
    data = Transitions(**arguments)
    kept = getattr(data, name)
    before = kept.copy()
    arguments[name][:] = 1 - arguments[name].astype(float)
    assert np.array_equal(kept, before)
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 0
    with pytest.raises(AttributeError):
        setattr(data, name, before)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nan in states": ({"states": [[0, 1], [NAN, 2], [2, NAN]]}, "`states` has 2 NaN or infinite entries, first in row 1."),
    "inf in states": ({"states": [[0, 1], [1, 2], [2, INF]]}, "`states` has 1 NaN or infinite entry, first in row 2."),
    "nan in rewards": ({"rewards": [0, NAN, 0]}, "`rewards` has 1 NaN or infinite entry, first in row 1."),
    "inf in rewards": ({"rewards": [-INF, 0, 0]}, "`rewards` has 1 NaN or infinite entry, first in row 0."),
    "nan in next states": (
        {"next_states": [[0, NAN], [0, 0], [0, 0]]},
        "`next_states` has 1 NaN or infinite entry, first in row 0.",
    ),
    "nan in action vectors": ({"actions": [[0.0], [1.0], [NAN]]}, "`actions` has 1 NaN or infinite entry, first in row 2."),
    "inf in action vectors": ({"actions": [[0.0], [INF], [1.0]]}, "`actions` has 1 NaN or infinite entry, first in row 1."),
    "too few rewards": ({"rewards": [0.0, 1.0]}, "`rewards` must have one row per row of `states` (3). Got 2."),
    "too few actions": ({"actions": [0]}, "`actions` must have one row per row of `states` (3). Got 1."),
    "too many next states": (
        {"next_states": np.zeros((4, 2))},
        "`next_states` must have one row per row of `states` (3). Got 4.",
    ),
    "too few flags": ({"terminated": [True]}, "`terminated` must have one row per row of `states` (3). Got 1."),
    "too few labels": ({"episodes": [0, 1]}, "`episodes` must have one row per row of `states` (3). Got 2."),
    "narrow next states": ({"next_states": np.zeros((3, 1))}, "`next_states` must have as many columns as `states` (2). Got 1."),
    "two rewards per row": ({"rewards": np.zeros((3, 2))}, "`rewards` must be one number per row. Got an array of shape (3, 2)."),
    "states of three dimensions": (
        {"states": np.zeros((3, 2, 1))},
        "`states` must be 1-dimensional or 2-dimensional. Got an array of shape (3, 2, 1).",
    ),
    "states are a number": ({"states": 3.0}, "`states` must be 1-dimensional or 2-dimensional. Got an array of shape ()."),
    "states without columns": ({"states": np.zeros((3, 0))}, "`states` has no columns."),
    "states of two lengths": ({"states": [[0], [1, 2], [3]]}, "`states` must be numbers of one shape. Got [[0], [1, 2], [3]]."),
    "states are text": ({"states": ["a", "b", "c"]}, "`states` must be numbers of one shape. Got ['a', 'b', 'c']."),
    "states are complex": ({"states": np.full((3, 2), 1 + 2j)}, "`states` must be numbers of one shape."),
    "actions of two lengths": (
        {"actions": [[0.0], [1.0, 2.0], [0.0]]},
        "`actions` must be numbers of one shape. Got [[0.0], [1.0, 2.0]",
    ),
    "flags of two lengths": ({"terminated": [[True], [True, False], [False]]}, "`terminated` must be one True or False per row."),
    "labels of two lengths": ({"episodes": [[0], [1, 2], [3]]}, "`episodes` must be one whole number or text per row."),
    "float actions": (
        {"actions": [0.0, 1.0, 0.0]},
        "`actions` must be (n,) whole numbers for a finite action set, or (n, k) floats. Got (n,) of float64; all are "
        "whole, so `.astype(int)` makes indices of them; for one-dimensional continuous actions give one column, shape (n, 1).",
    ),
    "text actions": ({"actions": ["left", "right", "left"]}, "`actions` must be (n,) whole numbers"),
    "negative index": ({"actions": [0, -2, 0]}, "`actions` must be indices from 0. Got -2 in row 1."),
    "flags other than 0 and 1": ({"terminated": [0, 2, 1]}, "`terminated` must be one True or False per row."),
    "nan flags": ({"terminated": [0.0, NAN, 1.0]}, "`terminated` must be one True or False per row."),
    "flags in two columns": ({"terminated": np.zeros((3, 2), dtype=bool)}, "`terminated` must be one True or False per row."),
    "float labels": (
        {"episodes": [0.0, 1.0, 1.0]},
        "`episodes` must be one whole number or text per row. Got float64 of shape (3,).",
    ),
    "labels in a column": (
        {"episodes": [[0], [1], [1]]},
        "`episodes` must be one whole number or text per row. Got int64 of shape (3, 1).",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_transitions_are_refused(case: str) -> None:
    changes, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Transitions(**given(**changes))


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_transitions_are_refused(n: int) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"At least two transitions are needed. Got {n}.")):
        Transitions(**{name: values[:n] for name, values in given().items()})


def test_first_states_need_episodes() -> None:
    with pytest.raises(InvalidInput, match=re.escape("`first_states` needs `episodes`")):
        Transitions(**given()).first_states()


def test_start_states_weigh_alike_unless_told() -> None:
    starts = StartStates([[0.0, 0.0], [1.0, 1.0]])
    assert starts.weights.tolist() == [0.5, 0.5]
    assert starts.exact is True
    assert len(starts) == 2
    assert repr(starts) == "StartStates(2 rows, exact distribution)"
    assert repr(StartStates([1.0], exact=False)) == "StartStates(1 row, i.i.d. sample)"


def test_start_weights_are_normalized() -> None:
    assert StartStates([0.0, 1.0, 2.0], weights=[1, 3, 0]).weights.tolist() == [0.25, 0.75, 0.0]


def test_start_arrays_are_read_only_copies() -> None:
    states, weights = np.array([[0.0], [1.0]]), np.array([0.5, 0.5])
    starts = StartStates(states, weights)
    states[:], weights[:] = 9.0, 9.0
    assert starts.states.tolist() == [[0.0], [1.0]]
    assert starts.weights.tolist() == [0.5, 0.5]
    for array in (starts.states, starts.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


REFUSED_STARTS: dict[str, tuple[Callable[[], StartStates], str]] = {
    "no states": (lambda: StartStates(np.zeros((0, 2))), "`start states` must have at least one row. Got none."),
    "nan": (lambda: StartStates([[0.0], [NAN]]), "`start states` has 1 NaN or infinite entry, first in row 1."),
    "weights of a sample": (
        lambda: StartStates([0.0, 1.0], weights=[0.25, 0.75], exact=False),
        "`weights` that differ need `exact=True`: an i.i.d. sample of start states weighs every row alike.",
    ),
    "negative weight": (lambda: StartStates([0.0, 1.0], weights=[2, -1]), "`weights` must not be negative"),
    "no weight": (lambda: StartStates([0.0, 1.0], weights=[0, 0]), "must not all be zero."),
    "weight nan": (lambda: StartStates([0.0, 1.0], weights=[1, NAN]), "`weights` has 1 NaN or infinite entry, first in row 1."),
    "too few weights": (
        lambda: StartStates([0.0, 1.0], weights=[1]),
        "`weights` must have one row per row of `start states` (2). Got 1.",
    ),
}


@pytest.mark.parametrize("case", REFUSED_STARTS)
def test_wrong_start_states_are_refused(case: str) -> None:
    make, message = REFUSED_STARTS[case]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        make()


def test_rows_know_which_episodes_began_before_them() -> None:
    data = Transitions(np.arange(8.0), np.zeros(8, int), np.zeros(8), np.arange(1.0, 9.0), episodes=[0, 1, 0, 1, 0, 2, 2, 1])
    assert not data.headless.any() and data.whole_episodes() is data
    later = data.rows(slice(1, None))
    assert later.headless.tolist() == [False, True, False, True, False, False, False]
    assert later.rows(slice(1, None)).headless.tolist() == [True, True, True, False, False, True]
    assert later.whole_episodes().states[:, 0].tolist() == [1.0, 3.0, 5.0, 6.0, 7.0]
    assert later.first_states().states[:, 0].tolist() == [1.0, 5.0]
    with pytest.raises(InvalidInput, match="all began before these rows"):
        data.rows(slice(6, None)).rows(slice(0, 2)).first_states()
