"""`aope bound` with nothing but a log, a discount and a range of rewards."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.cli.verifying import _another_choice
from accountable_ope.defaults import load_recipe
from accountable_ope.verification.files import load_record
from command import aope_command
from planted_files import MDP, write_planted_files

WHERE = ("--starts", "planted-starts.parquet", "--action-values=-1,0,1")
FACTS = ("--discount", 0.8, "--reward-range", 0, 1)
QUICK = ("--radius", "azuma")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("first")
    write_planted_files(found)
    return found


@pytest.fixture(scope="module")
def answered(folder: Path) -> dict:
    words = ("bound", "planted.parquet", *WHERE, *FACTS, *QUICK, "--save-choice", "choice.npz", "--certificate", "proof.json")
    done = aope_command(*words, "--json", cwd=folder)
    document = json.loads(done.stdout)
    # Whether the class that was trained is doubted hangs on last bits, which differ from one processor to another.
    assert done.returncode == (5 if document["intervals"][0]["status"] == "DOUBTED" else 0), done.stderr
    return document


def ends(document: dict) -> tuple[float, float]:
    return document["intervals"][0]["lower"], document["intervals"][0]["upper"]


def test_it_says_what_was_chosen(answered: dict) -> None:
    interval = answered["intervals"][0]
    assert interval["lower"] <= MDP.value <= interval["upper"]
    assert interval["recipe"]["earlier_rows"] == 1000 and interval["recipe"]["earlier_episodes"] == 20
    assert (
        interval["recipe"]["within"] == 0.1
        and "Chosen on the first 1,000 rows (20 episodes)" in interval["recipe"]["statements"][0]
    )
    assert any("This is asserted" in each for each in interval["assumed"])


def test_the_command_that_it_prints_repeats_it(answered: dict, folder: Path) -> None:
    words = shlex.split(answered["repeat"])
    assert words[:3] == ["aope", "bound", "planted.parquet"] and words[words.index("--choice") + 1] == "choice.npz"
    again = aope_command(*words[1:], "--json", cwd=folder)
    assert ends(json.loads(again.stdout)) == ends(answered)
    text = aope_command(*words[1:], cwd=folder).stdout
    assert "To repeat it: aope bound planted.parquet" in text and "Chosen on the first 1,000 rows" in text


def test_its_certificate_is_proved_with_the_choice(answered: dict, folder: Path) -> None:
    given = ("verify", "proof.json", "--data", "planted.parquet", *WHERE)
    assert aope_command(*given, "--choice", "choice.npz", cwd=folder).returncode == 0
    without = aope_command(*given, cwd=folder)
    assert without.returncode == 2 and "--choice is needed with --data" in " ".join(without.stderr.split())
    assert "--choice goes with --data" in aope_command("verify", "proof.json", "--choice", "choice.npz", cwd=folder).stderr


def test_a_log_whose_first_rows_are_others_is_not_that_of_the_certificate(answered: dict, folder: Path) -> None:
    table = pq.read_table(folder / "planted.parquet")
    rewards = table["reward"].to_numpy().copy()
    rewards[3] = 1 - rewards[3]
    pq.write_table(table.set_column(table.column_names.index("reward"), "reward", pa.array(rewards)), folder / "edited.parquet")
    done = aope_command("verify", "proof.json", "--data", "edited.parquet", *WHERE, "--choice", "choice.npz", cwd=folder)
    assert done.returncode == 5 and "the choice was made on 1000 rows that are not the first ones" in " ".join(
        done.stdout.split()
    )


def test_a_class_that_was_chosen_on_the_rows_it_bounds_is_refused(answered: dict, folder: Path) -> None:
    """Rows and sums agree, and the choice is the one: but it was made on rows of the bound."""
    recipe, data = load_recipe(folder / "choice.npz"), aope.load_transitions(folder / "planted.parquet")
    record = load_record(folder / "proof.json")
    assert recipe.earlier_rows == record.setting.earlier_rows == 1000
    for said, rows in ((0, len(data)), (100, len(data) - 100)):
        forged = replace(record, setting=replace(record.setting, earlier_rows=said), data=replace(record.data, rows=rows))
        assert f"the certificate says that {said} rows chose" in _another_choice(recipe, forged, data)
    bounded = replace(record, data=replace(record.data, rows=len(data)))
    assert "first 1000 of the rows that the certificate bounds" in _another_choice(recipe, bounded, data)
    assert _another_choice(recipe, record, data) == ""


def test_who_writes_a_certificate_without_the_choice_is_told_what_it_needs(answered: dict, folder: Path) -> None:
    given = ("bound", "planted.parquet", *WHERE, *FACTS, *QUICK)
    assert (
        "needs the choice, too"
        not in aope_command(*given, "--choice", "choice.npz", "--certificate", "a.json", cwd=folder).stderr
    )
    assert "needs the choice, too" in aope_command(*given, "--certificate", "b.json", cwd=folder).stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--features", 5, "--within", 0.2), "--within is for a class that is chosen on the earliest rows"),
        (("--norm-bound", 3, "--choice", "choice.npz"), "--choice is for a class that is chosen on the earliest rows"),
        (("--save-choice", "choice.json"), "--save-choice must end in .npz"),
        (("--choice", "choice.npz", "--within", 0.2), "--within was chosen with --choice"),
        (("--choice", "planted.parquet"), "--choice must end in .npz"),
        (("--choice", "nowhere.npz"), "nowhere.npz is not a saved choice"),
        (("--within", 0), "`within` must be"),
        (("--save-choice", "choice.npz", "--report", "choice.npz"), "must be different files"),
    ],
)
def test_what_has_no_effect_is_refused(words: tuple, sentence: str, answered: dict, folder: Path) -> None:
    done = aope_command("bound", "planted.parquet", *WHERE, *FACTS, *QUICK, *words, cwd=folder)
    assert done.returncode == 2 and sentence in done.stderr, done.stderr


def test_with_a_class_or_a_norm_nothing_is_chosen(folder: Path) -> None:
    """As before: the options of a class, or a norm, are those of random features."""
    done = aope_command("bound", "planted.parquet", *WHERE, *FACTS, *QUICK, "--norm-bound", 3, "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert found["intervals"][0]["recipe"] is None and "repeat" not in found
    assert found["transitions"] == 5000 and found["intervals"][0]["classes"][0]["features"].startswith(
        "RandomFourier(dimension=50"
    )
