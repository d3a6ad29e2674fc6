"""What every experiment of the paper shares: defaults, seeds, data, the truth, and what is assumed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..environments.control_task import ControlTask, roll_out
from ..environments.softmax import BEHAVIOR_TEMPERATURE, TARGET_TEMPERATURE, control_task, measured_value, softmax_policy
from ..kernels.kernel import Gaussian
from ..problem.assumptions import Assumptions
from ..problem.policy import DiscretePolicy
from ..problem.problem import Problem
from ..problem.transitions import Transitions, first_rows
from ..runner.run import trial_seed
from ..runner.store import Store

R = TypeVar("R")

DISCOUNT = 0.95
DELTA = 0.1
KERNEL = Gaussian(0.5)
FEATURES = 10
ONE_STEP_RANGE: dict[str, float | None] = {"inverted-pendulum": None, "puck-mountain": 4.0}
"""How far chance moves r + discount V(s') in one step. A fall of the pendulum can cost everything; the puck's noise is cut, and
its reach times the slope of V gives less than this (tests/experiments computes it on a grid)."""


@dataclass(frozen=True)
class Setting:
    """One point of a figure: which data are drawn, and which class of Q is bounded over."""

    task: str
    n: int
    temperature: float = BEHAVIOR_TEMPERATURE
    features: int = FEATURES
    kind: str = "fourier"

    @property
    def control(self) -> ControlTask:
        return control_task(self.task)

    @property
    def target(self) -> DiscretePolicy:
        return softmax_policy(self.task, TARGET_TEMPERATURE)

    def draw(self, trial: int) -> Transitions:
        """The first n transitions of episodes under the behavior policy; the same for every class of Q."""
        return draw_rows(self.task, self.temperature, self.n, self.seed(trial))

    def problem(self, data: Transitions, norm_bound: float, *, symmetric: bool = False) -> Problem:
        """What is asked of the data: the value of the target policy."""
        facts = assumptions(self.task, norm_bound, symmetric=symmetric)
        return Problem(data, self.control.starts, self.target, facts)

    def seed(self, trial: int) -> int:
        """The seed of the data of a trial."""
        return trial_seed("data", self.task, self.temperature, self.n, trial)


def draw_rows(task: str, temperature: float, n: int, seed: int) -> Transitions:
    """n transitions of as many episodes as it takes."""
    rng = np.random.default_rng(seed)
    control, policy = control_task(task), softmax_policy(task, temperature)
    parts: list[Transitions] = []
    while sum(map(len, parts)) < n:
        parts.append(roll_out(control, policy, rng, episodes=max(1, -(-n // control.horizon))))
    return first_rows(parts, n)


def truth(task: str) -> float:
    """The normalized value of the target policy, (1 - discount) times the measured one."""
    return (1 - DISCOUNT) * measured_value(task).value


def assumptions(task: str, norm_bound: float, *, symmetric: bool = False) -> Assumptions:
    """What is declared: ranges and terminal states of the task, the norm bound of the class."""
    control = control_task(task)
    return Assumptions(
        discount=DISCOUNT,
        reward_range=control.reward_range,
        norm_bound=norm_bound,
        reward_noise=control.reward_noise,
        terminates=control.terminates,
        one_step_range=ONE_STEP_RANGE[task],
        symmetric_noise=symmetric,
    )


def part_store(folder: Path | None, row_type: type[R]) -> Store[R] | None:
    """Where finished trials are kept, beside the tables and pictures of a folder."""
    return None if folder is None else Store(folder / "parts", row_type)
