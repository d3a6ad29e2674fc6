"""Choosing on the earlier rows: what is chosen, that later rows have no say, and that the bound still covers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope import InvalidInput, RandomFourier, Transitions
from accountable_ope.bounds.selected import bound_selected
from accountable_ope.environments import PlantedMDP
from accountable_ope.fitting.least_loss import fit_q
from accountable_ope.fitting.selection import PAPER_BANDWIDTHS, Candidates, median_bandwidth, pessimistic_union, select
from accountable_ope.problem.policy import state_action_points
from accountable_ope.problem.statements import texts

MDP = PlantedMDP(seed=2, features=5, discount=0.6)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False)


@pytest.fixture(scope="module")
def data() -> Transitions:
    return MDP.sample(np.random.default_rng(0), trajectories=40, length=50)


def test_the_median_bandwidth_is_the_median_distance() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3))
    distances = [np.linalg.norm(points[i] - points[j]) for i in range(40) for j in range(i)]
    assert median_bandwidth(points) == pytest.approx(np.median(distances), rel=1e-12)
    assert median_bandwidth([0.0, 1.0, 5.0]) == pytest.approx(4.0)


def test_the_median_bandwidth_of_many_points_looks_at_some_of_all() -> None:
    points = np.arange(10_000.0)
    assert median_bandwidth(points, limit=200) == pytest.approx(median_bandwidth(points, limit=1000), rel=0.05)
    assert median_bandwidth(points[::-1], limit=200) == pytest.approx(10_000 * (1 - np.sqrt(0.5)), rel=0.05)


def test_the_median_bandwidth_is_positive_where_points_coincide() -> None:
    assert median_bandwidth(np.zeros((5, 2))) > 0
    assert 0 < median_bandwidth([0.0] * 20 + [1.0]) < 0.1
    with pytest.raises(InvalidInput, match="`points` must have at least two rows."):
        median_bandwidth([1.0])


def test_candidates_are_compared_on_rows_that_the_fit_did_not_see(data: Transitions) -> None:
    chosen = select(data, MDP.policy, discount=0.6, candidates=Candidates(5, seed=2, keep=1), earlier_share=0.5)
    earlier, later = data.split(0.5)
    fitting, comparing = earlier.split(0.7)
    assert chosen.earlier_rows == 1000
    assert np.array_equal(chosen.later.states, later.states)
    assert [one.features.bandwidth for one in chosen.table] == list(PAPER_BANDWIDTHS)
    points = state_action_points(comparing.states, comparing.actions, MDP.policy)
    for one in chosen.table:
        q = fit_q(fitting, MDP.policy, kernel=chosen.kernel, features=one.features, discount=0.6)
        loss = aope.statistics.v_statistic(
            aope.statistics.bellman_residuals(q, comparing, MDP.policy, 0.6), points, chosen.kernel
        )
        assert one.held_out_loss == pytest.approx(loss, rel=1e-12)
    best = min(chosen.table, key=lambda one: one.held_out_loss)
    assert chosen.features == (best.features,)
    # The features of this seed and bandwidth are the ones that Q was planted in.
    assert best.features == RandomFourier(5, 1.0, seed=2)


def test_later_rows_have_no_say(data: Transitions) -> None:
    earlier, _ = data.split(0.2)
    cut = len(earlier)
    rng = np.random.default_rng(1)
    states, rewards, next_states = (np.array(x) for x in (data.states, data.rewards, data.next_states))
    states[cut:], next_states[cut:] = 5 * rng.normal(size=states[cut:].shape), 5 * rng.normal(size=states[cut:].shape)
    rewards[cut:] = rng.uniform(size=len(data) - cut)
    other = Transitions(states, data.actions, rewards, next_states, episodes=data.episodes)
    first, second = (select(rows, MDP.policy, discount=0.6, candidates=Candidates(5, seed=2)) for rows in (data, other))
    assert first.table == second.table
    assert first.features == second.features
    assert repr(first.kernel) == repr(second.kernel)
    assert first.earlier_rows == second.earlier_rows == cut
    # Earlier rows do: the same change to them gives other losses.
    rewards[:cut] = rng.uniform(size=cut)
    third = select(
        Transitions(data.states, data.actions, rewards, data.next_states),
        MDP.policy,
        discount=0.6,
        candidates=Candidates(5, seed=2),
    )
    assert third.table != first.table


def test_keep_takes_the_best_ones_best_first(data: Transitions) -> None:
    chosen = select(data, MDP.policy, discount=0.6, candidates=Candidates(5, seed=2, keep=3, intercept=False))
    losses = {one.features: one.held_out_loss for one in chosen.table}
    assert [losses[features] for features in chosen.features] == sorted(losses.values())[:3]
    assert not any(features.intercept for features in chosen.features)


def test_premises_say_what_was_chosen_where(data: Transitions) -> None:
    interval, chosen = bound_selected(aope.Problem(data, MDP.starts, MDP.policy, FACTS), candidates=Candidates(5, seed=2, keep=1))
    assert chosen.earlier_rows == 400 and interval.count == 1600
    said = "chosen on the first 400 rows, which the bound does not use."
    assert f"Q lies in the class of {chosen.features[0]!r}, {said}" in texts(interval.premises)
    assert f"The kernel {chosen.kernel!r} was {said}" in texts(interval.premises)
    assert "The bound uses the remaining 1600 rows, which came later." in texts(interval.premises)
    assert not any("without looking" in line.text for line in interval.premises)
    assert interval.check()
    direct = aope.bound_value(
        aope.Problem(chosen.later, MDP.starts, MDP.policy, FACTS), kernel=chosen.kernel, features=chosen.features
    )
    assert (interval.lower, interval.upper) == (direct.lower, direct.upper)
    stated = aope.bound_value(
        aope.Problem(chosen.later, MDP.starts, MDP.policy, FACTS),
        kernel=chosen.kernel,
        features=chosen.features,
        chosen=aope.Choice(earlier_rows=400),
    )
    assert stated.premises == interval.premises


def test_a_given_kernel_was_not_chosen(data: Transitions) -> None:
    interval, chosen = bound_selected(
        aope.Problem(data, MDP.starts, MDP.policy, FACTS),
        candidates=Candidates(5, seed=2, kernel_bandwidth=0.7),
        earlier_share=0.1,
    )
    assert repr(chosen.kernel) == "Gaussian(bandwidth=0.7)" and not chosen.kernel_selected
    assert "The kernel Gaussian(bandwidth=0.7) was chosen without looking at these data." in texts(interval.premises)
    assert sum("on the first 200 rows" in line.text for line in interval.premises) == 1


def test_the_pessimistic_union_contains_every_members_interval(data: Transitions) -> None:
    union = pessimistic_union(dimension=5, seed=2)
    assert [one.bandwidth for one in union] == [0.2, 0.5, 0.6, 0.8, 1.0]
    assert all(one.dimension == 5 and one.seed == 2 and one.intercept for one in union)

    def bound(features: object) -> aope.Interval:
        return aope.bound_value(aope.Problem(data, MDP.starts, MDP.policy, FACTS), kernel=aope.Gaussian(1.0), features=features)

    whole, members = bound(union), [bound(one) for one in union]
    consistent = [one for one in members if one.status is not aope.Status.INCONSISTENT]
    assert len(consistent) >= 2
    # Sums over pairs are added in another order when there are more columns, hence the last digits.
    assert all(whole.lower <= one.lower + 1e-9 and one.upper <= whole.upper + 1e-9 for one in consistent)
    assert whole.lower == pytest.approx(min(one.lower for one in consistent), abs=1e-9)
    assert whole.upper == pytest.approx(max(one.upper for one in consistent), abs=1e-9)
    assert any(one.upper - one.lower < 0.99 * (whole.upper - whole.lower) for one in consistent)


def test_bound_selected_covers() -> None:
    """25 data sets, delta 0.1: too many misses to believe would have probability below 1e-6 if the claim were true."""
    trials, delta = 25, 0.1
    covered = informative = held = 0
    for trial in range(trials):
        rows = MDP.sample(np.random.default_rng([7, trial]), trajectories=24, length=50)
        interval, chosen = bound_selected(
            aope.Problem(rows, MDP.starts, MDP.policy, FACTS), delta=delta, candidates=Candidates(5, seed=2)
        )
        covered += interval.lower <= MDP.value <= interval.upper
        informative += interval.status is aope.Status.OK
        held += RandomFourier(5, 1.0, seed=2) in chosen.features
    print(f"{covered} covered, {informative} informative, the class of Q was kept {held} times of {trials}")
    assert binom.cdf(covered, trials, 1 - delta) > 1e-6
    assert informative >= 0.9 * trials
    assert held >= 0.9 * trials


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": -0.1}, "`discount` must be in [0, 1]. Got -0.1."),
        ({"keep": 6}, "`keep` must not exceed the number of `feature_bandwidths` (5). Got 6."),
        ({"keep": 1, "feature_bandwidths": ()}, "`keep` must not exceed the number of `feature_bandwidths` (0)."),
        ({"feature_bandwidths": (0.0,)}, "`feature_bandwidths` must be positive."),
        ({"kernel_bandwidth": -1.0}, "`kernel_bandwidth` must be positive."),
        ({"earlier_share": 1.0}, "`earlier_share` must be in (0, 1). Got 1.0."),
        ({"earlier_share": 0.0015}, "`earlier_share` 0.0015 leaves 3 rows to choose on, too few to fit and to compare."),
    ],
)
def test_refusals(data: Transitions, changes: dict[str, object], message: str) -> None:
    rows = Transitions(data.states, data.actions, data.rewards, data.next_states)
    given = {name: changes.pop(name, value) for name, value in (("discount", 0.6), ("earlier_share", 0.2))}
    with pytest.raises(InvalidInput, match=re.escape(message)):
        select(rows, MDP.policy, candidates=Candidates(**changes), **given)


def test_wrong_options_of_the_bound_are_refused_before_choosing(data: Transitions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accountable_ope.bounds.selected.select", lambda *_, **__: pytest.fail("chose first"))
    for wrong, message in (({"radius": "none"}, "radius"), ({"delta": 2.0}, "delta")):
        with pytest.raises(InvalidInput, match=message):
            bound_selected(aope.Problem(data, MDP.starts, MDP.policy, FACTS), **wrong)
