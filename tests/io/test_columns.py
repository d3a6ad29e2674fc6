"""No column is left out in silence: it is read, or listed, or refused."""

import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.io import FileColumns, read_start_file, read_transition_file

LOG = {
    "state": [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]],
    "action": [0, 1, 0],
    "reward": [0.0, 0.5, 1.0],
    "next_state": [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]],
    "terminated": [False, False, True],
    "target_probability": [[0.5, 0.5]] * 3,
    "next_target_probability": [[0.5, 0.5]] * 3,
}
STARTS = {"state": [[0.0, 1.0], [1.0, 2.0]], "weight": [1.0, 3.0], "target_probability": [[0.5, 0.5]] * 2}


def write(path, columns):
    pq.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)
    return path


@pytest.fixture
def log(tmp_path):
    return lambda **changes: write(tmp_path / "log.parquet", LOG | changes)


@pytest.fixture
def starts(tmp_path):
    return lambda **changes: write(tmp_path / "starts.parquet", STARTS | changes)


def test_columns_that_nothing_reads_are_listed(log, starts):
    file = read_transition_file(log(x=[1, 2, 3], y=["a", "b", "c"], q=[1.0] * 3))
    assert (file.columns.unused, file.columns.aliases, file.columns.ignored) == (("x", "y"), (), ())
    assert list(file.columns.sentences()) == [f"Columns not used: x, y ({file.columns.file})."]
    assert file.q is not None
    without = read_transition_file(log(x=[1, 2, 3], q=[float("nan")] * 3), policy=False, estimate=False)
    assert without.columns.unused == ("target_probability", "next_target_probability", "x", "q")
    assert without.at_next is None and without.q is None
    assert read_start_file(starts(ward=["a", "b"])).columns.unused == ("ward",)
    many = FileColumns("log", unused=tuple(f"c{k}" for k in range(1000)))
    [sentence] = many.sentences()
    assert "c19 and 980 more" in sentence and "c20" not in sentence


@pytest.mark.parametrize(
    "name", ["truncated", "truncations", "timeouts", "t", "step", "hour", "next_action", "next_reward", "a", "Q0x"]
)
def test_other_names_are_no_near_misses(log, name):
    assert read_transition_file(log(**{name: [1.0] * 3})).columns.unused == (name,)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("done", "terminated"),
        ("dones", "terminated"),
        ("Done", "terminated"),
        ("terminal", "terminated"),
        ("is_terminal", "terminated"),
        ("Terminated", "terminated"),
        ("TERMINATED", "terminated"),
        ("terminate", "terminated"),
        ("termianted", "terminated"),
        ("Reward", "reward"),
        ("rewrad", "reward"),
        ("states", "state"),
        ("State_0", "state"),
        ("state[0]", "state"),
        ("state1", "state"),
        ("nextState", "next_state"),
        ("next_states", "next_state"),
        ("next-state", "next_state"),
        ("Observation", "state"),
        ("episodes", "episode"),
        ("target_probabilities", "target_probability"),
        ("target_probs", "target_probability"),
        ("next_target_probabilites", "next_target_probability"),
        ("Q", "q"),
        ("nextq", "next_q"),
    ],
)
def test_near_misses_are_refused(log, name, meant):
    path = log(**{name: [1.0] * 3})
    with pytest.raises(aope.InvalidFile, match=r"did you mean") as caught:
        aope.load_transitions(path)
    sentence = str(caught.value)
    assert (
        f"has a column `{name}`, which is not read: did you mean `{meant}`" in sentence
        and f"--ignore-column {shlex.quote(name)}" in sentence
    )
    assert len(aope.load_transitions(path, ignore=[name])) == 3
    assert read_transition_file(path, ignore=name).columns.ignored == (name,)


def test_a_doubtful_name_is_explained(log):
    with pytest.raises(aope.InvalidFile, match="Only if it is False where an episode was merely cut off"):
        aope.load_transitions(log(done=[False, False, True], terminated=None))


@pytest.mark.parametrize("name", ["weights", "Weight", "probability"])
def test_near_misses_in_start_states_are_refused(starts, name):
    path = starts(weight=None, **{name: [1.0, 3.0]})
    with pytest.raises(aope.InvalidFile, match=f"`{name}`, which is not read: did you mean `weight`"):
        aope.load_starts(path)
    assert aope.load_starts(path, ignore=[name]).weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "names",
    [
        {
            "state": "observations",
            "action": "actions",
            "reward": "rewards",
            "next_state": "next_observations",
            "terminated": "terminals",
        },
        {"state": "obs", "next_state": "next_obs", "terminated": "terminations"},
        {"state": "observation", "next_state": "next_observation"},
        {"state": "obs", "next_state": "obs_next"},
    ],
)
def test_names_of_other_tools_are_read_and_reported(log, names):
    wanted = aope.load_transitions(log())
    file = read_transition_file(log(**dict.fromkeys(names), **{new: LOG[old] for old, new in names.items()}))
    for field in ("states", "actions", "rewards", "next_states", "terminated"):
        np.testing.assert_array_equal(getattr(file.data, field), getattr(wanted, field))
    assert dict(file.columns.aliases) == {new: old for old, new in names.items()}
    new, old = file.columns.aliases[0]
    assert f"Column {new} read as {old} ({file.columns.file})." in file.columns.sentences()


