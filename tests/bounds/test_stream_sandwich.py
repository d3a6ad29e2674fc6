"""Sandwich intervals of logs that are read in parts, beside those of the same rows in memory."""

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds import sandwich_interval, sandwich_stream
from streamed_log import FACTS, KERNEL, MDP, asked, planted_rows, scanned


def ended(data):
    flags = np.arange(len(data)) % 50 == 49
    return aope.Transitions(data.states, data.actions, data.rewards, data.next_states, flags)


SAMPLED = aope.StartStates(np.random.default_rng(1).normal(size=(50, 2)) / 5, exact=False)

CASES = {
    "plain": (asked(), lambda data: data),
    "terminated": (asked(), ended),
    "sampled starts": (asked(starts=SAMPLED), lambda data: data),
    "tabular": (asked(kernel=aope.Tabular()), lambda data: data),
    "far": (asked(replace(FACTS, reward_range=(1e6, 1e6 + 1), terminates=False)), lambda data: data.paying(data.rewards + 1e6)),
    "left out": (asked(), lambda data: data.having_left_out(4)),
}


@pytest.mark.parametrize("batch_rows", [97, 65536])
@pytest.mark.parametrize("name", CASES)
def test_it_is_that_of_the_rows_in_memory(tmp_path, name, batch_rows):
    question, change = CASES[name]
    data = change(planted_rows())
    if name == "left out":
        aope.save_transitions(data, tmp_path / "log.parquet")
        scan = aope.scan_transitions(tmp_path, batch_rows=batch_rows)
    else:
        scan = scanned(tmp_path, data, batch_rows=batch_rows)
    found = sandwich_stream(scan, question)
    expected = sandwich_interval(question.question.on(data), features=question.features, kernel=question.kernel)
    assert 0 < expected.standard_error < 5
    for each in ("estimate", "standard_error", "lower", "upper", "start_error"):
        assert getattr(found, each) == pytest.approx(getattr(expected, each), rel=1e-10), each
    assert found.condition == pytest.approx(expected.condition, rel=1e-6)
    assert (found.count, found.unseen, found.outcome) == (expected.count, expected.unseen, expected.outcome)
    assert [each.text for each in found.premises] == [each.text for each in expected.premises]
    assert found.features == expected.features and found.specification.first_rows is None
    assert found.specification.p_value == pytest.approx(expected.specification.p_value, rel=1e-6)


def test_a_value_that_the_rows_do_not_see(tmp_path):
    """Features that no row has: no estimate, and the whole range."""

    class Unseen:
        dimension, intercept = 2, False

        def __call__(self, points):
            return np.column_stack([np.ones(len(points)), points[:, 0] > 50])

    starts = aope.StartStates([[100.0, 0.0]])
    data = planted_rows()
    question = aope.StreamQuestion(aope.Question(starts, MDP.policy, FACTS), Unseen(), KERNEL)
    found = sandwich_stream(scanned(tmp_path, data), question)
    expected = sandwich_interval(question.question.on(data), features=Unseen(), kernel=KERNEL)
    assert np.isnan(expected.estimate) and np.isnan(found.estimate) and found.standard_error == np.inf
    assert (found.lower, found.upper, found.unseen) == (expected.lower, expected.upper, expected.unseen)


def test_what_cannot_be_is_refused_before_any_row_is_read(tmp_path):
    scan = scanned(tmp_path, planted_rows())
    for path in tmp_path.iterdir():
        path.unlink()  # nothing could be read
    with pytest.raises(aope.InvalidInput, match="`misfit` needs all rows at once"):
        sandwich_stream(scan, asked(replace(FACTS, misfit=0.1)))
    with pytest.raises(aope.InvalidInput, match="`question` must have no anchor"):
        sandwich_stream(scan, asked(anchor=MDP.q))
    with pytest.raises(aope.InvalidInput, match="delta"):
        sandwich_stream(scan, asked(), 2.0)


def test_a_bad_reward_is_named_with_its_file(tmp_path):
    rewards = planted_rows().rewards.copy()
    rewards[2345] = 7.0
    with pytest.raises(aope.InvalidInput, match=r"row 345 of .*part-2.parquet \(row 2345 of the log\)"):
        sandwich_stream(scanned(tmp_path, planted_rows().paying(rewards)), asked())
