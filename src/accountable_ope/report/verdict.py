"""The verdict, the decision behind it and the breakdown of a width as documents for machines."""

from __future__ import annotations

from ..bounds.breakdown import Altered, Breakdown
from ..bounds.companions import Companions
from ..bounds.decision import Ruling
from ..bounds.verdict import Verdict
from ..problem.statements import Statement, texts
from .companions import baseline_document, cross_fitted_document, logged_value_document
from .document import Document, finite_or_none


def verdict_document(verdict: Verdict) -> Document:
    """Both lines, the decision, and the clauses with their numbers."""
    return {
        "sentence": verdict.sentence,
        "second_line": verdict.second_line,
        "decision": None if verdict.decision is None else ruling_document(verdict.decision),
        "advice": verdict.advice.text,
        "rows_wanted": None if verdict.wanted is None else verdict.wanted.text,
        "parts": [_statement(each) for each in verdict.parts],
    }


def ruling_document(ruling: Ruling) -> Document:
    """What the data say of a claim."""
    return {
        "claim": ruling.claim,
        "judgment": ruling.judgment.name,
        "if_the_class_holds": None if ruling.if_true is None else ruling.if_true.name,
        "delta": ruling.delta,
        "text": ruling.statement.text,
    }


def companions_document(companions: Companions) -> Document:
    """The logged policy's value and intervals that need no class, null where there is none, and why."""
    logged, crossed, weighed = companions.logged, companions.crossed, companions.weighed
    return {
        "logged_value": None if logged is None else logged_value_document(logged),
        "cross_fitted": None if crossed is None else cross_fitted_document(crossed),
        "by_probabilities": None if weighed is None else baseline_document(weighed) | {"leads": companions.leads},
        "left_out": texts(companions.missing),
    }


def breakdown_document(breakdown: Breakdown | None) -> Document:
    """What the width is made of, and what would narrow it."""
    return {"breakdown": None if breakdown is None else width_document(breakdown)}


def width_document(breakdown: Breakdown) -> Document:
    """One breakdown, where there is one."""
    rows = breakdown.rows
    return {
        "width": breakdown.width,
        "start_error": breakdown.start_error,
        "parts": [_altered(each) for each in breakdown.parts],
        "remedies": [_altered(each) for each in breakdown.remedies],
        "rows_for_half": None if rows is None else {"outcome": rows.outcome.name, "rows": rows.rows, "width": rows.width},
        "text": texts(breakdown.statements),
    }


def _altered(each: Altered) -> Document:
    return {
        "name": each.name,
        "text": each.text,
        "lower": finite_or_none(each.lower),
        "upper": finite_or_none(each.upper),
        "status": each.status.name,
        "saved": finite_or_none(each.saved),
    }


def _statement(statement: Statement) -> Document:
    numbers = {name: _plain(value) for name, value in statement.parameters}
    return {"name": statement.name, "text": statement.text, **numbers}


def _plain(value: object) -> object:
    if isinstance(value, float):
        return finite_or_none(value)
    return value if isinstance(value, int | str | None) else str(value)
