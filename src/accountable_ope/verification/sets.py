"""The constraints that the true Q meets, from the sums of a certificate, its assumptions and its share of delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..problem.assumptions import Assumptions, RelativeNorm, ValueRanges
from ..radii.premises import SPAN_NORM, VALUE_NORM, WEIGHTS, ClassWords, CutWords, why_so_large
from ..radii.registry import Approach, LossKind, RadiusRule, Rests, radius_rule
from ..validation import FloatArray
from . import theorems
from .dual import UNIT, Bound, Form
from .ranges import UNDECLARED, Widths, ranges_of, relative_values, rounding_slack
from .record import AveragedRecord, ClassRecord, Record, StepsRecord, TermRecord

NEGLIGIBLE = 1e-4
"""Below this share of the root of the radius, what an RKHS in coordinates misses is added as a constant."""


class Refuted(Exception):
    """Something that a certificate claims does not follow."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A martingale of residuals: ||S_n||^2 / n^2 and V_n / n^2 of the coefficients, and the envelope of ||S_n||.

    mass: sum_i K(x_i, x_i). missed, gap: what an unseen part of norm one, and a misfit, can add to ||S_n|| / n, sqrt(V_n) / n.
    """

    name: str
    squared: Form
    variance: Form
    count: int
    reach: float
    mass: float
    envelope: theorems.Envelope
    missed: tuple[float, float]
    gap: tuple[float, float]
    rounding: float

    def steps(self, b: float) -> theorems.Steps:
        """What residuals within b say of the steps."""
        return theorems.Steps(b * self.reach, b * self.reach, b**2 * self.mass)

    def level(self, steps: theorems.Steps, variance: float) -> float:
        """U(steps, V_n)^2 / n^2."""
        u, _ = self.envelope.at(steps, np.array([max(variance, 0.0) * self.count**2]))
        return float(u[0]) ** 2 / self.count**2


@dataclass(frozen=True)
class Known:
    """|eps| <= residual_bound; V_n at most these, and steps at most such, one per evidence, at the true Q."""

    residual_bound: float
    variances: tuple[float, ...]
    steps: tuple[theorems.Steps, ...]


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
    return _norm_of_values(record, part) or UNDECLARED * max(map(abs, ranges_of(record, part).value)) or 1.0


def _norm_of_values(record: Record, part: ClassRecord) -> float:
    """Of one-hot features, whose coefficients are values, about their middle where a constant is free; 0: nothing follows."""
    if record.assumptions.norm_bound is not None or not part.listed or record.setting.anchored:
        return 0.0
    low, high = ranges_of(record, part).value
    largest = 0.5 * (high - low) if not part.penalized.all() else max(abs(low), abs(high))
    return math.sqrt(int(part.penalized.sum())) * (largest + record.assumptions.misfit)


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
            if self.larger is not None:
                return ""
            if _norm_of_values(self.record, self.part) > 0:
                return VALUE_NORM
            return why_so_large(self.record.assumptions.norm_bound, self.part.least_norm)
        values = relative_values(self.record.average, self.part, exact_policy=self.record.setting.exact_policy)
        return SPAN_NORM if values.follows else why_so_large(self.record.average.norm_bound, self.part.least_norm)

    @property
    def words(self) -> ClassWords:
        """What premises say of the class."""
        cut = self.part.sums.cut
        words = None if cut is None else CutWords(cut.kind, cut.earlier)
        kind = self.part.description.kind
        return ClassWords(self.name, self.part.norm_bound, self.part.note, len(self.part.penalized), words, kind)

    @property
    def cut_share(self) -> float:
        """The share of delta of the kernel's martingale: half, where nothing stood against a cut before any row was looked at."""
        why, cut, setting = self.part.sums.no_cut, self.part.sums.cut, self.record.setting
        if cut is not None and (why is not None or not self.rule.cut):
            raise Refuted("it uses a cut, which its radius does not have")
        if not self.rule.cut or not self.follows_variance:
            return 1.0
        if why is None and cut is None:
            raise Refuted("it has no cut and does not say why")
        stands = {
            "GROWING": setting.growing,
            "ANCHORED": setting.anchored and not setting.estimate_before,
            "COORDINATES": self.part.unseen is not None,
            "POINTS": not setting.points_before,
        }
        for name, true in stands.items():
            if why == name and not true:
                raise Refuted("what stands against its cut is not true")
            if true and why is None:
                raise Refuted("it has a cut, though something stands against it")
        if why == "POLICY" and setting.exact_policy:
            raise Refuted("what stands against its cut is not true")
        if cut is not None and cut.kind == "propensities" and not setting.propensities:
            raise Refuted("its cut has weights of propensities, which were not asserted")
        return 0.5 if why in (None, "WEIGHTS", "POINTS") else 1.0

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
        share = self.record.delta.kernel * self.cut_share
        found = [
            Evidence(
                name="kernel",
                squared=_form(squared, m),
                variance=_form(diagonal / n**2, m),
                count=n,
                reach=math.sqrt(sup),
                mass=float(diagonal[ones, ones]),
                envelope=self._envelope(self._largest * math.sqrt(sup), self.record.setting.planned, share),
                missed=missed,
                gap=(gap * root_of(pair[ones, ones]) / n, gap * root_of(diagonal[ones, ones]) / n),
                rounding=self.rounding,
            )
        ]
        cut = part.sums.cut
        if cut is not None and self.follows_variance:
            if not (cut.rate > 0 and cut.kind in WEIGHTS and cut.earlier >= 0):
                raise Refuted("its cut has no rate")
            found.append(
                Evidence(
                    name="cut",
                    squared=_form(np.outer(cut.total, cut.total), m),
                    variance=_form(cut.squares, m),
                    count=cut.count,
                    reach=1.0,
                    mass=cut.length**2,
                    envelope=theorems.Mixture(self._plan[0], cut.count, share, cut.rate, self._plan[1]),
                    missed=(0.0, 0.0),
                    gap=(gap * cut.absolute / cut.count, gap * cut.length / cut.count),
                    rounding=0.0,
                )
            )
        return tuple(found)

    @property
    def _plan(self) -> tuple[float, float | None]:
        """The range in units of which rates were fixed, and the share of delta for which, where it is not the present one."""
        planned = self.part.sums.planned_for
        if planned is None:
            return self.widths.before_data(), None
        if not (0 < planned[0] < math.inf and 0 < planned[1] < 1):
            raise Refuted("its rates were fixed for no range")
        return planned

    @property
    def _largest(self) -> float:
        """The largest u(x_i) |eps_i| in units of which the rates of the kernel's martingale were fixed."""
        scaled, prior = self.part.sums.largest_scaled, self._plan[0]
        if scaled is None:
            return prior
        if self.record.setting.row_ranges is None or not scaled > 0:
            raise Refuted("its kernel is scaled by ranges of rows, and none were declared")
        return min(scaled, prior)

    def _envelope(self, step: float, planned: int, share: float) -> theorems.Envelope:
        if not self.follows_variance:
            return theorems.Constant(self.level * self.part.statistic.count**2)
        if self.rule.name == "symmetric":
            return theorems.Symmetric(5e-5 * planned * step**2, share)
        return theorems.Mixture(step, planned, share, for_delta=self._plan[1])

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
        claimed = self.part.rounds[0].steps if self.part.rounds else ()
        count = len(self.evidence)
        return self.known(b, [math.inf] * count, [self.declared(claimed, index, b) for index in range(count)])

    def known(self, b: float, variances: Sequence[float], steps: Sequence[theorems.Steps]) -> Known:
        """What residuals within b, bounds of the variances and what is known of steps say together."""
        return Known(b, tuple(min(v, each.squares) for v, each in zip(variances, steps, strict=True)), tuple(steps))

    def declared(self, claimed: Sequence[StepsRecord], index: int, b: float) -> theorems.Steps:
        """Steps for residuals within b: where ranges were declared row by row, those of the rows, which only data tell."""
        derived = self.evidence[index].steps(b)
        if self.record.setting.row_ranges is None or not self.follows_variance:
            return derived
        if len(claimed) != len(self.evidence):
            raise Refuted("its rounds do not fit their proofs")
        largest, squares = min(claimed[index].largest, derived.largest), min(claimed[index].squares, derived.squares)
        if not (largest >= 0 and squares >= 0):
            raise Refuted("a step is not a length")
        return theorems.Steps(largest, largest, squares)

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

    def rows(self, averaged: AveragedRecord, known: Sequence[Known]) -> Bound:
        """sum_i w_i (f_i'theta + offset_i - middle)^2 <= sum_i w_i half_i^2: every value, or residual, lies in its range."""
        weights, features = averaged.weights, averaged.features
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise Refuted("a weight of a point is negative")
        middle, half = self._residual_box(averaged, known) if averaged.residual else self._point_box(averaged)
        weighted = weights[:, None] * features
        constant, limit = float(weights @ middle**2), float(weights @ half**2)
        size = float(np.abs(weights) @ (np.abs(middle) + np.abs(averaged.offsets)) ** 2)
        form = Form(
            features.T @ weighted,
            middle @ weighted,
            constant,
            (np.abs(features).T @ np.abs(weighted), np.abs(middle) @ np.abs(weighted), size),
        )
        if self.extra_variable:
            form = form.with_variable(0.0)
        return Bound(form, limit * (1 + len(weights) * UNIT) + 8 * UNIT * constant)

    def _point_box(self, averaged: AveragedRecord) -> tuple[FloatArray, FloatArray]:
        """(middle, half) of f_i'theta: Q lies in the value range at every point."""
        low, high = self.ranges.value
        if averaged.offsets.any() and not self.record.setting.anchored:
            raise Refuted("a point has an offset, though the class is not around an estimate")
        if self.part.unseen is not None or self.record.average is not None or self.larger is not None:
            raise Refuted("it bounds values point by point, though nothing bounds what its coordinates miss there")
        return 0.5 * (low + high) - averaged.offsets, np.full(len(averaged.weights), 0.5 * (high - low) + self.misfit)

    def _residual_box(self, averaged: AveragedRecord, known: Sequence[Known]) -> tuple[FloatArray, FloatArray]:
        """(middle, half) of Z_i theta: residuals of the true Q lie in their range, and those of the class near them."""
        if not 0 <= averaged.round < len(known):
            raise Refuted("it names a round that is not there")
        if not self.follows_variance or self.larger is not None:
            raise Refuted("it bounds residuals row by row, though nothing bounds them")
        b, count = known[averaged.round].residual_bound, len(averaged.weights)
        half = np.full(count, b) if averaged.ranges is None else np.minimum(averaged.ranges, b)
        half = half + (1 + self.record.assumptions.discount) * self.misfit
        if averaged.ranges is not None and self.record.setting.row_ranges is None:
            raise Refuted("it bounds residuals row by row, though nothing was declared for rows")
        if (averaged.missed is None) != (self.part.unseen is None):
            raise Refuted("it bounds residuals row by row, and does not say what its coordinates miss")
        if averaged.missed is not None:
            half = half + self.radius * averaged.missed
        # A residual that must be 0 is held to a small share of its size, which keeps numbers apart.
        return -averaged.offsets, np.maximum(half, 1e-4 * (np.abs(averaged.offsets) + b))

    @cached_property
    def _tables(self) -> dict[tuple[int, theorems.Steps, float], theorems.Squared]:
        """Squared envelopes that were tabulated already."""
        return {}

    def _limit(self, index: int, rate: float, known: Known | None) -> tuple[float, float]:
        """(rate, limit) of eps'(K - rate D)eps / n^2 <= limit, for the nearest function of the class."""
        evidence = self.evidence[index]
        steps, largest = theorems.NO_STEPS, 0.0
        if known is not None:
            steps, largest = known.steps[index], known.variances[index]
        key = (index, steps, largest)
        if key not in self._tables:
            self._tables[key] = theorems.Squared.of(evidence.envelope, steps, largest)
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

    def variance(self, index: int, known: Known) -> Bound:
        """V_n / n^2 of the seen part is at most what is known of V_n at the true Q, and what is hidden."""
        if not 0 <= index < len(self.evidence) or not self.follows_variance:
            raise Refuted("it names a constraint that is not there")
        evidence = self.evidence[index]
        root = math.sqrt(known.variances[index]) / evidence.count + evidence.gap[1]
        limit = root**2 + evidence.rounding / evidence.count
        if self.part.unseen is None or evidence.missed == (0.0, 0.0):
            return Bound(evidence.variance, limit)
        z = _share(limit, evidence.missed[1], self.radius)
        return Bound(evidence.variance.with_variable(-(1 + 1 / z) * evidence.missed[1] ** 2), (1 + z) * limit)

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
                case "variance":
                    if not 0 <= term.round < len(known):
                        raise Refuted("it names a round that is not there")
                    bound = self.variance(term.evidence, known[term.round])
                case "ball":
                    bound = self.ball()
                case "box":
                    bound = self.box()
                case "rows":
                    if not 0 <= term.rows < len(self.part.rows):
                        raise Refuted("it names points that are not there")
                    bound = self.rows(self.part.rows[term.rows], known)
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
