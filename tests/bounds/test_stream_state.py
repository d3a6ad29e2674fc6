"""A pass over a log that is stopped and goes on."""

import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.bounds import stream_state
from accountable_ope.io.shelf import Shelf
from streamed_log import FACTS, MDP, asked, planted_rows, scanned


class Stopped(Exception):
    """Whatever stops a run."""


def stopping_at(share):
    def progress(done):
        if done >= share:
            raise Stopped

    return progress


def same_bits(found, expected):
    """The whole certificate, as it is written: sums, multipliers, ends, the name of the rows."""
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
    assert found.setting.data == expected.setting.data
    with tempfile.TemporaryDirectory() as folder:
        for name, each in (("found", found), ("expected", expected)):
            each.save(f"{folder}/{name}.json")
        assert Path(folder, "found.json").read_bytes() == Path(folder, "expected.json").read_bytes()


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(stream_state, "PARTS", 3)


QUESTIONS = {
    "cut": asked(),
    "anchored": asked(anchor=lambda states, actions: 5.0 + 0.1 * states[:, 0] + 0.2 * actions),
    "tabular": asked(features=aope.RandomFourier(6), kernel=aope.Tabular()),
    "free norm": asked(replace(FACTS, terminates=False, norm_bound=None)),
}


@pytest.mark.parametrize(
    ("name", "share"),
    [("cut", 0.02), ("cut", 0.37), ("cut", 0.71), ("cut", 1.0), ("anchored", 0.4), ("tabular", 0.4), ("free norm", 0.6)],
)
def test_a_stopped_pass_goes_on_to_the_same_bits(tmp_path, name, share):
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    scan, question = scanned(log, planted_rows(), batch_rows=97), QUESTIONS[name]
    expected = aope.bound_stream(scan, question)
    with pytest.raises(Stopped):
        aope.bound_stream(scan, question, progress=stopping_at(share), resume=state)
    assert state.exists()
    seen = []
    same_bits(aope.bound_stream(scan, question, progress=seen.append, resume=state), expected)
    assert not state.exists() and seen[-1] == 1.0


@pytest.mark.parametrize("memory", [0, 8 * 9 * 200])
def test_rows_that_were_not_kept_and_several_stops(tmp_path, memory):
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    scan = scanned(log, planted_rows(), batch_rows=97)
    expected = aope.bound_stream(scan, asked(), memory=memory)
    for share in (0.1, 0.3, 0.35, 0.6, 0.95):
        with pytest.raises(Stopped):
            aope.bound_stream(scan, asked(), memory=memory, progress=stopping_at(share), resume=state)
    same_bits(aope.bound_stream(scan, asked(), memory=memory, resume=state), expected)


def test_a_first_answer_goes_on(tmp_path):
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    scan = scanned(log, planted_rows(), batch_rows=150)
    question = aope.Question(MDP.starts, MDP.policy, replace(FACTS, norm_bound=None))
    expected = aope.stream_value(scan, question, neural=False)
    recipe, stop = expected.recipe, stopping_at(0.5)
    with pytest.raises(Stopped):
        aope.stream_value(
            scan, question, recipe=recipe, resume=state, stages=lambda name: stop if name == "kernel statistic" else None
        )
    assert state.exists()
    same_bits(aope.stream_value(scan, question, recipe=recipe, resume=state), expected)


KILLED = """
import os, signal, sys
import accountable_ope as aope
from accountable_ope.bounds import stream_state
sys.path.insert(0, {tests!r})
from streamed_log import asked

stream_state.PARTS = 3

def progress(done):
    if done > 0.6:
        os.kill(os.getpid(), signal.SIGKILL)

aope.bound_stream(aope.scan_transitions({log!r}, batch_rows=97), asked(), progress=progress, resume={state!r})
"""


