"""The earliest rows: those that choose, and that the bound does not use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..validation import FloatArray

EARLY_SHARE = 0.2
"""The share of the rows that choose."""

FEWEST = 20
"""So many rows are needed to choose on."""


@dataclass(frozen=True, eq=False)
class EarlyRows:
    """The first rows of a problem, and those that are left for the bound.

    Attributes
    ----------
    problem : Problem
        The question asked of the first rows alone: whether states may be terminal is as declared, or as they show.
    later : Transitions
        The other rows.
    """

    problem: Problem
    later: Transitions

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
            "Give `features` and `kernel`."
        )
    earlier, later = data.split(EARLY_SHARE)
    # The assumptions as they were declared: that a later row ends an episode is not known yet.
    asked = Problem(earlier, problem.starts, problem.policy, problem.assumptions)
    return EarlyRows(asked, later)
