"""Every kind of interval, small: what certificates are tried on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from unittest import mock

import numpy as np

import accountable_ope as aope
import bandit_log
from accountable_ope.classes import function_class
from accountable_ope.environments import PlantedMDP

MDP = PlantedMDP(seed=1, features=2, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=8)
KERNEL = aope.Gaussian(1.0)
WRONG, MANY = aope.RandomFourier(2, seed=5), aope.RandomFourier(10, seed=3)


def problem(starts: aope.StartStates = MDP.starts, **changes: object) -> aope.Problem:
    facts = {"discount": 0.6, "reward_range": (0, 1), "norm_bound": 1.5 * MDP.norm, "reward_noise": False, **changes}
    return aope.Problem(DATA, starts, MDP.policy, aope.Assumptions(**facts))


def bound(radius: str, features: object = None, *, pointwise: bool | None = None, **changes: object) -> aope.Interval:
    chosen = MDP.features() if features is None else features
    return aope.bound_value(problem(**changes), features=chosen, kernel=KERNEL, radius=radius, pointwise=pointwise)


def study() -> aope.Study:
    return aope.study(problem(), features=MDP.features(), kernel=KERNEL)


def average(radius: str, features: object = None, **changes: object) -> aope.Interval:
    facts = {"reward_range": (0, 1), "norm_bound": 3.0, "value_span": 1.0, **changes}
    chosen = MDP.features() if features is None else features
    return aope.bound_average_reward(DATA, MDP.policy, aope.AverageReward(**facts), features=chosen, kernel=KERNEL, radius=radius)


def semi_parametric(radius: str, **changes: object) -> aope.Interval:
    features = aope.SemiParametric(aope.RandomFourier(2, seed=5), aope.Gaussian(2.0), 8)
    return bound(radius, features, **{"misfit_norm": 1.0, **changes})


def estimate(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.full(len(states), 0.5)


def with_coarse_grid(make: Callable[[], aope.Interval]) -> aope.Interval:
    """A range from few points, which is wide and quickly found."""
    with mock.patch.object(function_class, "GRID_NUMBERS", 3000):
        return make()


RESULTS = {
    "azuma": lambda: bound("azuma"),
    "azuma-anytime, planned": lambda: aope.evaluate(problem(), features=MDP.features(), kernel=KERNEL).bound(
        "azuma-anytime", planned=1000
    ),
    "hoeffding-u, no norm bound": lambda: bound("hoeffding-u", norm_bound=None),
    "self-normalized": lambda: bound("self-normalized"),
    "wild": lambda: bound("wild"),
    "certified": lambda: bound("certified"),
    "certified, point by point": lambda: bound("certified", MANY, pointwise=True, norm_bound=500.0),
    "azuma, point by point": lambda: bound("azuma", MANY, pointwise=True, norm_bound=500.0),
    "certified, state box": lambda: with_coarse_grid(lambda: bound("certified", state_box=((-10.0, -10.0), (10.0, 10.0)))),
    "certified, misfit": lambda: bound("certified", misfit=0.01),
    "certified, relative norm": lambda: bound("certified", norm_bound=aope.RelativeNorm(2.0)),
    "wild, relative norm": lambda: bound("wild", norm_bound=aope.RelativeNorm(2.0)),
    "certified, refuted": lambda: bound("certified", norm_bound=1e-3),
    "azuma, refuted": lambda: bound("azuma", norm_bound=1e-3),
    "certified, boxes on average": lambda: bound("certified", pointwise=False),
    "certified, looked at while it grows": lambda: aope.evaluate(problem(), features=MDP.features(), kernel=KERNEL).bound(
        planned=1000
    ),
    "certified, weights of propensities": lambda: bandit_log.evaluated(bandit_log.logged(0)).bound(),
    "certified, of a study": lambda: study().at("norm_bound", 2 * MDP.norm),
    "symmetric": lambda: bound("symmetric", symmetric_noise=True),
    "empirical-bernstein": lambda: bound("empirical-bernstein"),
    "two classes": lambda: bound("azuma", [MDP.features(), WRONG]),
    "sections": lambda: bound("certified", aope.KernelSections(aope.Gaussian(2.0), 8), norm_bound=2.0),
    "sections, azuma": lambda: bound("azuma", aope.KernelSections(aope.Gaussian(2.0), 8), norm_bound=2.0),
    "features and what they miss": lambda: semi_parametric("certified"),
    "features and what they miss, azuma": lambda: semi_parametric("azuma"),
    "features and what they miss, refuted": lambda: semi_parametric("certified", norm_bound=1e-3, misfit_norm=1e-3),
    "sampled starts": lambda: bound("azuma", starts=aope.StartStates(MDP.starts.states, exact=False)),
    "around an estimate": lambda: aope.diagnose(estimate, problem(), features=MDP.features(), kernel=KERNEL).interval,
    "average reward": lambda: average("certified"),
    "average reward, azuma": lambda: average("azuma"),
    "average reward, span only": lambda: average("certified", norm_bound=None),
    "average reward, state box": lambda: with_coarse_grid(
        lambda: average("certified", state_box=((-10.0, -10.0), (10.0, 10.0)), value_span=None)
    ),
    "average reward, refuted": lambda: average("certified", norm_bound=1e-3),
    "average reward, sections": lambda: average("certified", aope.KernelSections(aope.Gaussian(2.0), 8), norm_bound=2.0),
    "random features for an RKHS": lambda: aope.bounds.bound_by_finite_features(
        problem(), features=aope.RandomFourier(4), kernel=KERNEL, coefficient_variance=1.0
    ),
    "earlier rows": lambda: aope.bound_rkhs(problem(norm_bound=2.0), landmarks=5, radius="azuma"),
}


@cache
def result(name: str) -> aope.Interval:
    return RESULTS[name]()
