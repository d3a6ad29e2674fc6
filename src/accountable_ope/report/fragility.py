"""What an interval hangs on, its declared norm and its class: in words, and as a document for machines."""

from __future__ import annotations

from ..bounds.half_class import HalfClass
from ..bounds.interval import Interval
from ..problem.statements import Status
from .document import Document, finite_or_none

FRAGILITY_ROWS = 10_000
"""With so many rows, all classes together, larger norms and half of the class are tried as well: about three more bounds."""


def shown_fragility(interval: Interval) -> tuple[str, ...]:
    """Sentences on what moves an end by more than a tenth of the width; none of an interval that is not OK.

    One that is doubted rests on worse than its norm.
    """
    if not _tried(interval) or interval.status is not Status.OK:
        return ()
    norm, half = interval.fragility(), interval.half_class()
    found = [] if norm is None or not norm.fragile else [str(norm.statement)]
    return tuple(found if half is None or not half.hangs else [*found, str(half.statement)])


def fragility_document(interval: Interval) -> Document:
    """The ends at larger norms and with half of the class; null where that was not tried or there is none."""
    norm, half = (interval.fragility(), interval.half_class()) if _tried(interval) else (None, None)
    larger = [] if norm is None else [norm.declared, *norm.larger]
    return {
        "norm": None
        if norm is None
        else {
            "of": "misfit_norm" if norm.of_misfit else "norm_bound",
            "fragile": norm.fragile,
            "largest_move": finite_or_none(norm.largest_move),
            "ends": [
                {"norm": each.norm_bound, "lower": finite_or_none(each.lower), "upper": finite_or_none(each.upper)}
                for each in larger
            ],
            "text": str(norm.statement),
        },
        "half_class": None if half is None else half_class_document(half),
    }


def half_class_document(half: HalfClass) -> Document:
    """The ends with half of the class."""
    return {
        "features": half.features,
        "of": half.of,
        "lower": finite_or_none(half.lower),
        "upper": finite_or_none(half.upper),
        "status": half.status.name,
        "hangs": half.hangs,
        "largest_move": finite_or_none(half.largest_move),
        "text": str(half.statement),
    }


def _tried(interval: Interval) -> bool:
    return len(interval.certificates) * interval.count <= FRAGILITY_ROWS
