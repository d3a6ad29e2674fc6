"""`aope coverage` and its picture."""

import json
from dataclasses import dataclass

import pytest

import accountable_ope.radii.registry as radius_module
from accountable_ope.errors import InvalidInput
from accountable_ope.laboratory import IntervalMethod, families_named, methods_named, run_trials, summarize
from accountable_ope.laboratory.page import BEGIN, END
from accountable_ope.problem.statements import Guarantee, Status
from accountable_ope.report.coverage_plot import coverage_figure
from accountable_ope.report.plots import save_figure
from command import aope_command

QUICK = ["coverage", "--family", "fair-coin", "--radius", "azuma", "--n", "60", "--trials", "12", "--workers", "1"]


def test_the_table_is_printed():
    done = aope_command(*QUICK, "--n", "80", "--family", "bandit")
    assert done.returncode == 0
    assert "90% coverage is claimed; 12 data sets" in done.stdout
    assert done.stdout.count("azuma") == 4
    assert "fair-coin" in done.stdout and "bandit" in done.stdout


def test_json_has_every_row_and_no_nan():
    done = aope_command(*QUICK, "--json", "--delta", 0.2)
    document = json.loads(done.stdout)
    assert document["claims_believable"] is True
    [row] = document["rows"]
    assert (row["family"], row["n"], row["trials"], row["delta"], row["method"]) == ("fair-coin", 60, 12, 0.2, "azuma")
    assert row["low"] <= row["fraction"] <= row["high"]
    assert row["refuted"] is False


def test_a_wrong_radius_ends_with_code_one_and_a_sentence(monkeypatch):
    honest = radius_module.azuma
    monkeypatch.setattr(radius_module, "azuma", lambda *arguments: honest(*arguments) / 100)
    done = aope_command(*QUICK, "--trials", "40")
    assert done.returncode == 1
    assert "Not believable: azuma covered" in done.stderr
    assert "of 40 in fair-coin at n = 60, where at least 90% is claimed." in done.stderr


def test_a_folder_keeps_the_trials(tmp_path):
    first = aope_command(*QUICK, "--out", tmp_path / "kept", "--json")
    assert len(list((tmp_path / "kept").glob("*.parquet"))) == 1
    second = aope_command(*QUICK, "--out", tmp_path / "kept", "--json")
    assert json.loads(second.stdout) == json.loads(first.stdout)  # the seconds too: nothing was computed again


def test_what_a_folder_holds_is_shown_without_running(tmp_path):
    kept = tmp_path / "kept"
    aope_command(*QUICK, "--out", kept)
    aope_command(*QUICK, "--out", kept, "--n", "40", "--trials", "3")
    aope_command(*QUICK, "--out", kept, "--delta", "0.3")
    done = aope_command("coverage", "--out", kept, "--stored", "--json")
    assert [(row["n"], row["trials"]) for row in json.loads(done.stdout)["rows"]] == [(40, 3), (60, 12)]
    chosen = aope_command(
        "coverage", "--out", kept, "--stored", "--json", "--n", "40", "--radius", "azuma", "--family", "fair-coin"
    )
    assert [(row["n"], row["trials"]) for row in json.loads(chosen.stdout)["rows"]] == [(40, 3)]
    nothing = aope_command("coverage", "--out", kept, "--stored", "--radius", "hoeffding")
    assert "holds no such trials" in nothing.stderr
    assert "--stored needs --out" in aope_command("coverage", "--stored").stderr


def test_several_deltas_are_run_shown_and_drawn_at_once(tmp_path):
    kept, page = tmp_path / "kept", tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    done = aope_command(*QUICK, "--delta", "0.1", "--delta", "0.5", "--out", kept)
    assert done.stdout.index("90% coverage is claimed") < done.stdout.index("50% coverage is claimed")
    shown = aope_command(
        "coverage", "--out", kept, "--stored", "--delta", "0.1", "--delta", "0.5", "--json", "--markdown", page, "--plot",
        tmp_path / "plot.png",
    )  # fmt: skip
    assert [(row["delta"], row["trials"]) for row in json.loads(shown.stdout)["rows"]] == [(0.1, 12), (0.5, 12)]
    assert "covered, 0.9 claimed | covered, 0.5 claimed" in page.read_text()
    missing = aope_command("coverage", "--out", kept, "--stored", "--delta", "0.1", "--delta", "0.2")
    assert "holds no such trials at delta = 0.2" in missing.stderr


def test_a_group_stands_for_its_families():
    done = aope_command(*QUICK, "--family", "bandits", "--trials", "2")
    assert all(f"{name}\n" in done.stdout.replace(" ", "") for name in ("bandit", "bandit-logged", "fair-coin"))


def test_families_are_listed():
    done = aope_command("coverage", "--list")
    assert done.returncode == 0
    for family in families_named():
        assert f"{family.name} ({family.data_kind.value}): " in done.stdout
    listed = json.loads(aope_command("coverage", "--list", "--json").stdout)["families"]
    assert [one["name"] for one in listed] == [family.name for family in families_named()]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plot_and_page_are_written(tmp_path, ending):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{BEGIN}\n{END}\n")
    done = aope_command(*QUICK, "--n", "80", "--plot", tmp_path / f"plot.{ending}", "--markdown", page)
    assert done.returncode == 0
    assert (tmp_path / f"plot.{ending}").stat().st_size > 5000
    assert "| `fair-coin` | azuma |" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--family", "bogus"], "`family` must be one of"),
        (["--radius", "bogus"], "`radius` must be one of"),
        (["--trials", "0"], "`trials` must be"),
        (["--delta", "2"], "`delta` must be in"),
        (["--plot", "picture.jpg"], "must end in .png"),
        (["--plot", "no-such-folder/picture.png"], "no folder"),
        (["--markdown", "no-such-page.md"], "cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(arguments, message):
    done = aope_command("coverage", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1


def some_rows(methods):
    return summarize(run_trials(families_named(["bandit", "fair-coin"]), [30, 60], chosen=methods, trials=3, workers=1))


def test_a_figure_has_a_panel_per_group_and_one_legend(tmp_path):
    figure = coverage_figure(some_rows(methods_named(["azuma", "hoeffding"])))
    [panel] = [one for one in figure.axes if one.axison]
    assert panel.get_title(loc="left") == "bandits, coins"
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:3] == ["hoeffding", "azuma", "claimed"]
    save_figure(figure, tmp_path / "figure.png")


@dataclass(frozen=True)
class Half:
    lower: float = 0.25
    upper: float = 0.75
    status: Status = Status.OK


def half(evaluation, delta):
    return Half()


def test_a_method_of_some_families_has_its_place_in_the_legend():
    declared = IntervalMethod("declared", Guarantee.FINITE_SAMPLE_DECLARED_NOISE, half)
    figure = coverage_figure(some_rows((*methods_named(["azuma"]), declared)))
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["azuma", "declared", "claimed"]


def test_nothing_to_draw_is_refused():
    with pytest.raises(InvalidInput, match="nothing to draw"):
        coverage_figure([])
