"""Doubts: what asymptotic tests say against the premise that the class, within its norm bound, contains Q; and what rows show.

Two kinds are no tests: rows that are copies, and too few rows that show what the target policy does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..arguments import checked
from ..problem.statements import Statement, Status, doubt
from ..statistics.norm_test import NormTest
from ..statistics.specification import SpecificationTest

DOUBTED_AT = 0.01
"""At or below this a premise is doubted: one right class in a hundred, about."""
WEAK_SIGN_AT = 0.05
"""At or below this there is a weak sign against it, as in one right class in twenty."""
LEAST_SHOWN = 1e-12
"""Smaller p-values are not told apart: no limit of many rows holds so far out."""


class DoubtKind(Enum):
    """What is doubted: the class, its norm bound, that rows stand in the log once, or that a fit to so few rows is near Q."""

    CLASS = "class"
    NORM = "norm"
    COPIES = "copies"
    FEW_ROWS = "few-rows"


@checked
@dataclass(frozen=True)
class Doubt:
    """What speaks against a premise, with the p-value of the test that says so. Asymptotic; its absence is no evidence.

    Parameters
    ----------
    kind : DoubtKind
        Whether the class is doubted, the bound on its norm, or the rows.
    p_value : float or None
        In how many data sets chance alone gives as much, were the premise true, for many rows. None of copies and of few rows:
        they are counted, which is no test of chance.
    statement : Statement
        In words.
    weak : bool
        Whether it is a weak sign only: p in (0.01, 0.05].

    Examples
    --------
    >>> from accountable_ope.problem.statements import doubt
    >>> from accountable_ope.radii import Doubt, DoubtKind
    >>> str(Doubt(DoubtKind.CLASS, 0.001, doubt("class", "Q is probably not in the class."), weak=False))
    'Q is probably not in the class.'
    """

    kind: DoubtKind
    p_value: float | None
    statement: Statement
    weak: bool

    def __str__(self) -> str:
        return self.statement.text

    @property
    def text(self) -> str:
        return self.statement.text

    @property
    def order(self) -> float:
        """What says most against the result comes first: copies, then the least p-value, then that rows are few."""
        if self.p_value is None:
            return -1.0 if self.kind is DoubtKind.COPIES else 1.0
        return self.p_value


@dataclass(frozen=True)
class TestedClass:
    """A class by name, with what was tested of it."""

    __test__ = False  # nothing for pytest to collect

    name: str
    specification: SpecificationTest
    norm: NormTest | None

    def doubts(self, others: int) -> tuple[Doubt, ...]:
        """What speaks against it; others: how many classes there are beside it that are not doubted."""
        found = []
        if self.specification.p_value <= WEAK_SIGN_AT:  # NaN is not
            found.append(_class_doubt(self.name, self.specification, others))
        if self.norm is not None and self.norm.p_value <= WEAK_SIGN_AT:
            found.append(_norm_doubt(self.name, self.norm, others))
        return tuple(found)

    @property
    def doubted(self) -> bool:
        """Whether the class or its norm bound is doubted, by more than a weak sign."""
        return any(not each.weak for each in self.doubts(0))


def class_doubts(classes: Sequence[TestedClass], misfit: float = 0.0) -> tuple[Doubt, ...]:
    """What speaks against the classes that are not refuted; nothing where a misfit is declared, as none need contain Q then."""
    if misfit > 0:
        return ()
    undoubted = sum(not each.doubted for each in classes)
    return tuple(each for one in classes for each in one.doubts(undoubted - (not one.doubted)))


def all_doubted(classes: Sequence[TestedClass], misfit: float = 0.0) -> bool:
    """Whether the premise is doubted that one of the classes contains Q: so it is where every one of them is."""
    return misfit == 0 and bool(classes) and all(each.doubted for each in classes)


def copy_doubts(copied: int, rows: int) -> tuple[Doubt, ...]:
    """That so many rows of the log stand in it again; nothing where none does.

    Copies of a log prove a class, and an interval, as little as one witness who is heard sixty times.
    """
    if not copied:
        return ()
    text = (
        f"Some {copied:,} of {rows:,} rows are copies: in long stretches the log repeats earlier rows, number by number. They "
        "count as if others had shown the same again, and an interval of them is too narrow, unless the world and the logger "
        "leave next to nothing to chance. Take copies out of the log."
    )
    return (Doubt(DoubtKind.COPIES, None, doubt("copies", text, ("copied", copied), ("rows", rows)), weak=False),)


def few_row_doubts(showing: int, rows: int, misfit: float = 0.0) -> tuple[Doubt, ...]:
    """That only so many rows show what the target policy does; nothing where `showing` is 0, or a misfit is declared.

    That Q is near a fit is then an assertion about what such rows happened not to show. A class that holds Q whatever it is, a
    table, asserts nothing of the kind.
    """
    if not showing or misfit > 0:
        return ()
    text = (
        f"What the target policy does is shown by few rows: {rows:,} weigh as much as {showing}. That Q is as near to the fit as "
        "is asserted hangs on what they happened to show: an event that they missed can move the value further. Log more of what "
        "the target policy does."
    )
    return (Doubt(DoubtKind.FEW_ROWS, None, doubt("few-rows", text, ("showing", showing), ("rows", rows)), weak=False),)


def shown_status(outcome: Status, *, doubted: bool) -> Status:
    """DOUBTED in place of OK."""
    return Status.DOUBTED if outcome is Status.OK and doubted else outcome


def statements(doubts: Sequence[Doubt]) -> tuple[Statement, ...]:
    """In words."""
    return tuple(each.statement for each in doubts)


def p_text(p_value: float) -> str:
    """A p-value as it is printed."""
    return f"p < {LEAST_SHOWN:g}" if p_value < LEAST_SHOWN else f"p = {p_value:.2g}"


def _class_doubt(name: str, test: SpecificationTest, others: int) -> Doubt:
    p, worst = test.p_value, test.smallest
    rows = "" if test.first_rows is None else f", of the first {test.first_rows:,}"
    assert worst is not None
    scale = "the kernel's own bandwidth" if worst.factor == 1 else f"{worst.factor:.2g} times the kernel's bandwidth"
    evidence = (
        f"the residuals of its best fit are not chance alone (a specification test for many rows{rows}: {p_text(p)}; its "
        f"smallest component has {p_text(worst.p_value)}, from {worst.kind} at {scale})"
    )
    if p <= DOUBTED_AT:
        text = f"Q is probably not in the class of {name}: {evidence}. {_unless(others, 'Q is in the class')}"
        text += " Use more or other features, or declare a misfit."
    else:
        text = f"A weak sign that Q is not in the class of {name}: {evidence}. One right class in twenty shows as much by chance."
    return Doubt(DoubtKind.CLASS, p, doubt("class", text, ("class", name), ("p_value", p)), p > DOUBTED_AT)


def _norm_doubt(name: str, test: NormTest, others: int) -> Doubt:
    p = test.p_value
    evidence = (
        f"the class of {name} fits the data better beyond it than chance alone would have it (for many rows: {p_text(p)}; its "
        f"best fit has norm {test.norm:.3g})"
    )
    if p <= DOUBTED_AT:
        text = f"||Q|| is probably larger than the declared bound {test.norm_bound:.4g}: {evidence}."
        text += f" {_unless(others, 'the bound does')} Declare a larger one."
    else:
        text = f"A weak sign that ||Q|| is larger than the declared bound {test.norm_bound:.4g}: {evidence}."
    parameters = (("class", name), ("p_value", p), ("norm_bound", test.norm_bound), ("norm", test.norm))
    return Doubt(DoubtKind.NORM, p, doubt("norm", text, *parameters), p > DOUBTED_AT)


def _unless(others: int, condition: str) -> str:
    if others:
        return "The interval holds all the same if Q is in another of its classes, which no test doubts."
    return f"The interval holds only if {condition}."
