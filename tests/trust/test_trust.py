"""`aope trust`: what is counted, what is kept, what is said."""

import json
import pickle
from dataclasses import fields, make_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.errors import InvalidInput
from accountable_ope.runner.store import Store, save_rows
from accountable_ope.trust.answers import Answer, Plan, Question, read_answers, read_kept, run_answers
from accountable_ope.trust.goals import goals
from accountable_ope.trust.methods import Method, ask, guessed, methods_named
from accountable_ope.trust.page import BEGIN, END
from accountable_ope.trust.recipe import _parsed, made_by, recipe_mark
from accountable_ope.trust.summary import refuted, summarize, verdict
from accountable_ope.trust.tasks import task_named
from command import aope_command

TRUTH = task_named("cartpole").target("leaning").truth.value
SMALL = Plan(sizes=(500,), methods=(Method.DEFAULT, Method.SANDWICH), logs=1)
RIGHT, WRONG = (TRUTH - 1, TRUTH + 1), (TRUTH + 0.5, TRUTH + 1.5)


def answer(log, ends=RIGHT, status="OK", task="cartpole", policy="leaning", method="default"):
    truth = task_named(task).target(policy).truth.value
    return Answer(task, policy, method, "NEURAL", 2000, log, log, 0.1, *ends, truth, 0.01, 0.0, 20.0, status, 2.0)


def answers(*wanted, **details):
    return [answer(log, ends, status, **details) for log, (ends, status) in enumerate(wanted)]


NOTHING = (float("nan"), float("nan"))


def test_every_answer_is_counted_once():
    rows = answers(
        (RIGHT, "OK"), (RIGHT, "DOUBTED"), ((0.0, 20.0), "VACUOUS"), (NOTHING, "INCONSISTENT"), (WRONG, "DOUBTED"), (WRONG, "OK"),
        (WRONG, "OK"),
    )  # fmt: skip
    [row] = summarize(rows)
    assert (row.logs, row.covered, row.vacuous, row.inconsistent, row.wrong_with_doubt, row.wrong) == (7, 3, 1, 1, 1, 2)
    assert row.logs == row.covered + row.inconsistent + row.wrong_with_doubt + row.wrong
    assert row.width == pytest.approx(0.075)  # of 2/20, 2/20, 1, 1/20, 1/20, 1/20
    assert row.farthest == pytest.approx(0.025)
    assert row.rate == 2 / 7 and row.exceeds and not row.refuted
    said = verdict([row])
    assert said.startswith("Of 7 first answers on 1 task, 2 (28.6%) were wrong without a doubt, where 10% would be allowed")
    assert "More than allowed: cartpole / leaning at n = 2000 (2 of 7). The default is not refuted." in said


def test_a_miss_that_may_be_the_simulations_is_not_counted():
    near, far = (answer(0, (TRUTH + beyond, 20.0)) for beyond in (0.009, 0.011))
    assert near.covered and not near.wrong
    assert far.wrong and not far.covered


def test_the_default_is_refuted_by_many_wrong_answers_without_a_doubt_and_by_nothing_else():
    assert refuted(summarize(answers(*[(WRONG, "OK")] * 8)))
    for innocent in (
        answers(*[(WRONG, "DOUBTED")] * 8),
        answers(*[(NOTHING, "INCONSISTENT")] * 8),
        answers(*[(WRONG, "OK")] * 8, method="sandwich"),
        answers(*[((5.0, 6.0), "OK")] * 8, task="coarse", policy="right"),
        answers(*[(WRONG, "OK")] * 2, *[(RIGHT, "OK")] * 18),
    ):
        assert not refuted(summarize(innocent))
    hidden = verdict(summarize(answers(*[((5.0, 6.0), "OK")] * 8, task="coarse", policy="right")))
    assert hidden.startswith("Where the logged state hides something (coarse), 8 of 8 were wrong without a doubt;")
    assert verdict(summarize(answers((WRONG, "OK"), method="sandwich"))) == "The default was not asked."


def kept(folder, rows):
    Store(folder, Answer).write("some", rows)
    return folder


