"""--threshold and --better-than-logged: claims to be decided, and the exit codes that say what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from ..bounds.decision import Judgment, Ruling
from ..bounds.interval import Interval
from ..errors import InvalidInput
from ..validation import number
from .exits import NO_DECISION, REFUTED, SUPPORTED, UNDECIDED

DECISION = Group.create_ordered("Decision")

JUDGED = {
    Judgment.SUPPORTED: SUPPORTED,
    Judgment.REFUTED: REFUTED,
    Judgment.UNDECIDED: UNDECIDED,
    Judgment.DOUBTED: NO_DECISION,
    Judgment.INCONSISTENT: NO_DECISION,
}


@Parameter(name="*", group=DECISION)
@dataclass(frozen=True, kw_only=True)
class DecisionOptions:
    """A claim that the interval is to decide."""

    threshold: Annotated[
        float | None,
        Parameter(
            help="Decide whether the value is at least this. Exit code 0: supported; 3: refuted; 4: undecided; 5: neither."
        ),
    ] = None
    better_than_logged: Annotated[
        bool, Parameter(help="Decide whether the target policy is better than the logged one, by intervals at delta / 2 each.")
    ] = False

    def check(self) -> None:
        """Refuse what makes no claim."""
        if self.threshold is not None:
            number(self.threshold, "threshold")
            if self.better_than_logged:
                raise InvalidInput("--threshold and --better-than-logged exclude each other: one claim at a time.")

    def decide(self, interval: Interval) -> Ruling | None:
        """What the interval says of the claim; None where none was made."""
        if self.threshold is not None:
            return interval.decide(self.threshold)
        return interval.better_than_logged() if self.better_than_logged else None


def decision_code(ruling: Ruling, proved: bool) -> int:
    """The exit code of a decision; proved: whether its intervals can be proved again. Those that cannot decide nothing."""
    return JUDGED[ruling.judgment] if proved else NO_DECISION
