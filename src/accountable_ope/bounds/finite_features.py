"""The paper's last theorem, corrected: an interval for the whole RKHS from finitely many random features.

Let Q(x) = E_w[phi(x, w) alpha(w)] be in the RKHS of K0(x, y) = E_w[phi(x, w) phi(y, w)], ||Q||^2 = E alpha^2 <= rho, |phi| <= B,
and draw w_1..w_m. For Q~(x) = (1/m) sum_k phi(x, w_k) alpha(w_k), each of the following fails with probability at most delta
(Chebyshev, Markov):
    ||Q~||^2 <= rho + sqrt(C / (delta m)),  C = Var(alpha^2);
    |value(Q~) - value(Q)| <= B sqrt(rho / (delta m));
    sqrt(loss(Q~)) <= sqrt(loss(Q)) + (1 + discount) B kappa sqrt(rho / (delta m)),  kappa^2 = 1'K1 / n^2, for a kernel K >= 0.
The third is missing in the paper, whose proof therefore does not show that Q~ is feasible. So the program over the features, with
the norm, the radius and the ends enlarged accordingly, bounds the value for every Q of the ball. C is unknown: it is asserted.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from ..classes.features import RandomFourier
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.assumptions import Assumptions
from ..problem.policy import Policy
from ..problem.transitions import StartStates, Transitions
from ..radii.accounting import DeltaSplit, start_radius
from ..radii.registry import LossKind, RadiusInputs, radius_rule
from ..statistics.bellman import bellman_system
from ..statistics.engines.tiles import Progress, TileOptions
from ..statistics.statistic import kernel_statistic
from ..validation import number, probability_level
from .interval import ValueInterval, clip, hull
from .premises import value_premises
from .solving import check_one_step, effective_starts, prepare_ranges, rounding_slack, solve_class

FEATURE_SHARE = 0.5
"""The share of delta given to the draw of the features, a third of it to each of the three events."""


@dataclass(frozen=True)
class Enlargement:
    """How much the norm, the square root of the radius and the ends grow to make up for finitely many features."""

    norm_bound: float
    root_radius: float
    slack: float


def enlargement(
    features: int, norm_bound: float, coefficient_variance: float, kappa: float, discount: float, delta: float, bound: float = 1.0
) -> Enlargement:
    """`delta` is the failure probability of each of the three events; `bound` is sup |phi|, 1 for cosines."""
    each = math.sqrt(norm_bound**2 / (delta * features))
    return Enlargement(
        norm_bound=math.sqrt(norm_bound**2 + math.sqrt(coefficient_variance / (delta * features))),
        root_radius=(1 + discount) * bound * kappa * each,
        slack=bound * each,
    )


def bound_by_finite_features(
    data: Transitions,
    starts: StartStates,
    policy: Policy,
    *,
    assumptions: Assumptions,
    kernel: Kernel,
    features: RandomFourier,
    coefficient_variance: float,
    radius: str = "azuma",
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> ValueInterval:
    """An interval for every Q in the ball of the RKHS that the random features approximate, not only for those in their span.

    The norm bound is that of the RKHS of E_w cos cos = exp(-||x - y||^2 / (2 h^2)) / 2. With few features the slack exceeds the
    range of values, and the result is VACUOUS: use KernelSections, whose slack is computed, instead.
    """
    probability_level(delta)
    if not isinstance(assumptions.norm_bound, float):
        raise InvalidInput("`norm_bound` must be a number here: the slack of finitely many features is proportional to it.")
    if number(coefficient_variance, "coefficient_variance") < 0:
        raise InvalidInput(f"`coefficient_variance` must not be negative. Got {coefficient_variance!r}.")
    rule = radius_rule(radius)
    if rule.loss is not LossKind.V or not kernel.nonnegative:
        raise InvalidInput("The theorem needs a radius for the V-statistic and a kernel without negative values.")
    check_one_step(assumptions, policy)
    ranges, terminates = prepare_ranges(data, assumptions)
    exact = starts.exact and policy.exact
    for_features, for_data = FEATURE_SHARE * delta, (1 - FEATURE_SHARE) * delta
    split = DeltaSplit(delta, kernel=for_data if exact else 0.9 * for_data, start=0.0 if exact else 0.1 * for_data)
    start_error = 0.0 if exact else start_radius(ranges.span, effective_starts(starts, policy), split.start)
    system = bellman_system(data, starts, policy, features, assumptions.discount)
    statistic = kernel_statistic(system, kernel, options, progress)
    inputs = RadiusInputs(len(data), ranges, kernel.supremum, split.kernel, len(data))
    proved = rule.radius(inputs, rounding_slack(statistic, assumptions, ranges, system))
    larger = enlargement(
        features.dimension, assumptions.norm_bound, coefficient_variance, statistic.kappa, assumptions.discount, for_features / 3
    )
    wider = dataclasses.replace(proved, level=(math.sqrt(proved.level) + larger.root_radius) ** 2)
    facts = dataclasses.replace(assumptions, norm_bound=larger.norm_bound)
    part = dataclasses.replace(
        solve_class(f"the RKHS of {features!r}", system, statistic, wider, facts, ranges),
        missed=larger.slack,
        norm_bound=assumptions.norm_bound,
    )
    unclipped = hull([part], start_error)
    lower, upper, status = clip(unclipped, ranges.value)
    premises = value_premises(
        assumptions,
        ranges,
        [part],
        kernel=repr(kernel),
        terminates=terminates,
        sampled_starts=not exact,
        anchored=False,
        radius=rule,
    )
    return ValueInterval(
        lower=lower,
        upper=upper,
        unclipped=unclipped,
        status=status,
        radius=wider,
        start_error=start_error,
        delta=split,
        assumptions=assumptions,
        ranges=ranges,
        certificates=(part,),
        count=len(data),
        kernel=repr(kernel),
        terminates=terminates,
        premises=(
            *premises,
            f"The variance of the squared coefficients of Q is at most {coefficient_variance:g}, as declared; the features were "
            "drawn at random, independently of the data.",
        ),
    )
