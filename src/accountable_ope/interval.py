"""bound_value: from logged transitions to a certified interval (Algorithm 1), as a composition of the public steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .assumptions import Assumptions, RelativeNorm, ValueRanges, value_ranges
from .bellman import BellmanSystem, bellman_system
from .concentration.accounting import DeltaSplit, split_delta, start_radius
from .errors import InvalidInput
from .features import FeatureMap, Precomputed
from .kernels import Kernel
from .policy import Policy, SampledPolicy
from .programs.certificate import Certificate, SolveStatus
from .programs.ellipsoid_ball import decompose
from .programs.extreme import FeasibleSet, extreme_value, least_correction
from .programs.lagrangian import Constraint, Role
from .quadratic import Quadratic
from .radius import Guarantee, LossKind, Radius, RadiusInputs, radius_rule
from .reductions.numpy_tiles import Progress, TileOptions
from .statistic import KernelStatistic, kernel_statistics
from .transitions import StartStates, Transitions
from .validation import FloatArray, probability_level

DEFAULT_RADIUS = "azuma"


class Status(Enum):
    """What the interval says; the value is the advice."""

    OK = "The data and the assumptions bound the value."
    VACUOUS = (
        "The interval is the whole range of values that the declared ranges allow: the data add nothing at this radius. "
        "More transitions, a smaller discount, a tighter value range or norm bound, or another radius would."
    )
    INCONSISTENT = (
        "No function of the class is consistent with the data at this delta, so the class does not contain Q. "
        "Use more or other features, or a larger norm bound."
    )


@dataclass(frozen=True, eq=False)
class ClassCertificates:
    """What one feature class contributes: both ends with their certificates, or the proof that it is inconsistent.

    least_loss is the smallest loss over ball and box. misfit: where the class is inconsistent, every function of it differs from Q
    somewhere by at least this much (section 7 of the theory), with probability 1 - delta.
    """

    features: str
    upper: Certificate
    lower: Certificate
    norm_bound: float | None
    least_norm: float | None
    least_loss: float
    misfit: float
    statistic: KernelStatistic
    note: str = ""

    @property
    def consistent(self) -> bool:
        return self.upper.status is not SolveStatus.EMPTY

    def check(self) -> bool:
        """Both certificates hold, and their loss constraint is the one that the statistic gives."""
        return self.upper.check().valid and self.lower.check().valid and self._same_loss()

    def _same_loss(self) -> bool:
        loss = self.upper.constraints[0].quadratic
        return any(
            np.array_equal(loss.A, q.A) and np.array_equal(loss.a, q.a) and loss.a0 == q.a0
            for q in (self.statistic.v_loss(), self.statistic.u_loss())
        )


@dataclass(frozen=True, eq=False)
class ValueInterval:
    """lower <= value of the target policy <= upper with probability 1 - delta, if the assumptions hold.

    unclipped holds the ends before they were cut to the range of values that the assumptions allow.
    """

    lower: float
    upper: float
    unclipped: tuple[float, float]
    status: Status
    radius: Radius
    start_error: float
    delta: DeltaSplit
    assumptions: Assumptions
    ranges: ValueRanges
    certificates: tuple[ClassCertificates, ...]
    count: int
    kernel: str
    terminates: bool

    @property
    def guarantee(self) -> Guarantee:
        return self.radius.guarantee

    @property
    def normalized(self) -> tuple[float, float]:
        """(1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself."""
        scale = _normaliser(self.assumptions.discount)
        return (scale * self.lower, scale * self.upper)

    @property
    def clipped(self) -> tuple[bool, bool]:
        """Which ends are those of the declared ranges rather than of the data."""
        return (self.unclipped[0] < self.ranges.value[0], self.unclipped[1] > self.ranges.value[1])

    def check(self) -> bool:
        """Every certificate proves its bound again, and the reported ends follow from them."""
        if not all(part.check() for part in self.certificates):
            return False
        return self.unclipped == _hull(self.certificates, self.start_error)

    def assumed(self) -> tuple[str, ...]:
        """In words, everything that must be true for the guarantee."""
        return _assumed(self)


def bound_value(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    kernel: Kernel,
    features: FeatureMap | Precomputed | Sequence[FeatureMap | Precomputed],
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
    features: FeatureMap | Precomputed | Sequence[FeatureMap | Precomputed],
    radii: Sequence[str],
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> tuple[ValueInterval, ...]:
    """`bound_value` for several radii, from one statistic. Each interval is valid on its own; do not pick the narrowest."""
    rules = [radius_rule(name) for name in radii]
    probability_level(delta)
    check_data(data, assumptions)
    classes = list(features) if isinstance(features, Sequence) else [features]
    if not classes:
        raise InvalidInput("`features` must name at least one feature class. Got an empty list.")
    terminates = _terminates(data, assumptions)
    ranges = value_ranges(assumptions, terminates=terminates)
    split = split_delta(delta, start_is_exact=starts.exact and policy.exact)
    start_error = 0.0 if split.start == 0 else start_radius(ranges.span, _effective_starts(starts, policy), split.start)

    systems = [bellman_system(data, starts, policy, one, assumptions.discount) for one in classes]
    statistics = kernel_statistics(systems, kernel, options, progress)

    intervals = []
    for rule in rules:
        inputs = RadiusInputs(len(data), ranges, kernel.supremum, split.kernel)
        parts = []
        widest = rule.radius(inputs, rounding=0.0)
        for one, system, statistic in zip(classes, systems, statistics, strict=True):
            own = rule.radius(inputs, _rounding(statistic, assumptions, ranges, system))
            widest = own if own.total > widest.total else widest
            parts.append(_solve_class(repr(one), system, statistic, own, assumptions, ranges))
        intervals.append(
            _assemble(tuple(parts), widest, start_error, split, assumptions, ranges, len(data), repr(kernel), terminates)
        )
    return tuple(intervals)


def check_data(data: Transitions, assumptions: Assumptions) -> None:
    """Raise where the data contradict what was declared: a guarantee from false assumptions is none."""
    low, high = assumptions.reward_range
    outside = (data.rewards < low) | (data.rewards > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInput(
            f"`rewards` must lie in the declared reward_range [{low:g}, {high:g}]. {int(outside.sum())} do not, "
            f"first {data.rewards[row]:g} in row {row}."
        )
    if assumptions.terminal_reward:
        paid = (data.rewards != 0) & ~data.terminated
        if paid.any():
            row = int(np.argmax(paid))
            raise InvalidInput(
                f"`terminal_reward=True` says that only the end of an episode pays, but row {row} is not terminated and pays "
                f"{data.rewards[row]:g}."
            )
    if assumptions.terminates is False and data.terminated.any():
        raise InvalidInput(f"`terminates=False`, but row {int(np.argmax(data.terminated))} is terminated.")
    if assumptions.discount == 1 and not data.terminated.any():
        raise InvalidInput("`discount` 1 needs terminating episodes, and no row is terminated.")
    if assumptions.state_box is not None:
        _check_box(data, assumptions.state_box)


def _check_box(data: Transitions, box: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    lows, highs = np.array(box[0]), np.array(box[1])
    if len(lows) != data.states.shape[1]:
        raise InvalidInput(f"`state_box` has {len(lows)} dimensions, states have {data.states.shape[1]}.")
    live = ~data.terminated
    for name, states in (("states", data.states), ("next_states", data.next_states[live])):
        outside = ((states < lows) | (states > highs)).any(axis=1)
        if outside.any():
            where = states[int(np.argmax(outside))].tolist()
            raise InvalidInput(f"`{name}` must lie in the declared state_box. {int(outside.sum())} do not, first {where}.")


def _terminates(data: Transitions, assumptions: Assumptions) -> bool:
    if assumptions.terminates is not None:
        return assumptions.terminates
    return bool(data.terminated.any()) or assumptions.horizon is not None or assumptions.terminal_reward


def _effective_starts(starts: StartStates, policy: Policy) -> float:
    """N of the Monte Carlo radius: independent start states, or independent draws at a known distribution of them."""
    draws = policy.draws if isinstance(policy, SampledPolicy) and starts.exact else 1
    return draws / float(starts.weights @ starts.weights)


def _rounding(statistic: KernelStatistic, assumptions: Assumptions, ranges: ValueRanges, system: BellmanSystem) -> float:
    """kernel_error * (mean of |Z||theta| + |v|)^2: how far rounding can move the loss of the true Q.

    The penalised part of theta has the declared norm; without one, the range of values stands for it.
    """
    scale = statistic.column_scale[:-1]
    largest_value = max(map(abs, ranges.value))
    norm = assumptions.norm_bound if isinstance(assumptions.norm_bound, float) else largest_value
    penalised = system.penalised
    residual_size = norm * float(np.linalg.norm(scale[:-1][penalised])) + float(scale[-1])
    if not penalised.all():
        residual_size += (largest_value + norm) * float(scale[:-1][~penalised].sum())
    return statistic.kernel_error * residual_size**2


def _solve_class(
    name: str, system: BellmanSystem, statistic: KernelStatistic, radius: Radius, assumptions: Assumptions, ranges: ValueRanges
) -> ClassCertificates:
    """Both ends of one feature class."""
    loss = statistic.v_loss() if radius.loss is LossKind.V else statistic.u_loss()
    decomposition = decompose(loss, system.penalised)
    correction = least_correction(decomposition, radius.total) if decomposition.convex else None
    least_norm = None if correction is None else float(np.linalg.norm(correction[system.penalised]))
    norm_bound, note = _norm_bound(assumptions, least_norm)
    feasible = FeasibleSet(decomposition, radius.total, norm_bound, _value_box(system.box_moments, ranges))
    upper = extreme_value(system.objective, feasible)
    lower = extreme_value(-system.objective, feasible)
    least_loss = feasible.least_loss.lower_bound
    misfit = 0.0
    if feasible.empty and statistic.kappa > 0:
        excess = math.sqrt(max(least_loss, 0.0)) - math.sqrt(max(radius.total, 0.0))
        misfit = max(0.0, excess) / ((1 + system.discount) * statistic.kappa)
    return ClassCertificates(name, upper, lower, norm_bound, least_norm, least_loss, misfit, statistic, note)


def _norm_bound(assumptions: Assumptions, least_norm: float | None) -> tuple[float | None, str]:
    bound = assumptions.norm_bound
    if not isinstance(bound, RelativeNorm):
        return bound, ""
    if not least_norm:
        return None, (
            "A multiple of the least norm bounds nothing here: "
            + (
                "a constant Q is consistent with the data, so the least norm is 0."
                if least_norm == 0.0
                else "there is no least norm."
            )
        )
    return bound.multiple * least_norm, ""


def _value_box(moments: FloatArray, ranges: ValueRanges) -> Constraint | None:
    """mean_j (Q(y_j) - middle)^2 <= (span / 2)^2 over data, next and start points y_j, since Q and V lie in the value range."""
    low, high = ranges.value
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if half == 0:
        return None
    second, mean = moments[:-1, :-1], moments[:-1, -1]
    return Constraint(Role.BOX, Quadratic(second, middle * mean, middle**2), half**2)


def _hull(parts: tuple[ClassCertificates, ...], start_error: float) -> tuple[float, float]:
    consistent = [part for part in parts if part.consistent]
    lower = min((-part.lower.bound for part in consistent), default=math.nan)
    upper = max((part.upper.bound for part in consistent), default=math.nan)
    return (lower - start_error, upper + start_error)


def _assemble(
    parts: tuple[ClassCertificates, ...],
    radius: Radius,
    start_error: float,
    split: DeltaSplit,
    assumptions: Assumptions,
    ranges: ValueRanges,
    count: int,
    kernel: str,
    terminates: bool,
) -> ValueInterval:
    unclipped = _hull(parts, start_error)
    low, high = ranges.value
    if math.isnan(unclipped[0]):
        status, lower, upper = Status.INCONSISTENT, math.nan, math.nan
    else:
        lower, upper = min(max(unclipped[0], low), high), max(min(unclipped[1], high), low)
        vacuous = unclipped[0] <= low and unclipped[1] >= high
        status = Status.VACUOUS if vacuous else Status.OK
    return ValueInterval(
        lower=lower,
        upper=upper,
        unclipped=unclipped,
        status=status,
        radius=radius,
        start_error=start_error,
        delta=split,
        assumptions=assumptions,
        ranges=ranges,
        certificates=parts,
        count=count,
        kernel=kernel,
        terminates=terminates,
    )


def _normaliser(discount: float) -> float:
    return 1.0 if discount == 1 else 1 - discount


def _assumed(interval: ValueInterval) -> tuple[str, ...]:
    facts = interval.assumptions
    low, high = interval.ranges.value
    lines = [
        "Rows are in the order of generation; given the past, (r, s') follows the same law at (s, a) (no behaviour policy needed).",
        f"Every reward lies in [{facts.reward_range[0]:g}, {facts.reward_range[1]:g}]; "
        + ("it may be random given (s, a)." if facts.reward_noise else "it is a function of (s, a)."),
        f"Q and V of the target policy lie in [{low:g}, {high:g}]"
        + (", as declared." if facts.value_range is not None else ", which follows from the rewards and the discount."),
    ]
    if facts.terminal_reward:
        lines.append("Only the transition that ends an episode pays.")
    if facts.horizon is not None:
        lines.append(f"Every episode ends within {facts.horizon} steps.")
    lines.append(
        "Terminal states are worth 0."
        if interval.terminates
        else "No state is terminal" + (" (no row is terminated)." if facts.terminates is None else ", as declared.")
    )
    classes = " or ".join(part.features for part in interval.certificates)
    lines.append(f"Q lies in the class of {classes}, chosen without looking at these data.")
    for part in interval.certificates:
        if part.norm_bound is None:
            lines.append("No bound on the norm of Q." + (f" {part.note}" if part.note else ""))
        elif isinstance(facts.norm_bound, RelativeNorm):
            lines.append(
                f"||Q|| <= {part.norm_bound:.4g}, {facts.norm_bound.multiple:g} times the least norm consistent with the data."
            )
        else:
            lines.append(f"||Q|| <= {part.norm_bound:.4g}, as declared (an unpenalised constant is left out).")
        if isinstance(facts.norm_bound, float) or facts.norm_bound is None:
            break
    lines.append(f"The kernel {interval.kernel} was chosen without looking at these data.")
    if interval.start_error:
        lines.append("Start states (or actions there) are an i.i.d. sample of their distribution.")
    return tuple(lines)
