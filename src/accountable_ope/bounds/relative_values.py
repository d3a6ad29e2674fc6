"""Relative values of a process that goes on forever: how far apart they can be, for one class of Q.

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

Radii that follow the variance tighten the range with the set. The coefficients are [theta, eta], and eta moves no difference of
values, so phi at points that stand for all others, with 0 beside it, bounds S_Q over any set of coefficients. Where only a span
is declared, and the class is no list of points, their rounds need a ball: one that only keeps numbers finite, as a premise says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..classes.description import describe_class
from ..classes.function_class import FunctionClass
from ..classes.ranges import Spread, spread_of
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.assumptions import ValueRanges
from ..problem.average_reward import AverageReward
from ..problem.description import Description
from ..problem.policy import Policy
from ..problem.statements import Guarantee
from ..radii.premises import SPAN_NORM
from ..radii.registry import Approach, LossKind, RadiusRule


@dataclass(frozen=True, eq=False)
class RelativeValues:
    """One class without its constant, and what follows if it contains Q plus a constant.

    span is that of V (of Q, where the policy is sampled); largest is Qmax, for Q in the middle of its range. declared_width is
    the range of residuals whether or not the class contains Q: that of a declared span, infinite where only a norm is bounded.
    """

    description: Description
    function_class: FunctionClass
    spread: Spread
    span: float
    largest: float
    norm_bound: float | None
    note: str
    ranges: ValueRanges
    declared_width: float


def refuse_unfit_radius(
    rule: RadiusRule, classes: Sequence[FunctionClass], kernel: Kernel, declared: AverageReward, rows: int
) -> None:
    """Raise where the radius, or a class that its coordinates do not span, needs what is not there."""
    if rule.guarantee is Guarantee.FINITE_SAMPLE_DECLARED_NOISE and not declared.symmetric_noise:
        raise InvalidInput(f"`radius` {rule.name} needs `symmetric_noise=True`: residuals symmetric about 0 must be declared.")
    many = max((each.dimension for each in classes if each.dimension is not None), default=0)
    if rule.approach is Approach.BOOTSTRAP and many + 1 >= rows:
        raise InvalidInput(f"`radius` {rule.name} needs more rows than features: with {many} nothing is left of the residuals.")
    if not any(each.has_remainder for each in classes):
        return
    if rule.loss is LossKind.U or rule.approach in (Approach.SELF_NORMALIZED, Approach.BOOTSTRAP):
        raise InvalidInput(f"`radius` {rule.name} says nothing about what KernelSections miss.")
    if declared.norm_bound is None:
        raise InvalidInput("`norm_bound` is needed with KernelSections: without it nothing limits what the coordinates miss.")
    if not kernel.nonnegative:
        raise InvalidInput(f"`kernel` must have no negative values with what KernelSections miss. Got {kernel!r}.")


def relative_values(given: FunctionClass, policy: Policy, declared: AverageReward) -> RelativeValues:
    """The ranges above, for one class."""
    plain, exact_policy = given.relative(), policy.exact
    spread = spread_of(plain, policy, declared.state_box).beside(0.0)
    if spread.diameter == 0:  # a single point says nothing about a span
        spread = Spread(plain.diameter)
    of_norm = math.inf
    if declared.norm_bound is not None and math.isfinite(spread.diameter):
        of_norm = declared.norm_bound * spread.diameter
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
    implied = plain.norm_of_values(largest)
    if implied < (math.inf if norm_bound is None else norm_bound):
        norm_bound, note = implied, SPAN_NORM
    ranges = ValueRanges(
        value=declared.reward_range,
        next_value=(-largest, largest),
        residual_width=span + (declared.reward_width if declared.reward_noise else 0.0),
        residual_bound=2 * (largest + max(map(abs, declared.reward_range))),
    )
    declared_width = of_span + (0.0 if exact_policy else declared.reward_width)
    declared_width += declared.reward_width if declared.reward_noise else 0.0
    return RelativeValues(describe_class(given), plain, spread, span, largest, norm_bound, note, ranges, declared_width)
