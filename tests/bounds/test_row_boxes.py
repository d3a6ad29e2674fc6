"""Boxes at every row: what they decide, that they only narrow, and that certificates hold them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, TabularMDP, chain
from accountable_ope.programs.constraint import Role, RowsOrigin

TOLERANCE = 2e-3
"""Of the width: what the solver may be off by."""


@cache
def planted(seed: int, features: int, trajectories: int) -> tuple[PlantedMDP, aope.Evaluation]:
    mdp = PlantedMDP(seed=seed, features=features, discount=0.9)
    data = mdp.sample(np.random.default_rng(seed), trajectories=trajectories)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False, norm_bound=mdp.norm)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    return mdp, aope.evaluate(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))


@cache
def plans(which: tuple[int, int, int]):
    """Rates and weights on one event, on which intervals are nested."""
    return planted(*which)[1].plans()


@cache
def bound(which: tuple[int, int, int], multiple: float, pointwise: bool, fixed: bool = True) -> aope.Interval:
    mdp, evaluation = planted(*which)
    facts = replace(evaluation.problem.assumptions, norm_bound=multiple * mdp.norm)
    return evaluation.assuming(facts).bound(pointwise=pointwise, plans=plans(which) if fixed else None)


def within(inner: aope.Interval, outer: aope.Interval) -> bool:
    off = TOLERANCE * outer.width
    return inner.lower >= outer.lower - off and inner.upper <= outer.upper + off


CASES = [(1, 5, 20), (1, 10, 20), (4, 5, 10)]
MULTIPLES = (1.0, 4.0, 8.0, 16.0, 64.0, 100.0)


@pytest.mark.parametrize("which", CASES, ids=str)
def test_the_box_at_every_point_only_narrows_and_is_nested(which):
    mdp, _ = planted(*which)
    narrower = [bound(which, multiple, True) for multiple in MULTIPLES]
    for multiple, interval in zip(MULTIPLES, narrower, strict=True):
        assert within(interval, bound(which, multiple, False)), multiple
        assert interval.lower <= mdp.value <= interval.upper
    for small, large in pairwise(narrower):
        assert within(small, large)
    if which != CASES[0]:
        assert narrower[-1].width < 0.97 * bound(which, MULTIPLES[-1], False).width


@pytest.mark.parametrize(
    "multiple",
    [8.0, 16.0, 64.0],
)
def test_its_certificate_is_proved_with_the_data(multiple):
    mdp, evaluation = planted(4, 5, 10)
    interval = bound((4, 5, 10), multiple, True, fixed=False)
    assert interval.check(), interval.verify().message
    given = {"features": mdp.features(), "starts": mdp.starts, "policy": mdp.policy}
    assert aope.verify(interval, data=evaluation.problem.data, **given).valid


CHAIN, TABLE = chain(4, discount=0.9, slip=0.0), np.tile([0.2, 0.8], (4, 1))
WIDTHS = (1.0, 0.1, 0.03, 0.01)


@cache
def on_the_chain(width: float, intercept: bool) -> aope.Interval:
    """A chain without any chance: every range is true."""
    data, policy = CHAIN.sample_iid(400, np.random.default_rng(0)), CHAIN.policy(TABLE)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False, terminates=False, one_step_range=width)
    grid = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=intercept)
    return aope.bound_value(aope.Problem(data, CHAIN.starts(), policy, facts), features=grid, kernel=aope.Tabular())


@pytest.mark.parametrize("intercept", [False, True])
def test_a_smaller_true_range_never_widens(intercept):
    """The variance that a range allows is a constraint of its own: without it a smaller range made the interval vacuous.

    With an intercept the same class has one coefficient more, which no data and no norm bound decide.
    """
    intervals = [on_the_chain(width, intercept) for width in WIDTHS]
    for interval in intervals:
        assert interval.lower <= CHAIN.value(TABLE) <= interval.upper
    for wide, narrow in pairwise(intervals):
        assert narrow.width <= 1.01 * wide.width
    assert intervals[-1].width < 0.025 < 0.05 < intervals[1].width


@pytest.mark.parametrize("width", [1.0, 0.1, 0.03, 0.01])
def test_intervals_of_small_ranges_are_proved(width):
    interval = on_the_chain(width, intercept=False)
    assert interval.check(), interval.verify().message


def test_an_estimate_that_a_range_forbids_is_rejected():
    """A constant has residuals far beyond what chance can do in one step, however small the smallest rate of the mixture."""
    data, policy = CHAIN.sample_iid(400, np.random.default_rng(0)), CHAIN.policy(TABLE)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False, terminates=False, one_step_range=0.01)
    interval = aope.bound_value(
        aope.Problem(data, CHAIN.starts(), policy, facts),
        features=aope.RandomFourier(1, 1e6),
        kernel=aope.Tabular(),
    )
    assert interval.status is aope.Status.INCONSISTENT


def rare() -> tuple[TabularMDP, aope.Problem, aope.TabularFeatures]:
    """A state that is seen once: the loss hardly knows it, a range of a hundredth for its residual does."""
    onward = np.zeros((2, 1, 2))
    onward[:, 0, 1] = 1.0
    mdp = TabularMDP(onward, [[1.0], [0.2]], 0.5, [1.0, 0.0])
    states = np.ones((300, 1))
    states[150] = 0.0
    data = aope.Transitions(states, np.zeros(300, dtype=int), np.where(states[:, 0] == 0, 1.0, 0.2), np.ones((300, 1)))
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False, terminates=False, one_step_range=0.01)
    policy = mdp.policy([[1.0], [1.0]])
    features = aope.TabularFeatures.grid(np.arange(2.0), policy.action_vectors, intercept=False)
    return mdp, aope.Problem(data, mdp.starts(), policy, facts), features


def test_the_residual_of_one_row_decides():
    """Q(0) = 1 + Q(1) / 2 up to .01, from a single row; the averaged constraints alone leave a hundred times as much."""
    mdp, problem, features = rare()
    interval = aope.bound_value(problem, features=features, kernel=aope.Tabular())
    assert interval.lower <= mdp.value([[1.0], [1.0]]) <= interval.upper
    assert interval.width <= 2.2 * (0.01 + 0.5 * 0.02) and interval.check()
    used = [
        constraint
        for end in (interval.certificates[0].upper, interval.certificates[0].lower)
        for constraint, multiplier in zip(end.constraints, end.multipliers, strict=True)
        if constraint.role is Role.BOX and isinstance(constraint.origin, RowsOrigin) and multiplier > 0
    ]
    assert used and any(constraint.origin.targets is not None for constraint in used)
    without = replace(interval.certificates[0].constraints, steps=None)
    upper, lower, _ = aope.programs.tightening.tighten(
        without, problem_objective(interval), -problem_objective(interval), without.inside, 3
    )
    assert upper.bound + lower.bound > 3 * interval.width


def problem_objective(interval: aope.Interval) -> np.ndarray:
    return interval.certificates[0].basis.objective
