"""The decision of a comparison: is one policy better than each of the others?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..io.display import ends_text
from ..problem.statements import remark
from .decision import Judgment, Ruling, of_difference
from .interval import Interval

if TYPE_CHECKING:
    from .comparison import Comparison, Difference

ORDER = (Judgment.REFUTED, Judgment.INCONSISTENT, Judgment.DOUBTED, Judgment.UNDECIDED)
"""One policy that is proved to be as good refutes the claim, whatever is open about the others; else the worst pair decides."""


def better_than_each(found: Comparison, name: str) -> Ruling:
    """The claim that this policy is better than every other one of the comparison, at its delta: all differences hold at once."""
    names = [each.name for each in found.contenders]
    if name not in names:
        raise InvalidInput(f"`best` must be one of {names}. Got {name!r}.")
    others = [other for other in names if other != name]
    if not others:
        why = " ".join(each.text for each in found.missing)
        raise InvalidInput(f"There is no other policy here that {name!r} could be better than. {why}".rstrip())
    pairs = [found.difference(name, other) for other in others]
    judgment = _worst([each.judgment for each in pairs])
    by_ends = _worst([of_difference(each.lower, each.upper) for each in pairs])
    claim = f"value of {name} > that of {' and '.join(others) if len(others) < 3 else 'each other policy'}"
    gains = ", ".join(f"{_ends(each)} over {other}" for each, other in zip(pairs, others, strict=True))
    worst = [each for each in found.contenders if each.status.name == judgment.name]
    if worst and not any(isinstance(each.answer, Interval) for each in worst):  # no class is what is doubted
        text = f"{judgment.name}: {claim}. {found.verdict}"
    elif judgment is Judgment.DOUBTED and found.of_class_alone:
        text = f"DOUBTED: {claim}. {judgment.value} By the ends of the differences, {gains}: {by_ends.name}."
    elif judgment is Judgment.DOUBTED:
        text = f"DOUBTED: {claim}. {judgment.value} {found.verdict} As they stand, the differences are {gains}."
    else:
        text = f"{judgment.name}: {claim}, as the differences are {gains}. {judgment.value}"
    named = remark("decision", text, ("best", name))
    unknown = judgment is Judgment.INCONSISTENT or (judgment is Judgment.DOUBTED and not found.of_class_alone)
    return Ruling(judgment, claim, found.delta, None if unknown else by_ends, named)


def _ends(each: Difference) -> str:
    return "none" if math.isnan(each.lower) else ends_text(each.lower, each.upper)


def _worst(judgments: Sequence[Judgment]) -> Judgment:
    return next((each for each in ORDER if each in judgments), Judgment.SUPPORTED)
