"""Logs that are no plain table of numbers on the command line: Minari datasets, and files with words."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import accountable_ope as aope
from accountable_ope.io import save_minari
from command import aope_command

FACTS = ("--discount", 0.5, "--reward-range", 0, 1, "--radius", "wild")
CLASS = ("--features", 2, "--seed", 1, "--norm-bound", 1)
POLICY = ("--policy", "halves:policy")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a Minari dataset, the same log as Parquet, and a policy."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    rng = np.random.default_rng(0)
    states = rng.normal(size=(40, 6, 2))
    data = aope.Transitions(
        states[:, :-1].reshape(-1, 2),
        rng.integers(0, 2, 200),
        rng.random(200),
        states[:, 1:].reshape(-1, 2),
        episodes=np.repeat(np.arange(40), 5),
    )
    save_minari(data, "walk-v0")
    aope.save_transitions(data, tmp_path / "walk.parquet")
    (tmp_path / "halves.py").write_text("import numpy as np\n\ndef policy(states):\n    return np.full((len(states), 2), 0.5)\n")
    return tmp_path


def interval(log, folder, *others):
    done = aope_command("bound", log, *POLICY, *FACTS, *CLASS, "--json", *others, cwd=folder)
    assert done.returncode in (0, 1, 3, 4, 5), done.stderr
    return ends(done)


def ends(done):
    """Of an interval that says something."""
    (each,) = json.loads(done.stdout)["intervals"]
    assert each["upper"] - each["lower"] < 2
    return each["lower"], each["upper"]


@pytest.mark.slow
def test_a_minari_dataset_gives_what_the_file_gives(folder):
    wanted = interval("walk.parquet", folder)
    assert interval("minari:walk-v0", folder) == wanted
    assert interval(f"minari:{folder / 'datasets' / 'walk-v0'}", folder) == wanted


def test_other_commands_take_it_too(folder):
    done = aope_command("check", "minari:walk-v0", *POLICY, "--reward-range", 0, 1, cwd=folder)
    assert done.returncode == 0 and "200" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("minari:walk-v7", *POLICY), "There is no Minari dataset walk-v7"),
        (("minari:", *POLICY), "is not the folder of a Minari dataset"),
        (("minari:walk-v0",), "give the target policy's probabilities at the next"),
        (("minari:walk-v0", *POLICY, "--column", "state=age"), "--column has no effect on minari:walk-v0"),
        (("minari:walk-v0", *POLICY, "--ignore-column", "age"), "--ignore-column age has no effect"),
    ],
)
def test_what_is_refused(folder, words, message):
    done = aope_command("bound", *words, *FACTS, cwd=folder)
    assert done.returncode == 2 and message in " ".join(done.stderr.split()) and not done.stdout


def test_without_minari_the_command_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    monkeypatch.setitem(sys.modules, "minari.storage.datasets_root_dir", None)
    done = aope_command("bound", "minari:walk-v0", *POLICY, *FACTS, cwd=folder)
    assert done.returncode == 2 and "pip install" in done.stderr


WARD = ("--column", "state=ward,age", "--column", "episode=patient", "--column", "action=drug")


@pytest.fixture
def ward(tmp_path):
    """A CSV file with words for a column of the state and for actions, logged and proposed."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"patient": np.repeat(np.arange(60), 3), "ward": rng.choice(["icu", "surgery"], 180)})
    rows["age"] = rng.integers(0, 4, 180) / 4
    rows["drug"] = rng.choice(["high", "low"], 180)
    rows["reward"] = (rows["drug"] == "high") / 2 + rows["age"] / 4
    rows["terminated"] = np.tile(["no", "no", "yes"], 60)
    rows["target_action"] = np.where(rows["ward"] == "icu", "high", "low")
    rows.to_csv(tmp_path / "ward.csv", index=False)
    return tmp_path


def test_words_are_as_good_as_numbers(ward):
    numbers = pd.read_csv(ward / "ward.csv")
    for word in ("icu", "surgery"):
        numbers[f"ward_{word}"] = (numbers["ward"] == word).astype(int)
    for name in ("drug", "target_action"):
        numbers[name] = (numbers[name] == "low").astype(int)
    numbers.drop(columns="ward").to_csv(ward / "numbers.csv", index=False)
    (ward / "starts.csv").write_text("ward,age,target_action\nicu,0.5,high\nsurgery,0.5,low\n")
    (ward / "numbers-starts.csv").write_text("ward_icu,ward_surgery,age,target_action\n1,0,0.5,0\n0,1,0.5,1\n")
    found = []
    for log, starts, state in (
        ("ward.csv", "starts.csv", "state=ward,age"),
        ("numbers.csv", "numbers-starts.csv", "state=ward_icu,ward_surgery,age"),
    ):
        done = aope_command(
            "bound", log, "--starts", starts, "--column", state, *WARD[2:], *FACTS, "--features", 20, "--json", cwd=ward
        )  # fmt: skip
        assert done.returncode in (0, 1, 3, 4, 5), done.stderr
        found.append(ends(done))
    assert found[0] == found[1]


def test_what_words_were_read_as_is_printed(ward):
    done = aope_command("check", "ward.csv", *WARD, "--reward-range", 0, 1, cwd=ward)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0 and "ward=icu, ward=surgery" in said and "numbered 0 high, 1 low" in said


def test_start_states_with_words_that_the_log_does_not_have_are_refused(ward):
    (ward / "starts.csv").write_text("ward,age,target_action\ngarden,0.5,high\n")
    done = aope_command("bound", "ward.csv", "--starts", "starts.csv", *WARD, *FACTS, *CLASS, cwd=ward)
    assert done.returncode == 2 and "holds 'garden' in row 0 (line 2), which is none of icu, surgery" in " ".join(
        done.stderr.split()
    )


def test_a_monitor_refuses_words(ward):
    (ward / "starts.csv").write_text("ward,age,target_action\nicu,0.5,high\n")
    done = aope_command(
        "monitor", "state.npz", "ward.csv", "--starts", "starts.csv", *WARD, *FACTS[:5],
        "--features", 6, "--terminates", "--planned", 1000, cwd=ward,
    )  # fmt: skip
    assert done.returncode == 2 and "must hold numbers. It holds text" in " ".join(done.stderr.split())
    assert not (ward / "state.npz").exists()
