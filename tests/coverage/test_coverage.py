"""Coverage measured: hundreds of seeded trials on problems with exact answers, judged by a binomial bound.

A radius that claims 1 - delta fails here when so many intervals miss the truth that this had probability below 1e-6 if the claim
were true. Every family also states how often the interval must be informative, so that trivial intervals cannot pass.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, TabularMDP, bandit, chain, clinic, random_tabular, rare_jump

DELTA = 0.1
TRIALS = 300


@dataclass(frozen=True)
class Family:
    """A problem with known truth and a way to draw data from it."""

    truth: float
    starts: aope.StartStates
    policy: aope.Policy
    facts: aope.Assumptions
    kernel: aope.Kernel
    features: aope.FeatureMap
    draw: Callable[[np.random.Generator], aope.Transitions]


def tabular(mdp: TabularMDP, target: np.ndarray, facts: aope.Assumptions, draw) -> Family:
    policy = mdp.policy(target)
    live = np.flatnonzero(~mdp.terminal).astype(float)
    features = aope.TabularFeatures.grid(live, policy.action_vectors, intercept=False)
    return Family(mdp.value(target), mdp.starts(), policy, facts, aope.Tabular(), features, draw)


def table(mdp: TabularMDP, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(mdp.mean_reward.shape[1]), size=len(mdp.mean_reward))


def random_family() -> Family:
    mdp = random_tabular(3, 2, seed=4, discount=0.5, bernoulli=True)
    behaviour = np.full((3, 2), 0.5)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1))
    return tabular(mdp, table(mdp, 1), facts, lambda rng: mdp.sample_trajectories(behaviour, 30, 50, rng))


def chain_family() -> Family:
    mdp = chain(3, discount=0.5)
    behaviour = np.full((3, 2), 0.5)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False)
    return tabular(mdp, np.array([[0.2, 0.8]] * 3), facts, lambda rng: mdp.sample_trajectories(behaviour, 30, 40, rng))


def jump_family() -> Family:
    """Rare jumps: with 1 / p about n, many data sets never show one."""
    mdp = rare_jump(0.004, discount=0.5)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False)
    return tabular(mdp, np.array([[0.0, 1.0]] * 2), facts, lambda rng: mdp.sample_iid(400, rng))


def bandit_family() -> Family:
    mdp = bandit(2, 2, seed=1)
    facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    return tabular(mdp, table(mdp, 2), facts, lambda rng: mdp.sample_iid(400, rng))


def clinic_family() -> Family:
    """Episodes that end, reward at the end only, discounted."""
    mdp = clinic(discount=0.5)
    behaviour = np.full((6, 3), 1 / 3)
    facts = aope.Assumptions(discount=0.5, reward_range=(0, 1), terminal_reward=True)
    return tabular(mdp, table(mdp, 3), facts, lambda rng: mdp.sample_trajectories(behaviour, 60, 60, rng))


def planted_family() -> Family:
    mdp = PlantedMDP(seed=2, features=5, discount=0.6)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    draw = lambda rng: mdp.sample(rng, trajectories=12, length=50)  # noqa: E731
    return Family(mdp.value, mdp.starts, mdp.policy, facts, aope.Gaussian(1.0), mdp.features(), draw)


FAMILIES = {
    "random tabular": (random_family, 0.9),
    "chain": (chain_family, 0.9),
    "rare jump": (jump_family, 0.9),
    "bandit": (bandit_family, 0.9),
    "clinic": (clinic_family, 0.9),
    "planted": (planted_family, 0.9),
}


def run(family: Family, radius: str, trials: int, seed: int = 0) -> tuple[int, int]:
    """(covered, informative) over seeded trials."""
    covered = informative = 0
    for trial in range(trials):
        data = family.draw(np.random.default_rng([seed, trial]))
        interval = aope.bound_value(
            data,
            family.starts,
            family.policy,
            assumptions=family.facts,
            kernel=family.kernel,
            features=family.features,
            radius=radius,
            delta=DELTA,
        )
        covered += interval.lower <= family.truth <= interval.upper
        informative += interval.status is aope.Status.OK
    return covered, informative


def claims_hold(covered: int, trials: int) -> bool:
    """Whether this many hits are believable for a method that covers with probability 1 - delta or more."""
    return binom.cdf(covered, trials, 1 - DELTA) > 1e-6


@pytest.mark.parametrize("name", FAMILIES)
def test_azuma_covers(name):
    make, least_informative = FAMILIES[name]
    covered, informative = run(make(), "azuma", TRIALS)
    assert claims_hold(covered, TRIALS), f"{covered} of {TRIALS}"
    assert informative >= least_informative * TRIALS, f"{informative} of {TRIALS} informative"


@pytest.mark.parametrize("radius", ["hoeffding", "hoeffding-u", "hoeffding-printed"])
@pytest.mark.parametrize("name", ["bandit", "planted"])
def test_paper_radii_cover(name, radius):
    """Valid too, and vacuous at these sizes: the interval is the whole range."""
    make, _ = FAMILIES[name]
    covered, informative = run(make(), radius, 100)
    assert claims_hold(covered, 100)
    assert informative == 0


def test_a_radius_that_is_wrong_is_caught(monkeypatch):
    """A fiftieth of Theorem A's radius: the same check must fail."""
    import accountable_ope.radius as radius_module

    honest = radius_module.azuma
    monkeypatch.setattr(radius_module, "azuma", lambda *arguments: honest(*arguments) / 50)
    covered, _ = run(bandit_family(), "azuma", TRIALS)
    assert not claims_hold(covered, TRIALS), f"{covered} of {TRIALS}"


def test_sampled_start_states_cover():
    """First states of the episodes as a sample of the start distribution; the truth is for the distribution."""
    mdp = random_tabular(3, 2, seed=4, discount=0.5)
    behaviour = np.full((3, 2), 0.5)
    family = tabular(
        mdp,
        table(mdp, 1),
        aope.Assumptions(discount=0.5, reward_range=(0, 1), reward_noise=False),
        lambda rng: mdp.sample_trajectories(behaviour, 40, 25, rng),
    )
    covered = 0
    for trial in range(TRIALS):
        data = family.draw(np.random.default_rng([7, trial]))
        interval = aope.bound_value(
            data, data.first_states(), family.policy, assumptions=family.facts, kernel=family.kernel, features=family.features
        )
        assert interval.start_error > 0
        covered += interval.lower <= family.truth <= interval.upper
    assert claims_hold(covered, TRIALS)
