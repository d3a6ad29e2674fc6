"""d3rlpy's off-policy evaluation of a policy that it trained on CartPole, a number without an interval, beside ours.

In an environment of its own, since d3rlpy pins another gymnasium:

    pip install . d3rlpy==2.8.1
    python examples/arena_d3rlpy.py

The log is the arena's (`cartpole`); DQN is trained on it, and fitted Q evaluation (FQE) is run with several seeds, as in
d3rlpy's tutorial on off-policy evaluation. The value of the trained policy is known from simulated episodes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from time import process_time

import d3rlpy
import numpy as np
import torch

import accountable_ope as aope
from accountable_ope.adapters import d3rlpy_policy
from accountable_ope.arena.challenges import challenge_named
from accountable_ope.environments.control_task import monte_carlo_value
from accountable_ope.trust.classic import CartPole

DELTA = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=3000, help="Of DQN, and of every FQE.")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    d3rlpy.seed(0)
    challenge = challenge_named("cartpole")
    discount = challenge.assumptions.discount
    data = challenge.draw(np.random.default_rng(0), given.n)
    ends = np.append(np.flatnonzero(np.diff(data.episodes)), len(data) - 1)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=data.states.astype(np.float32),
        actions=np.asarray(data.actions)[:, None],
        rewards=np.asarray(data.rewards)[:, None],
        terminals=np.asarray(data.terminated, dtype=np.float32),
        timeouts=np.isin(np.arange(len(data)), ends) & ~data.terminated,
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=2,
    )
    quiet = d3rlpy.logging.NoopAdapterFactory()
    algorithm = d3rlpy.algos.DQNConfig(gamma=discount, learning_rate=1e-3).create()
    algorithm.fit(dataset, n_steps=given.steps, n_steps_per_epoch=given.steps, logger_adapter=quiet, show_progress=False)
    policy = d3rlpy_policy(algorithm, actions=challenge.policy.action_vectors)

    truth = monte_carlo_value(CartPole(), policy, np.random.default_rng(1), discount=discount, episodes=2000)
    logged = monte_carlo_value(CartPole(), _logger(), np.random.default_rng(1), discount=discount, episodes=2000)
    known = f"{truth.value:.3f} +- {truth.standard_error:.3f}"
    print(f"{given.n} rows; value of the trained policy {known}, of the logger {logged.value:.3f}")

    starts = challenge.starts.states.astype(np.float32)
    for seed in range(given.seeds):
        begin = process_time()
        d3rlpy.seed(seed)
        fqe = d3rlpy.ope.DiscreteFQE(algo=algorithm, config=d3rlpy.ope.FQEConfig(gamma=discount, learning_rate=1e-3))
        fqe.fit(dataset, n_steps=given.steps, n_steps_per_epoch=given.steps, logger_adapter=quiet, show_progress=False)
        estimate = float(np.mean(fqe.predict_value(starts, algorithm.predict(starts))))
        print(f"d3rlpy FQE, seed {seed}: {estimate:.3f} ({process_time() - begin:.0f} s)")

    problem = aope.Problem(data, challenge.starts, policy, replace(challenge.assumptions, norm_bound=None))
    begin = process_time()
    interval = aope.bound_value(problem, delta=DELTA)
    print(f"aope default: {interval} ({process_time() - begin:.0f} s)")
    print(interval.verdict())
    begin = process_time()
    crossed = aope.cross_fitted_interval(problem, delta=DELTA)
    print(f"aope cross-fitted: {crossed} ({process_time() - begin:.0f} s)")


def _logger() -> aope.DiscretePolicy:
    logger = challenge_named("cartpole-logged").logger
    assert logger is not None
    return logger


if __name__ == "__main__":
    main()
