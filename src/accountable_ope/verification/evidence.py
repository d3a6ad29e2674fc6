"""The martingales of residuals on which a radius that follows the variance rests, and what is known of their steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..problem.assumptions import value_ranges
from ..radii.no_cut import NoCut
from ..radii.premises import WEIGHTS
from ..radii.registry import LossKind
from ..validation import FloatArray
from . import theorems
from .dual import Form, root_of
from .facts import ClassFacts
from .ranges import Widths
from .record import Refuted


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


def class_evidence(facts: ClassFacts) -> tuple[Evidence, ...]:
    """The kernel's martingale and, with a cut, one more: half of the share of delta each."""
    part, statistic = facts.part, facts.part.statistic
    n, m, sup = statistic.count, len(part.penalized), statistic.kernel_supremum
    pair, diagonal, ones = statistic.pair_gram, statistic.diag_gram, m + 1
    gap = (1 + facts.record.assumptions.discount) * facts.misfit
    squared = pair / n**2 if facts.rule.loss is LossKind.V else (pair - diagonal) / (n * (n - 1))
    missed = (root_of(pair[-1, -1]) / n, root_of(diagonal[-1, -1]) / n) if statistic.has_remainder else (0.0, 0.0)
    share = facts.record.delta.kernel * _cut_share(facts)
    found = [
        Evidence(
            name="kernel",
            squared=_form(squared, m),
            variance=_form(diagonal / n**2, m),
            count=n,
            reach=math.sqrt(sup),
            mass=float(diagonal[ones, ones]),
            envelope=_envelope(facts, _largest(facts) * math.sqrt(sup), facts.record.setting.planned, share),
            missed=missed,
            gap=(gap * root_of(pair[ones, ones]) / n, gap * root_of(diagonal[ones, ones]) / n),
            rounding=facts.rounding,
        )
    ]
    cut = part.sums.cut
    if cut is not None and facts.follows_variance:
        if not (cut.rate > 0 and cut.kind in WEIGHTS and cut.earlier >= 0):
            raise Refuted("its cut has no rate")
        if not all(math.isfinite(each) and each >= 0 for each in cut.missed) or (any(cut.missed) and part.unseen is None):
            raise Refuted("what its cut misses is not what its coordinates miss")
        found.append(
            Evidence(
                name="cut",
                squared=_form(np.outer(cut.total, cut.total), m),
                variance=_form(cut.squares, m),
                count=cut.count,
                reach=1.0,
                mass=cut.length**2,
                envelope=theorems.Mixture(_plan(facts)[0], cut.count, share, cut.rate, _plan(facts)[1]),
                missed=cut.missed,
                gap=(gap * cut.absolute / cut.count, gap * cut.length / cut.count),
                rounding=0.0,
            )
        )
    return tuple(found)


def _plan(facts: ClassFacts) -> tuple[float, float | None]:
    """The range in units of which rates were fixed, and the share of delta for which, where it is not the present one."""
    planned = facts.part.sums.planned_for
    if planned is None:
        return facts.widths.unit(), None
    declared, record = planned.assumptions, facts.record
    terminates = record.setting.terminates
    same = declared.discount == record.assumptions.discount and declared.state_box == record.assumptions.state_box
    same = same and (declared.misfit_norm is None) == (record.assumptions.misfit_norm is None)
    if record.average is not None or not same or not 0 < planned.delta < 1:
        raise Refuted("its rates were fixed for another question")
    ranges = value_ranges(declared, terminates=terminates)
    fixed = Widths(declared, ranges, terminates, facts.part.cover, facts.part.rest).unit()
    if not 0 < fixed < math.inf:
        raise Refuted("its rates were fixed for no range")
    return fixed, planned.delta * _cut_share(facts)


def _largest(facts: ClassFacts) -> float:
    """The largest u(x_i) |eps_i| in units of which the rates of the kernel's martingale were fixed."""
    scaled, prior = facts.part.sums.largest_scaled, _plan(facts)[0]
    if scaled is None:
        return prior
    if facts.record.setting.row_ranges is None or not scaled > 0:
        raise Refuted("its kernel is scaled by ranges of rows, and none were declared")
    return min(scaled, prior)


def _envelope(facts: ClassFacts, step: float, planned: int, share: float) -> theorems.Envelope:
    if not facts.follows_variance:
        return theorems.Constant(facts.level * facts.part.statistic.count**2)
    if facts.rule.name == "symmetric":
        return theorems.Symmetric(5e-5 * planned * step**2, share)
    return theorems.Mixture(step, planned, share, for_delta=_plan(facts)[1])


def _cut_share(facts: ClassFacts) -> float:
    """The share of delta of the kernel's martingale: half, where nothing stood against a cut before any row was looked at."""
    why, cut, setting = facts.part.sums.no_cut, facts.part.sums.cut, facts.record.setting
    if cut is not None and (why is not None or not facts.rule.cut):
        raise Refuted("it uses a cut, which its radius does not have")
    if not facts.rule.cut or not facts.follows_variance:
        return 1.0
    if why is None and cut is None:
        raise Refuted("it has no cut and does not say why")
    if why is not None and why not in NoCut.__members__:
        raise Refuted("it says of no cut what is no reason")
    stands = {
        "GROWING": setting.growing,
        "ANCHORED": setting.anchored and not setting.estimate_before,
        "COORDINATES": facts.part.unseen is not None and facts.part.rest is None,
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
    return 0.5 if why is None or NoCut[why].found_later else 1.0


def _form(gram: FloatArray, m: int) -> Form:
    return Form.of(gram[:m, :m], gram[:m, m], float(gram[m, m]))
