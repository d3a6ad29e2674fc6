"""What a guarantee may look at: draws, start states, earlier rows, and whether states are terminal."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.classes.function_class import as_class
from accountable_ope.environments import PlantedMDP
from accountable_ope.fitting import Candidates
from accountable_ope.problem import Experience
from accountable_ope.radii.cut import CutQuestion, choose_cut
from accountable_ope.statistics import bellman_system, q_columns

KERNEL = aope.Gaussian(1.0)
MDP = PlantedMDP(seed=1, features=5, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=12)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=5.0, reward_noise=False)
ROWS = 400


def names(result):
    return {statement.name for statement in result.premises}


def walk(states, generator):
    return generator.uniform(-1, 1, size=(len(states), 1))


def drawn_log():
    """One-dimensional states and actions, logged by anybody."""
    rng = np.random.default_rng(3)
    states, actions = rng.uniform(-1, 1, (ROWS, 1)), rng.uniform(-1, 1, (ROWS, 1))
    return aope.Transitions(states, actions, 0.5 + 0.4 * states[:, 0], 0.5 * states + 0.4 * actions)


def columns_of(starts):
    experience = Experience(drawn_log(), aope.StartStates(np.linspace(-1, 1, starts)), aope.SampledPolicy(walk, draws=2), 0.6)
    return bellman_system(experience, aope.RandomFourier(6)), experience


def test_draws_at_start_states_are_no_draws_of_a_row():
    """Start states that are the next states of the rows would get their very actions from one stream."""
    log = drawn_log()
    experience = Experience(log, aope.StartStates(log.next_states), aope.SampledPolicy(walk, draws=2), 0.6)
    for given in (as_class(aope.RandomFourier(6)), aope.KernelSections(KERNEL, 20)):
        found = given.columns(experience)
        assert not np.isclose(found.after, found.start).all(axis=1).any()
        np.testing.assert_array_equal(found.after, given.columns(experience).after)  # asked again, the same draws
    estimate = q_columns(lambda states, actions: actions[:, 0], experience)
    assert not np.isclose(estimate.at_next, estimate.at_start).any()
    assert abs(np.corrcoef(estimate.at_next, estimate.at_start)[0, 1]) < 0.15


def test_draws_at_rows_do_not_depend_on_the_number_of_start_states_nor_conversely():
    one, many = columns_of(1)[0], columns_of(50)[0]
    np.testing.assert_array_equal(one.residuals, many.residuals)
    shorter = replace(columns_of(50)[1], data=drawn_log().rows(slice(0, 300)))
    np.testing.assert_array_equal(bellman_system(shorter, aope.RandomFourier(6)).objective, many.objective)


@dataclass(frozen=True)
class Draws:
    """A policy of somebody else's that draws."""

    exact: bool = False
    action_vectors: None = None

    def branches(self, states):
        rng = np.random.default_rng(0)
        yield aope.problem.Branch(rng.uniform(-1, 1, (len(states), 1)), np.ones(len(states)))


def planted(**changes):
    return replace(aope.Problem(DATA, MDP.starts, MDP.policy, FACTS), **changes)


def reasons(result):
    """Why there is no cut, for each of the classes that have none."""
    assert all((part.cut is None) != (part.basis.no_cut is None) for part in result.certificates)
    return [None if part.basis.no_cut is None else part.basis.no_cut.name for part in result.certificates]


def test_every_path_to_a_cut_is_predictable_or_has_none():
    sections, kernel = aope.KernelSections(aope.Gaussian(1.0), 20), {"kernel": KERNEL}
    assert reasons(aope.bound_value(planted(), features=sections, **kernel)) == ["COORDINATES"]
    both = aope.evaluate(planted(), features=[MDP.features(), sections], **kernel).bound()
    assert reasons(both) == [None, "COORDINATES"] and {each.name for each in both.remarks} == {"cut", "no-cut"}
    assert "fixed-starts" in names(both)  # the class that has one needs it
    assert reasons(aope.bound_rkhs(planted(), landmarks=20)) == ["COORDINATES"]
    estimate = q_columns(lambda s, a: np.ones(len(s)), planted().experience)
    for features in (MDP.features(), sections):
        assert reasons(aope.diagnose(estimate, planted(), features=features, **kernel).interval) == ["ANCHORED"]
    asked = aope.Problem(drawn_log(), aope.StartStates([[0.0]]), Draws(), FACTS)
    assert reasons(aope.bound_value(asked, features=aope.RandomFourier(3), **kernel)) == ["POLICY"]
    question = aope.Question(MDP.starts, MDP.policy, replace(FACTS, terminates=False))
    looked = aope.Monitor(question, features=MDP.features(), **kernel, planned=500).update(DATA)
    assert reasons(looked.interval) == ["GROWING"]
    facts = aope.AverageReward(reward_range=(0, 1), norm_bound=0.5)
    assert reasons(aope.bound_average_reward(DATA, MDP.policy, facts, features=sections, **kernel)) == ["COORDINATES"]
    selected, _ = aope.bound_selected(planted(), candidates=Candidates(5, keep=1))
    assert reasons(selected) == [None] and "fixed-starts" in names(selected)


def test_an_anchor_does_not_enter_the_weights_of_a_cut():
    """An estimate fitted to all rows is allowed: it moves the target of the system, and weights never see that."""
    experience = planted().experience
    anchor = q_columns(lambda states, actions: 3 * states[:, 0], experience)
    plain, anchored = (bellman_system(experience, MDP.features(), given) for given in (None, anchor))
    np.testing.assert_array_equal(*(choose_cut(CutQuestion(system, KERNEL, 2.0, 0.05)).weights for system in (plain, anchored)))


