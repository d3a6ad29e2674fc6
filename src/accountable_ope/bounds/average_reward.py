"""bound_average_reward: a certified interval for the long-run average reward of the target policy (the paper's discount 1).

The unknowns are (Q, eta). Where the average does not depend on the start, eta = lim (1/T) E[r_1 + ... + r_T] (a Cesaro limit,
so periodic processes are allowed) and the relative value Q solve Q(x) = E[r + V(s') | x] - eta, V(s) = E_{a ~ pi} Q(s, a). So

    eps_i = r_i + V(s'_i) - Q(x_i) - eta = v_i - [Z | 1]_i (theta, eta),     Z_i = phi(x_i) - E phi(s'_i, a'),     v_i = r_i,

have mean zero given the past, and the program is that of Algorithm 1 at discount 1 with one more column, of ones: its
coefficient is eta, which is the objective and which the norm does not count. Both v and eta are measured from the middle of the
reward range (`ClassCertificates.offset`), so that rewards far from 0 cost no digits.

Q is unique up to a constant only. A constant cancels in eps, so the features' own one would be a column of zeros and is left
out, and it is enough that the class contains Q plus *some* constant.

Ranges. Let V have span S (its largest value less its smallest), and Q span S_Q.

- Q(x) + eta = E[r + V(s') | x], so eps = r + V(s') - E[r + V(s') | x] lies, given x, in an interval of length
  w = (rmax - rmin) + S; where r is a function of x it cancels and w = S. This is what Theorem A needs. A policy that can only
  be sampled puts a mean of draws of Q(s', a') in the place of V(s'): the same holds with S_Q in the place of S.
- S <= S_Q, as V is a mean of Q. S_Q <= (rmax - rmin) + S, as Q(x) - Q(y) = E[r | x] - E[r | y] + E[V(s') | x] - E[V(s') | y].
- For Q = theta'phi + constant with ||theta|| <= R: S_Q <= R sup ||phi(x) - phi(y)||, which is 2 R for cosines and sqrt(2) R for
  one-hot features.
- Q shifted to the middle of its range has |Q| <= Qmax = S_Q / 2, and V too; eps does not see the shift, and |eta| <= rmax as a
  mean of rewards. So |eps| <= rmax + Qmax + Qmax + rmax, the paper's l_max = 4 Kmax (Qmax + rmax)^2; for cosine features and a
  norm bound alone, Qmax = R sup ||phi|| = R, as in the paper.
- One-hot features over m points: theta is Q itself, and in the middle of its range ||theta|| <= sqrt(m) S_Q / 2. A declared span
  therefore gives these features a ball.

Several classes: each may use the ranges that follow from *its* containing Q, since the hull only has to be right for one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from ..classes.features import Precomputed, RandomFourier, TabularFeatures
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions, Range, ValueRanges
from ..problem.contradictions import check_rewards
from ..problem.policy import Policy
from ..problem.transitions import StartStates, Transitions
from ..programs.ellipsoid_ball import decompose
from ..programs.extreme import FeasibleSet, extreme_value, least_correction
from ..programs.lagrangian import Constraint, Role
from ..programs.quadratic import Quadratic
from ..radii.accounting import split_delta
from ..radii.registry import LossKind, Radius, RadiusInputs, radius_rule
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.engines.tiles import Progress, TileOptions
from ..statistics.statistic import KernelStatistic, kernel_statistics
from ..validation import FloatArray, ordered_pair, positive, probability_level
from .interval import ClassCertificates, ValueInterval, clip, hull
from .premises import ORDER, kernel_premise, reward_premise

UNIT = float(np.finfo(np.float64).eps)

RelativeClass = RandomFourier | TabularFeatures | Precomputed
"""The feature classes that are understood here; their own constant is ignored."""


@dataclass(frozen=True)
class _Declared:
    """What the analyst asserts, checked."""

    reward_range: Range
    norm_bound: float | None
    value_span: float | None
    reward_noise: bool

    @property
    def reward_width(self) -> float:
        return self.reward_range[1] - self.reward_range[0]

    @property
    def middle(self) -> float:
        return self.reward_range[0] + 0.5 * self.reward_width


@dataclass(frozen=True, eq=False)
class _RelativeValues:
    """One class without its constant, and what follows if it contains Q plus a constant.

    span is that of V (of Q, where the policy is sampled); largest is Qmax, for Q in the middle of its range.
    """

    features: RelativeClass
    span: float
    largest: float
    norm_bound: float | None
    note: str
    ranges: ValueRanges


def bound_average_reward(
    data: Transitions,
    policy: Policy,
    *,
    reward_range: Range,
    kernel: Kernel,
    features: RelativeClass | Sequence[RelativeClass],
    norm_bound: float | None = None,
    value_span: float | None = None,
    reward_noise: bool = True,
    radius: str = "azuma",
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> ValueInterval:
    """The largest and smallest eta over all (Q, eta) whose kernel Bellman loss is consistent with the data.

    max / min eta over (Z theta + eta 1 - v)'K(Z theta + eta 1 - v) / n^2 <= lambda_K, ||theta|| <= norm_bound and
    (eta - middle)^2 <= (half of the reward range)^2. With probability 1 - delta the interval contains the average reward of the
    target policy. There are no start states, so all of delta goes to the kernel event.

    reward_range: every reward lies in it, and so does the average.
    features:     RandomFourier, TabularFeatures or Precomputed (whose `at_start` is not used), or several: the hull of their
                  intervals is valid if at least one of them contains Q. Their `intercept` is ignored, since a constant cancels.
    norm_bound:   ||theta|| <= norm_bound for Q plus *some* constant.
    value_span:   the largest less the smallest value of V, the relative value of the target policy, over all states.
                  At least one of the two is needed. Both: the tighter consequence of either is used.
    reward_noise: True: the reward may be random given (s, a). False: it is a function of (s, a).
    """
    rule = radius_rule(radius)
    split = split_delta(probability_level(delta), start_is_exact=True)
    declared = _declared(reward_range, norm_bound, value_span, reward_noise)
    _check_rows(data, declared)
    given = list(features) if isinstance(features, Sequence) else [features]
    if not given:
        raise InvalidInput("`features` must name at least one feature class. Got an empty list.")
    classes = [_relative_values(one, declared, exact_policy=policy.exact) for one in given]
    systems = [_average_system(data, policy, one.features, declared.middle) for one in classes]
    statistics = kernel_statistics(systems, kernel, options, progress)

    parts, radii = [], []
    # Small matrices: more than one BLAS thread only gets in its own way.
    with threadpool_limits(limits=1, user_api="blas"):
        for one, system, statistic in zip(classes, systems, statistics, strict=True):
            inputs = RadiusInputs(len(data), one.ranges, kernel.supremum, split.kernel, len(data))
            radii.append(rule.radius(inputs, _rounding(statistic, one, declared)))
            parts.append(_solve_class(one, system, statistic, radii[-1], declared, kernel))
    unclipped = hull(parts, 0.0)
    lower, upper, status = clip(unclipped, declared.reward_range)
    widest = int(np.argmax([own.total for own in radii]))
    facts = Assumptions(
        discount=1.0,
        reward_range=declared.reward_range,
        value_range=classes[widest].ranges.next_value,
        norm_bound=declared.norm_bound,
        reward_noise=declared.reward_noise,
        terminates=False,
    )
    return ValueInterval(
        lower=lower,
        upper=upper,
        unclipped=unclipped,
        status=status,
        radius=radii[widest],
        start_error=0.0,
        delta=split,
        assumptions=facts,
        ranges=classes[widest].ranges,
        certificates=tuple(parts),
        count=len(data),
        kernel=repr(kernel),
        terminates=False,
        premises=_premises(facts, declared, classes, parts, kernel, exact_policy=policy.exact),
        estimand="Average reward of the target policy",
    )


def _declared(reward_range: Range, norm_bound: float | None, value_span: float | None, reward_noise: bool) -> _Declared:
    if norm_bound is None and value_span is None:
        raise InvalidInput("`norm_bound` or `value_span` is needed: nothing else bounds the relative value, and so a residual.")
    if not isinstance(reward_noise, bool):
        raise InvalidInput(f"`reward_noise` must be True or False. Got {reward_noise!r}.")
    return _Declared(
        ordered_pair(reward_range, "reward_range"),
        None if norm_bound is None else positive(norm_bound, "norm_bound"),
        None if value_span is None else positive(value_span, "value_span"),
        reward_noise,
    )


def _check_rows(data: Transitions, declared: _Declared) -> None:
    """Raise where the data contradict a process that goes on for ever and pays within the range."""
    if data.terminated.any():
        count, row = int(data.terminated.sum()), int(np.argmax(data.terminated))
        raise InvalidInput(
            f"`terminated` must be False in every row: an average reward needs a process that goes on. Got True in {count}, "
            f"first row {row}."
        )
    check_rewards(data, declared.reward_range)


def _relative_values(features: RelativeClass, declared: _Declared, *, exact_policy: bool) -> _RelativeValues:
    """The ranges of the module's first lines, for one class."""
    plain, diameter = _without_constant(features)
    of_norm = math.inf
    if declared.norm_bound is not None and diameter is not None:
        of_norm = declared.norm_bound * diameter
    of_span = math.inf if declared.value_span is None else declared.value_span
    if math.isinf(min(of_norm, of_span)):
        raise InvalidInput(
            "`value_span` is needed with Precomputed features: how long their vectors can be is not known, so `norm_bound` alone "
            "bounds no value."
        )
    q_span = min(of_norm, of_span + declared.reward_width)
    span = min(of_norm, of_span) if exact_policy else q_span
    largest = 0.5 * q_span
    norm_bound, note = declared.norm_bound, ""
    if isinstance(plain, TabularFeatures):
        implied = math.sqrt(plain.dimension) * largest
        if norm_bound is None or implied < norm_bound:
            norm_bound, note = implied, "The norm bound follows from the span of Q over the listed points."
    ranges = ValueRanges(
        value=declared.reward_range,
        next_value=(-largest, largest),
        residual_width=span + (declared.reward_width if declared.reward_noise else 0.0),
        residual_bound=2 * (largest + max(map(abs, declared.reward_range))),
    )
    return _RelativeValues(plain, span, largest, norm_bound, note, ranges)