def test_numbered_columns_of_another_name(log):
    file = read_transition_file(log(state=None, obs_1=[1.0, 2.0, 3.0], obs_0=[0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(file.data.states, LOG["state"])
    assert file.columns.aliases == (("obs_1", "state_1"), ("obs_0", "state_0"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"terminals": [0, 0, 1]}, "has columns `terminated` and `terminals`, each of which may be the `terminated`"),
        ({"obs_0": [0.0] * 3}, "has columns `state` and `obs_0`, each of which may be the `state`"),
        ({"state": None, "state_0": [0.0] * 3, "state_2": [0.0] * 3}, "has a column `state_2` but no `state_1`"),
        ({"state": None, "state_1": [0.0] * 3, "state_2": [0.0] * 3}, "has a column `state_2` but no `state_0`"),
        ({"state_0": [0.0] * 3}, "has both `state` and `state_0`: give one list column or numbered ones, not both"),
        ({"state": None, "state_0": ["0"] * 3, "state_1": [0.0] * 3}, "column `state_0` must hold numbers. It holds text"),
        ({"state": None, "state_0": [[0.0]] * 3}, "column `state_0` must hold one number per row"),
    ],
)
def test_columns_that_could_be_read_in_two_ways_are_refused(log, changes, message):
    with pytest.raises(aope.InvalidFile, match=message):
        aope.load_transitions(log(**changes))


def test_what_is_ignored_is_not_there(log):
    file = read_transition_file(log(state_0=[9.0] * 3), ignore=["state_0", "terminated", "nowhere"])
    assert not file.data.terminated.any() and file.columns.ignored == ("terminated", "state_0")
    with pytest.raises(aope.InvalidFile, match="has no column `reward`"):
        aope.load_transitions(log(), ignore=["reward"])


def test_a_column_that_stands_twice(tmp_path):
    table = pa.table([pa.array(values) for values in (*LOG.values(), [1.0] * 3)], names=[*LOG, "reward"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(aope.InvalidFile, match="has several columns called `reward`"):
        aope.load_transitions(tmp_path / "twice.parquet")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [1.2, -0.2], [0.5, 0.5]], r"has a negative probability: \[1.2, -0.2\], in row 1"),
        ([[0.5, 0.5], [0.5, float("nan")], [0.5, 0.5]], "has NaN or infinite entries, first in row 1"),
        ([[0.5, 0.49], [0.5, 0.5], [0.5, 0.5]], r"must hold probabilities that sum to one. These are .*, sum 0.99, in row 0"),
        ([[50.0, 50.0]] * 3, ".* These look like percent, sum 100, in row 0"),
        (
            [0.5, 0.3, 1.0],
            "must hold the probabilities of all actions, a list or numbered columns. It holds one number, 0.5, in row 0",
        ),
        (["a", "b", "c"], "must hold numbers. It holds text"),
    ],
)
@pytest.mark.parametrize("column", ["target_probability", "next_target_probability"])
def test_probabilities_are_checked_where_they_are_read(log, starts, column, rows, message):
    with pytest.raises(aope.InvalidFile, match=f"log.parquet: column `{column}` {message}"):
        read_transition_file(log(**{column: rows}))
    if column == "target_probability":
        with pytest.raises(aope.InvalidFile, match=f"starts.parquet: column `{column}` {message}"):
            read_start_file(starts(weight=None, state=LOG["state"], **{column: rows}))


def test_probabilities_fit_the_actions(log):
    with pytest.raises(aope.InvalidFile, match="`actions` has index 2 in row 1, but `next_target_probability` has .* 2 actions"):
        read_transition_file(log(action=[0, 2, 1]))
    with pytest.raises(aope.InvalidFile, match="They have 3 and 2"):
        read_transition_file(log(target_probability=[[0.2, 0.3, 0.5]] * 3))


def test_what_stands_after_the_end_is_not_used(log):
    rows = [[0.5, 0.5], [0.5, 0.5], [float("nan"), 7.0]]
    assert read_transition_file(log(next_target_probability=rows)).at_next is not None


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path):
    (tmp_path / "run=1").mkdir()
    path = write(tmp_path / "run=1" / "log.parquet", LOG)
    assert read_transition_file(path).columns.unused == ()
