"""Cells: in parallel as alone, resumed where a run was cut off, files whole or not at all."""

from dataclasses import dataclass

import pytest

from accountable_ope.errors import InvalidFile, InvalidInput
from accountable_ope.experiments.running import load_rows, run_cells, save_rows


@dataclass(frozen=True)
class Row:
    name: str
    number: int
    share: float
    right: bool


@dataclass(frozen=True)
class Square:
    number: int
    fails: bool = False

    @property
    def name(self) -> str:
        return f"square {self.number}"

    def run(self):
        if self.fails:
            raise RuntimeError("run again")
        return [Row(self.name, k, self.number**2 / 3, k % 2 == 0) for k in range(2)]


CELLS = [Square(k) for k in range(5)]


def test_rows_come_in_the_order_of_the_cells_whatever_the_workers():
    alone = run_cells(CELLS, Row, workers=1)
    assert [row.name for row in alone] == [f"square {k // 2}" for k in range(10)]
    assert run_cells(CELLS, Row, workers=2) == alone


def test_what_a_folder_holds_is_not_run_again(tmp_path):
    looks = []
    first = run_cells(CELLS[:3], Row, folder=tmp_path, workers=1)
    again = run_cells(
        [Square(k, fails=k < 3) for k in range(5)], Row, folder=tmp_path, workers=1, report=lambda *x: looks.append(x)
    )
    assert again[:6] == first and len(again) == 10
    assert looks == [(3, 5), (4, 5), (5, 5)]


def test_a_failure_keeps_what_was_done(tmp_path):
    with pytest.raises(RuntimeError):
        run_cells([Square(0), Square(1, fails=True)], Row, folder=tmp_path, workers=1)
    assert len(list((tmp_path / "parts").iterdir())) == 1
    assert len(run_cells(CELLS[:2], Row, folder=tmp_path, workers=1)) == 4


def test_tables_are_read_back_and_other_files_are_refused(tmp_path):
    rows = run_cells(CELLS, Row, workers=1)
    save_rows(rows, tmp_path / "rows.parquet")
    assert load_rows(Row, tmp_path / "rows.parquet") == rows
    (tmp_path / "bad.parquet").write_bytes(b"no table")
    with pytest.raises(InvalidFile, match="does not hold rows"):
        load_rows(Row, tmp_path / "bad.parquet")


def test_bad_input(tmp_path):
    with pytest.raises(InvalidInput, match="workers"):
        run_cells(CELLS, Row, workers=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be used as a folder"):
        run_cells(CELLS, Row, folder=tmp_path / "file", workers=1)
