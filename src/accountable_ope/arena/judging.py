"""The judge: coverage first, then width, then processor time, then what a method needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from ..laboratory.summary import DOUBT, clopper_pearson
from ..problem.statements import Guarantee, Status
from .bout import Bout, Judgment
from .challenges import CHALLENGE_NAMES, GROUPS, Group, challenge_named
from .entrants import ENTRANT_NAMES, entrant, rests_on_a_wrong_class
from .own import is_own

SHORT = 1e-3
"""A method falls short where so many misses had a smaller probability than this at a rate of delta: an honest one hardly ever
does, in hundreds of cells. A finite-sample claim is refuted at the laboratory's 1e-6."""


ENOUGH = 30
"""Logs of a problem in which an interval half as wide as it should be is found out more often than not."""

TOLERANCE = 1.5
"""On the whole a method that wins anything must not be known to miss more than this many times as often as it promises: on few
logs of one problem even a bad one is not found out."""


@dataclass(frozen=True)
class Standing:
    """All logs of one problem, size, contestant and delta.

    Attributes
    ----------
    challenge, contestant, guarantee : str
    n : int
    delta : float
    logs : int
    held : int
        Intervals that held the truth.
    missed : int
        Intervals that did not, and empty ones where what the contestant rests on is true.
    missed_doubted : int
        How many of these had said that they are doubted.
    vacuous : int
        Intervals that were the whole range of values.
    silent : int
        Logs without an interval: refused, or (where the class that was told is wrong) found to contradict it.
    refused : int
        How many of these were refusals.
    reason : str
        The first sentence of a refusal.
    low, high : float
        The Clopper-Pearson interval of the probability not to miss.
    width : float
        The mean, as a share of the range of values; silence counts as the whole range.
    seconds : float
        Mean processor time.
    false_premise : bool
        Whether the contestant rests on the class that was told, and that does not hold Q.
    chance : float
        The probability of so many misses or more at a rate of delta.
    """

    challenge: str
    contestant: str
    guarantee: str
    n: int
    delta: float
    logs: int
    held: int
    missed: int
    missed_doubted: int
    vacuous: int
    silent: int
    refused: int
    reason: str
    low: float
    high: float
    width: float
    seconds: float
    false_premise: bool
    chance: float

    @property
    def own(self) -> bool:
        return is_own(self.contestant)

    @property
    def fraction(self) -> float:
        """Of logs on which it did not miss."""
        return 1 - self.missed / self.logs

    @property
    def claims(self) -> bool:
        """Whether 1 - delta is claimed at every n, and what the claim rests on is true here."""
        return self.guarantee != Guarantee.ASYMPTOTIC.value and not self.false_premise

    @property
    def judgment(self) -> Judgment:
        if self.chance < DOUBT and self.claims:
            return Judgment.REFUTED
        return Judgment.SHORT if self.chance < SHORT else Judgment.KEPT

    @property
    def kept(self) -> bool:
        return self.judgment is Judgment.KEPT

    @property
    def part(self) -> tuple[str, bool]:
        """Who, and whether it rests on a class that is wrong: what it does there is no news of where the class is right."""
        return self.contestant, self.false_premise

    @property
    def says_something(self) -> bool:
        return self.vacuous + self.silent < self.logs

    @property
    def propensities(self) -> bool:
        """Whether it needs the logger's probabilities."""
        needs = entrant(self.contestant).needs
        return needs.propensities or needs.behavior


def chance_of(misses: int, logs: int, delta: float) -> float:
    """P(at least so many misses) of a method that misses with probability delta."""
    from scipy.stats import binom  # slow to import

    return float(binom.sf(misses - 1, logs, delta))


def standings(rows: Iterable[Bout]) -> tuple[Standing, ...]:
    """One per problem, size, contestant and delta, in the order of problems, sizes and contestants."""
    cells: dict[tuple[str, int, str, float], list[Bout]] = {}
    for row in rows:
        if row.challenge in CHALLENGE_NAMES and row.contestant in ENTRANT_NAMES:
            cells.setdefault((row.challenge, row.n, row.contestant, row.delta), []).append(row)

    def place(key: tuple[str, int, str, float]) -> tuple[int, int, int, float]:
        challenge, n, contestant, delta = key
        return CHALLENGE_NAMES.index(challenge), n, ENTRANT_NAMES.index(contestant), delta

    return tuple(_standing(cells[key]) for key in sorted(cells, key=place))


def _standing(rows: Sequence[Bout]) -> Standing:
    first = rows[0]
    challenge, contestant = challenge_named(first.challenge), entrant(first.contestant)
    false_premise = rests_on_a_wrong_class(contestant, challenge)
    # Where what is assumed is true, an interval that is empty has said something false.
    wrong = [row for row in rows if row.missed or (row.empty and not false_premise)]
    misses, logs = len(wrong), len(rows)
    low, high = clopper_pearson(logs - misses, logs)
    refused = [row for row in rows if row.refused]
    return Standing(
        challenge=first.challenge,
        contestant=first.contestant,
        guarantee=first.guarantee,
        n=first.n,
        delta=first.delta,
        logs=logs,
        held=sum(row.held for row in rows),
        missed=misses,
        missed_doubted=sum(row.status == Status.DOUBTED.name for row in wrong),
        vacuous=sum(row.status == Status.VACUOUS.name for row in rows),
        silent=sum(row.refused or (row.empty and false_premise) for row in rows),
        refused=len(refused),
        reason=refused[0].reason if refused else "",
        low=low,
        high=high,
        width=fmean(row.width for row in rows),
        seconds=fmean(row.seconds for row in rows),
        false_premise=false_premise,
        chance=chance_of(misses, logs, first.delta),
    )


