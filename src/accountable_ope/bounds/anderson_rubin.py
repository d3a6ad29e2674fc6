"""The Anderson-Rubin interval: asymptotic, and as wide as the declared range where the data identify nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..classes.function_class import Features
from ..io.display import interval_html, one_line
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, Status
from ..programs.certificate import Certificate, SolveStatus
from ..programs.envelope import ConstantEnvelope
from ..programs.quadratic import Quadratic
from ..programs.solver import solve
from ..radii.accounting import DeltaSplit, split_delta, start_radius
from ..radii.choice import BEFORE_THE_DATA
from ..radii.doubts import Doubt, TestedClass, class_doubts, copy_doubts, shown_status, statements
from ..radii.premises import Asked, value_premises
from ..radii.registry import Grounds, LossKind, Radius, kernel_evidence, radius_rule
from ..radii.wild import wild_radius
from ..statistics.examiner import ClassTests
from ..statistics.specification import SpecificationTest
from ..statistics.statistic import KernelStatistic
from ..validation import FloatArray, probability_level
from .asymptotic import check_class, flat, least_loss_solution, limit_premise, normalized_ends, unit_scale
from .ends import constraint_set, ends_of, single_threaded
from .evaluation import Evaluation, evaluate
from .interval import clip


@checked
@dataclass(frozen=True, eq=False)
class AndersonRubinInterval(Shown, Drawn):
    """The values of all Q of the class with eps'(K - q D) eps <= 0, within norm bound and value box, cut to the declared range.

    Attributes
    ----------
    lower, upper : float
    normalized : tuple of two floats
        (1 - discount) times the interval, on the scale of one reward; at discount 1 the interval itself.
    unclipped : tuple of two floats
        The ends before they were cut.
    status : Status
        OK, DOUBTED, VACUOUS or INCONSISTENT.
    outcome : Status
        The same before any doubt.
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
    features : str
        The class, in words.
    tests : ClassTests
        Whether the class contains Q: asymptotic tests, made when asked for.
    guarantee : Guarantee
    copied : int
        How many rows are copies of earlier ones, where these are too many.
    """

    lower: float
    upper: float
    normalized: tuple[float, float]
    unclipped: tuple[float, float]
    outcome: Status
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
    features: str
    tests: ClassTests
    guarantee: Guarantee = Guarantee.ASYMPTOTIC
    copied: int = 0

    def __repr__(self) -> str:
        return one_line("AndersonRubinInterval", self.lower, self.upper, self.delta, "anderson-rubin", self.status)

    @property
    def delta(self) -> float:
        return self.split.total

    def _repr_html_(self) -> str:
        return interval_html(self, "Value of the target policy", "Anderson-Rubin", statements(self.doubts))

    @property
    def status(self) -> Status:
        """What the interval says; DOUBTED in place of OK where the data speak against the class or its norm bound."""
        return shown_status(self.outcome, doubted=self.doubted)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What speaks against the class or its norm bound; that nothing does is no evidence that it is right."""
        tested = [self._tested] if self.outcome is not Status.INCONSISTENT else []
        return (*copy_doubts(self.copied, self.count), *class_doubts(tested))

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
    check_class(features, problem)
    probability_level(delta)
    evaluation = evaluate(problem, features=features, kernel=kernel, options=options, progress=progress)
    return anderson_rubin_of(evaluation, delta, draws, seed)


def anderson_rubin_of(evaluation: Evaluation, delta: float, draws: int = 10_000, seed: int = 0) -> AndersonRubinInterval:
    """The Anderson-Rubin interval of an evaluation of one class."""
    problem, member = evaluation.problem, evaluation.member(0)
    check_class(evaluation.classes, problem)
    system, statistic, ranges, count = member.system, member.statistic, problem.ranges, len(problem.data)
    split = split_delta(probability_level(delta), start_is_exact=problem.start_is_exact)
    start_error = 0.0 if split.start == 0 else start_radius(ranges.span, problem.effective_starts, split.start)
    theta = least_loss_solution(statistic, system.objective).theta
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
    unclipped = (system.offset - ends[1].bound - start_error, system.offset + ends[0].bound + start_error)
    if ends[0].status is SolveStatus.EMPTY:
        unclipped = (math.nan, math.nan)
    lower, upper, outcome = clip(unclipped, ranges.value)
    relative, identified = _identification(loss, statistic, system.objective)
    premises = value_premises(
        Asked.of(problem), [constant.words], rule, kernel=repr(evaluation.kernel), anchored=False, chosen=BEFORE_THE_DATA
    )
    return AndersonRubinInterval(
        lower=lower,
        upper=upper,
        normalized=normalized_ends(lower, upper, problem.assumptions.discount),
        unclipped=unclipped,
        outcome=outcome,
        identified=identified,
        smallest_eigenvalue=float(np.linalg.eigvalsh(loss.A)[0]),
        relative_eigenvalue=relative,
        rate=rate,
        radius=radius,
        start_error=start_error,
        split=split,
        count=count,
        certificates=ends,
        premises=(*premises, limit_premise(system)),
        features=member.name,
        tests=member.tests,
        copied=problem.data.copies.doubted,
    )


def _ratio_loss(statistic: KernelStatistic, rate: float, level: float) -> Quadratic:
    """eps'(K - rate D) eps / n^2 + level, at most `level` on the set; the V-statistic where the rate is 0."""
    gram, m = (statistic.pair_gram - rate * statistic.diag_gram) / statistic.count**2, statistic.dimension
    return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]) + level)


def _identification(loss: Quadratic, statistic: KernelStatistic, objective: FloatArray) -> tuple[float, bool]:
    """(smallest eigenvalue in units where all features have the same mean square, whether the set alone bounds the value)."""
    m = len(objective)
    scale = unit_scale(statistic.diag_gram[:m, :m] / statistic.count)
    values, vectors = np.linalg.eigh(scale[:, None] * loss.A * scale)
    cut = flat(statistic) * float(np.abs(values).max())
    along = np.abs(vectors.T @ (scale * objective))
    seen = bool((along[np.abs(values) <= cut] <= 1e-6 * np.linalg.norm(along)).all())
    return float(values[0]), bool(values[0] >= -cut) and seen
