"""bound_average_reward: a certified interval for the long-run average reward of the target policy (the paper's discount 1).

The unknowns are (Q, eta). Where the average does not depend on the start, eta = lim (1/T) E[r_1 + ... + r_T] (a Cesaro limit,
so periodic processes are allowed) and the relative value Q solve Q(x) = E[r + V(s') | x] - eta, V(s) = E_{a ~ pi} Q(s, a). So

    eps_i = r_i + V(s'_i) - Q(x_i) - eta = v_i - [Z | 1]_i (theta, eta),     Z_i = phi(x_i) - E phi(s'_i, a'),     v_i = r_i,

have mean zero given the past, and the program is that of Algorithm 1 at discount 1 with one more column, of ones: its
coefficient is eta, which is the objective and which the norm does not count. Both v and eta are measured from the middle of the
reward range (`ClassCertificates.offset`), so that rewards far from 0 cost no digits.

Q is unique up to a constant only. A constant cancels in eps, so the features' own one would be a column of zeros and is left
out, and it is enough that the class contains Q plus *some* constant.

The whole ball of an RKHS H: in the sections f_i = K0(x_i, .) - E K0(s'_i, a') the constant cancels too, eps_i = r_i - <Q, f_i>
- eta, and what coordinates of H miss of Q moves eps_i by at most its norm times what they miss of f_i. It moves eta itself, and
so the objective and the box, not at all.

Weights of a cut point at eta, which is fixed before the data: sum_i w_i Z_i near 0 and sum_i w_i near n.

Several classes: each may use the ranges that follow from *its* containing Q, since the hull only has to be right for one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arguments import checked
from ..classes.features import ListedFeatures
from ..classes.function_class import Features, FunctionClass, Remainder, as_classes
from ..classes.ranges import ResidualRange
from ..errors import InvalidInput
from ..kernels.description import describe_kernel
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.average_reward import AverageReward, as_value
from ..problem.contradictions import check_box, check_rewards
from ..problem.policy import Policy, SampledPolicy
from ..problem.problem import Experience
from ..problem.transitions import StartStates, Transitions
from ..programs.constraint import Constraint, Role
from ..programs.quadratic import Quadratic
from ..radii.accounting import split_delta
from ..radii.member import Member
from ..radii.no_cut import NoCut
from ..radii.premises import average_premises
from ..radii.registry import DEFAULT_RADIUS, RadiusRule, radius_rule
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.examiner import Examiner
from ..statistics.statistic import KernelStatistic, kernel_statistics
from ..validation import FloatArray, probability_level
from ..verification.record import Circumstances, DataRecord
from .class_certificates import hull
from .ends import class_ends, single_threaded
from .interval import Interval, Setting, clip
from .members import UNDECLARED_NORM
from .relative_values import RelativeValues, refuse_unfit_radius, relative_values

UNIT = float(np.finfo(np.float64).eps)


@checked
def bound_average_reward(
    data: Transitions,
    policy: Policy,
    assumptions: AverageReward,
    *,
    features: Features | Sequence[Features],
    kernel: Kernel,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Interval:
    """The largest and smallest eta over all (Q, eta) whose kernel Bellman loss is consistent with the data.

    max / min eta over (Z theta + eta 1 - v)'K(Z theta + eta 1 - v) / n^2 <= lambda_K, ||theta|| <= norm_bound and
    (eta - middle)^2 <= (half of the reward range)^2; a radius that follows the variance has its joint constraints in the place of
    the first. With probability 1 - delta the interval contains the average reward of the target policy. There are no start
    states, so all of delta goes to the kernel event.

    Parameters
    ----------
    data : Transitions
        Logged transitions, none of them terminated.
    policy : Policy
        The target policy.
    assumptions : AverageReward
        What the analyst asserts.
    features : feature map, Precomputed, KernelSections, or a sequence of them
        The class of Q functions (of Precomputed, `at_start` is not used), or several: the hull of their intervals is valid if at
        least one of them contains Q. Their constant is ignored, since it cancels.
    kernel, radius, delta, options, progress
        As in `bound_value`.

    Returns
    -------
    Interval

    Raises
    ------
    InvalidInput
        Where a row is terminated, a reward or a state lies outside its range, nothing bounds the relative value, or the radius
        needs something that was not declared.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> facts = aope.AverageReward(reward_range=(0, 1), value_span=0.5)
    >>> found = aope.bound_average_reward(data, mdp.policy, facts, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> found.estimand, found.check()
    ('Average reward of the target policy', True)
    """
    rule = radius_rule(radius)
    split = split_delta(probability_level(delta), start_is_exact=True)
    _check_rows(data, assumptions)
    given = as_classes(features)
    refuse_unfit_radius(rule, given, kernel, assumptions, len(data))
    classes = [relative_values(each, policy, assumptions) for each in given]
    members = _members(data, policy, assumptions, classes, kernel, rule, options, progress)
    with single_threaded():
        ends = [class_ends(member, rule, split.kernel, len(data)) for member in members]
    parts = tuple(each.part for each in ends)
    unclipped = hull(parts, 0.0)
    lower, upper, outcome = clip(unclipped, assumptions.reward_range)
    widest = int(np.argmax([each.radius.total for each in ends]))
    return Interval(
        lower=lower,
        upper=upper,
        unclipped=unclipped,
        outcome=outcome,
        radius=ends[widest].radius,
        start_error=0.0,
        split=split,
        assumptions=as_value(assumptions, classes[widest].ranges.next_value),
        ranges=classes[widest].ranges,
        certificates=parts,
        count=len(data),
        kernel=repr(kernel),
        terminates=False,
        setting=Setting(
            data=DataRecord(len(data), data.sha256, ""),
            kernel=describe_kernel(kernel),
            average=assumptions,
            circumstances=Circumstances(
                terminates=False,
                start_is_exact=True,
                effective_starts=1.0,
                exact_policy=policy.exact,
                planned=len(data),
                growing=False,
                anchored=False,
                earlier_rows=0,
                kernel_chosen=True,
                coefficient_variance=None,
                left_out=data.left_out,
                copied_rows=data.copies.doubted,
            ),
        ),
        premises=average_premises(
            assumptions,
            [part.words for part in parts],
            [each.span for each in classes],
            rule,
            kernel=repr(kernel),
            exact_policy=policy.exact,
            left_out=data.left_out,
        ),
        estimand="Average reward of the target policy",
    )


def average_members(
    data: Transitions, policy: Policy, assumptions: AverageReward, features: Sequence[Features], kernel: Kernel, rule: RadiusRule
) -> list[Member]:
    """The classes with their sums over the rows, as `bound_average_reward` makes them."""
    _check_rows(data, assumptions)
    classes = [relative_values(each, policy, assumptions) for each in as_classes(features)]
    return _members(data, policy, assumptions, classes, kernel, rule)


def _members(
    data: Transitions,
    policy: Policy,
    assumptions: AverageReward,
    classes: Sequence[RelativeValues],
    kernel: Kernel,
    rule: RadiusRule,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> list[Member]:
    # Nothing is asked of a start state; one row keeps the record valid.
    experience = Experience(data, StartStates(data.next_states[:1]), policy, 1.0)
    systems = [_average_system(experience, each.function_class, assumptions.middle) for each in classes]
    statistics = kernel_statistics(systems, kernel, options, progress)
    made = [
        _member(values, system, statistic, kernel, assumptions)
        for values, system, statistic in zip(classes, systems, statistics, strict=True)
    ]
    if not rule.follows_variance:
        return made
    # Rounds need a ball: where none is declared or follows, one that only keeps numbers finite.
    largest = [UNDECLARED_NORM * values.largest for values in classes]
    against = [NoCut.COORDINATES if values.function_class.has_remainder else _against_cut(policy) for values in classes]
    return [
        replace(each, largest_norm=norm, episodes=data.episodes, no_cut=why)
        for each, norm, why in zip(made, largest, against, strict=True)
    ]


def _against_cut(policy: Policy) -> NoCut | None:
    return None if policy.exact or isinstance(policy, SampledPolicy) else NoCut.POLICY


def _check_rows(data: Transitions, declared: AverageReward) -> None:
    """Raise where the data contradict a process that goes on forever and pays within the range."""
    if data.terminated.any():
        count, row = int(data.terminated.sum()), int(np.argmax(data.terminated))
        raise InvalidInput(
            f"`terminated` must be False in every row: an average reward needs a process that goes on. Got True in {count}, "
            f"first row {row}."
        )
    check_rewards(data, declared.reward_range)
    if declared.state_box is not None:
        check_box(data, declared.state_box)


def _average_system(experience: Experience, function_class: FunctionClass, middle: float) -> BellmanSystem:
    """[Z | 1], v - middle and the unit vector of eta - middle; the start state that a system needs does not enter."""
    plain = bellman_system(experience, function_class)
    eta = np.append(np.zeros(plain.dimension), 1.0)
    u = np.append(eta, 1.0)  # what lies in a box is eta, not Q
    missed = None if plain.remainder is None else Remainder(plain.remainder.rows, objective=0.0, box=0.0)
    return replace(
        plain,
        residuals=np.column_stack([plain.residuals, np.ones(len(plain.target))]),
        target=plain.target - middle,
        objective=eta,
        penalized=np.append(plain.penalized, False),
        box_moments=np.outer(u, u),
        box_rows=np.zeros((0, len(u))),
        offset=middle,
        remainder=missed,
        features=None,
    )


def _member(
    values: RelativeValues, system: BellmanSystem, statistic: KernelStatistic, kernel: Kernel, declared: AverageReward
) -> Member:
    """One class, its ball and box."""
    facts, spread = as_value(declared, values.ranges.next_value), values.spread
    return Member(
        name=values.description.text,
        system=system,
        statistic=statistic,
        kernel=kernel,
        ranges=values.ranges,
        residuals=ResidualRange(facts, values.ranges, False, spread.diameter, spread.points, spread.slack, spread.center),
        box=_average_box(system.objective, declared),
        norm=values.norm_bound,
        largest_norm=None,
        misfit=0.0,
        rounding=_rounding(statistic, values, declared),
        description=values.description,
        listed=isinstance(values.function_class.feature_map, ListedFeatures),
        note=values.note,
        declared_width=values.declared_width,
        examiner=Examiner(kernel, system),
    )


def _rounding(statistic: KernelStatistic, values: RelativeValues, declared: AverageReward) -> float:
    """kernel_error * (|Z||theta| + |v| + |eta|)^2 in root mean square: how far rounding can move the loss of the true (Q, eta).

    v and eta count from the middle of the rewards. Without a norm bound, sqrt(m) Qmax stands for it: larger
    coefficients cancel each other, which no norm bound worth declaring allows.
    """
    m = statistic.dimension
    norm = math.sqrt(m) * values.largest if values.norm_bound is None else values.norm_bound
    size = norm * float(np.linalg.norm(statistic.column_scale[: m - 1])) + float(statistic.column_scale[m])
    return statistic.kernel_error * (size + 0.5 * declared.reward_width) ** 2


def _average_box(eta: FloatArray, declared: AverageReward) -> Constraint | None:
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
