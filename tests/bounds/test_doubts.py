"""Doubts about the class: rare where it contains Q, there where it does not, and never called a guarantee."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.radii.doubts import DoubtKind, TestedClass, all_doubted, class_doubts, shown_status
from accountable_ope.report.document import interval_document
from accountable_ope.report.html import report_html
from accountable_ope.statistics.specification import Component, SpecificationTest
from command import aope_command

MDP = PlantedMDP(seed=3, features=5, discount=0.8)
FACTS = aope.Assumptions(discount=0.8, reward_range=(0.0, 1.0), norm_bound=1.5 * MDP.norm, reward_noise=False)
WRONG = aope.RandomFourier(dimension=2, bandwidth=1.0, seed=0)


def bound(data, features=None, facts=FACTS, radius="azuma", delta=0.1):
    chosen = MDP.features() if features is None else features
    return aope.bound_value(
        aope.Problem(data, MDP.starts, MDP.policy, facts), kernel=aope.Gaussian(1.0), features=chosen, radius=radius, delta=delta
    )


def draw(seed, episodes=10):
    return MDP.sample(np.random.default_rng(seed), trajectories=episodes, length=30)


def test_doubts_are_rare_where_the_class_contains_q():
    trials = 60
    doubted = sum(bound(draw(seed)).doubted for seed in range(trials))
    assert doubted <= binom.ppf(0.999, trials, 0.02)


@pytest.mark.parametrize("radius", ["azuma", "certified", "hoeffding-u", "wild"])
def test_a_class_without_q_is_doubted_before_it_is_refuted(radius):
    interval = bound(draw(0, episodes=25), WRONG, radius=radius)
    if interval.outcome is aope.Status.INCONSISTENT:
        assert radius == "wild" and interval.doubts == () and not interval.doubted
        return
    assert interval.doubted and interval.status in (aope.Status.DOUBTED, aope.Status.VACUOUS)
    (doubt,) = [each for each in interval.doubts if each.kind is DoubtKind.CLASS]
    test = interval.specifications[0]
    assert doubt.p_value == test.p_value < 0.01 and not doubt.weak
    assert "probably not in the class of RandomFourier(dimension=2" in doubt.text and test.smallest.kind in doubt.text
    document = interval_document(interval)
    assert doubt.text in document["doubts"] and document["doubted"] and document["status"] == interval.status.name
    assert document["classes"][0]["specification"]["p_value"] == test.p_value
    assert "Doubt" in report_html([interval], draw(0, episodes=25), "title")
    assert interval.check()


def test_the_status_is_doubted_in_place_of_ok_only():
    interval = bound(draw(0, episodes=25), WRONG, radius="certified")
    assert interval.outcome is aope.Status.OK and interval.status is aope.Status.DOUBTED and "DOUBTED" in repr(interval)
    assert interval.advice.text == aope.Status.DOUBTED.value
    vacuous = dataclasses.replace(interval, outcome=aope.Status.VACUOUS)
    assert vacuous.doubted and vacuous.status is aope.Status.VACUOUS


def test_the_same_test_serves_every_tier():
    problem = aope.Problem(draw(0, episodes=25), MDP.starts, MDP.policy, FACTS)
    evaluation = aope.evaluate(problem, features=WRONG, kernel=aope.Gaussian(1.0))
    first, second = evaluation.ladder(("azuma", "certified"))
    assert first.specifications[0] is second.specifications[0]
    looser = evaluation.assuming(dataclasses.replace(FACTS, norm_bound=50.0)).bound("azuma")
    assert looser.specifications[0] is first.specifications[0]
    options = {"features": WRONG, "kernel": aope.Gaussian(1.0)}
    sandwich = aope.bounds.sandwich_interval(problem, **options)
    assert sandwich.doubted and sandwich.specification == first.specifications[0]
    assert [each.kind for each in sandwich.doubts] == [DoubtKind.CLASS]  # it uses no norm bound
    assert "DOUBTED" in repr(sandwich) and "probably not" in sandwich._repr_html_()
    rubin = aope.bounds.anderson_rubin_interval(problem, **options)
    assert rubin.specification == first.specifications[0]
    found = aope.diagnose(MDP.q, problem, **options)
    assert not found.interval.doubted  # around the true Q, every class contains it
    shifted = aope.diagnose(lambda states, actions: np.zeros(len(states)), problem, **options)
    assert shifted.interval.specifications[0].p_value == pytest.approx(first.specifications[0].p_value)
    declared = aope.AverageReward(reward_range=(0, 1), value_span=2.0)
    average = aope.bound_average_reward(problem.data, MDP.policy, declared, **options)
    assert average.doubted and average.check()
    finite = aope.bounds.bound_by_finite_features(problem, **options, coefficient_variance=1.0)
    assert not finite.specifications[0].tested and "RKHS" in finite.specifications[0].reason and finite.doubts == ()


def test_a_norm_bound_is_doubted_for_itself():
    data = draw(0, episodes=60)
    small = bound(data, facts=dataclasses.replace(FACTS, norm_bound=0.4 * MDP.norm))
    (doubt,) = small.doubts
    assert doubt.kind is DoubtKind.NORM and small.doubted and "larger than the declared bound" in doubt.text
    assert small.certificates[0].norm_test.p_value == doubt.p_value
    assert bound(data).doubts == () and bound(data).certificates[0].norm_test.p_value > 0.05
    relative = bound(data, facts=dataclasses.replace(FACTS, norm_bound=aope.RelativeNorm(1.5)))
    assert relative.certificates[0].norm_test is None


def test_of_several_classes_all_must_be_doubted():
    data = draw(0, episodes=25)
    both = bound(data, [WRONG, MDP.features()], radius="certified")
    assert not both.doubted and both.status is not aope.Status.DOUBTED
    assert any("another of its classes" in each.text for each in both.doubts)
    wrong = bound(data, [WRONG, aope.RandomFourier(dimension=2, bandwidth=1.0, seed=1)], radius="certified")
    assert wrong.doubted == all(part.tested.doubted for part in wrong.certificates if part.consistent)


def test_a_weak_sign_is_no_doubt():
    one = Component("all moments", 1.0, 0.03)
    weak = TestedClass("a class", SpecificationTest((one,)), None)
    (sign,) = class_doubts([weak])
    assert sign.weak and "weak sign" in sign.text and not weak.doubted and not all_doubted([weak])
    assert class_doubts([TestedClass("a class", SpecificationTest((dataclasses.replace(one, p_value=0.2),)), None)]) == ()
    untested = TestedClass("a class", SpecificationTest(reason="too few"), None)
    assert class_doubts([untested]) == () and not untested.doubted
    assert shown_status(aope.Status.INCONSISTENT, doubted=True) is aope.Status.INCONSISTENT


def test_nothing_is_doubted_that_is_refuted_or_declared():
    data = draw(0, episodes=40)
    misfit = bound(data, WRONG, dataclasses.replace(FACTS, misfit=0.1))
    assert misfit.doubts == () and not misfit.doubted and misfit.check()
    refuted = bound(draw(1, episodes=800), WRONG, radius="certified")
    assert refuted.status is aope.Status.INCONSISTENT and refuted.doubts == ()


def test_a_certificate_carries_its_doubts_and_the_data_tell_whether_they_are_theirs():
    data = draw(0, episodes=25)
    interval = bound(data, WRONG, radius="certified")
    given = {"data": data, "starts": MDP.starts, "policy": MDP.policy}
    assert aope.verify(interval.record(), **given).valid and "doubted" in interval.verify().message
    record = interval.record()
    kept = dataclasses.replace(
        record.classes[0], specification=SpecificationTest((Component("all moments", 1.0, 0.7),)), norm_test=None
    )
    result = dataclasses.replace(record.result, status="OK")
    forged = dataclasses.replace(record, classes=(kept,), doubts=(), result=result)
    assert aope.verify(forged).valid  # consistent in itself
    found = aope.verify(forged, **given)
    assert not found.valid and "the test" in found.message
    assert not aope.verify(dataclasses.replace(record, result=result)).valid


def test_fragility_is_the_interval_at_larger_norms():
    data = draw(0, episodes=20)
    interval = bound(data, radius="certified")
    found = interval.fragility()
    assert found is not None and [each.multiple for each in found.larger] == [2.0, 5.0]
    for each in found.larger:
        again = bound(data, facts=dataclasses.replace(FACTS, norm_bound=each.norm_bound), radius="certified")
        assert (each.lower, each.upper) == (again.lower, again.upper)
    assert found.fragile == (found.largest_move > 0.1) and f"{found.larger[1].norm_bound:.4g}" in found.statement.text
    assert bound(data, facts=dataclasses.replace(FACTS, norm_bound=None), radius="certified").fragility() is None


def test_the_demonstration_says_so_itself():
    assert "Doubt: Q is probably not in the class" in aope_command("demo").stdout