def test_a_killed_process_goes_on_to_the_same_bits(tmp_path, request, monkeypatch):
    """SIGKILL: nothing can be written any more, and what was written before is whole."""
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    scan = scanned(log, planted_rows(), batch_rows=97)
    expected = aope.bound_stream(scan, asked())
    script = KILLED.format(tests=str(request.path.parent.parent), log=str(log), state=str(state))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert state.exists()
    summed = []
    monkeypatched = pytest.MonkeyPatch()
    with monkeypatched.context() as patch:
        import accountable_ope.bounds.streamed as streamed

        whole = streamed.sums_of
        patch.setattr(
            streamed, "sums_of", lambda columns, question: summed.append(len(columns.target)) or whole(columns, question)
        )
        same_bits(aope.bound_stream(scan, asked(), resume=state), expected)
    assert 0 < sum(summed) < 0.5 * scan.rows  # rows that were summed before are not summed again


def stopped(tmp_path, question=None, share=0.5):
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    scan = scanned(log, planted_rows(), batch_rows=97)
    with pytest.raises(Stopped):
        aope.bound_stream(scan, question or asked(), progress=stopping_at(share), resume=state)
    return scan, state


def changes():
    yield "delta", "`delta` was 0.1 there, and is 0.2 here", asked(), {"delta": 0.2}
    yield "radius", "the radius was certified there, and is azuma here", asked(), {"radius": "azuma"}
    yield "memory", "`memory` was", asked(), {"memory": 1000}
    yield "norm", "what is assumed was", asked(replace(FACTS, norm_bound=3.0)), {}
    yield "kernel", "the kernel was", asked(kernel=aope.RandomFeatureKernel(60, seed=1)), {}
    yield "class", "the class was", asked(features=aope.RandomFourier(5)), {}
    yield "starts", "start states", asked(starts=aope.StartStates(MDP.starts.states[:1])), {}
    yield "estimate", "first rows was", asked(anchor=lambda states, actions: states[:, 0]), {}


@pytest.mark.parametrize(("said", "question", "options"), [each[1:] for each in changes()], ids=[each[0] for each in changes()])
def test_the_state_of_another_question_is_refused_and_left(tmp_path, said, question, options):
    scan, state = stopped(tmp_path)
    before = state.read_bytes()
    with pytest.raises(aope.InvalidInput, match=said) as refused:
        aope.bound_stream(scan, question, resume=state, **options)
    assert "is the state of another question" in str(refused.value) and "\n" not in str(refused.value)
    assert state.read_bytes() == before


def test_another_policy_of_the_same_name_is_found_out(tmp_path):
    """It cannot be named, and acts otherwise at the first rows."""

    def policy(share):
        return aope.DiscretePolicy(lambda states: np.tile([share, 0.9 - share, 0.1], (len(states), 1)), actions=3)

    features = aope.RandomFourier(5)
    scan, state = stopped(tmp_path, asked(features=features, policy=policy(0.5)))
    with pytest.raises(aope.InvalidInput, match="is the state of another question"):
        aope.bound_stream(scan, asked(features=features, policy=policy(0.6)), resume=state)


def test_parts_of_another_size_are_refused(tmp_path):
    _, state = stopped(tmp_path)
    with pytest.raises(aope.InvalidInput, match="the number of rows in a part was 97 there, and is 100 here"):
        aope.bound_stream(aope.scan_transitions(tmp_path / "log", batch_rows=100), asked(), resume=state)


def rewritten(path, change):
    table = pq.read_table(path)
    pq.write_table(change(table), path)


