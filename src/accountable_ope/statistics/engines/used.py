"""Which engine made the sums of a result, and why."""

from __future__ import annotations

from dataclasses import dataclass

from ...arguments import checked
from ...errors import InvalidInput


@checked
@dataclass(frozen=True)
class EngineUsed:
    """Which engine made the sums of a result, and why: `Interval.engine`. No part of what a result proves.

    Parameters
    ----------
    name : str
        "rows", "tiles" or "cuda" of this machine, "dask", or what the type of an engine of your own is called.
    reason : str
        A sentence: why this one, or which part of the work ran where.

    Raises
    ------
    InvalidInput
        Where either is empty.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> print(aope.engines.EngineUsed("tiles", "It was asked for."))
    Engine tiles: It was asked for.
    """

    name: str
    reason: str

    def __post_init__(self) -> None:
        for name, text in (("name", self.name), ("reason", self.reason)):
            if not text.strip():
                raise InvalidInput(f"`{name}` must be some text. Got {text!r}.")

    def __str__(self) -> str:
        return f"Engine {self.name}: {self.reason}"
