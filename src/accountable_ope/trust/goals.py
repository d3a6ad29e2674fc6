"""What the default is meant to reach: on how many tasks its answers hold the truth and say something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..validation import plural
from .summary import Trust
from .tasks import TASK_NAMES, task_named

WANTED = {10_000: Fraction(2, 3), 50_000: Fraction(3, 4)}
"""The share of the tasks, by the number of rows."""

OUTCOMES = {True: "met", False: "not met", None: "not decided before more of them are asked"}


@dataclass(frozen=True)
class Goal:
    """At one number of rows: of so many tasks, on how many the default is useful.

    Useful: of its answers about all policies that were asked, at least 1 - delta cover the truth and are not vacuous.

    Attributes
    ----------
    n, tasks, useful : int
        Tasks that were asked.
    every : int
        Tasks that there are, without those that hide something: of a few of them the goal is not decided.
    least, most : int
        Logs behind a cell.
    wanted : Fraction
        The share of tasks.
    """

    n: int
    tasks: int
    useful: int
    every: int
    least: int
    most: int
    wanted: Fraction

    @property
    def holds(self) -> bool | None:
        """None while it hangs on tasks that were not asked."""
        if self.useful >= self.wanted * self.every:
            return True
        return False if self.useful + self.every - self.tasks < self.wanted * self.every else None

    def __str__(self) -> str:
        many = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        return (
            f"At n = {self.n:,} the default is not vacuous and covers on {self.useful} of {self.tasks} "
            f"{plural(self.tasks, 'task', 'tasks')} ({many} {plural(self.most, 'log', 'logs')} per row of the table); the goal, "
            f"{self.wanted} of all {self.every}, is {OUTCOMES[self.holds]}."
        )


def goals(rows: Sequence[Trust]) -> tuple[Goal, ...]:
    """One per number of rows for which there is a goal and an answer; tasks that hide something are not counted."""
    found = []
    for n, wanted in WANTED.items():
        cells = [row for row in rows if row.n == n and row.judged]
        if not cells:
            continue
        names = dict.fromkeys(row.task for row in cells)
        useful = sum(_useful([row for row in cells if row.task == name]) for name in names)
        logs = [row.logs for row in cells]
        every = sum(not task_named(name).hidden for name in TASK_NAMES)
        found.append(Goal(n, len(names), useful, every, min(logs), max(logs), wanted))
    return tuple(found)


def _useful(cells: Sequence[Trust]) -> bool:
    """A vacuous answer covers, too: it is taken away from those that do."""
    answers, good = sum(row.logs for row in cells), sum(row.covered - row.vacuous for row in cells)
    return good >= (1 - max(row.delta for row in cells)) * answers
