"""Data frames: what is read, what is named, and what is refused in one sentence."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import accountable_ope as aope
from accountable_ope.problem import Naming

ROWS = {
    "patient": [1, 1, 1, 2, 2],
    "age": [61.0, 61.5, 62.0, 40.0, 41.0],
    "ward": ["icu", "icu", "surgery", "surgery", "icu"],
    "drug": ["none", "high", "none", "low", "none"],
    "outcome": [0.0, 0.5, 1.0, 0.0, 0.5],
    "died": [False, False, True, False, False],
}
NAMES = {"state": ["age", "ward"], "action": "drug", "reward": "outcome", "terminated": "died", "episode": "patient"}
LIBRARIES = {"pandas": pd.DataFrame, "Polars": pl.DataFrame, "Arrow": pa.table}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]


def read(frame, **changes):
    return aope.from_dataframe(frame, **{name: each for name, each in {**NAMES, **changes}.items() if each is not None})


def test_next_states_follow_and_the_last_row_that_goes_on_is_counted(library):
    data = read(library(ROWS))
    assert data.states.tolist() == [[61, 1, 0], [61.5, 1, 0], [62, 0, 1], [40, 0, 1]]
    assert data.next_states.tolist() == [[61.5, 1, 0], [62, 0, 1], [62, 0, 1], [41, 1, 0]]
    assert data.left_out == 1 and data.actions.tolist() == [2, 0, 2, 1] and data.episodes.tolist() == [0, 0, 0, 1]


def test_columns_of_next_states(library):
    data = read(
        library({**ROWS, "age_after": [61.5, 62, np.nan, 41, 42], "ward_after": ["icu", "surgery", None, "icu", "recovery"]}),
        next_state=["age_after", "ward_after"],
    )
    assert data.naming.states == ("age", "ward=icu", "ward=recovery", "ward=surgery") and len(data) == 5
    assert data.next_states[[0, 1, 3, 4]].tolist() == [[61.5, 1, 0, 0], [62, 0, 0, 1], [41, 1, 0, 0], [42, 0, 1, 0]]


def test_columns_beside_those_of_the_state_are_found(library):
    data = read(library({**ROWS, "next_age": ROWS["age"], "next_ward": ROWS["ward"]}))
    assert len(data) == 5 and data.left_out == 0 and np.array_equal(data.states, data.next_states)


def test_known_names_need_no_argument(library):
    rows = {"state": ROWS["age"], "action": [0, 1, 0, 1, 0], "reward": ROWS["outcome"], "episode": ROWS["patient"]}
    data = aope.from_dataframe(library(rows))
    assert len(data) == 3 and data.left_out == 2


def test_lists_are_states(library):
    rows = {"state": [[0.0, 1.0]] * 3, "action": [0, 1, 0], "reward": [0.0, 0.5, 1.0], "next_state": [[1.0, 2.0]] * 3}
    assert aope.from_dataframe(library(rows)).states.shape == (3, 2)


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ([-1, 0, -1, 1, 0], [-1, 0, 1]),
        ([0.5, 0.25, 0.5, 1.0, 0.25], [0.5, 0.25, 1.0]),
        (["b", "a", "b", "c", "a"], ["b", "a", "c", "d"]),
        ([datetime.date(2026, 1, day) for day in (2, 1, 2, 3, 1)], [datetime.date(2026, 1, day) for day in (2, 1, 3)]),
        ([True, False, True, True, False], [True, False]),
    ],
)
def test_labels_of_any_type(library, column, labels):
    data = read(library({**ROWS, "drug": column}), actions=labels)
    assert data.actions.tolist() == [labels.index(each) for each in column[:4]]
    assert data.naming.actions == tuple(each if isinstance(each, str | int | float) else str(each) for each in labels)


def test_an_order_of_categories_is_kept_with_those_that_do_not_occur():
    order = ["none", "low", "high", "twice"]
    frame = pd.DataFrame({**ROWS, "drug": pd.Categorical(ROWS["drug"], order, ordered=True)})
    assert read(frame).naming.actions == tuple(order)
    assert read(pl.DataFrame(ROWS).with_columns(pl.col("drug").cast(pl.Enum(order)))).naming.actions == tuple(order)


def test_one_column_of_continuous_actions(library):
    data = read(library({**ROWS, "drug": [0.1, 0.2, 0.3, 0.4, 0.5]}), action=["drug"])
    assert data.actions.tolist() == [[0.1], [0.2], [0.3], [0.4]]


def test_flags_and_numbers_as_categories_are_numbers(library):
    assert read(library({**ROWS, "age": [True, False, True, True, False]})).states[:, 0].tolist() == [1, 0, 1, 1]
    frame = pd.DataFrame(ROWS).astype({"age": "category"})
    assert read(frame).states[:, 0].tolist() == ROWS["age"][:4]


def test_start_states_by_the_names_of_the_log(library):
    data = read(library(ROWS))
    starts = aope.starts_from_dataframe(
        library({"ward": ["surgery", "icu"], "age": [50.0, 60.0], "w": [1, 3]}), naming=data.naming, weight="w"
    )
    assert starts.states.tolist() == [[50, 0, 1], [60, 1, 0]] and starts.weights.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"ward": ["garden"], "age": [50.0]}, "`ward` holds 'garden' in row 0, which is none of icu, surgery"),
        ({"ward": [1.0], "age": [50.0]}, "`ward` holds numbers, and `ward` of the log words"),
        ({"ward": ["icu"]}, "columns of the state of the log, age, ward. It has none"),
        ({"state": ["icu"]}, "must have the columns of the state of the log, age, ward. It has state"),
    ],
)
def test_start_states_of_another_kind_are_refused(library, rows, message):
    with pytest.raises(aope.InvalidInput, match=message):
        aope.starts_from_dataframe(library(rows), naming=read(library(ROWS)).naming)


def test_words_in_start_states_of_a_log_without_words_are_refused():
    naming = aope.Transitions([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 0.0]).naming
    with pytest.raises(aope.InvalidInput, match="columns of the state of the log"):
        aope.starts_from_dataframe(pd.DataFrame({"state": ["a", "b"]}), naming=naming)


class Thing:
    """An object of the user's."""


