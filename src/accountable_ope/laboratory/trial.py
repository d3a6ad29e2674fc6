"""One row of the laboratory's table: one method on one data set."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import checked

Key = tuple[str, int, int, str, float]
"""(family, n, trial, method, delta)."""


@checked
@dataclass(frozen=True, slots=True)
class Trial:
    """One interval, and whether it holds the truth.

    Attributes
    ----------
    family, data_kind, method, guarantee : str
    n, trial, seed : int
    delta : float
    lower, upper, truth : float
        Not normalized; both ends are NaN where no function of the class was consistent with the data.
    covered : bool
        Whether the interval holds the truth.
    width : float
        Normalized, (1 - discount) times the length of the interval.
    status : str
    seconds : float
        What the method would take alone, in one thread, without the drawing of the data.
    """

    family: str
    data_kind: str
    method: str
    guarantee: str
    n: int
    trial: int
    seed: int
    delta: float
    lower: float
    upper: float
    truth: float
    covered: bool
    width: float
    status: str
    seconds: float

    @property
    def key(self) -> Key:
        """What tells this trial from all others."""
        return (self.family, self.n, self.trial, self.method, self.delta)