def _without_constant(features: RelativeClass) -> tuple[RelativeClass, float | None]:
    """The class without its constant, and sup ||phi(x) - phi(y)|| where that is known."""
    if isinstance(features, RandomFourier):
        return replace(features, intercept=False), 2.0
    if isinstance(features, TabularFeatures):
        return TabularFeatures(features.points, intercept=False), math.sqrt(2)
    if isinstance(features, Precomputed):
        # Nothing is asked of a start state; one row keeps the record valid.
        return Precomputed(features.at_data, features.at_next, features.at_next[:1], intercept=False), None
    raise InvalidInput(
        f"`features` must be RandomFourier, TabularFeatures or Precomputed for an average reward. Got {type(features).__name__}."
    )


def _average_system(data: Transitions, policy: Policy, features: RelativeClass, middle: float) -> BellmanSystem:
    """[Z | 1], v - middle and the unit vector of eta - middle; the start state that a system needs does not enter."""
    plain = bellman_system(data, StartStates(data.next_states[:1]), policy, features, 1.0)
    eta = np.append(np.zeros(plain.dimension), 1.0)
    u = np.append(eta, 1.0)  # what lies in a box is eta, not Q
    return replace(
        plain,
        residuals=np.column_stack([plain.residuals, np.ones(len(data))]),
        target=plain.target - middle,
        objective=eta,
        penalized=np.append(plain.penalized, False),
        box_moments=np.outer(u, u),
        offset=middle,
        features=None,
    )


