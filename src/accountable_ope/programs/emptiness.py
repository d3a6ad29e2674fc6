"""Proofs that no theta meets all constraints: from one of them against the others, or from two ends that cross."""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray
from .certificate import Certificate, SolveStatus
from .constraint import Constraint, Role
from .constraint_set import ConstraintSet, KnownBounds
from .lagrangian import counted_value, lagrangian_value
from .multipliers import maximize_dual


def prove_empty(feasible: ConstraintSet, known: KnownBounds, inside: FloatArray) -> Certificate | None:
    """A proof that no theta meets a joint constraint within variances, ball and box, or None."""
    squares = feasible.squares(known)
    others = (*feasible.variances(squares), *feasible.others)
    for index, squared in enumerate(squares):
        evidence = feasible.evidence[index]
        variance = evidence.variance(inside[: len(evidence.variance.a)]) * evidence.count**2
        loss = feasible.loss(index, squared, squared.touching(variance).rate if feasible.joint else 0.0)
        if all(c.quadratic(inside) <= c.limit for c in (loss, *others)):
            continue
        size = max(abs(loss.quadratic(inside)), abs(loss.limit))
        start = np.array([size / max(c.limit, 1e-300) for c in others])
        dual = maximize_dual(loss.quadratic, others, start, relative_gap=1e-6, absolute_gap=1e-6 * abs(loss.limit))
        if dual is not None and dual.bound > loss.limit:
            constraints = (loss, *others)
            least, multipliers = _regular(constraints, np.concatenate([[1.0], dual.multipliers]), dual.bound)
            return Certificate(inside * 0, constraints, multipliers, least, None, SolveStatus.EMPTY)
    return None


def empty_from_ends(upper: Certificate, lower: Certificate) -> Certificate | None:
    """Ends that cross: both sets of multipliers together prove that there is nothing between them; None: rounding hides it."""
    constraints = (*upper.constraints, *lower.constraints)
    multipliers = np.concatenate([upper.multipliers, lower.multipliers])
    first = next(j for j, (c, a) in enumerate(zip(constraints, multipliers, strict=True)) if c.role is Role.LOSS and a > 0)
    order = [first, *(j for j in range(len(constraints)) if j != first)]
    constraints = tuple(constraints[j] for j in order)
    multipliers = multipliers[order] / multipliers[first]
    loss, others = constraints[0], constraints[1:]
    plain, _ = lagrangian_value(loss.quadratic, others, multipliers[1:])
    if not plain > loss.limit:
        return None
    _, multipliers = _regular(constraints, multipliers, plain)
    least = counted_value(loss.quadratic, others, multipliers[1:])
    if not least > loss.limit:
        return None
    return Certificate(upper.objective, constraints, multipliers, least, None, SolveStatus.EMPTY)


def _regular(constraints: tuple[Constraint, ...], multipliers: FloatArray, least: float) -> tuple[float, FloatArray]:
    """A proof of emptiness, the loss first, with a tenth of what is proved given to the balls, which keeps the matrix regular.

    Narrow boxes, or constraints that contradict each other without the loss, have multipliers beside which a ball is lost in
    rounding.
    """
    loss, others = constraints[0], constraints[1:]
    balls = np.array([c.role in (Role.BALL, Role.REST) and c.limit > 0 for c in others])
    if not balls.any():
        return least, multipliers
    limits = np.array([c.limit for c in others])[balls]
    regular = multipliers.copy()
    regular[1:][balls] += 0.1 * (least - loss.limit) / (limits * len(limits))
    kept = counted_value(loss.quadratic, others, regular[1:])
    return (kept, regular) if kept > loss.limit else (least, multipliers)


def emptied(empty: Certificate, objective: FloatArray) -> Certificate:
    """The proof beside the objective of an end that does not exist."""
    return Certificate(objective, empty.constraints, empty.multipliers, empty.bound, None, SolveStatus.EMPTY)
