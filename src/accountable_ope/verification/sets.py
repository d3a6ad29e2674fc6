"""The constraints that the true Q meets, from the sums of a certificate, its assumptions and its share of delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..validation import BoolArray
from . import theorems
from .boxes import plain_box, rows_box
from .dual import Bound, Form
from .evidence import Evidence, Known, class_evidence
from .facts import ClassFacts
from .record import AveragedRecord, Refuted, StepsRecord, TermRecord

NEGLIGIBLE = 1e-4
"""Below this share of the root of the radius, what an RKHS in coordinates misses is added as a constant."""


@dataclass(frozen=True, eq=False)
class ClassSet:
    """All constraints of one class."""

    facts: ClassFacts

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """The kernel's martingale and, with a cut, one more."""
        return class_evidence(self.facts)

    @cached_property
    def unseen_is_constant(self) -> bool:
        """Whether what is unseen was added as a constant: for a radius that is one number, and little enough."""
        if self.facts.part.unseen is None or self.facts.follows_variance:
            return False
        return self.facts.hidden * self.evidence[0].missed[0] <= NEGLIGIBLE * math.sqrt(self._limit(0, 0.0, None)[1])

    @property
    def extra_variable(self) -> bool:
        """Whether the norm of what is unseen is one more variable."""
        return self.facts.part.unseen is not None and not self.unseen_is_constant

    @property
    def added(self) -> float:
        """What is added to both ends: what is unseen where it is a constant, and the misfit."""
        facts, unseen = self.facts, 0.0
        if facts.part.unseen is not None and self.unseen_is_constant:
            unseen = facts.hidden * facts.part.unseen[0]
        return unseen + facts.misfit + facts.slack

    def objective(self, sign: float) -> Form:
        """-(sign objective'theta), whose least value is the end with the sign turned; what is unseen helps either end."""
        goal = sign * self.facts.part.objective
        if self.facts.part.unseen is not None and self.extra_variable:
            goal = np.append(goal, self.facts.part.unseen[0])
        return Form.linear(goal)

    def begin(self) -> Known:
        """What is known before any round."""
        b = self.facts.widths.over_ball(self.facts.radius)
        claimed = self.facts.part.rounds[0].steps if self.facts.part.rounds else ()
        count = len(self.evidence)
        return self.known(b, [math.inf] * count, [self.declared(claimed, index, b) for index in range(count)])

    def known(self, b: float, variances: Sequence[float], steps: Sequence[theorems.Steps]) -> Known:
        """What residuals within b, bounds of the variances and what is known of steps say together."""
        return Known(b, tuple(min(v, each.squares) for v, each in zip(variances, steps, strict=True)), tuple(steps))

    def declared(self, claimed: Sequence[StepsRecord], index: int, b: float) -> theorems.Steps:
        """Steps for residuals within b: where ranges were declared row by row, those of the rows, which only data tell."""
        derived = self.evidence[index].steps(b)
        if self.facts.record.setting.row_ranges is None or not self.facts.follows_variance:
            return derived
        if len(claimed) != len(self.evidence):
            raise Refuted("its rounds do not fit their proofs")
        largest, squares = min(claimed[index].largest, derived.largest), min(claimed[index].squares, derived.squares)
        if not (largest >= 0 and squares >= 0):
            raise Refuted("a step is not a length")
        return theorems.Steps(largest, largest, squares)

    def ball(self) -> Bound:
        """||theta||^2 <= R^2 over the penalized coordinates; of the features alone, where the rest has a ball of its own."""
        if self.facts.norm_bound is None:
            raise Refuted("it uses a ball, and no norm bound follows")
        return self._ball(self.features, self.facts.norm_bound)

    def rest(self) -> Bound:
        """||alpha||^2 + s^2 <= rho^2: what features miss, seen and unseen."""
        radius, mask = self.facts.rest_radius, ~self.features
        mask[: len(self.facts.part.penalized)] &= self.facts.part.penalized
        return self._ball(mask, radius)

    @property
    def features(self) -> BoolArray:
        """Which variables the norm of the features counts; without a rest, all but a constant."""
        part = self.facts.part
        mask = np.append(part.penalized, part.rest is None) if self.extra_variable else part.penalized.copy()
        if part.rest is not None:
            mask[: part.rest.coordinates] = False
        return mask

    def enclosing(self, *, unseen: bool) -> Bound:
        """The ball or, where there are two, an ellipsoid around them: ||theta||^2 + (R / rho)^2 (||alpha||^2 + s^2) <= 2 R^2.

        unseen: with one more variable.
        """
        if self.facts.norm_bound is None:
            raise Refuted("it uses a ball, and no norm bound follows")
        part, radius = self.facts.part, self.facts.norm_bound
        weights = np.append(part.penalized, True).astype(float) if unseen else part.penalized.astype(float)
        if part.rest is None:
            return Bound(Form.of(np.diag(weights), np.zeros(len(weights)), 0.0), radius**2)
        ratio = (radius / self.facts.rest_radius) ** 2
        weights[: part.rest.coordinates] *= ratio
        if unseen:
            weights[-1] *= ratio
        return Bound(Form.of(np.diag(weights), np.zeros(len(weights)), 0.0), 2 * radius**2)

    def _ball(self, mask: BoolArray, radius: float) -> Bound:
        return Bound(Form.of(np.diag(mask.astype(float)), np.zeros(len(mask)), 0.0), radius**2)

    def box(self) -> Bound:
        """The mean square of Q - middle over data, next and start points is at most (span / 2 + misfit)^2."""
        bound = plain_box(self.facts)
        if self.facts.part.unseen is None:
            return bound
        missed = self.facts.part.unseen[1]
        if self.unseen_is_constant:
            return Bound(bound.form, (math.sqrt(bound.limit) + self.facts.hidden * missed) ** 2)
        z = _share(bound.limit, missed, self.facts.hidden)
        return Bound(bound.form.with_variable(-(1 + 1 / z) * missed**2), (1 + z) * bound.limit)

    def rows(self, averaged: AveragedRecord, known: Sequence[Known]) -> Bound:
        """Every value, or every residual, lies in its range, averaged over points."""
        bound = rows_box(self.facts, averaged, known)
        return Bound(bound.form.with_variable(0.0), bound.limit) if self.extra_variable else bound

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
        if rate > 0 and not self.facts.rule.joint:
            raise Refuted("its radius has no constraint that follows the variance of each Q")
        evidence = self.evidence[index]
        rate, limit = self._limit(index, rate, known if self.facts.follows_variance else None)
        seen = evidence.squared.plus(evidence.variance, -rate) if rate else evidence.squared
        loss, hidden = evidence.missed
        if self.facts.part.unseen is None:
            return Bound(seen, limit)
        if self.unseen_is_constant:
            return Bound(seen, (math.sqrt(limit) + self.facts.hidden * loss) ** 2)
        y = max(self.facts.hidden * hidden / math.sqrt(max(limit / max(rate, 1e-300), 1e-300)), 1e-12)
        z = _share(limit, loss, self.facts.hidden)
        if not self.facts.follows_variance:
            return Bound(seen.with_variable(-(1 + 1 / z) * loss**2), (1 + z) * limit)
        seen = evidence.squared.plus(evidence.variance, -(1 + z) * (1 + y) * rate)
        unseen = (1 + 1 / z) * loss**2 + (1 + z) * (1 + 1 / y) * rate * hidden**2
        return Bound(seen.with_variable(-unseen), (1 + z) * limit)

    def variance(self, index: int, known: Known) -> Bound:
        """V_n / n^2 of the seen part is at most what is known of V_n at the true Q, and what is hidden."""
        if not 0 <= index < len(self.evidence) or not self.facts.follows_variance:
            raise Refuted("it names a constraint that is not there")
        evidence = self.evidence[index]
        root = math.sqrt(known.variances[index]) / evidence.count + evidence.gap[1]
        limit = root**2 + evidence.rounding / evidence.count
        if self.facts.part.unseen is None or evidence.missed == (0.0, 0.0):
            return Bound(evidence.variance, limit)
        z = _share(limit, evidence.missed[1], self.facts.hidden)
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
                case "rest":
                    bound = self.rest()
                case "enclosing":
                    bound = self.enclosing(unseen=self.extra_variable)
                case "box":
                    bound = self.box()
                case "rows":
                    if not 0 <= term.rows < len(self.facts.part.rows):
                        raise Refuted("it names points that are not there")
                    bound = self.rows(self.facts.part.rows[term.rows], known)
                case _:
                    raise Refuted(f"it names a constraint {term.role!r}")
            limit, slack = bound.limit if term.limit is None else term.limit, 1e-6 * abs(bound.limit)
            # A loss may be held to its least value where that cannot be told from the radius.
            one_number = term.role == "loss" and not self.facts.follows_variance
            highest = max(bound.limit, self.facts.part.least_loss) if one_number else bound.limit
            if not bound.limit - slack <= limit <= highest + slack + (1e-6 * highest if highest > bound.limit else 0.0):
                raise Refuted(f"a {term.role} is held to {limit:.6g}, not to {bound.limit:.6g}")
            found.append(Bound(bound.form, max(limit, bound.limit)))
        return found, [term.multiplier for term in terms]


def _share(limit: float, missed: float, radius: float) -> float:
    return max(radius * missed / math.sqrt(max(limit, 1e-300)), 1e-12)
