"""How an interval would move, had a larger norm been declared: a guess of a norm is the easiest premise to get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from ..io.display import ends_text
from ..problem.statements import Statement, Status, remark
from ..programs.constraint import Role

if TYPE_CHECKING:
    from .interval import Interval

MULTIPLES = (2.0, 5.0)
FRAGILE = 0.1
"""An interval is fragile where an end moves by more than this share of the width."""


@final
class Rebound:
    """Bounds the same rows again under another norm bound."""

    def __init__(self, bound: partial[Interval]) -> None:
        self._bound = bound

    def __call__(self, norm_bound: float) -> Interval:
        return self._bound(norm_bound)


@dataclass(frozen=True)
class LargerNorm:
    """The ends under a larger norm bound."""

    multiple: float
    norm_bound: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Fragility:
    """The ends at twice and five times the declared norm bound.

    Attributes
    ----------
    declared : LargerNorm
        The ends as they are, at a multiple of 1.
    larger : tuple of LargerNorm
    """

    declared: LargerNorm
    larger: tuple[LargerNorm, ...]

    @property
    def largest_move(self) -> float:
        """How far an end moves at most, in units of the declared interval's width."""
        width = self.declared.upper - self.declared.lower
        ends = [(self.declared.lower - each.lower, each.upper - self.declared.upper) for each in self.larger]
        moved = max(0.0, *(move for pair in ends for move in pair))
        return moved / width if width > 0 else float("inf") if moved > 0 else 0.0

    @property
    def fragile(self) -> bool:
        """Whether an end moves by more than a tenth of the width."""
        return self.largest_move > FRAGILE

    @property
    def statement(self) -> Statement:
        """In words."""
        others = " and ".join(f"{ends_text(each.lower, each.upper)} at {each.norm_bound:.4g}" for each in self.larger)
        declared = f"{ends_text(self.declared.lower, self.declared.upper)} at ||Q|| <= {self.declared.norm_bound:.4g}"
        rests = "rests on the declared norm bound" if self.fragile else "hardly rests on the declared norm bound"
        return remark("fragility", f"The interval {rests}: {declared} would be {others}.", ("largest_move", self.largest_move))


def fragility_of(interval: Interval, rebound: Rebound) -> Fragility | None:
    """The ends at larger norm bounds; None where there is no interval, no norm was declared, or the ball decides no end."""
    norm = interval.assumptions.norm_bound
    binds = any(
        end.multiplier(Role.BALL) > 0 for part in interval.certificates if part.consistent for end in (part.lower, part.upper)
    )
    if not isinstance(norm, float) or interval.outcome is not Status.OK or not binds:
        return None
    larger = []
    for multiple in MULTIPLES:
        again = rebound(multiple * norm)
        larger.append(LargerNorm(multiple, multiple * norm, again.lower, again.upper))
    return Fragility(LargerNorm(1.0, norm, interval.lower, interval.upper), tuple(larger))
