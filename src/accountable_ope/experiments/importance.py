"""Figure 4: lower bounds by importance sampling, which must know the behavior policy, against ours, which need not.

Importance sampling bounds the mean normalized return over T steps, ours the value forever; both are in [0, 1], and each is
compared with its own truth.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from ..baselines.bounds import betting_lower, hcope_lower, split_hcope_lower
from ..baselines.episodes import return_range
from ..baselines.importance_sampling import EpisodeReturns, episode_returns
from ..environments.control_task import monte_carlo_value, roll_out
from ..environments.softmax import BEHAVIOR_TEMPERATURE, TARGET_TEMPERATURE, control_task, softmax_policy
from ..problem.transitions import Transitions
from ..runner.run import Report, run_pieces, trial_seed
from .bounds import BoundCell
from .classes import QClass, q_classes
from .scale import Scale
from .setting import DELTA, DISCOUNT, FEATURES, Setting, part_store

PAPER_THRESHOLD = 1e-5
THRESHOLDS = (1e-5, 1e-3, 1e-1, 1.0, 10.0, 100.0, 1000.0)
OURS = ("certified", "wild")
MOST_ROWS = 5000
"""Our intervals use at most so many of the rows: what they need grows with the square."""


@dataclass(frozen=True, slots=True)
class LowerRow:
    """One lower bound, normalized to [0, 1] and not cut at 0.

    threshold: of the paper's bound where it was fixed, NaN elsewhere. rows: transitions that the bound used.
    """

    task: str
    method: str
    guarantee: str
    episodes: int
    rows: int
    delta: float
    threshold: float
    trial: int
    seed: int
    lower: float
    truth: float
    covered: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class LowerCell:
    """All bounds on the episodes of one trial; thresholds other than the paper's where asked for."""

    size: ClassVar[int] = 1
    task: str
    episodes: int
    trial: int
    deltas: tuple[float, ...]
    thresholds: tuple[float, ...]
    classes: tuple[QClass, ...]

    @property
    def name(self) -> str:
        inside = [(repr(q_class.features), round(q_class.norm_bound, 9)) for q_class in self.classes]
        return f"importance {self.task} {self.episodes} {self.trial} {self.deltas} {self.thresholds} {inside}"

    @property
    def seed(self) -> int:
        return trial_seed("importance", self.task, self.episodes, self.trial)

    def run(self) -> Sequence[LowerRow]:
        control = control_task(self.task)
        behavior = softmax_policy(self.task, BEHAVIOR_TEMPERATURE)
        rng = np.random.default_rng(self.seed)
        data = roll_out(control, behavior, rng, episodes=self.episodes)
        weighed = episode_returns(
            data,
            softmax_policy(self.task, TARGET_TEMPERATURE),
            behavior,
            discount=DISCOUNT,
            reward_range=control.reward_range,
            horizon=control.horizon,
        )
        return [*self._sampled(weighed, len(data)), *self._ours(data)]

    def _sampled(self, weighed: EpisodeReturns, rows: int) -> list[LowerRow]:
        value = return_truth(self.task)
        whole = weighed.whole_trajectory.x
        found = []
        for delta in self.deltas:
            fixed = self.thresholds if delta == DELTA else (PAPER_THRESHOLD,)
            found += [("hcope, fixed c", c, delta, hcope_lower(whole, c, delta)) for c in fixed]
            found.append(("hcope, chosen c", math.nan, delta, split_hcope_lower(whole, delta)))
            found.append(("betting", math.nan, delta, betting_lower(whole, delta)))
            found.append(("betting, per decision", math.nan, delta, betting_lower(weighed.per_decision.x, delta)))
        return [
            LowerRow(
                task=self.task,
                method=method,
                guarantee="finite-sample",
                episodes=self.episodes,
                rows=rows,
                delta=delta,
                threshold=threshold,
                trial=self.trial,
                seed=self.seed,
                lower=lower,
                truth=value,
                covered=lower <= value,
                seconds=math.nan,
            )
            for method, threshold, delta, lower in found
        ]

    def _ours(self, data: Transitions) -> list[LowerRow]:
        begun = time.perf_counter()
        part = data.rows(np.arange(min(len(data), MOST_ROWS)))
        cell = BoundCell(Setting(self.task, len(part), kind="neural"), self.trial, self.deltas, self.classes, OURS)
        bounds = cell.on(part)
        return [
            LowerRow(
                task=self.task,
                method=f"ours, {row.radius}",
                guarantee=row.guarantee,
                episodes=self.episodes,
                rows=len(part),
                delta=row.delta,
                threshold=math.nan,
                trial=self.trial,
                seed=self.seed,
                lower=row.lower,
                truth=row.truth,
                covered=row.lower <= row.truth,
                seconds=(time.perf_counter() - begun) / len(bounds),
            )
            for row in bounds
        ]


@cache
def return_truth(task: str) -> float:
    """The mean normalized return of the target policy over T steps, by Monte Carlo."""
    control = control_task(task)
    found = monte_carlo_value(
        control,
        softmax_policy(task, TARGET_TEMPERATURE),
        np.random.default_rng(trial_seed("return", task)),
        discount=DISCOUNT,
        episodes=20_000,
        length=control.horizon,
    )
    low, high = return_range(DISCOUNT, control.reward_range, control.horizon)
    return (found.value - low) / (high - low)


def run_importance(
    task: str, scale: Scale, *, folder: Path | None = None, workers: int | None = None, report: Report | None = None
) -> tuple[LowerRow, ...]:
    """Every trial of figure 4."""
    classes = q_classes(task, "neural", FEATURES, scale.pilot, folder)
    deltas = tuple(dict.fromkeys((DELTA, *(round(1 - c, 10) for c in scale.confidences))))
    largest = max(scale.episodes)
    cells = [
        LowerCell(
            task,
            episodes,
            trial,
            deltas if episodes == largest else (DELTA,),
            THRESHOLDS if episodes == largest else (PAPER_THRESHOLD,),
            classes,
        )
        for episodes in scale.episodes
        for trial in range(scale.trials)
    ]
    return run_pieces(cells, part_store(folder, LowerRow), workers=workers, report=report)
