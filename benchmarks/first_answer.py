"""First answers, where nothing but discount and reward range is given: covered, width, status and time, log by log.

The tasks are those of `aope trust`, which counts how often such answers are wrong; this prints each of them.

python benchmarks/first_answer.py [--rows 10000] [--seeds 0 1 2] [--only cartpole puck] [--within 0.1] [--no-torch]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

import accountable_ope as aope
from accountable_ope.defaults import choose_recipe
from accountable_ope.trust.task import Task
from accountable_ope.trust.tasks import TASK_NAMES, tasks_named

HEAD = (
    "task                 policy         seed kind    covered  interval            width status       doubted hull overlap   cpu"
    "   wall"
)


@dataclass(frozen=True)
class Row:
    """One line."""

    task: str
    policy: str
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
            f"{self.task:20s} {self.policy:14s} {self.seed:4d} {recipe.kind.name:7s} {'yes' if self.truth in found else 'NO':7s} "
            f"{ends:20s} {found.width / (high - low):5.3f} {found.status.name:12s} {'yes' if found.doubted else 'no':7s} "
            f"{'yes' if len(found.certificates) > 1 else 'no':4s} {overlap:7.2f} {self.cpu:5.1f} {self.wall:6.1f}"
        )


def answer(task: Task, policy: str, rows: int, seed: int, within: float, neural: bool | None) -> Row:
    problem = task.problem(policy, task.draw(np.random.default_rng(1000 + seed), rows), seed)
    cpu, wall = time.process_time(), time.perf_counter()
    interval = aope.bound_value(problem, recipe=choose_recipe(problem, within=within, neural=neural))
    _ = interval.status
    truth = task.target(policy).truth.value
    return Row(task.name, policy, seed, interval, truth, time.process_time() - cpu, time.perf_counter() - wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=list(TASK_NAMES), choices=list(TASK_NAMES))
    parser.add_argument("--within", type=float, default=0.1)
    parser.add_argument("--no-torch", action="store_true")
    given = parser.parse_args()
    tasks, skipped = tasks_named(given.only)
    for each in skipped:
        print(f"{each.name}: skipped, {each.reason}")
    print(HEAD, flush=True)
    for task in tasks:
        for target in task.targets:
            for seed in given.seeds:
                row = answer(task, target.name, given.rows, seed, given.within, False if given.no_torch else None)
                print(row, flush=True)


if __name__ == "__main__":
    main()
