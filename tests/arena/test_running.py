"""Contestants on logs: every trial is kept, refusals too, and a run that is repeated gives the same rows."""

import math
from dataclasses import replace

import numpy as np
import pytest

from accountable_ope.arena import running
from accountable_ope.arena.bout import REFUSED, Bout
from accountable_ope.arena.challenges import challenge_named
from accountable_ope.arena.costs import BUDGET, FEW, LEAST, MANY, Costs
from accountable_ope.arena.entrants import ENTRANT_NAMES, entrant, entrants_named
from accountable_ope.arena.keeping import keep_bouts, read_bouts, read_kept
from accountable_ope.arena.own import OWN
from accountable_ope.arena.running import Arena, Plan, bout
from accountable_ope.baselines.contestant import Contestant, Needs
from accountable_ope.errors import InvalidInput
from accountable_ope.problem.statements import Guarantee
from accountable_ope.runner.store import Store

CHALLENGE = challenge_named("bandit-logged")
FAST = entrants_named(["aope sandwich", "trajectory student", "per-decision bootstrap"])


def log(n=300):
    return CHALLENGE.draw(np.random.default_rng(0), n)


def without_seconds(rows):
    return [replace(row, seconds=0.0) for row in rows]


def test_everybody_is_asked_once_with_names_that_differ():
    assert len(set(ENTRANT_NAMES)) == len(ENTRANT_NAMES) > len(OWN)
    with pytest.raises(InvalidInput, match=r"`contestant` must be one of aope default, .* Got 'oracle'"):
        entrants_named(["oracle"])


@pytest.mark.parametrize("name", [each.name for each in OWN])
def test_ours_hand_back_an_interval_or_say_that_they_cannot(name):
    row = bout(CHALLENGE, entrant(name), log(), 300, 0, 0.1)
    assert row.status in ("OK", "DOUBTED", "VACUOUS") and row.low <= row.lower <= row.upper <= row.high
    assert row.seconds > 0 and not row.reason


def test_who_raises_is_kept_with_the_sentence():
    def broken(entry, delta, rng):
        raise ZeroDivisionError("no episodes,\n none at all")

    liar = Contestant("broken", "raises", "nobody", Guarantee.FINITE_SAMPLE, Needs(), broken)
    row = bout(CHALLENGE, liar, log(), 300, 0, 0.1)
    assert (row.status, row.reason) == (REFUSED, "ZeroDivisionError: no episodes, none at all")
    assert math.isnan(row.lower) and row.refused and not row.held and not row.missed and row.width == 1


def test_needs_decide_who_is_asked():
    names = [each.name for each in running.applicable(challenge_named("cartpole"), entrants_named())]
    assert "aope default" in names and "aope certified" not in names and "trajectory student" not in names
    assert "trajectory student" in [each.name for each in running.applicable(CHALLENGE, entrants_named())]


def test_a_run_that_is_repeated_gives_the_same_rows_and_computes_nothing_twice(tmp_path, monkeypatch):
    arena = Arena((CHALLENGE,), FAST, Plan((300,), 2), tmp_path, 1)
    rows = arena.run()
    assert len(rows) == 6 and {row.key for row in rows} == {row.key for row in read_bouts(tmp_path, [CHALLENGE])}
    alone = Arena((CHALLENGE,), FAST, Plan((300,), 2), None, 1).run()
    assert without_seconds(alone) == without_seconds(rows)

    real, asked = running.bout, []
    monkeypatch.setattr(running, "bout", lambda *words: asked.append(words[4]) or real(*words))
    assert arena.run() == rows and asked == []
    more = Arena((CHALLENGE,), FAST, Plan((300,), 3), tmp_path, 1).run()
    assert set(asked) == {2} and [row for row in more if row.log < 2] == list(rows)


def test_a_run_goes_on_from_one_file_of_trials(tmp_path, monkeypatch):
    rows = Arena((CHALLENGE,), FAST, Plan((300,), 2), None, 1).run()
    keep_bouts(rows, tmp_path / "kept.parquet")
    known = read_kept(tmp_path / "kept.parquet", [CHALLENGE])
    assert {row.key: row for row in known} == {row.key: row for row in rows}
    real, asked = running.bout, []
    monkeypatch.setattr(running, "bout", lambda *words: asked.append(words[4]) or real(*words))
    more = Arena((CHALLENGE,), FAST, Plan((300,), 3), None, 1, known).run()
    assert set(asked) == {2} and [row for row in more if row.log < 2] == list(rows)
    keep_bouts([replace(row, truth=row.truth + 1) for row in rows], tmp_path / "forged.parquet")
    with pytest.raises(InvalidInput, match=r"forged.parquet holds rows of another problem 'bandit-logged': use another one"):
        read_kept(tmp_path / "forged.parquet", [CHALLENGE])


def test_ours_say_which_recipe_made_them():
    rows = Arena((CHALLENGE,), FAST, Plan((300,), 1), None, 1).run()
    assert {row.contestant: bool(row.recipe) for row in rows} == {each.name: each.name.startswith("aope ") for each in FAST}


def test_two_processes_give_the_rows_of_one():
    plan = Plan((300,), 2)
    one, two = (Arena((CHALLENGE,), FAST[:1], plan, None, workers).run() for workers in (1, 2))
    assert without_seconds(one) == without_seconds(two)


def test_rows_of_another_problem_are_refused(tmp_path):
    row = bout(CHALLENGE, FAST[0], log(), 300, 0, 0.1)
    Store(tmp_path, Bout).write("one", [replace(row, truth=0.5)])
    with pytest.raises(InvalidInput, match="another problem 'bandit-logged'"):
        list(read_bouts(tmp_path, [CHALLENGE]))


def test_the_plan_asks_cheap_methods_often_and_fits_the_budget():
    seconds = {("a", 1000, "fast"): 0.1, ("a", 1000, "slow"): 5.0}
    costs = Costs(seconds)
    assert [costs.trials(cell) for cell in seconds] == [MANY, FEW] and costs.total == pytest.approx(160)
    assert costs.too_slow(("a", 20_000, "slow")) and not costs.too_slow(("a", 5_000, "slow"))
    many = Costs({("a", n, "slow"): 59.0 for n in range(20)} | {("a", 1, "fast"): 0.5})
    assert LEAST <= many.trials(("a", 3, "slow")) < FEW and many.trials(("a", 1, "fast")) == MANY
    assert many.total <= BUDGET
    assert sum(line.trials for line in many.lines()) == sum(many.trials(cell) for cell in many.seconds)


def test_the_first_log_decides_how_many_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr("accountable_ope.arena.costs.MANY", 4)
    rows = Arena((CHALLENGE,), FAST[1:], Plan((300,)), tmp_path, 1).run()
    assert {row.log for row in rows} == {0, 1, 2, 3}
