"""Candidates for the class, judged by rows that they were not fitted to, and the plain rule that chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..problem.statements import Statement, remark
from .early_fit import HeldOut, Judge


@checked
@dataclass(frozen=True)
class Judged:
    """A candidate for the class, and what later ones of the early rows say of its fit to the first of them.

    Attributes
    ----------
    name : str
        Such as "network + trees".
    columns : int
        How many features it has.
    misfit : float
        sqrt(max(loss, 0) / mean K) over the range of values: an error of this size in every step has the same loss.
    noise : float
        The same of what chance alone gives: a misfit below it is none that these rows can see.
    loss, deviation : float
        The kernel loss (U-statistic) of the rows held out, and its standard deviation.
    chance : float
        What its standard deviation would be by chance alone.
    ridge : float
        Of the fit.
    chosen : bool
        Whether it is the class of the bound.

    Examples
    --------
    >>> from accountable_ope.defaults import Judged
    >>> print(Judged("cosines", 120, 0.0012, 0.0004, loss=1e-5, deviation=2e-6, chance=1e-6, ridge=1e-3, chosen=True))
    cosines (120 columns): 0.12% (chance alone: 0.04%), chosen
    """

    name: str
    columns: int
    misfit: float
    noise: float
    loss: float
    deviation: float
    chance: float
    ridge: float
    chosen: bool = False

    def __str__(self) -> str:
        text = f"{self.name} ({self.columns} columns): {100 * self.misfit:.2g}% (chance alone: {100 * self.noise:.2g}%)"
        return f"{text}, chosen" if self.chosen else text

    def times(self, squared_units: float) -> Judged:
        """The same with losses in other units."""
        loss, deviation, chance = (squared_units * each for each in (self.loss, self.deviation, self.chance))
        return replace(self, loss=loss, deviation=deviation, chance=chance)

    @property
    def in_deviations(self) -> float:
        """The loss in units of what chance alone gives: about 1 or less where the class fits."""
        return self.loss / self.chance

    @classmethod
    def of(cls, name: str, columns: int, found: HeldOut, judge: Judge, span: float) -> Judged:
        """In units that a person can read."""
        size = max(judge.overlap, 1e-300)
        misfit, noise = (math.sqrt(max(each, 0.0) / size) / span for each in (found.loss, found.chance))
        return cls(name, columns, misfit, noise, found.loss, found.deviation, found.chance, found.ridge)


ENOUGH, STEP = 40, 20
"""Fewer columns than ENOUGH are too few to choose, and STEP columns more or less make no difference by themselves."""

UNITS = (
    "error: of Q, as a share of the range of values; the same in every step it would show as much as these rows do. "
    "chance alone: what the right class would show on so few rows; an error up to about that size cannot be seen."
)
"""What the columns of the table say."""

RULE = (
    f"Of those with at least {ENOUGH} columns, or as many as there are, and within one standard deviation of the least, one with "
    f"fewest columns is chosen, counted by {STEP}; between these the least decides."
)


def choose(judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """The table with one row marked: of those within one standard deviation of the least loss, one with fewest columns.

    Only those with at least `ENOUGH` columns count, or with as many as any has: rows held out are few, and the rows of the bound
    will see what they cannot. The deviation is that of the least loss. Columns are counted by `STEP`, so that one more, such as
    the values of trees, is no reason against a class; between equally many the smaller loss decides, then the order of the table.
    """
    fewest = min(ENOUGH, max(each.columns for each in judged))
    large = [index for index, each in enumerate(judged) if each.columns >= fewest]
    least = judged[min(large, key=lambda index: (judged[index].loss, index))]
    near = [index for index in large if judged[index].loss <= least.loss + least.deviation]
    best = min(near, key=lambda index: (judged[index].columns // STEP, judged[index].loss, index))
    return tuple(replace(each, chosen=index == best) for index, each in enumerate(judged))


def table_words(judged: Sequence[Judged], rows: int) -> Statement:
    """The table as one remark, the least misfit first."""
    order = np.argsort([each.loss for each in judged], kind="stable").tolist()
    listed = "; ".join(str(judged[index]) for index in order)
    text = (
        f"Candidates for the class, fitted to the first of these rows and judged by the last {rows:,}, each with its error: "
        f"{listed}. {UNITS[0].upper()}{UNITS[1:]} {RULE}"
    )
    chosen = next(each for each in judged if each.chosen)
    return remark("candidates", text, ("candidates", len(judged)), ("chosen", chosen.name), ("judged_by", rows))
