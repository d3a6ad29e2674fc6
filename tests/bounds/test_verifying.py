"""A certificate against the data: its sums are made again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.verifying import _against_data, _Log, _same_cut
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem.step_knowledge import NOTHING_KNOWN
from accountable_ope.radii import RULES, radius_rule
from accountable_ope.statistics import SpecificationTest
from accountable_ope.verification import verify_record

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=8)
KERNEL = aope.Gaussian(1.0)
FEATURES = aope.RandomFourier(4)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False, symmetric_noise=True)
PROBLEM = aope.Problem(DATA, MDP.starts, MDP.policy, FACTS)


def given(**changes: object) -> dict[str, object]:
    return {"data": DATA, "starts": MDP.starts, "policy": MDP.policy, **changes}


@pytest.mark.parametrize("radius", [rule.name for rule in RULES])
def test_sums_of_the_data_are_found_again(radius):
    interval = aope.bound_value(PROBLEM, features=FEATURES, kernel=KERNEL, radius=radius)
    assert aope.verify(interval.record(), **given()).valid


def estimate(states, actions):
    return np.full(len(states), 0.5)


@pytest.mark.parametrize(
    ("make", "more"),
    [
        (lambda: aope.bound_rkhs(PROBLEM, landmarks=10), {}),
        (lambda: aope.bound_value(PROBLEM, features=[FEATURES, MDP.features()], kernel=aope.RandomFeatureKernel(30)), None),
        (lambda: aope.diagnose(estimate, PROBLEM, features=FEATURES, kernel=KERNEL).interval, {"estimate": estimate}),
        (
            lambda: aope.bound_average_reward(
                DATA, MDP.policy, aope.AverageReward((0, 1), norm_bound=3.0), features=FEATURES, kernel=aope.Laplace(2.0)
            ),
            {},
        ),
        (
            lambda: aope.bounds.bound_by_finite_features(PROBLEM, features=FEATURES, kernel=KERNEL, coefficient_variance=1.0),
            {},
        ),
    ],
    ids=["earlier rows and landmarks", "two classes, one not ours", "around an estimate", "average reward", "random features"],
)
def test_other_results(make, more):
    record = make().record()
    if more is None:
        with pytest.raises(aope.InvalidFile, match="features"):
            aope.verify(record, **given())
        more = {"features": [FEATURES, MDP.features()]}
    found = aope.verify(record, **given(**more))
    assert found.valid and "Its sums are those of the data" in found.message


def test_a_log_that_grew():
    question = replace(PROBLEM.question, assumptions=replace(FACTS, terminates=False))
    monitor = aope.Monitor(question, features=FEATURES, kernel=KERNEL, planned=1000)
    for k in range(4):
        report = monitor.update(DATA.rows(slice(100 * k, 100 * (k + 1))))
    assert aope.verify(report.interval, **given()).valid


@cache
def record() -> aope.verification.Record:
    return aope.bound_value(PROBLEM, features=FEATURES, kernel=KERNEL).record()


def test_other_data_policy_class_or_kernel_are_noticed():
    rewards = DATA.rewards.copy()
    rewards[7] = 0.5
    other = aope.Transitions(DATA.states, DATA.actions, rewards, DATA.next_states, DATA.terminated, DATA.episodes)
    uniform = aope.DiscretePolicy(
        lambda states: np.full((len(states), len(MDP.policy.action_vectors)), 1 / len(MDP.policy.action_vectors)),
        MDP.policy.action_vectors,
    )
    wrong = {
        "data": given(data=other),
        "starts": given(starts=aope.StartStates(MDP.starts.states[:1])),
        "policy": given(policy=uniform),
        "class": given(features=aope.RandomFourier(4, seed=9)),
        "kernel": given(kernel=aope.Gaussian(2.0)),
        "estimate": given(estimate=estimate),
        "two classes": given(features=[FEATURES, FEATURES]),
    }
    for name, arguments in wrong.items():
        assert not aope.verify(record(), **arguments).valid, name


def test_forged_sums_are_proved_without_the_data_and_refused_with_them():
    """Sums of other rows make a certificate of their own; only the data tell."""
    other = MDP.sample(np.random.default_rng(3), trajectories=8)
    true, of_others = record(), aope.bound_value(replace(PROBLEM, data=other), features=FEATURES, kernel=KERNEL).record()
    forged = replace(of_others, data=true.data)
    assert aope.verify(forged).valid
    found = aope.verify(forged, **given())
    assert not found.valid and "is not that of the data" in found.message


def against(forged):
    """What the data say against a record whose proof holds."""
    log = _Log(DATA, MDP.starts, MDP.policy, NOTHING_KNOWN)
    return _against_data(forged, verify_record(record()), log, FEATURES, KERNEL, None)


def test_a_test_of_few_rows_is_not_taken_for_one_of_all():
    """Whoever says that the class was tested on the first rows alone would need no doubt."""
    part = record().classes[0]
    assert against(record()) == "" and part.specification.tested
    silent = SpecificationTest(reason="40 rows are too few: a test needs at least 50.", first_rows=40)
    forged = replace(record(), classes=(replace(part, specification=silent, norm_test=None),))
    assert "fewer rows than there were" in against(forged)
    [first, *others] = part.specification.components
    for other in (replace(first, factor=2.0), replace(first, kind="leading moments")):
        edited = replace(part, specification=replace(part.specification, components=(other, *others)))
        assert "the test of" in against(replace(record(), classes=(edited,)))
    assert part.norm_test is not None
    edited = replace(part, norm_test=replace(part.norm_test, norm=0.5 * part.norm_test.norm))
    assert "the test of" in against(replace(record(), classes=(edited,)))


def test_a_class_is_what_it_is_called():
    part = record().classes[0]
    named = replace(part.description, kind="", text="all functions of (s, a)", parameters=(), parts=())
    assert "the class is another" in against(replace(record(), classes=(replace(part, description=named),)))
    assert "the kernel is another" in against(replace(record(), kernel=replace(record().kernel, text="Gaussian(2)")))
    ours = aope.bound_value(PROBLEM, features=MDP.features(), kernel=KERNEL).record()  # of a class that is none of the package
    assert ours.classes[0].description.kind == "" and "only names" in aope.verify(ours).message


@pytest.mark.parametrize(("over", "value"), [("norm_bound", 3.0), ("misfit", 0.01), ("delta", 0.3), ("reward_range", 1.5)])
def test_the_certificates_of_a_study_are_found_again(over, value, tmp_path):
    """Rates and weights are those of what was declared, which the certificate names beside what it was asked."""
    interval = aope.study(PROBLEM, features=FEATURES, kernel=KERNEL).at(over, value)
    interval.save(tmp_path / "certificate.json")
    found = aope.verify(tmp_path / "certificate.json", **given())
    assert found.valid, found.message
    assert interval.record().classes[0].sums.planned_for.assumptions == FACTS


def with_plan(record: aope.verification.Record, **changes: object) -> aope.verification.Record:
    (part,) = record.classes
    sums = part.sums
    planned = sums.planned_for
    facts = replace(planned.assumptions, **{name: value for name, value in changes.items() if name != "delta"})
    planned = replace(planned, assumptions=facts, delta=changes.get("delta", planned.delta))
    return replace(record, classes=(replace(part, sums=replace(sums, planned_for=planned)),))


def test_a_forged_plan_is_noticed():
    """What moves rates is refuted by the certificate itself; what moves weights only, by the data."""
    study = aope.study(PROBLEM, features=FEATURES, kernel=KERNEL)
    true = study.at("norm_bound", 3.0).record()
    for change in ({"norm_bound": 0.1}, {"delta": 0.2}, {"discount": 0.5}, {"state_box": ((-9.0, -9.0), (9.0, 9.0))}):
        assert not aope.verify(with_plan(true, **change)).valid, change
    (part,) = true.classes
    fresh = replace(true, classes=(replace(part, sums=replace(part.sums, planned_for=None)),))
    assert not aope.verify(fresh).valid
    # A declared range of residuals that no norm bound moves: rates are the same, and weights are not.
    fixed = replace(PROBLEM, assumptions=replace(FACTS, one_step_range=0.1))
    narrow = aope.study(fixed, features=FEATURES, kernel=KERNEL).at("norm_bound", 3.0).record()
    assert aope.verify(narrow, **given()).valid
    forged = with_plan(narrow, norm_bound=0.5)
    assert aope.verify(forged).valid
    assert aope.verify(forged, **given()).message.startswith("Not proved: the cut of")
    contradicted = with_plan(narrow, reward_range=(0.0, 1e-3))
    assert not aope.verify(contradicted, **given()).valid


def test_plans_are_of_one_discount():
    plans = aope.evaluate(PROBLEM, features=FEATURES, kernel=KERNEL).plans()
    other = aope.evaluate(PROBLEM.assuming(replace(FACTS, discount=0.5)), features=FEATURES, kernel=KERNEL)
    with pytest.raises(aope.InvalidInput, match="`plans` were made for another `discount`: 0.6"):
        other.bound(plans=plans)


def test_data_need_a_policy_and_start_states():
    with pytest.raises(aope.InvalidInput, match="policy"):
        aope.verify(record(), data=DATA)


@pytest.mark.parametrize("entry", ["total", "squares"])
def test_sums_of_a_cut_are_those_of_the_data_however_small_rewards_are(entry):
    unit = 1e-6
    data = aope.Transitions(DATA.states, DATA.actions, unit * DATA.rewards, DATA.next_states, episodes=DATA.episodes)
    facts = replace(FACTS, reward_range=(0, unit), norm_bound=1.5 * unit * MDP.norm)
    interval = aope.bound_value(aope.Problem(data, MDP.starts, MDP.policy, facts), features=FEATURES, kernel=KERNEL)
    record = interval.record()
    part = record.classes[0]
    assert part.sums.cut is not None
    honest = replace(part.sums.cut, rate=part.sums.cut.rate * (1 + 1e-8))
    sums = getattr(part.sums.cut, entry).copy()
    sums[(-1,) * sums.ndim] *= 1.01
    for cut, same in ((honest, True), (replace(part.sums.cut, **{entry: sums}), False)):
        member = with_plan_of(interval, data, facts)
        assert _same_cut(cut, member[1].sums.cut, member[0].system) == same


def with_plan_of(interval, data, facts):
    evaluation = aope.evaluate(aope.Problem(data, MDP.starts, MDP.policy, facts), features=FEATURES, kernel=KERNEL)
    member = evaluation.member_for(radius_rule("certified"), 0)
    return member, radius_rule("certified").evidence(member, interval.record().delta.kernel, len(data))
