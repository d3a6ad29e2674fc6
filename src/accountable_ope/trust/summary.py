"""From answers to a table: how often the answer was wrong, and how often nothing said so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from ..laboratory.summary import believable
from ..problem.statements import Status
from .answers import Answer
from .methods import METHOD_NAMES, Method
from .tasks import TASK_NAMES, task_named


@dataclass(frozen=True)
class Trust:
    """All logs of one task, policy, size, method and delta.

    Attributes
    ----------
    task, policy, method : str
    n : int
    delta : float
    logs : int
    covered : int
        How many intervals held the truth.
    width : float or None
        The median over intervals that are not empty, as a share of the range of values; None where all are.
    vacuous : int
        How many were the whole range of values.
    inconsistent : int
        How many logs refuted the class: there is no interval.
    wrong_with_doubt : int
        How many intervals missed the truth and were marked as doubted.
    wrong : int
        How many missed it and nothing was said.
    seconds : float
        Mean processor time.
    """

    task: str
    policy: str
    method: str
    n: int
    delta: float
    logs: int
    covered: int
    width: float | None
    vacuous: int
    inconsistent: int
    wrong_with_doubt: int
    wrong: int
    seconds: float

    @property
    def rate(self) -> float:
        """Of intervals that were wrong without a doubt."""
        return self.wrong / self.logs

    @property
    def exceeds(self) -> bool:
        return self.rate > self.delta

    @property
    def judged(self) -> bool:
        """Whether it is the default, on states that hide nothing."""
        return self.method == Method.DEFAULT.value and not task_named(self.task).hidden

    @property
    def refuted(self) -> bool:
        """Whether the default is wrong without a doubt so often that a rate of delta is no longer believable."""
        return self.judged and not believable(self.logs - self.wrong, self.logs, self.delta)


def summarize(answers: Sequence[Answer]) -> tuple[Trust, ...]:
    """One row per task, policy, size, method and delta, in the order of tasks, sizes and methods."""
    cells: dict[tuple[str, int, str, str, float], list[Answer]] = {}
    for row in answers:
        cells.setdefault((row.task, row.n, row.policy, row.method, row.delta), []).append(row)

    def place(key: tuple[str, int, str, str, float]) -> tuple[int, int, str, int, float]:
        task, n, policy, method, delta = key
        order = [target.name for target in task_named(task).targets]
        return TASK_NAMES.index(task), n, str(order.index(policy)), METHOD_NAMES.index(method), delta

    return tuple(_summary(cells[key]) for key in sorted(cells, key=place))


def _summary(rows: Sequence[Answer]) -> Trust:
    first = rows[0]
    widths = [row.width for row in rows if row.status != Status.INCONSISTENT.name]
    doubted = [row.wrong and row.status == Status.DOUBTED.name for row in rows]
    return Trust(
        task=first.task,
        policy=first.policy,
        method=first.method,
        n=first.n,
        delta=first.delta,
        logs=len(rows),
        covered=sum(row.covered for row in rows),
        width=median(widths) if widths else None,
        vacuous=sum(row.status == Status.VACUOUS.name for row in rows),
        inconsistent=sum(row.status == Status.INCONSISTENT.name for row in rows),
        wrong_with_doubt=sum(doubted),
        wrong=sum(row.wrong for row in rows) - sum(doubted),
        seconds=fmean(row.seconds for row in rows),
    )


def refuted(rows: Sequence[Trust]) -> tuple[Trust, ...]:
    """Where the default is no longer believable."""
    return tuple(row for row in rows if row.refuted)


def verdict(rows: Sequence[Trust]) -> str:
    """What the table says, in a few sentences: the headline first."""
    own = [row for row in rows if row.judged]
    if not own:
        return "The default was not asked."
    logs, wrong, doubted = (sum(counts) for counts in zip(*((row.logs, row.wrong, row.wrong_with_doubt) for row in own), strict=True))
    vacuous, inconsistent = sum(row.vacuous for row in own), sum(row.inconsistent for row in own)
    tasks, deltas = len({row.task for row in own}), sorted({row.delta for row in own})
    allowed = " and ".join(f"{100 * delta:g}%" for delta in deltas)
    parts = [
        f"Of {logs} first answers on {tasks} tasks, {wrong} ({100 * wrong / logs:.1f}%) were wrong without a doubt, where "
        f"{allowed} would be allowed; {doubted} were wrong and said to be doubted, {vacuous} were vacuous, {inconsistent} had no "
        f"interval."
    ]
    over = [row for row in own if row.exceeds]
    if over:
        parts.append(f"More than allowed: {_named(over)}.")
    bad = refuted(rows)
    parts.append(f"Refuted: {_named(bad)}." if bad else "The default is not refuted.")
    hidden = [row for row in rows if row.method == Method.DEFAULT.value and not row.judged]
    if hidden:
        parts.append(
            f"Where the logged state hides something ({', '.join(dict.fromkeys(row.task for row in hidden))}), "
            f"{sum(row.wrong for row in hidden)} of {sum(row.logs for row in hidden)} were wrong without a doubt; the default is "
            "not judged by these, since no class would help."
        )
    return " ".join(parts)


def _named(rows: Sequence[Trust]) -> str:
    return ", ".join(f"{row.task} / {row.policy} at n = {row.n} ({row.wrong} of {row.logs})" for row in rows)
