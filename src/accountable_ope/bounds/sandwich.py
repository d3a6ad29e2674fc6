"""The sandwich interval: estimate +- z standard errors, asymptotic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from ..arguments import checked
from ..classes.function_class import Features, FunctionClass, expected_features
from ..io.display import interval_html, one_line
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions, kernel_product, part_of
from ..problem.policy import at_start
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, Status, premise, range_text
from ..radii.doubts import Doubt, TestedClass, class_doubts, copy_doubts, shown_status, statements
from ..radii.premises import (
    DRAWN_ACTIONS,
    FIXED_SIZE,
    ORDER,
    SAMPLED_STARTS,
    Asked,
    ending_premises,
    fixed_starts,
    kernel_premise,
    left_out_premises,
    reward_premise,
)
from ..statistics.bellman import BellmanSystem
from ..statistics.examiner import ClassTests, Examiner
from ..statistics.specification import SpecificationTest
from ..validation import FloatArray, probability_level
from .asymptotic import LeastLoss, check_class, least_loss_solution, limit_premise, normalized_ends, start_error
from .evaluation import Evaluation, evaluate
from .interval import clip


@checked
@dataclass(frozen=True, eq=False)
class SandwichInterval(Shown, Drawn):
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
        OK, DOUBTED, VACUOUS or INCONSISTENT.
    outcome : Status
        The same before any doubt.
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
    features : str
        The class, in words.
    tests : ClassTests
        Whether the class contains Q: asymptotic tests, made when asked for.
    guarantee : Guarantee
    copied : int
        How many rows are copies of earlier ones, where these are too many.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    normalized: tuple[float, float]
    unclipped: tuple[float, float]
    outcome: Status
    delta: float
    start_error: float
    condition: float
    unseen: int
    count: int
    premises: tuple[Statement, ...]
    features: str
    tests: ClassTests
    guarantee: Guarantee = Guarantee.ASYMPTOTIC
    copied: int = 0

    def __repr__(self) -> str:
        return one_line("SandwichInterval", self.lower, self.upper, self.delta, "sandwich", self.status)

    def _repr_html_(self) -> str:
        return interval_html(self, "Value of the target policy", "sandwich", statements(self.doubts))

    @property
    def status(self) -> Status:
        """What the interval says; DOUBTED in place of OK where the data speak against the class."""
        return shown_status(self.outcome, doubted=self.doubted)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What speaks against the class; that nothing does is no evidence that it is right."""
        return (*copy_doubts(self.copied, self.count), *class_doubts([self._tested]))

    @property
    def doubted(self) -> bool:
        """Whether more than a weak sign does."""
        return self.copied > 0 or self._tested.doubted

    @property
    def specification(self) -> SpecificationTest:
        """The test behind the doubts about the class."""
        return self.tests.specification

    @property
    def _tested(self) -> TestedClass:
        return TestedClass(self.features, self.tests.specification, self.tests.norm)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower


@checked
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
    check_class(features, problem)
    probability_level(delta)
    evaluation = evaluate(problem, features=features, kernel=kernel, options=options, progress=part_of(progress, 0.0, 1 / 3))
    return sandwich_of(evaluation, delta, part_of(progress, 1 / 3, 1.0))


def sandwich_of(evaluation: Evaluation, delta: float, progress: Progress | None = None) -> SandwichInterval:
    """The sandwich interval of an evaluation of one class."""
    problem, system, statistic = evaluation.problem, evaluation.systems[0], evaluation.statistics[0]
    check_class(evaluation.classes, problem)
    count = len(problem.data)
    solution = least_loss_solution(statistic, system.objective)
    of_rows = math.inf
    if solution.weights is not None:
        u = system.residuals @ solution.weights
        g = kernel_product(evaluation.kernel, system.points, u, evaluation.options, progress) / count**2
        of_rows = math.sqrt(float(g**2 @ system.residuals_at(solution.theta) ** 2))
    rows = SandwichRows(
        problem, evaluation.classes[0], evaluation.kernel, system, evaluation.examiners[0], count, problem.data.copies.doubted
    )
    return sandwich_from(rows, solution, of_rows, delta)


@dataclass(frozen=True, eq=False)
class SandwichRows:
    """What an interval says of its rows, of which `count` were summed and some may be gone.

    problem:  the question, of those at hand.
    system:   of these.
    examiner: tests the class.
    copied:   how many of all are copies, where these are too many.
    """

    problem: Problem
    function_class: FunctionClass
    kernel: Kernel
    system: BellmanSystem
    examiner: Examiner | None
    count: int
    copied: int


def sandwich_from(rows: SandwichRows, solution: LeastLoss, of_rows: float, delta: float) -> SandwichInterval:
    """The interval; of_rows: the standard error that they leave."""
    problem, system, theta, count = rows.problem, rows.system, solution.theta, rows.count
    ranges = problem.ranges
    estimate, standard_error, of_starts = math.nan, math.inf, math.nan
    unclipped = (-math.inf, math.inf)
    if solution.seen:
        of_starts = _start_error(problem, rows.function_class, theta)
        # Residuals have mean 0 given what came before, and start states (or actions there) are drawn apart: no covariance.
        standard_error = math.hypot(of_rows, of_starts)
        estimate = system.offset + float(system.objective @ theta)
        reach = -NormalDist().inv_cdf(probability_level(delta) / 2) * standard_error
        unclipped = (estimate - reach, estimate + reach)
    lower, upper, outcome = clip(unclipped, ranges.value)
    low, high = ranges.value
    premises = (
        ORDER,
        reward_premise(problem.assumptions),
        premise("values", f"The value lies in {range_text(low, high)}, which cuts the ends; no norm bound is used."),
        *ending_premises(Asked.of(problem)),
        *left_out_premises(problem.data.left_out),
        premise("class", f"Q lies in the class of {rows.function_class!r}, chosen without looking at these data."),
        kernel_premise(repr(rows.kernel)),
        # An i.i.d. sample settles down by itself, wherever it comes from; a distribution that follows the errors does not.
        *((fixed_starts("the estimate's error is judged at them"),) if problem.starts.exact else ()),
        *(() if problem.policy.exact else (DRAWN_ACTIONS,)),
        *(() if problem.start_is_exact else (SAMPLED_STARTS,)),
        FIXED_SIZE,
        limit_premise(system, count),
    )
    return SandwichInterval(
        estimate=estimate,
        standard_error=standard_error,
        lower=lower,
        upper=upper,
        normalized=normalized_ends(lower, upper, problem.assumptions.discount),
        unclipped=unclipped,
        outcome=outcome,
        delta=delta,
        start_error=of_starts,
        condition=solution.condition,
        unseen=solution.unseen,
        count=count,
        premises=premises,
        features=repr(rows.function_class),
        tests=ClassTests(rows.examiner),  # its norm bound is not used
        copied=rows.copied,
    )


def _start_error(problem: Problem, function_class: FunctionClass, theta: FloatArray) -> float:
    """That of V_thetahat; a constant does not vary."""
    if problem.start_is_exact:
        return 0.0
    starts, phi, slopes = problem.starts, function_class.feature_map, theta[: function_class.dimension]
    if starts.exact:
        return start_error(problem, None if phi is None else lambda points: phi(points) @ slopes, None)
    if phi is None:
        rows = function_class.columns(problem.experience).start
    else:
        rows = expected_features(phi, starts.states, at_start(problem.policy))
    return start_error(problem, None, rows @ slopes)
