"""Weaker assumptions, a smaller delta and fewer rounds never give a narrower interval.

The rates of the mixture are fixed before the data in units of the range that was declared, so that a weaker range moves them, and
may move them, and the weights of the cut, to where they serve these data better: there the interval may become narrower, by less
than a tenth. A one-step range moves them only once it is four times below what else is known. With rates and weights that stay
where they are, everything is monotone: the envelope in steps and variance, and so every round; two thousandths of the width are
what the solver may be off by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, TabularMDP, clinic, random_tabular
from accountable_ope.programs.tightening import tighten

SOLVER, MOVED = 2e-3, 0.1
"""Shares of the width: what the solver may be off by, and what a choice may move."""


@dataclass(frozen=True, eq=False)
class Study:
    """Prepared data, true assumptions and the value."""

    evaluation: aope.Evaluation
    value: float

    @property
    def facts(self) -> aope.Assumptions:
        return self.evaluation.problem.assumptions

    @cached_property
    def plans(self) -> tuple[object, ...]:
        """Rates and weights, fixed for the true assumptions."""
        return self.evaluation.plans()

    @cached_property
    def known(self) -> dict[tuple[float, bool, aope.Assumptions], aope.Interval]:
        """Intervals that were computed: ladders have rungs in common."""
        return {}

    def bound(self, delta: float = 0.1, fixed: bool = False, **changes: object) -> aope.Interval:
        facts = replace(self.facts, **changes)
        key = (delta, fixed, facts)
        if key not in self.known:
            self.known[key] = self.evaluation.assuming(facts).bound(delta=delta, plans=self.plans if fixed else None)
        return self.known[key]


def planted(seed: int, trajectories: int, bernoulli: bool) -> Study:
    mdp = PlantedMDP(seed=seed, features=5, discount=0.9, bernoulli=bernoulli)
    data = mdp.sample(np.random.default_rng(seed), trajectories=trajectories)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=bernoulli, norm_bound=1.5 * mdp.norm)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    return Study(aope.evaluate(problem, features=mdp.features(), kernel=aope.Gaussian(1.0)), mdp.value)


def tabular(mdp: TabularMDP, table: np.ndarray, rows: int, facts: aope.Assumptions) -> Study:
    policy, live = mdp.policy(table), np.flatnonzero(~mdp.terminal).astype(float)
    problem = aope.Problem(mdp.sample_iid(rows, np.random.default_rng(0)), mdp.starts(), policy, facts)
    grid = aope.TabularFeatures.grid(live, policy.action_vectors, intercept=False)
    return Study(aope.evaluate(problem, features=grid, kernel=aope.Tabular()), mdp.value(table))


MAKE = {
    "planted": lambda: planted(2, 20, bernoulli=True),
    "planted, deterministic rewards": lambda: planted(3, 20, bernoulli=False),
    "planted, few rows": lambda: planted(1, 8, bernoulli=False),
    "tabular": lambda: tabular(
        random_tabular(4, 2, seed=1, discount=0.7),
        np.random.default_rng(1).dirichlet(np.ones(2), size=4),
        600,
        aope.Assumptions(discount=0.7, reward_range=(0, 1), reward_noise=False, terminates=False),
    ),
    "clinic": lambda: tabular(
        clinic(discount=0.95),
        np.random.default_rng(0).dirichlet(np.ones(3), size=6),
        3000,
        aope.Assumptions(discount=0.95, reward_range=(0, 1), value_range=(0.0, 1.0)),
    ),
}


@cache
def study(name: str) -> Study:
    return MAKE[name]()


def ladders(each: Study) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Assumptions of one kind, each weaker than the one before."""
    facts, ranges = each.facts, each.evaluation.problem.ranges
    low, high = ranges.value
    if facts.norm_bound is not None:
        multiples = [{"norm_bound": k * facts.norm_bound} for k in (1.0, 1.05, 1.5, 2.0, 10.0)]
        yield "norm bound", [*multiples, {"norm_bound": None}]
    ball = each.bound().certificates[0].tightening.rounds[0].residual_bound
    yield "one-step range", [*({"one_step_range": k * ball} for k in (0.5, 0.7, 0.9, 1.0)), {}]
    yield "value range", [{"value_range": (low - k * (high - low), high + k * (high - low))} for k in (0.0, 0.05, 0.3)]
    yield "misfit", [{"misfit": k * (high - low)} for k in (0.0, 1e-4, 1e-3, 1e-2)]
    if not facts.reward_noise:
        yield "reward noise", [{}, {"reward_noise": True}]


def narrower(weak: aope.Interval, strong: aope.Interval) -> float:
    """By how much of its width the interval of weaker assumptions lies inside of the other."""
    return max(weak.lower - strong.lower, strong.upper - weak.upper) / strong.width


@pytest.mark.parametrize("fixed", [True, False], ids=["on one event", "as shipped"])
@pytest.mark.parametrize("name", MAKE)
def test_weaker_assumptions_never_narrow(name, fixed):
    each = study(name)
    for kind, changes in ladders(each):
        intervals = [each.bound(fixed=fixed, **change) for change in changes]
        for strong, weak, change in zip(intervals, intervals[1:], changes[1:], strict=False):
            assert narrower(weak, strong) <= (SOLVER if fixed or kind == "one-step range" else MOVED), (kind, change)
        assert all(interval.lower <= each.value <= interval.upper for interval in intervals), kind


@pytest.mark.parametrize("name", MAKE)
def test_a_smaller_delta_never_narrows(name):
    intervals = [study(name).bound(delta, fixed=True) for delta in (0.9, 0.5, 0.2, 0.1, 0.05, 0.01)]
    for strong, weak in pairwise(intervals):
        assert narrower(weak, strong) <= SOLVER
    assert intervals[0].width < 0.9 * intervals[-1].width


@pytest.mark.parametrize("name", MAKE)
def test_fewer_rounds_never_narrow(name):
    part = study(name).bound().certificates[0]
    objective, widths = part.basis.objective, []
    for rounds in (1, 2, 3, 5, 8):
        upper, lower, found = tighten(part.constraints, objective, -objective, part.constraints.inside, rounds)
        assert len(found.rounds) <= rounds
        widths.append(upper.bound + lower.bound)
    for few, more in pairwise(widths):
        assert more <= few * (1 + SOLVER)
    assert widths[-1] < 0.999 * widths[0]
