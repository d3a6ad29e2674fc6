"""CSV files: the same columns as Parquet, under names that a stranger has, with one sentence for all that cannot be meant."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountable_ope as aope
from accountable_ope.io.following import Following, order_finding
from accountable_ope.io.reading import read_log, read_transition_file
from accountable_ope.io.sources import ArrowSource
from accountable_ope.io.starts import read_start_file

LINES = (
    "patient,age,dose,action,reward,terminated,target_action",
    "a,60,0.5,0,0.25,no,1",
    "a,61,0.75,1,0,no,0",
    "b,40,0.1,1,1,no,1",
    "a,62,0.5,0,1,yes,1",
    "b,41,0.2,0,0,no,0",
)
NAMES = {"state": ["age", "dose"], "episode": "patient"}


def write(folder: Path, *lines: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def edited(number: int, old: str, new: str) -> tuple[str, ...]:
    """The lines, with one of them changed."""
    assert old in LINES[number]
    return (*LINES[:number], LINES[number].replace(old, new, 1), *LINES[number + 1 :])


def test_next_states_are_those_of_the_following_row_of_the_episode(tmp_path: Path) -> None:
    """Episodes may stand between each other; the last row of b goes on, and is dropped."""
    file = read_transition_file(write(tmp_path, *LINES), columns=NAMES)
    assert file.data.states.tolist() == [[60, 0.5], [61, 0.75], [40, 0.1], [62, 0.5]]
    assert file.data.next_states[:3].tolist() == [[61, 0.75], [62, 0.5], [41, 0.2]]
    assert file.data.terminated.tolist() == [False, False, False, True]
    assert file.data.actions.tolist() == [0, 1, 1, 0] and file.data.rewards.tolist() == [0.25, 0, 1, 1]
    assert file.data.episodes is not None and file.data.episodes.tolist() == [0, 0, 1, 0]
    assert file.at_state is not None and file.at_state[:, 1].tolist() == [1, 0, 1, 1]
    # What the policy does at a next state stands in the following row, also where that row is dropped.
    assert file.at_next is not None and file.at_next[:3, 1].tolist() == [0, 1, 0]
    assert any("1 row dropped, the last of an episode that goes on" in each for each in file.columns.sentences())
    assert "Columns age, dose read as state, in this order (" in " ".join(file.columns.sentences())
    turned = read_transition_file(write(tmp_path, *LINES), columns=NAMES | {"state": ["dose", "age"]})
    assert turned.data.states[0].tolist() == [0.5, 60] and turned.columns.states == ("dose", "age")
    assert "Columns dose, age read as state, in this order (" in " ".join(turned.columns.sentences())


def test_what_counts_the_steps_may_be_in_the_state_too(tmp_path: Path) -> None:
    lines = ["p,hour,age,action,reward,terminated", "a,0,60,1,0,no", "a,1,61,0,0,no", "a,2,62,1,1,yes"]
    names = {"state": ["hour", "age"], "step": "hour", "episode": "p"}
    file = read_transition_file(write(tmp_path, *lines), columns=names)
    assert file.data.states.tolist() == [[0, 60], [1, 61], [2, 62]]
    said = " ".join(file.columns.sentences())
    assert "Column hour read as step" in said and "Columns hour, age read as state, in this order" in said
    del lines[2]
    with pytest.raises(aope.InvalidFile, match="without gaps"):
        read_transition_file(write(tmp_path, *lines), columns=names)


@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=30), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_following_row_is_what_a_loop_finds(labels: list[int], data: st.DataObject) -> None:
    ended = np.array(data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels))))
    found = Following.of(labels)
    for row, label in enumerate(labels):
        later = [other for other in range(row + 1, len(labels)) if labels[other] == label]
        assert found.known[row] == bool(later) and found.next_row[row] == (later[0] if later else row)
        assert found.kept(ended)[row] == (bool(later) or ended[row])


def test_the_same_from_parquet_csv_gzip_and_a_table_in_memory(tmp_path: Path) -> None:
    csv = write(tmp_path, *LINES)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(csv.read_bytes()))
    columns = {name: [] for name in LINES[0].split(",")}
    for line in LINES[1:]:
        for name, cell in zip(columns, line.split(","), strict=True):
            columns[name].append(cell if name in ("patient", "terminated") else float(cell))
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "log.parquet")
    read = [read_transition_file(tmp_path / name, columns=NAMES) for name in ("log.csv", "log.csv.gz", "log.parquet")]
    read.append(read_log(ArrowSource("frame", table), columns=NAMES))
    assert len({each.data.sha256 for each in read}) == 1
    for each in read[2:]:  # actions were 1.0 and 0.0
        assert any("whole numbers stored as decimals (1.0)" in remark for remark in each.columns.remarks)


def test_states_by_prefix_and_next_states_beside_them(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "state_x,state_y,next_state_y,next_state_x,action,reward,terminated",
        "1,2,4,3,0,0,False",
        "3,4,,,1,0.5,True",
    )
    data = aope.load_transitions(path)
    assert data.states.tolist() == [[1, 2], [3, 4]] and data.next_states.tolist() == [[3, 4], [3, 4]]
    named = write(tmp_path, "x,next_x,action,reward", "1,2,0,0", "2,5,1,0.5", name="named.csv")
    assert aope.load_transitions(named, columns={"state": "x"}).next_states.tolist() == [[2], [5]]


def test_numbered_columns_in_csv(tmp_path: Path) -> None:
    path = write(tmp_path, "state_0,state_1,next_state_0,next_state_1,action,reward", "1,2,3,4,0,0", "3,4,5,6,1,0.5")
    assert aope.load_transitions(path).next_states.tolist() == [[3, 4], [5, 6]]


def test_a_policy_with_chances_follows_the_rows_too(tmp_path: Path) -> None:
    lines = ["episode,state,action,reward,terminated,target_probability_0,target_probability_1"]
    lines += ["1,0.5,0,0,0,0.25,0.75", "1,1.5,1,1,0,0.5,0.5", "1,2.5,0,1,1,1,0"]
    file = read_transition_file(write(tmp_path, *lines))
    assert file.at_next is not None and file.at_next[:2].tolist() == [[0.5, 0.5], [1, 0]]


def test_starts_in_csv(tmp_path: Path) -> None:
    path = write(tmp_path, "age,dose,weight,target_action", "60,0.5,1,0", "70,1,3,1", name="starts.csv")
    file = read_start_file(path, columns=NAMES)
    assert (
        file.starts.weights.tolist() == [0.25, 0.75] and file.at_state is not None and file.at_state.tolist() == [[1, 0], [0, 1]]
    )


@pytest.mark.parametrize("words", [("True", "False"), ("yes", "no"), ("TRUE", "false"), ("1", "0"), ("y", " N ")])
def test_words_for_true_and_false(tmp_path: Path, words: tuple[str, str]) -> None:
    yes, no = words
    lines = [LINES[0], *(line.replace(",yes,", f",{yes},").replace(",no,", f",{no},") for line in LINES[1:])]
    assert aope.load_transitions(write(tmp_path, *lines), columns=NAMES).terminated.tolist() == [False, False, False, True]


REFUSED = {
    "a word that is no flag": (edited(2, ",no,", ",maybe,"), "`terminated` must hold True or False .* 'maybe' in row 1 .line 3"),
    "text among numbers": (
        edited(3, ",0.1,", ",low,"),
        "column `dose` must hold numbers. It holds text, first 'low' in row 2 .line 4",
    ),
    "a decimal comma": (edited(3, ",0.1,", ',"0,1",'), "column `dose` must hold numbers. It holds text, first '0,1' in row 2"),
    "an empty cell": (
        edited(3, ",0.1,", ",,"),
        "column `dose` has 1 missing value .nulls., first in row 2 .line 4.*add a column that is 1 where it was missing",
    ),
    "a missing label": (edited(1, "a,", ","), "column `patient` has 1 missing value"),
    "a missing flag": (edited(4, ",yes,", ",,"), "column `terminated` has 1 missing value .nulls., first in row 3 .line 5..$"),
    "a broken action": (
        edited(2, "1,0,no", "0.5,0,no"),
        "must be whole numbers.* has 0.5 in row 1 .line 3..* is called `action_0`",
    ),
    "an action in words": (
        edited(1, "0.5,0,", "0.5,none at all,"),
        "column `action` must hold numbers.* number the actions 0, 1, 2",
    ),
    "a negative action": (edited(1, "no,1", "no,-1"), "`target_action` must hold actions 0, 1, ... It holds -1 in row 0"),
    "a short line": (edited(3, ",1,no,1", ""), "Line 4 has 4 entries, the header names 7 columns"),
    "an end in the middle": (
        edited(2, ",no,", ",yes,"),
        "Row 1 .line 3. is terminated, and its episode goes on in row 3 .line 5",
    ),
    "no header": (LINES[1:2] * 3, "has no column `state`"),
    "numbers in the header": (
        ("1,2,3", "4,5,6"),
        "has no header: its first line must name the columns. It holds numbers, first 1",
    ),
    "semicolons": (tuple(line.replace(",", ";") for line in LINES), "parted by semicolons: save it with commas"),
    "tabs": (tuple(line.replace(",", "\t") for line in LINES), "parted by tabs"),
    "nothing but a header": (LINES[:1], "has no rows"),
    "an empty file": ((), "has no header"),
    "one row for each": ((*LINES[:1], LINES[1], LINES[3]), "At most one row has a next state"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_names_the_row(tmp_path: Path, case: str) -> None:
    lines, message = REFUSED[case]
    columns = NAMES if lines and lines[0] == LINES[0] else None
    with pytest.raises(aope.InvalidFile, match=message) as caught:
        read_transition_file(write(tmp_path, *lines), columns=columns)
    assert str(caught.value).count("\n") == 0 and "log.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": "height"}, "has no column `height`, which was named as the `state`. Its columns: patient, age"),
        ({"stat": "age"}, "`columns` must name columns that are read: state, action"),
        ({"state": ["age", "age"]}, "must name a column once"),
        ({"state": []}, "must name the columns that are the `state`"),
        ({"state": ["age"]}, "has no column `next_state` .*and no `episode`"),
    ],
)
def test_names_that_do_not_fit(tmp_path: Path, columns: dict, message: str) -> None:
    with pytest.raises(aope.InvalidInput, match=message):
        aope.load_transitions(write(tmp_path, *LINES), columns=columns)


def test_half_of_the_next_states(tmp_path: Path) -> None:
    path = write(tmp_path, "x,y,next_x,action,reward", "1,2,3,0,0", "3,4,5,1,1")
    with pytest.raises(aope.InvalidFile, match="has a column `next_x` but no `next_y`"):
        aope.load_transitions(path, columns={"state": ["x", "y"]})


def with_steps(folder: Path, *steps: float) -> Path:
    """The lines with a column of steps."""
    return write(folder, f"{LINES[0]},step", *(f"{line},{step}" for line, step in zip(LINES[1:], steps, strict=True)))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((0, 1, 0, 3, 1), "In episode a `step` goes from 1 in row 1 .line 3. to 3 in row 3 .line 5.: rows are missing"),
        ((0, 2, 0, 4, 2), "In episode a `step` goes from 0 in row 0 .line 2. to 2 in row 1 .line 3.: rows are missing"),
        ((1, 0, 0, 2, 1), "sort the rows"),
        ((0, 0, 0, 1, 1), "In episode a `step` goes from 0 in row 0 .line 2. to 0 in row 1 .line 3.: sort the rows"),
        ((0, 0.5, 0, 1, 0.5), "steps are counted by 1"),
        ((0, 1, 1, 2, 2), "Episode a begins with 0 in row 0 .line 2., episode b with 1 in row 2 .line 4.: its first rows are"),
        ((1, 2, 0, 3, 1), "Episode b begins with 0 in row 2 .line 4., episode a with 1 in row 0 .line 2.: its first rows are"),
    ],
)
def test_steps_that_show_a_gap_or_another_order(tmp_path: Path, steps: tuple[float, ...], message: str) -> None:
    with pytest.raises(aope.InvalidFile, match=message):
        aope.load_transitions(with_steps(tmp_path, *steps), columns=NAMES)


@pytest.mark.parametrize("steps", [(0, 1, 0, 2, 1), (1, 2, 1, 3, 2), (-1, 0, -1, 1, 0)])
def test_steps_may_begin_anywhere_if_all_do(tmp_path: Path, steps: tuple[int, ...]) -> None:
    assert len(aope.load_transitions(with_steps(tmp_path, *steps), columns=NAMES)) == 4


def test_one_count_of_steps_over_all_episodes(tmp_path: Path) -> None:
    lines = ["episode,state,action,reward,step", "0,1,0,0,7", "0,2,0,0,8", "1,3,0,0,9", "1,4,0,0,10"]
    assert len(aope.load_transitions(write(tmp_path, *lines))) == 2


def test_what_stands_behind_the_end_is_not_looked_at(tmp_path: Path) -> None:
    """NaN in the next state of a row that ends its episode is fine, elsewhere it is not."""
    lines = ["state,action,reward,next_state,terminated", "1,0,0,2,no", "2,1,1,,yes", "3,1,1,4,no"]
    assert aope.load_transitions(write(tmp_path, *lines)).next_states.tolist() == [[2], [2], [4]]
    with pytest.raises(aope.InvalidFile, match=r"column `next_state` has NaN or infinite entries, first in row 2 \(line 4\)"):
        aope.load_transitions(write(tmp_path, *lines[:3], "3,1,1,,no"))
    data = aope.Transitions([1.0, 2.0], [0, 1], [0, 1], [2.0, np.nan], terminated=[False, True])
    assert data.next_states.tolist() == [[2], [2]]
    with pytest.raises(aope.InvalidInput, match="`next_states` has 1 NaN or infinite entry, first in row 1"):
        aope.Transitions([1.0, 2.0], [0, 1], [0, 1], [2.0, np.nan], terminated=[True, False])


def walk(episodes: int = 6, length: int = 8) -> aope.Transitions:
    """Random walks on the line: every state is met once."""
    steps = np.random.default_rng(0).normal(size=(episodes, length + 1)).cumsum(axis=1)
    states, after = steps[:, :-1].reshape(-1, 1), steps[:, 1:].reshape(-1, 1)
    rows = episodes * length
    return aope.Transitions(states, np.zeros(rows, int), np.zeros(rows), after, episodes=np.repeat(np.arange(episodes), length))


def test_shuffled_rows_are_seen_and_refused(tmp_path: Path) -> None:
    data = walk()
    assert order_finding(data.states, data.next_states, data.terminated, data.episodes) is None
    order = np.random.default_rng(1).permutation(len(data))
    aope.save_transitions(data.rows(order), tmp_path / "shuffled.parquet")
    with pytest.raises(aope.InvalidFile, match="rows within episodes end where the following row starts, but 42 end .* shuffled"):
        aope.load_transitions(tmp_path / "shuffled.parquet")
    # Episodes among each other may come in any order, and every other row may be missing: then nothing is shuffled.
    by_step = np.argsort(np.tile(np.arange(8), 6), kind="stable")
    aope.save_transitions(data.rows(by_step), tmp_path / "interleaved.parquet")
    assert read_transition_file(tmp_path / "interleaved.parquet").columns.remarks == ()
    aope.save_transitions(data.rows(slice(0, None, 2)), tmp_path / "thinned.parquet")
    [remark] = read_transition_file(tmp_path / "thinned.parquet").columns.remarks
    assert remark.startswith("Only 0 of 18 rows within episodes end where the following row starts: rows may be missing")


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("turned", ["swapped", "newest first"])
def test_rows_that_are_turned_around_are_refused(tmp_path: Path, ends: bool, turned: str) -> None:
    """Where episodes end, too: what stands behind the end is the next state of no row then."""
    data = walk()
    ended = np.tile(np.arange(8) == 7, 6) & ends
    data = aope.Transitions(data.states, data.actions, data.rewards, data.next_states, ended, data.episodes)
    assert order_finding(data.states, data.next_states, data.terminated, data.episodes) is None
    if turned == "swapped":
        wrong = aope.Transitions(data.next_states, data.actions, data.rewards, data.states, ended, data.episodes)
    else:
        wrong = data.rows(np.arange(len(data))[::-1])
    aope.save_transitions(wrong, tmp_path / "wrong.parquet")
    with pytest.raises(aope.InvalidFile, match="`state` and `next_state` are swapped, or the rows .* stand in reverse order"):
        aope.load_transitions(tmp_path / "wrong.parquet")


def test_rows_that_are_linked_both_ways_or_not_at_all_are_not_turned_around() -> None:
    to_and_fro = np.tile([0.0, 1.0], 20)
    one = np.zeros(40, bool), np.zeros(40, int)
    assert order_finding(to_and_fro[:, None], 1 - to_and_fro[:, None], *one) is None
    thinned = walk(1, 80).rows(slice(0, None, 2))
    found = order_finding(thinned.states, thinned.next_states, *one)
    assert found is not None and not found[0] and "swapped" not in found[1]


def test_few_states_look_like_no_order_at_all() -> None:
    """A chain with four states comes by chance to the right state often, and its rows are no multiset of links."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        states, after = rng.integers(0, 4, (2, 200)).astype(float)
        found = order_finding(states[:, None], after[:, None], np.zeros(200, bool), np.zeros(200, int))
        assert found is None or not found[0]


