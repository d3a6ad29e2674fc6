"""Columns that show when: whatever their type, rows of an episode in another order are refused, through every door."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import accountable_ope as aope
from accountable_ope.io.frames import read_frame
from accountable_ope.io.reading import read_transition_file

ROWS = {"state": [3.0, 1, 0, 2, 4], "action": [0, 1, 0, 1, 0], "reward": [0.5] * 5, "episode": ["e"] * 5}
LIBRARIES = {"pandas": pd.DataFrame, "Polars": pl.DataFrame, "Arrow": pa.table}
DAY = dt.datetime(2020, 1, 1, 10)

KINDS = {
    "whole numbers": (lambda k: 2**60 + k, f"from {2**60 + 3} in row 1 to {2**60 + 2} in row 2"),
    "numbers": (lambda k: k / 2, "from 1.5 in row 1 to 1 in row 2"),
    "dates": (lambda k: dt.date(2020, 1, 1 + k), "from 2020-01-04 in row 1 to 2020-01-03 in row 2"),
    "timestamps": (lambda k: DAY + dt.timedelta(days=k), "from 2020-01-04 10:00:00 in row 1 to 2020-01-03 10:00:00 in row 2"),
    "durations": (lambda k: dt.timedelta(days=k), "from 3 days, 0:00:00 in row 1 to 2 days, 0:00:00 in row 2"),
    "text of timestamps": (lambda k: f"2020-01-0{k + 1} 10:00", "from 2020-01-04 10:00 in row 1 to 2020-01-03 10:00 in row 2"),
    "text of dates": (lambda k: f"2320-01-0{k + 1}", "from 2320-01-04 in row 1 to 2320-01-03 in row 2"),
    "text with time zones": (lambda k: f" 2020-01-01T08:00:00-0{k}:00", "-03:00 in row 1 to .*-02:00 in row 2"),
    "text of numbers": (lambda k: str(k + 7), "from 10 in row 1 to 9 in row 2"),
    "times of day": (
        lambda k: dt.time(10, 30 + k),
        "from 10:33:00 in row 1 to 10:32:00 in row 2: a time of day that starts again",
    ),
    "text of times of day": (lambda k: f"10:3{k}", "from 10:33 in row 1 to 10:32 in row 2: a time of day that starts again"),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KINDS)
def test_time_that_goes_backward(library, kind):
    of, message = KINDS[kind]
    frame = LIBRARIES[library]
    with pytest.raises(aope.InvalidInput, match=f"in the order of time. `time` goes .*{message}") as caught:
        aope.from_dataframe(frame({**ROWS, "time": [of(k) for k in (1, 3, 2, 4, 5)]}))
    assert "\n" not in str(caught.value)
    ordered = read_frame(frame({**ROWS, "time": [of(k) for k in (1, 2, 2, 3, 4)]}))
    assert len(ordered.data) == 4 and not any("not checked" in each for each in ordered.columns.remarks)


@pytest.mark.parametrize(
    "kind", ["dates", "timestamps", "text of timestamps", "text of dates", "times of day", "text of times of day"]
)
def test_a_frame_and_its_files_agree(kind, tmp_path):
    of, _ = KINDS[kind]
    frame = pd.DataFrame({**ROWS, "time": [of(k) for k in (1, 3, 2, 4, 5)]})
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        with pytest.raises(aope.InvalidFile, match="in the order of time"):
            aope.load_transitions(tmp_path / name)
        assert len(aope.load_transitions(tmp_path / name, ignore="time")) == 4


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({**ROWS, "t": pd.Categorical([1, 3, 2, 4, 5])}),
        pd.DataFrame({**ROWS, "t": pd.Categorical(pd.to_datetime([f"2020-01-0{k}" for k in (1, 3, 2, 4, 5)]))}),
        pd.DataFrame({**ROWS, "t": pd.Categorical([f"2020-01-0{k}" for k in (1, 3, 2, 4, 5)])}),
        pl.DataFrame({**ROWS, "t": pl.Series([f"10:3{k}" for k in (1, 3, 2, 4, 5)], dtype=pl.Categorical)}),
        pa.table({**ROWS, "t": pa.array([dt.date(2020, 1, k) for k in (1, 3, 2, 4, 5)]).dictionary_encode()}),
    ],
)
def test_categories_are_what_their_names_are(frame):
    with pytest.raises(aope.InvalidInput, match="in the order of time. `t` goes from .* in row 1 to .* in row 2"):
        aope.from_dataframe(frame)


def test_midnight_within_an_episode():
    times = [dt.time(23, 40), dt.time(23, 50), dt.time(0, 0), dt.time(0, 10), dt.time(0, 20)]
    message = (
        "`time` goes from 23:50:00 in row 1 to 00:00:00 in row 2: a time of day that starts again at midnight goes backward, so"
    )
    with pytest.raises(aope.InvalidInput, match=message):
        aope.from_dataframe(pd.DataFrame({**ROWS, "time": times}))
    nights = {**ROWS, "episode": [1, 1, 2, 2, 2]}
    assert len(aope.from_dataframe(pd.DataFrame({**nights, "time": times}))) == 3


def test_a_column_of_another_name_is_called_by_it():
    frame = pd.DataFrame({**ROWS, "day": [1, 3, 2, 4, 5]})
    with pytest.raises(aope.InvalidInput, match=r"`day` \(read as t\) goes from 3 in row 1 to 2 in row 2"):
        read_frame(frame, columns={"t": "day"})


@pytest.mark.parametrize(
    ("entries", "held"),
    [
        (
            ["01/02/2020", "01/03/2020", "01/01/2020", "01/05/2020", "01/04/2020"],
            "it holds text that is not throughout a time such as",
        ),
        (["2020-01-01", "2020-01-03", "10:30", "2020-01-02", "7"], "it holds text"),
        ([True, False, True, False, True], "it holds bool"),
        ([[1.0]] * 5, "it holds .*list"),
    ],
)
def test_what_cannot_be_compared_is_remarked(entries, held, tmp_path):
    frame = pd.DataFrame({**ROWS, "time": entries})
    frame.to_parquet(tmp_path / "log.parquet")
    for file in (read_frame(frame), read_transition_file(tmp_path / "log.parquet")):
        assert len(file.data) == 4
        [remark] = [each for each in file.columns.remarks if "not checked" in each]
        assert remark.startswith("The order of rows was not checked by `time`: it holds") and held.split(".*")[-1] in remark


def test_missing_times_are_remarked():
    file = read_frame(pl.DataFrame({**ROWS, "time": [1.0, None, 0.5, float("nan"), 0.25]}))
    assert any("not checked by `time` where it has 2 missing values" in each for each in file.columns.remarks)
    with pytest.raises(aope.InvalidInput, match="`time` goes from 2 in row 3 to 1 in row 4"):
        read_frame(pl.DataFrame({**ROWS, "time": [None, None, 1, 2, 1]}))
