"""A monitor that keeps sums, beside one that keeps rows."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.io.shelf import Shelf
from accountable_ope.problem import copies
from streamed_log import FACTS, KERNEL, MDP, asked, planted_rows

ENDLESS = replace(FACTS, terminates=False)


def nights(rows=3000, size=600):
    return [planted_rows().rows(slice(start, start + size)) for start in range(0, rows, size)]


def both(radius, keep=20_000, facts=ENDLESS, kernel=KERNEL):
    question = asked(facts, kernel=kernel)
    keeps_rows = aope.Monitor(question.question, features=question.features, kernel=kernel, radius=radius, planned=2000)
    return aope.StreamMonitor(question, radius=radius, planned=2000, keep=keep), keeps_rows


def assert_same(found, expected, close=1e-10):
    """Ends to 1e-10 of the range of values; where parts are small, sums count a few roundings more."""
    span = expected.interval.ranges.span
    assert found.count == expected.count and found.status is expected.status
    assert [found.interval.lower, found.interval.upper, found.lower, found.upper] == pytest.approx(
        [expected.interval.lower, expected.interval.upper, expected.lower, expected.upper], abs=close * span
    )
    if expected.interval.radius.name != "certified":  # whose rounds end anywhere beyond the range
        assert found.interval.unclipped == pytest.approx(expected.interval.unclipped, abs=close * span)
    assert [each.text for each in found.interval.premises] == [each.text for each in expected.interval.premises]
    assert found.interval.setting.circumstances == expected.interval.setting.circumstances
    assert found.interval.check(), found.interval.verify().message


@pytest.mark.parametrize("kernel", [KERNEL, aope.Tabular()], ids=["random features", "tabular"])
@pytest.mark.parametrize("radius", ["certified", "azuma-anytime"])
def test_while_all_rows_are_kept_it_is_the_other(radius, kernel):
    found, expected = both(radius, kernel=kernel)
    for night in nights(size=1500):
        report = found.update(night)
        assert_same(report, expected.update(night))
    if radius == "certified" and kernel is KERNEL:
        assert report.interval.upper - report.interval.lower < 5 and MDP.value in report.interval


def test_small_batches_differ_by_rounding_alone():
    found, expected = both("certified")
    for night in nights(1200, 300):
        assert_same(found.update(night), expected.update(night), close=1e-8)


@pytest.mark.parametrize("keep", [2, 300, 900])
def test_a_radius_that_looks_at_no_row_is_the_same_without_them(keep):
    found, expected = both("azuma-anytime", keep)
    for night in nights(size=1500):
        assert_same(found.update(night), expected.update(night))
    assert len(found._taken.head) <= keep


@pytest.mark.parametrize("keep", [300, 900])
def test_one_that_does_is_a_little_wider_and_proves_as_much(keep):
    found, expected = both("certified", keep)
    for night in nights():
        little, whole = found.update(night).interval, expected.update(night).interval
        assert little.lower <= whole.lower + 1e-9 and whole.upper <= little.upper + 1e-9
        assert little.check(), little.verify().message
    assert little.upper - little.lower < 1.35 * (whole.upper - whole.lower)
    assert little.certificates[0].constraints.steps.others is not None


@pytest.fixture
def few_windows(monkeypatch):
    """So that a log of 3,000 rows is a long one: windows of rows are remembered up to a number, which it has reached by then."""
    monkeypatch.setattr(copies, "MOST", 100)
    monkeypatch.setattr(copies, "BLOCK", 100)


def test_memory_does_not_grow_with_the_rows(few_windows):
    monitor, _ = both("azuma-anytime", keep=500)
    held = []
    tracemalloc.start()
    try:
        for night in nights(size=300):
            monitor.update(night)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    columns = 300 * (planted_rows().states.shape[1] * 2 + 2 + 12) * 8  # what a night of rows and features would take
    assert held[-1] - held[4] < columns, held


def test_a_saved_one_goes_on_to_the_same_bits(tmp_path, few_windows):
    question, first = asked(ENDLESS), both("certified", 900)[0]
    one, *others = nights()
    first.update(one, "monday")
    sizes = []
    for night in others:
        first.save(tmp_path / "state.npz")
        sizes.append((tmp_path / "state.npz").stat().st_size)
        again = aope.StreamMonitor.load(tmp_path / "state.npz", question, planned=2000, keep=900)
        assert again.history == first.history and len(again) == len(first)
        mine, theirs = again.update(night), first.update(night)
        assert (mine.lower, mine.upper) == (theirs.lower, theirs.upper)
    assert sizes[-1] - sizes[1] < 2000  # a line per update


def test_a_state_of_something_else_is_refused(tmp_path):
    monitor, path = both("certified", 900)[0], tmp_path / "state.npz"
    with pytest.raises(aope.InvalidInput, match="nothing to save"):
        monitor.save(path)
    monitor.update(nights()[0])
    monitor.save(path)
    for options, said in (({"planned": 3000}, "planned 2000"), ({"planned": 2000, "delta": 0.2}, "delta 0.1")):
        with pytest.raises(aope.InvalidInput, match=said):
            aope.StreamMonitor.load(path, asked(ENDLESS), keep=900, **options)
    with pytest.raises(aope.InvalidInput, match="reward_range"):
        aope.StreamMonitor.load(path, asked(replace(ENDLESS, reward_range=(0, 2))), planned=2000, keep=900)
    with pytest.raises(aope.InvalidInput, match="kernel"):
        aope.StreamMonitor.load(path, asked(ENDLESS, kernel=aope.RandomFeatureKernel(60, seed=2)), planned=2000, keep=900)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["largest"] = arrays["largest"] + 1
    np.savez(path, **arrays)
    with pytest.raises(aope.InvalidFile, match="is not the state of a monitor that keeps sums"):
        aope.StreamMonitor.load(path, asked(ENDLESS), planned=2000, keep=900)
    arrays.pop("sha256")
    arrays["sums.projected"] = np.zeros((2, 2))
    arrays["sha256"] = np.array(Shelf(arrays).sha256)
    np.savez(path, **arrays)
    with pytest.raises(aope.InvalidFile, match="is not the state of a monitor that keeps sums"):
        aope.StreamMonitor.load(path, asked(ENDLESS), planned=2000, keep=900)


def test_what_cannot_be_watched_is_refused():
    with pytest.raises(aope.InvalidInput, match="`terminates` must be True or False in a monitor"):
        aope.StreamMonitor(asked(), planned=100)
    with pytest.raises(aope.InvalidInput, match="must hold at all times at once"):
        aope.StreamMonitor(asked(ENDLESS), radius="hoeffding", planned=100)
    monitor = aope.StreamMonitor(asked(ENDLESS), planned=100)
    bad = nights()[0].paying(np.full(600, 7.0))
    with pytest.raises(aope.InvalidInput, match="reward"):
        monitor.update(bad)
    assert len(monitor) == 0


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("agreed", lambda array: array[:-1], "things fixed"),
        ("largest", lambda array: np.array(np.nan), "its largest leverage is nan"),
    ],
)
def test_a_state_of_another_version_or_without_numbers_is_refused(tmp_path, name, change, words):
    monitor, path = both("azuma-anytime")[0], tmp_path / "state.npz"
    monitor.update(nights()[0])
    monitor.save(path)
    arrays = dict(np.load(path))
    arrays[name] = change(arrays[name])
    arrays.pop("sha256")
    arrays["sha256"] = np.array(Shelf(arrays).sha256)
    np.savez(path, **arrays)
    with pytest.raises(aope.InvalidFile, match=words):
        aope.StreamMonitor.load(path, monitor.question, radius="azuma-anytime", planned=2000)