def _rounding(statistic: KernelStatistic, one: _RelativeValues, declared: _Declared) -> float:
    """kernel_error * (|Z||theta| + |v| + |eta|)^2 in root mean square: how far rounding can move the loss of the true (Q, eta).

    v and eta count from the middle of the rewards. Without a norm bound, sqrt(m) Qmax stands for it: larger
    coefficients cancel each other, which no norm bound worth declaring allows.
    """
    m = statistic.dimension
    norm = math.sqrt(m) * one.largest if one.norm_bound is None else one.norm_bound
    size = norm * float(np.linalg.norm(statistic.column_scale[: m - 1])) + float(statistic.column_scale[m])
    return statistic.kernel_error * (size + 0.5 * declared.reward_width) ** 2


def _solve_class(
    one: _RelativeValues, system: BellmanSystem, statistic: KernelStatistic, radius: Radius, declared: _Declared, kernel: Kernel
) -> ClassCertificates:
    """Both ends of one feature class."""
    loss = statistic.v_loss() if radius.loss is LossKind.V else statistic.u_loss()
    decomposition = decompose(loss, system.penalized)
    correction = least_correction(decomposition, radius.total) if decomposition.convex else None
    feasible = FeasibleSet(decomposition, radius.total, one.norm_bound, _average_box(system.objective, declared))
    upper = extreme_value(system.objective, feasible)
    lower = extreme_value(-system.objective, feasible)
    misfit = 0.0
    if feasible.empty and radius.loss is LossKind.V and kernel.nonnegative and statistic.kappa > 0:
        # A function that differs from Q by at most e everywhere has, with the true eta, residuals that differ by at most 2 e.
        over_ball = FeasibleSet(decomposition, radius.total, one.norm_bound).least_loss.lower_bound
        misfit = max(0.0, math.sqrt(max(over_ball, 0.0)) - math.sqrt(radius.total)) / (2 * statistic.kappa)
    return ClassCertificates(
        features=repr(one.features),
        upper=upper,
        lower=lower,
        norm_bound=one.norm_bound,
        least_norm=None if correction is None else float(np.linalg.norm(correction[system.penalized])),
        least_loss=feasible.least_loss.lower_bound,
        misfit=misfit,
        statistic=statistic,
        note=one.note,
        offset=system.offset,
    )


