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
    farthest : float
        The most by which the truth was missed, doubted or not, as a share of the range of values.
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
    farthest: float
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
    """One row per task, policy, size, method and delta, in the order of tasks, policies, sizes and methods."""
    cells: dict[tuple[str, str, int, str, float], list[Answer]] = {}
    for row in answers:
        cells.setdefault((row.task, row.policy, row.n, row.method, row.delta), []).append(row)

    def place(key: tuple[str, str, int, str, float]) -> tuple[int, int, int, int, float]:
        task, policy, n, method, delta = key
        order = [target.name for target in task_named(task).targets]
        return TASK_NAMES.index(task), order.index(policy), n, METHOD_NAMES.index(method), delta

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
        farthest=max(row.miss for row in rows),
        seconds=fmean(row.seconds for row in rows),
    )


def refuted(rows: Sequence[Trust]) -> tuple[Trust, ...]:
    """Where the default is no longer believable."""
    return tuple(row for row in rows if row.refuted)


def verdict(rows: Sequence[Trust]) -> str:
    """What the table says, in a few sentences: the headline first."""
    asked = [row for row in rows if row.method == Method.DEFAULT.value]
    if not asked:
        return "The default was not asked."
    own, hidden = [row for row in asked if row.judged], [row for row in asked if not row.judged]
    parts = [*(_headline(own) if own else ()), *(_aside(hidden) if hidden else ())]
    return " ".join(parts)


def _headline(own: Sequence[Trust]) -> list[str]:
    logs, wrong = sum(row.logs for row in own), sum(row.wrong for row in own)
    tasks = len({row.task for row in own})
    allowed = " and ".join(f"{100 * delta:g}%" for delta in sorted({row.delta for row in own}))
    parts = [
        f"Of {logs} first answers on {tasks} task{'s' if tasks > 1 else ''}, {wrong} ({100 * wrong / logs:.1f}%) were wrong "
        f"without a doubt, where {allowed} would be allowed; {sum(row.wrong_with_doubt for row in own)} were wrong and said to "
        f"be doubted, {sum(row.vacuous for row in own)} were vacuous, {sum(row.inconsistent for row in own)} had no interval."
    ]
    over, bad = [row for row in own if row.exceeds], refuted(own)
    if over:
        parts.append(f"More than allowed: {_named(over)}.")
    parts.append(f"Refuted: {_named(bad)}." if bad else "The default is not refuted.")
    return parts


def _aside(hidden: Sequence[Trust]) -> list[str]:
    names, wrong = ", ".join(dict.fromkeys(row.task for row in hidden)), sum(row.wrong for row in hidden)
    return [
        f"Where the logged state hides something ({names}), {wrong} of {sum(row.logs for row in hidden)} were wrong without a "
        "doubt; the default is not judged by these, since no class would help."
    ]


def _named(rows: Sequence[Trust]) -> str:
    return ", ".join(f"{row.task} / {row.policy} at n = {row.n} ({row.wrong} of {row.logs})" for row in rows)
