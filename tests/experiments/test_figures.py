"""The quick version of every figure by its command, and the claims that must hold in it."""

import json
import math
import subprocess
import sys

import pytest

from accountable_ope.experiments.bounds import BoundRow
from accountable_ope.experiments.estimators import EstimateRow
from accountable_ope.experiments.importance import PAPER_THRESHOLD, LowerRow
from accountable_ope.experiments.running import load_rows
from accountable_ope.experiments.scale import QUICK
from accountable_ope.experiments.summary import groups


def run_quick(folder, figure, task, trials=None):
    """The command of the documentation, in a process of its own."""
    command = [sys.executable, "-c", "from accountable_ope.cli import main; main()", "experiment", figure, "--env", task]
    command += ["--quick", "--json", "--workers", "1", "--out", str(folder)]
    command += [] if trials is None else ["--trials", str(trials)]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.fixture(scope="module", params=["inverted-pendulum", "puck-mountain"])
def bounds(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure1")
    document = run_quick(folder, "figure1", request.param)
    return folder, document["tasks"][0], load_rows(BoundRow, folder / f"figure1-{request.param}.parquet")


def test_figure1_holds_every_trial_and_both_pictures(bounds):
    folder, document, rows = bounds
    task = rows[0].task
    assert document["rows"] == len(rows) and document["findings"]
    for ending in ("png", "svg"):
        assert (folder / f"figure1-{task}.{ending}").stat().st_size > 10_000
    cells = {(row.kind, row.n, row.temperature, row.features, row.trial) for row in rows}
    assert len(cells) == 2 * QUICK.trials * 4  # the default, another n, another temperature, another number of features
    assert len(rows) == 5 * (len(cells) + 2 * QUICK.trials * 2)  # five radii; two more deltas at the default
    for row in rows:
        assert row.covered == (row.lower <= row.truth <= row.upper)
        assert math.isnan(row.lower) == (row.status == "INCONSISTENT") == (row.consistent == 0)


def test_figure1_finite_sample_tiers_cover_where_the_class_nearly_contains_q(bounds):
    _, _, rows = bounds
    near = [one for one in groups(rows, QUICK) if one.near and one.radius in ("hoeffding", "azuma", "certified")]
    assert any(one.radius == "certified" for one in near)
    assert all(one.covered == one.trials for one in near)


def test_figure1_tightens_with_delta_and_with_n(bounds):
    _, _, rows = bounds
    for kind in QUICK.kinds:
        for axis in ("delta", "n"):
            widths = [one.width for one in groups(rows, QUICK) if (one.kind, one.radius, one.axis) == (kind, "azuma", axis)]
            assert len(widths) > 1 and widths == sorted(widths, reverse=True)


def test_figure1_the_papers_radius_says_nothing(bounds):
    _, _, rows = bounds
    paper = [row for row in rows if row.radius == "hoeffding"]
    assert paper and all((row.lower, row.upper) == (0.0, 1.0) and row.status == "VACUOUS" for row in paper)


def test_figure1_says_which_tier_is_asymptotic(bounds):
    _, _, rows = bounds
    told = {row.radius: row.guarantee for row in rows}
    assert told["certified"] == told["azuma"] == told["hoeffding"] == "finite-sample"
    assert told["wild"] == "asymptotic" and "declared" in told["symmetric"]


@pytest.fixture(scope="module", params=[("figure2", "inverted-pendulum"), ("figure3", "puck-mountain")])
def estimates(request, tmp_path_factory):
    figure, task = request.param
    folder = tmp_path_factory.mktemp(figure)
    run_quick(folder, figure, task)
    assert (folder / f"{figure}-{task}-certified.png").stat().st_size > 10_000
    return figure, load_rows(EstimateRow, folder / f"{figure}-{task}.parquet")


def test_good_estimates_are_accepted_and_bad_ones_rejected(estimates):
    figure, rows = estimates
    last = [row for row in rows if row.radius == "certified" and row.delta == 0.1 and row.n == max(row.n for row in rows)]
    first, second = ([row for row in last if row.estimator == name] for name in ("Q1", "Q2"))
    assert not any(row.accepted for row in second)
    assert all(row.before < row.truth - 0.1 for row in second)
    if figure == "figure2":
        assert all(row.accepted and row.norm == 0 for row in first)
        assert all(abs(row.before - row.truth) < 0.1 for row in first)
    else:
        assert all(row.before > row.truth + 0.05 and not row.accepted for row in first)


def test_corrections_are_what_they_say(estimates):
    _, rows = estimates
    for row in rows:
        assert row.accepted == (row.loss <= row.allowed * (1 + 1e-9)) or row.correction == "CORRECTED"
        assert (row.norm == 0) == row.accepted or math.isnan(row.norm)
        if row.accepted:
            assert row.after == row.before
    corrected = [row for row in rows if row.correction == "CORRECTED"]
    assert corrected and all(row.norm > 0 for row in corrected)


def test_the_papers_radius_rejects_nothing(estimates):
    _, rows = estimates
    assert all(row.accepted and row.covered for row in rows if row.radius == "hoeffding")


@pytest.fixture(scope="module")
def lowers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure4")
    run_quick(folder, "figure4", "inverted-pendulum")
    assert (folder / "figure4-inverted-pendulum.svg").stat().st_size > 10_000
    return load_rows(LowerRow, folder / "figure4-inverted-pendulum.parquet")


def test_the_papers_threshold_cannot_say_more_than_itself(lowers):
    fixed = [row for row in lowers if row.method == "hcope, fixed c"]
    assert {row.threshold for row in fixed} > {PAPER_THRESHOLD, 1.0}
    assert all(row.lower <= row.threshold for row in fixed)


def test_lower_bounds_lie_below_the_truth(lowers):
    sure = [row for row in lowers if row.guarantee == "finite-sample"]
    assert sum(not row.covered for row in sure) <= 0.1 * len(sure)


def test_the_fair_opponent_is_much_better_than_the_papers_setting(lowers):
    most = max(row.episodes for row in lowers)
    fair = [row.lower for row in lowers if row.method == "betting, per decision" and row.episodes == most and row.delta == 0.1]
    assert min(fair) > 0.2 > 1000 * PAPER_THRESHOLD


def test_a_resumed_run_gives_the_same_table(tmp_path):
    run_quick(tmp_path, "figure3", "puck-mountain", trials=1)
    table = tmp_path / "figure3-puck-mountain.parquet"
    before = load_rows(EstimateRow, table)
    table.unlink()
    document = run_quick(tmp_path, "figure3", "puck-mountain", trials=1)
    assert load_rows(EstimateRow, table) == before
    assert document["tasks"][0]["trials"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure9"], "must be one of figure1, figure2, figure3, figure4"),
        (["figure1", "--env", "cart-pole"], "must be one of inverted-pendulum, puck-mountain"),
        (["figure1", "--trials", "0"], "`trials` must be at least 1"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, tmp_path):
    command = [sys.executable, "-c", "from accountable_ope.cli import main; main()", "experiment", *arguments]
    answer = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True)
    assert answer.returncode == 2 and message in answer.stderr and "Traceback" not in answer.stderr
    assert not (tmp_path / "out").exists()
