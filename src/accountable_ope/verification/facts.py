"""What a certificate says of one class, and what follows from it before any constraint: ranges, its ball, its radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ..problem.assumptions import Assumptions, ValueRanges
from ..problem.average_reward import as_value
from ..radii.premises import SPAN_NORM, VALUE_NORM, ClassWords, CutWords, rest_kernel, why_so_large
from ..radii.registry import Approach, LossKind, RadiusRule, Rests
from . import theorems
from .balls import Enlargement, enlargement, norm_of_values
from .ranges import Widths, ranges_of, relative_values, rounding_slack
from .record import ClassRecord, Record, Refuted


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """One class: its record, the rule of its radius and the radius of its ball, None without one."""

    record: Record
    part: ClassRecord
    rule: RadiusRule
    norm_bound: float | None

    @cached_property
    def ranges(self) -> ValueRanges:
        return ranges_of(self.record, self.part)

    @property
    def reference(self) -> float:
        """From where values are counted."""
        return self.part.reference

    @property
    def largest(self) -> float:
        """The largest value, counted from there."""
        return self.ranges.largest_from(self.reference)

    @cached_property
    def widths(self) -> Widths:
        return Widths(self.assumptions, self.ranges, self.record.setting.terminates, self.part.cover, self.part.rest)

    @cached_property
    def larger(self) -> Enlargement | None:
        return enlargement(self.record, self.part)

    @property
    def slack(self) -> float:
        """What random features that stand for an RKHS may add to values."""
        return 0.0 if self.larger is None else self.larger.slack

    @property
    def name(self) -> str:
        """How the class is called."""
        text = self.part.description.text
        return text if self.larger is None else f"the RKHS of {text}"

    @property
    def note(self) -> str:
        """Why the ball is what it is, where it was not declared."""
        if self.record.average is None:
            if self.larger is not None:
                return ""
            if norm_of_values(self.record, self.part) > 0:
                return VALUE_NORM
            return why_so_large(self.record.assumptions.norm_bound, self.part.least_norm)
        values = relative_values(self.record.average, self.part, exact_policy=self.record.setting.exact_policy)
        return SPAN_NORM if values.follows else why_so_large(self.record.average.norm_bound, self.part.least_norm)

    @property
    def words(self) -> ClassWords:
        """What premises say of the class."""
        cut = self.part.sums.cut
        words = None if cut is None else CutWords(cut.kind, cut.earlier)
        kind, rest = self.part.description.kind, ""
        if self.part.rest is not None:
            rest = rest_kernel(self.part.description)
        part, planned = self.part, self.part.sums.planned_for is not None
        return ClassWords(
            features=self.name,
            norm_bound=part.norm_bound,
            note=part.note,
            dimension=len(part.penalized),
            cut=words,
            kind=kind,
            rest=rest,
            planned=planned,
            reference=self.reference,
        )

    @cached_property
    def assumptions(self) -> Assumptions:
        """Those of this class: of an average reward they are those of a value at discount 1."""
        if self.record.average is None:
            return self.record.assumptions
        return as_value(self.record.average, self.ranges.next_value)

    @property
    def misfit(self) -> float:
        return 0.0 if self.record.average is not None else self.record.assumptions.misfit

    @cached_property
    def rounding(self) -> float:
        return rounding_slack(self.record, self.part)

    @property
    def radius(self) -> float:
        return math.inf if self.norm_bound is None else self.norm_bound

    @property
    def rest_radius(self) -> float:
        """rho, the norm of what features miss."""
        rho = self.assumptions.misfit_norm
        if self.part.rest is None or rho is None:
            raise Refuted("it uses a ball of what features miss, and none was declared")
        return rho

    @property
    def hidden(self) -> float:
        """The norm of what coordinates miss is at most this."""
        return self.radius if self.part.rest is None else self.rest_radius

    @cached_property
    def follows_variance(self) -> bool:
        return self.rule.follows_variance and self.widths.before_data() > 0

    @cached_property
    def level(self) -> float:
        """The radius of a loss that is one number, with what random features add."""
        return self._level if self.larger is None else (math.sqrt(self._level) + self.larger.root_radius) ** 2

    @property
    def _level(self) -> float:
        """lambda_K."""
        statistic, sums, setting = self.part.statistic, self.part.sums, self.record.setting
        n, sup, delta = statistic.count, statistic.kernel_supremum, self.record.delta.kernel
        width, largest = self.ranges.residual_width, sup * self.ranges.residual_bound**2
        match self.rule.name:
            case "azuma":
                return theorems.azuma(n, width, sup, delta)
            case "azuma-anytime":
                return theorems.azuma_anytime(n, width, sup, delta, setting.planned)
            case "hoeffding" | "hoeffding-u" | "hoeffding-printed":
                of_u, printed = self.rule.loss is LossKind.U, self.rule.name == "hoeffding-printed"
                return theorems.hoeffding(n, largest, delta, of_u=of_u, printed=printed)
            case "self-normalized":
                if sums.log_determinant is None:
                    raise Refuted("it has no determinant for its radius")
                return theorems.self_normalized(n, sums.log_determinant, self.widths.before_data(), sup, delta, setting.planned)
            case "wild":
                if sums.bootstrap is None:
                    raise Refuted("it has no quantile for its radius")
                return sums.bootstrap
        return 0.0  # a radius that follows the variance, where residuals of the true Q are exactly 0

    @property
    def uses(self) -> str:
        """What the radius rests on, in short."""
        if self.follows_variance:
            return "range"
        if self.rule.approach is Approach.SELF_NORMALIZED:
            return f"width {self.widths.before_data():.4g}"
        if self.rule.approach is Approach.BOOTSTRAP:
            return self.rule.rests.value
        if self.rule.follows_variance:
            return "range 0"
        number = self.ranges.residual_bound if self.rule.rests is Rests.SUPREMUM else self.ranges.residual_width
        return f"{self.rule.rests.value} {number:.4g}"
