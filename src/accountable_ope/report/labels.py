"""Premises in the words of the file, where its columns have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..problem.assumptions import Range
from ..problem.statements import Statement


def premise_text(premise: Statement, names: Sequence[str] = ()) -> str:
    """The sentence; a box of states names its columns."""
    if premise.name != "state-box" or not names:
        return premise.text
    lows, highs = cast("Range", premise.parameter("box"))
    if len(names) != len(cast("tuple[float, ...]", lows)):
        return premise.text
    sides = zip(names, cast("tuple[float, ...]", lows), cast("tuple[float, ...]", highs), strict=True)
    return f"Every state lies in the declared box: {', '.join(f'{name} in [{low:g}, {high:g}]' for name, low, high in sides)}."
