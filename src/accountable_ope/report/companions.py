"""Companions of an interval as documents for machines: the cross-fitted interval, and the value of the logging policy."""

from __future__ import annotations

from ..bounds.cross_fitted import CrossFittedInterval
from ..bounds.logging_policy import LoggedValue
from ..problem.statements import texts
from .document import Document, finite_or_none


def cross_fitted_document(interval: CrossFittedInterval) -> Document:
    """The cross-fitted interval: numbers, status, guarantee, what was assumed and what is doubted."""
    return {
        "estimand": "Value of the target policy",
        "method": "cross-fitted doubly robust",
        "estimate": finite_or_none(interval.estimate),
        "standard_error": finite_or_none(interval.standard_error),
        "start_error": finite_or_none(interval.start_error),
        "unclipped": [finite_or_none(end) for end in interval.unclipped],
        "episodes": interval.episodes,
        "blocks": interval.blocks,
        "effective_sample_size": interval.effective_sample_size,
        "largest_share": interval.largest_share,
        "coordinates": interval.coordinates,
        **_common(interval),
    }


def logged_value_document(value: LoggedValue) -> Document:
    """The value of the logging policy: both intervals, and what they rest on."""
    return {
        "estimand": "Value of the logging policy",
        "method": "betting on returns",
        "estimate": value.estimate,
        "standard_error": value.standard_error,
        "large_sample": list(value.large_sample),
        "episodes": value.episodes,
        "truncated": value.truncated,
        "truncation": value.truncation,
        "return_range": list(value.return_range),
        **_common(value),
    }


def _common(result: CrossFittedInterval | LoggedValue) -> Document:
    return {
        "lower": result.lower,
        "upper": result.upper,
        "normalized": list(result.normalized),
        "delta": result.delta,
        "guarantee": result.guarantee.value,
        "status": result.status.name,
        "advice": result.status.value,
        "transitions": result.count,
        "assumed": texts(result.premises),
        "doubts": texts(result.doubts),
    }
