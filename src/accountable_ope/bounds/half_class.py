"""What an interval would be, had the class only half of its features: how much the answer hangs on the class.

Every function of half of a class is one of the class, so its interval lies inside, up to the tolerance of the solver. Where it
hardly differs, the features that were taken away decide nothing. Where it is much narrower, they decide much, and so may others
that the class never had. Where the data refute it, they need features of the class, and nothing is told of those it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arguments import checked
from ..classes.halved import half_class
from ..io.display import ends_text
from ..io.shown import Drawn, Shown
from ..problem.statements import Statement, Status, remark
from .fragility import FRAGILE
from .rebound import Rebound

if TYPE_CHECKING:
    from .interval import Interval


@checked
@dataclass(frozen=True)
class HalfClass(Shown, Drawn):
    """An interval beside that of half of its class, every other feature taken away; made by `Interval.half_class`.

    Attributes
    ----------
    features : int
        How many are left, of all classes together.
    of : int
        How many there were.
    declared : tuple of two floats
        The ends with all of them.
    lower, upper : float
        The ends with half of them; NaN where the data refute that.
    status : Status
        What they say then, before any doubt.
    """

    features: int
    of: int
    declared: tuple[float, float]
    lower: float
    upper: float
    status: Status

    @property
    def largest_move(self) -> float:
        """How far an end moves at most, in units of the width; NaN where half of the class is refuted."""
        low, high = self.declared
        if self.status is Status.INCONSISTENT:
            return float("nan")
        moved = max(abs(self.lower - low), abs(self.upper - high))
        return moved / (high - low) if high > low else float("inf") if moved > 0 else 0.0

    @property
    def hangs(self) -> bool:
        """Whether an end moves by more than a tenth of the width; False where half of the class is refuted."""
        return self.largest_move > FRAGILE

    @property
    def statement(self) -> Statement:
        """In words."""
        with_half = f"with every other feature ({self.features} of {self.of})"
        if self.status is Status.INCONSISTENT:
            text = f"The data refute the class {with_half}: they need more of it, and do not tell whether there is enough."
        else:
            hangs = "hangs" if self.hangs else "hardly hangs"
            ends = ends_text(self.lower, self.upper)
            text = (
                f"The interval {hangs} on how many features there are: {ends_text(*self.declared)} would be {ends} {with_half}."
            )
        return remark("half-class", text, ("largest_move", self.largest_move))


def half_class_of(interval: Interval, rebound: Rebound) -> HalfClass | None:
    """The ends with half of every class; None where there is no interval, or a class that has no half."""
    halves = [half_class(each) for each in rebound.evaluation.classes]
    found = [each for each in halves if each is not None]
    if interval.outcome is not Status.OK or len(found) < len(halves):
        return None
    again = rebound.with_classes([each.kept for each in found])
    left, of = sum(each.features for each in found), sum(each.of for each in found)
    return HalfClass(left, of, (interval.lower, interval.upper), again.lower, again.upper, again.outcome)
