"""Figure 1: the interval against the number of transitions, the confidence, the behavior's temperature and the features."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from ..bounds.evaluation import Evaluation, evaluate
from ..bounds.interval import Interval
from ..problem.statements import Status
from ..problem.transitions import Transitions
from ..runner.run import Report, run_pieces
from .classes import QClass, q_classes
from .scale import Scale
from .setting import DELTA, FEATURES, KERNEL, Setting, assumptions, part_store, truth

RADII = ("hoeffding", "azuma", "certified", "symmetric", "wild")
"""The paper's, and the tiers beside it."""


@dataclass(frozen=True, slots=True)
class BoundRow:
    """One interval, normalized. Both ends are NaN where every class of the union was INCONSISTENT.

    classes, consistent: how many classes the union has, and how many of them some Q is consistent in.
    doubted:             how many of the consistent ones carry a doubt that they contain Q.
    least_loss, level:   of the class that fits best: its least loss, and the squared radius that the loss is held to.
    misfit:              of the best class: its kernel loss in the limit of many data, estimated on other data.
    seconds:             with the share of this radius in the kernel statistic, in one thread.
    """

    task: str
    kind: str
    radius: str
    guarantee: str
    n: int
    delta: float
    temperature: float
    features: int
    trial: int
    seed: int
    lower: float
    upper: float
    truth: float
    covered: bool
    status: str
    classes: int
    consistent: int
    doubted: int
    least_loss: float
    level: float
    misfit: float
    seconds: float


@dataclass(frozen=True, eq=False)
class BoundCell:
    """All radii and deltas on one data set."""

    size: ClassVar[int] = 1
    setting: Setting
    trial: int
    deltas: tuple[float, ...]
    classes: tuple[QClass, ...]
    radii: tuple[str, ...] = RADII

    @property
    def name(self) -> str:
        inside = [(repr(q_class.features), round(q_class.norm_bound, 9)) for q_class in self.classes]
        return f"bounds {self.setting} {self.trial} {self.deltas} {inside} {self.radii}"

    def run(self) -> Sequence[BoundRow]:
        return self.on(self.setting.draw(self.trial))

    def on(self, data: Transitions) -> Sequence[BoundRow]:
        """The rows for given data."""
        setting, started = self.setting, time.perf_counter()
        features = [q_class.features for q_class in self.classes]
        problem = setting.problem(data, self.classes[0].norm_bound)
        evaluation = evaluate(problem, features=features, kernel=KERNEL)
        share = (time.perf_counter() - started) / len(self.radii)
        rows = []
        for delta in self.deltas:
            for radius in self.radii:
                begun = time.perf_counter()
                parts = [
                    _bound(evaluation.of_class(index), q_class, setting.task, radius, delta)
                    for index, q_class in enumerate(self.classes)
                ]
                rows.append(self._row(parts, radius, delta, share + time.perf_counter() - begun))
        return rows

    def _row(self, parts: list[Interval], radius: str, delta: float, seconds: float) -> BoundRow:
        """The union of the classes: the lowest lower and the highest upper end of those that are not empty."""
        consistent = [part for part in parts if part.outcome is not Status.INCONSISTENT]
        lower = min((part.normalized[0] for part in consistent), default=math.nan)
        upper = max((part.normalized[1] for part in consistent), default=math.nan)
        best = min(range(len(parts)), key=lambda k: parts[k].certificates[0].least_loss)
        if not consistent:
            status = Status.INCONSISTENT
        else:
            status = Status.VACUOUS if any(part.outcome is Status.VACUOUS for part in consistent) else Status.OK
        value = truth(self.setting.task)
        return BoundRow(
            task=self.setting.task,
            kind=self.setting.kind,
            radius=radius,
            guarantee=parts[0].guarantee.value,
            n=self.setting.n,
            delta=delta,
            temperature=self.setting.temperature,
            features=self.setting.features,
            trial=self.trial,
            seed=self.setting.seed(self.trial),
            lower=lower,
            upper=upper,
            truth=value,
            covered=bool(consistent) and lower <= value <= upper,
            status=status.name,
            classes=len(parts),
            consistent=len(consistent),
            doubted=sum(part.doubted for part in consistent),
            least_loss=parts[best].certificates[0].least_loss,
            level=parts[best].radius.total,
            misfit=self.classes[best].held_out_loss,
            seconds=seconds,
        )


def _bound(evaluation: Evaluation, q_class: QClass, task: str, radius: str, delta: float) -> Interval:
    facts = assumptions(task, q_class.norm_bound, symmetric=radius == "symmetric")
    return evaluation.assuming(facts).bound(radius, delta)


def run_bounds(
    task: str,
    scale: Scale,
    *,
    radii: tuple[str, ...] = RADII,
    folder: Path | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> tuple[BoundRow, ...]:
    """Every trial of figure 1 on one task."""
    cells = []
    for kind in scale.kinds:
        settings = _settings(task, kind, scale)
        classes = {
            count: q_classes(task, kind, count, scale.pilot, folder)
            for count in dict.fromkeys(setting.features for setting, _ in settings)
        }
        for setting, deltas in settings:
            cells += [BoundCell(setting, trial, deltas, classes[setting.features], radii) for trial in range(scale.trials)]
    cells.sort(key=lambda cell: cell.trial)  # a run that is cut off has fewer trials, of everything
    return run_pieces(cells, part_store(folder, BoundRow), workers=workers, report=report)


def beside(rows: Sequence[BoundRow], earlier: Sequence[BoundRow]) -> tuple[BoundRow, ...]:
    """Rows of an earlier run, and after them new ones; what the earlier run has of the same radii is told apart by its name."""
    anew = {row.radius for row in rows}
    kept = [replace(row, radius=before(row.radius)) if row.radius in anew else row for row in earlier]
    return (*kept, *rows)


def before(radius: str) -> str:
    """What a radius of an earlier run is called."""
    return f"{radius}, before"


def _settings(task: str, kind: str, scale: Scale) -> list[tuple[Setting, tuple[float, ...]]]:
    """Distinct data sets and classes of the four panels; the default one gets every delta."""
    default = Setting(task, scale.default_n, kind=kind)
    settings = [replace(default, n=n) for n in scale.counts]
    settings += [replace(default, temperature=t) for t in scale.temperatures]
    settings += [replace(default, features=m) for m in scale.features]
    deltas = tuple(dict.fromkeys((DELTA, *(round(1 - c, 10) for c in scale.confidences))))
    others = [setting for setting in dict.fromkeys(settings) if setting != default]
    return [(default, deltas), *((setting, (DELTA,)) for setting in others)]


def panel_rows(rows: Sequence[BoundRow], axis: str, scale: Scale) -> list[BoundRow]:
    """The rows of one panel: only what its axis shows differs from the defaults."""
    defaults = {"n": scale.default_n, "delta": DELTA, "temperature": 1.0, "features": FEATURES}
    return [row for row in rows if all(getattr(row, name) == value for name, value in defaults.items() if name != axis)]