DAY = datetime.datetime(2026, 1, 1)
REFUSED = {
    "no such column": (
        {},
        {"state": ["age", "height"]},
        "`state` must name columns of the data frame. It has none called 'height'",
    ),
    "a near miss": ({}, {"reward": "Outcome"}, "none called 'Outcome'. Did you mean `outcome`"),
    "NaN": ({"outcome": [0.0, 0.5, float("nan"), 0.0, 0.5]}, {}, "row 2"),
    "NaN in a state": ({"age": [61.0, float("nan"), 62.0, 40.0, 41.0]}, {}, "row 1"),
    "an infinite state": ({"age": [61.0, 61.5, 62.0, float("inf"), 41.0]}, {}, "row 3"),
    "a missing word": ({"ward": ["icu", None, "surgery", "icu", "icu"]}, {}, "`ward` has 1 missing value .*row 1"),
    "a missing action": ({"drug": ["none", "high", None, "low", "none"]}, {}, "`drug` has 1 missing value .*row 2"),
    "an empty word": ({"ward": ["icu", "", "surgery", "icu", "icu"]}, {}, "`ward` must hold words. It holds an empty text"),
    "dates": (
        {"age": [DAY + datetime.timedelta(days=k) for k in range(5)]},
        {},
        "`age` must hold numbers. It holds .*: give what counts of it as a number, such as hours since the episode began",
    ),
    "durations": ({"age": [datetime.timedelta(days=k) for k in range(5)]}, {}, "hours since the episode began"),
    "decimals": ({"age": [decimal.Decimal(k) for k in range(5)]}, {}, "store it as floating-point numbers"),
    "numbers as text": ({"age": ["61", "61", "62", "40", "41"]}, {}, "`age` must hold numbers. It holds text"),
    "a slip of the pen": ({"age": ["61", "61", "62", "forty", "41"]}, {}, "It holds text, first 'forty' in row 3"),
    "decimal commas": ({"age": ["61,5", "61,5", "62,0", "40,1", "41,3"]}, {}, "It holds text, first '61,5' in row 0"),
    "percent": ({"age": ["5%", "61%", "62%", "40%", "41%"]}, {}, "It holds text, first '5%' in row 0"),
    "one word": ({"ward": ["icu"] * 5}, {}, "'icu' in every row, which tells nothing apart"),
    "words for rewards": ({"outcome": list("abcde")}, {}, "`outcome` must hold numbers. It holds text, first 'a' in row 0"),
    "negative actions": ({"drug": [-1, 0, 1, 0, 1]}, {}, "must be indices from 0. Got -1 in row 0"),
    "broken actions": ({"drug": [0.5, 0.0, 1.0, 0.0, 1.0]}, {}, "continuous actions are a list, action=.'dose'."),
    "an action that was not declared": (
        {},
        {"actions": ["none", "high"]},
        "`drug` holds 'low' in row 3, which is none of none, high",
    ),
    "labels twice": ({}, {"actions": ["none", "none"]}, "`actions` must be different labels"),
    "labels that are lists": ({}, {"actions": [["none"], ["high"]]}, "`actions` must be labels such as words or numbers"),
    "a flag that is none": ({"died": [0, 0, 2, 0, 0]}, {}, "`terminated` must be one True or False per row. Got 2 in row 2"),
    "an end in the middle": (
        {"died": [False, True, False, False, False]},
        {},
        "Row 1 is terminated, and its episode goes on in row 2",
    ),
    "no episode": ({}, {"episode": None}, "no `episode` by which .* Give one of them .episode='NAME'."),
    "no terminated": ({}, {"terminated": None}, None),
    "no action": ({}, {"action": None}, "has no column `action`.* Say which it is: action='NAME'"),
    "no state": ({}, {"state": None}, r"Say which it is: state=\['NAME', 'NAME'\]"),
    "a column for two things": ({}, {"reward": "age"}, "must name a column once"),
    "a name between blanks": (
        {" reward ": [0.0] * 5},
        {"reward": None},
        r"has a column ` reward `.*Say so .reward=' reward '., rename it, or leave it out by ignore=.' reward '..$",
    ),
    "a name with a comma": (
        {"Reward,": [0.0] * 5},
        {"reward": None},
        r"Say so .reward='Reward,'., rename it.*ignore=.'Reward,'..$",
    ),
    "a name that is no argument": (
        {"Step": [0, 1, 2, 0, 1]},
        {},
        r"did you mean `step`. Rename it, or leave it out by ignore=.'Step'..$",
    ),
    "a doubtful name": (
        {"done": [False] * 5},
        {"terminated": None},
        "did you mean `terminated`.*Say so .terminated='done'.*ignore=.'done'.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, library):
    changes, names, message = REFUSED[case]
    frame = library({**ROWS, **changes})
    if message is None:  # nothing says where episodes end
        assert not read(frame, **names).terminated.any()
        return
    with pytest.raises(aope.InvalidInput, match=message) as caught:
        read(frame, **names)
    assert "\n" not in str(caught.value) and "--" not in str(caught.value) and not isinstance(caught.value, aope.InvalidFile)


def many(words):
    rows = {"patient": [1] * words, "age": [0.5] * words, "ward": [f"w{k}" for k in range(words)], "drug": [0] * words}
    return {**rows, "outcome": [0.0] * words, "died": [False] * words}


def test_fifty_words_are_categories_and_more_are_identifiers(library):
    assert read(library(many(50))).states.shape[1] == 51
    with pytest.raises(aope.InvalidInput, match="at most 50 different words. It holds text, 51 different ones, first 'w0'"):
        read(library(many(51)))


@pytest.mark.parametrize("column", ["age", "drug", "outcome", "patient"])
@pytest.mark.parametrize("values", [[Thing() for _ in range(5)], [1, "x", 2.0, "y", 1], [1 + 2j] * 5, [{"a": 1}] * 5, [b"x"] * 5])
def test_columns_of_objects_are_refused(column, values):
    frame = pd.DataFrame({**ROWS, column: pd.Series(values, dtype=object)})
    with pytest.raises(aope.InvalidInput) as caught:
        read(frame)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_the_row_is_named_that_is_of_another_kind():
    frame = pd.DataFrame({**ROWS, "outcome": pd.Series([0, 0.5, 1, "yes", 0], dtype=object)})
    with pytest.raises(aope.InvalidInput, match="`outcome` must hold numbers.*numbers in row 0, text in row 3"):
        read(frame)


def test_columns_that_nobody_reads_may_hold_anything():
    frame = pd.DataFrame({**ROWS, "note": [Thing() for _ in range(5)], "when": [DAY] * 5})
    assert len(read(frame)) == 4


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "has several columns called `a`"),
        (pa.table([[1], [2]], names=["a", "a"]), "has several columns called `a`"),
        (pd.DataFrame({0: [1.0], 1: [2.0]}), "has a column called 0, which is no text"),
        (pd.DataFrame({("a", "b"): [1.0]}), "has a column called .'a', 'b'., which is no text"),
        (pd.DataFrame(), "has no columns"),
        (pd.DataFrame(ROWS).iloc[:0], "has no rows"),
        (pl.DataFrame(ROWS).clear(), "has no rows"),
        (pa.table(ROWS).slice(0, 0), "has no rows"),
        (pl.LazyFrame(ROWS), "Collect it first"),
        (pd.DataFrame(ROWS)["age"], "must be a data frame of pandas or Polars, or an Arrow table. Got Series"),
        (ROWS, "must be a data frame of pandas or Polars, or an Arrow table. Got dict"),
        (None, "Got None"),
        ("log.csv", "Got 'log.csv'"),
        (np.zeros((3, 3)), "Got an array of float64"),
    ],
)
def test_what_is_no_frame_is_refused(frame, message):
    with pytest.raises(aope.InvalidInput, match=message) as caught:
        aope.from_dataframe(frame, state="age", action="drug", reward="outcome")
    assert "\n" not in str(caught.value)


def test_a_frame_is_not_changed():
    frame = pd.DataFrame(ROWS)
    before = frame.copy(deep=True)
    read(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_names_survive_a_file_and_a_frame_of_it(tmp_path):
    data = read(pd.DataFrame(ROWS))
    aope.save_transitions(data, tmp_path / "log.parquet")
    again = aope.load_transitions(tmp_path / "log.parquet")
    assert again.naming == data.naming and again.sha256 == data.sha256 and again.left_out == 1
    assert isinstance(again.naming, Naming) and again.naming.words("ward").columns == ("ward=icu", "ward=surgery")


def test_whole_numbers_that_would_be_rounded_are_refused():
    frame = pa.table({"x": [2**53, 2**53 + 1, 3], "a": [0, 1, 0], "r": [0.0, 1.0, 0.5], "e": [1, 1, 1]})
    with pytest.raises(aope.InvalidInput, match="beyond 2\\^53, which are rounded to others, first in row 1"):
        aope.from_dataframe(frame, state="x", action="a", reward="r", episode="e")
    fine = frame.set_column(0, "x", pa.array([2**53, -(2**53), 3]))
    assert len(aope.from_dataframe(fine, state="x", action="a", reward="r", episode="e")) == 2
