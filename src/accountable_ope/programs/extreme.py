"""Extreme values over the functions that are consistent with the data, each with its certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, same_size
from .certificate import Certificate, SolveStatus
from .constraint import Constraint, Role
from .ellipsoid_ball import Decomposition, DiagonalSolution, LeastLoss
from .lagrangian import ROUNDING, counted_value, lagrangian_value
from .multipliers import DualSolution, maximize_dual
from .quadratic import Quadratic

UNIT = float(np.finfo(np.float64).eps)
SLIGHT_PULLS = (1e-11, 1e-9)
"""What is tried first to bring a point into the set."""

COUNTED_ALIKE = 1e-7
"""Two ways to count rounding that agree up to this share are as good as one."""


@dataclass(frozen=True)
class LeastLossFound:
    """The least loss over ball and box: attained (nearly) at theta, and not below lower_bound, as the multipliers prove."""

    theta: FloatArray
    loss: float
    lower_bound: float
    multipliers: FloatArray


@checked
@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """{theta: loss(theta) <= limit, ||theta_penalized|| <= norm_bound, box(theta) <= its limit, and so on}.

    Parameters
    ----------
    decomposition : Decomposition
        Of the loss; made once (`decompose`) and shared by sets that differ in limit, norm bound or box.
    limit : float
        Of the loss.
    norm_bound : float or None
        None: no ball.
    box : Constraint, optional
        The value box.
    balls : tuple of Constraint
        Balls of parts of theta, inside of the one that the norm bound gives.

    Raises
    ------
    InvalidInput
        Where the norm bound is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import FeasibleSet, Quadratic, decompose
    >>> loss = Quadratic(np.eye(2), np.array([1.0, 0.0]), 1.25)
    >>> decomposition = decompose(loss, np.array([True, True]))
    >>> FeasibleSet(decomposition, 0.5, norm_bound=4.0).empty, FeasibleSet(decomposition, 0.2, norm_bound=4.0).empty
    (False, True)
    """

    decomposition: Decomposition
    limit: float
    norm_bound: float | None
    box: Constraint | None = None
    balls: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        if self.norm_bound is not None and not self.norm_bound > 0:
            raise InvalidInput(f"`norm_bound` must be positive. Got {self.norm_bound!r}.")

    @cached_property
    def others(self) -> tuple[Constraint, ...]:
        """Ball, balls within it, and box."""
        constraints = []
        if self.norm_bound is not None:
            role = Role.ENCLOSING if self.balls else Role.BALL
            constraints.append(Constraint(role, self.decomposition.squared_norm, self.norm_bound**2))
        return (*constraints, *self.further)

    @cached_property
    def further(self) -> tuple[Constraint, ...]:
        """What the fast solution leaves out."""
        return self.balls if self.box is None else (*self.balls, self.box)

    def meets_further(self, theta: FloatArray) -> bool:
        """Whether that makes no difference at theta."""
        return all(c.quadratic(theta) <= c.limit for c in self.further)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """Loss, ball and box. A limit that cannot be told from the least loss is raised above it by what rounding may add."""
        limit = self.limit if self.empty else max(self.limit, self.least_loss.lower_bound + self.rounding)
        return (Constraint(Role.LOSS, self.decomposition.quadratic, limit), *self.others)

    @cached_property
    def rounding(self) -> float:
        """What rounding may add to the loss near its least value."""
        return self.decomposition.noise + 8 * UNIT * _terms(
            Constraint(Role.LOSS, self.decomposition.quadratic, 0.0), self._center
        )

    @cached_property
    def _center(self) -> FloatArray:
        """A point of the ball with a small loss, for the size of things."""
        if not self.decomposition.convex:
            return np.zeros(len(self.decomposition.mask))
        return self._least_in_ball.theta

    @cached_property
    def _least_in_ball(self) -> LeastLoss:
        return self.decomposition.least_loss(self.norm_bound)

    @cached_property
    def least_loss(self) -> LeastLossFound:
        """min loss over ball and box, with the multipliers that prove it (1 for the loss itself)."""
        loss = self.decomposition.quadratic
        others = self.others
        if self.decomposition.convex:
            found = self._least_in_ball
            weights = np.zeros(len(others))
            if self.norm_bound is not None:
                weights[0] = found.ball_multiplier
            if self.meets_further(found.theta) or found.lower_bound > self.limit + self.rounding:
                return LeastLossFound(found.theta, found.loss, found.lower_bound, np.concatenate([[1.0], weights]))
        if others:
            start = np.array([max(abs(loss.a0), UNIT) / max(c.limit, 1e-300) for c in others])
            dual = maximize_dual(loss, others, start, absolute_gap=1e-9 * max(abs(self.limit), self.rounding))
            if dual is not None:
                return LeastLossFound(dual.theta, loss(dual.theta), dual.bound, np.concatenate([[1.0], dual.multipliers]))
        return LeastLossFound(np.zeros(len(loss.a)), loss.a0, -math.inf, np.zeros(len(others) + 1))

    @cached_property
    def empty(self) -> bool:
        """Whether the least loss provably exceeds the limit."""
        return self.least_loss.lower_bound > self.limit + self.rounding and self.counted_least_loss > self.limit

    @cached_property
    def counted_least_loss(self) -> float:
        """A lower bound of the least loss however rounding is counted, which counts where a loss is next to nothing.

        With a reward that is a function of (s, a) and a discount of 0 the radius is 0 but for rounding, and the least loss of a
        class may be 1e-7 of the squares that cancel in it.
        """
        least = self.least_loss
        counted = counted_value(self.decomposition.quadratic, self.others, least.multipliers[1:])
        # Minus infinity: multipliers have grown without end over an empty ball and box, and the loss is lost beside them.
        alike = math.isinf(counted) or least.lower_bound - counted <= COUNTED_ALIKE * abs(least.lower_bound)
        return least.lower_bound if alike else counted

    def fastest(self, objective: FloatArray) -> DiagonalSolution:
        """The largest objective'theta without the box, for a convex loss."""
        return self.decomposition.maximize(objective, self.constraints[0].limit, self.norm_bound, self._least_in_ball)

    def contains(self, theta: FloatArray) -> bool:
        """Whether theta meets every constraint, up to rounding."""
        return all(c.quadratic(theta) <= c.limit + (self.rounding if c.role is Role.LOSS else 0.0) for c in self.constraints)


