"""How often the test of the class doubts, where the class holds Q and where it does not; and that of the norm ball.

python benchmarks/specification.py [--trials 300] [--only planted]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

import accountable_ope as aope
from accountable_ope.classes.function_class import Features
from accountable_ope.environments import PlantedMDP, TabularMDP, random_tabular
from accountable_ope.environments.planted import PlantedFeatures
from accountable_ope.environments.softmax import control_task, softmax_policy
from accountable_ope.experiments.setting import draw_rows
from accountable_ope.kernels import Kernel
from accountable_ope.laboratory.draws import Episodes, Greedy
from accountable_ope.problem import Experience, Policy, StartStates, Transitions
from accountable_ope.statistics import bellman_system, specification_test
from accountable_ope.statistics.norm_test import norm_test
from accountable_ope.statistics.specification import examine
from accountable_ope.validation import FloatArray

STATES, ACTIONS = 12, 3


@dataclass(frozen=True, eq=False)
class Sample:
    """What the test sees: x, Z and v, and the kernel."""

    points: FloatArray
    residuals: FloatArray
    target: FloatArray
    kernel: Kernel

    def p_value(self) -> float:
        return specification_test(self.kernel, self.points, self.residuals, self.target).p_value


@dataclass(frozen=True, eq=False)
class TableFeatures:
    """Columns over a table of states and actions."""

    table: FloatArray
    intercept: bool = True

    @property
    def dimension(self) -> int:
        return self.table.shape[1]

    def __call__(self, points: FloatArray) -> FloatArray:
        return self.table[points[:, 0].astype(int) * ACTIONS + np.rint(points[:, 1]).astype(int)]


def sample_of(
    data: Transitions, starts: StartStates, policy: Policy, features: Features, discount: float, kernel: Kernel
) -> Sample:
    """The Bellman system of a class."""
    system = bellman_system(Experience(data, starts, policy, discount), features)
    return Sample(system.points, system.residuals, system.target, kernel)


@cache
def planted_mdp(features: int, bernoulli: bool) -> PlantedMDP:
    return PlantedMDP(seed=1, features=features, discount=0.95, bernoulli=bernoulli)


def planted(n: int, seed: int, features: int = 10, given: int | None = None, bernoulli: bool = False) -> Sample:
    """Q in cosines, all of them given to the class or only some."""
    mdp = planted_mdp(features, bernoulli)
    data = mdp.sample(np.random.default_rng(seed), trajectories=n // 50)
    phi = mdp.features() if given is None else PlantedFeatures(mdp.frequencies[:given], mdp.phases[:given], True)
    return sample_of(data, mdp.starts, mdp.policy, phi, 0.95, aope.Gaussian(1.0))


def rare_jumps(n: int, seed: int, jumps: float = 20.0) -> Sample:
    """The planted problem with noise of about 20 large jumps, more often at some states than at others."""
    plain = planted(n, seed)
    rng = np.random.default_rng(seed + 10**6)
    chance = jumps / n * (1 + 0.9 * np.sin(2 * plain.points[:, 0]))
    noise = 0.3 / np.sqrt(jumps / n) * ((rng.uniform(size=n) < chance) - chance)
    return Sample(plain.points, plain.residuals, plain.target + noise, plain.kernel)


@cache
def table() -> tuple[TabularMDP, FloatArray, FloatArray, FloatArray]:
    """A finite MDP with coins for rewards, a policy, and columns with Q among them and without it."""
    mdp = random_tabular(STATES, ACTIONS, seed=4, discount=0.9, bernoulli=True)
    rng = np.random.default_rng(1)
    policy = rng.dirichlet(np.ones(ACTIONS), size=STATES)
    q = np.asarray(mdp.q_values(policy)).reshape(-1)
    return mdp, policy, np.column_stack([q, rng.normal(size=(len(q), 4))]), rng.normal(size=(len(q), 5))


def tabular(n: int, seed: int, adaptive: bool = False, right: bool = True, kernel: Kernel | None = None) -> Sample:
    """Five columns over a table; adaptive: the logger learns while it logs."""
    mdp, policy, with_q, without_q = table()
    uniform = np.full((STATES, ACTIONS), 1 / ACTIONS)
    draw = Greedy(mdp, 0.2, 50) if adaptive else Episodes(mdp, uniform, 50)
    data, phi = draw(np.random.default_rng(seed), n), TableFeatures(with_q if right else without_q)
    return sample_of(data, mdp.starts(), mdp.policy(policy), phi, 0.9, aope.Gaussian(1.0) if kernel is None else kernel)


def bandit(n: int, seed: int, right: bool = False, bandwidth: float = 1.0) -> Sample:
    """One step, coins with mean .5 +- .15 sin(3 s); the wrong class is linear in s for each of two actions."""
    rng = np.random.default_rng(seed)
    s, a = rng.uniform(-1, 1, n), rng.integers(0, 2, n).astype(float)
    wave = np.sin(3 * s) * (2 * a - 1)
    rewards = (rng.uniform(size=n) < 0.5 + 0.15 * wave).astype(float)
    columns = np.column_stack([s, a, s * a, np.ones(n), *([wave] if right else [])])
    return Sample(np.column_stack([s, a]), columns, rewards, aope.Gaussian(bandwidth))


def puck(n: int, seed: int, features: int) -> Sample:
    """A control task with random features, which do not hold its Q."""
    task, data = control_task("puck-mountain"), draw_rows("puck-mountain", 1.0, n, seed)
    phi = aope.RandomFourier(features, 0.5, seed=1)
    return sample_of(data, task.starts, softmax_policy("puck-mountain", 0.1), phi, 0.95, aope.Gaussian(0.5))


RIGHT: dict[str, tuple[Callable[[int, int], Sample], tuple[int, ...]]] = {
    "planted": (planted, (200, 500, 2000)),
    "planted, coins": (partial(planted, bernoulli=True), (200, 500, 2000)),
    "planted, rare jumps": (rare_jumps, (200, 500, 2000)),
    "tabular, Gaussian kernel": (tabular, (100, 500, 2000)),
    "tabular, tabular kernel": (partial(tabular, kernel=aope.Tabular()), (100, 500, 2000)),
    "tabular, logger that learns": (partial(tabular, adaptive=True), (100, 500, 2000)),
    "bandit": (partial(bandit, right=True), (100, 500, 2000)),
}
"""The class holds Q: doubts are false alarms."""
WRONG: dict[str, tuple[Callable[[int, int], Sample], tuple[int, ...]]] = {
    "planted, 10 of 14 cosines": (partial(planted, features=14, given=10), (500,)),
    "planted, coins, 10 of 14 cosines": (partial(planted, features=14, given=10, bernoulli=True), (500, 2000)),
    "tabular, other columns": (partial(tabular, right=False), (500,)),
    "bandit, linear, bandwidth 0.5": (partial(bandit, bandwidth=0.5), (500, 2000)),
    "bandit, linear, bandwidth 1": (bandit, (500, 2000)),
    "bandit, linear, bandwidth 4": (partial(bandit, bandwidth=4.0), (500, 2000)),
    "Puck-Mountain, 16 random features": (partial(puck, features=16), (2000,)),
    "Puck-Mountain, 50 random features": (partial(puck, features=50), (2000,)),
    "Puck-Mountain, 100 random features": (partial(puck, features=100), (2000,)),
}
"""It does not: doubts are right."""
SHARES = (0.6, 0.7, 0.8, 1.0, 1.5)


def ball_p_values(n: int, seed: int, shares: tuple[float, ...] = SHARES) -> list[float]:
    """The test of a norm ball of so many times ||Q||, on the planted problem."""
    mdp, sample = planted_mdp(10, False), planted(n, seed)
    fit = examine(sample.kernel, sample.points, sample.residuals, sample.target).fit
    assert fit is not None
    penalized = np.arange(sample.residuals.shape[1]) < mdp.features().dimension
    return [norm_test(fit, penalized, share * mdp.norm).p_value for share in shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    for title, cases in (("the class holds Q", RIGHT), ("it does not", WRONG)):
        print(f"\n{title:36}      n  at 1%  at 5%  seconds each")
        for name, (draw, sizes) in cases.items():
            for n in sizes if options.only in name else ():
                samples, start = [draw(n, seed) for seed in range(options.trials)], time.perf_counter()
                p = np.array([sample.p_value() for sample in samples])
                each = (time.perf_counter() - start) / options.trials
                print(f"{name:36} {n:6}  {np.mean(p <= 0.01):.3f}  {np.mean(p <= 0.05):.3f}  {each:.3f}", flush=True)
    if options.only in "norm":
        print(f"\n{'the norm ball':36}      n  at 1%, by bound / ||Q||: {', '.join(map(str, SHARES))}")
        for n in (500, 2000):
            alarms = np.array([ball_p_values(n, seed) for seed in range(min(options.trials, 100))]) <= 0.01
            print(f"{'planted':36} {n:6}  {'  '.join(f'{share:.2f}' for share in alarms.mean(axis=0))}", flush=True)


if __name__ == "__main__":
    main()