def _average_box(eta: FloatArray, declared: _Declared) -> Constraint | None:
    """(eta - middle)^2 <= half^2, as an average of rewards lies where rewards do.

    Over a convex set this is what clipping does; it decides whether any eta in the range is consistent, and it is what bounds eta
    where the loss is a U-statistic.
    """
    low, high = declared.reward_range
    if low == high:
        return None
    # A few units in the last place more, so that an end which the box decides is not taken for one inside the range.
    half = max(high - declared.middle, declared.middle - low) + 8 * UNIT * max(abs(low), abs(high))
    return Constraint(Role.BOX, Quadratic(np.outer(eta, eta), np.zeros(len(eta)), 0.0), half**2)


def _premises(
    facts: Assumptions,
    declared: _Declared,
    classes: Sequence[_RelativeValues],
    parts: Sequence[ClassCertificates],
    kernel: Kernel,
    *,
    exact_policy: bool,
) -> tuple[str, ...]:
    """In words, everything that must be true for the guarantee."""
    lines = [
        ORDER,
        reward_premise(facts),
        "The process goes on for ever, and under the target policy its long-run average reward is the same from every state.",
    ]
    if declared.value_span is not None:
        lines.append(f"The relative value V of the target policy differs by at most {declared.value_span:g} between states.")
    names = " or ".join(part.features for part in parts)
    lines.append(f"Q plus some constant lies in the class of {names}, chosen without looking at these data.")
    if declared.norm_bound is not None:
        lines.append(f"||Q|| <= {declared.norm_bound:.4g} for Q plus some constant, as declared.")
    elif any(one.norm_bound is None for one in classes):
        lines.append("No bound on the norm of Q; rounding is counted for coefficients up to sqrt(m) times half its span.")
    what = "V" if exact_policy else "Q"
    spans = " or ".join(dict.fromkeys(f"{one.span:.4g}" for one in classes))
    lines.append(f"From these follows: {what} has a span of at most {spans}; a constant of Q cancels and is left out.")
    lines.append(kernel_premise(repr(kernel)))
    return tuple(lines)
