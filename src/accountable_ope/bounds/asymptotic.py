"""Asymptotic companions: far narrower than any guarantee of finite samples, and right only in the limit of many rows.

All rest on eps_i = v_i - Z_i theta having mean zero given the past at the true Q. Nothing bounds how far they are off at a given
n: where a few rare rows carry the value, all of them fail (docs/asymptotic.md measures it).

With K the kernel matrix of the rows, M = K / n^2, D = diag(K), thetahat the minimizer of the V-statistic and e its residuals:

- wild radius: the quantile of (e w)'K(e w) / n^2 over independent N(0, 1) multipliers w. Residuals are martingale differences, so
  multipliers need no blocks, on trajectories too.
- Anderson-Rubin set: {eps'(K - q D) eps <= 0}, q = wild radius * n^2 / sum_i e_i^2 K_ii: the radius grows with the residuals of
  the Q that is tested, so that the set is unbounded where the data identify nothing.
- sandwich: c0'thetahat +- z se, se^2 = sum_i g_i^2 e_i^2, g = M Z (Z'MZ)^{-1} c0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ..classes.function_class import Features, FunctionClass, as_classes, expected_features
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions, kernel_product, part_of
from ..problem.problem import Problem
from ..problem.statements import Statement, premise
from ..programs.certificate import Certificate, SolveStatus
from ..programs.envelope import ConstantEnvelope
from ..programs.quadratic import Quadratic
from ..programs.solver import solve
from ..radii.accounting import DeltaSplit, split_delta, start_radius
from ..radii.registry import Grounds, Guarantee, LossKind, Radius, kernel_evidence, radius_rule
from ..radii.wild import wild_radius
from ..statistics.bellman import BellmanSystem
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray, probability_level
from .ends import constraint_set, ends_of
from .evaluation import Evaluation, evaluate, single_threaded
from .interval import Status, clip, normalizer, one_line
from .premises import BEFORE_THE_DATA, ORDER, SAMPLED_STARTS, kernel_premise, reward_premise, value_premises

FLAT = 1e-12
"""A direction of theta with less of the loss than this, in units where every feature has 1, is not seen by the data."""


@dataclass(frozen=True, eq=False)
class SandwichInterval:
    """estimate +- z standard_error, cut to the declared range of values. Coverage tends to 1 - delta with the number of rows.

    Attributes
    ----------
    estimate, standard_error : float
    lower, upper : float
    normalized : tuple of two floats
        (1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself.
    unclipped : tuple of two floats
        The ends before they were cut.
    status : Status
    delta : float
    start_error : float
        The standard error that sampled start states, or sampled actions there, add.
    condition : float
        The condition number of Z'MZ, features scaled alike, over the directions that the data see.
    unseen : int
        How many they do not see. A pseudo-inverse leaves these out; where the value depends on one of them, the estimate is NaN,
        the standard error infinite and the interval the whole range.
    count : int
        The number of rows.
    premises : tuple of Statement
    guarantee : Guarantee
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    normalized: tuple[float, float]
    unclipped: tuple[float, float]
    status: Status
    delta: float
    start_error: float
    condition: float
    unseen: int
    count: int
    premises: tuple[Statement, ...]
    guarantee: Guarantee = Guarantee.ASYMPTOTIC

    def __repr__(self) -> str:
        return one_line("SandwichInterval", self.lower, self.upper, self.delta, "sandwich", self.status)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class AndersonRubinInterval:
    """The values of all Q of the class with eps'(K - q D) eps <= 0, within norm bound and value box, cut to the declared range.

    Attributes
    ----------
    lower, upper : float
    normalized : tuple of two floats
        (1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself.
    unclipped : tuple of two floats
        The ends before they were cut.
    status : Status
    identified : bool
        Whether the set is bounded along everything that the value depends on. If not, only norm bound, value box and declared
        range keep the interval finite.
    smallest_eigenvalue : float
        lambda_min(Z'(K - q D)Z) / n^2, negative where the set is not an ellipsoid.
    relative_eigenvalue : float
        The same with features scaled alike, Z'DZ / n having a diagonal of ones.
    rate : float
        q.
    radius : Radius
        The wild radius.
    start_error : float
        What sampled start states, or sampled actions there, add to either end.
    split : DeltaSplit
    count : int
        The number of rows.
    certificates : tuple of two Certificates
        Of the upper end, and of the lower one with the sign turned: both ends are dual bounds.
    premises : tuple of Statement
    guarantee : Guarantee
    """

    lower: float
    upper: float
    normalized: tuple[float, float]
    unclipped: tuple[float, float]
    status: Status
    identified: bool
    smallest_eigenvalue: float
    relative_eigenvalue: float
    rate: float
    radius: Radius
    start_error: float
    split: DeltaSplit
    count: int
    certificates: tuple[Certificate, Certificate]
    premises: tuple[Statement, ...]
    guarantee: Guarantee = Guarantee.ASYMPTOTIC

    def __repr__(self) -> str:
        return one_line("AndersonRubinInterval", self.lower, self.upper, self.delta, "anderson-rubin", self.status)

    @property
    def delta(self) -> float:
        return self.split.total

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower


def sandwich_interval(
    problem: Problem,
    *,
    features: Features,
    kernel: Kernel,
    delta: float = 0.1,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> SandwichInterval:
    """c0'thetahat +- z se, z the (1 - delta/2) quantile of N(0, 1). The norm bound is not used; the value range cuts the ends.

    c0'thetahat - value = sum_i g_i eps_i, g = M Z (Z'MZ)^{-1} c0: in the limit a martingale with fixed weights. Sampled start
    states are a second source of error, with variance var(V_thetahat(s0)) / N.

    Parameters
    ----------
    problem : Problem
    features : feature map or FunctionClass
        One class, small against the data.
    kernel, delta, options, progress
        As in `bound_value`.

    Returns
    -------
    SandwichInterval

    Raises
    ------
    InvalidInput
        Where there is more than one class, too many coefficients for the data, or a declared misfit.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bounds.sandwich_interval(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> interval.estimate in interval, interval.guarantee.name
    (True, 'ASYMPTOTIC')
    """
    _check_class(features, problem)
    probability_level(delta)
    evaluation = evaluate(problem, features=features, kernel=kernel, options=options, progress=part_of(progress, 0.0, 1 / 3))
    return sandwich_of(evaluation, delta, part_of(progress, 1 / 3, 1.0))


def sandwich_of(evaluation: Evaluation, delta: float, progress: Progress | None = None) -> SandwichInterval:
    """The sandwich interval of an evaluation of one class."""
    problem, system, statistic = evaluation.problem, evaluation.systems[0], evaluation.statistics[0]
    _check_class(evaluation.classes, problem)
    ranges, count = problem.ranges, len(problem.data)
    theta, weights, condition, unseen = _solve(statistic, system.objective)
    estimate, standard_error, start_error = math.nan, math.inf, math.nan
    unclipped = (-math.inf, math.inf)
    if weights is not None:
        u = system.residuals @ weights
        g = kernel_product(evaluation.kernel, system.points, u, evaluation.options, progress) / count**2
        of_rows = math.sqrt(float(g**2 @ system.residuals_at(theta) ** 2))
        start_error = _start_error(problem, evaluation.classes[0], theta)
        # Actions at next and at start states come from one stream of draws; errors that may go together are added.
        standard_error = math.hypot(of_rows, start_error) if problem.policy.exact else of_rows + start_error
        estimate = float(system.objective @ theta)
        reach = NormalDist().inv_cdf(1 - probability_level(delta) / 2) * standard_error
        unclipped = (estimate - reach, estimate + reach)
    lower, upper, status = clip(unclipped, ranges.value)
    low, high = ranges.value
    premises = (
        ORDER,
        reward_premise(problem.assumptions),
        premise("values", f"The value lies in [{low:g}, {high:g}], which cuts the ends; no norm bound is used."),
        premise("class", f"Q lies in the class of {evaluation.classes[0]!r}, chosen without looking at these data."),
        kernel_premise(repr(evaluation.kernel)),
        *(() if problem.start_is_exact else (SAMPLED_STARTS,)),
        _limit_premise(system),
    )
    return SandwichInterval(
        estimate=estimate,
        standard_error=standard_error,
        lower=lower,
        upper=upper,
        normalized=_normalized(lower, upper, problem.assumptions.discount),
        unclipped=unclipped,
        status=status,
        delta=delta,
        start_error=start_error,
        condition=condition,
        unseen=unseen,
        count=count,
        premises=premises,
    )


def anderson_rubin_interval(
    problem: Problem,
    *,
    features: Features,
    kernel: Kernel,
    delta: float = 0.1,
    draws: int = 10_000,
    seed: int = 0,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> AndersonRubinInterval:
    """Extreme values over {V-statistic(theta) <= wild radius * sum_i eps_i(theta)^2 K_ii / sum_i e_i^2 K_ii}, ball and value box.

    The quadratic need not be convex; its Lagrangian bounds the extreme values all the same. Sampled start states have their own
    share of delta and their own radius, as in `bound_value`.

    Parameters
    ----------
    problem : Problem
    features : feature map or FunctionClass
        One class, small against the data.
    kernel, delta
        As in `bound_value`.
    draws, seed : int
        Of the wild radius.
    options, progress
        As in `bound_value`.

    Returns
    -------
    AndersonRubinInterval

    Raises
    ------
    InvalidInput
        Where there is more than one class, too many coefficients for the data, or a declared misfit.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bounds.anderson_rubin_interval(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> interval.lower <= interval.upper, all(each.check().valid for each in interval.certificates)
    (True, True)
    """
    _check_class(features, problem)
    probability_level(delta)
    evaluation = evaluate(problem, features=features, kernel=kernel, options=options, progress=progress)
    return anderson_rubin_of(evaluation, delta, draws, seed)


def anderson_rubin_of(evaluation: Evaluation, delta: float, draws: int = 10_000, seed: int = 0) -> AndersonRubinInterval:
    """The Anderson-Rubin interval of an evaluation of one class."""
    problem, member = evaluation.problem, evaluation.member(0)
    _check_class(evaluation.classes, problem)
    system, statistic, ranges, count = member.system, member.statistic, problem.ranges, len(problem.data)
    split = split_delta(probability_level(delta), start_is_exact=problem.start_is_exact)
    start_error = 0.0 if split.start == 0 else start_radius(ranges.span, problem.effective_starts, split.start)
    theta, *_ = _solve(statistic, system.objective)
    level = wild_radius(system, evaluation.kernel, theta, split.kernel, draws=draws, seed=seed)
    squares = float(system.residuals_at(theta) ** 2 @ evaluation.kernel.diagonal(system.points)) / count**2
    rate = level / squares if squares > 0 else 0.0
    rule = radius_rule("wild")
    radius = rule.at(level, rule.rests.value, split.kernel, member.rounding)
    evidence = kernel_evidence(member, statistic, ConstantEnvelope(level * count**2), LossKind.V)
    loss = _ratio_loss(statistic, rate, level)
    with single_threaded():
        # The ball is that of the wild radius.
        constant = ends_of(member, rule, Grounds((evidence,), statistic, radius.uses), split.kernel).part
        around = constraint_set(member, Grounds((evidence,), statistic, radius.uses), joint=False)[0]
        solution = solve(replace(around, evidence=(replace(evidence, squared=loss),)), system.objective)
    ends = (solution.upper, solution.lower)
    unclipped = (-ends[1].bound - start_error, ends[0].bound + start_error)
    if ends[0].status is SolveStatus.EMPTY:
        unclipped = (math.nan, math.nan)
    lower, upper, status = clip(unclipped, ranges.value)
    relative, identified = _identification(loss, statistic, system.objective)
    premises = value_premises(
        problem, [constant], rule, kernel=repr(evaluation.kernel), anchored=False, chosen=BEFORE_THE_DATA, growing=False
    )
    return AndersonRubinInterval(
        lower=lower,
        upper=upper,
        normalized=_normalized(lower, upper, problem.assumptions.discount),
        unclipped=unclipped,
        status=status,
        identified=identified,
        smallest_eigenvalue=float(np.linalg.eigvalsh(loss.A)[0]),
        relative_eigenvalue=relative,
        rate=rate,
        radius=radius,
        start_error=start_error,
        split=split,
        count=count,
        certificates=ends,
        premises=(*premises, _limit_premise(system)),
    )


def _solve(statistic: KernelStatistic, objective: FloatArray) -> tuple[FloatArray, FloatArray | None, float, int]:
    """thetahat, (Z'MZ)^+ c0 (None where c0 is not in the range of Z'MZ), condition number and number of unseen directions.

    Both solutions are of least norm in units where every feature has a loss of 1.
    """
    loss = statistic.v_loss()
    scale = _unit_scale(loss.A)
    A, right = scale[:, None] * loss.A * scale, scale[:, None] * np.column_stack([loss.a, objective])
    solved, _, rank, sizes = np.linalg.lstsq(0.5 * (A + A.T), right, rcond=_flat(statistic))
    missed = float(np.linalg.norm(A @ solved[:, 1] - right[:, 1]))
    seen = missed <= 1e-6 * float(np.linalg.norm(right[:, 1]))
    condition = float(sizes[0] / sizes[rank - 1]) if rank else math.inf
    return scale * solved[:, 0], scale * solved[:, 1] if seen else None, condition, len(scale) - int(rank)


def _flat(statistic: KernelStatistic) -> float:
    return max(FLAT, statistic.kernel_error / statistic.kernel_supremum)


def _unit_scale(A: FloatArray) -> FloatArray:
    """1 / sqrt(A_ii), 1 for a column of zeros."""
    diagonal = np.diagonal(A)
    return np.asarray(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))


def _ratio_loss(statistic: KernelStatistic, rate: float, level: float) -> Quadratic:
    """eps'(K - rate D) eps / n^2 + level, at most `level` on the set; the V-statistic where the rate is 0."""
    gram, m = (statistic.pair_gram - rate * statistic.diag_gram) / statistic.count**2, statistic.dimension
    return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]) + level)