@checked
def extreme_value(objective: FloatArray, feasible: FeasibleSet) -> Certificate:
    """The largest objective'theta over the set, as a dual bound; for the least value turn the sign of the objective.

    Parameters
    ----------
    objective : array (m,)
    feasible : FeasibleSet

    Returns
    -------
    Certificate
        With status EMPTY where the set is empty, and UNBOUNDED where nothing bounds the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import FeasibleSet, Quadratic, decompose, extreme_value
    >>> loss = Quadratic(np.eye(2), np.array([1.0, 0.0]), 1.0)  # a disk of radius 1/2 around (1, 0)
    >>> feasible = FeasibleSet(decompose(loss, np.array([True, True])), limit=0.25, norm_bound=4.0)
    >>> round(extreme_value(np.array([1.0, 0.0]), feasible).bound, 6)
    1.5
    """
    same_size(len(feasible.decomposition.mask), objective, "objective")
    if feasible.empty:
        multipliers, proved = feasible.least_loss.multipliers, feasible.counted_least_loss
        return Certificate(objective, feasible.constraints, multipliers, proved, None, SolveStatus.EMPTY)
    if not objective.any():
        nothing = np.zeros(len(feasible.constraints))
        inside = feasible.least_loss.theta
        return Certificate(
            objective, feasible.constraints, nothing, 0.0, inside if feasible.contains(inside) else None, SolveStatus.OPTIMAL
        )
    if not feasible.decomposition.convex:
        return _by_multipliers(objective, feasible, None)
    fast = feasible.fastest(objective)
    multipliers = np.zeros(len(feasible.constraints))
    multipliers[0] = fast.loss_multiplier
    if feasible.norm_bound is not None:
        multipliers[1] = fast.ball_multiplier
    bounded = math.isfinite(fast.bound)
    without_box = None
    if bounded and fast.theta is not None:
        bound = _recomputed(objective, feasible, multipliers, fast.bound, fast.theta)
        without_box = _certificate(objective, feasible, multipliers, bound, fast.theta) if math.isfinite(bound) else None
    if not feasible.further:
        unbounded = Certificate(objective, feasible.constraints, multipliers, math.inf, None, SolveStatus.UNBOUNDED)
        return without_box or unbounded
    if without_box is not None and fast.theta is not None and feasible.meets_further(fast.theta):
        return without_box
    return _by_multipliers(objective, feasible, without_box)


@checked
def least_correction(decomposition: Decomposition, limit: float) -> FloatArray | None:
    """The theta of least norm whose loss is at most `limit`.

    Parameters
    ----------
    decomposition : Decomposition
        Of the loss.
    limit : float

    Returns
    -------
    array (m,) or None
        0 where possible, None when no theta reaches the limit.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.programs import Quadratic, decompose, least_correction
    >>> loss = decompose(Quadratic(np.eye(2), np.array([1.0, 0.0]), 1.0), np.array([True, True]))
    >>> bool(np.allclose(least_correction(loss, 0.25), [0.5, 0.0], atol=1e-6))
    True
    """
    return decomposition.least_norm(limit)


