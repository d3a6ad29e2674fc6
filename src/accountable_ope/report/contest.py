"""A comparison of several policies as a document for machines."""

from __future__ import annotations

from ..bounds.comparison import Comparison, Contender, Difference
from ..bounds.decision import Ruling
from ..bounds.logging_policy import LoggedValue
from ..problem.statements import texts
from .companions import cross_fitted_document
from .document import Document, finite_or_none, recipe_document
from .verdict import ruling_document


def comparison_document(found: Comparison, ruling: Ruling | None = None) -> Document:
    """What `aope compare --json` prints; ruling: on the claim that was to be decided."""
    return {
        "verdict": {"sentence": found.verdict, "unbeaten": list(found.unbeaten)},
        **({} if ruling is None else {"decision": ruling_document(ruling)}),
        "delta": found.delta,
        "delta_each": found.share,
        "policies": [_contender(each) for each in found.contenders],
        "differences": [_difference(each) for each in found.differences],
        "statements": texts(found.statements),
    }


def _contender(each: Contender) -> Document:
    return {
        "name": each.name,
        "logged": isinstance(each.found, LoggedValue),
        "lower": finite_or_none(each.lower),
        "upper": finite_or_none(each.upper),
        "status": each.status.name,
        "guarantee": each.answer.guarantee.value,
        "by_probabilities": each.by_probabilities,
        "of_class": _of_class(each),
        "doubts": [str(doubt) for doubt in each.answer.doubts],
        "bet": None if each.bet is None else each.bet.text,
        "cross_fitted": None if each.crossed is None else cross_fitted_document(each.crossed),
        "assumed": texts(each.answer.premises),
        "recipe": None if isinstance(each.found, LoggedValue) else recipe_document(each.found.recipe),
    }


def _of_class(each: Contender) -> Document | None:
    """What the class says where it is not what answers."""
    if not each.by_probabilities:
        return None
    return {
        "lower": finite_or_none(each.found.lower),
        "upper": finite_or_none(each.found.upper),
        "status": each.found.status.name,
    }


def _difference(each: Difference) -> Document:
    return {
        "first": each.first,
        "second": each.second,
        "lower": finite_or_none(each.lower),
        "upper": finite_or_none(each.upper),
        "paired": each.paired,
        "first_is_better": each.judgment.name,
    }
