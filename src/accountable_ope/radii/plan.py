"""What a radius fixes before the rows that count: one event for all assumptions that are asked of the same data."""

from __future__ import annotations

from dataclasses import dataclass

from .cut import Cut


@dataclass(frozen=True, eq=False)
class Plan:
    """Rates and weights. On the event that they fix, a weaker assumption or a smaller delta never narrows the interval.

    Attributes
    ----------
    step_range : float
        The range of residuals in units of which rates are fixed.
    delta : float
        The failure probability for which they were tuned.
    cut : Cut or None
        The weights of the cut, None where there is none.
    """

    step_range: float
    delta: float
    cut: Cut | None = None
