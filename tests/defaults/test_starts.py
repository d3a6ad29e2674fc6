"""Start states that come from the log: the first states of all episodes count, earlier ones included."""

from __future__ import annotations

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.defaults import choose_recipe
from accountable_ope.environments import PlantedMDP
from accountable_ope.radii.accounting import start_radius

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
FACTS = aope.Assumptions(discount=0.6, reward_range=(0, 1))


def log(seed: int = 0, episodes: int = 60) -> aope.Problem:
    """Episodes that start anew, with the logger's first states as the only knowledge of where they do."""
    data = MDP.sample(np.random.default_rng(seed), trajectories=episodes, length=10)
    return aope.Problem(data, data.first_states(), MDP.policy, FACTS)


def test_the_first_states_of_early_episodes_count_and_the_breakdown_says_what_start_states_cost() -> None:
    problem = log()
    recipe = choose_recipe(problem, neural=False, candidates=["cosines"])
    later = recipe.later(problem)
    assert recipe.earlier_episodes == 12 and later.data.number_of_episodes == 48 and later.effective_starts == pytest.approx(60)
    interval = aope.bound_value(problem, recipe=recipe, radius="azuma", pointwise=False)
    assert interval.split.start == pytest.approx(0.01) and interval.split.kernel == pytest.approx(0.09)
    assert interval.start_error == pytest.approx(start_radius(2.5, 60, 0.01))
    assert interval.start_error < start_radius(2.5, 48, 0.01)  # what the later ones alone would cost
    said = interval.breakdown(rows=False)
    assert said is not None and said.start_error == interval.start_error
    assert any(each.name == "start-states" for each in said.parts)
