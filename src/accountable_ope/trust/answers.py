"""Answers on many logs, run in parallel by the runner of the laboratory and kept in a folder to which more can be added."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import AopeError, InvalidFile, InvalidInput
from ..problem.statements import Status
from ..runner.run import Report, run_pieces, trial_seed
from ..runner.store import Store, load_rows, save_rows
from ..runner.truth import same_truth
from ..validation import probability_level, whole
from .methods import Method, ask
from .recipe import recipe_mark
from .task import Task
from .tasks import task_named

SIZES = (2_000, 10_000, 50_000)
MANY, FEW, LARGE = 20, 5, 50_000
"""Logs of a size, and of one that is large."""

Key = tuple[str, str, int, int, str, float]
"""(task, policy, n, log, method, delta)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one method said on one log, beside the truth.

    Attributes
    ----------
    task, policy, method, kind : str
        kind: of the class that was chosen.
    n, log, seed : int
    delta : float
    lower, upper, truth : float
        Both ends are NaN where the status is INCONSISTENT.
    margin : float
        How far the truth, where it was simulated, may be from what is taken for it.
    low, high : float
        The range of values that was declared.
    status : str
    seconds : float
        Of processor time.
    recipe : str
        What chose class, ball and radius (`recipe_mark`); empty where that was not written down.
    """

    task: str
    policy: str
    method: str
    kind: str
    n: int
    log: int
    seed: int
    delta: float
    lower: float
    upper: float
    truth: float
    margin: float
    low: float
    high: float
    status: str
    seconds: float
    recipe: str = ""

    @property
    def key(self) -> Key:
        return (self.task, self.policy, self.n, self.log, self.method, self.delta)

    @property
    def covered(self) -> bool:
        return (
            self.lower - self.margin <= self.truth <= self.upper + self.margin
        )  # an empty interval has NaN ends and covers nothing

    @property
    def width(self) -> float:
        """As a share of the range of values."""
        return (self.upper - self.lower) / (self.high - self.low)

    @property
    def miss(self) -> float:
        """How far the truth is outside, as a share of the range of values; 0 where it is inside or there is no interval."""
        outside = max(self.lower - self.truth, self.truth - self.upper) / (self.high - self.low)
        return outside if self.wrong else 0.0

    @property
    def wrong(self) -> bool:
        """There is an interval, and the truth is outside."""
        return not self.covered and self.status != Status.INCONSISTENT.name


@dataclass(frozen=True)
class Question:
    """One log and one policy, asked by name, so that it can be sent to another process."""

    task: str
    policy: str
    n: int
    log: int
    methods: tuple[Method, ...]
    delta: float

    @property
    def name(self) -> str:
        methods = ",".join(method.value for method in self.methods)
        return f"{self.task} {self.policy} n{self.n} log {self.log} delta {self.delta!r} {methods}"

    @property
    def size(self) -> int:
        return 1

    def run(self) -> list[Answer]:
        return list(self._answers())

    def _answers(self) -> Iterator[Answer]:
        task = task_named(self.task)
        seed = trial_seed("trust", self.task, self.n, self.log)  # all policies are asked about the same log
        try:
            problem = task.problem(self.policy, task.draw(np.random.default_rng(seed), self.n), seed)
            (low, high), truth = problem.ranges.value, task.target(self.policy).truth
            for found in ask(problem, self.methods, self.delta):
                yield Answer(
                    task=self.task,
                    policy=self.policy,
                    method=found.method.value,
                    kind=found.kind,
                    n=self.n,
                    log=self.log,
                    seed=seed,
                    delta=self.delta,
                    lower=found.lower,
                    upper=found.upper,
                    truth=truth.value,
                    margin=truth.margin,
                    low=low,
                    high=high,
                    status=found.status.name,
                    seconds=found.seconds,
                    recipe=recipe_mark(),
                )
        except AopeError as error:
            raise InvalidInput(f"Task {self.task}, policy {self.policy}, n = {self.n}, log {self.log}: {error}") from error


@dataclass(frozen=True)
class Plan:
    """What is asked.

    Attributes
    ----------
    sizes : tuple of int
    methods : tuple of Method
    logs : int or None
        Per task and size; None: 20, or 5 of 50,000 rows and more.
    delta : float
    policies : int
        How many target policies of every task, the first ones.
    """

    sizes: tuple[int, ...] = SIZES
    methods: tuple[Method, ...] = tuple(Method)
    logs: int | None = None
    delta: float = 0.1
    policies: int = 2

    def __post_init__(self) -> None:
        probability_level(self.delta)
        whole(self.policies, "policies", least=1)
        for n in self.sizes:
            whole(n, "n", least=100)
        if self.logs is not None:
            whole(self.logs, "logs", least=1)
        for name, listed in (("n", self.sizes), ("method", self.methods)):
            if not listed:
                raise InvalidInput(f"At least one `{name}` is needed. Got none.")

    def count(self, n: int) -> int:
        """Logs of this size."""
        return self.logs if self.logs is not None else FEW if n >= LARGE else MANY


def run_answers(
    tasks: Sequence[Task],
    plan: Plan,
    *,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    known: Sequence[Answer] = (),
    report: Report | None = None,
) -> tuple[Answer, ...]:
    """Every method of the plan on every log of every task and policy. What a folder holds, or is known, is not computed again.

    The first logs of all tasks come before the second ones, so that a run that was stopped has as many of each.
    """
    if not tasks:
        raise InvalidInput("At least one `task` is needed. None can be run here.")
    store = None if folder is None else Store(Path(folder), Answer)
    rows = {row.key: row for row in known} | ({} if folder is None else {row.key: row for row in read_answers(folder, tasks)})
    wanted = [
        (task.name, target.name, n, log)
        for n in dict.fromkeys(plan.sizes)
        for log in range(plan.count(n))
        for task in tasks
        for target in task.targets[: plan.policies]
    ]
    questions = []
    for cell in wanted:
        lacking = tuple(method for method in plan.methods if (*cell, method.value, plan.delta) not in rows)
        if lacking:
            questions.append(Question(*cell, lacking, plan.delta))
    rows.update({row.key: row for row in run_pieces(questions, store, workers=workers, report=report)})
    return tuple(rows[*cell, method.value, plan.delta] for cell in wanted for method in plan.methods)


def read_answers(folder: str | os.PathLike[str], tasks: Sequence[Task]) -> tuple[Answer, ...]:
    """What a folder holds of these tasks; refused where a task of the same name had another truth."""
    if not Path(folder).is_dir():
        raise InvalidFile(f"{os.fspath(folder)} is not a folder.")
    return _of_tasks(Store(Path(folder), Answer).read_all(), folder, tasks)


def read_kept(path: str | os.PathLike[str], tasks: Sequence[Task]) -> tuple[Answer, ...]:
    """What one file of finished answers holds of these tasks, whichever version of the package made them."""
    return _of_tasks(load_rows(Answer, path), path, tasks)


def keep_answers(answers: Sequence[Answer], path: str | os.PathLike[str]) -> None:
    """Write answers as one compact file, in the order of their keys, so that the same answers make the same file."""
    save_rows(sorted(answers, key=lambda row: row.key), path, compact=True)


def _of_tasks(rows: Iterable[Answer], place: str | os.PathLike[str], tasks: Sequence[Task]) -> tuple[Answer, ...]:
    truths = {(task.name, target.name): target.truth.value for task in tasks for target in task.targets}
    found = {row.key: row for row in rows if (row.task, row.policy) in truths}
    for row in found.values():
        if not same_truth(row.truth, truths[row.task, row.policy]):
            raise InvalidInput(f"{os.fspath(place)} holds answers of another task {row.task!r}: use another one.")
    return tuple(found.values())
