"""The page about the paper's experiments says what its tables of trials say."""

from pathlib import Path

import pytest

from accountable_ope.errors import InvalidFile
from accountable_ope.experiments.bounds import BoundRow
from accountable_ope.experiments.estimators import EstimateRow
from accountable_ope.experiments.importance import LowerRow
from accountable_ope.experiments.page import check_page, markdown
from accountable_ope.experiments.scale import Scale
from accountable_ope.experiments.setting import Setting, truth
from accountable_ope.runner.store import load_rows

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reproduction.md"
TABLES = {
    "figure1-inverted-pendulum": BoundRow,
    "figure1-puck-mountain": BoundRow,
    "figure2-inverted-pendulum": EstimateRow,
    "figure3-puck-mountain": EstimateRow,
    "figure4-inverted-pendulum": LowerRow,
}


@pytest.mark.parametrize("name", TABLES)
def test_numbers_of_the_page_are_those_of_the_trials(name):
    rows = load_rows(TABLES[name], DOCS / "trials" / f"{name}.parquet")
    assert len({row.trial for row in rows}) == Scale().trials
    figure, task = name.split("-", 1)
    text = PAGE.read_text(encoding="utf-8")
    between = text.split(f"<!-- {figure} {task}: begin -->")[1].split(f"<!-- {figure} {task}: end -->")[0]
    assert between.strip() == markdown(rows, Scale()).strip()
    assert any((DOCS / "images").glob(f"{name}*.png")) and any((DOCS / "images").glob(f"{name}*.svg"))


@pytest.mark.parametrize("name", [name for name, kind in TABLES.items() if kind is not LowerRow])
def test_trials_are_those_of_this_version(name):
    """Seeds and truths of the stored trials are the ones that would be drawn today."""
    rows = load_rows(TABLES[name], DOCS / "trials" / f"{name}.parquet")
    for row in rows[:: max(1, len(rows) // 50)]:
        assert row.truth == truth(row.task)
        assert row.seed == Setting(row.task, row.n, getattr(row, "temperature", 1.0)).seed(row.trial)


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- figure1 puck-mountain: end --> <!-- figure1 puck-mountain: begin -->")
    with pytest.raises(InvalidFile, match="once each and in this order"):
        check_page(page, "figure1 puck-mountain")
    with pytest.raises(InvalidFile, match="cannot be read"):
        check_page(tmp_path / "none.md", "figure1 puck-mountain")
