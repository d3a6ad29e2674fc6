"""The quick version of every figure by its command, and the claims that must hold in it."""

import json
import math
import subprocess
import sys

import pytest

from accountable_ope.experiments.bounds import BoundRow
from accountable_ope.experiments.estimators import EstimateRow
from accountable_ope.experiments.importance import PAPER_THRESHOLD, LowerRow
from accountable_ope.experiments.scale import QUICK
from accountable_ope.experiments.summary import groups
from accountable_ope.runner.store import load_rows
from command import aope_command


def run_quick(folder, figure, task, *more, trials=None):
    """The command of the documentation, in a process of its own."""
    command = [sys.executable, "-c", "from accountable_ope.cli import main; main()", "experiment", figure, "--env", task]
    command += ["--quick", "--json", "--workers", "1", "--out", str(folder)]
    command += [*map(str, more), *([] if trials is None else ["--trials", str(trials)])]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


# A figure is one test, with a function for every claim, so that two test processes never run the same figure.


@pytest.mark.parametrize(("task", "trials"), [("puck-mountain", 1)])  # the pendulum is in figures 2 and 4
def test_figure1(task, trials, tmp_path):
    document = run_quick(tmp_path, "figure1", task, trials=trials)["tasks"][0]
    rows = load_rows(BoundRow, tmp_path / f"figure1-{task}.parquet")
    every_trial_and_both_pictures(tmp_path, document, rows, trials)
    finite_sample_tiers_cover_where_the_class_nearly_contains_q(rows)
    intervals_tighten_with_delta_and_with_n(rows)
    the_papers_radius_says_nothing(rows)
    guarantees_are_named(rows)


def every_trial_and_both_pictures(folder, document, rows, trials):
    task = rows[0].task
    assert document["rows"] == len(rows) and document["findings"]
    for ending in ("png", "svg"):
        assert (folder / f"figure1-{task}.{ending}").stat().st_size > 10_000
    cells = {(row.kind, row.n, row.temperature, row.features, row.trial) for row in rows}
    assert len(cells) == 2 * trials * 4  # the default, another n, another temperature, another number of features
    assert len(rows) == 5 * (len(cells) + 2 * trials * 2)  # five radii; two more deltas at the default
    for row in rows:
        assert row.covered == (row.lower <= row.truth <= row.upper)
        assert math.isnan(row.lower) == (row.status == "INCONSISTENT") == (row.consistent == 0)


def finite_sample_tiers_cover_where_the_class_nearly_contains_q(rows):
    near = [one for one in groups(rows, QUICK) if one.near and one.radius in ("hoeffding", "azuma", "certified")]
    assert any(one.radius == "certified" for one in near)
    assert all(one.covered == one.trials for one in near)


def intervals_tighten_with_delta_and_with_n(rows):
    for kind in QUICK.kinds:
        for axis in ("delta", "n"):
            widths = [one.width for one in groups(rows, QUICK) if (one.kind, one.radius, one.axis) == (kind, "azuma", axis)]
            assert len(widths) > 1 and widths == sorted(widths, reverse=True)


def the_papers_radius_says_nothing(rows):
    paper = [row for row in rows if row.radius == "hoeffding"]
    assert paper and all((row.lower, row.upper) == (0.0, 1.0) and row.status == "VACUOUS" for row in paper)


def guarantees_are_named(rows):
    told = {row.radius: row.guarantee for row in rows}
    assert told["certified"] == told["azuma"] == told["hoeffding"] == "finite-sample"
    assert told["wild"] == "asymptotic" and "declared" in told["symmetric"]


@pytest.mark.parametrize(("figure", "task", "trials"), [("figure2", "inverted-pendulum", 1), ("figure3", "puck-mountain", 2)])
def test_figures_2_and_3(figure, task, trials, tmp_path):
    run_quick(tmp_path, figure, task, trials=trials)
    assert (tmp_path / f"{figure}-{task}-certified.png").stat().st_size > 10_000
    rows = load_rows(EstimateRow, tmp_path / f"{figure}-{task}.parquet")
    if figure == "figure3":
        a_resumed_run_gives_the_same_table_and_fills_a_page(tmp_path, rows, trials)
    good_estimates_are_accepted_and_bad_ones_rejected(figure, rows)
    corrections_are_what_they_say(rows)
    the_papers_radius_rejects_nothing(rows)


