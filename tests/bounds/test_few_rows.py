"""A fit to few rows: an assertion about what they happened not to show, which no test of residuals can judge."""

import json
from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.problem import Status
from accountable_ope.radii import DoubtKind

STARTS = np.column_stack([np.random.default_rng(5).uniform(0, 1, 3000), np.zeros(3000)])


def machine(seed: int, hot_near_the_top: float) -> aope.Transitions:
    """A machine with a load, broken or not. Running hot earns more and, near the top, breaks it in one of 30 steps."""
    rng = np.random.default_rng(seed)
    rows, load, broken = [], rng.uniform(0, 1, 40), np.zeros(40)
    for _ in range(50):
        hot = rng.random(40) < np.where(load > 0.8, hot_near_the_top, 0.5)
        breaks = (broken == 1) | (hot & (load > 0.85) & (rng.random(40) < 1 / 30))
        after = np.clip(load + np.where(hot, 0.1, -0.1) + 0.05 * rng.normal(size=40), 0, 1)
        still = (breaks & ~((broken == 1) & (rng.random(40) < 0.02))).astype(float)
        reward = np.where(broken == 1, 0.0, np.where(hot, 0.8, 0.4))
        rows.append((np.column_stack([load, broken]), hot.astype(int), reward, np.column_stack([after, still])))
        load, broken = after, still
    # A machine after the other: the rows of an episode stand side by side.
    states, actions, rewards, following = (np.concatenate(np.stack([step[part] for step in rows], axis=1)) for part in range(4))
    return aope.Transitions(states, actions, rewards, following, episodes=np.repeat(np.arange(40), 50))


def asked(data: aope.Transitions) -> aope.Problem:
    always = aope.DiscretePolicy(lambda states: np.tile([0.0, 1.0], (len(states), 1)), actions=2)
    return aope.Problem(data, aope.StartStates(STARTS), always, aope.Assumptions(discount=0.9, reward_range=(0, 1)))


@pytest.fixture(scope="module")
def seldom() -> aope.Interval:
    return aope.bound_value(asked(machine(1, hot_near_the_top=0.15)))


def test_what_few_rows_show_is_doubted(seldom: aope.Interval) -> None:
    assert seldom.status is Status.DOUBTED
    [found] = [each for each in seldom.doubts if each.kind is DoubtKind.FEW_ROWS]
    assert found.p_value is None and found.statement.parameter("showing") < 50
    ruling = seldom.decide(at_least=seldom.lower - 1e-6)
    assert ruling.judgment.name == "DOUBTED"


def test_nobody_bets_on_it(seldom: aope.Interval) -> None:
    crossed = seldom.companions().crossed
    assert crossed is not None and crossed.effective_sample_size < 50
    assert "few-rows" in {each.name for each in crossed.doubts}
    assert "for many rows" not in str(seldom.verdict())


def test_the_data_tell_whether_it_is_concealed(seldom: aope.Interval) -> None:
    problem = asked(machine(1, hot_near_the_top=0.15))
    recipe = seldom.recipe
    assert recipe is not None
    given = {"data": problem.data, "starts": problem.starts, "policy": problem.policy, "estimate": recipe.estimate}
    assert aope.verify(seldom, **given).valid
    circumstances = replace(seldom.setting.circumstances, showing_rows=0)
    concealed = replace(seldom, setting=replace(seldom.setting, circumstances=circumstances))
    assert concealed.check(), "sums alone do not tell"
    assert "how few rows show" in aope.verify(concealed, **given).message


def test_a_certificate_says_so(seldom: aope.Interval, tmp_path) -> None:
    assert seldom.check()
    seldom.save(tmp_path / "found.json")
    assert DoubtKind.FEW_ROWS in {each.kind for each in aope.verify(tmp_path / "found.json").doubts}
    document = json.loads((tmp_path / "found.json").read_text())
    assert document["setting"]["showing_rows"] > 0
    document["setting"]["showing_rows"] = 0
    (tmp_path / "forged.json").write_text(json.dumps(document))
    assert not aope.verify(tmp_path / "forged.json").valid


def test_a_certificate_that_says_too_many_rows_is_refused(seldom: aope.Interval) -> None:
    problem = asked(machine(1, hot_near_the_top=0.15))
    recipe, circumstances = seldom.recipe, seldom.setting.circumstances
    assert recipe is not None and circumstances.showing_rows < 40
    more = replace(seldom, setting=replace(seldom.setting, circumstances=replace(circumstances, showing_rows=48)))
    given = {"data": problem.data, "starts": problem.starts, "policy": problem.policy, "estimate": recipe.estimate}
    assert more.check() and "how few rows show" in aope.verify(more, **given).message


@pytest.mark.parametrize("share", [0.02, 0.005, 0.0], ids=["forty rows", "ten rows", "no row"])
@pytest.mark.parametrize("columns", [2, 6])
def test_rewards_have_no_part_in_how_many_rows_show_what_the_policy_does(share: float, columns: int) -> None:
    """Rewards of pure chance call for no weights, and those of an event that nobody logged are such."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, states = 2000, rng.normal(size=(2000, columns))
        after = np.where((np.arange(n) % 10 == 9)[:, None], rng.normal(size=states.shape), np.roll(states, -1, axis=0))
        actions = (rng.random(n) < share).astype(int)
        log = aope.Transitions(states, actions, rng.random(n), after, episodes=np.arange(n) // 10)
        always = aope.DiscretePolicy(lambda at: np.tile([0.0, 1.0], (len(at), 1)), actions=2)
        problem = aope.Problem(log, log.first_states(), always, aope.Assumptions(discount=0.9, reward_range=(0, 1)))
        found = aope.cross_fitted_interval(problem)
        assert found.effective_sample_size < 1.5 * max(actions.sum(), 20)
        often = replace(problem, policy=aope.DiscretePolicy(lambda at: np.tile([1.0, 0.0], (len(at), 1)), actions=2))
        assert aope.cross_fitted_interval(often).effective_sample_size > 500


def test_many_rows_are_no_reason_to_doubt() -> None:
    often = aope.bound_value(asked(machine(1, hot_near_the_top=0.9)))
    assert not any(each.kind is DoubtKind.FEW_ROWS for each in often.doubts)