def test_the_state_of_another_log_is_refused_and_left(tmp_path):
    _, state = stopped(tmp_path)
    before, log = state.read_bytes(), tmp_path / "log"
    whole = {path: path.read_bytes() for path in log.iterdir()}

    def refused(said):
        with pytest.raises(aope.InvalidInput, match=f"is the state of another log: {said}"):
            aope.bound_stream(aope.scan_transitions(log, batch_rows=97), asked(), resume=state)
        assert state.read_bytes() == before
        for path in log.iterdir():
            path.unlink()
        for path, content in whole.items():
            path.write_bytes(content)

    (log / "part-3.parquet").write_bytes((log / "part-0.parquet").read_bytes())
    refused("that had 3 files, and this one has 4")
    (log / "part-1.parquet").rename(log / "part-1b.parquet")
    refused("part-1.parquet with 1000 rows stood where part-1b.parquet")
    rewritten(log / "part-2.parquet", lambda table: table.slice(0, 999))
    refused("part-2.parquet with 1000 rows stood")
    pq.write_table(pq.read_table(log / "part-0.parquet"), log / "part-0.parquet", compression="none")
    refused("part-0.parquet had [0-9]+ bytes")


@pytest.mark.parametrize(
    ("row", "said"), [(1500, "at the first rows was"), (21_000, "rows that were summed have other numbers now")]
)
def test_rows_that_changed_are_found_by_their_numbers(tmp_path, row, said):
    """Same names, rows and bytes: files without compression in which one reward is another."""
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    data = planted_rows(450)
    aope.save_transitions(data, log / "log.parquet")
    table = pq.read_table(log / "log.parquet")
    pq.write_table(table, log / "log.parquet", compression="none", use_dictionary=False, write_statistics=False)
    scan = aope.scan_transitions(log, batch_rows=500)
    with pytest.raises(Stopped):
        aope.bound_stream(scan, asked(), progress=stopping_at(0.99), resume=state)
    rewards = data.rewards.copy()
    rewards[row] = 0.123456789
    aope.save_transitions(data.paying(rewards), tmp_path / "other.parquet")
    other = pq.read_table(tmp_path / "other.parquet")
    pq.write_table(other, log / "log.parquet", compression="none", use_dictionary=False, write_statistics=False)
    again = aope.scan_transitions(log, batch_rows=500)
    assert again.files[0].size == scan.files[0].size
    before = state.read_bytes()
    with pytest.raises(aope.InvalidInput, match=said):
        aope.bound_stream(again, asked(), resume=state)
    assert state.read_bytes() == before


def test_a_bad_row_can_be_put_right(tmp_path):
    """Files of which nothing was summed yet may change."""
    log, state = tmp_path / "log", tmp_path / "state.npz"
    log.mkdir()
    data = planted_rows(450)
    expected = aope.bound_stream(scanned(log, data, batch_rows=7500), asked())
    right = (log / "part-2.parquet").read_bytes()
    rewards = data.rewards.copy()
    rewards[-5] = 7.0
    scan = scanned(log, data.paying(rewards), batch_rows=7500)
    with pytest.raises(aope.InvalidInput, match="row 22495 of the log"):
        aope.bound_stream(scan, asked(), resume=state)
    (log / "part-2.parquet").write_bytes(right)
    same_bits(aope.bound_stream(aope.scan_transitions(log, batch_rows=7500), asked(), resume=state), expected)


def edited(state, change):
    with np.load(state) as archive:
        arrays = {name: archive[name] for name in archive.files}
    change(arrays)
    np.savez(state, **arrays)


def forged(change):
    """Numbers changed, and the SHA-256 made to fit."""

    def all_of_it(arrays):
        change(arrays)
        arrays.pop("sha256")
        arrays["sha256"] = np.array(Shelf(arrays).sha256)

    return all_of_it


