"""Figures 2 and 3: two estimates of Q, one good and one bad, diagnosed and corrected on new data.

Estimates are linear in random Fourier features and come from gradient descent on the kernel loss of a separate batch: many steps,
or few. Descent starts from 0 or, for an estimate that is too high, from the largest value.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ..bounds.correction import CorrectionStatus, correct
from ..classes.features import RandomFourier
from ..classes.linear_q import LinearQ
from ..environments.softmax import TARGET_TEMPERATURE, control_task, softmax_policy
from ..fitting.least_loss import descend, fit_q
from ..problem.problem import Experience
from ..problem.statements import Status
from ..problem.transitions import Transitions
from ..programs.quadratic import Quadratic
from ..runner.run import Report, run_pieces
from ..statistics.bellman import bellman_system
from ..statistics.statistic import kernel_statistic
from ..validation import FloatArray
from .classes import NORM_FACTOR, RIDGE, Pilot
from .scale import Scale
from .setting import DELTA, DISCOUNT, KERNEL, Setting, part_store, truth

RADII = ("hoeffding", "certified", "wild")
BATCH_ROWS = 2000
"""Rows of the batch on which the estimates are fitted."""

BANDWIDTH, DIMENSION = 0.8, 40
"""Of the features: enough of them that corrections can reach what the data say."""


@dataclass(frozen=True)
class Estimator:
    """How an estimate is made: k steps of descent, from everywhere 0 or from everywhere the largest value."""

    name: str
    steps: int
    optimistic: bool = False


ESTIMATORS = {
    "inverted-pendulum": (Estimator("Q1", 1_000_000), Estimator("Q2", 10)),
    "puck-mountain": (Estimator("Q1", 100, optimistic=True), Estimator("Q2", 100)),
}
"""On the pendulum Q1 is good and Q2 is not; on Puck-Mountain Q1 is too high and Q2 too low, as in the paper."""


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One estimate on one data set, normalized values. `after` and `norm` are NaN where no correction exists.

    loss, allowed: the kernel loss of the estimate, and the largest that chance allows to the true Q.
    """

    task: str
    estimator: str
    radius: str
    guarantee: str
    n: int
    delta: float
    trial: int
    seed: int
    before: float
    after: float
    norm: float
    accepted: bool
    correction: str
    loss: float
    allowed: float
    lower: float
    upper: float
    truth: float
    covered: bool
    status: str
    seconds: float


@dataclass(frozen=True, eq=False)
class EstimateCell:
    """All radii and deltas for one estimate on one data set."""

    size: ClassVar[int] = 1
    setting: Setting
    estimator: str
    q: LinearQ
    norm_bound: float
    trial: int
    deltas: tuple[float, ...]
    radii: tuple[str, ...] = RADII

    @property
    def name(self) -> str:
        what = (self.estimator, float(np.abs(self.q.theta).sum()), round(self.norm_bound, 9), self.trial, self.deltas, self.radii)
        return f"estimates {self.setting} {what}"

    def run(self) -> Sequence[EstimateRow]:
        data = self.setting.draw(self.trial)
        return [self._row(data, radius, delta) for delta in self.deltas for radius in self.radii]

    def _row(self, data: Transitions, radius: str, delta: float) -> EstimateRow:
        begun = time.perf_counter()
        found = correct(
            self.q,
            self.setting.problem(data, self.norm_bound),
            kernel=KERNEL,
            features=self.q.features,
            radius=radius,
            delta=delta,
        )
        infeasible = found.status is CorrectionStatus.INFEASIBLE
        empty = found.interval.outcome is Status.INCONSISTENT
        lower, upper = found.interval.normalized
        value, unit = truth(self.setting.task), 1 - DISCOUNT
        return EstimateRow(
            task=self.setting.task,
            estimator=self.estimator,
            radius=radius,
            guarantee=found.interval.guarantee.value,
            n=len(data),
            delta=delta,
            trial=self.trial,
            seed=self.setting.seed(self.trial),
            before=unit * found.estimate_before,
            after=math.nan if infeasible else unit * found.estimate_after,
            norm=math.nan if infeasible else found.norm,
            accepted=found.status is CorrectionStatus.UNCHANGED,
            correction=found.status.name,
            loss=found.loss_before,
            allowed=found.radius.total,
            lower=lower,
            upper=upper,
            truth=value,
            covered=not empty and lower <= value <= upper,
            status=found.interval.outcome.name,
            seconds=time.perf_counter() - begun,
        )


def make_estimate(task: str, estimator: Estimator) -> LinearQ:
    """Gradient descent on the kernel loss of a batch that no trial uses."""
    batch = Pilot(rows=BATCH_ROWS).draw(task, "estimates")
    policy, control = softmax_policy(task, TARGET_TEMPERATURE), control_task(task)
    features = RandomFourier(dimension=DIMENSION, bandwidth=BANDWIDTH, seed=1)
    experience = Experience(batch, control.starts, policy, DISCOUNT)
    system = bellman_system(experience, features)
    loss = kernel_statistic(system, KERNEL).v_loss()
    start = np.zeros(system.dimension)
    if estimator.optimistic:
        start[-1] = control.reward_range[1] / (1 - DISCOUNT)
    theta = start + descend(_shifted(loss, start), system.penalized, RIDGE, estimator.steps)
    return LinearQ(features, theta, policy.action_vectors)


def _shifted(loss: Quadratic, start: FloatArray) -> Quadratic:
    """The loss as a function of theta - start."""
    return Quadratic(loss.A, loss.a - loss.A @ start, loss(start))


def default_count(scale: Scale) -> int:
    """The number of transitions at which delta varies."""
    return scale.diagnosis_counts[len(scale.diagnosis_counts) // 2]


def run_estimates(
    task: str, scale: Scale, *, folder: Path | None = None, workers: int | None = None, report: Report | None = None
) -> tuple[EstimateRow, ...]:
    """Every trial of figure 2 (pendulum) or 3 (Puck-Mountain)."""
    policy = softmax_policy(task, TARGET_TEMPERATURE)
    pilot = scale.pilot.draw(task, "fit")
    deltas = tuple(dict.fromkeys((DELTA, *(round(1 - c, 10) for c in scale.confidences))))
    default = default_count(scale)
    cells = []
    for estimator in ESTIMATORS[task]:
        q = make_estimate(task, estimator)
        best = fit_q(pilot, policy, kernel=KERNEL, features=q.features, discount=DISCOUNT, ridge=RIDGE)
        norm_bound = NORM_FACTOR * float(np.linalg.norm((best.theta - q.theta)[:-1]))
        for n in scale.diagnosis_counts:
            setting = Setting(task, n, features=DIMENSION)
            chosen = deltas if n == default else (DELTA,)
            cells += [EstimateCell(setting, estimator.name, q, norm_bound, trial, chosen) for trial in range(scale.trials)]
    return run_pieces(cells, part_store(folder, EstimateRow), workers=workers, report=report)
