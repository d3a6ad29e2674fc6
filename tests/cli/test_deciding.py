"""--threshold, --better-than-logged, --explain and `aope compare`: what is printed first, and the exit codes of decisions."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import accountable_ope as aope
from accountable_ope.environments import random_tabular
from command import aope_command

WORLD = random_tabular(4, 2, seed=2, discount=0.8, bernoulli=True)
TARGET = np.tile([0.52, 0.48], (4, 1))
OPTIONS = ("--starts", "starts.parquet", "--discount", 0.8, "--reward-range", 0, 1, "--tabular")
POLICIES = """
import numpy as np

def left(states):
    return np.tile([1.0, 0.0], (len(states), 1))

def right(states):
    return np.tile([0.0, 1.0], (len(states), 1))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("deciding")
    data = WORLD.sample_trajectories(np.full((4, 2), 0.5), 100, 25, np.random.default_rng(0))
    policy = aope.TabulatedPolicy(np.arange(4.0), TARGET, 2)
    aope.save_transitions(data, place / "data.parquet", policy)
    aope.save_starts(WORLD.starts(), place / "starts.parquet", policy)
    (place / "two_policies.py").write_text(POLICIES)
    return place


def run(folder, *words):
    return aope_command("bound", "data.parquet", *OPTIONS, *words, cwd=folder)


def test_the_verdict_is_first_in_text_and_json_and_the_report(folder):
    text, machine = run(folder, "--report", "page.html"), json.loads(run(folder, "--json").stdout)
    sentence = machine["verdict"]["sentence"]
    assert " ".join(text.stdout.split()).startswith(sentence) and sentence.startswith("With 90% confidence the new policy's")
    assert list(machine)[:2] == ["schema", "verdict"] and machine["verdict"]["decision"]["judgment"] == "UNDECIDED"
    assert machine["logged_value"]["lower"] < WORLD.value(np.full((4, 2), 0.5)) < machine["logged_value"]["upper"]
    assert machine["cross_fitted"]["guarantee"] == "asymptotic" and machine["left_out"] == []
    page = (folder / "page.html").read_text().replace("&#39;", "'")
    assert sentence in page and page.index(sentence) < page.index("<table")
    assert text.returncode == 0


def test_a_log_that_is_there_three_times_decides_nothing(folder):
    """However its rows came twice: in one file, or in files that were written anew."""
    data, found = aope.load_transitions(folder / "data.parquet"), json.loads(run(folder, "--json").stdout)["intervals"][0]
    again = data.rows(np.tile(np.arange(len(data)), 3))
    aope.save_transitions(again, folder / "again.parquet", aope.TabulatedPolicy(np.arange(4.0), TARGET, 2))
    asked = (*OPTIONS, "--threshold", found["lower"] - 0.1)
    done = aope_command("bound", "again.parquet", *asked, "--json", cwd=folder)
    document = json.loads(done.stdout)
    assert done.returncode == 5 and document["decision"]["judgment"] == "DOUBTED", done.stderr
    assert document["decision"]["if_the_class_holds"] is None and "5,000 of 7,500 rows are copies" in document["decision"]["text"]
    assert document["intervals"][0]["status"] == "DOUBTED"
    assert document["intervals"][0]["doubts_found"][0] | {"text": ""} == {
        "kind": "copies",
        "p_value": None,
        "weak": False,
        "text": "",
    }
    text = aope_command("bound", "again.parquet", *asked, cwd=folder)
    assert " ".join(text.stdout.split()).startswith("Some 5,000 of 7,500 rows are copies of earlier ones")
    logs = folder / "logs"
    logs.mkdir()
    for number, compression in enumerate(("snappy", "gzip", "zstd")):
        table = pq.read_table(folder / "data.parquet", columns=["state", "action", "reward", "next_state", "terminated"])
        pq.write_table(table, logs / f"part-{number}.parquet", compression=compression)
    read = ("--stream", "--policy", "two_policies:left", *(each for each in OPTIONS if each != "--tabular"), "--features", 5)
    done = aope_command("bound", "logs", *read, "--norm-bound", 50, "--threshold", 0.1, cwd=folder)
    said = " ".join(done.stdout.split())
    assert done.returncode == 5 and said.startswith("Some 5,000 of 7,500 rows are copies of earlier ones"), done.stderr
    assert "No function of the class fits, which may be for that reason alone." in said


