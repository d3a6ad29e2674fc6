"""Rows in files: read back as they were, other files and other versions refused."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope.runner.store as store_module
from accountable_ope.errors import InvalidFile
from accountable_ope.runner.store import Store, load_rows, save_rows


@dataclass(frozen=True)
class Row:
    name: str
    number: int
    share: float
    right: bool


ROWS = (Row("a", 1, 0.1, True), Row("b", 2, float("inf"), False))


def test_tables_are_read_back_and_other_files_are_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    save_rows(ROWS, path)
    assert load_rows(Row, path) == ROWS
    path.write_bytes(b"no table")
    with pytest.raises(InvalidFile, match="does not hold rows of type Row"):
        load_rows(Row, path)
    pq.write_table(pa.table({"name": ["a"]}), path)
    with pytest.raises(InvalidFile, match="does not hold rows of type Row .*number"):
        load_rows(Row, path)


def test_pieces_are_kept_by_their_whole_name(tmp_path):
    store = Store(tmp_path / "new" / "folder", Row)
    long = 100 * "x"
    store.write(f"{long}1", ROWS[:1])
    store.write(f"{long}2/3: *", ROWS[1:])
    assert store.read(f"{long}1") == ROWS[:1] and store.read(f"{long}2/3: *") == ROWS[1:]
    assert store.read(long) is None
    assert sorted(store.read_all(), key=lambda row: row.name) == list(ROWS)
    (store.folder / "left.partial.parquet").write_bytes(b"half of a file")
    assert len(list(store.read_all())) == 2


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    store = Store(tmp_path, Row)
    store.write("piece", ROWS)

    def half(table, path):
        path.write_bytes(b"PAR1 and no more")
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(InvalidFile, match="no space left"):
        store.write("piece", ROWS[:1])
    assert store.read("piece") == ROWS and len(list(tmp_path.iterdir())) == 1


def test_parts_of_another_version_are_refused_and_tables_are_not(tmp_path, monkeypatch):
    store = Store(tmp_path, Row)
    monkeypatch.setattr(store_module, "version", lambda name: "0.0.1")
    store.write("piece", ROWS)
    monkeypatch.undo()
    for read in (lambda: store.read("piece"), lambda: list(store.read_all())):
        with pytest.raises(InvalidFile, match="made by accountable-ope 0.0.1, this is accountable-ope .*: use another folder"):
            read()
    [path] = tmp_path.iterdir()
    assert load_rows(Row, path) == ROWS
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with pytest.raises(InvalidFile, match="made by something else"):
        store.read("piece")
