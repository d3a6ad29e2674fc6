"""A file of one's own: sentences in its own words, what check and compare say, and of which rows there are none."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.problem.never_logged import rows_wanted, unlogged
from accountable_ope.radii.premises import ClassWords, class_premises, state_box_premise
from accountable_ope.report.labels import premise_text
from command import aope_command

HEADER = ("visit", "step", "severity", "fever", "drug", "cured", "over", "target_action")
NAMED = ("--column", "state=severity,fever", "--column", "episode=visit", "--column", "action=drug", "--column", "reward=cured")
COLUMNS = (*NAMED, "--column", "terminated=over")
FACTS = ("--discount", 0.9, "--reward-range", 0, 1, "--radius", "azuma")


def rows(first: int = 0, proposed: int | None = None, never: int | None = None) -> list[list[object]]:
    """Visits of two days; first: the number of the first action; proposed: by the policy; never: a severity without drug 1."""
    rng, found = np.random.default_rng(0), []
    for visit in range(60):
        for step in range(2):
            severity, drug = int(rng.integers(1, 4)), int(rng.random() < 0.5)
            drug = 0 if severity == never else drug
            wanted = first + 1 if proposed is None else proposed
            found.append([f"V{visit}", step, severity, step, first + drug, drug, "yes" if step else "no", wanted])
    return found


def write(path: Path, table: list[list[object]], header: tuple[str, ...] = HEADER, delimiter: str = ",") -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *table])


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (rows(first=1), "No row has action 0, and the target policy never takes it: actions seem to be numbered from 1."),
        (rows(proposed=2), "The target policy takes action 2 (nearly all of the time at the logged states), and no row has it"),
    ],
    ids=["from one", "never logged"],
)
def test_check_says_what_bound_says(tmp_path: Path, table: list, sentence: str) -> None:
    write(tmp_path / "log.csv", table)
    checked = aope_command("check", "log.csv", *COLUMNS, cwd=tmp_path)
    assert checked.returncode == 0 and sentence in one_line(checked.stdout)
    as_json = json.loads(aope_command("check", "log.csv", *COLUMNS, "--json", cwd=tmp_path).stdout)
    assert any(sentence in each for each in as_json["columns"][0]["remarks"])
    bounded = aope_command("bound", "log.csv", *COLUMNS, *FACTS, cwd=tmp_path)
    assert sentence in one_line(bounded.stdout)


def test_check_names_the_columns_of_the_state(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", rows())
    text = aope_command("check", "log.csv", *COLUMNS, cwd=tmp_path).stdout
    assert re.search(r"severity +│ 1 to 3", text) and "state 0" not in text


def test_check_names_actions_and_the_policy_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("visit,lactate,treatment,cured,over\n1,2,drug,0,no\n1,1,wait,1,yes\n2,3,drug,1,yes\n")
    columns = ("state=lactate", "episode=visit", "action=treatment", "reward=cured", "terminated=over")
    named = [word for each in columns for word in ("--column", each)]
    without = aope_command("check", "log.csv", *named, cwd=tmp_path).stdout
    assert "drug: 66.7%, wait: 33.3%" in without
    assert "not in this file" in without
    given = aope_command("check", "log.csv", *named, "--policy", "drug if lactate > 1 else wait", cwd=tmp_path).stdout
    assert "given: drug if lactate > 1 else wait" in given
    assert "not in this file" not in given


def test_single_decisions_are_told_what_they_lack(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("lactate,action,reward\n2,0,1\n1,1,0\n")
    done = aope_command("check", "log.csv", cwd=tmp_path)
    assert "has no column `state`" in done.stderr
    assert "Did you mean" not in done.stderr
    done = aope_command("check", "log.csv", "--column", "state=lactate", cwd=tmp_path)
    assert "as in a bandit, add a column `episode` that numbers the rows" in done.stderr


def test_compare_says_of_which_policy_a_remark_is(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", rows())
    (tmp_path / "rules.py").write_text(
        "import numpy as np\n"
        "def logged(states): return np.tile([0.5, 0.5, 0.0], (len(states), 1))\n"
        "def new(states): return np.tile([0.5, 0.2, 0.3], (len(states), 1))\n"
    )
    words = ("--policy", "rules:logged", "--policy", "rules:new", "--tabular")
    done = aope_command("compare", "log.csv", *COLUMNS, *FACTS, *words, cwd=tmp_path)
    assert "rules:new: The target policy takes action 2 (30% of the time" in one_line(done.stdout)
    assert "rules:logged: The" not in one_line(done.stdout)


def test_advice_names_actions_and_states_that_nobody_logged(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", rows(never=3))
    done = aope_command("bound", "log.csv", *COLUMNS, *FACTS, "--report", "report.html", cwd=tmp_path)
    text = one_line(done.stdout)
    assert "nobody logged: action 1 in states (severity 3, fever 0), (severity 3, fever 1) (taken there" in text or (
        "nobody logged: action 1 in states (severity 3, fever 1), (severity 3, fever 0) (taken there" in text
    )
    assert "Rows are needed of what the target policy does" in (tmp_path / "report.html").read_text()
    write(tmp_path / "log.csv", rows())
    assert "Rows are needed" not in aope_command("bound", "log.csv", *COLUMNS, *FACTS, cwd=tmp_path).stdout


def test_pairs_that_nobody_logged_by_hand() -> None:
    data = aope.Transitions([[0.0], [1.0], [1.0]], [0, 0, 1], [0.0, 0.0, 1.0], [[1.0], [0.0], [0.0]], [False, False, True])
    policy = aope.DiscretePolicy(lambda states: np.tile([0.0, 0.75, 0.25], (len(states), 1)), actions=3)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))
    problem = aope.Problem(data, aope.StartStates([[0.0], [0.0]]), policy, facts)
    found = unlogged(problem)  # next states that count: 1, 0; start states: 0, 0
    assert [(each.action, each.states) for each in found] == [(1, ((0.0,),)), (2, ())]
    assert found[0].share == pytest.approx(0.75 * 3 / 4) and found[1].share == pytest.approx(0.25)
    assert "action 1 in state (dose 0)" in rows_wanted(problem, ["dose"]).text
    logged = aope.DiscretePolicy(lambda states: np.tile([1.0, 0.0, 0.0], (len(states), 1)), actions=3)
    assert rows_wanted(aope.Problem(data, aope.StartStates([[0.0]]), logged, facts)) is None


@pytest.mark.parametrize(
    ("change", "words", "sentence"),
    [
        (
            (5, 5, 3),
            ("--reward-range", 0, 1),
            "column `cured` must lie in the declared --reward-range 0 1. 1 of its entries does",
        ),
        ((5, 5, 3), ("--reward-range", 0, 1), "first 3 in row 5 (line 7)"),
        ((5, 6, "maybe"), (), "column `over` (read as terminated) must hold True or False"),
        ((5, 4, "high"), (), "column `drug` (read as action) must hold numbers. It holds text, first 'high' in row 5 (line 7)"),
        ((5, 4, -1), (), "`drug` (read as action)"),
    ],
)
def test_sentences_name_the_column_and_the_line_of_the_file(tmp_path: Path, change: tuple, words: tuple, sentence: str) -> None:
    table = rows()
    row, column, value = change
    table[row][column] = value
    write(tmp_path / "log.csv", table)
    done = aope_command("check", "log.csv", *COLUMNS, *words, cwd=tmp_path)
    assert done.returncode == 2 and sentence in done.stderr


def test_a_reward_is_found_on_its_line_though_rows_before_it_were_dropped(tmp_path: Path) -> None:
    table = rows()
    for row in table[:20]:
        row[6] = "no"  # these visits go on: their last rows are dropped
    table[31][5] = 9
    write(tmp_path / "log.csv", table)
    for command in ("check", "bound"):
        done = aope_command(command, "log.csv", *COLUMNS, *FACTS[:5], cwd=tmp_path)
        assert "first 9 in row 31 (line 33)" in done.stderr


def test_blanks_around_names_and_names_that_are_near(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", rows(), ("visit", "step", " severity", "fever", "drug", "cured", "over", "target_action"))
    loose = ("--column", "state = severity , fever", *COLUMNS[2:])
    assert aope_command("check", "log.csv", *loose, cwd=tmp_path).returncode == 0
    wrong = aope_command("check", "log.csv", "--column", "state=Severty,fever", *COLUMNS[2:], cwd=tmp_path)
    assert "has no column `Severty`, which was named as the `state`. Did you mean ` severity`?" in wrong.stderr
    meaning = aope_command("check", "log.csv", "--column", "rewards=cured", cwd=tmp_path)
    assert "Got 'rewards'. Did you mean `reward`?" in meaning.stderr


@pytest.mark.parametrize(
    ("body", "name", "sentence"),
    [
        ("", "rules.py", "rules:NAME is the function NAME of the file rules.py in the current folder."),
        ("", "rules.py:new", "rules:new is the function new of the file rules.py in the current folder."),
        ("def new(states): return ['high'] * len(states)", "rules:new", "not the name of an action. It returned 'high'"),
        ("def new(states): return [1] * len(states)", "rules:new", "np.eye(NUMBER_OF_ACTIONS)[actions]"),
        ("def new(state): return [0.2, 0.8] if state[0] > 1 else [1, 0]", "rules:new", "It works for one state alone"),
        ("def new(state): return [[0.2, 0.8]]", "rules:new", "For 3 states it returned shape (1, 2)."),
    ],
    ids=["path", "path and name", "labels", "actions", "one state", "one row"],
)
def test_policies_that_are_none(tmp_path: Path, body: str, name: str, sentence: str) -> None:
    write(tmp_path / "log.csv", rows())
    (tmp_path / "rules.py").write_text(body)
    done = aope_command("bound", "log.csv", *COLUMNS, *FACTS, "--policy", name, cwd=tmp_path)
    assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1


def test_tabs_are_read_and_spreadsheets_are_not(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", rows())
    write(tmp_path / "log.tsv", rows(), delimiter="\t")
    read = [json.loads(aope_command("check", name, *COLUMNS, "--json", cwd=tmp_path).stdout) for name in ("log.csv", "log.tsv")]
    assert read[0]["action_counts"] == read[1]["action_counts"] and read[0]["transitions"] == read[1]["transitions"]
    (tmp_path / "log.xlsx").write_bytes(b"PK")
    assert "save the sheet as CSV" in aope_command("check", "log.xlsx", cwd=tmp_path).stderr


def test_the_command_to_repeat_has_every_option(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", rows())
    options = ("--better-than-logged", "--explain", "--within", 0.07, "--delta", 0.123456789, "--state-box", "0:4,0:1")
    done = aope_command("bound", "log.csv", *COLUMNS, *FACTS, "--horizon", 2, *options, cwd=tmp_path)
    repeated = re.search(r"To repeat it: aope (.*)", done.stdout)
    assert repeated is not None
    words = shlex.split(repeated[1])
    asked = [str(word) for word in ("bound", "log.csv", *COLUMNS, *FACTS, "--horizon", 2, *options)]
    assert sorted(words) == sorted(asked)
    again = aope_command(*words, cwd=tmp_path)
    assert (again.stdout, again.returncode) == (done.stdout, done.returncode)


def test_labels_of_a_data_frame_are_text_in_objects() -> None:
    labels = np.array(["b", "a", "a"], dtype=object)
    data = aope.Transitions([[0.0], [1.0], [1.0]], [0, 0, 1], [0.0, 0.0, 1.0], [[1.0], [0.0], [0.0]], episodes=labels)
    assert data.episodes is not None and data.episodes.tolist() == [0, 1, 1]


def test_a_box_of_states_is_told_with_the_names_of_its_columns() -> None:
    told = state_box_premise(((0.0, 0.0), (4.0, 1.0)))
    assert premise_text(told, ("severity", "fever")) == (
        "Every state lies in the declared box: severity in [0, 4], fever in [0, 1]."
    )
    assert premise_text(told) == premise_text(told, ("severity",)) == told.text


def test_a_long_recipe_of_a_class_is_printed_by_its_kinds() -> None:
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    recipe = (
        "WhitenedFeatures(JoinedFeatures(NeuralFeatures(4 -> 64 -> 40, intercept=True) + TreeValues(20 trees), intercept=True))"
    )
    told = class_premises(facts, [ClassWords(recipe, 1.0, "", 42)], "Q")[0]
    assert premise_text(told) == (
        "Q lies in the class of NeuralFeatures + TreeValues (42 coefficients; `--json` has the whole recipe), chosen without "
        "looking at these data."
    )
    plain = class_premises(facts, [ClassWords("RandomFourier(dimension=3)", 1.0, "", 4)], "Q")[0]
    assert premise_text(plain) == plain.text
