"""Words in files: categories of the state, labels of actions, and who refuses them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.io import read_start_file, read_transition_file

LINES = (
    "patient,age,ward,action,reward,terminated,target_action",
    "a,61,icu,none,0.5,no,high",
    "a,62,surgery,high,0,no,high",
    "a,63,icu,none,1,yes,low",
    "b,40,surgery,none,0,no,none",
    "b,41,icu,high,0,yes,none",
)
NAMES = {"state": ["age", "ward"], "episode": "patient"}


@pytest.fixture
def log(tmp_path):
    def write(*lines, name="log.csv"):
        (tmp_path / name).write_text("\n".join(lines or LINES) + "\n")
        return tmp_path / name

    return write


def test_what_words_were_read_as_is_said(log):
    file = read_transition_file(log(), columns=NAMES)
    said = " ".join(file.columns.sentences())
    assert "Column ward holds words, read as columns of zeros and ones: ward=icu, ward=surgery" in said
    assert "Column action holds labels of actions, numbered 0 high, 1 low, 2 none" in said
    assert file.columns.states == ("age", "ward=icu", "ward=surgery")


def test_the_target_policy_speaks_of_the_same_actions(log):
    """`low` is no action of the log, and one of the target policy."""
    file = read_transition_file(log(), columns=NAMES)
    assert file.data.actions.tolist() == [2, 0, 2, 2, 0] and file.data.naming.actions == ("high", "low", "none")
    assert file.at_state.argmax(axis=1).tolist() == [0, 0, 1, 2, 2]


def test_start_states_are_read_by_the_words_of_the_log(log):
    naming = aope.load_transitions(log(), columns=NAMES, ignore="target_action").naming
    path = log("age,ward,target_action", "50,surgery,none", name="starts.csv")
    file = read_start_file(path, columns=NAMES, naming=naming)
    assert file.starts.states.tolist() == [[50, 0, 1]] and file.at_state.tolist() == [[0, 1]]
    with pytest.raises(aope.InvalidFile, match="column `ward` must hold numbers. It holds text"):
        aope.load_starts(path, columns=NAMES)
    with pytest.raises(aope.InvalidFile, match="`target_action` holds 'twice' in row 0 .line 2., which is none of high, none"):
        read_start_file(log("age,ward,target_action", "50,icu,twice", name="starts.csv"), columns=NAMES, naming=naming)


def test_a_log_that_is_read_in_parts_refuses_words(tmp_path):
    rows = {"state": ["a", "b", "a"], "action": [0, 1, 0], "reward": [0.0] * 3, "next_state": ["b", "a", "b"]}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    assert aope.load_transitions(tmp_path / "log.parquet").states.tolist() == [[1, 0], [0, 1], [1, 0]]
    with pytest.raises(aope.InvalidFile, match="column `state` must hold numbers. It holds text"):
        next(iter(aope.scan_transitions(tmp_path / "log.parquet")))


def test_words_and_numbers_do_not_mix_over_a_step(tmp_path):
    rows = {"state": ["a", "b", "a"], "action": [0, 1, 0], "reward": [0.0] * 3, "next_state": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    with pytest.raises(aope.InvalidFile, match="column `next_state` must hold words, as `state` does. It holds double"):
        aope.load_transitions(tmp_path / "log.parquet")


def test_observations_that_rllib_has_packed_are_recognized(tmp_path):
    packed = [f"BCJNGGhA{k}==" for k in range(60)]
    rows = {"eps_id": ["e"] * 60, "obs": packed, "actions": [0, 1] * 30, "rewards": [0.0] * 60, "new_obs": packed}
    pq.write_table(pa.table({**rows, "terminateds": [False] * 60}), tmp_path / "run.parquet")
    with pytest.raises(aope.InvalidFile, match="output_compress_columns=.."):
        aope.load_transitions(tmp_path / "run.parquet")


def test_episodes_that_rllib_has_packed_are_recognized(tmp_path):
    pq.write_table(pa.table({"item": [b"\x81\xa3", b"\x82"]}), tmp_path / "run.parquet")
    with pytest.raises(aope.InvalidFile, match="output_write_episodes=False"):
        aope.load_transitions(tmp_path / "run.parquet")


def test_rllib_columns_need_no_names(tmp_path):
    seen = np.arange(8.0).reshape(4, 2)
    rows = {
        "eps_id": ["e"] * 4,
        "agent_id": [None] * 4,
        "obs": seen.tolist(),
        "actions": [0, 1, 0, 1],
        "rewards": [0.0, 0.5, 1.0, 0.0],
        "new_obs": (seen + 2).tolist(),
        "terminateds": [False, False, False, True],
        "truncateds": [False] * 4,
    }
    field = pa.field("obs", pa.list_(pa.float64()), metadata={"ARROW:extension:name": "ray.data.arrow_tensor_v2"})
    table = pa.table(rows).set_column(2, field, pa.array(seen.tolist()))
    pq.write_table(table, tmp_path / "run.parquet")
    data = aope.load_transitions(tmp_path / "run.parquet")
    assert data.terminated.tolist() == [False, False, False, True] and np.array_equal(data.states, seen)
    del rows["new_obs"]
    pq.write_table(pa.table({**rows, "truncateds": [False, True, False, False]}), tmp_path / "cut.parquet")
    with pytest.raises(aope.InvalidFile, match="Row 1 is truncated, and its episode goes on in row 2"):
        aope.load_transitions(tmp_path / "cut.parquet")
