"""Contestants on logs, in parallel and kept in a folder to which more can be added."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

from ..baselines.contestant import Contestant
from ..errors import InvalidInput
from ..problem.statements import Kind, Status
from ..problem.transitions import Transitions
from ..runner.run import Report, run_pieces, trial_seed
from ..runner.store import Store
from ..trust.recipe import recipe_mark
from ..validation import probability_level, whole
from .bout import REFUSED, Bout
from .challenge import Challenge
from .challenges import challenge_named
from .costs import Costs, Unmeasured
from .entrants import entrant, entry
from .keeping import read_bouts
from .own import DOUBTED, is_own

SIZES = (1_000, 5_000, 20_000)

Cell = tuple[str, int, str]
"""(challenge, n, contestant)."""


@dataclass(frozen=True)
class Meeting:
    """One log and everybody who is asked about it, by name, so that it can be sent to another process."""

    challenge: str
    n: int
    log: int
    contestants: tuple[str, ...]
    delta: float

    @property
    def name(self) -> str:
        return f"{self.challenge} n{self.n} log {self.log} delta {self.delta!r} {','.join(self.contestants)}"

    @property
    def size(self) -> int:
        return len(self.contestants)

    def run(self) -> list[Bout]:
        challenge = challenge_named(self.challenge)
        seed = log_seed(self.challenge, self.n, self.log)
        data = challenge.draw(np.random.default_rng(seed), self.n)
        return [bout(challenge, entrant(name), data, self.n, self.log, self.delta) for name in self.contestants]


def log_seed(challenge: str, n: int, log: int) -> int:
    """That of a log: everybody is asked about the same one."""
    return trial_seed("arena", challenge, n, log)


def bout(challenge: Challenge, contestant: Contestant, data: Transitions, n: int, log: int, delta: float) -> Bout:
    """One contestant on one log; whatever it raises is kept as its refusal."""
    seed = log_seed(challenge.name, n, log)
    asked = entry(challenge, data, seed)
    low, high = asked.problem.ranges.value
    lower, upper, status, reason = math.nan, math.nan, REFUSED, ""
    rng = np.random.default_rng(trial_seed("arena", challenge.name, n, log, contestant.name))
    begin = process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = contestant.bound(asked, delta, rng)
        lower, upper, status = _cut(float(found.lower), float(found.upper), low, high)
        if status == Status.OK.name and any(each.name == DOUBTED and each.kind is Kind.DOUBT for each in found.premises):
            status = Status.DOUBTED.name
    except Exception as error:  # whatever a method of others trips over is its answer on this log
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return Bout(
        challenge=challenge.name,
        contestant=contestant.name,
        guarantee=contestant.guarantee.value,
        n=n,
        rows=len(data),
        log=log,
        seed=seed,
        delta=delta,
        lower=lower,
        upper=upper,
        truth=challenge.truth.value,
        margin=challenge.truth.margin,
        low=low,
        high=high,
        status=status,
        reason=reason,
        seconds=process_time() - begin,
        recipe=recipe_mark() if is_own(contestant.name) else "",
    )


def _cut(lower: float, upper: float, low: float, high: float) -> tuple[float, float, str]:
    """Within the range of values, which everybody knows; an end that is no number says nothing."""
    lower, upper = (low if math.isnan(lower) else max(lower, low)), (high if math.isnan(upper) else min(upper, high))
    if lower > upper:
        return math.nan, math.nan, Status.INCONSISTENT.name
    return lower, upper, (Status.VACUOUS if (lower, upper) == (low, high) else Status.OK).name


@dataclass(frozen=True)
class Plan:
    """What is asked.

    Attributes
    ----------
    sizes : tuple of int
    trials : int or None
        Logs per problem and size; None: as many as `Costs` says, by what the first log took.
    delta : float
    """

    sizes: tuple[int, ...] = SIZES
    trials: int | None = None
    delta: float = 0.1

    def __post_init__(self) -> None:
        probability_level(self.delta)
        for n in self.sizes:
            whole(n, "n", least=100)
        if self.trials is not None:
            whole(self.trials, "trials", least=1)
        if not self.sizes:
            raise InvalidInput("At least one `n` is needed. Got none.")


def applicable(challenge: Challenge, contestants: Sequence[Contestant]) -> tuple[Contestant, ...]:
    """Those who have all that they need, as a small log of this problem shows."""
    data = challenge.draw(np.random.default_rng(0), 1_000)
    handed = entry(challenge, data, 0)
    return tuple(contestant for contestant in contestants if contestant.refusal(handed) is None)


@dataclass(frozen=True, eq=False)
class Arena:
    """Challenges, contestants, a plan, a folder that keeps what is finished, and trials that are known from elsewhere."""

    challenges: tuple[Challenge, ...]
    contestants: tuple[Contestant, ...]
    plan: Plan
    folder: Path | None = None
    workers: int | None = None
    known: tuple[Bout, ...] = ()

    def __post_init__(self) -> None:
        for name, listed in (("problem", self.challenges), ("contestant", self.contestants)):
            if not listed:
                raise InvalidInput(f"At least one `{name}` is needed. None can be run here.")

    def costs(self, report: Report | None = None) -> Costs:
        """What a trial takes, by the first log of every cell; small logs first: one that would take too long is left out."""
        cells = self._cells()
        costs = Costs()
        for n in sorted(set(self.plan.sizes)):
            here = [cell for cell in cells if cell[1] == n]
            skipped = [cell for cell in here if costs.too_slow(cell)]
            rows = self._rows({cell: 1 for cell in here if cell not in skipped}, report)
            measured = {(row.challenge, row.n, row.contestant): row.seconds for row in rows}
            costs = costs.knowing(measured, [Unmeasured(*cell) for cell in skipped])
        return costs

    def run(self, phase: Callable[[str], Report | None] = lambda name: None) -> tuple[Bout, ...]:
        """All rows of the plan; what is known, or the folder holds, is not computed again.

        The first logs of all problems come before the second ones, so that a run that was stopped has as many of each.
        """
        if self.plan.trials is not None:
            return self._rows(dict.fromkeys(self._cells(), self.plan.trials), phase("trials"))
        costs = self.costs(phase("the first log of each"))
        return self._rows({cell: costs.trials(cell) for cell in costs.seconds}, phase("trials"))

    def _cells(self) -> list[Cell]:
        return [
            (challenge.name, n, contestant.name)
            for challenge in self.challenges
            for contestant in applicable(challenge, self.contestants)
            for n in dict.fromkeys(self.plan.sizes)
        ]

    def _rows(self, counts: dict[Cell, int], report: Report | None) -> tuple[Bout, ...]:
        delta = self.plan.delta
        store = None if self.folder is None else Store(self.folder, Bout)
        rows = {row.key: row for row in self.known}
        if self.folder is not None:
            rows |= {row.key: row for row in read_bouts(self.folder, self.challenges)}
        meetings = []
        for log in range(max(counts.values(), default=0)):
            lacking: dict[tuple[str, int], list[str]] = {}
            for (challenge, n, contestant), count in counts.items():
                if log < count and (challenge, n, log, contestant, delta) not in rows:
                    lacking.setdefault((challenge, n), []).append(contestant)
            meetings += [Meeting(challenge, n, log, tuple(names), delta) for (challenge, n), names in lacking.items()]
        rows.update({row.key: row for row in run_pieces(meetings, store, workers=self.workers, report=report)})
        return tuple(
            rows[challenge, n, log, contestant, delta]
            for (challenge, n, contestant), count in counts.items()
            for log in range(count)
        )
