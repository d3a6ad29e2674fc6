"""Intervals of other kinds as documents for machines: companions of an interval, asymptotic ones, and importance sampling."""

from __future__ import annotations

from ..baselines.interval import BaselineInterval
from ..bounds.anderson_rubin import AndersonRubinInterval
from ..bounds.cross_fitted import CrossFittedInterval
from ..bounds.logging_policy import LoggedValue
from ..bounds.sandwich import SandwichInterval
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


def _common(result: CrossFittedInterval | LoggedValue | SandwichInterval | AndersonRubinInterval) -> Document:
    return {
        "lower": finite_or_none(result.lower),
        "upper": finite_or_none(result.upper),
        "normalized": [finite_or_none(end) for end in result.normalized],
        "delta": result.delta,
        "guarantee": result.guarantee.value,
        "status": result.status.name,
        "advice": result.status.value,
        "transitions": result.count,
        "assumed": texts(result.premises),
        "doubts": [str(each) for each in result.doubts],
    }


def sandwich_document(interval: SandwichInterval) -> Document:
    """The sandwich interval: numbers, status, guarantee, what was assumed and what is doubted."""
    return {
        "estimand": "Value of the target policy",
        "method": "sandwich",
        "estimate": finite_or_none(interval.estimate),
        "standard_error": finite_or_none(interval.standard_error),
        "start_error": finite_or_none(interval.start_error),
        "unclipped": [finite_or_none(end) for end in interval.unclipped],
        "condition": finite_or_none(interval.condition),
        "unseen": interval.unseen,
        "features": interval.features,
        **_common(interval),
    }


def anderson_rubin_document(interval: AndersonRubinInterval) -> Document:
    """The Anderson-Rubin interval: numbers, status, guarantee, what was assumed and what is doubted."""
    return {
        "estimand": "Value of the target policy",
        "method": "Anderson-Rubin",
        "identified": interval.identified,
        "smallest_eigenvalue": finite_or_none(interval.smallest_eigenvalue),
        "relative_eigenvalue": finite_or_none(interval.relative_eigenvalue),
        "start_error": finite_or_none(interval.start_error),
        "unclipped": [finite_or_none(end) for end in interval.unclipped],
        "features": interval.features,
        **_common(interval),
    }


def baseline_document(interval: BaselineInterval) -> Document:
    """Importance sampling of whole episodes."""
    return {
        "estimand": interval.estimand,
        "method": interval.method,
        "lower": finite_or_none(interval.lower),
        "upper": finite_or_none(interval.upper),
        "delta": interval.delta,
        "guarantee": interval.guarantee.value,
        "status": interval.status.name,
        "advice": interval.advice.text,
        "episodes": interval.episodes,
        "transitions": interval.count,
        "return_range": list(interval.return_range),
        "assumed": texts(interval.premises),
        "doubts": texts(interval.doubts),
    }
