"""Which method in which situation: what the judge's rows say to somebody who has a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..problem.statements import Guarantee
from .challenge import Told
from .challenges import challenge_named
from .judging import Ranking, Standing, honest, honest_parts


@dataclass(frozen=True)
class Situation:
    """What is known of a log.

    propensities: whether the probabilities of its actions are recorded; trusted: whether there is a class that holds Q. Where
    there is none, a wrong one may have been told: whoever rests on it was not asked wherever there is none to rest on.
    """

    propensities: bool
    trusted: bool

    def covers(self, name: str) -> bool:
        """Whether a challenge is one of these."""
        challenge = challenge_named(name)
        return (challenge.recorded, challenge.told is Told.RIGHT) == (self.propensities, self.trusted)

    @property
    def words(self) -> tuple[str, str]:
        return ("recorded" if self.propensities else "not recorded", "yes" if self.trusted else "no")


@dataclass(frozen=True)
class Choice:
    """A method with its mean width over the problems of a situation."""

    contestant: str
    width: float


@dataclass(frozen=True)
class Advice:
    """Who is narrowest on average in a situation at a size, of those that kept their claim on all of its problems, and together.

    proved: among methods with a finite-sample claim; any: among all. None: nobody. logs: the fewest that any cell of these two
    rests on; 0 where there is nobody.
    """

    situation: Situation
    n: int
    problems: int
    logs: int
    proved: Choice | None
    any: Choice | None


SITUATIONS = tuple(Situation(known, trusted) for known in (False, True) for trusted in (True, False))


def advice(ranking: Ranking) -> tuple[Advice, ...]:
    """A row per situation and size that was run."""
    found = []
    fit = honest_parts(ranking.rows)
    for situation in SITUATIONS:
        own = [row for row in ranking.rows if situation.covers(row.challenge)]
        for n in sorted({row.n for row in own}):
            here = [row for row in own if row.n == n]
            problems = len({row.challenge for row in here})
            here = [row for row in here if row.part in fit]
            proved = [row for row in here if row.guarantee != Guarantee.ASYMPTOTIC.value]
            best, limit = _choice(proved, problems), _choice(here, problems)
            names = {choice.contestant for choice in (best, limit) if choice is not None}
            logs = min((row.logs for row in here if row.contestant in names), default=0)
            found.append(Advice(situation, n, problems, logs, best, limit))
    return tuple(found)


def _choice(rows: Sequence[Standing], problems: int) -> Choice | None:
    """Of those that were asked about every problem, kept their claim in each, and said something somewhere."""
    by: dict[str, list[Standing]] = {}
    for row in rows:
        by.setdefault(row.contestant, []).append(row)
    fit = [
        Choice(name, fmean(row.width for row in own))
        for name, own in by.items()
        if len(own) == problems and all(row.kept for row in own) and honest(own) and any(row.says_something for row in own)
    ]
    return min(fit, key=lambda choice: choice.width, default=None)
