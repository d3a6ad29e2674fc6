"""Columns in mixed units are noticed and named; what processes do by themselves is not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.defaults import choose_recipe, save_recipe
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem.changed_units import changed_units, changed_units_sentences
from accountable_ope.trust.tasks import tasks_named
from command import aope_command


def logged(rows: int = 1000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 2)) + np.array([1.0, 0.0])


def as_log(states: np.ndarray) -> aope.Transitions:
    return aope.Transitions(states, np.zeros(len(states), dtype=int), np.zeros(len(states)), np.roll(states, -1, axis=0))


@pytest.mark.parametrize("factor", [100.0, -60.0])
@pytest.mark.parametrize(("begin", "end"), [(600, 1000), (380, 1000), (500, 700)])
def test_a_batch_in_other_units_is_named_by_column_and_rows(factor: float, begin: int, end: int) -> None:
    states = logged()
    states[begin:end, 1] *= factor
    (found,) = changed_units(as_log(states))
    assert found.column == 1 and found.earlier_rows == 200
    assert found.first <= begin + 100 and found.last >= end - 101  # up to a block of a tenth of the rows
    assert found.first >= begin - 100 and found.last <= end + 99
    (said,) = changed_units_sentences(as_log(states), ["age", "dose"])
    assert said.startswith("Column `dose` may be in mixed units") and f"among rows {found.first:,} to {found.last:,}" in said
    assert changed_units_sentences(as_log(states))[0].startswith("Column 1 of the state may be")


def test_another_zero_is_noticed_too() -> None:
    states = logged()
    states[700:, 0] += 273.15  # degrees Celsius, then kelvin
    (found,) = changed_units(as_log(states))
    assert found.column == 0 and found.first == 700 and found.last == 999


def test_what_is_no_other_unit() -> None:
    assert list(changed_units(as_log(logged()))) == []
    few, rare, clock, odd = logged(100), logged(), logged(), logged()
    few[50:] *= 1000  # too few rows for quartiles of blocks
    rare[:, 0] = np.arange(1000) % 10 == 0  # mostly 0: it has no spread to compare with
    clock[:, 1] = np.arange(1000)
    odd[300:320] *= 1e6
    for states in (few, rare, clock, odd):
        assert list(changed_units(as_log(states))) == []


@pytest.mark.parametrize("task", tasks_named()[0], ids=lambda task: task.name)
def test_no_task_of_the_table_of_trust_makes_an_alarm(task: object) -> None:
    for seed in range(3):
        data = task.draw(np.random.default_rng(seed), 2000)
        assert list(changed_units(data)) == []
        states = np.array(data.states)
        states[1000:, 0] *= 100  # and where there is reason for one, it is made
        spread = np.quantile(states[:400, 0], [0.25, 0.75])
        assert spread[0] == spread[1] or 0 in {each.column for each in changed_units(as_log(states))}


def test_check_and_a_first_answer_say_so_and_the_interval_is_the_same(tmp_path: Path) -> None:
    mdp = PlantedMDP(seed=1, features=3, discount=0.6)
    data = mdp.sample(np.random.default_rng(0), trajectories=12, length=50)
    states, after = np.array(data.states), np.array(data.next_states)
    states[400:, 1] *= 1000
    after[400:, 1] *= 1000
    both = np.concatenate([states, after, mdp.starts.states])
    policy = aope.TabulatedPolicy(both, np.full((len(both), 3), 1 / 3), mdp.policy.action_vectors)
    mixed = aope.Transitions(states, data.actions, data.rewards, after, data.terminated, data.episodes)
    aope.save_transitions(mixed, tmp_path / "log.parquet", policy)
    aope.save_starts(mdp.starts, tmp_path / "starts.parquet", policy)
    words = ("log.parquet", "--starts", "starts.parquet", "--action-values=-1,0,1", "--discount", 0.6, "--reward-range", 0, 1)
    asked = aope.Problem(mixed, mdp.starts, policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    recipe = choose_recipe(asked, neural=False, candidates=["cosines"])
    save_recipe(recipe, tmp_path / "choice.npz")
    sentence = "may be in mixed units: the middle half of its values goes from"
    for command, more in (("check", ()), ("bound", ("--radius", "azuma", "--choice", "choice.npz"))):
        done = aope_command(command, *words, *more, cwd=tmp_path)
        assert sentence in " ".join(done.stdout.split()), done.stdout + done.stderr
    result = json.loads(aope_command("bound", *words, *more, "--json", cwd=tmp_path).stdout)
    assert any(sentence in each for each in result["columns"][0]["remarks"])
    wanted = aope.bound_value(asked, recipe=recipe, radius="azuma")  # it is a caution, and changes nothing
    found = result["intervals"][0]
    assert (found["lower"], found["upper"]) == pytest.approx((wanted.lower, wanted.upper), abs=1e-12)
