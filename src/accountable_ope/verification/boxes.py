"""Boxes: values of the true Q lie in their range on average over the points, at single points, and residuals in single rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..validation import FloatArray
from .dual import UNIT, Bound, Form
from .evidence import Known
from .facts import ClassFacts
from .record import AveragedRecord, Refuted


def plain_box(facts: ClassFacts) -> Bound:
    """The mean square of Q - middle over data, next and start points is at most (span / 2 + misfit)^2; the seen part alone."""
    return _average_box(facts) if facts.record.average is not None else _value_box(facts)


def _value_box(facts: ClassFacts) -> Bound:
    moments, m = facts.part.moments, len(facts.part.penalized)
    low, high = facts.ranges.value
    middle, half = 0.5 * (low + high) - facts.reference, 0.5 * (high - low) + facts.misfit + facts.slack
    form = Form.of(moments[:m, :m], middle * moments[:m, m], middle**2)
    if len(moments) > m + 1:  # around an estimate
        constant = float(moments[m + 1, m + 1] - 2 * middle * moments[m, m + 1])
        form = form.plus(Form.of(np.zeros((m, m)), -moments[:m, m + 1], constant))
    return Bound(form, half**2)


def _average_box(facts: ClassFacts) -> Bound:
    assert facts.record.average is not None
    (low, high), eta, m = facts.record.average.reward_range, facts.part.objective, len(facts.part.penalized)
    middle = facts.record.average.middle
    half = max(high - middle, middle - low) + 8 * UNIT * max(abs(low), abs(high))
    return Bound(Form.of(np.outer(eta, eta), np.zeros(m), 0.0), half**2)


def rows_box(facts: ClassFacts, averaged: AveragedRecord, known: Sequence[Known]) -> Bound:
    """sum_i w_i (f_i'theta + offset_i - middle)^2 <= sum_i w_i half_i^2: every value, or residual, lies in its range."""
    weights, features = averaged.weights, averaged.features
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise Refuted("a weight of a point is negative")
    middle, half = _residual_box(facts, averaged, known) if averaged.residual else _point_box(facts, averaged)
    weighted = weights[:, None] * features
    constant, limit = float(weights @ middle**2), float(weights @ half**2)
    size = float(np.abs(weights) @ (np.abs(middle) + np.abs(averaged.offsets)) ** 2)
    form = Form(
        features.T @ weighted,
        middle @ weighted,
        constant,
        (np.abs(features).T @ np.abs(weighted), np.abs(middle) @ np.abs(weighted), size),
    )
    return Bound(form, limit * (1 + len(weights) * UNIT) + 8 * UNIT * constant)


def _point_box(facts: ClassFacts, averaged: AveragedRecord) -> tuple[FloatArray, FloatArray]:
    """(middle, half) of f_i'theta: Q lies in the value range at every point."""
    low, high = facts.ranges.value
    if averaged.offsets.any() and not facts.record.setting.anchored:
        raise Refuted("a point has an offset, though the class is not around an estimate")
    if facts.record.average is not None or facts.larger is not None:
        raise Refuted("it bounds values point by point, though nothing bounds them")
    if (averaged.missed is None) != (facts.part.unseen is None):
        raise Refuted("it bounds values point by point, and does not say what its coordinates miss there")
    half = np.full(len(averaged.weights), 0.5 * (high - low) + facts.misfit)
    if averaged.missed is not None:
        if not (np.isfinite(averaged.missed).all() and (averaged.missed >= 0).all()):
            raise Refuted("what its coordinates miss at a point is not a length")
        half = half + facts.hidden * averaged.missed
    return 0.5 * (low + high) - facts.reference - averaged.offsets, half


def _residual_box(facts: ClassFacts, averaged: AveragedRecord, known: Sequence[Known]) -> tuple[FloatArray, FloatArray]:
    """(middle, half) of Z_i theta: residuals of the true Q lie in their range, and those of the class near them."""
    if not 0 <= averaged.round < len(known):
        raise Refuted("it names a round that is not there")
    if not facts.follows_variance or facts.larger is not None:
        raise Refuted("it bounds residuals row by row, though nothing bounds them")
    b, count = known[averaged.round].residual_bound, len(averaged.weights)
    half = np.full(count, b) if averaged.ranges is None else np.minimum(averaged.ranges, b)
    half = half + (1 + facts.record.assumptions.discount) * facts.misfit
    if averaged.ranges is not None and facts.record.setting.row_ranges is None:
        raise Refuted("it bounds residuals row by row, though nothing was declared for rows")
    if (averaged.missed is None) != (facts.part.unseen is None):
        raise Refuted("it bounds residuals row by row, and does not say what its coordinates miss")
    if averaged.missed is not None:
        half = half + facts.hidden * averaged.missed
    # A residual that must be 0 is held to a small share of its size, which keeps numbers apart.
    return -averaged.offsets, np.maximum(half, 1e-4 * (np.abs(averaged.offsets) + b))
