"""The judge: whoever lies is found out, whoever is honest is not, and coverage comes before width."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from accountable_ope.arena import judging
from accountable_ope.arena.advising import advice
from accountable_ope.arena.bout import Bout, Judgment
from accountable_ope.arena.challenges import challenge_named
from accountable_ope.arena.judging import Ranking, chance_of, standings
from accountable_ope.arena.page import BEGIN, END, markdown, verdict, width_text
from accountable_ope.errors import InvalidInput
from accountable_ope.report.arena import arena_document
from accountable_ope.report.arena_plot import arena_figure
from accountable_ope.runner.store import Store
from accountable_ope.trust.recipe import made_by
from command import aope_command

TRUTH = challenge_named("bandit").truth.value


def row(log, lower, upper, *, contestant="aope certified", challenge="bandit", n=1000, status="OK", guarantee="finite-sample"):
    truth = challenge_named(challenge).truth
    return Bout(
        challenge, contestant, guarantee, n, n, log, log, 0.1, lower, upper, truth.value, truth.margin, 0.0, 1.0, status, "", 0.01
    )  # fmt: skip


def around(halves, **details):
    """A log each; the truth is within where the half-width is positive, outside where it is negative."""
    return [
        row(log, TRUTH - half, TRUTH + half, **details) if half > 0 else row(log, TRUTH - half, TRUTH - 2 * half, **details)
        for log, half in enumerate(halves)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_liar_is_refuted_and_an_honest_one_is_not(seed):
    """Estimates of a mean of 400 coins: +- 1.645 standard errors hold it in 90% of logs, half of that in 59%."""
    rng = np.random.default_rng(seed)
    estimates = TRUTH + rng.normal(size=100) * 0.025

    def claimed(share):
        return [row(log, each - share * 1.645 * 0.025, each + share * 1.645 * 0.025) for log, each in enumerate(estimates)]

    [honest], [liar] = standings(claimed(1.0)), standings(claimed(0.5))
    assert honest.judgment is Judgment.KEPT and honest.kept
    assert liar.judgment is Judgment.REFUTED and liar.missed > 25
    # The same intervals with a promise for many rows only are found out, and not called refuted.
    [promise] = standings([replace(each, guarantee="asymptotic") for each in claimed(0.5)])
    assert promise.judgment is Judgment.SHORT


def test_the_judge_has_power_and_seldom_errs():
    """Of 1000 liars at half the width and 1000 honest ones, by the binomial law of their misses."""
    rng = np.random.default_rng(0)
    half = 1 - math.erf(0.5 * 1.645 / math.sqrt(2))
    for logs, least in ((100, 0.99), (30, 0.6)):
        liars = [chance_of(int(each), logs, 0.1) < judging.SHORT for each in rng.binomial(logs, half, 1000)]
        honest = [chance_of(int(each), logs, 0.1) < judging.SHORT for each in rng.binomial(logs, 0.1, 1000)]
        assert np.mean(liars) > least and np.mean(honest) < 0.005


def test_silence_is_no_miss_and_as_wide_as_everything():
    nothing = (math.nan, math.nan)
    rows = [*around([0.1] * 3), row(3, *nothing, status="REFUSED")]
    [found] = standings(rows)
    assert (found.logs, found.held, found.missed, found.silent, found.refused) == (4, 3, 0, 1, 1)
    assert found.width == pytest.approx((3 * 0.2 + 1) / 4)
    # What is assumed is true here, so that a contradiction is a false statement.
    [empty] = standings([row(0, *nothing, status="INCONSISTENT")])
    assert (empty.missed, empty.silent) == (1, 0)
    [right] = standings([row(0, *nothing, status="INCONSISTENT", challenge="planted-wrong")])
    assert (right.missed, right.silent, right.false_premise, right.claims) == (0, 1, True, False)


def test_a_miss_that_was_said_to_be_doubted_counts_and_is_told():
    [found] = standings(around([-0.1] * 10, status="DOUBTED"))
    assert (found.missed, found.missed_doubted, found.judgment) == (10, 10, Judgment.REFUTED)


def test_coverage_comes_before_width():
    sharp = around([0.01] * 15 + [-0.01] * 15, contestant="aope azuma")
    wide = around([0.2] * 30)
    blind = [row(log, 0.0, 1.0, contestant="aope default", status="VACUOUS") for log in range(30)]
    ranking = Ranking(standings([*sharp, *wide, *blind]))
    [cell] = ranking.cells
    assert cell.without.contestant == "aope certified" and cell.steady is cell.without and ranking.won == (1, 1)
    assert [each.contestant for each in ranking.refuted] == ["aope azuma"]
    assert not Ranking(standings(blind)).cells[0].without  # the whole range wins nothing
    assert "Refuted: aope azuma on `bandit` at n = 1,000 (15 misses of 30)." in verdict(ranking)


def test_who_needs_propensities_competes_among_all_only():
    other = around([0.05] * 30, challenge="bandit-logged", contestant="trajectory betting")
    own = around([0.2] * 30, challenge="bandit-logged")
    [cell] = Ranking(standings([*other, *own])).cells
    assert (cell.without.contestant, cell.anybody.contestant) == ("aope certified", "trajectory betting")


def test_advice_is_for_a_situation_and_needs_every_problem_of_it():
    rows = [
        *around([0.2] * 30),
        *around([0.1] * 30, contestant="aope azuma"),
        *around([0.2] * 30, challenge="tabular-50"),
    ]
    [only] = advice(Ranking(standings([each for each in rows if each.challenge == "bandit"])))
    assert only.proved.contestant == "aope azuma"
    [both] = advice(Ranking(standings([replace(each, truth=0.5, lower=0.4, upper=0.6) for each in rows])))
    assert both.proved.contestant == "aope certified" and both.problems == 2
    assert (both.situation.propensities, both.situation.trusted) == (False, True)


@pytest.fixture
def kept(tmp_path):
    rows = [
        *around([0.2] * 28 + [-0.1] * 2),
        *around([0.05] * 30, contestant="aope azuma", n=5000),
        *around([0.02] * 20 + [-0.02] * 10, contestant="lstdq sandwich", guarantee="asymptotic"),
        row(0, math.nan, math.nan, contestant="coindice", status="REFUSED", guarantee="asymptotic"),
    ]
    Store(tmp_path / "kept", Bout).write("some", rows)
    return tmp_path


def test_the_page_is_the_json(kept):
    page = kept / "page.md"
    page.write_text(f"# Page\n\n{BEGIN}\n{END}\n")
    answer = aope_command("arena", "--out", "kept", "--stored", "--markdown", "page.md", "--json", cwd=kept)
    assert answer.returncode == 0, answer.stderr
    document, text = json.loads(answer.stdout), page.read_text()
    assert document["verdict"] in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    for each in document["contestants"]:
        [line] = [line for line in lines if line.startswith(f"| {each['contestant']} |")]
        cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
        assert cells[3:6] == [
            f"{each['kept']} of {each['cells']}",
            f"{each['fraction']:.3f} [{each['low']:.3f}, {each['high']:.3f}]",
            width_text(each["width"]),
        ]
        assert cells[8] == str(each["logs"])
    for each in document["cells"]:
        assert any(f"{each['n']:,}" in line and (each["without_propensities"] or "nobody") in line for line in lines)
    tables = {
        line.split("|")[2].strip().removesuffix(" \\*"): [cell.strip() for cell in line.strip("|").split("|")]
        for line in text[text.index("### Bandits") :].splitlines()
        if line.startswith("| ")
    }
    header = tables["method"]
    for each in document["rows"]:
        cells = tables[each["contestant"]]
        shown = cells[header.index(f"width, n = {each['n']:,}")]
        assert shown == ("silent" if each["silent"] == each["logs"] else width_text(each["width"]))
        assert f"{each['fraction']:.2f} [{each['low']:.2f}, {each['high']:.2f}]" in cells[2] and cells[-1] == str(each["logs"])
        assert ("**" in cells[2]) is (each["judgment"] != "keeps")
    rows = _rows(kept)
    recipes = made_by(row.recipe for row in rows if row.contestant.startswith("aope "))
    assert text == page.read_text() and markdown(Ranking(standings(rows)), made_by=recipes) in text


def test_one_file_of_trials_gives_the_page_of_the_folder(kept):
    from_folder, from_file = kept / "folder.md", kept / "file.md"
    for page in (from_folder, from_file):
        page.write_text(f"# Page\n\n{BEGIN}\n{END}\n")
    words = ("arena", "--stored", "--markdown")
    first = aope_command(*words, "folder.md", "--out", "kept", "--keep", "trials.parquet", cwd=kept)
    second = aope_command(*words, "file.md", "--from", "trials.parquet", cwd=kept)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert from_folder.read_text() == from_file.read_text()
    refused = aope_command("arena", "--stored", "--from", "trials.parquet", "--keep", "trials.parquet", cwd=kept)
    assert refused.returncode == 2 and "would replace an input" in refused.stderr


def _rows(folder):
    return tuple(Store(folder / "kept", Bout).read_all())


def test_the_picture_has_a_dot_for_everybody_and_names_ours(kept):
    ranking = Ranking(standings(_rows(kept)))
    [axes] = arena_figure(ranking).axes
    dots = [tuple(each.get_offsets()[0]) for each in axes.collections if len(each.get_offsets()) == 1]
    wanted = [(career.width, 100 * career.fraction) for career in ranking.careers]
    for spot in wanted:
        assert any(np.allclose(spot, dot) for dot in dots)
    named = {text.get_text() for text in axes.texts}
    assert {"aope certified", "aope azuma"} <= named
    with pytest.raises(InvalidInput, match="nothing to draw"):
        arena_figure(Ranking(()))


def test_a_document_counts_every_trial(kept):
    document = arena_document(Ranking(standings(_rows(kept))))
    assert sum(each["logs"] for each in document["rows"]) == len(_rows(kept)) == 91
    assert not document["refuted"]


def test_a_refuted_claim_of_ours_is_an_exit_code(tmp_path):
    Store(tmp_path / "kept", Bout).write("some", around([-0.1] * 20))
    answer = aope_command("arena", "--out", "kept", "--stored", cwd=tmp_path)
    assert answer.returncode == 1 and "Refuted: aope certified on" in answer.stdout.replace("\n", " ")
    missing = aope_command("arena", "--stored", cwd=tmp_path)
    assert missing.returncode == 2 and "--stored needs --out" in missing.stderr
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    assert aope_command("arena", "--quick", "--markdown", "page.md", cwd=tmp_path).returncode == 2


def test_what_was_done_with_a_wrong_class_is_no_news_of_where_it_is_right():
    """A method may miss always where it was told a class that does not hold Q, and be the best where the class does."""
    promised = {"contestant": "lstdq sandwich", "guarantee": "asymptotic"}
    right = [
        *around([0.02] * 27 + [-0.02] * 3, **promised),
        *around([0.2] * 30),
        *around([0.02] * 27 + [-0.02] * 3, challenge="tabular-50", **promised),
        *around([0.2] * 30, challenge="tabular-50"),
    ]
    wrong = [row for name in ("planted-wrong", "puck-wrong") for row in around([-0.02] * 60, challenge=name, **promised)]
    ranking = Ranking(standings([replace(each, truth=TRUTH) for each in (*right, *wrong)]))
    winners = {cell.challenge: cell.anybody and cell.anybody.contestant for cell in ranking.cells}
    assert winners == dict.fromkeys(("bandit", "tabular-50"), "lstdq sandwich") | dict.fromkeys(("planted-wrong", "puck-wrong"))
    [career] = [each for each in ranking.careers if each.contestant == "lstdq sandwich"]
    assert career.honest and not career.steady and career.fraction < 0.6


def test_who_held_the_truth_in_no_log_wins_nothing_however_few_they_are():
    few = [*around([-0.01] * 2, contestant="aope azuma"), *around([0.2] * 2)]
    ranking = Ranking(standings(few))
    [cell] = ranking.cells
    assert cell.anybody.contestant == "aope certified" and ranking.won == (0, 0)
    said = verdict(ranking)
    assert "which fewer than seven logs of a problem cannot do" in said and "no problem has 30 logs" in said