def _identification(loss: Quadratic, statistic: KernelStatistic, objective: FloatArray) -> tuple[float, bool]:
    """(smallest eigenvalue in units where all features have the same mean square, whether the set alone bounds the value)."""
    m = len(objective)
    scale = _unit_scale(statistic.diag_gram[:m, :m] / statistic.count)
    values, vectors = np.linalg.eigh(scale[:, None] * loss.A * scale)
    cut = _flat(statistic) * float(np.abs(values).max())
    along = np.abs(vectors.T @ (scale * objective))
    seen = bool((along[np.abs(values) <= cut] <= 1e-6 * np.linalg.norm(along)).all())
    return float(values[0]), bool(values[0] >= -cut) and seen


def _start_error(problem: Problem, function_class: FunctionClass, theta: FloatArray) -> float:
    """The standard error of the mean of V_thetahat over sampled start states, or over sampled actions at known ones."""
    if problem.start_is_exact:
        return 0.0
    starts, policy, phi = problem.starts, problem.policy, function_class.feature_map
    slopes = theta[: function_class.dimension]  # a constant does not vary
    if not starts.exact:
        if phi is None:
            at_start = function_class.columns(problem.experience).start
        else:
            at_start = expected_features(phi, starts.states, policy)
        values, weights = (at_start @ slopes)[:, None], np.ones(1)
    elif phi is None:
        raise InvalidInput("`features` Precomputed hide how far sampled actions at the start states differ: give a feature map.")
    else:
        points = [np.concatenate([starts.states, branch.actions], axis=1) for branch in policy.branches(starts.states)]
        values, weights = np.array([phi(each) @ slopes for each in points]), starts.weights
    if len(values) < 2:
        raise InvalidInput(
            "At least two sampled start states, or actions per state, are needed to see how far they differ. Got 1."
        )
    return math.sqrt(float(weights**2 @ np.var(values, axis=0, ddof=1)) / len(values))


