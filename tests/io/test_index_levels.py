"""Levels of an index of pandas are columns, whether the frame is read, its file or its Arrow table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import accountable_ope as aope
from accountable_ope.io.frames import read_frame
from accountable_ope.io.reading import read_transition_file

ROWS = {
    "episode": ["a"] * 3 + ["b"] * 3,
    "step": [0, 1, 2, 0, 1, 2],
    "state": [0.0, 1, 2, 3, 4, 5],
    "action": [0, 1, 0, 1, 0, 1],
    "reward": [0.0, 1, 0, 1, 0, 1],
    "terminated": [False, False, True] * 2,
}
AFTER = {"next_state": [1.0, 2, 3, 4, 5, 6]}


def by_file(frame, folder):
    frame.to_parquet(folder / "log.parquet")
    return aope.load_transitions(folder / "log.parquet")


def by_parts(frame, folder):
    frame.to_parquet(folder / "log.parquet", row_group_size=2)
    [data] = aope.scan_transitions(folder / "log.parquet")
    return data


DOORS = {
    "frame": lambda frame, folder: aope.from_dataframe(frame),
    "Arrow": lambda frame, folder: aope.from_dataframe(pa.Table.from_pandas(frame)),
    "Parquet": by_file,
}
PARTS = {**DOORS, "parts": by_parts}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "levels", [["step"], ["terminated"], ["episode", "terminated"], ["episode", "step"], ["state", "action"]]
)
def test_a_log_with_columns_in_its_index(door, levels, tmp_path):
    wanted = aope.from_dataframe(pd.DataFrame(ROWS))
    found = DOORS[door](pd.DataFrame(ROWS).set_index(levels), tmp_path)
    assert found.sha256 == wanted.sha256 and found.terminated.sum() == 2 and found.number_of_episodes == 2


@pytest.mark.parametrize("door", PARTS)
@pytest.mark.parametrize("levels", [["terminated"], ["episode", "terminated"], ["next_state", "reward"]])
def test_a_log_with_next_states(door, levels, tmp_path):
    wanted = aope.from_dataframe(pd.DataFrame({**ROWS, **AFTER}))
    found = PARTS[door](pd.DataFrame({**ROWS, **AFTER}).set_index(levels), tmp_path)
    assert found.sha256 == wanted.sha256 and found.terminated.sum() == 2


@pytest.mark.parametrize("door", DOORS)
def test_an_order_that_the_index_contradicts(door, tmp_path):
    frame = pd.DataFrame(ROWS).drop(columns="terminated").iloc[[2, 1, 0, 5, 4, 3]].set_index("step")
    with pytest.raises(aope.InvalidInput, match="In episode a `step` goes from 2 in row 0 to 1 in row 1: sort the rows"):
        DOORS[door](frame, tmp_path)


@pytest.mark.parametrize("door", PARTS)
def test_an_index_that_only_counts_rows_and_has_a_name(door, tmp_path):
    """Parquet files and Arrow tables keep it in their metadata, not in a column."""
    rows = {name: each for name, each in {**ROWS, **AFTER}.items() if name not in ("episode", "step")}
    found = PARTS[door](pd.DataFrame(rows).rename_axis("episode"), tmp_path)
    assert found.number_of_episodes == 6
    assert PARTS[door](pd.DataFrame(rows), tmp_path).number_of_episodes is None
    part = pd.DataFrame(rows).rename_axis("episode").iloc[1:5:2]
    assert PARTS[door](part, tmp_path).number_of_episodes == 2


def test_parts_of_an_index_that_counts_rows(tmp_path):
    rows = {name: each for name, each in {**ROWS, **AFTER}.items() if name not in ("reward", "step")}
    frame = pd.DataFrame(rows, index=pd.RangeIndex(10, -2, -2, name="reward"))
    frame.to_parquet(tmp_path / "log.parquet", row_group_size=4)
    parts = list(aope.scan_transitions(tmp_path / "log.parquet", batch_rows=3))
    assert np.concatenate([part.rewards for part in parts]).tolist() == [10, 8, 6, 4, 2, 0]
    assert aope.scan_transitions(tmp_path / "log.parquet").after(3).rows == 3
    [rest] = aope.scan_transitions(tmp_path / "log.parquet").after(3)
    assert rest.rewards.tolist() == [4, 2, 0]


def test_an_index_without_a_name_is_no_column(tmp_path):
    frame = pd.DataFrame(ROWS)
    for each in (frame, frame.set_axis(np.arange(6)[::-1]), frame.set_axis(list("zyxwvu")), frame.sort_values("episode")):
        file = read_frame(each)
        assert file.columns.unused == () and file.data.sha256 == by_file(each, tmp_path).sha256
    half = frame.set_index([frame.index, "step"])
    assert half.index.names == [None, "step"] and len(aope.from_dataframe(half)) == 6


def test_a_level_that_nobody_reads_is_listed(tmp_path):
    frame = pd.DataFrame(ROWS).set_index(pd.Index(range(3, 9), name="hour"))
    frame.to_parquet(tmp_path / "log.parquet")
    assert read_frame(frame).columns.unused == ("hour",) == read_transition_file(tmp_path / "log.parquet").columns.unused
    assert read_frame(frame, ignore="hour").columns.ignored == ("hour",)


def test_levels_stand_behind_the_columns_as_in_a_file(tmp_path):
    frame = pd.DataFrame({**ROWS, "state_b": ROWS["state"], "state_a": [7.0] * 6}).drop(columns="state").set_index("state_b")
    assert aope.from_dataframe(frame).naming.states == ("state_a", "state_b") == by_file(frame, tmp_path).naming.states


def test_levels_of_all_kinds_and_columns_that_are_categories():
    frame = pd.DataFrame(ROWS)
    frame["episode"] = frame["episode"].astype("category")
    frame["state"] = ["low", "high", "low", "high", "low", "high"]
    levels = frame.set_index(["episode", "state"])
    levels.columns = pd.CategoricalIndex(levels.columns)
    data = aope.from_dataframe(levels)
    assert data.naming.states == ("state=high", "state=low") and data.number_of_episodes == 2


def test_start_states(tmp_path):
    data = aope.from_dataframe(pd.DataFrame(ROWS))
    frame = pd.DataFrame({"state": [0.0, 3.0], "weight": [1, 3]}).set_index("weight")
    starts = aope.starts_from_dataframe(frame, naming=data.naming)
    frame.to_parquet(tmp_path / "starts.parquet")
    assert starts.weights.tolist() == [0.25, 0.75] == aope.load_starts(tmp_path / "starts.parquet").weights.tolist()


LEVELS = {
    "a column and a level": (pd.DataFrame(ROWS).set_index("step", drop=False), "has `step` as a level of its index and as"),
    "two levels": (
        pd.DataFrame(ROWS, index=pd.MultiIndex.from_arrays([range(6), range(6)], names=["hour", "hour"])),
        "has `hour` as a level of its index and as another level or a column: rename one of them, or take .*reset_index",
    ),
    "a number for a name": (pd.DataFrame(ROWS).rename_axis(0), "has a level of its index called 0, which is no text: rename it"),
}


@pytest.mark.parametrize("case", LEVELS)
def test_names_that_do_not_say_which(case):
    frame, message = LEVELS[case]
    with pytest.raises(aope.InvalidInput, match=message) as caught:
        aope.from_dataframe(frame)
    assert "\n" not in str(caught.value)
    assert len(aope.from_dataframe(frame.reset_index(drop=True))) == 6


def test_frames_without_an_index():
    assert len(aope.from_dataframe(pl.DataFrame(ROWS))) == 6 == len(aope.from_dataframe(pa.table(ROWS)))
