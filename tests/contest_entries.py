"""Entries for contestants: small logs of known worlds, cheap enough to draw hundreds of."""

import numpy as np

import accountable_ope as aope
from accountable_ope.baselines import Entry
from accountable_ope.environments import TabularMDP, random_tabular, softmax_table
from accountable_ope.kernels.kernel import Tabular
from accountable_ope.problem import with_propensities

STEPS = 10


def world(discount: float = 0.5) -> TabularMDP:
    """Three states, two actions, coins as rewards."""
    return random_tabular(3, 2, seed=4, discount=discount, bernoulli=True)


def policies(mdp: TabularMDP) -> tuple[np.ndarray, np.ndarray]:
    """A target and a behavior that overlap well."""
    scores = np.random.default_rng(3).normal(size=mdp.mean_reward.shape)
    return softmax_table(scores, 1.0), softmax_table(0.5 * scores, 1.0)


def entry_of(mdp: TabularMDP, data, target, logged, *, recorded: bool = True, steps: int | None = STEPS, **facts) -> Entry:
    """All that a contestant can ask for."""
    policy = mdp.policy(target)
    log = with_propensities(data, mdp.policy(logged)) if recorded else data
    live = np.flatnonzero(~mdp.terminal).astype(float)[:, None]
    declared = {"discount": mdp.discount, "reward_range": (0.0, 1.0), "norm_bound": 10.0} | facts
    problem = aope.Problem(log, mdp.starts(), policy, aope.Assumptions(**declared))
    features = aope.TabularFeatures.grid(live, policy.action_vectors, intercept=False)
    return Entry(problem, features, Tabular(), steps, mdp.policy(logged))


def drawn_entry(seed: int, episodes: int = 60, discount: float = 0.5, steps: int = STEPS) -> tuple[Entry, float]:
    """(a log of the world, the value)."""
    mdp = world(discount)
    target, logged = policies(mdp)
    data = mdp.sample_trajectories(logged, episodes, steps, np.random.default_rng(seed))
    return entry_of(mdp, data, target, logged, steps=steps), mdp.value(target)