def test_exit_codes_of_a_threshold(folder):
    found = json.loads(run(folder, "--json").stdout)["intervals"][0]
    for threshold, code, judgment in (
        (found["lower"] - 1e-6, 0, "SUPPORTED"),
        (found["upper"] + 1e-6, 3, "REFUTED"),
        (0.5 * (found["lower"] + found["upper"]), 4, "UNDECIDED"),
    ):
        done = run(folder, "--threshold", threshold, "--json")
        assert (done.returncode, json.loads(done.stdout)["decision"]["judgment"]) == (code, judgment)
    shown = run(folder, "--threshold", found["upper"] + 1e-6).stdout
    assert "Decision: REFUTED: value >= " in shown


def test_refuted_and_doubted_classes_decide_nothing(folder):
    poor = ("--starts", "starts.parquet", "--discount", 0.8, "--reward-range", 0, 1, "--threshold", 3, "--kernel", "tabular")
    done = aope_command("bound", "data.parquet", *poor, "--features", 2, "--norm-bound", 1e-3, cwd=folder)
    assert done.returncode == 5 and ("INCONSISTENT" in done.stdout or "DOUBTED" in done.stdout), done.stdout


def test_better_than_logged_is_at_half_of_delta_each(folder):
    done = run(folder, "--better-than-logged", "--json")
    found = json.loads(done.stdout)["decision"]
    assert done.returncode == 4 and found["delta"] == 0.1
    assert "each with 95% confidence and both together with 90%" in found["text"]
    both = run(folder, "--better-than-logged", "--threshold", 1)
    assert both.returncode == 2 and "exclude each other" in both.stderr
    wrong = run(folder, "--threshold", "nan")
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1


def test_explain_says_what_the_width_is_made_of(folder):
    machine = json.loads(run(folder, "--explain", "--json").stdout)["breakdown"]
    assert {each["name"] for each in machine["parts"]} == {"noise", "range"}
    # Rewards that are a function of (s, a) are not among them: the log shows two at one pair.
    assert {each["name"] for each in machine["remedies"]} == {"norm-bound", "one-step-range", "value-range"}
    assert machine["rows_for_half"]["rows"] is None or machine["rows_for_half"]["rows"] > 2500
    assert "breakdown" not in json.loads(run(folder, "--json").stdout)
    assert "What the width" in run(folder, "--explain").stdout


def test_average_rewards_are_compared_with_nothing(folder):
    words = ("bound", "data.parquet", "--average-reward", "--reward-range", 0, 1, "--value-span", 3, "--tabular")
    for option in ("--better-than-logged", "--explain"):
        done = aope_command(*words, option, cwd=folder)
        assert done.returncode == 2 and f"does not go with {option}" in done.stderr
    decided = aope_command(*words, "--threshold", -1, cwd=folder)
    assert decided.returncode == 0 and "SUPPORTED" in decided.stdout, decided.stderr


def test_sensitivity_decides_with_its_threshold(folder):
    words = ("sensitivity", "data.parquet", *OPTIONS, "--over", "delta", "--radius", "azuma")
    found = json.loads(aope_command(*words, "--json", cwd=folder).stdout)
    assert found["verdict"]["sentence"]
    middle = 0.5 * (found["intervals"][0]["lower"] + found["intervals"][0]["upper"])
    assert aope_command(*words, "--threshold", middle, cwd=folder).returncode == 4
    assert aope_command(*words, "--threshold", 5.5, cwd=folder).returncode == 3


def test_diagnose_decides_too(folder):
    (folder / "guess.py").write_text("import numpy as np\n\ndef q(states, actions):\n    return np.full(len(states), 2.5)\n")
    words = ("diagnose", "data.parquet", *OPTIONS, "--q", "guess:q", "--radius", "azuma")
    plain = aope_command(*words, "--json", cwd=folder)
    assert plain.returncode == 0 and json.loads(plain.stdout)["verdict"] in ("CONSISTENT", "REJECTED")
    assert json.loads(plain.stdout)["value_verdict"]["sentence"]
    assert aope_command(*words, "--threshold", -1, cwd=folder).returncode == 0
    assert aope_command(*words, "--threshold", 6, cwd=folder).returncode == 3


