"""Families of finite MDPs: one-hot features, the tabular kernel, values by a linear solve."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..arguments import checked
from ..classes.features import TabularFeatures
from ..environments.tabular import TabularMDP, bandit, chain, clinic, random_tabular, rare_jump
from ..kernels.kernel import Tabular
from ..problem.assumptions import Assumptions
from ..validation import FloatArray
from .draws import Draw, Episodes, Greedy, Independent, PlayAgainstRadius, Pooled, Recorded, StopWhenExtreme
from .family import DataKind, Family

LENGTH = 50
"""Steps of a trajectory, unless an episode ends before."""

WORST_BOUNDARY = math.sqrt(math.log(2 / 0.1) / 2)
"""|S_n| / sqrt(n) beyond which Theorem A misses at delta = .1, for rewards in [0, 1] and discount 0."""


def _finite(
    name: str,
    description: str,
    kind: DataKind,
    mdp: TabularMDP,
    target: FloatArray,
    draw: Draw,
    *,
    symmetric: bool = False,
    terminal_reward: bool = False,
    sampled_starts: bool = False,
) -> Family:
    """A finite MDP with one-hot features and the tabular kernel; the assumptions follow from the MDP."""
    policy = mdp.policy(target)
    live = np.flatnonzero(~mdp.terminal).astype(np.float64)
    return Family(
        name=name,
        description=description,
        data_kind=kind,
        truth=mdp.value(target),
        starts=None if sampled_starts else mdp.starts(),
        policy=policy,
        assumptions=Assumptions(
            discount=mdp.discount,
            reward_range=(0.0, 1.0),
            reward_noise=mdp.bernoulli or mdp.arrival_reward is not None,
            symmetric_noise=symmetric,
            terminal_reward=terminal_reward,
        ),
        kernel=Tabular(),
        features=TabularFeatures.grid(live, policy.action_vectors, intercept=False),
        draw=draw,
    )


def _random_table(mdp: TabularMDP, seed: int) -> FloatArray:
    states, actions = mdp.mean_reward.shape
    return np.random.default_rng(seed).dirichlet(np.ones(actions), size=states)


def _uniform_table(mdp: TabularMDP) -> FloatArray:
    return np.full(mdp.mean_reward.shape, 1 / mdp.mean_reward.shape[1])


def _three_states(discount: float) -> TabularMDP:
    return random_tabular(3, 2, seed=4, discount=discount, bernoulli=True)


def random_mdp(discount: float) -> Family:
    """The plainest family: trajectories of a uniform behavior policy."""
    mdp = _three_states(discount)
    return _finite(
        f"tabular-{100 * discount:.0f}",
        f"Random MDP, 3 states, 2 actions, Bernoulli rewards, discount {discount}.",
        DataKind.TRAJECTORIES,
        mdp,
        _random_table(mdp, 1),
        Episodes(mdp, _uniform_table(mdp), LENGTH),
    )


def first_states() -> Family:
    """Start states that are a sample, paid for with a Monte Carlo radius."""
    mdp = _three_states(0.5)
    return _finite(
        "first-states",
        "tabular-50 with the first states of the episodes in place of the start distribution.",
        DataKind.TRAJECTORIES,
        mdp,
        _random_table(mdp, 1),
        Episodes(mdp, _uniform_table(mdp), 10),
        sampled_starts=True,
    )


def adaptive(discount: float) -> Family:
    """Behavior that depends on all earlier rows."""
    mdp = _three_states(discount)
    return _finite(
        f"adaptive-{100 * discount:.0f}",
        f"The MDP of tabular-{100 * discount:.0f}; the behavior is greedy for what it has logged so far, in 4 of 5 steps.",
        DataKind.ADAPTIVE,
        mdp,
        _random_table(mdp, 1),
        Greedy(mdp, 0.2, LENGTH),
    )


def pooled(discount: float) -> Family:
    """Behavior that differs between episodes."""
    mdp = _three_states(discount)
    behaviors = (_uniform_table(mdp), _random_table(mdp, 5), _random_table(mdp, 6))
    return _finite(
        f"mixture-{100 * discount:.0f}",
        f"The MDP of tabular-{100 * discount:.0f}; each episode follows one of three behavior policies.",
        DataKind.MIXTURE,
        mdp,
        _random_table(mdp, 1),
        Pooled(mdp, behaviors, LENGTH),
    )


def chain_walk() -> Family:
    """Rewards that are a function of state and action."""
    mdp = chain(3, discount=0.5)
    return _finite(
        "chain",
        "Three states in a row, the last one pays, actions slip; rewards a function of state and action, discount 0.5.",
        DataKind.TRAJECTORIES,
        mdp,
        np.array([[0.2, 0.8]] * 3),
        Episodes(mdp, _uniform_table(mdp), LENGTH),
    )


def fair_steps() -> Family:
    """Two equally likely next states and a reward that is not random: the residual takes two opposite values."""
    rng = np.random.default_rng(3)
    states, actions = 4, 2
    transition = np.zeros((states, actions, states))
    for row in transition.reshape(-1, states):
        row[rng.choice(states, size=2, replace=False)] = 0.5
    mdp = TabularMDP(transition, rng.uniform(size=(states, actions)), 0.9, np.full(states, 1 / states))
    return _finite(
        "fair-steps",
        "Four states; every action leads to one of two states with probability 1/2: symmetric residuals, discount 0.9.",
        DataKind.TRAJECTORIES,
        mdp,
        _random_table(mdp, 1),
        Episodes(mdp, _uniform_table(mdp), LENGTH),
        symmetric=True,
    )


def jumps(discount: float) -> Family:
    """An event so rare that small data do not show it."""
    mdp = rare_jump(0.004, discount=discount)
    return _finite(
        f"rare-jump-{100 * discount:.0f}",
        f"Two states; the target leaves the good one with probability 0.004, which few rows do not show, discount {discount}.",
        DataKind.IID,
        mdp,
        np.array([[0.0, 1.0]] * 2),
        Independent(mdp),
    )


def patients(discount: float) -> Family:
    """Episodes that end, and pay at the end only."""
    mdp = clinic(discount=discount)
    undiscounted = discount == 1
    return _finite(
        "clinic" if undiscounted else f"clinic-{100 * discount:.0f}",
        f"Patients recover or die, only recovery pays; {'undiscounted' if undiscounted else f'discount {discount}'}.",
        DataKind.TRAJECTORIES,
        mdp,
        _random_table(mdp, 3),
        Episodes(mdp, _uniform_table(mdp), 60),
        terminal_reward=True,
    )


def known_steps() -> Family:
    """The undiscounted clinic to one who knows where a step can lead, where it ends, and how far chance moves the prospects."""
    family, mdp = patients(1.0), clinic(discount=1.0)
    return replace(
        family,
        name="clinic-known",
        description="clinic, undiscounted; of every step it is known where it can lead and how far chance moves the prospects.",
        knowledge=mdp.step_knowledge(_random_table(mdp, 3)),
    )


def plain_bandit() -> Family:
    """No next state at all: discount 0."""
    mdp = bandit(2, 2, seed=1)
    return _finite(
        "bandit",
        "Two contexts, two arms, Bernoulli rewards, discount 0.",
        DataKind.IID,
        mdp,
        _random_table(mdp, 2),
        Independent(mdp),
    )


def logged_bandit() -> Family:
    """A behavior policy that is not uniform and is known: rows may be weighed by importance."""
    mdp = bandit(2, 2, seed=1)
    behavior = np.array([[0.8, 0.2], [0.3, 0.7]])
    family = _finite(
        "bandit-logged",
        "The bandit; actions were drawn with known probabilities, which the data record.",
        DataKind.IID,
        mdp,
        _random_table(mdp, 2),
        Recorded(Independent(mdp, behavior), mdp.policy(behavior)),
    )
    return replace(family, propensities=True)


def greedy_bandit() -> Family:
    """Discount 0 with adaptive behavior: sample means of the arms are biased."""
    mdp = bandit(2, 2, seed=1)
    return _finite(
        "greedy-bandit",
        "The bandit, logged by a learner that mostly pulls the arm that paid best so far.",
        DataKind.ADAPTIVE,
        mdp,
        _random_table(mdp, 2),
        Greedy(mdp, 0.1, LENGTH),
    )


def fair_coin() -> Family:
    """One state, one action, rewards 0 or 1 with probability 1/2: the loss of the true Q is (mean - 1/2)^2.

    The frequency at which a radius misses is a binomial tail, known exactly, and Hoeffding's lemma is nearly an equality: of all
    families this is the one where Theorem A wastes least at a fixed n.

    Returns
    -------
    Family

    Examples
    --------
    >>> from accountable_ope.laboratory import fair_coin
    >>> fair_coin().truth
    0.5
    """
    mdp = TabularMDP([[[1.0]]], [[0.5]], 0.0, [1.0], bernoulli=True)
    return _finite(
        "fair-coin",
        "One state, one action, a fair coin as the reward, discount 0: the miss rate is a binomial tail.",
        DataKind.IID,
        mdp,
        np.ones((1, 1)),
        Independent(mdp),
        symmetric=True,
    )


@checked
def early_stopper(boundary: float = WORST_BOUNDARY) -> Family:
    """A fair coin that is tossed until its sum exceeds boundary * sqrt(n), then left for a sure arm.

    Theorem A holds for all n' <= n at once; this behavior uses that up, so its waste is the least there is.

    Parameters
    ----------
    boundary : float

    Returns
    -------
    Family

    Examples
    --------
    >>> from accountable_ope.laboratory import early_stopper
    >>> early_stopper().data_kind.name
    'ADAPTIVE'
    """
    return _coin_or_sure(
        "early-stopper",
        "A fair coin is tossed until its sum looks extreme, then a sure arm is pulled: adaptive data at their worst, discount 0.",
        StopWhenExtreme(boundary),
    )


def adversary(delta: float = 0.5) -> Family:
    """A logger that plays against the default radius, at a delta where a failure would be seen soonest."""
    return _coin_or_sure(
        "adversary",
        f"The coin and the sure arm; the logger tosses until the default radius at delta = {delta:g} is beaten, then stops.",
        PlayAgainstRadius(delta),
    )


def _coin_or_sure(name: str, description: str, draw: Draw) -> Family:
    coin = TabularMDP([[[1.0], [1.0]]], [[0.5, 0.5]], 0.0, [1.0], bernoulli=True)
    return _finite(name, description, DataKind.ADAPTIVE, coin, np.array([[1.0, 0.0]]), draw, symmetric=True)
