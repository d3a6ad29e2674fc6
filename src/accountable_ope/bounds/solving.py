"""What stands around every program: ranges, start error, rounding, ball and box; and the ends of a class at one radius."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..errors import InvalidInput
from ..problem.assumptions import Assumptions, RelativeNorm, ValueRanges, value_ranges
from ..problem.contradictions import check_data
from ..problem.policy import Policy, SampledPolicy
from ..problem.transitions import StartStates, Transitions
from ..programs.certificate import Certificate, SolveStatus
from ..programs.ellipsoid_ball import decompose
from ..programs.extreme import FeasibleSet, extreme_value, least_correction
from ..programs.lagrangian import Constraint, Role
from ..programs.pointwise import PointwiseRows, with_rows
from ..programs.quadratic import Quadratic
from ..programs.remainder import with_remainder
from ..radii.registry import LossKind, Radius
from ..statistics.bellman import BellmanSystem
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray
from .interval import ClassCertificates
from .premises import counted_norm

UNDECLARED_NORM = 1e4
"""Without a declared norm bound, ||Q|| is taken to be at most so many times the largest value: wild enough for any Q."""


def prepare_ranges(data: Transitions, assumptions: Assumptions) -> tuple[ValueRanges, bool]:
    """(ranges, whether states may be terminal), after a look for contradictions between data and assumptions."""
    check_data(data, assumptions)
    terminates = assumptions.terminates
    if terminates is None:
        terminates = bool(data.terminated.any()) or assumptions.horizon is not None or assumptions.terminal_reward
    return value_ranges(assumptions, terminates=terminates), terminates


def check_one_step(assumptions: Assumptions, policy: Policy) -> None:
    """Raise where a one-step range says nothing about the residuals: drawn actions move them beyond r + discount V(s')."""
    if assumptions.one_step_range is not None and not policy.exact:
        raise InvalidInput(
            "`one_step_range` is about reward plus discounted next *value*, and a sampled policy puts the Q of drawn actions in "
            "place of that value: use a policy with exact expectations, or leave it out."
        )


def effective_starts(starts: StartStates, policy: Policy) -> float:
    """N of the Monte Carlo radius: independent start states, or independent draws at a known distribution of them."""
    draws = policy.draws if isinstance(policy, SampledPolicy) and starts.exact else 1
    return draws / float(starts.weights @ starts.weights)


def rounding_slack(statistic: KernelStatistic, assumptions: Assumptions, ranges: ValueRanges, system: BellmanSystem) -> float:
    """kernel_error * (mean of |Z||theta| + |v|)^2: how far rounding can move the loss of the true Q.

    The penalized part of theta has the declared norm, or at most sqrt(m) times the largest value; where that is a restriction,
    the premises say so.
    """
    scale, penalized = statistic.column_scale[: system.dimension], system.penalized
    largest_value = max(map(abs, ranges.value))
    norm = counted_norm(system.dimension, ranges)
    if isinstance(assumptions.norm_bound, float):
        norm = min(norm, assumptions.norm_bound)
    residual_size = norm * float(np.linalg.norm(scale[penalized])) + float(statistic.column_scale[system.dimension])
    if not penalized.all():
        residual_size += (largest_value + norm) * float(scale[~penalized].sum())
    return statistic.kernel_error * residual_size**2


def solve_class(
    name: str,
    system: BellmanSystem,
    statistic: KernelStatistic,
    radius: Radius,
    assumptions: Assumptions,
    ranges: ValueRanges,
    rows: PointwiseRows | None = None,
) -> ClassCertificates:
    """Both ends of one feature class; with rows, the value box holds at each of them and not only on average."""
    loss = statistic.v_loss() if radius.loss is LossKind.V else statistic.u_loss()
    decomposition = decompose(loss, system.penalized)
    # Q of the class differs from the true one by at most the misfit e: its loss has a root larger by (1 + discount) e kappa.
    added = (1 + system.discount) * assumptions.misfit * statistic.kappa
    limit = (math.sqrt(radius.total) + added) ** 2 if added > 0 else radius.total
    correction = least_correction(decomposition, limit) if decomposition.convex else None
    least_norm = None if correction is None else float(np.linalg.norm(correction[system.penalized]))
    norm_bound, note = norm_of_ball(assumptions, least_norm, ranges)
    box = value_box(system.box_moments, system.dimension, ranges, assumptions.misfit)
    feasible = FeasibleSet(decomposition, limit, norm_bound, box)
    upward, downward, missed = system.objective, -system.objective, 0.0
    if system.remainder is not None:
        seen = with_remainder(feasible, system.remainder, statistic.missed, system.objective)
        feasible, upward, downward, missed = seen.feasible, seen.upward, seen.downward, seen.missed
    upper = extreme_value(upward, feasible)
    lower = extreme_value(downward, feasible)
    if rows is not None:
        upper, lower = both_or_empty(with_rows(upper, rows).certificate, with_rows(lower, rows).certificate)
    chance_loss = math.nan
    if radius.loss is LossKind.V and system.remainder is None:
        chance_loss = statistic.variance()(decomposition.least_loss(norm_bound).theta)
    misfit = 0.0
    if feasible.empty and radius.loss is LossKind.V and statistic.kappa > 0:
        # Over the ball alone: a function that leaves the value box may still be near Q.
        over_ball = FeasibleSet(feasible.decomposition, feasible.limit, feasible.norm_bound).least_loss.lower_bound
        excess = math.sqrt(max(over_ball, 0.0)) - math.sqrt(feasible.limit)
        misfit = max(0.0, excess) / ((1 + system.discount) * statistic.kappa)
    return ClassCertificates(
        features=name,
        upper=upper,
        lower=lower,
        norm_bound=norm_bound,
        least_norm=least_norm,
        least_loss=feasible.least_loss.lower_bound,
        misfit=misfit,
        statistic=statistic,
        note=note,
        offset=system.offset,
        missed=missed + assumptions.misfit,
        chance_loss=chance_loss,
    )


def norm_of_ball(assumptions: Assumptions, least_norm: float | None, ranges: ValueRanges) -> tuple[float, str]:
    """The radius of the ball; without a declared one a ball so large that it only keeps the numbers finite, and says so."""
    bound = assumptions.norm_bound
    if isinstance(bound, float):
        return bound, ""
    if isinstance(bound, RelativeNorm) and least_norm:
        return bound.multiple * least_norm, ""
    free = UNDECLARED_NORM * max(map(abs, ranges.value), default=1.0) or 1.0
    if bound is None:
        return free, "none was declared"
    why = "a constant Q is consistent with the data" if least_norm == 0.0 else "no Q of the class is consistent with the data"
    return free, f"a multiple of the least norm bounds nothing here, since {why}"


def pointwise_rows(system: BellmanSystem, assumptions: Assumptions, ranges: ValueRanges) -> PointwiseRows | None:
    """low - misfit <= Q <= high + misfit at every kept point; None where the value range is a point."""
    low, high = ranges.value
    if system.remainder is not None:
        raise InvalidInput("`pointwise` is not for KernelSections: what their coordinates miss differs from point to point.")
    if not low < high:
        return None
    features, anchor = system.box_rows[:, :-1], system.box_rows[:, -1]
    return PointwiseRows.within(features, low - assumptions.misfit, high + assumptions.misfit, anchor)


def both_or_empty(upper: Certificate, lower: Certificate) -> tuple[Certificate, Certificate]:
    """A proof that the set is empty serves both ends."""
    for one in (upper, lower):
        if one.status is SolveStatus.EMPTY:
            return replace(one, objective=upper.objective), replace(one, objective=lower.objective)
    return upper, lower


def value_box(moments: FloatArray, dimension: int, ranges: ValueRanges, misfit: float = 0.0) -> Constraint | None:
    """mean_j (Q(y_j) - middle)^2 <= (span / 2 + misfit)^2 over data, next and start points y_j: Q and V lie in the value range.

    `moments` are those of [phi, 1], or of [phi, 1, anchor] for Q = anchor + theta'phi.
    """
    low, high = ranges.value
    middle, half = 0.5 * (low + high), 0.5 * (high - low) + misfit
    if half == 0:
        return None
    phi, one = slice(0, dimension), dimension
    linear, constant = middle * moments[phi, one], middle**2
    if len(moments) > dimension + 1:
        anchor = dimension + 1
        linear = linear - moments[phi, anchor]
        constant += float(moments[anchor, anchor] - 2 * middle * moments[one, anchor])
    return Constraint(Role.BOX, Quadratic(moments[phi, phi], linear, constant), half**2)
