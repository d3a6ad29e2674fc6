"""Figure 1 for some radii, beside the rows of an earlier run."""

from dataclasses import replace

import pytest

from accountable_ope.experiments.bounds import BoundRow, beside
from accountable_ope.experiments.page import markdown
from accountable_ope.experiments.scale import QUICK
from accountable_ope.report.experiment_plots import bounds_figure
from accountable_ope.runner.store import save_rows
from command import aope_command

ROW = BoundRow(
    task="puck-mountain",
    kind="fourier",
    radius="certified",
    guarantee="finite-sample",
    n=1000,
    delta=0.1,
    temperature=1.0,
    features=10,
    trial=0,
    seed=1,
    lower=0.1,
    upper=0.9,
    truth=0.3,
    covered=True,
    status="OK",
    classes=1,
    consistent=1,
    doubted=0,
    least_loss=0.0,
    level=1.0,
    misfit=0.0,
    seconds=1.0,
)


def test_a_radius_that_is_run_again_stands_beside_what_it_was():
    earlier = [replace(ROW, radius="azuma"), ROW]
    found = beside([replace(ROW, lower=0.2, upper=0.4)], earlier)
    assert [row.radius for row in found] == ["azuma", "certified, before", "certified"]
    page = markdown(found, QUICK)
    assert "certified, before, fourier | 0.800 (1/1)" in page and "certified, fourier | 0.200 (1/1)" in page
    assert len(bounds_figure(found, QUICK).axes) == 3 * 4
    assert beside(found, ()) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("figure1", "--radius", "other"), "`--radius` must be one of"),
        (("figure3", "--radius", "certified"), "are for figure1"),
        (("figure1", "--beside", "here", "--out", "here"), "must be another folder"),
        (("figure1", "--env", "puck-mountain", "--beside", "earlier"), "does not hold rows"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "earlier").mkdir()
    save_rows([ROW], tmp_path / "earlier" / "figure1-inverted-pendulum.parquet")
    answer = aope_command("experiment", *words)
    assert answer.returncode == 2 and said in " ".join(answer.stderr.split())