def honest_parts(rows: Sequence[Standing]) -> set[tuple[str, bool]]:
    """Who is honest where what it rests on is true, and who is where it is not."""
    parts: dict[tuple[str, bool], list[Standing]] = {}
    for row in rows:
        parts.setdefault(row.part, []).append(row)
    return {part for part, own in parts.items() if honest(own)}


def honest(rows: Sequence[Standing]) -> bool:
    """Whether all these logs together leave it possible that it misses at most TOLERANCE times as often as promised."""
    logs = sum(row.logs for row in rows)
    _, high = clopper_pearson(logs - sum(row.missed for row in rows), logs)
    return high >= 1 - TOLERANCE * rows[0].delta


@dataclass(frozen=True)
class Cell:
    """One problem at one size: who is narrowest among those that keep their claim there, are honest on the whole, and say
    something; None: nobody."""

    challenge: str
    n: int
    logs: int
    without: Standing | None
    anybody: Standing | None
    steady: Standing | None
    """Without propensities, among those that keep their claim on every problem and at every size that they were asked about."""


@dataclass(frozen=True)
class Career:
    """One contestant over all cells.

    problems: how many cells it was asked about; kept: in how many of them it kept its claim; width: the mean over these cells;
    worst: the cell with the smallest chance.
    """

    contestant: str
    guarantee: str
    needs: tuple[str, ...]
    propensities: bool
    logs: int
    cells: int
    kept: int
    refuted: int
    fraction: float
    low: float
    high: float
    width: float
    seconds: float
    silent: int
    worst: Standing
    honest: bool

    @property
    def steady(self) -> bool:
        """Whether it keeps its claim wherever it was asked, and on the whole."""
        return self.honest and self.kept == self.cells


@dataclass(frozen=True, eq=False)
class Ranking:
    """What came of all of them."""

    rows: tuple[Standing, ...]

    @cached_property
    def careers(self) -> tuple[Career, ...]:
        """In the order of the contestants."""
        return tuple(
            _career([row for row in self.rows if row.contestant == name])
            for name in ENTRANT_NAMES
            if any(row.contestant == name for row in self.rows)
        )

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """In the order of problems and sizes."""
        steady = {career.contestant for career in self.careers if career.steady}
        honest_ones = honest_parts(self.rows)
        found = []
        for challenge, n in dict.fromkeys((row.challenge, row.n) for row in self.rows):
            here = [row for row in self.rows if (row.challenge, row.n) == (challenge, n)]
            fit = [row for row in here if row.part in honest_ones]
            told = [row for row in fit if not row.propensities]
            found.append(
                Cell(
                    challenge,
                    n,
                    min(row.logs for row in here),
                    _narrowest(told),
                    _narrowest(fit),
                    _narrowest([row for row in told if row.contestant in steady]),
                )
            )
        return tuple(found)

    @property
    def won(self) -> tuple[int, int]:
        """(cells in which the narrowest steady method without propensities is ours, cells in which there is one), of those with
        enough logs to tell."""
        decided = [cell.steady for cell in self.cells if cell.steady is not None and cell.logs >= ENOUGH]
        return sum(row.own for row in decided), len(decided)

    @property
    def refuted(self) -> tuple[Standing, ...]:
        return tuple(row for row in self.rows if row.judgment is Judgment.REFUTED)

    @property
    def short(self) -> tuple[Standing, ...]:
        """Below what is claimed or promised for many rows, refuted ones too."""
        return tuple(row for row in self.rows if not row.kept)

    def of_group(self, group: Group) -> tuple[Standing, ...]:
        return tuple(row for row in self.rows if row.challenge in group.challenges)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Those with a row."""
        return tuple(group for group in GROUPS if self.of_group(group))


def _narrowest(rows: Sequence[Standing]) -> Standing | None:
    """Coverage decides who may win, then width; equal ones by processor time, then by what they need to know."""
    fit = [row for row in rows if row.kept and row.missed < row.logs and row.says_something and row.width < 1]
    return min(
        fit,
        key=lambda row: (round(row.width, 6), row.seconds, len(entrant(row.contestant).needs.words)),
        default=None,
    )


def _career(rows: Sequence[Standing]) -> Career:
    first, logs = rows[0], sum(row.logs for row in rows)
    missed = sum(row.missed for row in rows)
    low, high = clopper_pearson(logs - missed, logs)
    return Career(
        contestant=first.contestant,
        guarantee=first.guarantee,
        needs=entrant(first.contestant).needs.words,
        propensities=first.propensities,
        logs=logs,
        cells=len(rows),
        kept=sum(row.kept for row in rows),
        refuted=sum(row.judgment is Judgment.REFUTED for row in rows),
        fraction=1 - missed / logs,
        low=low,
        high=high,
        width=fmean(row.width for row in rows),
        seconds=fmean(row.seconds for row in rows),
        silent=sum(row.silent for row in rows),
        worst=min(rows, key=lambda row: row.chance),
        honest=honest([row for row in rows if not row.false_premise] or rows),
    )
