"""The earliest rows: those that choose, and that the bound does not use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidInput
from ..problem.assumptions import Assumptions, Range
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..validation import FloatArray

EARLY_SHARE = 0.2
"""The share of the rows that choose."""

FEWEST = 20
"""So many rows are needed to choose on."""


@dataclass(frozen=True)
class Units:
    """Rewards in units of their range, so that nothing that is chosen depends on units: value = reference + size * counted.

    Attributes
    ----------
    size : float
        The length of the declared range of rewards; where it has none, the largest of them.
    reference : float
        The value from which others are counted; 0 unless all are far from 0 and no episode ends.
    """

    size: float
    reference: float

    @classmethod
    def of(cls, problem: Problem) -> Units:
        low, high = problem.assumptions.reward_range
        return cls(high - low or abs(high) or 1.0, problem.ranges.reference(terminates=problem.terminates))

    def counted(self, problem: Problem) -> Problem:
        """The same question in these units."""
        if self == Units(1.0, 0.0):
            return problem
        facts = problem.assumptions
        paid = (1 - facts.discount) * self.reference if self.reference else 0.0
        data = problem.data.paying((problem.data.rewards - paid) / self.size)
        return Problem(data, problem.starts, problem.policy, self._assumptions(facts, paid))

    def _assumptions(self, facts: Assumptions, paid: float) -> Assumptions:
        (low, high), values, step = facts.reward_range, facts.value_range, facts.one_step_range
        counted: Range | None = None
        if values is not None:
            counted = ((values[0] - self.reference) / self.size, (values[1] - self.reference) / self.size)
        return replace(
            facts,
            reward_range=((low - paid) / self.size, (high - paid) / self.size),
            value_range=counted,
            one_step_range=None if step is None else step / self.size,
            misfit=facts.misfit / self.size,
        )


@dataclass(frozen=True, eq=False)
class EarlyRows:
    """The first rows of a problem, and those that are left for the bound.

    Attributes
    ----------
    problem : Problem
        The question asked of the first rows alone, rewards in `units`: whether states may be terminal is as declared, or as they
        show.
    asked : Problem
        The same in the units of the log.
    units : Units
    later : Transitions
        The other rows.
    """

    problem: Problem
    asked: Problem
    units: Units
    later: Transitions

    @classmethod
    def of(cls, asked: Problem, later: Transitions) -> EarlyRows:
        """The question in units of the range of its rewards."""
        units = Units.of(asked)
        return cls(units.counted(asked), asked, units, later)

    @property
    def data(self) -> Transitions:
        return self.problem.data

    @property
    def points(self) -> FloatArray:
        """(s, a) of the first rows."""
        return self.problem.experience.points

    @property
    def silent(self) -> bool:
        """Whether nothing that could decide a value was logged: all rewards are the same, and no episode ended."""
        rewards, data = self.data.rewards, self.data
        return bool(np.ptp(rewards) == 0) and not data.terminated.any()


def early_rows(problem: Problem) -> EarlyRows:
    """The earliest fifth of the rows, by whole episodes where they are known.

    How many there are depends on the number of rows and on labels of episodes up to the cut: no later row has a part in it.

    Raises
    ------
    InvalidInput
        Where there are too few rows to choose on.
    """
    data = problem.data
    if EARLY_SHARE * len(data) < FEWEST:
        raise InvalidInput(
            f"With {len(data)} rows there are too few to choose a class on: a fifth of them must be at least {FEWEST}. "
            "Log more, or give `features` and `kernel` (--features, --bandwidth)."
        )
    earlier, later = data.split(EARLY_SHARE)
    # The assumptions as they were declared: that a later row ends an episode is not known yet.
    asked = Problem(earlier, problem.starts, problem.policy, problem.assumptions)
    return EarlyRows.of(asked, later)
