"""The paper's last theorem, corrected: an interval for the whole RKHS from finitely many random features.

Let Q(x) = E_w[phi(x, w) alpha(w)] be in the RKHS of K0(x, y) = E_w[phi(x, w) phi(y, w)], ||Q||^2 = E alpha^2 <= rho, |phi| <= B,
and draw w_1..w_m. For Q~(x) = (1/m) sum_k phi(x, w_k) alpha(w_k), each of the following fails with probability at most delta
(Chebyshev, Markov):
    ||Q~||^2 <= rho + sqrt(C / (delta m)),  C = Var(alpha^2);
    |value(Q~) - value(Q)| <= B sqrt(rho / (delta m));
    sqrt(loss(Q~)) <= sqrt(loss(Q)) + (1 + discount) B kappa sqrt(rho / (delta m)),  kappa^2 = 1'K1 / n^2, for a kernel K >= 0;
    rms(Q~ - middle) <= rms(Q - middle) + B sqrt(rho / (delta m)),  the root mean square over the points of the value box.
The third is missing in the paper, whose proof therefore does not show that Q~ is feasible. The fourth is what lets the value box
stand: Q lies in the value range, but Q~ need not. At each point E(Q~ - Q)^2 = Var(phi alpha) / m <= B^2 rho / m, for a mean over
the policy's actions all the more, so the mean over the points has at most this expectation too; Markov, and the triangle
inequality in mean square. So the program over the features, with the norm, the radius, the box and the ends enlarged accordingly
and a quarter of the features' share of delta for each of the four, bounds the value for every Q of the ball. Data and start
states are fixed in all of this: the draw of the features must not depend on them. C is unknown: it is asserted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..arguments import checked
from ..classes.features import RandomFourier
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..programs.envelope import ConstantEnvelope, Steps
from ..radii.accounting import split_delta
from ..radii.premises import features_premise
from ..radii.registry import Approach, LossKind, radius_rule
from ..validation import number, probability_level
from .ends import ends_of, single_threaded, value_box
from .evaluation import evaluate
from .interval import Interval


@dataclass(frozen=True)
class Enlargement:
    """How much the norm, the square root of the radius, and (slack) ends and value box grow to make up for few features."""

    norm_bound: float
    root_radius: float
    slack: float


EVENTS = 4
"""Norm, value, loss and box, each with its share of delta."""


def enlargement(
    features: int, norm_bound: float, coefficient_variance: float, kappa: float, discount: float, delta: float, bound: float = 1.0
) -> Enlargement:
    """`delta` is the failure probability of each of the events; `bound` is sup |phi|, 1 for cosines."""
    each = math.sqrt(norm_bound**2 / (delta * features))
    return Enlargement(
        norm_bound=math.sqrt(norm_bound**2 + math.sqrt(coefficient_variance / (delta * features))),
        root_radius=(1 + discount) * bound * kappa * each,
        slack=bound * each,
    )


@checked
def bound_by_finite_features(
    problem: Problem,
    *,
    features: RandomFourier,
    kernel: Kernel,
    coefficient_variance: float,
    radius: str = "azuma",
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Interval:
    """An interval for every Q in the ball of the RKHS that the random features approximate, not only for those in their span.

    The norm bound is that of the RKHS of E_w cos cos = exp(-||x - y||^2 / (2 h^2)) / 2. With few features the slack exceeds the
    range of values, and the result is VACUOUS: use KernelSections, whose slack is computed, instead.

    Parameters
    ----------
    problem : Problem
        The question, with a norm bound that is a number.
    features : RandomFourier
        The random features, drawn independently of the data.
    kernel : Kernel
        The test kernel, without negative values.
    coefficient_variance : float
        A bound on the variance of the squared coefficients of Q: an assertion.
    radius, delta, options, progress
        As in `bound_value`; the radius is one number for the V-statistic.

    Returns
    -------
    Interval

    Raises
    ------
    InvalidInput
        Where there is no norm bound, or the theorem does not hold for this radius or kernel.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bounds.bound_by_finite_features(
    ...     problem, features=aope.RandomFourier(20), kernel=aope.Gaussian(1.0), coefficient_variance=1.0
    ... )
    >>> interval.status.name
    'VACUOUS'
    """
    facts = problem.assumptions
    if not isinstance(facts.norm_bound, float):
        raise InvalidInput("`norm_bound` must be a number here: the slack of finitely many features is proportional to it.")
    if facts.misfit_norm is not None:
        raise InvalidInput("`misfit_norm` is of what the features of a SemiParametric class miss. There is no such class.")
    if number(coefficient_variance, "coefficient_variance") < 0:
        raise InvalidInput(f"`coefficient_variance` must not be negative. Got {coefficient_variance!r}.")
    rule = radius_rule(radius)
    if rule.loss is not LossKind.V or rule.approach is not Approach.CONSTANT or not kernel.nonnegative:
        raise InvalidInput("The theorem needs a constant radius for the V-statistic and a kernel without negative values.")
    split = split_delta(probability_level(delta), start_is_exact=problem.start_is_exact, random_features=True)
    evaluation = evaluate(problem, features=features, kernel=kernel, options=options, progress=progress)
    member = evaluation.member(0)
    grounds = rule.evidence(member, split.kernel, len(problem.data))
    proved = grounds.evidence[0]
    share = split.features / EVENTS
    larger = enlargement(
        features.dimension, facts.norm_bound, coefficient_variance, member.statistic.kappa, facts.discount, share
    )
    level = (math.sqrt(proved.bound(Steps.within(0.0), 0.0)) + larger.root_radius) ** 2
    wider = replace(proved, envelope=ConstantEnvelope(level * proved.count**2))
    with single_threaded():
        ends = ends_of(
            replace(
                member,
                name=f"the RKHS of {features!r}",
                norm=larger.norm_bound,
                examiner=None,
                box=value_box(member.system, problem.ranges, facts.misfit + larger.slack),
            ),
            rule,
            replace(grounds, evidence=(wider,)),
            split.kernel,
        )
    part = replace(ends.part, missed=larger.slack + ends.part.missed, norm_bound=facts.norm_bound)
    setting = evaluation.setting(len(problem.data), coefficient_variance=float(coefficient_variance))
    interval = evaluation.interval([replace(ends, part=part)], rule, split, setting)
    return replace(interval, premises=(*interval.premises, features_premise(float(coefficient_variance))))
