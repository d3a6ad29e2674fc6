"""bound_value: from logged transitions to a certified interval (Algorithm 1), as a composition of the public steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from ..classes.features import FeatureMap, KernelSections, Precomputed
from ..classes.ranges import ResidualRange, residual_range
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions, ValueRanges
from ..problem.policy import Policy
from ..problem.transitions import StartStates, Transitions
from ..programs.ellipsoid_ball import decompose
from ..radii.accounting import split_delta, start_radius
from ..radii.cut import fit_cut
from ..radii.registry import LossKind, Method, Radius, RadiusInputs, RadiusRule, radius_rule
from ..radii.self_normalized import self_normalized_statistic
from ..statistics.bellman import AnchorValues, BellmanSystem, bellman_system
from ..statistics.engines.tiles import Progress, TileOptions
from ..statistics.statistic import KernelStatistic, kernel_statistics
from ..validation import IntArray, probability_level
from .certified import solve_tightened
from .interval import ClassCertificates, ValueInterval, clip, hull
from .premises import value_premises
from .solving import check_one_step, effective_starts, pointwise_rows, prepare_ranges, rounding_slack, solve_class

DEFAULT_RADIUS = "certified"


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
    pointwise: bool = False,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> ValueInterval:
    """The largest and smallest value over all Q of the class whose kernel Bellman loss is consistent with the data.

    pointwise: Q lies in the value range at the logged points themselves, not only on average over them; slower, and narrower
    where the norm bound is loose.

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
        pointwise=pointwise,
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
    pointwise: bool = False,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    anchor: AnchorValues | None = None,
) -> tuple[ValueInterval, ...]:
    """`bound_value` for several radii, from one statistic. Each interval is valid on its own; do not pick the narrowest.

    With an anchor, the values of an existing Q, the class is anchor + features (see `diagnose`).
    """
    rules = [radius_rule(name) for name in radii]
    probability_level(delta)
    prepare_ranges(data, assumptions)  # contradictions are found before any work
    check_one_step(assumptions, policy)
    classes = as_classes(features)
    _check(classes, rules, assumptions, kernel, len(data))
    prepared = prepare(
        data,
        starts,
        policy,
        discount=assumptions.discount,
        kernel=kernel,
        features=classes,
        options=options,
        progress=progress,
        anchor=anchor,
    )
    return tuple(
        bound_prepared(prepared, assumptions=assumptions, radius=rule.name, delta=delta, pointwise=pointwise) for rule in rules
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data, classes and their statistics: all that costs O(n^2), to be bounded at many assumptions, radii and deltas."""

    data: Transitions
    starts: StartStates
    policy: Policy
    kernel: Kernel
    classes: tuple[FeatureMap | KernelSections | Precomputed, ...]
    systems: tuple[BellmanSystem, ...]
    statistics: tuple[KernelStatistic, ...]
    discount: float
    anchored: bool


def prepare(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    discount: float,
    kernel: Kernel,
    features: FeatureMap | KernelSections | Precomputed | Sequence[FeatureMap | KernelSections | Precomputed],
    options: TileOptions | None = None,
    progress: Progress | None = None,
    anchor: AnchorValues | None = None,
) -> Prepared:
    """The Bellman systems and kernel statistics of all classes at one discount."""
    classes = as_classes(features)
    systems = tuple(bellman_system(data, starts, policy, one, discount, anchor) for one in classes)
    statistics = tuple(kernel_statistics(systems, kernel, options, progress))
    return Prepared(data, starts, policy, kernel, classes, systems, statistics, discount, anchor is not None)


def as_classes(
    features: FeatureMap | KernelSections | Precomputed | Sequence[FeatureMap | KernelSections | Precomputed],
) -> tuple[FeatureMap | KernelSections | Precomputed, ...]:
    """One class or several, as a tuple that is not empty."""
    classes = tuple(features) if isinstance(features, Sequence) else (features,)
    if not classes:
        raise InvalidInput("`features` must name at least one feature class. Got an empty list.")
    return classes


def bound_prepared(
    prepared: Prepared,
    *,
    assumptions: Assumptions,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    pointwise: bool = False,
    planned: int | None = None,
) -> ValueInterval:
    """`bound_value` from a prepared statistic; the discount must be the one that it was prepared with.

    planned: the number of rows at which a radius for all n at once is tightest; the number of rows at hand by default, which is
    a choice made before the data only if their number was. Where the same data are bounded while they grow, it must not change.
    """
    rule = radius_rule(radius)
    probability_level(delta)
    if assumptions.discount != prepared.discount:
        raise InvalidInput(f"The statistic was prepared at discount {prepared.discount:g}. Got {assumptions.discount:g}.")
    kernel, starts, policy = prepared.kernel, prepared.starts, prepared.policy
    check_one_step(assumptions, policy)
    _check(prepared.classes, [rule], assumptions, kernel, len(prepared.data))
    ranges, terminates = prepare_ranges(prepared.data, assumptions)
    split = split_delta(delta, start_is_exact=starts.exact and policy.exact)
    start_error = 0.0 if split.start == 0 else start_radius(ranges.span, effective_starts(starts, policy), split.start)
    parts: list[ClassCertificates] = []
    found: list[Radius] = []
    import scipy.linalg  # noqa: F401  SciPy brings a BLAS of its own, which can be limited only once it is there

    # Small matrices: more than one BLAS thread only gets in its own way.
    with threadpool_limits(limits=1, user_api="blas"):
        for one, system, statistic in zip(prepared.classes, prepared.systems, prepared.statistics, strict=True):
            own = _Class(one, system, statistic, kernel, policy, prepared.data.episodes, terminates, prepared.anchored)
            part, level = _solve(own, rule, split.kernel, assumptions, ranges, planned or statistic.count, pointwise)
            parts.append(part)
            found.append(level)
    unclipped = hull(parts, start_error)
    lower, upper, status = clip(unclipped, ranges.value)
    premises = value_premises(
        assumptions,
        ranges,
        parts,
        kernel=repr(kernel),
        terminates=terminates,
        sampled_starts=start_error > 0,
        anchored=prepared.anchored,
        radius=rule,
        growing=planned is not None,
    )
    return ValueInterval(
        lower=lower,
        upper=upper,
        unclipped=unclipped,
        status=status,
        radius=max(found, key=lambda radius: radius.total),
        start_error=start_error,
        delta=split,
        assumptions=assumptions,
        ranges=ranges,
        certificates=tuple(parts),
        count=len(prepared.data),
        kernel=repr(kernel),
        terminates=terminates,
        premises=premises,
    )


@dataclass(frozen=True, eq=False)
class _Class:
    """One feature class with everything that a radius may ask for."""

    features: FeatureMap | KernelSections | Precomputed
    system: BellmanSystem
    statistic: KernelStatistic
    kernel: Kernel
    policy: Policy
    episodes: IntArray | None
    terminates: bool
    anchored: bool


def _solve(
    own: _Class, rule: RadiusRule, delta: float, assumptions: Assumptions, ranges: ValueRanges, planned: int, pointwise: bool
) -> tuple[ClassCertificates, Radius]:
    """Both ends of one class, and the radius that they rest on."""
    system, statistic, name = own.system, own.statistic, repr(own.features)
    inputs = RadiusInputs(statistic.count, ranges, own.kernel.supremum, delta, planned)
    rounding = rounding_slack(statistic, assumptions, ranges, system)
    rows = pointwise_rows(system, assumptions, ranges) if pointwise else None
    match rule.method:
        case Method.CONSTANT:
            radius = rule.radius(inputs, rounding)
        case Method.SELF_NORMALIZED:
            width = _residuals(own, assumptions, ranges).before_data
            weighed = self_normalized_statistic(system, own.kernel, statistic, width, delta, planned)
            statistic = weighed.statistic
            radius = rule.at(weighed.level, f"width {width:.4g}", delta, rounding)
        case Method.BOOTSTRAP:
            from ..radii.wild import wild_radius  # here and not at the top: few programs need it

            center = decompose(statistic.v_loss(), system.penalized).least_loss(None).theta
            level = wild_radius(system, own.kernel, center, delta)
            radius = rule.at(level, "residuals at the least loss", delta, rounding)
        case Method.FOLLOWING | Method.JOINT:
            residuals = _residuals(own, assumptions, ranges)
            if residuals.before_data > 0:
                cut = fit_cut(system, own.kernel, own.episodes) if rule.cut else None
                tight = solve_tightened(name, system, statistic, rule, delta, planned, assumptions, ranges, residuals, cut, rows)
                return tight.part, tight.radius
            radius = rule.at(0.0, "range 0", delta, rounding)  # residuals of the true Q are exactly 0
    return solve_class(name, system, statistic, radius, assumptions, ranges, rows), radius


def _residuals(own: _Class, assumptions: Assumptions, ranges: ValueRanges) -> ResidualRange:
    return residual_range(own.features, own.policy, assumptions, ranges, terminates=own.terminates, anchored=own.anchored)


def _check(
    classes: Sequence[FeatureMap | KernelSections | Precomputed],
    rules: Sequence[RadiusRule],
    facts: Assumptions,
    kernel: Kernel,
    rows: int,
) -> None:
    """What some radii, an RKHS class with a remainder, and a misfit need."""
    if any(rule.name == "symmetric" for rule in rules) and not facts.symmetric_noise:
        raise InvalidInput("`radius` symmetric needs `symmetric_noise=True`: residuals symmetric about 0 must be declared.")
    many = max((one.dimension for one in classes if not isinstance(one, KernelSections)), default=0)
    if many >= rows and any(rule.method is Method.BOOTSTRAP for rule in rules):
        raise InvalidInput(f"`radius` wild needs more rows than features: with {many} features nothing is left of the residuals.")
    sections = any(isinstance(one, KernelSections) for one in classes)
    if sections and facts.norm_bound is None:
        raise InvalidInput("`norm_bound` is needed with KernelSections: without it nothing limits what the coordinates miss.")
    if not sections and facts.misfit == 0:
        return
    what = "what KernelSections miss" if sections else "a `misfit`"
    if any(rule.loss is LossKind.U for rule in rules):
        raise InvalidInput(f"`radius` hoeffding-u bounds a U-statistic, which says nothing about {what}.")
    for rule in rules:
        if rule.method is Method.SELF_NORMALIZED or (sections and rule.method is Method.BOOTSTRAP):
            raise InvalidInput(f"`radius` {rule.name} says nothing about {what}.")
    if not kernel.nonnegative:
        raise InvalidInput(f"`kernel` must have no negative values with {what}. Got {kernel!r}.")
