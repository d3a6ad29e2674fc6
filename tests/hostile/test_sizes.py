"""Sizes at the edge of floating point end in one sentence or in an interval with two ends, never in NaN or a warning."""

import math

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.errors import AopeError, InvalidInput
from accountable_ope.problem.statements import Status
from accountable_ope.radii import RULES
from hostile.values import no_longer_than, warnings_are_errors

MDP = PlantedMDP(seed=1, features=3, discount=0.6)
DATA = MDP.sample(np.random.default_rng(0), trajectories=4, length=5)
GOOD = {"discount": 0.6, "reward_range": (0.0, 1.0), "norm_bound": 3.0, "reward_noise": False, "symmetric_noise": True}

EXTREME = {
    "reward_range": [(lo, hi) for lo, hi in ((-1e308, 1e308), (0, 1e308), (-1e60, 1e60), (0, 1e59), (-1e30, 1), (0, 1 + 1e-300))],
    "norm_bound": [1e-300, 1e-60, 1e-30, 1e-15, 1e15, 1e30, 1e60, 1e300, None],
    "value_range": [(-1e308, 1e308), (-1e60, 1e60), (0.0, 1e-60), (0.5, 0.5)],
    "misfit": [1e-300, 1e-30, 1e30, 1e60, 1e300],
    "one_step_range": [1e-300, 1e-60, 1e-30, 1e60, 1e300],
    "discount": [0.0, 1e-300, 1 - 1e-16, math.nextafter(1, 0)],
    "state_box": [((-x, -x), (x, x)) for x in (1e60, 1e308)],
    "horizon": [1000, 10**6, 10**12, 2**62],
}
SLOW = ("certified", "symmetric")
"""At the edge their rounds take all the steps that they may: seconds."""
QUICK = [rule.name for rule in RULES if rule.name not in SLOW]
CASES = [(name, value) for name, values in EXTREME.items() for value in values]


def number_of_cases():
    return len(CASES) * len(QUICK)


def sane(interval):
    low, high = interval.lower, interval.upper
    return interval.status is Status.INCONSISTENT or (not math.isnan(low) and not math.isnan(high) and low <= high)


@pytest.mark.parametrize(("name", "value"), CASES)
def test_extreme_assumptions(name, value):
    bound_under(name, value, QUICK)


@pytest.mark.parametrize("radius", SLOW)
@pytest.mark.parametrize(("name", "value"), [(name, values[k]) for name, values in EXTREME.items() for k in (0, -1)])
def test_extreme_assumptions_with_rounds(name, value, radius):
    bound_under(name, value, [radius])


def bound_under(name, value, radii):
    """Bound by each of the radii, and complain of all that went wrong."""
    wrong = []
    for radius in radii:
        try:
            with no_longer_than(120), warnings_are_errors():
                problem = aope.Problem(DATA, MDP.starts, MDP.policy, aope.Assumptions(**{**GOOD, name: value}))
                interval = aope.bound_value(problem, features=MDP.features(), kernel=aope.Gaussian(1.0), radius=radius)
                if not sane(interval) or not interval.check():
                    wrong.append(f"{radius}: {interval!r}")
        except AopeError as error:
            wrong += [f"{radius}: {error}"] if "\n" in str(error) else []
        except Exception as error:
            wrong.append(f"{radius}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def data_of_size(size):
    return aope.Transitions(DATA.states * size, DATA.actions, DATA.rewards, DATA.next_states * size)


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e-30, 1e30, 1e59, 1e100, 1e300])
@pytest.mark.parametrize("kernel", [aope.Gaussian(1.0), aope.Laplace(1.0), aope.Tabular(), aope.RandomFeatureKernel(5)], ids=repr)
def test_extreme_states(size, kernel):
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0)
    policy = aope.DiscretePolicy(lambda states: np.full((len(states), 3), 1 / 3), MDP.policy.action_vectors)
    for features in (aope.RandomFourier(3), aope.KernelSections(aope.Gaussian(1.0), landmarks=3)):
        with warnings_are_errors():
            if size > 1e60:
                with pytest.raises(InvalidInput, match="too large"):
                    data_of_size(size)
                continue
            problem = aope.Problem(data_of_size(size), aope.StartStates([[0.0, 0.0]]), policy, facts)
            if not kernel.nonnegative and isinstance(features, aope.KernelSections):
                continue
            assert sane(aope.bound_value(problem, features=features, kernel=kernel, radius="azuma"))


@pytest.mark.parametrize("landmarks", [1, 2, 10**8])
@pytest.mark.parametrize("radius", ["certified", "azuma", "hoeffding"])
def test_one_landmark_is_enough_to_answer(landmarks, radius):
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, aope.Assumptions(**GOOD))
    features = aope.KernelSections(aope.Gaussian(1.0), landmarks=landmarks)
    with warnings_are_errors():
        assert sane(aope.bound_value(problem, features=features, kernel=aope.Gaussian(1.0), radius=radius))


def test_too_many_features_are_refused_before_they_are_made():
    problem = aope.Problem(DATA, MDP.starts, MDP.policy, aope.Assumptions(**GOOD))
    for ask in (aope.bound_value, aope.evaluate, aope.study):
        with no_longer_than(2), pytest.raises(InvalidInput, match="`features` is too much for this machine: 100000000 features"):
            ask(problem, features=aope.RandomFourier(10**8), kernel=aope.Gaussian(1.0))
    with no_longer_than(2), pytest.raises(InvalidInput, match="features"):
        aope.fit_q(DATA, MDP.policy, kernel=aope.Gaussian(1.0), features=aope.RandomFourier(10**8), discount=0.5)
