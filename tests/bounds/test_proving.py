"""Where nothing is random, a limit is rounding alone: ends and least norms are what their multipliers prove."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.kernels.kernel import block

STILL = aope.DeterministicPolicy(lambda states: np.zeros((len(states), 1)))


def bounded(
    seed: int, rows: int, norm: float, bandwidth: float, *, intercept: bool, radius: str = "azuma"
) -> tuple[aope.Interval, float]:
    """A reward that is a known function of the state, at discount 0; and the norm of that function."""
    rng, space = np.random.default_rng(seed), aope.Gaussian(bandwidth)
    centers, weights = np.column_stack([np.linspace(-1, 1, 4), np.zeros(4)]), rng.uniform(0.1, 0.3, 4)
    states, after = rng.uniform(-1, 1, (2, rows, 1))

    def q(places: np.ndarray) -> np.ndarray:
        return block(space, np.column_stack([places, np.zeros(len(places))]), centers) @ weights

    data = aope.Transitions(states, np.zeros((rows, 1)), q(states), after)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1.2), norm_bound=norm, reward_noise=False)
    problem = aope.Problem(data, aope.StartStates([[0.2]]), STILL, facts)
    features = aope.KernelSections(space, None, intercept=intercept)
    found = aope.bound_value(problem, features=features, kernel=aope.Gaussian(0.5), radius=radius)
    assert float(q(np.array([[0.2]]))[0]) in found
    return found, float(np.sqrt(weights @ block(space, centers, centers) @ weights))


@pytest.mark.parametrize("radius", ["azuma", "certified", "empirical-bernstein"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0])
@pytest.mark.parametrize(("seed", "rows"), [(0, 40), (6, 40), (3, 150), (5, 150)])
def test_all_landmarks_without_chance_are_proved(seed: int, rows: int, bandwidth: float, intercept: bool, radius: str) -> None:
    """The loss is known to 1e-13 of its terms, and its multiplier is 1e11: their product is no rounding any more."""
    found, norm = bounded(seed, rows, 5.0, bandwidth, intercept=intercept, radius=radius)
    part = found.certificates[0]
    proof = found.verify()
    assert proof.valid, proof.message
    assert 0 < part.least_norm <= norm * (1 + 1e-6)  # a lower bound: the norm of Q itself is known
    assert intercept or part.least_norm > 0.9 * norm  # and next to the best one
    larger = replace(found, certificates=(replace(part, least_norm=part.least_norm * (1 + 1e-4)),))
    assert not larger.verify().valid


@pytest.mark.parametrize(("seed", "rows"), [(1, 200), (0, 300), (5, 300)])
def test_features_and_what_they_miss_without_chance_are_proved(seed: int, rows: int) -> None:
    """Ends near 0.5 are sums of terms near 3: what is left of their digits is what counts, in the radius as in the ends."""
    rng = np.random.default_rng(seed)
    states, actions = rng.uniform(-1, 1, (rows, 1)), rng.integers(0, 2, rows)
    rewards = 0.5 + 0.3 * np.sin(3 * states[:, 0]) * (2 * actions - 1)
    data = aope.Transitions(states, actions, np.round(rewards, 3) if seed % 2 else rewards, states)
    policy = aope.DiscretePolicy(lambda at: np.tile([0.3, 0.7], (len(at), 1)), actions=[[0.0], [1.0]])
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1), norm_bound=5.0, misfit_norm=1.0, reward_noise=False)
    problem = aope.Problem(data, aope.StartStates([[0.0], [0.3]]), policy, facts)
    features = aope.SemiParametric(aope.RandomFourier(8, 0.5, seed=1), aope.Gaussian(0.5), None)
    found = aope.bound_value(problem, features=features, kernel=aope.Gaussian(0.5), radius="azuma")
    assert found.verify().valid, found.verify().message


def test_what_is_proved_up_to_rounding_is_not_touched() -> None:
    """With chance the limits are far above rounding: not a bit of an end or of a norm changes."""
    import accountable_ope.bounds.ends as ends

    rng = np.random.default_rng(0)
    states, after = rng.uniform(-1, 1, (2, 60, 1))
    data = aope.Transitions(states, np.zeros((60, 1)), rng.uniform(0, 1, 60), after)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), norm_bound=5.0)
    problem = aope.Problem(data, aope.StartStates([[0.2]]), STILL, facts)
    options = {"features": aope.KernelSections(aope.Gaussian(0.3), None), "kernel": aope.Gaussian(0.5), "radius": "azuma"}
    with_it = aope.bound_value(problem, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ends, "proved_solution", lambda solution: solution)
        patch.setattr(ends, "proved_norm", lambda constraints, found: found)
        without = aope.bound_value(problem, **options)
    assert (with_it.lower, with_it.upper) == (without.lower, without.upper)
    assert with_it.certificates[0].least_norm == without.certificates[0].least_norm
