"""Rows that stand in a log again: found to the row, in whatever parts, and not in honest logs."""

import time

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.problem import copies
from accountable_ope.problem.copies import WINDOW, Copies, CopyFinder


def table(n, seed=0, states=4):
    """Rows of a small table: each of them stands there many times, by chance."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, states, n + 1).astype(float)
    return aope.Transitions(at[:-1], rng.integers(0, 2, n), (rng.uniform(size=n) < 0.5).astype(float), at[1:])


def in_parts(data, size):
    finder = CopyFinder()
    for start in range(0, len(data), size):
        finder.take(data.rows(slice(start, min(start + size, len(data)))))
    return finder


def slow(data):
    """Twin: every row that lies in a window which came before, and the most often that one of its windows had come."""
    columns = (data.states, data.actions, data.rewards, data.next_states)
    rows = list(zip(*(np.asarray(each).ravel().tolist() for each in columns), strict=True))
    seen, before = {}, np.zeros(len(rows), dtype=int)
    for start in range(len(rows) - WINDOW + 1):
        window = tuple(rows[start : start + WINDOW])
        before[start : start + WINDOW] = np.maximum(before[start : start + WINDOW], seen.get(window, 0))
        seen[window] = seen.get(window, 0) + 1
    return Copies(int((before > 0).sum()), 2 * int(before.sum()) / len(rows))


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        (np.arange(2000), 0),
        (np.r_[0:1000, 200:264], 64),
        (np.r_[0:1000, 200:263], 0),
        (np.r_[0:280, 0:280], 280),
        (np.tile(np.arange(280), 20), 19 * 280),
        (np.r_[0:500, 100:300, 600:700, 150:250], 300),
    ],
)
def test_stretches_that_come_again_are_counted_to_the_row(chosen, rows):
    data = table(2000).rows(chosen)
    assert data.copies.rows == rows
    assert data.copies == slow(data)


@pytest.mark.parametrize("size", [50, 64, 1000, 40_000])
def test_the_parts_do_not_matter(size, monkeypatch):
    data = table(30_000).rows(np.r_[0:30_000, 5000:9000, 5000:7000])
    assert in_parts(data, size).found() == data.copies and data.copies.rows == 6000
    monkeypatch.setattr(copies, "MOST", 2000)  # then only some windows are remembered, the same ones whatever the parts
    some = in_parts(data, size).found()
    assert some == copies.copies_in(data) and some.rows == pytest.approx(6000, rel=0.1)


def test_few_rows_that_stand_there_a_thousand_times_are_found_in_little_memory(monkeypatch):
    monkeypatch.setattr(copies, "MOST", 2000)
    finder = in_parts(table(280).rows(np.tile(np.arange(280), 1000)), 10_000)
    assert finder.found().rows > 0.99 * 280_000 and len(finder.arrays["at"]) < 20_000


def test_a_finder_goes_on_from_its_arrays():
    data = table(3000).rows(np.r_[0:3000, 1000:2500])
    first = in_parts(data.rows(slice(0, 3100)), 700)
    again = CopyFinder.of_arrays(*first.arrays.values())
    again.take(data.rows(slice(3100, None)))
    assert again.found() == data.copies and first.found().rows == 100
    for name, wrong in (("numbers", [1, 2]), ("at", [5000]), ("times", []), ("last", [1])):
        with pytest.raises(ValueError, match="its "):
            CopyFinder.of_arrays(**{**first.arrays, name: np.array(wrong, dtype=np.int64)})


def test_what_matters_is_how_much_narrower_an_interval_becomes():
    honest = np.arange(4000)
    assert table(4000).rows(np.r_[honest, 0:100]).copies.doubted == 0, "2.5% of the rows"
    assert table(4000).rows(np.r_[honest, 0:300]).copies.doubted == 300
    assert table(4000).rows(np.r_[honest, np.tile(np.arange(70), 3)]).copies.doubted == 210, "four times each"


def walk(n, deviates, length, seed=0):
    """A world without chance: states in a circle, from which the logger deviates now and then, and begins again."""
    chance, states, at = np.random.default_rng(seed).uniform(size=n) < deviates, np.zeros(n + 1), 0
    for row in range(n):
        states[row], at = at, 0 if chance[row] else (at + 1) % length
    return aope.Transitions(states[:-1], chance.astype(int), (states[:-1] == length - 1).astype(float), states[1:])


HONEST = {
    "one state, a coin": lambda: table(100_000, states=1),
    "four states": lambda: table(100_000),
    "always the same": lambda: aope.Transitions(np.zeros(5000), np.zeros(5000, int), np.zeros(5000), np.zeros(5000)),
    "hardly ever another action": lambda: walk(50_000, 0.02, 1),
    "a circle of ten": lambda: walk(50_000, 0.1, 10),
    "a circle of twenty without chance": lambda: walk(5000, 0.0, 20),
}


@pytest.mark.parametrize("name", HONEST)
def test_no_honest_log_is_doubted(name):
    assert HONEST[name]().copies.doubted == 0


def test_signs_of_zero_states_after_the_end_and_labels_are_no_news():
    data, ended = table(500), np.zeros(1000, bool)
    ended[[100, 600]] = True
    twice = [np.concatenate([each, each]) for each in (data.states, data.actions, data.rewards, data.next_states)]
    twice[0][500:] *= np.where(twice[0][500:] == 0, -1.0, 1.0)
    twice[3][600] = 7.0
    again = aope.Transitions(*twice, ended, episodes=np.r_[np.arange(500) // 50, 100 + np.arange(500) // 50])
    assert np.signbit(again.states).any() and again.copies.rows == 500


def test_other_rewards_are_looked_at_anew():
    data = table(500).rows(np.tile(np.arange(500), 2))
    assert data.copies.rows == 500
    assert data.paying(data.rewards + np.random.default_rng(0).uniform(size=1000)).copies.rows == 0


def test_a_million_rows_take_a_fraction_of_a_second():
    rng = np.random.default_rng(0)
    data = aope.Transitions(
        rng.normal(size=(2**20, 10)), rng.integers(0, 2, 2**20), rng.uniform(size=2**20), np.zeros((2**20, 10))
    )
    began = time.process_time()
    assert data.copies == Copies()
    assert time.process_time() - began < 1