def test_a_column_without_a_name_is_listed(tmp_path: Path) -> None:
    """As pandas writes its index."""
    lines = [f"{number},{line}" for number, line in zip(("", *"01234"), LINES, strict=True)]
    assert "(one without a name)" in " ".join(read_transition_file(write(tmp_path, *lines), columns=NAMES).columns.sentences())


def test_letters_of_another_code_in_a_column_that_nobody_reads(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("\n".join([f"{LINES[0]},note", *(f"{line},M\xfcller" for line in LINES[1:])]).encode("latin-1"))
    assert len(aope.load_transitions(path, columns=NAMES)) == 4


def test_flags_in_words_are_refused_in_arrays() -> None:
    """A file says what its words mean; an array is what it is."""
    with pytest.raises(aope.InvalidInput, match="`terminated` must be one True or False per row. Got text, 'True' in row 0"):
        aope.Transitions([1.0, 2.0], [0, 1], [0, 1], [2.0, 3.0], terminated=["True", "False"])


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("truncated", ("no", "yes", "no", "no", "no"), r"must end where it is truncated. Row 1 \(line 3\)"),
        ("t", (0, 2, 0, 1, 1), r"`t` goes from 2 in row 1 \(line 3\) to 1 in row 3 \(line 5\): sort the rows"),
        (
            "timestamp",
            ("2026-01-01 10:00:00", "2026-01-03 10:00:00", "2026-01-01 10:00:00", "2026-01-02 10:00:00", "2026-01-02 10:00:00"),
            "`timestamp` goes from",
        ),
    ],
)
def test_columns_that_show_another_order_or_a_cut(tmp_path: Path, column: str, values: tuple[object, ...], message: str) -> None:
    lines = (f"{LINES[0]},{column}", *(f"{line},{value}" for line, value in zip(LINES[1:], values, strict=True)))
    with pytest.raises(aope.InvalidFile, match=message):
        read_transition_file(write(tmp_path, *lines), columns=NAMES)
    read_transition_file(write(tmp_path, *lines), ignore=(column,), columns=NAMES)