def good_estimates_are_accepted_and_bad_ones_rejected(figure, rows):
    last = [row for row in rows if row.radius == "certified" and row.delta == 0.1 and row.n == max(row.n for row in rows)]
    first, second = ([row for row in last if row.estimator == name] for name in ("Q1", "Q2"))
    assert not any(row.accepted for row in second)
    assert all(row.before < row.truth - 0.1 for row in second)
    if figure == "figure2":
        assert all(row.accepted and row.norm == 0 for row in first)
        assert all(abs(row.before - row.truth) < 0.1 for row in first)
    else:
        assert all(row.before > row.truth + 0.05 and not row.accepted for row in first)


def corrections_are_what_they_say(rows):
    for row in rows:
        assert row.accepted == (row.loss <= row.allowed * (1 + 1e-9)) or row.correction == "CORRECTED"
        assert (row.norm == 0) == row.accepted or math.isnan(row.norm)
        if row.accepted:
            assert row.after == row.before
    corrected = [row for row in rows if row.correction == "CORRECTED"]
    assert corrected and all(row.norm > 0 for row in corrected)


def the_papers_radius_rejects_nothing(rows):
    assert all(row.accepted and row.covered for row in rows if row.radius == "hoeffding")


def test_figure4(tmp_path):
    run_quick(tmp_path, "figure4", "inverted-pendulum", trials=1)
    assert (tmp_path / "figure4-inverted-pendulum.svg").stat().st_size > 10_000
    lowers = load_rows(LowerRow, tmp_path / "figure4-inverted-pendulum.parquet")
    the_papers_threshold_cannot_say_more_than_itself(lowers)
    lower_bounds_lie_below_the_truth(lowers)
    the_fair_opponent_is_much_better_than_the_papers_setting(lowers)


def the_papers_threshold_cannot_say_more_than_itself(lowers):
    fixed = [row for row in lowers if row.method == "hcope, fixed c"]
    assert {row.threshold for row in fixed} > {PAPER_THRESHOLD, 1.0}
    assert all(row.lower <= row.threshold for row in fixed)


def lower_bounds_lie_below_the_truth(lowers):
    sure = [row for row in lowers if row.guarantee == "finite-sample"]
    assert sum(not row.covered for row in sure) <= 0.1 * len(sure)


def the_fair_opponent_is_much_better_than_the_papers_setting(lowers):
    most = max(row.episodes for row in lowers)
    fair = [row.lower for row in lowers if row.method == "betting, per decision" and row.episodes == most and row.delta == 0.1]
    assert min(fair) > 0.2 > 1000 * PAPER_THRESHOLD


def a_resumed_run_gives_the_same_table_and_fills_a_page(folder, before, trials):
    table, page = folder / "figure3-puck-mountain.parquet", folder / "page.md"
    table.unlink()
    page.write_text("above\n<!-- figure3 puck-mountain: begin -->before the run<!-- figure3 puck-mountain: end -->\nbelow\n")
    document = run_quick(folder, "figure3", "puck-mountain", "--markdown", page, trials=trials)
    assert list(map(repr, load_rows(EstimateRow, table))) == list(map(repr, before))  # NaN differs from itself
    assert document["tasks"][0]["trials"] == trials
    text = page.read_text()
    assert text.startswith("above\n<!-- figure3") and text.endswith("end -->\nbelow\n") and "before the run" not in text
    assert "| certified, Q2 | " in text and "\n- Holds: " in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure9"], "must be one of figure1, figure2, figure3, figure4"),
        (["figure1", "--env", "cart-pole"], "must be one of inverted-pendulum, puck-mountain"),
        (["figure1", "--trials", "0"], "`trials` must be at least 1"),
        (["figure1", "--workers", "0"], "`workers` must be a whole number of at least 1"),
        (["figure2", "--markdown", "no-such-page.md"], "no-such-page.md cannot be read"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, tmp_path):
    answer = aope_command("experiment", *arguments, "--out", tmp_path / "out")
    assert answer.returncode == 2 and message in answer.stderr and "Traceback" not in answer.stderr
    assert not (tmp_path / "out").exists()
