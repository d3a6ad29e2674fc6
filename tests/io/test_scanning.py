"""A log read in parts is the log read as a whole, however it is cut; what is wrong is named with file and row."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

import accountable_ope as aope
from accountable_ope.io.log_files import in_order

RNG = np.random.default_rng(3)
ROWS = 60
LABELS = [f"patient {k}" for k in RNG.integers(0, 9, ROWS)]
TABLE = pa.table(
    {
        "state_0": RNG.normal(size=ROWS),
        "state_1": RNG.normal(size=ROWS),
        "action": RNG.integers(0, 3, ROWS),
        "reward": RNG.uniform(size=ROWS),
        "next_state_0": RNG.normal(size=ROWS),
        "next_state_1": RNG.normal(size=ROWS),
        "terminated": [label not in LABELS[row + 1 :] and row % 2 == 0 for row, label in enumerate(LABELS)],
        "episode": LABELS,
        "behavior_probability": RNG.uniform(0.1, 1.0, ROWS),
        "hour": np.arange(ROWS),
    }
)
FIELDS = ("states", "actions", "rewards", "next_states", "terminated", "behavior_probability")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "log.parquet"
    pq.write_table(TABLE, path)
    return aope.load_transitions(path)


def write(folder: Path, edges=(20, 45), table=TABLE, group=7) -> Path:
    """The log as files `part-1.parquet`, `part-2.parquet`, ..."""
    folder.mkdir(exist_ok=True)
    for number, (start, stop) in enumerate(zip((0, *edges), (*edges, len(table)), strict=True), 1):
        pq.write_table(table.slice(start, stop - start), folder / f"part-{number}.parquet", row_group_size=group)
    return folder


def changed(name, row, value):
    """The table with one entry changed."""
    values = TABLE[name].to_pylist()
    values[row] = value
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values))


def assert_same(parts, whole):
    parts = list(parts)
    for name in FIELDS:
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    np.testing.assert_array_equal(np.concatenate([part.episode_numbers for part in parts]), whole.episodes)


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, ROWS), max_size=6), st.integers(2, ROWS + 5), st.sampled_from([1, 7, 60]))
def test_any_cut_into_files_and_parts_gives_the_same_rows(whole, tmp_path_factory, edges, batch_rows, group):
    folder = write(tmp_path_factory.mktemp("log"), sorted(edges), group=group)  # edges 0 and 60: files without rows
    scan = aope.scan_transitions(folder, batch_rows=batch_rows)
    assert len(scan) == scan.rows == ROWS and sum(file.rows for file in scan.files) == ROWS
    parts = list(scan)
    sizes = [len(part) for part in parts]
    assert sizes == list(scan.sizes) and max(sizes) <= batch_rows + 1 and min(sizes) >= 2 and len(set(sizes[:-1])) <= 1
    assert_same(parts, whole)
    assert_same(scan, whole)  # again


def test_rows_of_episodes_that_began_earlier_are_known(whole, tmp_path):
    scan = aope.scan_transitions(write(tmp_path), batch_rows=13)
    seen: set[str] = set()
    first = 0
    for part in scan:
        labels = LABELS[first : first + len(part)]
        assert part.headless.tolist() == [label in seen for label in labels]
        assert part.episodes.max() == len(set(labels)) - 1  # within a part they are counted from 0, as everywhere
        kept = part.rows(slice(2, 9))
        np.testing.assert_array_equal(kept.episode_numbers, part.episode_numbers[2:9])
        seen |= set(labels)
        first += len(part)
    assert whole.episode_numbers is whole.episodes


def test_labels_may_be_numbers_of_any_width(tmp_path):
    numbers = pa.array([int(label.split()[1]) - 4 for label in LABELS])
    for number, kind in enumerate((pa.int64(), pa.int8())):
        column = TABLE.column_names.index("episode")
        table = TABLE.set_column(column, "episode", numbers.cast(kind)).slice(30 * number, 30)
        pq.write_table(table, tmp_path / f"{number}.parquet")
    found = np.concatenate([part.episode_numbers for part in aope.scan_transitions(tmp_path, batch_rows=25)])
    first = list(dict.fromkeys(numbers.to_pylist()))
    assert found.tolist() == [first.index(each) for each in numbers.to_pylist()]


def test_a_file_a_folder_a_pattern_a_list_and_a_uri(whole, tmp_path):
    folder = write(tmp_path / "log")
    (folder / "notes.txt").write_text("hello")
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.parquet").write_text("")
    files = [folder / f"part-{k}.parquet" for k in (1, 2, 3)]
    for source in (folder, str(folder), f"{folder}/*.parquet", files, folder.as_uri(), f"{folder}/"):
        scan = aope.scan_transitions(source, batch_rows=16)
        assert [Path(file.name).name for file in scan.files] == [file.name for file in files]
        assert_same(scan, whole)
    assert aope.scan_transitions(folder).columns.remarks == (f"Files not read: notes.txt ({folder}).",)
    assert aope.scan_transitions(files[1], batch_rows=7).rows == 25
    below = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    assert_same(aope.scan_transitions("log", filesystem=below), whole)
    assert repr(aope.scan_transitions(folder)).endswith("60 rows in 3 files, 65536 rows at a time)")


def test_a_list_is_read_in_its_order(whole, tmp_path):
    folder = write(tmp_path, (30,), TABLE.drop_columns(["terminated"]))
    parts = list(aope.scan_transitions([folder / "part-2.parquet", folder / "part-1.parquet"], batch_rows=30))
    np.testing.assert_array_equal(np.concatenate([part.rewards for part in parts]), np.roll(whole.rewards, 30))


def test_digits_in_names_count_as_numbers():
    names = ["part-10", "part-9", "b/1", "a-b/1", "a/2", "a/10", "a/x", "2024-01-02", "2024-01-01"]
    assert in_order(names) == ["2024-01-01", "2024-01-02", "a/2", "a/10", "a/x", "a-b/1", "b/1", "part-9", "part-10"]


def test_folders_may_name_columns(tmp_path):
    for label in (2, 10):
        for day in ("mon", "tue"):
            folder = tmp_path / f"episode={label}" / f"day={day}"
            folder.mkdir(parents=True)
            pq.write_table(TABLE.slice(0, 5).drop_columns(["episode"]), folder / "part.parquet")
    scan = aope.scan_transitions(tmp_path, batch_rows=4)
    assert [Path(file.name).relative_to(tmp_path).parts[0] for file in scan.files] == ["episode=2"] * 2 + ["episode=10"] * 2
    assert np.concatenate([part.episode_numbers for part in scan]).tolist() == [0] * 10 + [1] * 10
    assert scan.columns.unused == ("hour", "day")
    assert dict(scan.files[3].partition) == {"episode": 10, "day": "tue"}
    listed = aope.scan_transitions([file.name for file in scan.files], batch_rows=4)
    assert np.concatenate([part.episode_numbers for part in listed]).tolist() == [0] * 10 + [1] * 10


def test_columns_by_name_and_columns_left_out(whole, tmp_path):
    names = {"state_0": "age", "state_1": "dose", "next_state_0": "next_age", "next_state_1": "next_dose"}
    table = TABLE.rename_columns([names.get(name, name) for name in TABLE.column_names]).append_column(
        "done", pa.array([1] * ROWS)
    )
    folder = write(tmp_path, table=table)
    with pytest.raises(aope.InvalidFile, match="part-1.parquet .*done"):
        aope.scan_transitions(folder, columns={"state": ["age", "dose"]})
    scan = aope.scan_transitions(folder, columns={"state": ["age", "dose"]}, ignore="done", batch_rows=11)
    assert_same(scan, whole)
    assert scan.columns.unused == ("hour",) and scan.columns.ignored == ("done",)


BAD = {
    "nan": ("reward", 47, float("nan"), r"`rewards` has 1 NaN or infinite entry, first in "),
    "null": ("reward", 47, None, r"column `reward` has 1 missing value \(nulls\), first in "),
    "next": ("next_state_1", 47, float("inf"), "column `next_state` has NaN or infinite entries, first in "),
    "action": ("action", 47, -1, "`actions` must be indices from 0. Got -1 in "),
    "probability": ("behavior_probability", 47, 1.5, "Got 1.5 in "),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_row_is_named_with_its_file(tmp_path, bad):
    name, row, value, message = BAD[bad]
    folder = write(tmp_path, table=changed(name, row, value).drop_columns(["terminated"]))
    within = aope.scan_transitions(folder, batch_rows=15)  # rows 45 to 59 are those of the last file
    with pytest.raises(aope.InvalidFile, match=rf"part-3.parquet: .*{message}row 2 \(row 47 of the log\)") as caught:
        list(within)
    assert len(str(caught.value).splitlines()) == 1
    across = aope.scan_transitions(folder, batch_rows=40)  # the second part is of two files
    with pytest.raises(aope.InvalidFile, match=rf"{folder}: .*{message}row 2 of {folder}/part-3.parquet \(row 47 of the log\)"):
        list(across)
    alone = aope.scan_transitions(folder / "part-3.parquet", batch_rows=2)
    with pytest.raises(aope.InvalidFile, match=rf"part-3.parquet: .*{message}row 2\."):
        list(alone)


def test_parts_before_a_bad_row_are_given(tmp_path):
    parts = iter(aope.scan_transitions(write(tmp_path, table=changed("reward", 47, None)), batch_rows=10))
    assert [len(next(parts)) for _ in range(4)] == [10] * 4
    with pytest.raises(aope.InvalidFile, match="row 47 of the log"):
        next(parts)


def test_where_a_row_is_found(tmp_path):
    scan = aope.scan_transitions(write(tmp_path, (20, 20, 45)))
    assert scan.where(0) == f"row 0 of {tmp_path}/part-1.parquet (row 0 of the log)"
    assert scan.where(20) == f"row 0 of {tmp_path}/part-3.parquet (row 20 of the log)"  # the second has no rows
    assert scan.where(59) == f"row 14 of {tmp_path}/part-4.parquet (row 59 of the log)"
    for row in (-1, 60):
        with pytest.raises(aope.InvalidInput, match="`row` must be from 0 to 59"):
            scan.where(row)


def test_a_truncated_file_is_named(tmp_path):
    folder = write(tmp_path)
    path = folder / "part-2.parquet"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(aope.InvalidFile, match="part-2.parquet cannot be read as Parquet"):
        aope.scan_transitions(folder)


def test_a_file_with_damaged_pages_is_named_when_it_is_read(tmp_path):
    folder = write(tmp_path)
    path = folder / "part-2.parquet"
    damaged = bytearray(path.read_bytes())
    damaged[4:600] = b"\xff" * 596
    path.write_bytes(damaged)
    scan = aope.scan_transitions(folder, batch_rows=20)
    parts = iter(scan)
    next(parts)
    with pytest.raises(aope.InvalidFile, match="part-2.parquet cannot be read as Parquet"):
        next(parts)


def test_a_file_that_changed_is_named(tmp_path):
    folder = write(tmp_path)
    scan = aope.scan_transitions(folder, batch_rows=20)
    for rows in (3, 50):
        pq.write_table(TABLE.slice(0, rows), folder / "part-2.parquet")
        with pytest.raises(aope.InvalidFile, match="part-2.parquet has changed while it was read: it had 25 rows"):
            list(scan)


def test_files_must_have_the_same_columns(tmp_path):
    folder = write(tmp_path, (30,))
    cases = (
        (TABLE.drop_columns(["terminated"]), "part-2.parquet has no column `terminated` for the `terminated`, as .*part-1"),
        (TABLE.rename_columns(["obs_0", "obs_1", *TABLE.column_names[2:]]), "part-2.parquet has no column `state_0`"),
        (
            TABLE.set_column(7, "episode", pa.array(range(ROWS))),
            "part-2.parquet: column `episode` holds numbers, and text in .*part-1",
        ),
    )
    for table, message in cases:
        pq.write_table(table, folder / "part-2.parquet")
        with pytest.raises(aope.InvalidFile, match=message):
            aope.scan_transitions(folder)


def test_parts_must_have_the_same_shapes(tmp_path):
    for number, width in enumerate((2, 3)):
        points = pa.array(np.ones((4, width)).tolist())
        table = pa.table({"state": points, "action": [0, 1, 0, 1], "reward": [0.0] * 4, "next_state": points})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    with pytest.raises(
        aope.InvalidFile, match=r"1.parquet: from row 0 \(row 4 of the log\) on, states have 3 columns, and 2 before"
    ):
        list(aope.scan_transitions(tmp_path, batch_rows=4))
    with pytest.raises(
        aope.InvalidFile, match="same positive length: it is 3 in row 0 of .*1.parquet .row 4 of the log., 2 in row 0 of"
    ):
        list(aope.scan_transitions(tmp_path, batch_rows=8))


def test_what_cannot_be_read_in_parts(tmp_path):
    folder = write(tmp_path / "log")
    pq.write_table(TABLE.drop_columns(["next_state_0", "next_state_1"]), tmp_path / "follows.parquet")
    pq.write_table(TABLE.slice(0, 0), tmp_path / "empty.parquet")
    pq.write_table(TABLE.slice(0, 1), tmp_path / "one.parquet")
    pq.write_table(TABLE.drop_columns(["reward"]), tmp_path / "unpaid.parquet")
    (tmp_path / "log.csv").write_text("state,action\n")
    (tmp_path / "none").mkdir()
    cases = (
        (tmp_path / "follows.parquet", "no column `next_state` .* which a log that is read in parts needs"),
        (tmp_path / "empty.parquet", "empty.parquet has no rows"),
        (tmp_path / "unpaid.parquet", "has no column `reward`"),
        (tmp_path / "log.csv", "log.csv is a CSV file"),
        (tmp_path / "none", "holds no Parquet file"),
        (tmp_path / "nowhere", "nowhere is neither a file nor a folder"),
        (f"{tmp_path}/nowhere/*", r"nowhere/\* fits no file"),
        ([folder / "part-1.parquet", tmp_path / "none"], "none is not a file"),
        ("strange://bucket/logs", "strange://bucket/logs cannot be read"),
    )
    for source, message in cases:
        with pytest.raises(aope.InvalidFile, match=message):
            aope.scan_transitions(source)
    with pytest.raises(aope.InvalidFile, match="At least two transitions are needed. Got 1"):
        list(aope.scan_transitions(tmp_path / "one.parquet"))
    for source, message in (([], "at least one file"), ([folder / "part-1.parquet"] * 2, "is named twice")):
        with pytest.raises(aope.InvalidInput, match=message):
            aope.scan_transitions(source)
    with pytest.raises(aope.InvalidInput, match="`batch_rows` must be a whole number of at least 2. Got 1"):
        aope.scan_transitions(folder, batch_rows=1)
    with pytest.raises(aope.InvalidInput, match="`filesystem` must be a pyarrow.fs.FileSystem"):
        aope.scan_transitions(folder, filesystem="s3")


@pytest.mark.parametrize("group", [50_000, 1_000_000])
def test_whatever_the_size_of_row_groups_little_is_in_memory(tmp_path, group):
    """Bytes that Arrow holds while a file of 24 MiB is read, and rows of the largest part."""
    rows = 1_000_000
    columns = {name: RNG.normal(size=rows) for name in ("state_0", "reward", "next_state_0")}
    table = pa.table({**columns, "action": np.zeros(rows, dtype=np.int64)})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=group)
    del table
    scan = aope.scan_transitions(tmp_path / "log.parquet", batch_rows=20_000)
    before, most, largest = pa.total_allocated_bytes(), 0, 0
    for part in scan:
        most = max(most, pa.total_allocated_bytes() - before)
        largest = max(largest, len(part))
    assert largest == 20_000
    assert most < 10 * 2**20


def test_parts_by_number_are_those_of_the_whole(tmp_path):
    """Whatever lies before them: whole files, whole row groups, a piece of one."""
    folder = write(tmp_path)
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path), path, row_group_size=9)
    scan = aope.scan_transitions(folder, batch_rows=7)
    everything = list(scan)
    for start in range(len(everything)):
        for stop in (start + 1, start + 3, len(everything)):
            found = list(scan.parts(start, stop))
            assert len(found) == len(everything[start:stop])
            for one, other in zip(found, everything[start:stop], strict=True):
                np.testing.assert_array_equal(one.states, other.states)
                np.testing.assert_array_equal(one.rewards, other.rewards)


def test_copies_of_a_file_are_remarked_on(tmp_path):
    """Byte by byte alike, whatever they are called; files of other rows are not, though as many and as large."""
    for name, start in (("a", 0), ("b", 20), ("c", 40)):
        pq.write_table(TABLE.slice(start, 20), tmp_path / f"{name}.parquet", compression="none", use_dictionary=False)
    assert not any("copy" in each for each in aope.scan_transitions(tmp_path).columns.remarks)
    for copy in ("d", "e"):
        (tmp_path / f"{copy}.parquet").write_bytes((tmp_path / "b.parquet").read_bytes())
    (remark,) = aope.scan_transitions(tmp_path).columns.remarks
    assert "d.parquet is a copy of" in remark and "b.parquet, byte by byte (1 more files are copies)" in remark


@pytest.mark.parametrize("batch_rows", [12, 1000])
def test_one_file_whose_columns_are_swapped(tmp_path, batch_rows):
    """Among the rows of the other files of a part its own are few."""
    for number in range(5):
        walk = np.random.default_rng(number).normal(size=31).cumsum()
        columns = {"state": walk[:-1], "next_state": walk[1:]}
        if number == 3:
            columns = {"state": walk[1:], "next_state": walk[:-1]}
        rows = {**columns, "action": [0] * 30, "reward": [0.0] * 30, "terminated": np.arange(30) == 29, "episode": [number] * 30}
        pq.write_table(pa.table(rows), tmp_path / f"part-{number}.parquet")
    with pytest.raises(aope.InvalidFile, match=r"part-3.parquet: .*`state` and `next_state` are swapped"):
        list(aope.scan_transitions(tmp_path, batch_rows=batch_rows))
    (tmp_path / "part-3.parquet").unlink()
    assert sum(len(part) for part in aope.scan_transitions(tmp_path, batch_rows=batch_rows)) == 120
