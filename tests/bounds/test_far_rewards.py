"""Rewards far from 0, and rewards in any unit: a constant in every reward is one in the value, and a factor is a factor."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds import anderson_rubin_interval, sandwich_interval
from accountable_ope.defaults import Recipe, choose_recipe
from accountable_ope.environments import PlantedMDP, random_tabular
from accountable_ope.problem.statements import range_text

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=6, length=40)
TABLE, TARGET = random_tabular(5, 2, seed=3, discount=0.6), np.tile([0.8, 0.2], (5, 1))
ROWS = TABLE.sample_trajectories(np.full((5, 2), 0.5), 24, 25, np.random.default_rng(0))
SHIFTS = (1e3, -1e6, 1e9)


def moved(data: aope.Transitions, shift: float = 0.0, scale: float = 1.0, **changes: object) -> aope.Problem:
    """The question with rewards shift + scale * reward."""
    columns = (data.states, data.actions, shift + scale * data.rewards, data.next_states, data.terminated, data.episodes)
    facts = aope.Assumptions(discount=0.6, reward_range=(shift, shift + scale), **changes)
    if data is ROWS:
        return aope.Problem(aope.Transitions(*columns), TABLE.starts(), TABLE.policy(TARGET), facts)
    return aope.Problem(aope.Transitions(*columns), MDP.starts, MDP.policy, facts)


def chosen(problem: aope.Problem) -> Recipe:
    return choose_recipe(problem, neural=False, candidates=["narrow cosines"] if problem.data.states.shape[1] > 1 else None)


@cache
def answer(table: bool, shift: float = 0.0, scale: float = 1.0) -> aope.Interval:
    problem = moved(ROWS if table else DATA, shift, scale)
    return aope.bound_value(problem, recipe=chosen(problem), pointwise=False)


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("table", [False, True])
def test_a_constant_in_the_rewards_is_one_in_the_value(table: bool, shift: float) -> None:
    """The digits that the log has are there in the ends, and in the proof."""
    plain, far = answer(table), answer(table, shift)
    assert far.status is plain.status and far.check() and plain.width < 2.4
    found, expected = np.array([far.lower, far.upper]) - shift / 0.4, np.array([plain.lower, plain.upper])
    assert np.abs(found - expected).max() < 5e-3 * plain.width
    # Tolerances of the proof are in units of how far values differ, not of how far from 0 they are.
    assert not replace(far, lower=far.lower + 1e-3, unclipped=(far.unclipped[0] + 1e-3, far.unclipped[1])).check()


@pytest.mark.parametrize("table", [False, True])
def test_its_certificate_is_proved_with_the_data(table: bool, tmp_path: Path) -> None:
    problem, far = moved(ROWS if table else DATA, 1e6), answer(table, 1e6)
    far.save(tmp_path / "certificate.json")
    given = {"data": problem.data, "starts": problem.starts, "policy": problem.policy}
    found = aope.verify(tmp_path / "certificate.json", **given, estimate=far.recipe.estimate)
    assert found.valid and "Its sums are those of the data" in found.message
    other = moved(ROWS if table else DATA, 1e6 + 1)
    assert not aope.verify(tmp_path / "certificate.json", **(given | {"data": other.data})).valid


def test_estimates_and_declared_ranges_far_from_0() -> None:
    features, kernel = MDP.features(), aope.Gaussian(1.0)
    near, far = (
        moved(DATA, shift, norm_bound=2 * MDP.norm, value_range=(shift / 0.4, shift / 0.4 + 2.0)) for shift in (0.0, 1e6)
    )
    for ask in (sandwich_interval, anderson_rubin_interval):
        one, other = (ask(problem, features=features, kernel=kernel) for problem in (near, far))
        assert [other.lower - 2.5e6, other.upper - 2.5e6] == pytest.approx([one.lower, one.upper], abs=1e-4)
    one, other = (
        aope.diagnose(lambda s, a, c=c: np.full(len(s), 1.0 + c), problem, features=features, kernel=kernel, radius="azuma")
        for problem, c in ((near, 0.0), (far, 2.5e6))
    )
    assert other.estimate - 2.5e6 == pytest.approx(one.estimate) and other.verdict is one.verdict
    assert other.interval.lower - 2.5e6 == pytest.approx(one.interval.lower, abs=1e-3) and other.interval.check()


def test_where_episodes_end_nothing_is_subtracted() -> None:
    """There a constant in every reward is none in the values, whose range reaches down to that of one step."""
    ended = DATA.terminated.copy()
    ended[39::40] = True
    data = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, DATA.next_states, ended, DATA.episodes)
    problem = moved(data, 1e6)
    interval = aope.bound_value(problem, recipe=chosen(problem), pointwise=False)
    assert interval.certificates[0].basis.reference == 0 and interval.ranges.value[0] == 1e6 and interval.check()


def test_digits_that_no_float_holds_are_asked_for_before_any_work() -> None:
    with pytest.raises(
        aope.InvalidInput, match=r"fewer than 6 are left .* Subtract a constant c, such as 1e\+11, from all rewards"
    ):
        moved(DATA, 1e11)
    ended = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, DATA.next_states, np.arange(len(DATA)) % 40 == 39)
    assert moved(ended, 1e11) is not None


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize("table", [False, True])
def test_units_of_rewards_do_not_matter(table: bool, scale: float) -> None:
    plain, other = answer(table), answer(table, 0.0, scale)
    found, expected = np.array([other.lower, other.upper]) / scale, np.array([plain.lower, plain.upper])
    assert np.abs(found - expected).max() < 5e-3 * plain.width and other.check()


@pytest.mark.parametrize("scale", [1e-9, 2.0**-30, 1e3, 2.0**40])
def test_a_choice_is_the_same_in_all_units_of_rewards(scale: float) -> None:
    """Bit by bit where the unit is a power of two. Trees need 200 rows, which choose among splits by how much they gain."""
    data = MDP.sample(np.random.default_rng(1), trajectories=20)
    plain, other = (
        choose_recipe(moved(data, 0.0, each), neural=False, candidates=["cosines", "fewer cosines + trees"])
        for each in (1.0, scale)
    )
    close = 0.0 if scale in (2.0**-30, 2.0**40) else 1e-9
    assert other.ridge == plain.ridge and [each.chosen for each in other.candidates] == [each.chosen for each in plain.candidates]
    for mine, theirs in zip(plain.candidates, other.candidates, strict=True):
        assert theirs.misfit == pytest.approx(mine.misfit, rel=close, abs=close)
        assert theirs.loss / scale**2 == pytest.approx(mine.loss, rel=close, abs=close)
    points = moved(data).experience.points[:50]
    assert other.estimate.at_points(points) / scale == pytest.approx(plain.estimate.at_points(points), rel=close, abs=close)
    assert other.norm_bound / scale == pytest.approx(plain.norm_bound, rel=1e-12)


def test_sentences_have_the_digits_that_tell_their_ends_apart() -> None:
    assert range_text(0.0, 2.5) == "[0, 2.5]" and range_text(-1 / 3, 1e-7) == "[-0.333333, 1e-07]"
    assert range_text(1e3, 1e3 + 1) == "[1000, 1001]" and range_text(1e6, 1e6 + 1) == "[1000000, 1000001]"
    assert range_text(2.5e9, 2.5e9 + 2.5) == "[2500000000, 2500000002.5]" and range_text(np.nan, np.nan) == "[nan, nan]"
    far = answer(table=True, shift=1e9)
    said = {each.name: each.text for each in far.premises}
    assert "[1000000000, 1000000001]" in said["rewards"] and "[2500000000, 2500000002.5]" in said["values"]
    assert "lies in [250000000" in far.verify().message and repr(far).startswith("Interval([250000000")


def test_the_cross_fitted_interval_keeps_its_digits() -> None:
    plain, far = (aope.cross_fitted_interval(moved(DATA, shift), folds=3) for shift in (0.0, 1e9))
    found, expected = np.array([far.lower, far.upper]) - 1e9 / 0.4, np.array([plain.lower, plain.upper])
    assert np.abs(found - expected).max() < 1e-2 * (plain.upper - plain.lower)
    assert "[2500000000, 2500000002.5]" in " ".join(map(str, far.premises))