def test_an_episode_of_which_nothing_would_be_left(tmp_path: Path) -> None:
    with pytest.raises(aope.InvalidFile, match=r"1 episode has one row only, which goes on \(row 5 \(line 7\)\)"):
        read_transition_file(write(tmp_path, *LINES, "c,30,0.5,0,0.25,no,1"), columns=NAMES)
    ended = read_transition_file(write(tmp_path, *LINES, "c,30,0.5,0,0.25,yes,1"), columns=NAMES)
    assert len(ended.data) == 5


def test_last_rows_that_were_left_out_are_a_premise(tmp_path: Path) -> None:
    """Not only a remark: the guarantee rests on why the episodes were cut off, and a certificate says so."""
    rng = np.random.default_rng(0)
    rows = [f"{e},{rng.normal():.3f},{int(rng.integers(2))},{rng.random():.3f}" for e in range(6) for _ in range(5)]
    data = aope.load_transitions(write(tmp_path, "episode,state,action,reward", *rows))
    assert data.left_out == 6 == data.split(0.5)[1].left_out
    policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), norm_bound=1.0)
    problem = aope.Problem(data, aope.StartStates([0.0]), policy, facts)
    interval = aope.bound_value(problem, features=aope.RandomFourier(3), kernel=aope.Gaussian(1.0), radius="azuma")
    said = [each for each in interval.premises if each.name == "cut-off"]
    assert len(said) == 1 and "Last rows of episodes that went on (6)" in said[0].text and interval.check()
    assert aope.verify(interval, data=data, starts=problem.starts, policy=policy).valid
    forged = replace(
        interval,
        premises=tuple(each for each in interval.premises if each.name != "cut-off"),
        setting=replace(interval.setting, circumstances=replace(interval.setting.circumstances, left_out=0)),
    )
    assert forged.check()  # nothing but the log tells
    message = aope.verify(forged, data=data, starts=problem.starts, policy=policy).message
    assert message == "Not proved: rows of the log were left out, and the certificate does not say so."
