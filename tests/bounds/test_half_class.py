"""The interval of half of the class: a subset of functions, one more bound, and what is said of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.half_class import HalfClass
from accountable_ope.classes.halved import EveryOther, half_class
from accountable_ope.environments import PlantedFeatures, PlantedMDP
from accountable_ope.report.fragility import fragility_document, shown_fragility

KERNEL = aope.Gaussian(1.0)
MDP = PlantedMDP(seed=1, features=6, discount=0.6)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False)


@cache
def data():
    return MDP.sample(np.random.default_rng(0), trajectories=6)


def interval(features=None, facts=FACTS, radius="azuma"):
    problem = aope.Problem(data(), MDP.starts, MDP.policy, facts)
    return aope.bound_value(problem, features=features or MDP.features(), kernel=KERNEL, radius=radius)


def test_it_is_the_interval_of_every_other_feature():
    found = interval().half_class()
    kept = PlantedFeatures(MDP.frequencies[::2], MDP.phases[::2])

    class Scaled:  # cosines of half as many features are larger by sqrt 2: the same functions have a smaller norm
        dimension, intercept, diameter = 3, True, MDP.features().diameter

        def __call__(self, points):
            return kept(points) * np.sqrt(3 / 6)

    again = interval(Scaled())
    assert np.allclose((found.lower, found.upper), (again.lower, again.upper), atol=1e-6 * again.width)
    assert (found.features, found.of) == (3, 6)


@pytest.mark.parametrize("radius", ["azuma", "certified"])
def test_fewer_functions_give_an_interval_inside(radius):
    whole = interval(aope.RandomFourier(9, 2.0), radius=radius)
    half = whole.half_class()
    assert half.status is not aope.Status.INCONSISTENT
    slack = 1e-3 * whole.width
    assert whole.lower - slack <= half.lower <= half.upper <= whole.upper + slack
    assert half.features == 5 and half.largest_move >= 0 and "5 of 9" in half.statement.text


def test_what_it_says():
    def found(lower, upper, status=aope.Status.OK):
        return HalfClass(5, 10, (0.0, 1.0), lower, upper, status)

    assert found(0.2, 1.0).hangs and "hangs on how many features" in found(0.2, 1.0).statement.text
    assert not found(0.05, 1.0).hangs and "hardly hangs" in found(0.05, 1.0).statement.text
    refuted = found(np.nan, np.nan, aope.Status.INCONSISTENT)
    assert not refuted.hangs and "The data refute the class with every other feature (5 of 10)" in refuted.statement.text
    assert HalfClass(1, 2, (1.0, 1.0), 1.0, 1.0, aope.Status.OK).largest_move == 0.0


def test_semi_parametric_classes_keep_the_ball_of_what_they_miss():
    features = aope.SemiParametric(MDP.features(), aope.Gaussian(2.0), 8)
    found = interval(features, replace(FACTS, misfit_norm=0.5)).half_class()
    same = aope.SemiParametric(EveryOther(MDP.features()), aope.Gaussian(2.0), 8)
    again = interval(same, replace(FACTS, misfit_norm=0.5))
    assert (found.lower, found.upper, found.features) == (again.lower, again.upper, 3)


def test_a_class_around_a_fit_stays_there():
    problem = aope.Problem(data(), MDP.starts, MDP.policy, FACTS)
    around = aope.evaluate(
        problem, features=MDP.features(), kernel=KERNEL, anchor=lambda states, actions: np.full(len(states), 1.0)
    )
    half = around.bound("azuma").half_class()
    other = aope.evaluate(
        problem, features=EveryOther(MDP.features()), kernel=KERNEL, anchor=lambda states, actions: np.full(len(states), 1.0)
    ).bound("azuma")
    assert np.allclose((half.lower, half.upper), (other.lower, other.upper), atol=1e-9)


def test_what_has_no_half():
    table = aope.TabularFeatures(np.array([[0.0, 1.0], [1.0, 1.0]]))
    for features in (table, aope.RandomFourier(1), aope.KernelSections(KERNEL, 5)):
        (each,) = aope.classes.as_classes(features)
        assert half_class(each) is None
    assert interval(aope.RandomFourier(1)).half_class() is None
    refuted = interval(aope.RandomFourier(2), replace(FACTS, norm_bound=1e-6), "certified")
    assert refuted.outcome is aope.Status.INCONSISTENT and refuted.half_class() is None


def test_text_and_documents(monkeypatch):
    found = interval(aope.RandomFourier(20, 1.0))
    document = fragility_document(found)
    json.dumps(document, allow_nan=False)
    assert document["half_class"]["of"] == 20 and document["norm"]["of"] == "norm_bound"
    assert document["half_class"]["text"] == found.half_class().statement.text
    said = shown_fragility(found)
    assert (found.half_class().statement.text in said) == (found.status is aope.Status.OK and found.half_class().hangs)
    monkeypatch.setattr("accountable_ope.report.fragility.FRAGILITY_ROWS", 10)
    assert shown_fragility(found) == () and fragility_document(found) == {"norm": None, "half_class": None}
