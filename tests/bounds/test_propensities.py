"""Recorded propensities in the interval: they may weigh the rows of a cut, and are said to where they do, and only there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem import with_propensities
from accountable_ope.verification import Record, verify_record
from bandit_log import FEATURES, POLICY, STARTS, VALUE, evaluated, logged

SENTENCE = "The recorded probability of every logged action was fixed before its reward and next state were drawn."


@cache
def found(*, propensities: bool) -> aope.Interval:
    return evaluated(logged(0), propensities=propensities).bound(delta=0.5)


def premises(interval: aope.Interval) -> dict[str, str]:
    return {each.name: each.text for each in interval.premises}


def given(**changes: object) -> dict[str, object]:
    return {"data": logged(0), "starts": STARTS, "policy": POLICY, "features": FEATURES, **changes}


def with_kind(record: Record, kind: str) -> Record:
    part = record.classes[0]
    sums = replace(part.sums, cut=replace(part.sums.cut, kind=kind))
    return replace(record, classes=(replace(part, sums=sums),))


def test_where_they_weigh_rows_the_result_says_so() -> None:
    interval = found(propensities=True)
    assert interval.certificates[0].cut.kind == "propensities" and VALUE in interval
    assert premises(interval)["propensities"] == SENTENCE
    assert interval.remarks[0].parameter("weights") == "propensities"
    assert aope.verify(interval, **given()).valid, aope.verify(interval, **given()).message


def test_they_are_not_used_unless_asserted() -> None:
    """The column alone says nothing."""
    plain = found(propensities=False)
    assert plain.certificates[0].cut.kind in ("fitted", "bounded") and "propensities" not in premises(plain)
    data = logged(0)
    bare = aope.Transitions(data.states, data.actions, data.rewards, data.next_states)
    assert (plain.lower, plain.upper) == tuple(
        getattr(evaluated(bare, propensities=False).bound(delta=0.5), end) for end in ("lower", "upper")
    )


def test_where_they_are_asserted_and_not_used_no_premise_is_printed() -> None:
    """Another radius, data that grow, or weights that are better: then nothing rests on them."""
    ready = evaluated(logged(0))
    for interval in (ready.bound("azuma"), ready.bound("empirical-bernstein"), ready.bound(planned=60)):
        assert "propensities" not in premises(interval) and interval.check()
    mdp = PlantedMDP(seed=1, features=2, discount=0.6)
    data = with_propensities(mdp.sample(np.random.default_rng(0), trajectories=4), mdp.behavior)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts, propensities=True)
    other = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    assert other.certificates[0].cut.kind != "propensities" and "propensities" not in premises(other)
    assert other.record().setting.propensities and other.check()


def test_another_kind_than_that_of_the_weights_is_caught() -> None:
    """Its words alone are other premises; with these changed too, the data tell."""
    record = found(propensities=True).record()
    assert verify_record(record).valid
    assert not verify_record(with_kind(record, "bounded")).valid  # the premise is one too many
    silent = replace(
        with_kind(record, "bounded"),
        premises=tuple(each for each in record.premises if each.name != "propensities"),
        remarks=tuple(
            replace(each, text=each.text.replace("the weights of the recorded propensities", "bounded weights"))
            for each in record.remarks
        ),
    )
    assert verify_record(silent).valid  # consistent in itself
    assert "the cut" in aope.verify(silent, **given()).message
    plain = found(propensities=False).record()
    assert not verify_record(with_kind(plain, "propensities")).valid


def test_a_setting_that_does_not_assert_them_is_caught() -> None:
    record = found(propensities=True).record()
    denied = replace(record, setting=replace(record.setting, propensities=False))
    assert not aope.verify(denied, **given()).valid
    data = logged(0)
    other = aope.Transitions(
        data.states, data.actions, data.rewards, data.next_states, behavior_probability=np.full(len(data), 0.5)
    )
    assert "the data are others" in aope.verify(record, **given(data=other)).message


def test_weights_of_propensities_that_were_not_asserted_are_refused_without_the_data() -> None:
    record = found(propensities=True).record()
    assert not verify_record(replace(record, setting=replace(record.setting, propensities=False))).valid
