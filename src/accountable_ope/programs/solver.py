"""The largest and the smallest value over a constraint set, each with its certificate: one solver, two strategies.

Evidence that is one number gives an ellipsoid, a ball and perhaps a box: `extreme` solves that exactly from one decomposition.
Evidence that follows the variance is tightened round by round (`tightening`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..validation import FloatArray, same_size
from .certificate import NOTHING, Argument, Certificate, LeastNormFound, SolveStatus
from .constraint import Constraint, LossOrigin, Role
from .constraint_set import ConstraintSet
from .ellipsoid_ball import decompose
from .envelope import Steps
from .evidence import widened
from .extreme import FeasibleSet, extreme_value, least_correction
from .pointwise import with_rows
from .pointwise_rows import PointwiseRows
from .proofs import Round, Tightening
from .tightening import ROUNDS, least_norm_of_rounds, tighten

ROUNDS_LEFT = 2
"""The most rounds, where those over a set around this one have been made."""

NEGLIGIBLE = 1e-4
"""Below this share of the square root of the radius, what is unseen is added as a constant, which keeps the program convex."""


@checked
@dataclass(frozen=True, eq=False)
class Solution:
    """Both ends of a constraint set; the lower one is minus the bound of its certificate.

    Attributes
    ----------
    constraints : ConstraintSet
    upper, lower : Certificate
    least_loss : float
        The least loss over the set without its evidence.
    least_loss_argument : Argument
        What proves that none is smaller; the loss itself comes first, with a multiplier of 1. Empty with rounds: the ball does.
    missed : float
        A constant to add to both ends.
    tightening : Tightening or None
        The rounds, None where the evidence is one number.
    """

    constraints: ConstraintSet
    upper: Certificate
    lower: Certificate
    least_loss: float
    least_loss_argument: Argument = NOTHING
    missed: float = 0.0
    tightening: Tightening | None = None

    @property
    def empty(self) -> bool:
        return self.upper.status is SolveStatus.EMPTY


@checked
def solve(constraints: ConstraintSet, objective: FloatArray, rows: PointwiseRows | None = None) -> Solution:
    """The largest and the smallest objective'theta over the set.

    Parameters
    ----------
    constraints : ConstraintSet
    objective : array (m,)
    rows : PointwiseRows, optional
        Values are bounded at each of these points too.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> from accountable_ope.programs import solve
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0), radius="azuma")
    >>> part = interval.certificates[0]
    >>> bool(np.isclose(solve(part.constraints, part.upper.objective).upper.bound, part.upper.bound))
    True
    """
    same_size(len(constraints.penalized), objective, "objective")
    strategy = _by_rounds if constraints.follows_variance else _at_once
    return strategy(constraints, objective, rows)


@checked
def least_norm(constraints: ConstraintSet) -> float | None:
    """The least norm of a function that is consistent with the evidence, or a lower bound of it where coordinates miss a part.

    Parameters
    ----------
    constraints : ConstraintSet

    Returns
    -------
    float or None
        None where no function is consistent, or none is known.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> from accountable_ope.programs import least_norm
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0), radius="azuma")
    >>> bool(least_norm(interval.certificates[0].constraints) <= mdp.norm)
    True
    """
    found = least_norm_found(constraints)
    return None if found is None else found.value


def least_norm_found(constraints: ConstraintSet) -> LeastNormFound | None:
    """The same, with the multipliers that prove it."""
    if constraints.follows_variance:
        return least_norm_of_rounds(constraints, np.zeros(len(constraints.squared_norm.a)), constraints.squared_norm)
    if not constraints.decomposition.convex or constraints.rest is not None:
        return None
    limit = _limit(constraints)
    if constraints.unseen is None:
        return _least_seen(constraints, limit)
    return _least_with_unseen(constraints, math.sqrt(limit))


def _least_seen(constraints: ConstraintSet, limit: float) -> LeastNormFound | None:
    """The least norm of coordinates whose loss is at most this; None where there are none."""
    theta, quadratic = least_correction(constraints.decomposition, limit), constraints.decomposition.quadratic
    if theta is None:
        return None
    # Where the norm is least, M theta = alpha (a - A theta), M the matrix of the norm.
    along = float(theta @ (quadratic.a - quadratic.A @ theta))
    squared = float(np.sum(theta[constraints.penalized] ** 2))
    argument = NOTHING
    if squared > 0 and along > 0:
        argument = Argument((Constraint(Role.LOSS, quadratic, limit, LossOrigin()),), np.array([squared / along]))
    return LeastNormFound(math.sqrt(squared), argument)


def _least_with_unseen(constraints: ConstraintSet, root: float) -> LeastNormFound | None:
    """No consistent function has a norm below this.

    One of norm r has an unseen part of norm at most r, so its coordinates, of norm at most r, have a root loss of at most
    root + r T: impossible while the least norm of such coordinates, which falls as r grows, is still above r.
    """
    missed = constraints.evidence[0].missed[0]

    def possible(r: float) -> bool:
        seen = _least_seen(constraints, (root + r * missed) ** 2)
        return seen is not None and seen.value <= r

    alone = _least_seen(constraints, root**2)
    high = constraints.radius if alone is None else alone.value
    if not possible(high * (1 + 1e-9)):  # the norm was found by iteration
        return None
    low = 0.0
    if possible(low):
        return LeastNormFound(0.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if possible(middle) else (middle, high)
    seen = _least_seen(constraints, (root + low * missed) ** 2)
    return LeastNormFound(low, NOTHING if seen is None else seen.argument)


def _limit(constraints: ConstraintSet) -> float:
    """What the loss is held to, for evidence that is one number."""
    evidence = constraints.evidence[0]
    return evidence.limit(evidence.bound(Steps.within(0.0), 0.0) * evidence.count**2, 0.0)[1]


def _at_once(constraints: ConstraintSet, objective: FloatArray, rows: PointwiseRows | None) -> Solution:
    feasible, (upward, downward), missed = _feasible_set(constraints, objective)
    upper, lower = extreme_value(upward, feasible), extreme_value(downward, feasible)
    if rows is not None:
        rows = rows.padded(len(upward))
        upper, lower = _both_or_empty(with_rows(upper, rows).certificate, with_rows(lower, rows).certificate)
    least = feasible.least_loss
    argument = Argument(feasible.constraints, least.multipliers)
    return Solution(constraints, upper, lower, least.lower_bound, argument, missed)


def _feasible_set(constraints: ConstraintSet, objective: FloatArray) -> tuple[FeasibleSet, tuple[FloatArray, FloatArray], float]:
    """The set, the objectives of both ends, and a constant to add to both."""
    evidence, unseen, R, limit = constraints.evidence[0], constraints.unseen, constraints.enclosing, _limit(constraints)
    if unseen is None or R is None:
        plain = FeasibleSet(constraints.decomposition, limit, R, constraints.box)
        return plain, (objective, -objective), 0.0 if unseen is None else math.inf
    loss, box = evidence.missed[0], constraints.box
    hidden = constraints.hidden
    if hidden * loss <= NEGLIGIBLE * math.sqrt(limit):
        limit = (math.sqrt(limit) + hidden * loss) ** 2
        if box is not None:
            box = replace(box, limit=(math.sqrt(box.limit) + hidden * unseen.box) ** 2)
        seen = FeasibleSet(constraints.decomposition, limit, R, box, _within(constraints, unseen=False))
        return seen, (objective, -objective), hidden * unseen.objective
    wider = widened(Constraint(Role.LOSS, evidence.squared, limit), loss, hidden)
    units = None if constraints.units is None else np.append(constraints.units, hidden / constraints.radius)
    decomposition = decompose(wider.quadratic, np.append(constraints.penalized, True), units)
    box = None if box is None else widened(box, unseen.box, hidden)
    feasible = FeasibleSet(decomposition, wider.limit, R, box, _within(constraints, unseen=True))
    return feasible, constraints.objectives(objective), 0.0


def _within(constraints: ConstraintSet, *, unseen: bool) -> tuple[Constraint, ...]:
    """The balls of both parts, where there are two: the one of the program is an ellipsoid around them."""
    return () if constraints.rest is None else constraints.balls(unseen=unseen)


def _both_or_empty(upper: Certificate, lower: Certificate) -> tuple[Certificate, Certificate]:
    """A proof that the set is empty serves both ends."""
    for each in (upper, lower):
        if each.status is SolveStatus.EMPTY:
            return replace(each, objective=upper.objective), replace(each, objective=lower.objective)
    return upper, lower


def _by_rounds(constraints: ConstraintSet, objective: FloatArray, rows: PointwiseRows | None) -> Solution:
    """With rows, values are bounded at each point in every round."""
    if rows is not None:
        constraints = replace(constraints, values=rows)
    return _in_rounds(constraints, objective)


def solve_from(constraints: ConstraintSet, objective: FloatArray, rows: PointwiseRows | None, begun: Round) -> Solution:
    """As `solve`, from what the rounds over a set around this one have shown: quicker, and no proof without those rounds."""
    if not constraints.follows_variance or len(begun.variances) != len(constraints.evidence):
        return solve(constraints, objective, rows)
    return _in_rounds(constraints if rows is None else replace(constraints, values=rows), objective, begun)


def _in_rounds(constraints: ConstraintSet, objective: FloatArray, begun: Round | None = None) -> Solution:
    upward, downward = constraints.objectives(objective)
    inside = constraints.inside
    upper, lower, tightening = tighten(constraints, upward, downward, inside, ROUNDS if begun is None else ROUNDS_LEFT, begun)
    least_loss = constraints.evidence[0].squared(constraints.least.theta)
    return Solution(constraints, upper, lower, least_loss, tightening=tightening)
