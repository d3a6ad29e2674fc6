"""Every command that decides a claim: 0 supported, 3 refuted, 4 undecided, 5 inconsistent or doubted, and nothing unproved."""

import json

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from command import aope_command

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
POLICIES = f"""
import numpy as np
from accountable_ope.environments import PlantedMDP

proposal = PlantedMDP(seed=1, features=5, discount=0.6).policy

def flat(states, actions):
    return np.full(len(states), {MDP.value})
"""
QUESTION = ("--starts", "starts.parquet", "--policy", "mine:proposal", "--discount", 0.6, "--reward-range", 0, 1)
SURE = (*QUESTION, "--deterministic-reward")
GOOD = (*SURE, "--norm-bound", 2, "--features", 5, "--seed", 1, "--bandwidth", 1)
POOR = (*SURE, "--features", 1, "--seed", 3, "--bandwidth", 1)
EMPTY = (*POOR, "--norm-bound", 1e-6, "--no-intercept")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("codes")
    data = MDP.sample(np.random.default_rng(2020), trajectories=20, length=50)
    aope.save_transitions(data, place / "log.parquet")
    aope.save_starts(MDP.starts, place / "starts.parquet")
    (place / "mine.py").write_text(POLICIES)
    return place


def command(name, words, threshold):
    """The words of a deciding command."""
    claim, azuma = ("--threshold", threshold), ("--radius", "azuma")
    return {
        "bound": ("bound", "log.parquet", *words, *claim, *azuma),
        "first answer": ("bound", "log.parquet", *QUESTION, *claim),
        "bound --stream": ("bound", "log.parquet", *words, *claim, *azuma, "--stream"),
        "diagnose": ("diagnose", "log.parquet", *words, *claim, *azuma, "--q", "mine:flat"),
        "diagnose --stream": ("diagnose", "log.parquet", *words, *claim, *azuma, "--q", "mine:flat", "--stream"),
        "sensitivity": ("sensitivity", "log.parquet", *words, *claim, *azuma, "--over", "norm-bound"),
        "monitor": (
            "monitor", f"{len(words)}.npz", "log.parquet", *words, *claim, "--radius", "azuma-anytime",
            "--planned", 1000, "--never-terminates",
        ),
    }[name]  # fmt: skip


COMMANDS = ("bound", "bound --stream", "diagnose", "diagnose --stream", "sensitivity", "monitor")


def judged(folder, name, words, threshold):
    done = aope_command(*command(name, words, threshold), "--json", cwd=folder)
    assert done.returncode != 2, done.stderr
    found = json.loads(done.stdout)
    return done.returncode, found["judgment"] if name == "monitor" else found["decision"]["judgment"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_claim_is_supported_refuted_or_undecided(folder, name):
    assert judged(folder, name, GOOD, 0.7) == (0, "SUPPORTED")
    assert judged(folder, name, GOOD, 1.7) == (3, "REFUTED")
    assert judged(folder, name, GOOD, 1.2) == (4, "UNDECIDED")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_class_that_is_doubted_decides_nothing(folder, name):
    for _ in range(2 if name == "monitor" else 1):  # also where the same batches are given again, and no row is new
        assert judged(folder, name, POOR, 0.5) == (5, "DOUBTED")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_class_that_is_refuted_decides_nothing(folder, name):
    for _ in range(2 if name == "monitor" else 1):
        assert judged(folder, name, EMPTY, 0.5) == (5, "INCONSISTENT")


@pytest.mark.parametrize("name", COMMANDS)
def test_what_cannot_be_proved_again_decides_nothing(folder, name, monkeypatch):
    monkeypatch.setattr(aope.Interval, "check", lambda self: False)
    for leftover in folder.glob("*.npz"):
        leftover.unlink()
    assert aope_command(*command(name, GOOD, 0.1), cwd=folder).returncode == 5


@pytest.mark.slow
def test_a_first_answer_decides(folder):
    found = json.loads(aope_command(*command("first answer", (), 1.0), "--json", cwd=folder).stdout)["intervals"][0]
    for threshold, wanted in (
        (found["lower"] - 1e-6, (0, "SUPPORTED")),
        (found["upper"] + 1e-6, (3, "REFUTED")),
        (0.5 * (found["lower"] + found["upper"]), (4, "UNDECIDED")),
    ):
        assert found["status"] == "OK" and judged(folder, "first answer", (), threshold) == wanted


def test_a_stream_that_cannot_be_compared_is_refused_before_any_work(folder, monkeypatch):
    from accountable_ope.cli import streaming

    monkeypatch.setattr(streaming, "scan_transitions", lambda *_, **__: pytest.fail("the log was read"))
    for name in ("bound --stream", "diagnose --stream"):
        words = [*command(name, GOOD, 0)]
        del words[words.index("--threshold") : words.index("--threshold") + 2]
        done = aope_command(*words, "--better-than-logged", cwd=folder)
        assert done.returncode == 2 and "--better-than-logged, which needs all rows at once" in done.stderr
