"""Statements that a result makes: what it rests on, what speaks against it, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..arguments import checked


class Guarantee(Enum):
    """How strong the statement is."""

    FINITE_SAMPLE = "finite-sample"
    FINITE_SAMPLE_DECLARED_NOISE = "finite-sample under a declared noise assumption"
    ASYMPTOTIC = "asymptotic"


class Status(Enum):
    """What the interval says; the value is the advice."""

    OK = "The data and the assumptions bound the value."
    DOUBTED = (
        "The data and the assumptions bound the value, but the data speak against an assumption: the class, or its norm bound, "
        "probably does not contain Q, rows of the log are copies of others, or too few show what the policy does. See the doubts."
    )
    VACUOUS = (
        "The interval is the whole range of values that the declared ranges allow: the data add nothing at this radius. "
        "More transitions, a smaller discount, a tighter value range or norm bound, or another radius would. For this number of "
        "rows the honest answer may be a trial (a randomized experiment)."
    )
    INCONSISTENT = (
        "No function of the class within the norm bound is consistent with the data at this delta: the class does not contain Q, "
        "or the bound is too small. Use more or other features, or a larger norm bound."
    )


class Kind(Enum):
    """What a statement is."""

    PREMISE = "premise"
    DOUBT = "doubt"
    ADVICE = "advice"
    REMARK = "remark"


@checked
@dataclass(frozen=True)
class Statement:
    """One sentence of a result, with its meaning beside it so that nobody has to search the text.

    Parameters
    ----------
    kind : Kind
        Premise, doubt, advice or remark.
    name : str
        Which one of its kind: "order", "rewards", "class", "norm", ...
    text : str
        The sentence.
    parameters : tuple of (str, value)
        The numbers and names that the sentence mentions.

    Examples
    --------
    >>> from accountable_ope.problem.statements import premise
    >>> rows = premise("earlier-rows", "The first 200 rows chose the class.", ("rows", 200))
    >>> rows.parameter("rows"), str(rows)
    (200, 'The first 200 rows chose the class.')
    """

    kind: Kind
    name: str
    text: str
    parameters: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Statement({self.kind.value}, {self.name}: {self.text!r})"

    def parameter(self, name: str) -> object:
        """The value of one parameter."""
        return next(value for known, value in self.parameters if known == name)


def premise(name: str, text: str, *parameters: tuple[str, object]) -> Statement:
    """Something that must be true for the guarantee."""
    return Statement(Kind.PREMISE, name, text, parameters)


def doubt(name: str, text: str, *parameters: tuple[str, object]) -> Statement:
    """Something that speaks against a premise."""
    return Statement(Kind.DOUBT, name, text, parameters)


def advice(name: str, text: str, *parameters: tuple[str, object]) -> Statement:
    """What to do next."""
    return Statement(Kind.ADVICE, name, text, parameters)


def remark(name: str, text: str, *parameters: tuple[str, object]) -> Statement:
    """How a result came about, where that is worth a sentence."""
    return Statement(Kind.REMARK, name, text, parameters)


def texts(statements: Iterable[Statement]) -> list[str]:
    """The sentences alone."""
    return [statement.text for statement in statements]


def range_text(low: float, high: float, digits: int = 6) -> str:
    """[low, high] with so many digits, and more where both ends would look alike: far from 0, [1000000, 1000001]."""
    most, length = max(abs(low), abs(high)), high - low
    if 0 < length < math.inf and most < math.inf:
        rounding = 0.5 * 10.0 ** (math.floor(math.log10(most)) + 1 - digits)
        if rounding > 0.1 * length:
            digits = min(17, math.ceil(math.log10(most) - math.log10(length)) + 3)
    return f"[{low:.{digits}g}, {high:.{digits}g}]"
