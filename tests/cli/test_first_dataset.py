"""A stranger's table on the command line: what is said before any work, what is named while it goes on, and how it ends."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accountable_ope.cli.application import COMMANDS
from accountable_ope.cli.exits import DOUBTED, NO_DECISION
from command import aope_command

HEADER = ("patient", "step", "severity", "fever", "action", "reward", "terminated", "target_action")
COLUMNS = ("--column", "state=severity,fever", "--column", "episode=patient")
FACTS = ("--discount", 0.9, "--reward-range", 0, 1, "--terminal-reward")
QUICK = ("--radius", "azuma")


def stays(patients: int = 150, seed: int = 0) -> list[list[object]]:
    """A ward with two columns of the state; the proposal always gives the drug."""
    rng, rows = np.random.default_rng(seed), []
    for patient in range(patients):
        severity, fever = int(rng.integers(1, 4)), int(rng.random() < 0.5)
        for step in range(6):
            drug, seen = int(rng.random() < 0.5), (severity, fever)
            severity += 1 if rng.random() < 0.4 - 0.2 * drug else -1
            over = severity in (0, 4)
            rows.append([f"P{patient}", step, *seen, drug, int(severity == 0), over, 1])
            if over:
                break
            fever = int(rng.random() < 0.5)
    return rows


def write(path: Path, rows: list[list[object]], header: tuple[str, ...] = HEADER) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "log.csv", stays())
    starts = [(severity, fever, 1) for severity in (1, 2, 3) for fever in (0, 1)]
    write(tmp_path / "starts.csv", [*map(list, starts)], ("severity", "fever", "target_action"))
    return tmp_path


def bound(folder: Path, *words: object, log: str = "log.csv") -> subprocess.CompletedProcess:
    return aope_command("bound", log, *COLUMNS, *FACTS, *QUICK, *words, cwd=folder)


def test_from_csv_to_an_interval(folder: Path) -> None:
    done = bound(folder, "--starts", "starts.csv", "--json")
    found = json.loads(done.stdout)
    rows = stays()
    last = {row[0]: row for row in rows}.values()
    dropped = sum(not row[6] for row in last)
    assert found["transitions"] == len(rows) - dropped and done.stderr == ""
    assert any(f"{dropped} rows dropped" in each for each in found["columns"][0]["remarks"])
    assert found["columns"][0]["read_as"] == {"patient": "episode", "severity": "state", "fever": "state"}
    again = bound(folder, "--starts", "starts.csv")
    repeated = re.search(r"To repeat it: aope (.*)", again.stdout)
    assert repeated is not None and "--column state=severity,fever --column episode=patient" in repeated[1]
    assert "Next states are the states of the following rows of each episode (log.csv)." in again.stdout


def test_the_same_columns_in_other_commands(folder: Path) -> None:
    check = aope_command("check", "log.csv", *COLUMNS, "--reward-range", 0, 1, cwd=folder)
    assert check.returncode == 0 and "rows dropped" in check.stdout
    both = ("--starts", "starts.csv", *FACTS, *QUICK, "--tabular", "--json")
    compared = aope_command("compare", "log.csv", *COLUMNS, *both, cwd=folder)
    assert compared.returncode in (0, 3) and json.loads(compared.stdout)["columns"][0]["remarks"], compared.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--column", "state"), "--column must say which column is which, such as state=age,dose. Got 'state'."),
        (("--column", "stat=age"), "--column must name one of state, action, reward"),
        (("--column", "state=fever"), "--column state=... is given twice"),
        (("--column", "reward=money"), "log.csv has no column `money`, which was named as the `reward`"),
    ],
)
def test_columns_that_are_not_there(folder: Path, words: tuple, sentence: str) -> None:
    done = bound(folder, *words)
    assert done.returncode == 2 and sentence in done.stderr and len(done.stderr.splitlines()) == 1


def test_start_states_in_other_units(folder: Path) -> None:
    write(folder / "percent.csv", [[100 * s, f, 1] for s in (1, 2, 3) for f in (0, 1)], ("severity", "fever", "target_action"))
    done = bound(folder, "--starts", "percent.csv")
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert "All start states lie far outside of the logged states: column `severity` goes from 100 to 300 there" in done.stderr
    check = aope_command("check", "log.csv", *COLUMNS, "--starts", "percent.csv", cwd=folder)
    assert check.returncode == 2 and "far outside of the logged states" in check.stderr
    one = [[1, 0, 1], [30, 0, 1]]
    write(folder / "one.csv", one, ("severity", "fever", "target_action"))
    found = json.loads(bound(folder, "--starts", "one.csv", "--json").stdout)
    assert any("1 of 2 start states lie far outside" in each for each in found["columns"][0]["remarks"])


def test_an_action_that_was_never_logged(folder: Path) -> None:
    rows = [[*row[:-1], 2] for row in stays()]
    write(folder / "new.csv", rows)
    found = json.loads(bound(folder, "--json", log="new.csv").stdout)
    [remark] = [each for each in found["columns"][0]["remarks"] if "takes action" in each]
    assert remark.startswith("The target policy takes action 2 (nearly all of the time at the logged states), and no row has it")
    assert not any("takes action" in each for each in json.loads(bound(folder, "--json").stdout)["columns"][0]["remarks"])


def test_scales_that_one_bandwidth_does_not_serve(folder: Path) -> None:
    rows = [[*row[:2], row[2] * 5000.0, *row[3:]] for row in stays()]
    write(folder / "scales.csv", rows)
    named = bound(folder, "--features", 5, "--json", log="scales.csv")
    remarks = json.loads(named.stdout)["columns"][0]["remarks"]
    assert any("have unlike scales" in each and "one bandwidth serves all" in each for each in remarks)
    # The default scales every column by itself, and a table compares for equality.
    for words in ((), ("--tabular",)):
        found = json.loads(bound(folder, *words, "--json", log="scales.csv").stdout)
        assert not any("unlike scales" in each for each in found["columns"][0]["remarks"])


def test_shuffled_rows(folder: Path) -> None:
    """With columns of next states nothing is formed, and the order can be seen."""
    rng = np.random.default_rng(0)
    rows = []
    for patient in range(60):
        x = np.round(rng.normal(size=5).cumsum(), 3)
        rows += [[patient, x[k], x[k + 1], 0, 0.5, 0] for k in range(4)]
    header = ("episode", "state", "next_state", "action", "reward", "target_action")
    write(folder / "shuffled.csv", [rows[k] for k in rng.permutation(len(rows))], header)
    done = aope_command("bound", "shuffled.csv", "--discount", 0.9, "--reward-range", 0, 1, cwd=folder)
    assert done.returncode == 2 and "the rows are shuffled. Sort them by episode and time" in done.stderr


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("np.full((len(states), 2), 0.4)", r"Row 0 sums to 0.8: at the state \[.*\] the policy answered \[0.4, 0.4\]"),
        (
            "np.full((1, 2), 0.5)",
            r"must map states, an array \(n, 2\), to probabilities .* For 3 states it returned shape \(1, 2\)",
        ),
        ("states[:, 0]", r"--policy wrong:rule must map states, an array \(n, 2\), .* For 3 states it returned one number each"),
    ],
)
def test_wrong_policies_say_where(folder: Path, body: str, sentence: str) -> None:
    (folder / "wrong.py").write_text(f"import numpy as np\ndef rule(states):\n    return {body}\n")
    done = bound(folder, "--policy", "wrong:rule")
    assert done.returncode == 2 and re.search(sentence, done.stderr), done.stderr


def test_exit_codes_are_in_the_help_and_on_the_pages() -> None:
    """One list, in the help of the command, and the same meanings on both pages."""
    text = COMMANDS["bound"][1]
    assert DOUBTED == NO_DECISION == 5
    assert "3 vacuous; 4 no function of the class fits; 5 the class, or its norm bound, is doubted" in text
    assert "0 supported; 3 refuted; 4 undecided; 5 not decided" in text
    shown = " ".join(aope_command("bound", "--help").stdout.split())
    assert " ".join(text.split("\n\n")[1].split()) in shown
    docs = Path(__file__).parents[2] / "docs"
    verdict = (docs / "verdict.md").read_text()
    for row in (
        "| 0 | SUPPORTED |",
        "| 3 | REFUTED | VACUOUS |",
        "| 4 | UNDECIDED | INCONSISTENT |",
        "| 5 | DOUBTED or INCONSISTENT | DOUBTED |",
    ):
        assert row in verdict
    page = (docs / "command-line.md").read_text()
    for row in ("| 3 | REFUTED |", "| 4 | UNDECIDED |", "| 5 | not decided, since the result is DOUBTED or INCONSISTENT"):
        assert row in page


def test_a_doubted_class_exits_with_five_whether_or_not_it_is_to_decide(folder: Path) -> None:
    """A class that cannot hold Q, on rows enough to see it."""
    write(folder / "many.csv", stays(300, seed=1))
    poor = ("--features", 4, "--norm-bound", 5, "--starts", "starts.csv", "--kernel", "tabular", "--json")
    plain = bound(folder, *poor, log="many.csv")
    assert json.loads(plain.stdout)["intervals"][0]["status"] == "DOUBTED", plain.stdout[:500]
    asked = bound(folder, *poor, "--threshold", 0.45, log="many.csv")
    assert json.loads(asked.stdout)["decision"]["judgment"] == "DOUBTED"
    assert plain.returncode == asked.returncode == 5


def seen_on_a_terminal(words: list[str], folder: Path) -> str:
    """What a process writes to its error stream when that is a terminal; its output goes to a pipe."""
    ours, theirs = pty.openpty()
    code = "from accountable_ope.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        text = b""
        while True:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # closed at the other end
                    break
                if not part:
                    break
                text += part
            elif process.poll() is not None:
                break
    os.close(ours)
    return text.decode()


@pytest.mark.slow
def test_stages_are_named_on_a_terminal_and_nowhere_else(folder: Path) -> None:
    words = [str(word) for word in ("bound", "log.csv", *COLUMNS, *FACTS, *QUICK)]
    text = seen_on_a_terminal(words, folder)
    at = [text.find(stage) for stage in ("Note: Next states are", "choosing on earlier rows", "bounding", "checking")]
    assert min(at) >= 0 and at == sorted(at), text
    assert "reading" in text
    assert aope_command(*words, cwd=folder).stderr == ""
    assert "checking" not in seen_on_a_terminal([*words, "--json"], folder)
