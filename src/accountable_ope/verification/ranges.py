"""How large values and Bellman residuals can be: what follows from the assumptions, and from a set around the coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..problem.assumptions import Assumptions, ValueRanges, value_ranges
from ..problem.average_reward import AverageReward
from ..validation import FloatArray
from .dual import Bound, Form, combined
from .record import ClassRecord, CoverRecord, Record, RestRecord

CONDITION = 1e-9
"""An ellipsoid with a smaller pivot, in units of its diagonal, is left out."""

ROOM = 4.0
"""A one-step range moves rates once it is so many times below what else was known."""

BLOCK = 8192
"""Points that are looked at together, few enough to stay in the cache of a processor."""

UNDECLARED = 1e4
"""Where no norm bound is declared, ||Q|| is taken to be at most so many times the largest value."""


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{theta: ||factor'(theta - center)|| <= radius}."""

    center: FloatArray
    factor: FloatArray
    radius: float


def ellipsoid(bounds: Sequence[Bound], multipliers: Sequence[float]) -> Ellipsoid | None:
    """{theta: sum_j alpha_j (q_j - limit_j) <= 0}, which holds every theta that meets the bounds; None where it is too flat."""
    if not bounds or any(not (math.isfinite(alpha) and alpha >= 0) for alpha in multipliers):
        return None
    m = len(bounds[0].form.a)
    total = combined(Form.of(np.zeros((m, m)), np.zeros(m), 0.0), bounds, multipliers)
    try:
        factor: FloatArray = np.asarray(np.linalg.cholesky(total.A), dtype=np.float64)
        center: FloatArray = np.asarray(np.linalg.solve(total.A, total.a), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diagonal(total.A)
    if float((np.diagonal(factor) ** 2 / diagonal).min()) < CONDITION:
        return None
    size = total.sizes[2] + float(diagonal @ center**2)
    squared = float(total.a @ center) - total.a0 + 1e-12 * m * size
    return Ellipsoid(center, factor, math.sqrt(max(squared, 0.0)) * (1 + 1e-9))


def root_variance(variance: Form, around: Ellipsoid) -> float:
    """sqrt V(theta) <= sqrt V(c) + r sqrt(lambda_max(L^{-1} B L^{-T})) over an ellipsoid, B the matrix of V, a squared length."""
    m = len(variance.a)
    center = around.center[:m]
    sizes = np.abs(variance.A), np.abs(variance.a)
    size = abs(variance.a0) + float(np.abs(center) @ sizes[0] @ np.abs(center)) + 2 * float(sizes[1] @ np.abs(center))
    B = np.zeros_like(around.factor)
    B[:m, :m] = variance.A
    half = np.linalg.solve(around.factor, np.linalg.solve(around.factor, B).T)
    top = float(np.linalg.eigvalsh(0.5 * (half + half.T))[-1])
    here = math.sqrt(max(variance(center), 0.0) + 1e-12 * m * size)
    return here + around.radius * math.sqrt(max(top, 0.0)) * (1 + 1e-9)


@dataclass(frozen=True, eq=False)
class Widths:
    """The range of a Bellman residual of Q: as declared, over a ball, and over ellipsoids.

    Given (s, a) the residual of the true Q has mean 0 and lies in an interval as long as r + discount V(s') can vary.
    """

    facts: Assumptions
    ranges: ValueRanges
    terminates: bool
    cover: CoverRecord
    rest: RestRecord | None = None

    @property
    def _rest_span(self) -> float:
        """|g(x) - g(y)| and |g(x)|, for g that features miss, are at most this."""
        return 0.0 if self.rest is None else self.rest.diameter * (self.facts.misfit_norm or 0.0)

    @property
    def declared(self) -> float:
        return self.ranges.residual_width

    @property
    def _levels(self) -> bool:
        """Whether values themselves count, since a terminal state is worth 0, and not only their differences."""
        return self.terminates or self.facts.terminal_reward

    def before_data(self) -> float:
        """What was known before the data: no norm bound that they decided."""
        return self.over_ball(self.facts.norm_bound) if isinstance(self.facts.norm_bound, float) else self.declared

    def unit(self) -> float:
        """In units of this, rates were fixed: what was known without a one-step range, at most ROOM times what was with it."""
        if self.facts.one_step_range is None:
            return self.before_data()
        undeclared = replace(self.facts, one_step_range=None)
        ranges = value_ranges(undeclared, terminates=self.terminates)
        return min(replace(self, facts=undeclared, ranges=ranges).before_data(), ROOM * self.before_data())

    def over_ball(self, norm: float) -> float:
        """|Q(x) - Q(y)| <= ||theta|| ||phi(x) - phi(y)||, and what the features miss of it."""
        if self._levels or not math.isfinite(self.cover.diameter):
            return self.declared
        return self._width(span=norm * self.cover.diameter + self._rest_span)

    def over(self, ellipsoids: Sequence[Ellipsoid], norm: float) -> float:
        """The largest and the smallest Q at the points of the cover, over every ellipsoid."""
        points, center = self.cover.points, self.cover.center
        if points is None or center is None:
            return self.over_ball(norm)
        middle = np.zeros_like(center) if self._levels else center
        k = points.shape[1]  # the norm of what is unseen is no coordinate of a point
        around = [(np.linalg.inv(each.factor)[:, :k], each.center[:k], each.radius) for each in ellipsoids]
        ups, downs = [], []
        for start in range(0, len(points), BLOCK):
            away = np.ascontiguousarray((points[start : start + BLOCK] - middle).T)
            up = down = np.full(away.shape[1], math.inf)
            for inverse, c, radius in around:
                length, along = radius * np.sqrt(((inverse @ away) ** 2).sum(axis=0)), c @ away
                up, down = np.minimum(up, along + length), np.minimum(down, length - along)
            ups.append(up.max())
            downs.append(down.max())
        pad, rest = self.cover.slack * norm, self._rest_span
        highest, lowest = float(np.max(ups)) + pad, -float(np.max(downs)) - pad
        if self._levels:
            low, high = self.ranges.value
            return self._width(low=max(low, lowest - rest), high=min(high, highest + rest))
        return min(self._width(span=highest - lowest + rest), self.over_ball(norm))

    def _width(self, *, span: float = 0.0, low: float = 0.0, high: float = 0.0) -> float:
        facts = self.facts
        (worst, best), discount, misfit = facts.reward_range, facts.discount, facts.misfit
        span, low, high = span + 2 * misfit, low - misfit, high + misfit
        if facts.terminal_reward:
            width = max(best, discount * high, 0.0) - min(worst, discount * low, 0.0)
        else:
            if self.terminates:
                span = max(high, 0.0) - min(low, 0.0)
            width = (best - worst if facts.reward_noise else 0.0) + discount * span
        return min(width, self.declared)


@dataclass(frozen=True)
class RelativeValues:
    """What follows for a process that goes on forever: V of span at most `span`, |Q| at most `largest` about its middle.

    follows: whether the norm bound is what the span of Q over listed points allows, and not the declared one.
    declared_width: the range of residuals of a Q that may be outside of the class, by the declared span alone.
    """

    span: float
    largest: float
    norm_bound: float | None
    follows: bool
    ranges: ValueRanges
    declared_width: float

    def ball(self, *, rounds: bool) -> float | None:
        """The radius of the ball: where none is declared, rounds need one that only keeps numbers finite."""
        return UNDECLARED * self.largest if self.norm_bound is None and rounds else self.norm_bound


def relative_values(declared: AverageReward, part: ClassRecord, *, exact_policy: bool) -> RelativeValues:
    """The ranges of an average reward, from its norm bound and from the span of the relative value."""
    of_norm = math.inf
    if declared.norm_bound is not None and math.isfinite(part.cover.diameter):
        of_norm = declared.norm_bound * part.cover.diameter
    of_span = math.inf if declared.value_span is None else declared.value_span
    q_span = min(of_norm, of_span + declared.reward_width)
    largest = 0.5 * q_span
    span = min(of_norm, of_span) if exact_policy else q_span
    norm = declared.norm_bound
    implied = math.sqrt(len(part.penalized) - 1) * largest if part.listed else math.inf
    follows = implied < (math.inf if norm is None else norm)
    if follows:
        norm = implied
    ranges = ValueRanges(
        value=declared.reward_range,
        next_value=(-largest, largest),
        residual_width=span + (declared.reward_width if declared.reward_noise else 0.0),
        residual_bound=2 * (largest + max(map(abs, declared.reward_range))),
    )
    noise = declared.reward_width if declared.reward_noise else 0.0
    declared_width = of_span + (0.0 if exact_policy else declared.reward_width) + noise
    return RelativeValues(span, largest, norm, follows, ranges, declared_width)


def ranges_of(record: Record, part: ClassRecord) -> ValueRanges:
    """Of values and residuals, for one class."""
    if record.average is not None:
        return relative_values(record.average, part, exact_policy=record.setting.exact_policy).ranges
    return value_ranges(record.assumptions, terminates=record.setting.terminates)


def rounding_slack(record: Record, part: ClassRecord) -> float:
    """kernel_error times the squared size of residuals: how far rounding moves the loss of the true Q."""
    statistic, penalized = part.statistic, part.penalized
    m = len(penalized)
    scale, target = statistic.column_scale[:m], float(statistic.column_scale[m])
    if record.average is not None:
        values = relative_values(record.average, part, exact_policy=record.setting.exact_policy)
        norm = math.sqrt(m) * values.largest if values.norm_bound is None else values.norm_bound
        size = norm * float(np.linalg.norm(scale[: m - 1])) + target + 0.5 * record.average.reward_width
        return statistic.kernel_error * size**2
    largest = ranges_of(record, part).largest_from(part.reference)
    norm = math.sqrt(m) * largest
    if part.reference:
        largest += abs(part.offset - part.reference)
    if isinstance(record.assumptions.norm_bound, float):
        norm = min(norm, record.assumptions.norm_bound)
    size, free = target, float(scale[~penalized].sum())
    if part.rest is not None:
        k, rho = part.rest.coordinates, record.assumptions.misfit_norm or 0.0
        size += rho * (float(np.linalg.norm(scale[:k])) + free)
        penalized = penalized & (np.arange(m) >= k)
    size += norm * float(np.linalg.norm(scale[penalized]))
    if free > 0:
        size += (largest + norm) * free
    return statistic.kernel_error * size**2
