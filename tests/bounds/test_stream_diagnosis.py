"""Diagnoses of logs that are read in parts, beside those of the same rows in memory."""

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds import stream_state
from streamed_log import FACTS, KERNEL, MDP, asked, planted_rows, scanned


def high(states, actions):
    return 8.0 + 0.1 * states[:, 0] + 0.2 * actions


def impossible(states, actions):
    return 30.0 + 5 * states[:, 0]


def ended(data):
    """Some rows terminated."""
    flags = np.arange(len(data)) % 50 == 49
    return aope.Transitions(data.states, data.actions, data.rewards, data.next_states, flags)


CASES = {
    "right": (MDP.q, FACTS, KERNEL, lambda data: data),
    "high": (high, FACTS, KERNEL, lambda data: data),
    "impossible": (impossible, FACTS, KERNEL, lambda data: data),
    "tabular": (high, FACTS, aope.Tabular(), lambda data: data),
    "terminated": (high, FACTS, KERNEL, ended),
    "far": (
        lambda states, actions: 1e7 + high(states, actions),
        replace(FACTS, reward_range=(1e6, 1e6 + 1), terminates=False),
        KERNEL,
        lambda data: data.paying(data.rewards + 1e6),
    ),
}


@pytest.mark.parametrize("radius", ["certified", "hoeffding"])
@pytest.mark.parametrize("name", CASES)
def test_it_is_that_of_the_rows_in_memory(tmp_path, name, radius):
    q, facts, kernel, change = CASES[name]
    data = change(planted_rows())
    question = asked(facts, kernel=kernel)
    found = aope.diagnose_stream(q, scanned(tmp_path, data), question, radius)
    expected = aope.diagnose(q, question.question.on(data), features=question.features, kernel=kernel, radius=radius)
    assert found.verdict is expected.verdict and found.estimate == pytest.approx(expected.estimate, rel=1e-12)
    assert found.loss == pytest.approx(expected.loss, rel=1e-10, abs=1e-13)
    assert found.radius.total == pytest.approx(expected.radius.total, rel=1e-10, abs=1e-13)
    assert found.largest_residual == pytest.approx(expected.largest_residual, rel=1e-10)
    assert found.rounding.loss == pytest.approx(expected.rounding.loss, rel=1e-10)
    assert [found.reached.least, found.reached.largest] == pytest.approx([expected.reached.least, expected.reached.largest])
    assert [each.text for each in found.impossible] == [each.text for each in expected.impossible]
    assert [each.text for each in found.remarks] == [each.text for each in expected.remarks]
    mine, theirs = found.witness, expected.witness
    assert np.array_equal(mine.rows, theirs.rows) and np.array_equal(mine.points, theirs.points)
    size = np.abs(theirs.values).max()
    np.testing.assert_allclose(mine.values, theirs.values, rtol=0, atol=1e-9 * size)
    assert [each.row for each in mine.regions] == [each.row for each in theirs.regions]
    assert [each.share for each in mine.regions] == pytest.approx([each.share for each in theirs.regions], rel=1e-7)
    span = expected.interval.ranges.span
    assert found.interval.lower == pytest.approx(expected.interval.lower, abs=1e-10 * span, nan_ok=True)
    assert found.interval.upper == pytest.approx(expected.interval.upper, abs=1e-10 * span, nan_ok=True)
    assert [each.text for each in found.premises] == [each.text for each in expected.premises]
    assert found.interval.check()


def test_verdicts_differ(tmp_path):
    """Or the comparisons above would show nothing."""
    scan = scanned(tmp_path, planted_rows())
    assert {aope.diagnose_stream(q, scan, asked()).verdict.name for q in (MDP.q, high)} == {"CONSISTENT", "REJECTED"}


class Stopped(Exception):
    """Whatever stops a run."""


def test_a_stopped_diagnosis_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_state, "PARTS", 3)
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    scan = scanned(log, planted_rows(), batch_rows=97)

    def stop(done):
        if done > 0.5:
            raise Stopped

    expected = aope.diagnose_stream(high, scan, asked())
    with pytest.raises(Stopped):
        aope.diagnose_stream(high, scan, asked(), resume=state, progress=stop)
    before = state.read_bytes()
    with pytest.raises(aope.InvalidInput, match="is the state of another question"):
        aope.diagnose_stream(impossible, scan, asked(), resume=state)
    with pytest.raises(aope.InvalidInput, match="is the state of another question"):
        aope.bound_stream(scan, asked(anchor=high), resume=state)
    assert state.read_bytes() == before
    found = aope.diagnose_stream(high, scan, asked(), resume=state)
    assert (found.loss, found.radius.total, found.rounding, found.reached) == (
        expected.loss,
        expected.radius.total,
        expected.rounding,
        expected.reached,
    )
    assert np.array_equal(found.witness.values, expected.witness.values)
    assert (found.interval.lower, found.interval.upper) == (expected.interval.lower, expected.interval.upper)


def test_what_needs_all_rows_is_refused_before_any_is_read(tmp_path):
    scan = scanned(tmp_path, planted_rows())
    for path in tmp_path.iterdir():
        path.unlink()  # nothing could be read
    with pytest.raises(aope.InvalidInput, match="`radius` wild needs all rows at once"):
        aope.diagnose_stream(high, scan, asked(), "wild")
    with pytest.raises(aope.InvalidInput, match="`anchor` must be a function to be summed in parts"):
        aope.diagnose_stream(aope.QColumns([1.0, 2.0], [1.0, 2.0], [1.0]), scan, asked())
    with pytest.raises(aope.InvalidInput, match="`question` must have no anchor"):
        aope.diagnose_stream(high, scan, asked(anchor=high))