def test_where_start_states_must_be_fixed_and_where_not():
    """The event of a radius without a cut is about Q alone; the sandwich judges the error at the start states themselves."""
    ready = aope.evaluate(planted(), features=MDP.features(), kernel=KERNEL)
    for radius in ("azuma", "empirical-bernstein", "self-normalized", "wild"):
        assert "fixed-starts" not in names(ready.bound(radius))
    assert "fixed-starts" in names(ready.bound("certified"))
    assert "fixed-starts" not in names(ready.bound("certified", planned=700))
    loose = planted(starts=aope.StartStates(MDP.starts.states, MDP.starts.weights, fixed=False))
    assert "fixed-starts" not in names(aope.bound_value(loose, features=MDP.features(), kernel=KERNEL))
    assert "fixed-starts" in names(aope.bounds.sandwich_interval(planted(), features=MDP.features(), kernel=KERNEL))
    assert "fixed-starts" not in names(aope.bounds.anderson_rubin_interval(planted(), features=MDP.features(), kernel=KERNEL))
    sampled = planted(starts=aope.StartStates(MDP.starts.states, exact=False))
    found = aope.bounds.sandwich_interval(sampled, features=MDP.features(), kernel=KERNEL)
    assert "sampled-starts" in names(found) and "fixed-starts" not in names(found)


def test_start_states_that_follow_the_errors_break_the_sandwich_and_not_the_certified_interval():
    """Of two start states take the one at which the fit is farther off: the premise is there for a reason."""
    rng, missed, outside = np.random.default_rng(7), 0, 0
    features, actions = aope.RandomFourier(8, bandwidth=0.5, intercept=False), np.zeros((300, 1))
    grid, theta = np.linspace(-1, 1, 30)[:, None], np.full(8, 0.25)
    policy = aope.DeterministicPolicy(lambda states: np.zeros((len(states), 1)))
    facts = aope.Assumptions(discount=0.0, reward_range=(-3, 3), norm_bound=2.0)
    for _ in range(40):
        states = rng.uniform(-1, 1, (300, 1))
        truth = features(np.column_stack([states, actions])) @ theta
        data = aope.Transitions(states, actions, truth + rng.uniform(-1, 1, 300), states)
        at_grid = features(np.column_stack([grid, np.zeros((30, 1))]))
        fit = np.linalg.lstsq(features(np.column_stack([states, actions])), data.rewards, rcond=None)[0]
        worst = int(np.argmax(np.abs(at_grid @ (fit - theta))))
        problem = aope.Problem(data, aope.StartStates(grid[worst : worst + 1], fixed=False), policy, facts)
        ready = aope.evaluate(problem, features=features, kernel=aope.Gaussian(0.3))
        value = float(at_grid[worst] @ theta)
        missed += value not in aope.bounds.sandwich.sandwich_of(ready, 0.1)
        interval = ready.bound("certified")
        outside += value not in interval
        assert reasons(interval) == ["STARTS"]  # said to be fixed they would be outside of what a cut rests on
    assert missed >= 8 and outside == 0  # 4 of 40 are allowed


@pytest.mark.parametrize("radius", ["hoeffding", "azuma", "certified", "self-normalized", "wild", "azuma-anytime"])
def test_every_result_says_that_the_number_of_rows_was_fixed(radius):
    ready = aope.evaluate(planted(), features=MDP.features(), kernel=KERNEL)
    assert "fixed-size" in names(ready.bound(radius))
    anytime = aope.radii.radius_rule(radius).anytime
    assert ("fixed-size" in names(ready.bound(radius, planned=700))) != anytime


def test_the_companions_say_so_too():
    facts = aope.AverageReward(reward_range=(0, 1), value_span=0.5)
    average = aope.bound_average_reward(DATA, MDP.policy, facts, features=MDP.features(), kernel=KERNEL)
    sandwich = aope.bounds.sandwich_interval(planted(), features=MDP.features(), kernel=KERNEL)
    robust = aope.bounds.anderson_rubin_interval(planted(), features=MDP.features(), kernel=KERNEL)
    assert "fixed-size" in names(average) & names(sandwich) & names(robust)


def test_termination_seen_in_earlier_rows_counts_for_the_later_ones():
    """Only episodes of the first rows end. What is chosen on them does not make the process endless."""
    terminated = np.zeros(len(DATA), dtype=bool)
    terminated[49] = True
    ended = aope.Transitions(DATA.states, DATA.actions, DATA.rewards, DATA.next_states, terminated, DATA.episodes)
    problem = aope.Problem(ended, MDP.starts, MDP.policy, replace(FACTS, reward_range=(-1, 1)))
    earlier, later = problem.split(0.3)
    assert not later.data.terminated.any() and later.terminates
    assert later.ranges == earlier.ranges == problem.ranges
    interval, _ = aope.bound_selected(problem, candidates=Candidates(5, keep=1), earlier_share=0.3)
    assert "terminates" in names(interval) and "endless" not in names(interval)
    assert "terminates" in names(aope.bound_rkhs(problem, landmarks=20, earlier_share=0.3))
    undiscounted = replace(problem, assumptions=replace(FACTS, discount=1.0, value_range=(0, 5)))
    assert undiscounted.split(0.3)[1].terminates
    assert not planted().split(0.3)[1].terminates  # nothing ended anywhere
