"""What a radius fixes before the rows that count: one event for all assumptions that are asked of the same data."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidInput
from ..problem.assumptions import Assumptions
from ..statistics.statistic import KernelStatistic
from .cut import Cut
from .row_scale import RowScale
from .sums import PlannedFor


@dataclass(frozen=True, eq=False)
class Plan:
    """Rates, weights and factors of rows. On the event that they fix, weaker assumptions or a smaller delta never narrow.

    Attributes
    ----------
    planned_for : PlannedFor
        What they were fixed for.
    step_range : float
        The range of residuals in units of which rates are fixed.
    share : float
        The failure probability of one martingale for which they were tuned.
    cut : Cut or None
        The weights of the cut, None where there is none.
    scale : RowScale or None
        The factors of rows, None where there are none.
    statistic : KernelStatistic or None
        That of rows with these factors.
    room : bool
        Whether rates leave room for weaker assumptions than those that they were fixed for.
    """

    planned_for: PlannedFor
    step_range: float
    share: float
    cut: Cut | None = None
    scale: RowScale | None = None
    statistic: KernelStatistic | None = None
    room: bool = True

    def refuse_other(self, assumptions: Assumptions) -> None:
        """Raise where the rows themselves, or how far apart features can be, depend on what is assumed now."""
        fixed = self.planned_for.assumptions
        for name in ("discount", "state_box"):
            if getattr(fixed, name) != getattr(assumptions, name):
                raise InvalidInput(f"`plans` were made for another `{name}`: {getattr(fixed, name)!r}. Make them again.")
