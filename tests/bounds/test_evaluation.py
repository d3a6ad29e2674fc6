"""One evaluation, many questions: none of them may lose the estimate, the class or the data that it is about."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import accountable_ope as aope
from accountable_ope.classes import Span
from accountable_ope.cli.text import print_diagnosis
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem.statements import texts

MDP = PlantedMDP(seed=1, features=5, discount=0.6)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * MDP.norm, reward_noise=False, terminates=False)
KERNEL = aope.Gaussian(1.0)


def problem(trajectories=10, seed=0, facts=FACTS):
    return aope.Problem(MDP.sample(np.random.default_rng(seed), trajectories=trajectories), MDP.starts, MDP.policy, facts)


@pytest.mark.parametrize("radius", ["azuma", "empirical-bernstein", "certified"])
def test_proofs_from_other_data_are_no_proofs(radius):
    few, many = (
        aope.bound_value(problem(n, seed), features=MDP.features(), kernel=KERNEL, radius=radius) for n, seed in ((4, 1), (40, 2))
    )
    a, b = few.certificates[0], many.certificates[0]
    forged = replace(a, upper=b.upper, lower=b.lower, tightening=b.tightening)
    ends = {"unclipped": many.unclipped, "lower": many.lower, "upper": many.upper, "outcome": many.outcome}
    assert few.check() and many.check()
    assert not replace(few, certificates=(forged,), **ends).check()


def test_changed_ends_are_noticed():
    interval = aope.bound_value(problem(), features=MDP.features(), kernel=KERNEL)
    assert not replace(interval, lower=interval.lower + 0.01).check()
    assert not replace(interval, upper=interval.upper - 0.01).check()
    assert not replace(interval, outcome=aope.Status.VACUOUS).check()


def test_the_order_of_classes_does_not_decide_a_diagnosis():
    """A class that overfits leaves a tiny bootstrap radius; the other one may hold Q."""
    asked = problem(4)
    overfitting = aope.RandomFourier(190, 0.2, 7)
    verdicts = {
        aope.diagnose(MDP.q, asked, features=classes, kernel=aope.Gaussian(0.3), radius="wild").verdict.name
        for classes in ([MDP.features(), overfitting], [overfitting, MDP.features()])
    }
    assert verdicts == {"CONSISTENT"}


def test_a_class_without_its_constant_is_named_so():
    asked, plain = problem(), Span(MDP.features(), intercept=False)
    with_constant, without = (aope.bound_value(asked, features=each, kernel=KERNEL) for each in (MDP.features(), plain))
    named = [line for line in texts(without.premises) if "lies in the class" in line]
    assert "intercept=False" in named[0] and named[0] not in texts(with_constant.premises)
    monitor = aope.Monitor(asked.question, features=plain, kernel=KERNEL, planned=1000)
    report = monitor.update(asked.data)
    expected = aope.evaluate(asked, features=plain, kernel=KERNEL).bound(planned=1000)
    assert report.interval.unclipped == pytest.approx(expected.unclipped, nan_ok=True)


def test_an_evaluation_around_an_estimate_does_not_lose_it():
    anchored = aope.evaluate(problem(), features=aope.RandomFourier(3, 1.0, 9), kernel=KERNEL, anchor=MDP.q)
    study = anchored.study("azuma")
    for ask in (lambda: study.at("discount", 0.601), lambda: study.rows_needed(0.1), lambda: anchored.again(problem())):
        with pytest.raises(aope.InvalidInput, match="around an estimate"):
            ask()
    assert study.at("delta", 0.2).premises[-1] and "Q minus the given estimate" in " ".join(texts(study.baseline.premises))


@pytest.mark.parametrize("radius", ["azuma", "hoeffding", "wild"])
def test_a_plan_does_not_make_a_radius_hold_at_all_times(radius):
    evaluation = aope.evaluate(problem(), features=MDP.features(), kernel=KERNEL)
    assert "fixed-size" in {each.name for each in evaluation.bound(radius, planned=500).premises}
    assert "fixed-size" not in {each.name for each in evaluation.bound("certified", planned=500).premises}
    with pytest.raises(aope.InvalidInput, match="`planned` must be a whole number of at least 1"):
        evaluation.bound(radius, planned=-5)


class Thin:
    """A class with a fixed number of coordinates that miss something."""

    def __init__(self):
        self.inner = aope.KernelSections(aope.Gaussian(1.5), 5)

    dimension, diameter, intercept, feature_map, at_rows_only, has_remainder = 5, np.inf, True, None, False, True

    def columns(self, experience):
        return self.inner.columns(experience)

    def cover(self, policy, state_box):
        return None

    def norm_of_values(self, largest):
        return np.inf

    def relative(self):
        return self


@pytest.mark.parametrize("radius", ["hoeffding-u", "self-normalized", "wild"])
def test_what_coordinates_miss_is_refused_where_a_radius_says_nothing_about_it(radius):
    with pytest.raises(aope.InvalidInput, match="says nothing about what KernelSections miss"):
        aope.bound_value(problem(), features=Thin(), kernel=KERNEL, radius=radius)


def test_finite_features_count_a_misfit():
    facts = replace(FACTS, norm_bound=0.05)
    options = {"features": aope.RandomFourier(200, 1.0, 2), "kernel": KERNEL, "coefficient_variance": 0.01}
    slack = [
        aope.bounds.bound_by_finite_features(problem(facts=replace(facts, misfit=m)), **options).certificates[0].missed
        for m in (0.0, 0.1)
    ]
    assert slack[1] == pytest.approx(slack[0] + 0.1)


def loss_is_compared_as_it_is(found):
    """The text may say "above the radius" only where the loss is."""
    console = Console(record=True, width=200, file=io.StringIO())
    print_diagnosis(console, found)
    text = console.export_text()
    compared = "above" if found.loss > found.radius.total else "at most"
    return f"loss {found.loss:.3g}, {compared} the radius" in text and "no residual of the true Q can" in text


def test_an_estimate_with_an_impossible_residual_is_rejected():
    """One row decides, whatever the radius: the residual of the true Q cannot exceed the declared width."""
    asked = problem(4)

    def absurd(states, actions):
        return MDP.q(states, actions) + 1e4 * (states[:, 0] == asked.data.states[7, 0])

    for radius in ("hoeffding", "azuma", "certified"):
        given = {"features": MDP.features(), "kernel": KERNEL, "radius": radius}
        found = aope.diagnose(absurd, asked, **given)
        assert found.verdict.name == "REJECTED" and found.impossible and found.largest_residual > 9e3
        assert loss_is_compared_as_it_is(found)
        assert aope.diagnose(MDP.q, asked, **given).verdict.name == "CONSISTENT"


def test_there_is_no_cut_where_coordinates_look_at_all_rows():
    sections, plain = (
        aope.bound_value(problem(), features=features, kernel=KERNEL)
        for features in (aope.KernelSections(KERNEL, 20), MDP.features())
    )
    assert sections.certificates[0].cut is None and sections.remarks[0].parameter("reason") == "coordinates"
    assert plain.certificates[0].cut is not None
    premises = [{each.name for each in found.premises} for found in (sections, plain)]
    assert "cut" not in premises[0] and {"cut", "fixed-starts"} <= premises[1]


def test_one_landmark_is_enough():
    interval = aope.bound_value(problem(), features=aope.KernelSections(KERNEL, 1), kernel=KERNEL)
    assert interval.status is aope.Status.VACUOUS and interval.check()


def test_rounding_does_not_reject_the_true_q_where_chance_moves_nothing():
    """Discount 0 and a reward that is a function of (s, a): the declared width is 0, and 0.1 * 3 is not 0.3."""
    states = np.linspace(-1, 1, 40)[:, None]
    data = aope.Transitions(states, np.zeros(40, dtype=int), 0.3 * np.ones(40), states)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1), reward_noise=False, norm_bound=1)
    policy = aope.DiscretePolicy(lambda rows: np.ones((len(rows), 1)), actions=1)
    asked = aope.Problem(data, aope.StartStates([[0.0]]), policy, facts)
    found = aope.diagnose(
        lambda s, a: np.full(len(s), 0.1 * 3), asked, features=aope.RandomFourier(3), kernel=KERNEL, radius="azuma"
    )
    assert 0 < found.largest_residual < 1e-15 and not found.impossible
