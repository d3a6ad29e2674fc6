"""How a report came about: when, by which version, with which command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

PACKAGE = "accountable-ope"


@dataclass(frozen=True)
class Made:
    """What stands at the end of a page; command: as it would be typed, empty where there was none."""

    date: str
    version: str
    command: str

    @classmethod
    def now(cls, words: Sequence[str] = ()) -> Made:
        """At this minute, in UTC; words: what was typed after `aope`."""
        try:
            found = version(PACKAGE)
        except PackageNotFoundError:  # run from its sources
            found = ""
        return cls(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", found, shlex.join(["aope", *words]) if words else "")
