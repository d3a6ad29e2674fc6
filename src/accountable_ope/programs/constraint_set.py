"""The constraints that the true Q meets on one event: evidence, ball and value box; and what coordinates of an RKHS miss.

For Q = Q_P + g with ||g|| = s orthogonal to the coordinates, ||theta||^2 + s^2 <= R^2,
    sqrt(loss(Q_P)) <= sqrt(loss(Q)) + s T,   |value(Q) - value(Q_P)| <= s tau_0,   rms of g over the box points <= s tau_box,
and (u + w)^2 <= (1 + z) u^2 + (1 + 1/z) w^2 for every z > 0 keeps every constraint one quadratic in (theta, s).

Where a class has features and, for what they miss, a part of an RKHS, each has a ball of its own: ||theta||^2 <= R^2 for the
features, ||alpha||^2 + s^2 <= rho^2 for the rest. Both lie in one ellipsoid, which serves as the one ball of a fast solution:
||theta||^2 / R^2 + (||alpha||^2 + s^2) / rho^2 <= 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..validation import BoolArray, FloatArray
from .constraint import Constraint, LossOrigin, Role, ball
from .ellipsoid import Reach
from .ellipsoid_ball import Decomposition, LeastLoss, decompose
from .envelope import SquaredEnvelope, Steps
from .evidence import Evidence, widened
from .pointwise_rows import PointwiseRows
from .quadratic import Quadratic
from .rest_ball import RestBall
from .row_boxes import RowBoxes
from .step_rows import StepRows


@dataclass(frozen=True)
class Unseen:
    """What is missed of the objective and, in root mean square, at the box points, per unit of norm."""

    objective: float
    box: float


@dataclass(frozen=True)
class KnownBounds:
    """|eps| <= residual_bound; V_n at most these, and steps at most such, one per evidence, at the true Q.

    round: before the round of this number.
    """

    residual_bound: float
    variances: tuple[float, ...]
    steps: tuple[Steps, ...]
    round: int = 0


@checked
@dataclass(frozen=True, eq=False)
class ConstraintSet:
    """Evidence, the constraints that do not depend on it, and what was known before any data.

    Attributes
    ----------
    evidence : tuple of Evidence
    penalized : array (m,) of bool
        Which coefficients a norm counts.
    norm_bound : float or None
        The radius of the ball, None: no ball (for evidence that does not follow the variance).
    rest : RestBall or None
        The ball of what features miss; the other one is then of the features alone. None: one ball counts all.
    box : Constraint or None
        The value box, None where there is none.
    range : Reach
        How large residuals can be over a set of coefficients.
    joint : bool
        Constraints eps'(K - qD)eps <= p at several rates q; else q = 0 alone, a radius that follows the largest variance.
    unseen : Unseen or None
        What the coordinates of an RKHS miss, None where the class is what they span.
    steps : StepRows or None
        The residuals of all rows, None where the evidence is one number.
    values : PointwiseRows or None
        The value box at points, None where it is not used.
    """

    evidence: tuple[Evidence, ...]
    penalized: BoolArray
    norm_bound: float | None
    box: Constraint | None
    range: Reach
    joint: bool
    unseen: Unseen | None = None
    steps: StepRows | None = None
    values: PointwiseRows | None = None
    rest: RestBall | None = None

    def __repr__(self) -> str:
        return f"ConstraintSet({list(self.evidence)}, norm bound {self.radius:.4g})"

    @property
    def follows_variance(self) -> bool:
        """Whether rounds can tighten it: no evidence that is one number does."""
        return any(each.envelope.follows_variance for each in self.evidence)

    @cached_property
    def decomposition(self) -> Decomposition:
        """The first loss, in its own coordinates."""
        return decompose(self.evidence[0].squared, self.penalized, self.units)

    @property
    def units(self) -> FloatArray | None:
        """In which one ball counts the coefficients of all parts: rho / R for those of the rest; None: there is no rest."""
        if self.rest is None:
            return None
        units = np.ones(len(self.penalized))
        units[: self.rest.coordinates] = self.rest.radius / self.radius
        return units

    @property
    def enclosing(self) -> float | None:
        """The radius, in these units, of one ball that holds all parts."""
        return self.norm_bound if self.rest is None else math.sqrt(2) * self.radius

    @property
    def hidden(self) -> float:
        """The norm of what is unseen is at most this."""
        return self.radius if self.rest is None else self.rest.radius

    @cached_property
    def least(self) -> LeastLoss:
        """The least loss within the enclosing ball, what is unseen left out."""
        return self.decomposition.least_loss(self.enclosing)

    @cached_property
    def inside(self) -> FloatArray:
        """A point of small loss within the ball or both balls, for the size of things; nothing of it is unseen."""
        theta = (self.least if self.rest is None else self.decomposition.least_loss(self.norm_bound)).theta
        return theta if self.unseen is None else np.append(theta, 0.0)

    def _masks(self, *, unseen: bool) -> tuple[BoolArray, BoolArray]:
        """What the ball counts, and what that of the rest does; of what is unseen the latter, where there is one."""
        missed = np.ones(int(unseen), dtype=bool)
        if self.rest is None:
            return np.append(self.penalized, missed), np.zeros(0, dtype=bool)
        first = np.arange(len(self.penalized)) < self.rest.coordinates
        return np.append(self.penalized & ~first, ~missed), np.append(first, missed)

    @property
    def squared_norm(self) -> Quadratic:
        """||theta||^2 + s^2; of the features alone, where the rest has a ball of its own."""
        return ball(self._masks(unseen=self.unseen is not None)[0], 1.0).quadratic

    @property
    def radius(self) -> float:
        """The norm bound as a number."""
        return math.inf if self.norm_bound is None else self.norm_bound

    @cached_property
    def others(self) -> tuple[Constraint, ...]:
        """Balls and box, in theta and, where something is unseen, its norm."""
        constraints = list(self.balls(unseen=self.unseen is not None))
        if self.box is not None:
            constraints.append(self.box if self.unseen is None else widened(self.box, self.unseen.box, self.hidden))
        return tuple(constraints)

    def balls(self, *, unseen: bool) -> tuple[Constraint, ...]:
        """The ball and, where there is one, that of the rest; unseen: with the norm of what is unseen as one more variable."""
        of_features, of_rest = self._masks(unseen=unseen)
        found = [] if self.norm_bound is None else [ball(of_features, self.norm_bound)]
        if self.rest is not None:
            found.append(ball(of_rest, self.rest.radius, Role.REST))
        return tuple(found)

    @cached_property
    def boxes(self) -> RowBoxes | None:
        """Boxes at every row."""
        if self.values is None and self.steps is None:
            return None
        return RowBoxes(self.values, self.steps, len(self.penalized) + (self.unseen is not None))

    def objectives(self, objective: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is to be largest for the upper and for the lower end; what is unseen helps either."""
        if self.unseen is None:
            return objective, -objective
        return np.append(objective, self.unseen.objective), np.append(-objective, self.unseen.objective)

    def begin(self) -> KnownBounds:
        """What is known before any round."""
        bound = self.range.over_ball(self.radius)
        return self.reduced(bound, [math.inf] * len(self.evidence), None, 0)

    def reduced(self, bound: float, variances: Sequence[float], residuals: FloatArray | None, number: int) -> KnownBounds:
        """What follows from a range, bounds of the variances and, row by row, of the residuals in the data."""
        rows = self.steps
        possible = None if rows is None else rows.bounds(bound)
        found, squares = [], []
        for each, largest in zip(self.evidence, variances, strict=True):
            steps = each.steps(bound)
            if rows is not None and possible is not None and each.scale is not None:
                if rows.ranges is not None:
                    lengths = each.scale * possible
                    top, total = float(lengths.max(initial=0.0)), float(lengths @ lengths) * (1 + 1e-12)
                    steps = Steps.within(min(steps.largest, top), min(steps.squares, total))
                if residuals is not None:
                    seen = rows.largest_step(each.scale, possible, residuals)
                    steps = replace(steps, observed=min(steps.largest, seen))
            found.append(steps)
            squares.append(min(largest, steps.squares))
        return KnownBounds(bound, tuple(squares), tuple(found), number)

    def squares(self, known: KnownBounds) -> tuple[SquaredEnvelope, ...]:
        """The squared envelopes over the steps and the variances that are known."""
        pairs = zip(self.evidence, known.variances, known.steps, strict=True)
        return tuple(SquaredEnvelope(each.envelope, steps, largest, known.round) for each, largest, steps in pairs)

    def constraints(
        self, squares: Sequence[SquaredEnvelope], rates: Sequence[FloatArray], boxes: Sequence[Constraint] = ()
    ) -> tuple[Constraint, ...]:
        """The joint constraints at these rates, the variances that are known, ball and box, and boxes averaged over rows."""
        losses = [
            self.loss(index, squared, rate)
            for index, (squared, chosen) in enumerate(zip(squares, rates, strict=True))
            for rate in chosen.tolist()
        ]
        return (*losses, *self.variances(squares), *self.others, *boxes)

    def variances(self, squares: Sequence[SquaredEnvelope]) -> tuple[Constraint, ...]:
        """V_n is at most what is known of it."""
        return tuple(
            replace(each.variance_constraint(squared.largest, self.hidden), origin=LossOrigin(index, 0.0, squared.round))
            for index, (each, squared) in enumerate(zip(self.evidence, squares, strict=True))
        )

    def loss(self, index: int, squared: SquaredEnvelope, rate: float) -> Constraint:
        """The joint constraint of one evidence at one rate."""
        affine = squared.at(rate)
        found = self.evidence[index].constraint(affine.level, affine.rate, self.hidden)
        return replace(found, origin=LossOrigin(index, rate, squared.round))

    def least_root_loss(self) -> float:
        """A lower bound of sqrt(loss) over all functions of the class within the ball, seen and unseen parts together."""
        least = max(self.least.lower_bound, 0.0)
        return math.sqrt(least) - (self.hidden * self.evidence[0].missed[0] if self.unseen is not None else 0.0)