def _check_class(features: Features | Sequence[Features], problem: Problem) -> None:
    classes, rows = as_classes(features), len(problem.data)
    if len(classes) != 1 or classes[0].dimension is None:
        name = f"{len(classes)} classes" if len(classes) != 1 else type(classes[0]).__name__
        raise InvalidInput(f"`features` must be one feature map or Precomputed, a class of few coefficients. Got {name}.")
    coefficients = classes[0].dimension + classes[0].intercept
    if coefficients >= rows:
        raise InvalidInput(f"`features` has {coefficients} coefficients, which leave nothing of {rows} transitions to judge by.")
    if problem.assumptions.misfit > 0:
        raise InvalidInput("`misfit` must be 0 for an asymptotic interval, which takes the class to contain Q.")


def _limit_premise(system: BellmanSystem) -> Statement:
    n, m = system.residuals.shape
    text = (
        f"Asymptotic: {n} transitions are many for {m} coefficients, and no few of them, logged or missed by chance, decide the "
        "value. Nothing is guaranteed at a given number of transitions."
    )
    return premise("limit", text, ("rows", n), ("coefficients", m))


def _normalized(lower: float, upper: float, discount: float) -> tuple[float, float]:
    scale = normalizer(discount)
    return (scale * lower, scale * upper)
