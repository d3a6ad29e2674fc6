"""Premises as they are printed: in the words of the file, where its columns have names, and without recipes of many lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from ..problem.assumptions import Range
from ..problem.statements import Statement

LONGEST_CLASS = 80
"""Characters of a class that a printed premise names in full."""

WRAPPERS = ("JoinedFeatures", "WhitenedFeatures", "ScaledFeatures")
"""Kinds of classes that say nothing but how others are put together."""


def premise_text(premise: Statement, names: Sequence[str] = ()) -> str:
    """The sentence; a box of states names its columns, and a class whose recipe is long its kinds."""
    if premise.name == "class":
        return _short_class(premise)
    if premise.name != "state-box" or not names:
        return premise.text
    lows, highs = cast("Range", premise.parameter("box"))
    if len(names) != len(cast("tuple[float, ...]", lows)):
        return premise.text
    sides = zip(names, cast("tuple[float, ...]", lows), cast("tuple[float, ...]", highs), strict=True)
    return f"Every state lies in the declared box: {', '.join(f'{name} in [{low:g}, {high:g}]' for name, low, high in sides)}."


def _short_class(premise: Statement) -> str:
    """A long recipe by its kinds and the number of its coefficients; certificate and JSON hold all of it."""
    known = dict(premise.parameters)
    recipe, columns = str(known.get("class", "")), known.get("columns")
    if len(recipe) <= LONGEST_CLASS or columns is None:
        return premise.text
    kinds = dict.fromkeys(each for each in re.findall(r"([A-Z]\w+)\(", recipe) if each not in WRAPPERS)
    short = f"{' + '.join(kinds)} ({columns} coefficients; `--json` has the whole recipe)"
    return premise.text.replace(recipe, short)
