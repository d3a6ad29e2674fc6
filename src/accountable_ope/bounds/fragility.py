"""How an interval would move, had a larger norm been declared: a guess of a norm is the easiest premise to get wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..io.display import ends_text
from ..problem.statements import Statement, Status, remark
from ..programs.constraint import Role
from .rebound import Rebound

if TYPE_CHECKING:
    from .interval import Interval

MULTIPLES = (2.0, 5.0)
FRAGILE = 0.1
"""An interval is fragile where an end moves by more than this share of the width."""


@dataclass(frozen=True)
class LargerNorm:
    """The ends under a larger norm bound, or a larger norm of what features miss."""

    multiple: float
    norm_bound: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Fragility:
    """The ends at twice and five times a declared norm.

    Attributes
    ----------
    declared : LargerNorm
        The ends as they are, at a multiple of 1.
    larger : tuple of LargerNorm
    of_misfit : bool
        Whether the norm is that of what features miss (`misfit_norm`), and not the norm bound.
    """

    declared: LargerNorm
    larger: tuple[LargerNorm, ...]
    of_misfit: bool = False

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
        what, norm = ("norm of what features miss", "a norm of") if self.of_misfit else ("norm bound", "||Q|| <=")
        declared = f"{ends_text(self.declared.lower, self.declared.upper)} at {norm} {self.declared.norm_bound:.4g}"
        rests = f"rests on the declared {what}" if self.fragile else f"hardly rests on the declared {what}"
        return remark("fragility", f"The interval {rests}: {declared} would be {others}.", ("largest_move", self.largest_move))


def fragility_of(interval: Interval, rebound: Rebound) -> Fragility | None:
    """The ends at larger norms; None where there is no interval, no norm was declared, or the ball decides no end.

    Where features miss a part of Q, the norm is that of this part: nobody knows it.
    """
    facts = interval.assumptions
    of_misfit = facts.misfit_norm is not None
    norm = facts.misfit_norm if of_misfit else facts.norm_bound
    ends = [end for part in interval.certificates if part.consistent for end in (part.lower, part.upper)]
    binds = any(end.multiplier(Role.BALL) > 0 or end.multiplier(Role.REST) > 0 for end in ends)
    if not isinstance(norm, float) or interval.outcome is not Status.OK or not binds:
        return None
    larger = []
    for multiple in MULTIPLES:
        wider = multiple * norm
        again = rebound.assuming(replace(facts, misfit_norm=wider)) if of_misfit else rebound(wider)
        larger.append(LargerNorm(multiple, wider, again.lower, again.upper))
    return Fragility(LargerNorm(1.0, norm, interval.lower, interval.upper), tuple(larger), of_misfit)
