"""Certificates that are consistent in all but one premise of their own, and honest ones at the edge."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import random_tabular
from accountable_ope.verification import Record, verify_record
from accountable_ope.verification.record import AveragedRecord, TermRecord
from every_result import DATA, KERNEL, MDP, bound, problem, result

FOURIER = aope.RandomFourier(3)


@cache
def certified() -> Record:
    return bound("certified", FOURIER).record()


def with_class(record: Record, **changes: object) -> Record:
    return replace(record, classes=(replace(record.classes[0], **changes), *record.classes[1:]))


def with_setting(record: Record, **changes: object) -> Record:
    return replace(record, setting=replace(record.setting, **changes))


FORGERIES: dict[str, tuple[Callable[[], Record], str]] = {
    "starts that are no number": (lambda: with_setting(certified(), effective_starts=math.nan), "start states"),
    "starts without end": (lambda: with_setting(certified(), effective_starts=math.inf), "start states"),
    "another estimand": (lambda: replace(certified(), estimand="Value of every policy"), "something else"),
    "a radius for one size that grows": (
        lambda: with_setting(bound("azuma", FOURIER).record(), growing=True, planned=10**6),
        "all numbers of rows",
    ),
    "a plan made afterward": (lambda: with_setting(certified(), planned=10), "planned"),
    "a value of no estimate": (lambda: with_class(certified(), offset=-0.5), "estimate"),
    "coefficients of another class": (lambda: with_class(certified(), penalized=np.ones(4, dtype=bool)), "coefficients"),
    "no constant in the value": (lambda: with_class(certified(), objective=np.zeros(4)), "constant"),
    "a negative diameter": (
        lambda: with_class(certified(), cover=replace(certified().classes[0].cover, diameter=-1.0)),
        "negative",
    ),
    "no diameter": (lambda: with_class(certified(), cover=replace(certified().classes[0].cover, diameter=0.0)), "diameter"),
    "states that are and are not terminal": (
        lambda: replace(certified(), assumptions=replace(certified().assumptions, terminates=True)),
        "terminal",
    ),
    "a whole RKHS by another radius": (lambda: with_setting(certified(), coefficient_variance=0.1), "random features"),
    "a misfit that the radius cannot see": (
        lambda: replace(bound("self-normalized", FOURIER).record(), assumptions=replace(certified().assumptions, misfit=0.05)),
        "misfit",
    ),
    "a cut of more rows than there are": (
        lambda: with_class(
            (record := bound("certified", FOURIER).record()),
            sums=replace(record.classes[0].sums, cut=replace(record.classes[0].sums.cut, count=10**6)),
        ),
        "cut",
    ),
    "a least loss without a proof": (lambda: with_class(certified(), ball_multiplier=math.nan), "least loss"),
    "a class of few rows": (lambda: replace(certified(), data=replace(certified().data, rows=-400)), "rows"),
    "ranges of rows that nobody declared": (lambda: with_setting(certified(), row_ranges="0" * 64), "single steps"),
    "ranges of rows for an average reward": (
        lambda: with_setting(result("average reward").record(), row_ranges="0" * 64),
        "average reward",
    ),
    "propensities for an average reward": (
        lambda: with_setting(result("average reward").record(), propensities=True),
        "average reward",
    ),
    "no doubts": (lambda: replace(doubted(), doubts=()), "doubts"),
}


def doubted() -> Record:
    found = aope.bound_value(problem(norm_bound=50.0), features=aope.RandomFourier(1, seed=5), kernel=KERNEL, radius="azuma")
    record = found.record()
    assert record.doubts
    return record


@pytest.mark.parametrize("name", FORGERIES)
def test_a_certificate_that_contradicts_itself_is_refused(name):
    make, reason = FORGERIES[name]
    found = verify_record(make())
    assert not found.valid and reason in found.message, found.message


def test_points_of_the_value_box_are_those_of_the_data():
    """A point that is no point of the data bounds the value by wishing; only the data tell."""
    record = bound("azuma", FOURIER).record()
    part = record.classes[0]
    wish = AveragedRecord(1000 * part.objective[None], np.zeros(1), np.ones(1), False, 0, None, None)
    high = record.assumptions.reward_range[1] / (1 - record.assumptions.discount)
    term = TermRecord("rows", 1 / (2 * 1000 * high / 2), None)
    forged = with_class(record, rows=(wish,), upper=replace(part.upper, bound=high / 1000, terms=(*part.upper.terms, term)))
    found = aope.verify(forged, data=DATA, starts=MDP.starts, policy=MDP.policy)
    assert not found.valid
    pointwise = result("azuma, point by point")
    assert pointwise.record().classes[0].rows
    assert aope.verify(pointwise, data=DATA, starts=MDP.starts, policy=MDP.policy).valid


def test_a_worse_proof_of_the_least_norm_is_noticed_with_the_data():
    interval = result("wild, relative norm")
    assert interval.certificates[0].least_norm > 0
    given = {"data": DATA, "starts": MDP.starts, "policy": MDP.policy, "features": MDP.features()}
    assert aope.verify(interval, **given).valid
    part = interval.record().classes[0]
    worse = tuple(replace(term, multiplier=0.2 * term.multiplier) for term in part.least_norm_terms)
    forged = with_class(interval.record(), least_norm_terms=worse, least_norm=0.5 * part.least_norm)
    assert not aope.verify(forged, **given).valid


@pytest.mark.parametrize("radius", ["certified", "azuma", "self-normalized"])
def test_rows_far_from_zero_without_a_norm_bound_are_proved(radius):
    """Ends of hundreds of millions say nothing, and their rounding is no reason to refuse a vacuous result."""
    data = aope.Transitions(DATA.states, DATA.actions, DATA.rewards + 1e4, DATA.next_states, DATA.terminated, DATA.episodes)
    facts = aope.Assumptions(discount=0.6, reward_range=(1e4, 1e4 + 1))
    asked = aope.Problem(data, MDP.starts, MDP.policy, facts)
    interval = aope.bound_value(asked, features=FOURIER, kernel=KERNEL, radius=radius)
    assert interval.check(), interval.verify().message


def test_a_bandwidth_may_be_a_whole_number():
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=10)
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, facts)
    interval = aope.bound_value(problem, features=aope.RandomFourier(4, 1), kernel=aope.Gaussian(1))
    assert interval.check(), interval.verify().message


class Small:
    """One-hot features, and small."""

    dimension, intercept, diameter = 8, False, 0.05 * math.sqrt(2)

    def __call__(self, points):
        return 0.05 * np.eye(8)[(2 * points[:, 0] + points[:, 1]).astype(int)]


def test_an_average_reward_of_small_features_is_proved():
    mdp, policy = random_tabular(4, 2, seed=0, discount=0.5), [[0.2, 0.8]] * 4
    data = mdp.sample_trajectories([[0.5, 0.5]] * 4, 20, 25, np.random.default_rng(0))
    declared = aope.AverageReward(reward_range=(0, 1), value_span=2.0)
    interval = aope.bound_average_reward(data, mdp.policy(policy), declared, features=Small(), kernel=aope.Gaussian(0.3))
    assert interval.check(), interval.verify().message


def test_a_planned_size_does_not_move_a_radius_for_one_size():
    evaluation = aope.evaluate(problem(), features=FOURIER, kernel=KERNEL)
    plain, planned = evaluation.bound("azuma"), evaluation.bound("azuma", planned=60)
    assert (plain.lower, plain.upper) == (planned.lower, planned.upper)


def test_a_doubt_travels_with_the_certificate(tmp_path):
    assert verify_record(doubted()).doubts
    assert result("azuma").record().doubts == ()


@pytest.mark.parametrize("name", ["certified", "certified, looked at while it grows", "empirical-bernstein", "symmetric"])
@pytest.mark.parametrize("factor", [0.99, 0.5, 0.0])
def test_a_smaller_step_of_the_data_is_noticed(name, factor):
    """By the proofs of later rounds and by the interval itself; where nothing follows from it, by the data."""
    interval = result(name)
    part = interval.certificates[0]
    first, *others = part.tightening.rounds
    assert others
    lowered = [
        replace(one, steps=tuple(replace(steps, observed=factor * steps.observed) for steps in one.steps)) for one in others
    ]
    changed = replace(part, tightening=replace(part.tightening, rounds=(first, *lowered)))
    forged = replace(interval, certificates=(changed,))
    assert not forged.check()
    given = {"data": DATA, "starts": MDP.starts, "policy": MDP.policy, "features": MDP.features()}
    found = aope.verify(forged.record(), **given)
    assert not found.valid
    if name == "symmetric":  # whose envelope ignores it
        assert verify_record(forged.record()).valid and "the largest step" in found.message
