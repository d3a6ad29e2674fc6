"""bound_value: from logged transitions to a certified interval (Algorithm 1), as a composition of the public steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from .assumptions import Assumptions, RelativeNorm, ValueRanges, value_ranges
from .bellman import AnchorValues, BellmanSystem, bellman_system
from .concentration.accounting import split_delta, start_radius
from .contradictions import check_data
from .errors import InvalidInput
from .features import FeatureMap, KernelSections, Precomputed
from .kernels import Kernel
from .policy import Policy, SampledPolicy
from .premises import counted_norm, value_premises
from .programs.ellipsoid_ball import decompose
from .programs.extreme import FeasibleSet, extreme_value, least_correction
from .programs.lagrangian import Constraint, Role
from .programs.remainder import with_remainder
from .quadratic import Quadratic
from .radius import LossKind, Radius, RadiusInputs, RadiusRule, radius_rule
from .reductions.numpy_tiles import Progress, TileOptions
from .result import ClassCertificates, ValueInterval, clip, hull
from .statistic import KernelStatistic, kernel_statistics
from .transitions import StartStates, Transitions
from .validation import FloatArray, probability_level

DEFAULT_RADIUS = "azuma"

UNDECLARED_NORM = 1e4
"""Without a declared norm bound, ||Q|| is taken to be at most so many times the largest value: wild enough for any Q."""


def bound_value(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    kernel: Kernel,
    features: FeatureMap | KernelSections | Precomputed | Sequence[FeatureMap | KernelSections | Precomputed],
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> ValueInterval:
    """The largest and smallest value over all Q of the class whose kernel Bellman loss is consistent with the data.

    Several feature classes give the hull of their intervals, valid at the same delta if Q is in at least one of them.
    """
    return bound_ladder(
        data,
        starts,
        policy,
        assumptions=assumptions,
        kernel=kernel,
        features=features,
        radii=(radius,),
        delta=delta,
        options=options,
        progress=progress,
    )[0]


def bound_ladder(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    kernel: Kernel,
    features: FeatureMap | KernelSections | Precomputed | Sequence[FeatureMap | KernelSections | Precomputed],
    radii: Sequence[str],
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    anchor: AnchorValues | None = None,
) -> tuple[ValueInterval, ...]:
    """`bound_value` for several radii, from one statistic. Each interval is valid on its own; do not pick the narrowest.

    With an anchor, the values of an existing Q, the class is anchor + features (see `diagnose`).
    """
    rules = [radius_rule(name) for name in radii]
    probability_level(delta)
    classes = list(features) if isinstance(features, Sequence) else [features]
    if not classes:
        raise InvalidInput("`features` must name at least one feature class. Got an empty list.")
    _check_sections(classes, rules, assumptions, kernel)
    ranges, terminates = prepare_ranges(data, assumptions)
    split = split_delta(delta, start_is_exact=starts.exact and policy.exact)
    start_error = 0.0 if split.start == 0 else start_radius(ranges.span, effective_starts(starts, policy), split.start)

    systems = [bellman_system(data, starts, policy, one, assumptions.discount, anchor) for one in classes]
    statistics = kernel_statistics(systems, kernel, options, progress)

    intervals = []
    for rule in rules:
        inputs = RadiusInputs(len(data), ranges, kernel.supremum, split.kernel)
        parts = []
        widest = rule.radius(inputs, rounding=0.0)
        # Small matrices: more than one BLAS thread only gets in its own way.
        with threadpool_limits(limits=1, user_api="blas"):
            for one, system, statistic in zip(classes, systems, statistics, strict=True):
                own = rule.radius(inputs, rounding_slack(statistic, assumptions, ranges, system))
                widest = own if own.total > widest.total else widest
                parts.append(solve_class(repr(one), system, statistic, own, assumptions, ranges))
        unclipped = hull(parts, start_error)
        lower, upper, status = clip(unclipped, ranges.value)
        premises = value_premises(
            assumptions,
            ranges,
            parts,
            kernel=repr(kernel),
            terminates=terminates,
            sampled_starts=start_error > 0,
            anchored=anchor is not None,
        )
        intervals.append(
            ValueInterval(
                lower=lower,
                upper=upper,
                unclipped=unclipped,
                status=status,
                radius=widest,
                start_error=start_error,
                delta=split,
                assumptions=assumptions,
                ranges=ranges,
                certificates=tuple(parts),
                count=len(data),
                kernel=repr(kernel),
                terminates=terminates,
                premises=premises,
            )
        )
    return tuple(intervals)


def _check_sections(
    classes: Sequence[FeatureMap | KernelSections | Precomputed], rules: Sequence[RadiusRule], facts: Assumptions, kernel: Kernel
) -> None:
    """What an RKHS class with a remainder needs."""
    if not any(isinstance(one, KernelSections) for one in classes):
        return
    if facts.norm_bound is None:
        raise InvalidInput("`norm_bound` is needed with KernelSections: without it nothing limits what the coordinates miss.")
    if any(rule.loss is LossKind.U for rule in rules):
        raise InvalidInput("`radius` hoeffding-u bounds a U-statistic, which says nothing about what KernelSections miss.")
    if not kernel.nonnegative:
        raise InvalidInput(f"`kernel` must have no negative values with KernelSections. Got {kernel!r}.")


def prepare_ranges(data: Transitions, assumptions: Assumptions) -> tuple[ValueRanges, bool]:
    """(ranges, whether states may be terminal), after a look for contradictions between data and assumptions."""
    check_data(data, assumptions)
    terminates = assumptions.terminates
    if terminates is None:
        terminates = bool(data.terminated.any()) or assumptions.horizon is not None or assumptions.terminal_reward
    return value_ranges(assumptions, terminates=terminates), terminates


def effective_starts(starts: StartStates, policy: Policy) -> float:
    """N of the Monte Carlo radius: independent start states, or independent draws at a known distribution of them."""
    draws = policy.draws if isinstance(policy, SampledPolicy) and starts.exact else 1
    return draws / float(starts.weights @ starts.weights)


def rounding_slack(statistic: KernelStatistic, assumptions: Assumptions, ranges: ValueRanges, system: BellmanSystem) -> float:
    """kernel_error * (mean of |Z||theta| + |v|)^2: how far rounding can move the loss of the true Q.

    The penalised part of theta has the declared norm, or at most sqrt(m) times the largest value; where that is a restriction,
    the premises say so.
    """
    scale, penalised = statistic.column_scale[: system.dimension], system.penalised
    largest_value = max(map(abs, ranges.value))
    norm = counted_norm(system.dimension, ranges)
    if isinstance(assumptions.norm_bound, float):
        norm = min(norm, assumptions.norm_bound)
    residual_size = norm * float(np.linalg.norm(scale[penalised])) + float(statistic.column_scale[system.dimension])
    if not penalised.all():
        residual_size += (largest_value + norm) * float(scale[~penalised].sum())
    return statistic.kernel_error * residual_size**2


def solve_class(
    name: str, system: BellmanSystem, statistic: KernelStatistic, radius: Radius, assumptions: Assumptions, ranges: ValueRanges
) -> ClassCertificates:
    """Both ends of one feature class."""
    loss = statistic.v_loss() if radius.loss is LossKind.V else statistic.u_loss()
    decomposition = decompose(loss, system.penalised)
    correction = least_correction(decomposition, radius.total) if decomposition.convex else None
    least_norm = None if correction is None else float(np.linalg.norm(correction[system.penalised]))
    norm_bound, note = _norm_bound(assumptions, least_norm, ranges)
    box = _value_box(system.box_moments, system.dimension, ranges)
    feasible = FeasibleSet(decomposition, radius.total, norm_bound, box)
    upward, downward, missed = system.objective, -system.objective, 0.0
    if system.remainder is not None:
        seen = with_remainder(feasible, system.remainder, statistic.missed, system.objective)
        feasible, upward, downward, missed = seen.feasible, seen.upward, seen.downward, seen.missed
    upper = extreme_value(upward, feasible)
    lower = extreme_value(downward, feasible)
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
        missed=missed,
    )


def _norm_bound(assumptions: Assumptions, least_norm: float | None, ranges: ValueRanges) -> tuple[float, str]:
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


def _value_box(moments: FloatArray, dimension: int, ranges: ValueRanges) -> Constraint | None:
    """mean_j (Q(y_j) - middle)^2 <= (span / 2)^2 over data, next and start points y_j, since Q and V lie in the value range.

    `moments` are those of [phi, 1], or of [phi, 1, anchor] for Q = anchor + theta'phi.
    """
    low, high = ranges.value
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if half == 0:
        return None
    phi, one = slice(0, dimension), dimension
    linear, constant = middle * moments[phi, one], middle**2
    if len(moments) > dimension + 1:
        anchor = dimension + 1
        linear = linear - moments[phi, anchor]
        constant += float(moments[anchor, anchor] - 2 * middle * moments[one, anchor])
    return Constraint(Role.BOX, Quadratic(moments[phi, phi], linear, constant), half**2)
