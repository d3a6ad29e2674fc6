"""First answers, where nothing but discount and reward range is given: covered, width, status and time, log by log.

python benchmarks/first_answer.py [--rows 10000] [--seeds 0 1 2] [--only cartpole puck] [--within 0.1] [--no-torch]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import accountable_ope as aope
from accountable_ope.defaults import Recipe, choose_recipe
from accountable_ope.environments import PlantedMDP, random_tabular
from control_logs import acrobot, car, cartpole, leaning, puck


@dataclass(frozen=True, eq=False)
class Log:
    """A question, and the value that it asks for."""

    problem: aope.Problem
    truth: float


@cache
def planted_mdp() -> PlantedMDP:
    return PlantedMDP(seed=1, features=10, discount=0.9)


def planted(rows: int, seed: int) -> Log:
    mdp = planted_mdp()
    data = mdp.sample(np.random.default_rng(1000 + seed), trajectories=rows // 50, length=50)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), terminates=False)
    return Log(aope.Problem(data, mdp.starts, mdp.policy, facts), mdp.value)


def tabular(rows: int, seed: int) -> Log:
    mdp = random_tabular(10, 2, seed=3, discount=0.9)
    target = np.tile([0.8, 0.2], (10, 1))
    data = mdp.sample_trajectories(np.full((10, 2), 0.5), rows // 50, 50, np.random.default_rng(1000 + seed))
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1), terminates=False)
    return Log(aope.Problem(data, mdp.starts(), mdp.policy(target), facts), mdp.value(target))


def control(make: Callable[[], object]) -> Callable[[int, int], Log]:
    def log(rows: int, seed: int) -> Log:
        task = make()
        return Log(task.problem(rows, seed), task.truth)  # type: ignore[attr-defined]

    return log


WHOLE, VALLEY = ((-1.2, -0.07), (0.5, 0.07)), ((-0.9, -0.03), (-0.1, 0.03))
LOGS: dict[str, Callable[[int, int], Log]] = {
    "cartpole": control(lambda: cartpole("cartpole", leaning(20, 0.9, 0.2), 0.5, 17.566)),
    "mountaincar": control(lambda: car("mountaincar", *WHOLE, 0.5, -17.526)),
    "acrobot": control(acrobot),
    "puck": control(lambda: puck("puck")),
    "planted": planted,
    "tabular": tabular,
    "puck, random logger": control(lambda: puck("puck", lambda s: np.full((len(s), 3), 1 / 3))),
    "cartpole, random logger": control(lambda: cartpole("cartpole", leaning(20, 4, 0.02), 0.0, 19.9995)),
    "mountaincar, valley": control(lambda: car("mountaincar", *VALLEY, 0.3, -17.526)),
}
HEAD = "log                       seed kind    covered  interval            width status       doubted hull overlap   cpu   wall"


@dataclass(frozen=True)
class Row:
    """One line."""

    name: str
    seed: int
    interval: aope.Interval
    truth: float
    cpu: float
    wall: float

    def __str__(self) -> str:
        found, recipe = self.interval, self.interval.recipe
        assert recipe is not None
        low, high = found.ranges.value
        overlap = float("nan") if recipe.ball is None else recipe.ball.overlap
        ends = f"[{found.lower:.2f}, {found.upper:.2f}]"
        return (
            f"{self.name:25s} {self.seed:4d} {recipe.kind.name:7s} {'yes' if self.truth in found else 'NO':7s} {ends:20s} "
            f"{found.width / (high - low):5.3f} {found.status.name:12s} {'yes' if found.doubted else 'no':7s} "
            f"{'yes' if len(found.certificates) > 1 else 'no':4s} {overlap:7.2f} {self.cpu:5.1f} {self.wall:6.1f}"
        )


def answer(log: Log, within: float, neural: bool | None) -> tuple[Recipe, aope.Interval]:
    recipe = choose_recipe(log.problem, within=within, neural=neural)
    return recipe, aope.bound_value(log.problem, recipe=recipe)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=list(LOGS), choices=list(LOGS))
    parser.add_argument("--within", type=float, default=0.1)
    parser.add_argument("--no-torch", action="store_true")
    given = parser.parse_args()
    print(HEAD, flush=True)
    for name in given.only:
        rows = []
        for seed in given.seeds:
            log = LOGS[name](given.rows, seed)
            cpu, wall = time.process_time(), time.perf_counter()
            _, interval = answer(log, given.within, False if given.no_torch else None)
            _ = interval.status
            rows.append(Row(name, seed, interval, log.truth, time.process_time() - cpu, time.perf_counter() - wall))
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