DAMAGES = {
    "a number": lambda arrays: arrays.update({"class_0.largest": arrays["class_0.largest"] + 1}),
    "no sums": lambda arrays: arrays.pop("class_0.sums.projected"),
    "no names": lambda arrays: arrays.pop("asked"),
    "names are numbers": lambda arrays: arrays.update(asked=np.zeros(3)),
    "forged shape": forged(lambda arrays: arrays.update({"class_0.sums.projected": np.zeros((3, 3))})),
    "forged rows": forged(lambda arrays: arrays.update(passed=np.array(12))),
    "forged negative": forged(lambda arrays: arrays.update(passed=np.array(-5))),
    "forged text": forged(lambda arrays: arrays.update(files=np.array("[[1,2]"))),
    "forged list": forged(lambda arrays: arrays.update(files=np.array("[[1],[2],[3]]"))),
    "forged pieces": forged(lambda arrays: arrays.pop("class_0.cut.weights.at")),
    "forged block": forged(lambda arrays: arrays.update({"class_0.cut.weights.block": np.array(10**9)})),
    "forged counts": forged(lambda arrays: arrays.update({"class_0.sums.counts": np.array([-1, 0, 0, 0])})),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_edited_state_is_refused_and_left(tmp_path, damage):
    scan, state = stopped(tmp_path)
    edited(state, DAMAGES[damage])
    before = state.read_bytes()
    with pytest.raises(aope.InvalidFile, match="is not the state of a stopped pass"):
        aope.bound_stream(scan, asked(), resume=state)
    assert state.read_bytes() == before


@pytest.mark.parametrize("cut", [0, 3, 100, -1, -200])
def test_a_state_that_is_cut_off_is_refused_and_left(tmp_path, cut):
    scan, state = stopped(tmp_path)
    content = state.read_bytes()[:cut]
    state.write_bytes(content)
    with pytest.raises(aope.InvalidFile, match="is not the state of a stopped pass"):
        aope.bound_stream(scan, asked(), resume=state)
    assert state.read_bytes() == content


def test_every_byte_that_is_turned_is_noticed_or_counts_for_nothing(tmp_path):
    """Refused, or the same bits: never another interval."""
    scan, state = stopped(tmp_path)
    expected, content = aope.bound_stream(scan, asked()), state.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(0, len(content), 40):
        state.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        try:
            same_bits(aope.bound_stream(scan, asked(), resume=state), expected)
        except aope.InvalidInput:
            refused += 1
    assert refused > 30


def test_other_files_are_refused_and_left(tmp_path):
    scan, _ = stopped(tmp_path)
    other = tmp_path / "other.npz"
    aope.stream_statistic(scan, asked()).save(other)
    before = other.read_bytes()
    with pytest.raises(aope.InvalidFile, match="is not the state of a stopped pass"):
        aope.bound_stream(scan, asked(), resume=other)
    assert other.read_bytes() == before
    with pytest.raises(aope.InvalidInput, match=r"must be a file that ends in .npz"):
        aope.bound_stream(scan, asked(), resume=tmp_path / "log" / "part-0.parquet")
    with pytest.raises(aope.InvalidFile, match="there is no folder"):
        aope.bound_stream(scan, asked(), resume=tmp_path / "nowhere" / "state.npz")


def test_nothing_of_it_is_unpickled(tmp_path):
    scan, state = stopped(tmp_path)
    edited(state, lambda arrays: arrays.update(asked=np.array([print], dtype=object)))
    with pytest.raises(aope.InvalidFile, match="is not the state of a stopped pass"):
        aope.bound_stream(scan, asked(), resume=state)


def test_a_state_that_ends_within_a_part_is_refused(tmp_path):
    """Rows between its end and that of the part would be in no sum."""
    scan, state = stopped(tmp_path)

    def fewer(arrays):
        arrays["passed"] = arrays["passed"] - 5
        arrays["class_0.rows"] = arrays["class_0.rows"][:-5]
        arrays["class_0.sums.counts"] = arrays["class_0.sums.counts"] - np.array([5, 0, 0, 0])
        ones = len(arrays["class_0.sums.column_squares"]) - 2
        for name in ("data_moments", "next_moments"):
            arrays[f"class_0.sums.{name}"][ones, ones] -= 5
        arrays["class_0.sums.column_squares"][ones + 1] -= 5

    edited(state, forged(fewer))
    with pytest.raises(aope.InvalidFile, match="rows end within a part"):
        aope.bound_stream(scan, asked(), resume=state)
