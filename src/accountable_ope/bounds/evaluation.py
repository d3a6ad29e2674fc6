"""An evaluation: all work over rows done once, to be bounded at many radii, deltas and assumptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..classes.description import describe_class
from ..classes.features import ListedFeatures
from ..classes.function_class import Features, FunctionClass, as_classes
from ..classes.ranges import residual_range
from ..errors import InvalidInput
from ..kernels.description import describe_kernel
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.assumptions import Assumptions, RelativeNorm
from ..problem.problem import Problem
from ..radii.accounting import DeltaSplit, split_delta, start_radius
from ..radii.member import Member
from ..radii.no_cut import why_no_cut
from ..radii.plan import Plan
from ..radii.premises import BEFORE_THE_DATA, VALUE_NORM, Asked, Choice, counted_norm, value_premises
from ..radii.registry import DEFAULT_RADIUS, LADDER, Approach, LossKind, RadiusRule, radius_rule
from ..radii.row_scale import row_scale
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.estimates import AnyQ, QColumns, q_columns
from ..statistics.examiner import Examiner
from ..statistics.statistic import KernelStatistic, kernel_statistics
from ..validation import probability_level, whole
from ..verification.record import Circumstances, DataRecord
from .ends import ClassEnds, class_ends, value_box
from .fragility import Rebound
from .interval import Interval, Setting, clip, hull

if TYPE_CHECKING:
    from .correction import Correction
    from .diagnosis import Diagnosis
    from .sensitivity import Study

UNDECLARED_NORM = 1e4
"""Without a declared norm bound, ||Q|| is taken to be at most so many times the largest value: wild enough for any Q."""


@checked
@dataclass(frozen=True, eq=False)
class Evaluation:
    """A problem with the Bellman systems and kernel statistics of its classes: all that costs O(n^2).

    Made by `evaluate`. Its methods ask for intervals, diagnoses and studies without passing over the rows again.

    Attributes
    ----------
    problem : Problem
    kernel : Kernel
    classes : tuple of FunctionClass
    systems : tuple of BellmanSystem
        One per class.
    statistics : tuple of KernelStatistic
        One per class.
    anchor : QColumns or None
        The Q around which the classes lie.
    chosen : Choice
        When class and kernel were chosen.
    options : TileOptions or None
    examiners : tuple of Examiner
        What tests the classes when asked, one per class; by default made from the systems.
    """

    problem: Problem
    kernel: Kernel
    classes: tuple[FunctionClass, ...]
    systems: tuple[BellmanSystem, ...]
    statistics: tuple[KernelStatistic, ...]
    anchor: QColumns | None = None
    chosen: Choice = BEFORE_THE_DATA
    options: TileOptions | None = None
    examiners: tuple[Examiner, ...] = ()

    def __post_init__(self) -> None:
        if not self.examiners:
            object.__setattr__(self, "examiners", tuple(Examiner(self.kernel, system) for system in self.systems))

    def __repr__(self) -> str:
        anchored = "" if self.anchor is None else ", anchored"
        return f"Evaluation({len(self.problem.data)} rows, {self.kernel!r}, {list(self.classes)!r}{anchored})"

    @checked
    def bound(
        self,
        radius: str = DEFAULT_RADIUS,
        delta: float = 0.1,
        *,
        pointwise: bool | None = None,
        planned: int | None = None,
        plans: Sequence[Plan | None] | None = None,
    ) -> Interval:
        """The interval at one radius.

        Parameters
        ----------
        radius : str
            The radius by name.
        delta : float
            Failure probability of the two-sided statement.
        pointwise : bool, optional
            Q lies in the value range at the logged points themselves, not only on average over them; by default where the radius
            follows the variance.
        planned : int, optional
            The number of rows at which a radius for all n at once is tightest; by default that at hand, which is a choice made
            before the data only if their number was. Where the same data are bounded while they grow, it must not change. A
            radius that holds at one number of rows has no use for it.
        plans : sequence of Plan, optional
            Rates and weights that were fixed for other assumptions on the same data (see `plans`), one per class.

        Returns
        -------
        Interval

        Raises
        ------
        InvalidInput
            Where the radius needs something that was not declared, or says nothing about the class.
        """
        rule, problem = radius_rule(radius), self.problem
        if planned is not None:
            whole(planned, "planned", least=1)
        growing = planned is not None and rule.anytime
        size = planned if planned is not None and rule.anytime else len(problem.data)
        refuse_unfit([rule], self.classes, self.kernel, problem)
        split = split_delta(probability_level(delta), start_is_exact=problem.start_is_exact)
        members = [self.member_for(rule, index, growing=growing) for index in range(len(self.classes))]
        if plans is not None:
            if len(plans) != len(members):
                raise InvalidInput(f"`plans` must have one plan per class ({len(members)}). Got {len(plans)}.")
            members = [replace(member, plan=plan) for member, plan in zip(members, plans, strict=True)]
        with single_threaded():
            ends = [class_ends(member, rule, split.kernel, size, pointwise=pointwise) for member in members]
        setting = self.setting(size, growing=growing)
        again = Rebound(partial(_bound_within, self, (radius, delta, pointwise, planned)))
        return replace(self.interval(ends, rule, split, setting), rebound=again)

    @checked
    def plans(self, radius: str = DEFAULT_RADIUS, delta: float = 0.1) -> tuple[Plan | None, ...]:
        """Rates and weights that a radius fixes for these assumptions, one plan per class; None where it fixes none.

        Intervals of other assumptions with these plans lie on one event: weaker assumptions never narrow them.
        """
        rule, problem = radius_rule(radius), self.problem
        split = split_delta(probability_level(delta), start_is_exact=problem.start_is_exact)
        members = [self.member_for(rule, index) for index in range(len(self.classes))]
        if not rule.follows_variance:
            return tuple(None for _ in members)
        with single_threaded():
            return tuple(rule.evidence(member, split.kernel, len(problem.data)).plan for member in members)

    def setting(self, planned: int, *, growing: bool = False, coefficient_variance: float | None = None) -> Setting:
        """What a result rests on beside data and assumptions."""
        problem = self.problem
        return Setting(
            data=DataRecord(len(problem.data), problem.data.sha256, problem.starts.sha256),
            kernel=describe_kernel(self.kernel),
            average=None,
            circumstances=Circumstances(
                terminates=problem.terminates,
                start_is_exact=problem.start_is_exact,
                effective_starts=problem.effective_starts,
                exact_policy=problem.policy.exact,
                planned=planned,
                growing=growing,
                anchored=self.anchor is not None,
                earlier_rows=self.chosen.earlier_rows,
                kernel_chosen=self.chosen.kernel,
                estimate_before=self.chosen.estimate,
                points_before=self.chosen.points,
                coefficient_variance=coefficient_variance,
                row_ranges=problem.row_ranges.sha256 if problem.knowledge.given else None,
                propensities=problem.propensities,
            ),
            steps=Asked.of(problem).steps,
        )

    def interval(self, ends: Sequence[ClassEnds], rule: RadiusRule, split: DeltaSplit, setting: Setting) -> Interval:
        """The hull of the classes, enlarged by the error of the start states and clipped to the declared range; its premises."""
        problem, parts, start_error = self.problem, tuple(each.part for each in ends), 0.0
        if split.start > 0:
            start_error = start_radius(problem.ranges.span, problem.effective_starts, split.start)
        unclipped = hull(parts, start_error)
        lower, upper, outcome = clip(unclipped, problem.ranges.value)
        return Interval(
            lower=lower,
            upper=upper,
            unclipped=unclipped,
            outcome=outcome,
            radius=max((each.radius for each in ends), key=lambda radius: radius.total),
            start_error=start_error,
            split=split,
            assumptions=problem.assumptions,
            ranges=problem.ranges,
            certificates=parts,
            count=len(problem.data),
            kernel=repr(self.kernel),
            terminates=problem.terminates,
            setting=setting,
            premises=value_premises(
                Asked.of(problem),
                [part.words for part in parts],
                rule,
                kernel=repr(self.kernel),
                anchored=self.anchor is not None,
                chosen=self.chosen,
                planned=setting.circumstances.planned if setting.circumstances.growing else None,
            ),
        )

    @checked
    def ladder(self, radii: Sequence[str] = LADDER, delta: float = 0.1, *, pointwise: bool | None = None) -> tuple[Interval, ...]:
        """One interval per radius. Each is valid on its own; do not pick the narrowest."""
        return tuple(self.bound(radius, delta, pointwise=pointwise) for radius in radii)

    @checked
    def assuming(self, assumptions: Assumptions) -> Evaluation:
        """The same statistic under other assumptions; the discount must stay, as it is part of the statistic."""
        before = self.problem.assumptions.discount
        if assumptions.discount != before:
            raise InvalidInput(f"The statistic was made at discount {before:g}. Got {assumptions.discount:g}.")
        return replace(self, problem=self.problem.assuming(assumptions))

    @checked
    def of_class(self, index: int) -> Evaluation:
        """The evaluation of one of the classes alone."""
        self._refuse_index(index)
        kept = slice(index, index + 1)
        return replace(
            self,
            classes=self.classes[kept],
            systems=self.systems[kept],
            statistics=self.statistics[kept],
            examiners=self.examiners[kept],
        )

    @checked
    def diagnose(self, q: AnyQ, radius: str = DEFAULT_RADIUS, delta: float = 0.1) -> Diagnosis:
        """Is this estimate consistent with the data, and where is it wrong? See `diagnose`."""
        from .diagnosis import diagnosis_of

        return diagnosis_of(self.anchored(q), radius, delta)

    @checked
    def correct(self, q: AnyQ, radius: str = DEFAULT_RADIUS, delta: float = 0.1) -> Correction:
        """The smallest change that makes this estimate consistent with the data; see `correct`."""
        from .correction import correction_of

        return correction_of(self.anchored(q), q, radius, delta)

    @checked
    def study(self, radius: str = DEFAULT_RADIUS, delta: float = 0.1) -> Study:
        """How the interval depends on what was assumed; see `study`."""
        from .sensitivity import study_of

        return study_of(self, radius, delta)

    @checked
    def anchored(self, q: AnyQ, progress: Progress | None = None) -> Evaluation:
        """The same classes around an existing Q, whose residuals make one more pass over the pairs of rows."""
        chosen = replace(self.chosen, estimate=False)  # of this estimate nobody said when it was made
        columns = q_columns(q, self.problem.experience)
        return _evaluate(self.problem, self.kernel, self.classes, columns, chosen, self.options, progress)

    @checked
    def again(self, problem: Problem, progress: Progress | None = None) -> Evaluation:
        """The same kernel and classes on another problem: fewer rows, or another discount."""
        if self.anchor is not None:
            raise InvalidInput(
                "An evaluation around an estimate is of its own rows and discount, where the estimate is known. Evaluate anew, "
                "with the estimate as `anchor`."
            )
        return _evaluate(problem, self.kernel, self.classes, None, self.chosen, self.options, progress)

    @checked
    def member(self, index: int, *, rescaled: bool = False) -> Member:
        """One class, with what the assumptions say about it; rescaled: with rows scaled by ranges that were declared for them."""
        self._refuse_index(index)
        problem, system, statistic = self.problem, self.systems[index], self.statistics[index]
        of_rows = problem.row_ranges.bounds() if problem.knowledge.given else None
        scale = None
        if rescaled and of_rows is not None and problem.knowledge.one_step_range is not None:
            scale = row_scale(of_rows, problem.data.episodes)
        if scale is not None:
            system = replace(system, row_scale=scale.factors)
            statistic = kernel_statistics([system], self.kernel, self.options)[0]
        facts, ranges, function_class = problem.assumptions, problem.ranges, self.classes[index]
        largest, note = UNDECLARED_NORM * max(map(abs, ranges.value), default=1.0) or 1.0, ""
        if facts.norm_bound is None and self.anchor is None:
            # One-hot features: the coefficients are values, about their middle where a constant is free.
            highest = 0.5 * ranges.span if function_class.intercept else max(map(abs, ranges.value))
            implied = function_class.norm_of_values(highest + facts.misfit)
            if 0 < implied < math.inf:
                largest, note = implied, VALUE_NORM
        return Member(
            name=repr(function_class),
            system=system,
            statistic=statistic,
            kernel=self.kernel,
            ranges=ranges,
            residuals=residual_range(
                function_class,
                problem.policy,
                facts,
                ranges,
                terminates=problem.terminates,
                anchored=self.anchor is not None,
            ),
            box=value_box(system, ranges, facts.misfit),
            norm=facts.norm_bound,
            largest_norm=largest,
            misfit=facts.misfit,
            rounding=rounding_slack(system, statistic, problem),
            description=describe_class(function_class),
            listed=isinstance(function_class.feature_map, ListedFeatures),
            episodes=problem.data.episodes,
            note=note,
            offered=problem.propensity_weights,
            row_ranges=of_rows,
            examiner=self.examiners[index],
            largest_scaled=None if scale is None else scale.largest,
        )

    @checked
    def member_for(self, rule: RadiusRule, index: int, *, growing: bool = False) -> Member:
        """One class as a radius needs it."""
        self._refuse_index(index)
        anchored = self.anchor is not None and not self.chosen.estimate
        listed = self.chosen.points
        against = why_no_cut(self.problem, self.classes[index], anchored=anchored, growing=growing, listed=listed)
        # Factors of rows are made for one number of rows.
        return replace(self.member(index, rescaled=rule.follows_variance and not growing), no_cut=against)

    def _refuse_index(self, index: int) -> None:
        if not 0 <= index < len(self.classes):
            raise InvalidInput(f"`index` must be one of the {len(self.classes)} classes, from 0. Got {index}.")


@checked
def evaluate(
    problem: Problem,
    *,
    features: Features | Sequence[Features],
    kernel: Kernel,
    anchor: AnyQ | None = None,
    chosen: Choice = BEFORE_THE_DATA,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """The Bellman systems and kernel statistics of all classes, from one pass over the pairs of rows.

    Parameters
    ----------
    problem : Problem
        The question.
    features : feature map, FunctionClass, or a sequence of them
        The class of Q functions. Several give the hull of their intervals, valid if Q is in at least one of them.
    kernel : Kernel
        The test kernel.
    anchor : callable, object with `predict_value`, or QColumns, optional
        An existing Q: the class is anchor + features (see `diagnose`).
    chosen : Choice, optional
        When class and kernel were chosen; by default before any of the data.
    options : TileOptions, optional
        How the pass over the pairs is cut up.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=8)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> evaluation = aope.evaluate(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> [interval.radius.name for interval in evaluation.ladder()]
    ['hoeffding', 'azuma', 'certified']
    """
    check_asked(problem, kernel)
    columns = None if anchor is None else q_columns(anchor, problem.experience)
    return _evaluate(problem, kernel, as_classes(features), columns, chosen, options, progress)


def _bound_within(evaluation: Evaluation, asked: tuple[str, float, bool | None, int | None], norm_bound: float) -> Interval:
    """The interval under another norm bound."""
    radius, delta, pointwise, planned = asked
    facts = replace(evaluation.problem.assumptions, norm_bound=norm_bound)
    return evaluation.assuming(facts).bound(radius, delta, pointwise=pointwise, planned=planned)


def _evaluate(
    problem: Problem,
    kernel: Kernel,
    classes: tuple[FunctionClass, ...],
    anchor: QColumns | None,
    chosen: Choice,
    options: TileOptions | None,
    progress: Progress | None,
) -> Evaluation:
    systems = tuple(bellman_system(problem.experience, each, anchor) for each in classes)
    if anchor is not None and chosen.estimate:  # then weights of a cut may look at its residuals
        systems = tuple(replace(each, rewards=each.target) for each in systems)
    statistics = tuple(kernel_statistics(systems, kernel, options, progress))
    return Evaluation(problem, kernel, classes, systems, statistics, anchor, chosen, options)


def single_threaded() -> threadpool_limits:
    """Small matrices: more than one BLAS thread only gets in its own way."""
    import scipy.linalg  # noqa: F401  SciPy brings a BLAS of its own, which can be limited only once it is there

    return threadpool_limits(limits=1, user_api="blas")


def rounding_slack(system: BellmanSystem, statistic: KernelStatistic, problem: Problem) -> float:
    """kernel_error * (mean of |Z||theta| + |v|)^2: how far rounding can move the loss of the true Q.

    The penalized part of theta has the declared norm, or at most sqrt(m) times the largest value; where that is a restriction,
    the premises say so.
    """
    scale, penalized = statistic.column_scale[: system.dimension], system.penalized
    largest_value, norm_bound = max(map(abs, problem.ranges.value)), problem.assumptions.norm_bound
    norm = counted_norm(system.dimension, problem.ranges)
    if isinstance(norm_bound, float):
        norm = min(norm, norm_bound)
    residual_size = norm * float(np.linalg.norm(scale[penalized])) + float(statistic.column_scale[system.dimension])
    if not penalized.all():
        residual_size += (largest_value + norm) * float(scale[~penalized].sum())
    return statistic.kernel_error * residual_size**2


def check_asked(problem: object, kernel: object) -> None:
    """Raise where the question or the kernel is something else."""
    if not isinstance(problem, Problem):
        raise InvalidInput(
            f"`problem` must be a Problem: aope.Problem(data, starts, policy, assumptions). Got {type(problem).__name__}."
        )
    check_kernel(kernel)


def check_kernel(kernel: object) -> None:
    """Raise where the kernel is something else, such as its name or its class."""
    if isinstance(kernel, type) or not isinstance(kernel, Kernel):
        given = repr(kernel) if isinstance(kernel, type | str | float | int) else type(kernel).__name__
        raise InvalidInput(f"`kernel` must be a kernel, such as aope.Gaussian(0.5). Got {given}.")


def refuse_unfit(rules: Sequence[RadiusRule], classes: Sequence[FunctionClass], kernel: Kernel, problem: Problem) -> None:
    """Raise where a radius, a class that its coordinates do not span, or a misfit needs what is not there."""
    check_asked(problem, kernel)
    facts, rows = problem.assumptions, len(problem.data)
    if any(rule.guarantee is radius_rule("symmetric").guarantee for rule in rules) and not facts.symmetric_noise:
        raise InvalidInput("`radius` symmetric needs `symmetric_noise=True`: residuals symmetric about 0 must be declared.")
    many = max((each.dimension for each in classes if each.dimension is not None), default=0)
    if many >= rows and any(rule.approach is Approach.BOOTSTRAP for rule in rules):
        raise InvalidInput(f"`radius` wild needs more rows than features: with {many} features nothing is left of the residuals.")
    sections = any(each.has_remainder for each in classes)
    if sections and facts.norm_bound is None:
        raise InvalidInput("`norm_bound` is needed with KernelSections: without it nothing limits what the coordinates miss.")
    if sections and isinstance(facts.norm_bound, RelativeNorm):
        raise InvalidInput(
            "`norm_bound` must be a number with KernelSections: their coordinates bound the least norm that is consistent with "
            "the data from below only."
        )
    if not sections and facts.misfit == 0:
        return
    what = "what KernelSections miss" if sections else "a `misfit`"
    for rule in rules:
        if rule.loss is LossKind.U:
            raise InvalidInput(f"`radius` {rule.name} bounds a U-statistic, which says nothing about {what}.")
        if rule.approach is Approach.SELF_NORMALIZED or (sections and rule.approach is Approach.BOOTSTRAP):
            raise InvalidInput(f"`radius` {rule.name} says nothing about {what}.")
    if not kernel.nonnegative:
        raise InvalidInput(f"`kernel` must have no negative values with {what}. Got {kernel!r}.")