def _by_multipliers(objective: FloatArray, feasible: FeasibleSet, known: Certificate | None) -> Certificate:
    """Newton's method on all multipliers; never worse than the certificate that is known already."""
    dual = maximize_dual(Quadratic.linear(objective), feasible.constraints, _first_multipliers(objective, feasible, known))
    if dual is None and known is not None:
        inside = known.point is not None and feasible.contains(known.point)
        return known if inside else replace(known, point=None, status=SolveStatus.BOUND_ONLY)
    if dual is None:
        return Certificate(
            objective,
            feasible.constraints,
            np.zeros(len(feasible.constraints)),
            math.inf,
            None,
            SolveStatus.UNBOUNDED,
        )
    point = _into_set(dual, feasible)
    found = _certificate(objective, feasible, dual.multipliers, -dual.bound, point)
    if known is not None and known.bound < found.bound:
        return _certificate(objective, feasible, known.multipliers, known.bound, point)
    return found


def _first_multipliers(objective: FloatArray, feasible: FeasibleSet, known: Certificate | None) -> FloatArray:
    """Multipliers of the right order of magnitude: (range of the objective) / (limit of the constraint)."""
    if feasible.norm_bound is not None:
        spread = float(np.linalg.norm(objective)) * feasible.norm_bound
    else:
        spread = float(np.linalg.norm(objective)) * max(float(np.linalg.norm(feasible.least_loss.theta)), 1e-6)
    spread = max(spread, 1e-300)
    limits = [max(abs(c.limit), feasible.rounding) for c in feasible.constraints]
    first = spread / np.array(limits)
    if known is not None:
        first = np.maximum(known.multipliers, 0.1 * first)
    return first


def _into_set(dual: DualSolution, feasible: FeasibleSet) -> FloatArray | None:
    """The end of the path, pulled toward the least-loss point until it meets every constraint; None when that fails."""
    inside, target = feasible.least_loss.theta, dual.theta
    if feasible.contains(target):
        return target
    if not feasible.contains(inside):
        return None
    for pull in SLIGHT_PULLS:
        pulled = inside + (1 - pull) * (target - inside)
        if feasible.contains(pulled):
            return np.asarray(pulled)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if feasible.contains(inside + middle * (target - inside)):
            low = middle
        else:
            high = middle
    return np.asarray(inside + low * (target - inside))


def _certificate(
    objective: FloatArray, feasible: FeasibleSet, multipliers: FloatArray, bound: float, point: FloatArray | None
) -> Certificate:
    """The bound, raised by what rounding may have taken from it: to first order, sum_j alpha_j * (rounding of q_j there)."""
    size = abs(bound)
    raised = bound + 8 * UNIT * size
    if point is not None:
        size += float(np.abs(objective) @ np.abs(point))
        raised += 8 * UNIT * (size + _weighted_terms(feasible, multipliers, point))
    extent = float(np.linalg.norm(objective)) * (feasible.norm_bound or 0.0)
    close = point is not None and raised - float(objective @ point) <= max(1e-6 * size, 1e-9 * extent)
    status = SolveStatus.OPTIMAL if close else SolveStatus.BOUND_ONLY
    return Certificate(objective, feasible.constraints, multipliers, raised, point, status)


def _recomputed(objective: FloatArray, feasible: FeasibleSet, multipliers: FloatArray, bound: float, theta: FloatArray) -> float:
    """The bound as a checker will compute it, where rounding may tell the two apart; computed again only where it may."""
    size = abs(bound) + float(np.abs(objective).dot(np.abs(theta)))
    pad = len(theta) * ROUNDING * _weighted_terms(feasible, multipliers, theta)
    if pad <= 1e-8 * size:
        return bound
    value, _ = lagrangian_value(Quadratic.linear(objective), feasible.constraints, multipliers)
    return max(bound, -value)


def _weighted_terms(feasible: FeasibleSet, multipliers: FloatArray, theta: FloatArray) -> float:
    """sum_j alpha_j * (size of what is added up in q_j), over the constraints that count."""
    weights = multipliers.tolist()
    return float(sum(alpha * _terms(c, theta) for c, alpha in zip(feasible.constraints, weights, strict=True) if alpha))


def _terms(constraint: Constraint, theta: FloatArray) -> float:
    """The size of what is added up in q(theta) - limit; |theta|'|A||theta| <= (sum sqrt|A_ii| |theta_i|)^2 for a convex q."""
    q = constraint.quadratic
    (root, linear), lengths = q.sizes, np.abs(theta)
    return float(root @ lengths) ** 2 + 2 * float(linear @ lengths) + abs(q.a0) + abs(constraint.limit)