def test_compare_has_a_row_per_policy_and_the_logged_one(folder):
    words = ("compare", "data.parquet", *OPTIONS, "--policy", "two_policies:left", "--policy", "two_policies:right")
    done = aope_command(*words, "--json", "--plot", "bars.png", cwd=folder)
    found = json.loads(done.stdout)
    assert [each["name"] for each in found["policies"]] == ["two_policies:left", "two_policies:right", "logged policy"]
    assert found["delta_each"] == pytest.approx(0.1 / 3) and (folder / "bars.png").stat().st_size > 1000
    for each, table in zip(found["policies"], (np.eye(2)[[0] * 4], np.eye(2)[[1] * 4], np.full((4, 2), 0.5)), strict=True):
        assert each["lower"] <= WORLD.value(table) <= each["upper"]
        assert each["bet"].startswith(f"{each['name']}: ") and (each["cross_fitted"] is None) == each["logged"]
    for each in found["policies"][:2]:  # it needs no class, and lies inside of what is proved
        assert each["lower"] < each["cross_fitted"]["lower"] < each["cross_fitted"]["upper"] < each["upper"]
        assert each["cross_fitted"]["delta"] == pytest.approx(found["delta_each"])
    text = aope_command(*words, cwd=folder)
    said = " ".join(text.stdout.split())
    assert said.startswith(found["verdict"]["sentence"]) and text.returncode == done.returncode == 0
    assert "What a practitioner would bet on, for many rows (nothing of it is proved):" in said
    assert all(each["bet"] in said for each in found["policies"])
    twice = aope_command(*words, "--policy", "two_policies:left", cwd=folder)
    assert twice.returncode == 2 and "different policies" in twice.stderr


def test_compare_takes_the_policy_of_the_columns(folder):
    done = aope_command("compare", "data.parquet", *OPTIONS, "--no-logged-policy", "--radius", "azuma", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert [each["name"] for each in found["policies"]] == ["the columns"] and found["differences"] == []


def test_an_interval_that_cannot_be_proved_again_decides_nothing(folder, monkeypatch, capsys):
    from accountable_ope.cli import main

    monkeypatch.chdir(folder)
    monkeypatch.setattr(aope.Interval, "check", lambda self: False)
    for more in ((), ("--threshold", "0")):
        monkeypatch.setattr("sys.argv", ["aope", "bound", "data.parquet", *map(str, OPTIONS), *more])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 5 and "NOT VALID" in capsys.readouterr().out


def test_compare_decides_whether_one_is_the_best(folder, monkeypatch):
    from accountable_ope.bounds.comparison import Comparison, Difference
    from accountable_ope.bounds.decision import Judgment

    words = ("compare", "data.parquet", *OPTIONS, "--radius", "azuma", "--policy", "two_policies:left")
    done = aope_command(*words, "--best", "two_policies:left", "--json", cwd=folder)
    found = json.loads(done.stdout)["decision"]
    assert done.returncode == 4 and found["judgment"] == "UNDECIDED" and found["delta"] == 0.1
    assert found["claim"] == "value of two_policies:left > that of logged policy"
    real = Comparison.difference
    for judgment, code in (
        (Judgment.SUPPORTED, 0),
        (Judgment.REFUTED, 3),
        (Judgment.UNDECIDED, 4),
        (Judgment.DOUBTED, 5),
        (Judgment.INCONSISTENT, 5),
    ):

        def judged(self, first, second, judgment=judgment):
            pair = real(self, first, second)
            return Difference(first, second, pair.lower, pair.upper, pair.paired, judgment)

        monkeypatch.setattr(Comparison, "difference", judged)
        said = aope_command(*words, "--best", "two_policies:left", cwd=folder)
        assert said.returncode == code and f"Decision: {judgment.name}: value of two_policies:left >" in said.stdout
    for wrong, message in (
        (("--best", "nobody"), "--best must name one of the policies"),
        (("--best", "two_policies:left", "--no-logged-policy"), "there is nothing to compare with"),
    ):
        refused = aope_command(*words, *wrong, cwd=folder)
        assert refused.returncode == 2 and message in refused.stderr and len(refused.stderr.splitlines()) == 1
