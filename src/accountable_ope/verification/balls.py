"""The radius of the ball in which the coefficients lie: declared, following from values, or enlarged for random features."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..problem.assumptions import RelativeNorm
from ..radii.registry import radius_rule
from .dual import root_of
from .ranges import UNDECLARED, ranges_of, relative_values
from .record import ClassRecord, Record, Refuted


@dataclass(frozen=True)
class Enlargement:
    """How much norm, root of the radius, value box and ends grow where m random features stand for a whole RKHS."""

    norm_bound: float
    root_radius: float
    slack: float


def enlargement(record: Record, part: ClassRecord) -> Enlargement | None:
    """With a quarter of the features' share of delta for each: Chebyshev for the norm, Markov for value, loss and box.

    ||Q~||^2 <= R^2 + sqrt(C / (delta m)); value and box within R / sqrt(delta m); root loss within (1 + discount) kappa times it.
    """
    variance, declared = record.setting.coefficient_variance, record.assumptions.norm_bound
    if variance is None:
        return None
    if not isinstance(declared, float) or not variance >= 0:
        raise Refuted("random features that stand for an RKHS need a norm bound and a variance")
    each = record.delta.features / 4 * int(part.penalized.sum())
    slack, ones = declared / math.sqrt(each), len(part.penalized) + 1
    kappa = root_of(part.statistic.pair_gram[ones, ones]) / part.statistic.count
    norm = math.sqrt(declared**2 + math.sqrt(variance / each))
    return Enlargement(norm, (1 + record.assumptions.discount) * kappa * slack, slack)


def ball_radius(record: Record, part: ClassRecord, *, before_data: bool = False) -> float | None:
    """The radius of the ball: declared, a multiple of the least norm, or one that only keeps numbers finite; None: no ball.

    before_data: the ball in which the least norm was looked for.
    """
    if record.average is not None:
        values = relative_values(record.average, part, exact_policy=record.setting.exact_policy)
        return values.ball(rounds=radius_rule(record.radius.name).follows_variance)
    declared = record.assumptions.norm_bound
    larger = enlargement(record, part)
    if larger is not None:
        return larger.norm_bound
    if isinstance(declared, float):
        return declared
    if isinstance(declared, RelativeNorm) and part.least_norm and not before_data:
        return declared.multiple * part.least_norm
    return norm_of_values(record, part) or UNDECLARED * ranges_of(record, part).largest_from(part.reference) or 1.0


def norm_of_values(record: Record, part: ClassRecord) -> float:
    """Of one-hot features, whose coefficients are values, about their middle where a constant is free; 0: nothing follows."""
    if record.assumptions.norm_bound is not None or not part.listed or record.setting.anchored:
        return 0.0
    low, high = ranges_of(record, part).value
    largest = 0.5 * (high - low) if not part.penalized.all() else max(abs(low), abs(high))
    return math.sqrt(int(part.penalized.sum())) * (largest + record.assumptions.misfit)