def test_exit_codes_json_and_page_of_what_a_folder_holds(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{BEGIN}\n{END}\n")
    bad = kept(tmp_path / "bad", answers(*[(WRONG, "OK")] * 8))
    done = aope_command("trust", "--out", bad, "--stored", "--json", "--markdown", page)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["refuted"] is True and "Refuted: cartpole / leaning at n = 2000 (8 of 8)." in document["verdict"]
    [row] = document["rows"]
    assert (row["wrong"], row["rate"], row["logs"], row["method"]) == (8, 1.0, 8, "default")
    text = page.read_text()
    assert "| `cartpole` | leaning | 2000 | default | 8 | 0 | 0.050 | 0 | 0 | 0 | **8** | 0.025 | 2.0 |" in text
    assert "| `cartpole` | leaning | 17.573 | 0.0066 | [0, 20] | 200000 simulated episodes |" in text
    good = kept(tmp_path / "good", answers((RIGHT, "OK"), (NOTHING, "INCONSISTENT")))
    done = aope_command("trust", "--out", good, "--stored")
    assert done.returncode == 0
    assert done.stdout.startswith("Of 2 first answers on 1 task, 0 (0.0%) were wrong without a doubt")
    empty = aope_command("trust", "--out", good, "--stored", "--n", "10000")
    assert empty.returncode == 2 and "holds no such answers" in empty.stderr


def test_answers_of_another_truth_are_refused(tmp_path):
    kept(tmp_path, [replace(answer(0), truth=1.0)])
    with pytest.raises(InvalidInput, match="holds answers of another task 'cartpole'"):
        read_answers(tmp_path, [task_named("cartpole")])


def test_a_run_is_kept_and_not_repeated(tmp_path, monkeypatch):
    task = task_named("coarse")
    question = Question("coarse", "right", 500, 0, SMALL.methods, 0.1)
    assert pickle.loads(pickle.dumps(question)) == question  # workers get it by name
    first = run_answers([task], SMALL, workers=1, folder=tmp_path)
    assert [(row.policy, row.method, row.n, row.log) for row in first] == [
        (policy, method, 500, 0) for policy in ("right", "left") for method in ("default", "sandwich")
    ]
    monkeypatch.setattr(Question, "run", lambda self: pytest.fail("computed again"))
    assert run_answers([task], SMALL, workers=1, folder=tmp_path) == first
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        run_answers([task], replace(SMALL, logs=2), workers=1, folder=tmp_path)


def test_the_default_is_what_a_stranger_gets():
    task = task_named("coarse")
    problem = task.problem("right", task.draw(np.random.default_rng(0), 500), 0)
    [found] = ask(problem, [Method.DEFAULT], 0.1)
    interval = aope.bound_value(problem)
    assert (found.lower, found.upper, found.status) == (interval.lower, interval.upper, interval.status)
    explicit = list(ask(problem, methods_named(["certified", "azuma", "sandwich"]), 0.1))
    assert [each.method.value for each in explicit] == ["certified", "azuma", "sandwich"]
    assert (explicit[0].lower, explicit[0].upper) == (interval.lower, interval.upper)  # a table needs no norm bound


def test_the_guessed_ball_is_as_long_as_the_range_of_values():
    task = task_named("sine-bandit")
    problem = task.problem("best", task.draw(np.random.default_rng(0), 300), 0)
    chosen = aope.defaults.choose_recipe(problem, neural=False)
    guess = guessed(chosen, problem)
    assert guess.norm_bound == problem.ranges.span == 1.0 and guess.estimate is None
    assert guess.classes == (chosen.whitened,)
    assert guess.later(problem).assumptions.norm_bound == 1.0


def test_tasks_are_listed():
    done = aope_command("trust", "--list", "--json", "--task", "cartpole", "--task", "coarse")
    listed = json.loads(done.stdout)["tasks"]
    assert [(each["name"], each["hidden"], len(each["policies"])) for each in listed] == [
        ("cartpole", False, 2), ("coarse", True, 2),
    ]  # fmt: skip
    assert "leaning (17.57), balancing (20)" in aope_command("trust", "--list", "--task", "cartpole").stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "bogus"], "`task` must be one of"),
        (["--method", "bogus"], "`method` must be one of"),
        (["--logs", "0"], "`logs` must be"),
        (["--n", "10"], "`n` must be"),
        (["--delta", "2"], "`delta` must be in"),
        (["--markdown", "no-such-page.md"], "cannot be read"),
        (["--stored"], "--stored needs --out"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(arguments, message):
    done = aope_command("trust", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1


def test_the_page_has_a_place_for_the_table():
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text()
    assert page.count(BEGIN) == page.count(END) == 1


def test_kept_answers_are_read_back_and_continued_from(tmp_path):
    folder, file = kept(tmp_path / "runs", answers((RIGHT, "OK"), (WRONG, "DOUBTED"))), tmp_path / "kept.parquet"
    done = aope_command("trust", "--stored", "--out", folder, "--keep", file, "--task", "cartpole", cwd=tmp_path)
    assert done.returncode == 0 and "Answers: " in done.stderr and file.stat().st_size < 10_000
    tasks = [task_named("cartpole")]
    assert {row.key for row in read_kept(file, tasks)} == {row.key for row in read_answers(folder, tasks)}
    shown = aope_command("trust", "--stored", "--from", file, "--task", "cartpole", "--json", cwd=tmp_path)
    again = aope_command("trust", "--stored", "--out", folder, "--task", "cartpole", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["rows"] == json.loads(again.stdout)["rows"]
    refused = aope_command("trust", "--stored", "--from", file, "--keep", file, cwd=tmp_path)
    assert refused.returncode == 2 and "would replace an input" in refused.stderr
    assert aope_command("trust", "--stored", cwd=tmp_path).returncode == 2


def test_what_a_file_holds_is_not_asked_again():
    held = Question("tabular", "first", 500, 0, SMALL.methods, 0.1).run()
    plan = replace(SMALL, policies=1)
    found = run_answers([task_named("tabular")], plan, workers=1, known=[replace(row, seconds=-1.0) for row in held])
    assert [row.seconds for row in found] == [-1.0, -1.0] and {row.recipe for row in held} == {recipe_mark()}


def test_answers_that_were_kept_before_recipes_were_written_down_are_read(tmp_path):
    rows = answers((RIGHT, "OK"))
    names = [field.name for field in fields(Answer) if field.name != "recipe"]
    older = make_dataclass("Older", names)
    save_rows([older(*(getattr(row, name) for name in names)) for row in rows], tmp_path / "old.parquet")
    [old] = read_kept(tmp_path / "old.parquet", [task_named("cartpole")])
    assert old == rows[0] and old.recipe == ""
    said = made_by([old.recipe, "0123456789ab"])
    assert "not written down (1)" in said and "They are not of one recipe" in said and recipe_mark() in said


def test_a_recipe_is_marked_by_what_runs_and_not_by_what_is_said_of_it():
    plain = _parsed("def f(x):\n    return x + 1\n")
    assert plain == _parsed('def f(x):\n    """Says something."""\n    return x + 1  # more\n')
    assert plain != _parsed("def f(x):\n    return x + 2\n")


def test_goals_count_tasks_that_are_useful():
    good = answers(*[(RIGHT, "OK")] * 4)
    vacuous = answers(*[((0.0, 20.0), "VACUOUS")] * 4, task="acrobot", policy="along")
    beside = answers(*[((0.0, 20.0), "OK")] * 3, ((5.0, 6.0), "OK"), task="mountaincar", policy="along")
    hidden = answers(*[((0.0, 20.0), "VACUOUS")] * 4, task="coarse", policy="right")
    at = [[replace(row, n=10_000) for row in each] for each in (good, vacuous, beside, hidden)]
    ends = {"lower": -20.0, "upper": 0.0, "low": -20.0, "high": 0.0}
    at[1] = [replace(row, **ends) for row in at[1]]
    [goal] = goals(summarize([row for each in at for row in each]))
    assert (goal.tasks, goal.useful, goal.every, goal.holds) == (3, 1, 14, None)
    assert str(goal).startswith("At n = 10,000 the default is not vacuous and covers on 1 of 3 tasks (4 logs per row")
    assert "not decided before more of them are asked" in str(goal)
    assert replace(goal, tasks=14, useful=9).holds is False and replace(goal, tasks=14, useful=10).holds is True
    assert replace(goal, tasks=12, useful=7).holds is False, "two more would not be enough"
    assert not goals(summarize(good)), "there is no goal at 2,000 rows"
