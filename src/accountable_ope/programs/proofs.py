"""What the iteration of `tightening` proved, round by round, and how it is proved again.

Every proof is a set of multipliers: the bounds of variance and range follow from them and from what was known before, without
any search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..validation import FloatArray
from .constraint import Constraint
from .constraint_set import ConstraintSet, KnownBounds
from .ellipsoid import Ellipsoid, root_over
from .envelope import Steps
from .lagrangian import GENEROUS, counted_value

WELL_CONDITIONED = 4e-9
"""An ellipsoid with a smaller pivot, in units of its diagonal, is not used for ranges."""


@dataclass(frozen=True)
class Round:
    """One round: what the set was known to satisfy before it.

    residual_bound: b, every |eps| at Q is at most this.
    variances:      V_n at Q is at most this, one number per evidence.
    steps:          what is known of the steps at Q, one entry per evidence.
    count:          n, of the kernel.
    """

    residual_bound: float
    variances: tuple[float, ...]
    steps: tuple[Steps, ...]
    count: int

    @property
    def variance(self) -> float:
        """V_n / n at Q is at most this, for the kernel."""
        return self.variances[0] / self.count


@dataclass(frozen=True, eq=False)
class Proof:
    """A Lagrangian bound: the rates q of the joint constraints (one array per evidence) and a multiplier for every constraint.

    boxes: constraints beside those of the set, averaged over rows.
    """

    rates: tuple[FloatArray, ...]
    multipliers: FloatArray
    boxes: tuple[Constraint, ...] = ()


@dataclass(frozen=True, eq=False)
class Step:
    """What proves that the set of a round has the variances (one proof per evidence) and the range that the next begins with."""

    variances: tuple[Proof | None, ...]
    range: tuple[Proof, ...]


@dataclass(frozen=True, eq=False)
class Tightening:
    """The whole iteration, and all that is needed to check it again.

    rate:           q of the constraint that decided the upper end in the last round.
    identification: smallest over largest eigenvalue of Z'(K - qD)Z; where it is negative the data alone leave a direction open,
                    and only the ball or the box closes it.
    """

    constraints: ConstraintSet
    rounds: tuple[Round, ...]
    steps: tuple[Step, ...]
    rate: float
    identification: float

    def __repr__(self) -> str:
        return f"Tightening({len(self.rounds)} rounds, {self.constraints!r})"

    @property
    def level(self) -> float:
        """U^2 / n^2 at the last steps and variance: the constant radius that the iteration amounts to."""
        last, evidence = self.rounds[-1], self.constraints.evidence[0]
        return evidence.bound(last.steps[0], last.variance / evidence.count)

    def summary(self) -> str:
        """In words, how far the iteration came."""
        first, last, n = self.rounds[0], self.rounds[-1], len(self.rounds)
        line = (
            f"Tightened in {n} round{'s' * (n > 1)}, each with what the one before proved of Bellman residuals: none is larger "
            f"than {first.residual_bound:.4g} -> {last.residual_bound:.4g}, their root mean square is at most "
            f"{math.sqrt(first.variance):.4g} -> {math.sqrt(last.variance):.4g}."
        )
        if self.identification < 0:
            line += " The data alone leave a direction of Q open; the norm bound or the value range closes it."
        return line


def after(feasible: ConstraintSet, known: KnownBounds, step: Step) -> KnownBounds:
    """What the proofs of a step say, given what was known."""
    squares = feasible.squares(known)
    around = ellipsoids_around(
        (feasible.constraints(squares, proof.rates, proof.boxes), proof.multipliers) for proof in step.range
    )
    variances = []
    for evidence, before, proof in zip(feasible.evidence, known.variances, step.variances, strict=True):
        roots = [root_over(evidence.variance, each) for each in around]
        if proof is not None:
            constraints = feasible.constraints(squares, proof.rates, proof.boxes)
            value = counted_value(evidence.variance_goal(), constraints, proof.multipliers)
            roots.append(math.sqrt(max(-value, 0.0)))
        hidden = feasible.hidden * evidence.missed[1] + evidence.gap[1] if any(evidence.missed) else evidence.gap[1]
        variances.append(min([before, *((root + hidden) ** 2 * evidence.count**2 for root in roots)]))
    bound, residuals = known.residual_bound, None
    if around:
        bound = min(bound, feasible.range.over(around, feasible.radius))
        scales = [each.scale for each in feasible.evidence if each.scale is not None]
        residuals = None if feasible.steps is None else feasible.steps.largest(around, feasible.hidden, scales)
    found = feasible.reduced(bound, variances, residuals, known.round + 1)
    pairs = zip(found.steps, known.steps, strict=True)
    return replace(found, steps=tuple(replace(now, observed=min(now.observed, before.observed)) for now, before in pairs))


def ellipsoids_around(proofs: Iterable[tuple[tuple[Constraint, ...], FloatArray]]) -> list[Ellipsoid]:
    """{theta: sum_j alpha_j (q_j(theta) - limit_j) <= 0} holds the set, for any multipliers alpha."""
    ellipsoids = []
    for constraints, multipliers in proofs:
        used = [(c, a) for c, a in zip(constraints, multipliers.tolist(), strict=True) if a > 0]
        if not used:
            continue
        H = sum((a * c.quadratic.A for c, a in used), np.zeros_like(constraints[0].quadratic.A))
        h = sum((a * c.quadratic.a for c, a in used), np.zeros(len(H)))
        room = sum(a * (c.limit - c.quadratic.a0) for c, a in used)
        try:
            factor = np.linalg.cholesky(H)
            center = np.linalg.solve(H, h)
        except np.linalg.LinAlgError:
            continue
        if float((np.diagonal(factor) ** 2 / np.diagonal(H)).min()) < WELL_CONDITIONED:
            continue  # rounding could move it; the set lies in the others all the same
        size = sum(a * (abs(c.limit) + c.quadratic.absolute[2]) for c, a in used) + float(np.diagonal(H) @ center**2)
        squared = room + float(h @ center) + GENEROUS * 1e-12 * len(h) * size
        ellipsoids.append(Ellipsoid(center, factor, math.sqrt(max(squared, 0.0)) * (1 + GENEROUS * 1e-9)))
    return ellipsoids
