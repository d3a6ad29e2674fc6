"""One row of the arena: one contestant on one log, beside the truth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..problem.statements import Status

REFUSED = "REFUSED"
"""The status where there is no interval since the contestant raised; its sentence is kept."""

Key = tuple[str, int, int, str, float]
"""(challenge, n, log, contestant, delta)."""


class Judgment(Enum):
    """What coverage says of one method on one problem at one size; the value is shown."""

    KEPT = "keeps"
    SHORT = "falls short"
    REFUTED = "refuted"


@dataclass(frozen=True, slots=True)
class Bout:
    """What one contestant said on one log.

    Attributes
    ----------
    challenge, contestant, guarantee : str
        guarantee: what the contestant claims.
    n, rows, log, seed : int
        rows: those of the log, n less what is left of an episode that did not fit.
    delta : float
    lower, upper : float
        Cut to the range of values; NaN where there is no interval.
    truth : float
    margin : float
        How far the truth, where it was simulated, may be from what is taken for it.
    low, high : float
        The range of values.
    status : str
        A name of `Status`, or REFUSED.
    reason : str
        The sentence of a refusal.
    seconds : float
        Of processor time.
    recipe : str
        Of ours: what chose class, ball and radius (`recipe_mark`). Empty for others, and where it was not written down.
    """

    challenge: str
    contestant: str
    guarantee: str
    n: int
    rows: int
    log: int
    seed: int
    delta: float
    lower: float
    upper: float
    truth: float
    margin: float
    low: float
    high: float
    status: str
    reason: str
    seconds: float
    recipe: str = ""

    @property
    def key(self) -> Key:
        """What tells this row from all others."""
        return (self.challenge, self.n, self.log, self.contestant, self.delta)

    @property
    def refused(self) -> bool:
        return self.status == REFUSED

    @property
    def empty(self) -> bool:
        """The log contradicts what was assumed, the contestant says: no value is possible."""
        return self.status == Status.INCONSISTENT.name

    @property
    def held(self) -> bool:
        """There is an interval, and the truth is inside."""
        return self.lower - self.margin <= self.truth <= self.upper + self.margin  # an interval that is none has NaN ends

    @property
    def missed(self) -> bool:
        """There is an interval, and the truth is outside."""
        return not (self.held or self.refused or self.empty)

    @property
    def width(self) -> float:
        """As a share of the range of values; silence is worth as much as the whole range."""
        return 1.0 if self.refused or self.empty else (self.upper - self.lower) / (self.high - self.low)
