"""Families with continuous states: planted Q functions, and a linear-quadratic regulator with continuous actions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..environments.linear_quadratic import scalar_regulator
from ..environments.planted import PlantedMDP
from ..kernels.kernel import Gaussian
from ..problem.assumptions import Assumptions
from ..problem.policy import SampledPolicy
from .draws import Simulated
from .family import DataKind, Family

LENGTH = 50
"""Steps of a trajectory."""


def planted(name: str, features: int, discount: float, bernoulli: bool = False) -> Family:
    """Q is chosen first, so the class holds it by construction; the ball is half as large again as needed."""
    mdp = PlantedMDP(seed=1, features=features, discount=discount, bernoulli=bernoulli)
    reward = "Bernoulli rewards" if bernoulli else "rewards a function of state and action"
    return Family(
        name=name,
        description=f"Planted Q of {features} cosines, 2-d states, 3 actions, {reward}, discount {discount}.",
        data_kind=DataKind.TRAJECTORIES,
        truth=mdp.value,
        starts=mdp.starts,
        policy=mdp.policy,
        assumptions=Assumptions(
            discount=discount,
            reward_range=(0.0, 1.0),
            norm_bound=1.5 * mdp.norm,
            state_box=planted_box(mdp, LENGTH),
            reward_noise=bernoulli,
        ),
        kernel=Gaussian(1.0),
        features=mdp.features(),
        draw=Simulated(mdp, LENGTH),
    )


def planted_box(mdp: PlantedMDP, length: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(lows, highs) of a box that no trajectory of `length` steps can leave.

    s_t = A^t s_0 + sum_{k<t} A^k (b a_k + e_k) with |s_0|, |a_k| <= 1 and |e_k| <= 1.5 noise in every coordinate, so
    |s_t|_i <= ||row i of A^t||_1 + sum_{k<t} (|A^k b|_i + 1.5 noise ||row i of A^k||_1).
    """
    dynamics, push = np.array([[0.9, 0.3], [-0.1, 0.8]]), np.array([0.0, 0.35])
    power, from_steps = np.eye(2), np.zeros(2)
    reach = np.abs(power).sum(axis=1)
    for _ in range(length):
        from_steps += np.abs(power @ push) + 1.5 * mdp.noise * np.abs(power).sum(axis=1)
        power = power @ dynamics
        reach = np.maximum(reach, np.abs(power).sum(axis=1) + from_steps)
    # A hair more than the supremum: states are computed in another order than this bound.
    high = tuple(float(side) for side in reach * (1 + 1e-12))
    return tuple(-side for side in high), high


def regulator(name: str, action_noise: float, discount: float) -> Family:
    """Q is a quadratic polynomial of (s, a), in the span of the monomials up to degree 2."""
    mdp = scalar_regulator(discount, action_noise=action_noise)
    policy = mdp.policy
    if isinstance(policy, SampledPolicy):
        policy = replace(policy, draws=100)  # with ten, the Monte Carlo error at the start states would hide everything else
    target = "a target policy that can only be sampled" if isinstance(policy, SampledPolicy) else "a deterministic target policy"
    return Family(
        name=name,
        description=f"Linear dynamics, quadratic reward, continuous actions, {target}, discount {discount}.",
        data_kind=DataKind.TRAJECTORIES,
        truth=mdp.value,
        starts=mdp.starts,
        policy=policy,
        assumptions=Assumptions(
            discount=discount,
            reward_range=(0.0, 1.0),
            norm_bound=1.5 * mdp.norm,
            state_box=mdp.state_box,
            reward_noise=False,
        ),
        kernel=Gaussian(1.0),
        features=mdp.features(),
        draw=Simulated(mdp, LENGTH),
    )
