"""What a trial takes, and how many logs it is therefore asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

FAST, MANY, FEW = 1.0, 100, 30
"""Seconds below which a trial is cheap; logs where it is, and elsewhere."""

LONGEST = 60.0
"""A trial that would take more seconds than this, by what a smaller log took, is left out."""

BUDGET = 6 * 3600.0
"""Seconds of processor time that all trials may take together: three hours of two cores."""

LEAST = 10
"""Logs that a cell keeps, however much it takes."""

Cell = tuple[str, int, str]
"""(challenge, n, contestant)."""


@dataclass(frozen=True)
class Unmeasured:
    """A cell that is left out since it would take too long."""

    challenge: str
    n: int
    contestant: str


@dataclass(frozen=True)
class Line:
    """All cells of one contestant and size together.

    seconds: of a trial, the mean over problems; slowest: the most; trials, hours: of the whole plan, in processor time.
    """

    contestant: str
    n: int
    problems: int
    seconds: float
    slowest: float
    trials: int
    hours: float


@dataclass(frozen=True)
class Costs:
    """Seconds of one trial of every cell, and the cells that are left out."""

    seconds: Mapping[Cell, float] = field(default_factory=dict)
    left_out: tuple[Unmeasured, ...] = ()

    def knowing(self, seconds: Mapping[Cell, float], left_out: Iterable[Unmeasured]) -> Costs:
        """With more cells."""
        return Costs({**self.seconds, **seconds}, (*self.left_out, *left_out))

    def too_slow(self, cell: Cell) -> bool:
        """Whether a smaller log, scaled by the number of rows, took so long that this one is not tried."""
        challenge, n, contestant = cell
        smaller = [size for known, size, name in self.seconds if (known, name) == (challenge, contestant) and size < n]
        if any((each.challenge, each.contestant) == (challenge, contestant) for each in self.left_out):
            return True
        if not smaller:
            return False
        size = max(smaller)
        return self.seconds[challenge, size, contestant] * n / size > LONGEST

    def wanted(self, cell: Cell) -> int:
        """Logs by the seconds of one."""
        return MANY if self.seconds[cell] < FAST else FEW

    def trials(self, cell: Cell) -> int:
        """Logs of this cell: those wanted; where all together would take too long, fewer of those that take long."""
        wanted = self.wanted(cell)
        return wanted if wanted == MANY else max(LEAST, min(wanted, int(wanted * self._share)))

    @cached_property
    def _share(self) -> float:
        """Of the logs of slow cells, what fits beside the fast ones."""
        spent = {known: self.wanted(known) * seconds for known, seconds in self.seconds.items()}
        fast = sum(each for known, each in spent.items() if self.wanted(known) == MANY)
        slow = sum(spent.values()) - fast
        return 1.0 if slow == 0 else max(0.0, min(1.0, (BUDGET - fast) / slow))

    @property
    def total(self) -> float:
        """Seconds of processor time of the whole plan."""
        return sum(self.trials(cell) * seconds for cell, seconds in self.seconds.items())

    def lines(self) -> tuple[Line, ...]:
        """The plan, a line per contestant and size."""
        groups: dict[tuple[str, int], list[Cell]] = {}
        for cell in self.seconds:
            groups.setdefault((cell[2], cell[1]), []).append(cell)
        return tuple(
            Line(
                contestant,
                n,
                len(cells),
                sum(self.seconds[cell] for cell in cells) / len(cells),
                max(self.seconds[cell] for cell in cells),
                sum(self.trials(cell) for cell in cells),
                sum(self.trials(cell) * self.seconds[cell] for cell in cells) / 3600,
            )
            for (contestant, n), cells in groups.items()
        )
