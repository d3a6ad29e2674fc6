"""What a width is made of: each part is a bound that can be made by hand."""

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.breakdown import BELIEVED, Altered, Breakdown, WithoutNoise, WithoutRange
from accountable_ope.bounds.rebound import Rebound
from accountable_ope.environments import PlantedMDP
from accountable_ope.programs.envelope import Steps
from accountable_ope.radii.envelope import rate_mixture
from accountable_ope.report.breakdown import breakdown_tables

MDP = PlantedMDP(seed=3, features=4, discount=0.7)
KERNEL = aope.Gaussian(1.0)
FACTS = aope.Assumptions(discount=0.7, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, misfit=0.01)
DATA = MDP.sample(np.random.default_rng(0), trajectories=40, length=10)


def bound(starts, facts=FACTS, radius="certified"):
    problem = aope.Problem(DATA, starts, MDP.policy, facts)
    return aope.bound_value(problem, features=MDP.features(), kernel=KERNEL, radius=radius)


@pytest.fixture(scope="module")
def sampled():
    return bound(DATA.first_states())


@pytest.fixture(scope="module")
def found(sampled):
    return sampled.breakdown(rows=False)


def named(altered, name):
    return next(each for each in altered if each.name == name)


def test_parts_are_bounds_with_one_thing_changed(sampled, found):
    half = bound(DATA.first_states(), replace(FACTS, norm_bound=FACTS.norm_bound / 2))
    near = 0.01 * sampled.width  # found from where the interval's own rounds ended, not from the beginning
    assert named(found.parts, "norm").saved == pytest.approx(sampled.width - half.width, abs=near)
    exact = bound(DATA.first_states(), replace(FACTS, misfit=0.0))
    assert named(found.parts, "misfit").saved == pytest.approx(sampled.width - exact.width, abs=near)
    assert {each.name for each in found.parts} == {"start-states", "noise", "range", "norm", "misfit"}
    assert [each.saved for each in found.parts] == sorted((each.saved for each in found.parts), reverse=True)


@pytest.mark.slow
def test_start_states_of_the_log_cost_width_and_it_is_said(sampled, found):
    starts = named(found.parts, "start-states")
    assert found.start_error == sampled.start_error > 0
    # At least what their error adds to both ends, where no end is cut off.
    assert sampled.clipped == (False, False) and starts.saved >= 2 * sampled.start_error
    text = next(each for each in found.statements if each.name == "start-states")
    assert f"cost {starts.saved:.3g} of the width" in str(text)
    known = bound(aope.StartStates(DATA.first_states().states)).breakdown(rows=False)
    fixed = bound(MDP.starts).breakdown(rows=False)
    assert named(known.parts, "start-states").saved > 0  # exact, but read off the log: no cut
    assert not any(each.name == "start-states" for each in fixed.parts)


@pytest.mark.slow
def test_the_best_remedies_are_the_narrowest_that_the_data_do_not_refute(found):
    assert 1 <= len(found.best) <= 2
    least = min(each.width for each in found.remedies if each.status is aope.Status.OK)
    assert found.best[0].width == least
    tight = bound(MDP.starts, replace(FACTS, misfit=0.0, norm_bound=1.02 * MDP.norm)).breakdown(rows=False)
    halved = named(tight.remedies, "norm-bound")
    assert halved not in tight.best or halved.status is aope.Status.OK


def test_what_does_not_help_is_in_no_table_and_is_named_in_one_line():
    def altered(name, text, lower, upper, status=aope.Status.OK):
        return Altered(name, text, lower, upper, status, 1.0 - (upper - lower))

    nan = float("nan")
    parts = (altered("range", "range", 0.2, 0.9), altered("noise", "noise", nan, nan, aope.Status.INCONSISTENT))
    wider = altered("one-step-range", "A one-step range of 2", 0.0, 1.0001)
    empty = altered("value-range", "A value range of [0, 0.5]", 0.0, 0.5, aope.Status.VACUOUS)
    helps = altered("reward-noise", "Rewards that are a function of (s, a)", 0.0, 0.9)
    found = Breakdown(0.0, 1.0, parts, (helps, wider, empty), 0.0)
    assert [len(each.rows) for each in breakdown_tables(found)] == [1, 1]
    said = {each.name: each.text for each in found.statements}
    assert said["no-help"].endswith(": noise; a one-step range of 2; a value range of [0, 0.5].")
    assert "--deterministic-reward" in said["reward-noise"] and "one-step-range" not in said
    assert "range by more rows" in said["taken-away"] and "noise" not in said["taken-away"]
    assert set(BELIEVED) >= {each.name for each in found.remedies}


def test_without_range_and_without_noise_lie_below_the_envelope():
    mixture = rate_mixture(1.0, 1000, 0.1)
    steps, variance = Steps.within(1.0, 1000.0), np.array([0.0, 1.0, 50.0])
    whole, _ = mixture.bound(steps, variance)
    rangeless, _ = WithoutRange(mixture).bound(steps, variance)
    noiseless, slope = WithoutNoise(mixture).bound(steps, variance)
    assert (rangeless <= whole).all() and (noiseless <= whole).all()
    assert noiseless[0] == whole[0] and noiseless[2] < whole[2] and not slope.any()
    assert rangeless[0] < whole[0]


def test_rows_are_extrapolated_only_where_asked():
    interval = bound(MDP.starts, replace(FACTS, misfit=0.0, reward_noise=False), radius="empirical-bernstein")
    assert interval.breakdown(rows=False).rows is None
    found = interval.breakdown()
    assert found.rows.width == pytest.approx(interval.width / 2) and found.rows.rows > interval.count
    text = next(each.text for each in found.statements if each.name == "rows")
    assert "about" in text and "not guaranteed" in text


def test_a_radius_of_one_number_has_no_noise_and_no_range():
    parts = bound(MDP.starts, radius="azuma").breakdown(rows=False).parts
    assert {each.name for each in parts} == {"norm", "misfit"}


def test_an_empty_interval_has_no_breakdown():
    refuted = replace(bound(MDP.starts, radius="azuma"), outcome=aope.Status.INCONSISTENT)
    assert refuted.breakdown() is None


def test_with_a_cut_the_ends_are_near_those_of_a_bound_from_the_beginning():
    facts = replace(FACTS, misfit=0.0)
    interval = bound(MDP.starts, facts)
    found = interval.breakdown(rows=False)
    for name in ("norm-bound", "reward-noise", "one-step-range", "value-range"):
        each = named(found.remedies, name)
        low, high = (float(end) for end in each.text.partition("[")[2].rstrip("]").split(",")) if "[" in each.text else (0, 0)
        declared = {
            "norm-bound": replace(facts, norm_bound=facts.norm_bound / 2),
            "reward-noise": replace(facts, reward_noise=False),
            "one-step-range": replace(facts, one_step_range=0.5 * interval.ranges.residual_width),
            "value-range": replace(facts, value_range=(low, high)),
        }[name]
        again = bound(MDP.starts, declared)
        assert each.width <= again.width + 0.05 * interval.width
        # With weights chosen for other ranges, which may be better or worse.
        assert each.lower == pytest.approx(again.lower, abs=0.15 * interval.width)
        assert each.upper == pytest.approx(again.upper, abs=0.15 * interval.width)


def test_what_is_asked_twice_is_bounded_once(sampled, monkeypatch):
    calls = []
    whole = Rebound.with_known_starts
    monkeypatch.setattr(Rebound, "with_known_starts", lambda self: calls.append(1) or whole(self))
    sampled.breakdown(rows=False)
    assert len(calls) == 1
