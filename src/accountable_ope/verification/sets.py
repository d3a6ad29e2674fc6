"""The constraints that the true Q meets, from the sums of a certificate, its assumptions and its share of delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..problem.assumptions import Assumptions, RelativeNorm, ValueRanges
from ..radii.premises import SPAN_NORM, ClassWords, why_so_large
from ..radii.registry import Approach, LossKind, RadiusRule, Rests, radius_rule
from ..validation import FloatArray
from . import theorems
from .dual import UNIT, Bound, Form
from .ranges import UNDECLARED, Widths, ranges_of, relative_values, rounding_slack
from .record import AveragedRecord, ClassRecord, Record, TermRecord

NEGLIGIBLE = 1e-4
"""Below this share of the root of the radius, what an RKHS in coordinates misses is added as a constant."""


class Refuted(Exception):
    """Something that a certificate claims does not follow."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A martingale of residuals: ||S_n||^2 / n^2 and V_n / n^2 of the coefficients, and the envelope of ||S_n||.

    missed, gap: what an unseen part of norm one, and a misfit, can add to ||S_n|| / n and to sqrt(V_n) / n.
    """

    name: str
    squared: Form
    variance: Form
    count: int
    reach: float
    envelope: theorems.Envelope
    missed: tuple[float, float]
    gap: tuple[float, float]
    rounding: float

    def level(self, b: float, variance: float) -> float:
        """U(b, V_n)^2 / n^2."""
        u, _ = self.envelope.at(b * self.reach, np.array([max(variance, 0.0) * self.count**2]))
        return float(u[0]) ** 2 / self.count**2


@dataclass(frozen=True)
class Known:
    """|eps| <= residual_bound and V_n at most these, one per evidence, at the true Q."""

    residual_bound: float
    variances: tuple[float, ...]


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
    return UNDECLARED * max(map(abs, ranges_of(record, part).value)) or 1.0


@dataclass(frozen=True, eq=False)
class ClassSet:
    """All constraints of one class."""

    record: Record
    part: ClassRecord
    rule: RadiusRule
    norm_bound: float | None

    @cached_property
    def ranges(self) -> ValueRanges:
        return ranges_of(self.record, self.part)

    @cached_property
    def widths(self) -> Widths:
        return Widths(self.assumptions, self.ranges, self.record.setting.terminates, self.part.cover)

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
            return "" if self.larger is not None else why_so_large(self.record.assumptions.norm_bound, self.part.least_norm)
        values = relative_values(self.record.average, self.part, exact_policy=self.record.setting.exact_policy)
        return SPAN_NORM if values.follows else why_so_large(self.record.average.norm_bound, self.part.least_norm)

    @property
    def words(self) -> ClassWords:
        """What premises say of the class."""
        return ClassWords(self.name, self.part.norm_bound, self.part.note, len(self.part.penalized))

    @cached_property
    def assumptions(self) -> Assumptions:
        """Those of this class: of an average reward they are those of a value at discount 1."""
        if self.record.average is None:
            return self.record.assumptions
        declared = self.record.average
        return Assumptions(
            discount=1.0,
            reward_range=declared.reward_range,
            value_range=self.ranges.next_value,
            norm_bound=declared.norm_bound,
            state_box=declared.state_box,
            reward_noise=declared.reward_noise,
            symmetric_noise=declared.symmetric_noise,
            terminates=False,
        )

    @property
    def misfit(self) -> float:
        return 0.0 if self.record.average is not None else self.record.assumptions.misfit

    @cached_property
    def rounding(self) -> float:
        return rounding_slack(self.record, self.part)

    @property
    def radius(self) -> float:
        return math.inf if self.norm_bound is None else self.norm_bound

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

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """The kernel's martingale and, with a cut, one more: half of the share of delta each."""
        part, statistic = self.part, self.part.statistic
        n, m, sup = statistic.count, len(part.penalized), statistic.kernel_supremum
        pair, diagonal, ones = statistic.pair_gram, statistic.diag_gram, m + 1
        gap = (1 + self.record.assumptions.discount) * self.misfit
        squared = pair / n**2 if self.rule.loss is LossKind.V else (pair - diagonal) / (n * (n - 1))
        missed = (root_of(pair[-1, -1]) / n, root_of(diagonal[-1, -1]) / n) if statistic.has_remainder else (0.0, 0.0)
        share = self.record.delta.kernel * (0.5 if self.rule.cut else 1.0)
        found = [
            Evidence(
                name="kernel",
                squared=_form(squared, m),
                variance=_form(diagonal / n**2, m),
                count=n,
                reach=math.sqrt(sup),
                envelope=self._envelope(math.sqrt(sup), self.record.setting.planned, share),
                missed=missed,
                gap=(gap * root_of(pair[ones, ones]) / n, gap * root_of(diagonal[ones, ones]) / n),
                rounding=self.rounding,
            )
        ]
        cut = part.sums.cut
        if cut is not None and not self.rule.cut:
            raise Refuted("it uses a cut, which its radius does not have")
        if cut is not None and self.follows_variance:
            found.append(
                Evidence(
                    name="cut",
                    squared=_form(np.outer(cut.total, cut.total), m),
                    variance=_form(cut.squares, m),
                    count=cut.count,
                    reach=1.0,
                    envelope=self._envelope(1.0, cut.count, share),
                    missed=(0.0, 0.0),
                    gap=(gap * cut.absolute / cut.count, gap * cut.length / cut.count),
                    rounding=0.0,
                )
            )
        return tuple(found)

    def _envelope(self, reach: float, planned: int, share: float) -> theorems.Envelope:
        if not self.follows_variance:
            return theorems.Constant(self.level * self.part.statistic.count**2)
        step = self.widths.before_data() * reach
        if self.rule.name == "symmetric":
            return theorems.Symmetric(5e-5 * planned * step**2, share)
        return theorems.Mixture(step, planned, share)

    @cached_property
    def unseen_is_constant(self) -> bool:
        """Whether what is unseen was added as a constant: for a radius that is one number, and little enough."""
        if self.part.unseen is None or self.follows_variance:
            return False
        return self.radius * self.evidence[0].missed[0] <= NEGLIGIBLE * math.sqrt(self._limit(0, 0.0, None)[1])

    @property
    def extra_variable(self) -> bool:
        """Whether the norm of what is unseen is one more variable."""
        return self.part.unseen is not None and not self.unseen_is_constant

    @property
    def added(self) -> float:
        """What is added to both ends: what is unseen where it is a constant, and the misfit."""
        unseen = self.radius * self.part.unseen[0] if self.part.unseen is not None and self.unseen_is_constant else 0.0
        return unseen + self.misfit + self.slack

    def objective(self, sign: float) -> Form:
        """-(sign objective'theta), whose least value is the end with the sign turned; what is unseen helps either end."""
        goal = sign * self.part.objective
        if self.part.unseen is not None and self.extra_variable:
            goal = np.append(goal, self.part.unseen[0])
        return Form.linear(goal)

    def begin(self) -> Known:
        """What is known before any round."""
        b = self.widths.over_ball(self.radius)
        return Known(b, tuple(each.count * (b * each.reach) ** 2 for each in self.evidence))

    def ball(self) -> Bound:
        """||theta||^2 <= R^2 over the penalized coordinates."""
        if self.norm_bound is None:
            raise Refuted("it uses a ball, and no norm bound follows")
        mask = np.append(self.part.penalized, True) if self.extra_variable else self.part.penalized
        return Bound(Form.of(np.diag(mask.astype(float)), np.zeros(len(mask)), 0.0), self.norm_bound**2)

    def box(self) -> Bound:
        """The mean square of Q - middle over data, next and start points is at most (span / 2 + misfit)^2."""
        bound = self.plain_box()
        if self.part.unseen is None:
            return bound
        missed = self.part.unseen[1]
        if self.unseen_is_constant:
            return Bound(bound.form, (math.sqrt(bound.limit) + self.radius * missed) ** 2)
        z = _share(bound.limit, missed, self.radius)
        return Bound(bound.form.with_variable(-(1 + 1 / z) * missed**2), (1 + z) * bound.limit)

    def plain_box(self) -> Bound:
        """The same for the seen part alone."""
        return self._average_box() if self.record.average is not None else self._value_box()

    def _value_box(self) -> Bound:
        moments, m = self.part.moments, len(self.part.penalized)
        low, high = self.ranges.value
        middle, half = 0.5 * (low + high), 0.5 * (high - low) + self.misfit + self.slack
        form = Form.of(moments[:m, :m], middle * moments[:m, m], middle**2)
        if len(moments) > m + 1:  # around an estimate
            constant = float(moments[m + 1, m + 1] - 2 * middle * moments[m, m + 1])
            form = form.plus(Form.of(np.zeros((m, m)), -moments[:m, m + 1], constant))
        return Bound(form, half**2)

    def _average_box(self) -> Bound:
        assert self.record.average is not None
        (low, high), eta, m = self.record.average.reward_range, self.part.objective, len(self.part.penalized)
        middle = self.record.average.middle
        half = max(high - middle, middle - low) + 8 * UNIT * max(abs(low), abs(high))
        return Bound(Form.of(np.outer(eta, eta), np.zeros(m), 0.0), half**2)

    def rows(self, averaged: AveragedRecord) -> Bound:
        """sum_i w_i (f_i'theta + offset_i - middle)^2 <= sum_i w_i half^2: Q lies in the value range at every point."""
        low, high = self.ranges.value
        weights, features = averaged.weights, averaged.features
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise Refuted("a weight of a point is negative")
        if averaged.offsets.any() and not self.record.setting.anchored:
            raise Refuted("a point has an offset, though the class is not around an estimate")
        if self.part.unseen is not None:
            raise Refuted("it bounds values point by point, though its coordinates miss a part of them")
        middle = 0.5 * (low + high) - averaged.offsets
        half = 0.5 * (high - low) + self.misfit
        weighted = weights[:, None] * features
        constant, limit = float(weights @ middle**2), float(weights.sum()) * half**2
        size = float(np.abs(weights) @ (np.abs(middle) + np.abs(averaged.offsets)) ** 2)
        form = Form(
            features.T @ weighted,
            middle @ weighted,
            constant,
            (np.abs(features).T @ np.abs(weighted), np.abs(middle) @ np.abs(weighted), size),
        )
        return Bound(form, limit * (1 + len(weights) * UNIT))

    @cached_property
    def _tables(self) -> dict[tuple[int, float, float], theorems.Squared]:
        """Squared envelopes that were tabulated already."""
        return {}

    def _limit(self, index: int, rate: float, known: Known | None) -> tuple[float, float]:
        """(rate, limit) of eps'(K - rate D)eps / n^2 <= limit, for the nearest function of the class."""
        evidence = self.evidence[index]
        b, largest = (0.0, 0.0) if known is None else (known.residual_bound * evidence.reach, known.variances[index])
        key = (index, b, largest)
        if key not in self._tables:
            self._tables[key] = theorems.Squared.of(evidence.envelope, b, largest)
        level = self._tables[key].level(rate)
        limit = level / evidence.count**2 + evidence.rounding * (1 + rate / evidence.count)
        loss, hidden = evidence.gap
        if (loss, hidden) == (0.0, 0.0):
            return rate, limit
        # (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2, for the root of V_n and for the norm of S_n.
        y = max(hidden * math.sqrt(rate / limit), 1e-12) if limit > 0 else 1.0
        inner = limit + rate * (1 + 1 / y) * hidden**2
        z = max(loss / math.sqrt(inner), 1e-12) if inner > 0 else 1.0
        return (1 + z) * (1 + y) * rate, (math.sqrt(inner) + loss) ** 2

    def plain_limit(self) -> float:
        """What the loss is held to by a radius that is one number, what is unseen left out."""
        return self._limit(0, 0.0, None)[1]

    def loss(self, index: int, rate: float, known: Known) -> Bound:
        """One joint constraint of a martingale at a rate q >= 0."""
        if not 0 <= index < len(self.evidence) or not (math.isfinite(rate) and rate >= 0):
            raise Refuted("it names a constraint that is not there")
        if rate > 0 and not self.rule.joint:
            raise Refuted("its radius has no constraint that follows the variance of each Q")
        evidence = self.evidence[index]
        rate, limit = self._limit(index, rate, known if self.follows_variance else None)
        seen = evidence.squared.plus(evidence.variance, -rate) if rate else evidence.squared
        loss, hidden = evidence.missed
        if self.part.unseen is None:
            return Bound(seen, limit)
        if self.unseen_is_constant:
            return Bound(seen, (math.sqrt(limit) + self.radius * loss) ** 2)
        y = max(self.radius * hidden / math.sqrt(max(limit / max(rate, 1e-300), 1e-300)), 1e-12)
        z = _share(limit, loss, self.radius)
        if not self.follows_variance:
            return Bound(seen.with_variable(-(1 + 1 / z) * loss**2), (1 + z) * limit)
        seen = evidence.squared.plus(evidence.variance, -(1 + z) * (1 + y) * rate)
        unseen = (1 + 1 / z) * loss**2 + (1 + z) * (1 + 1 / y) * rate * hidden**2
        return Bound(seen.with_variable(-unseen), (1 + z) * limit)

    def variance_goal(self, index: int) -> Form:
        """Minus V_n / n^2 of the seen part."""
        variance = self.evidence[index].variance
        zero = Form.of(np.zeros_like(variance.A), np.zeros_like(variance.a), 0.0)
        turned = zero.plus(variance, -1.0)
        return turned.with_variable(0.0) if self.extra_variable else turned

    def bounds(self, terms: Sequence[TermRecord], known: Sequence[Known]) -> tuple[list[Bound], list[float]]:
        """The constraints that terms name, and their multipliers."""
        found = []
        for term in terms:
            match term.role:
                case "loss":
                    if not 0 <= term.round < len(known):
                        raise Refuted("it names a round that is not there")
                    bound = self.loss(term.evidence, term.rate, known[term.round])
                case "ball":
                    bound = self.ball()
                case "box":
                    bound = self.box()
                case "rows":
                    if not 0 <= term.rows < len(self.part.rows):
                        raise Refuted("it names points that are not there")
                    bound = self.rows(self.part.rows[term.rows])
                case _:
                    raise Refuted(f"it names a constraint {term.role!r}")
            limit, slack = bound.limit if term.limit is None else term.limit, 1e-6 * abs(bound.limit)
            # A loss may be held to its least value where that cannot be told from the radius.
            highest = bound.limit if term.role != "loss" or self.follows_variance else max(bound.limit, self.part.least_loss)
            if not bound.limit - slack <= limit <= highest + slack + (1e-6 * highest if highest > bound.limit else 0.0):
                raise Refuted(f"a {term.role} is held to {limit:.6g}, not to {bound.limit:.6g}")
            found.append(Bound(bound.form, max(limit, bound.limit)))
        return found, [term.multiplier for term in terms]


def _form(gram: FloatArray, m: int) -> Form:
    return Form.of(gram[:m, :m], gram[:m, m], float(gram[m, m]))


def root_of(value: float) -> float:
    """The root of a sum of squares, which rounding may have made negative."""
    return math.sqrt(max(float(value), 0.0))


def _share(limit: float, missed: float, radius: float) -> float:
    return max(radius * missed / math.sqrt(max(limit, 1e-300)), 1e-12)
