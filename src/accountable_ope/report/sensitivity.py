"""Curves, least norms and flip points as documents for machines."""

from __future__ import annotations

from collections.abc import Sequence

from ..bounds.findings import Curve, Flip, LeastNorm, Parameter, RowsNeeded
from ..bounds.misfit_norms import MisfitNorms
from ..problem.statements import texts
from .document import Document, finite_or_none


def curve_document(curve: Curve) -> Document:
    """The interval at each value of one parameter."""
    return {
        "over": curve.parameter.value,
        "baseline": curve.baseline,
        "rows": [
            {
                "value": row.value,
                "lower": finite_or_none(row.lower),
                "upper": finite_or_none(row.upper),
                "status": row.status.name,
                "baseline": row.baseline,
            }
            for row in curve.rows()
        ],
    }


def least_norm_document(least: LeastNorm) -> Document:
    """What a norm exceeds."""
    return {"value": least.value, "consistent": least.consistent}


def flip_document(flip: Flip) -> Document:
    """Where a decision stops being supported."""
    return {
        "over": flip.parameter.value,
        "threshold": flip.threshold,
        "outcome": flip.outcome.name,
        "advice": flip.outcome.value,
        "value": flip.value,
        "lower": flip.lower,
        "beyond": flip.beyond,
        "baseline": flip.baseline,
        "baseline_supports": flip.baseline_supports,
    }


def misfit_norms_document(found: MisfitNorms) -> Document:
    """What the declared norm of what features miss decides."""
    return {
        "least": least_norm_document(found.least),
        "curve": curve_document(found.curve),
        "flip": None if found.flip is None else flip_document(found.flip),
        "text": texts(found.statements),
    }


def sensitivity_document(
    curves: Sequence[Curve], least: Sequence[LeastNorm], flips: Sequence[Flip], rows: RowsNeeded | None
) -> Document:
    """What is added to the document of the interval."""
    found = {each.parameter: least_norm_document(each) for each in least}
    return {
        "curves": [curve_document(curve) for curve in curves],
        "least_norm": found.get(Parameter.NORM_BOUND),
        "least_misfit_norm": found.get(Parameter.MISFIT_NORM),
        "flips": [flip_document(flip) for flip in flips],
        "rows_needed": None if rows is None else rows_document(rows),
    }


def rows_document(rows: RowsNeeded) -> Document:
    """How many rows a wanted width takes."""
    return {
        "width": rows.width,
        "outcome": rows.outcome.name,
        "advice": rows.outcome.value,
        "rows": rows.rows,
        "slower": rows.slower,
        "floor": rows.floor,
        "points": [{"rows": each.rows, "width": finite_or_none(each.width), "status": each.status.name} for each in rows.points],
    }
