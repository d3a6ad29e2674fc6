"""`aope sensitivity` as a stranger uses it: text, JSON, a picture, exit codes, and errors without tracebacks."""

import json

import pytest

from command import aope_command
from planted_files import OPTIONS, write_planted_files

AZUMA = ("--radius", "azuma")


@pytest.fixture
def folder(tmp_path):
    write_planted_files(tmp_path)
    return tmp_path


def run(folder, *arguments):
    return aope_command("sensitivity", "planted.parquet", *OPTIONS, *arguments, cwd=folder)


def test_text_has_curves_flip_points_and_rows(folder):
    done = run(folder, *AZUMA, "--threshold", 1.5, "--width", 0.8, "--plot", "curves.png")
    assert done.returncode == 0, done.stderr
    for words in (
        "Value of the target policy, 90% confidence", "norm_bound varied", "misfit varied", "delta varied",
        "reward_range varied", "1.3 *", "VACUOUS", "By its ends: value >= 1.5, supported", "FLIPS", "EXTRAPOLATED",
        "not guaranteed", "transitions if the width goes on",
    ):  # fmt: skip
        assert words in done.stdout
    assert "discount varied" not in done.stdout
    assert done.stderr.strip() == "Plot: curves.png"
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_that_of_bound_and_more(folder):
    done = run(folder, "--over", "norm-bound", "--over", "discount", "--radius", "azuma", "--threshold", 1.5, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (interval,) = result["intervals"]
    norm, discount = result["curves"]
    assert (norm["over"], discount["over"]) == ("norm_bound", "discount")
    assert norm["baseline"] == 1.3
    (declared,) = (row for row in norm["rows"] if row["baseline"])
    assert (declared["lower"], declared["upper"]) == (interval["lower"], interval["upper"])
    (flip,) = result["flips"]  # the discount has none
    assert flip["outcome"] == "FLIPS" and flip["value"] > 1.3 and flip["lower"] >= 1.5
    assert result["least_norm"]["value"] >= 0 and result["rows_needed"] is None


def test_the_default_radius_refutes_small_norms(folder):
    done = run(folder, "--over", "norm-bound", "--json")
    result = json.loads(done.stdout)
    rows = result["curves"][0]["rows"]
    assert rows[0]["status"] == "INCONSISTENT" and rows[0]["lower"] is None
    assert rows[-1]["status"] == "OK"
    assert 0.5 < result["least_norm"]["value"] < 0.86 and result["flips"] == []


def test_exit_codes_are_those_of_the_declared_interval(folder):
    assert run(folder, "--radius", "hoeffding", "--over", "delta").returncode == 3
    refuted = run(folder, "--norm-bound", 0.1, "--over", "norm-bound", "--width", 0.1)
    assert refuted.returncode == 4
    assert "REFUTED" in refuted.stdout and "smaller bounds are refuted" in refuted.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--over", "kernel"), "`over` must be one of"),
        (("--threshold", "nan"), "`threshold` must be a finite number"),
        (("--width", -1), "`width` must be positive"),
        (("--relative-norm", 2, "--threshold", 1), "--threshold with --relative-norm goes with --over norm-bound only"),
        (("--plot", "curves.txt"), "A plot must end in .png, .svg or .pdf"),
        (("--plot", "nowhere/curves.png"), "there is no folder nowhere"),
        (("--radius", "magic"), "`radius` must be one of"),
        (("--delta", 2), "`delta` must be in (0, 1)"),
        (("--reward-range", 0, 0.2), "column `reward` must lie in the declared --reward-range 0 0.2"),
        (("--radius", "hoeffding-u", "--over", "misfit"), "says nothing about a `misfit`"),
    ],
)
def test_bad_options_are_one_sentence_and_exit_code_2(folder, arguments, message):
    done = run(folder, *arguments)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
