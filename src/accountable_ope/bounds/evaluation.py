"""An evaluation: all work over rows done once, to be bounded at many radii, deltas and assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..arguments import checked
from ..classes.function_class import Features, FunctionClass, as_classes
from ..errors import InvalidInput
from ..kernels.description import describe_kernel
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions
from ..problem.assumptions import Assumptions
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..radii.accounting import DeltaSplit, split_delta, start_radius
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.member import Member
from ..radii.no_cut import why_no_cut
from ..radii.plan import Plan
from ..radii.premises import Asked, value_premises
from ..radii.registry import DEFAULT_RADIUS, LADDER, RadiusRule, radius_rule
from ..radii.row_scale import Relevance, row_scale
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.engines.engine import AnyEngine, Engine, engine_for, refuse_unusable, used_engine
from ..statistics.estimates import AnyQ, QColumns, q_columns
from ..statistics.examiner import Examiner
from ..statistics.statistic import KernelStatistic, kernel_statistics
from ..validation import probability_level, whole
from ..verification.record import Circumstances, DataRecord
from .class_certificates import hull
from .cross_fitted import showing_rows
from .ends import ClassEnds, class_ends, single_threaded
from .interval import Interval, Setting, clip
from .members import class_member
from .rebound import AskedFor, Rebound
from .unfit import check_asked, refuse_unfit

if TYPE_CHECKING:
    from .correction import Correction
    from .diagnosis import Diagnosis
    from .sensitivity import Study


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
    log : Transitions or None
        The whole log, where the rows of the problem are its later part and earlier ones chose the class.
    engine : Engine or None
        Who passes over the pairs of rows; for `engine="auto"` the one that was chosen, and why.
    showing : int
        How many effective rows show what the target policy does, where a class around a fit rests on too few; else 0.
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
    log: Transitions | None = None
    engine: Engine | None = None
    showing: int = 0

    def __post_init__(self) -> None:
        if not self.examiners:
            object.__setattr__(self, "examiners", tuple(Examiner(self.kernel, system) for system in self.systems))

    def __repr__(self) -> str:
        anchored = "" if self.anchor is None else ", anchored"
        return f"Evaluation({len(self.problem.data)} rows, {self.kernel!r}, {list(self.classes)!r}{anchored})"

    @property
    def whole(self) -> Problem:
        """The question with the whole log: for the value of the logged policy, which rests on no choice."""
        return self.problem if self.log is None else self.problem.part(self.log)

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
        chosen = [None] * len(self.classes) if plans is None else list(plans)
        if len(chosen) != len(self.classes):
            raise InvalidInput(f"`plans` must have one plan per class ({len(self.classes)}). Got {len(chosen)}.")
        members = [self.member_for(rule, index, growing=growing, plan=plan) for index, plan in enumerate(chosen)]
        with single_threaded():
            ends = [class_ends(member, rule, split.kernel, size, pointwise=pointwise) for member in members]
        setting = self.setting(size, growing=growing)
        again = Rebound(self, AskedFor(radius, delta, pointwise, planned))
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
                left_out=problem.data.left_out,
                copied_rows=problem.data.copies.doubted,
                showing_rows=self.showing,
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
            engine=used_engine(self.engine, self.kernel),
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
        around = Around(q, reference_of(self.problem), chosen)
        return evaluation_from(self.problem, self.kernel, self.classes, around, self.options, progress, self.engine)

    @checked
    def again(self, problem: Problem, progress: Progress | None = None) -> Evaluation:
        """The same kernel and classes on another problem: fewer rows, or another discount."""
        if self.anchor is not None:
            raise InvalidInput(
                "An evaluation around an estimate is of its own rows and discount, where the estimate is known. Evaluate anew, "
                "with the estimate as `anchor`."
            )
        around = Around(None, reference_of(problem), self.chosen)
        return evaluation_from(problem, self.kernel, self.classes, around, self.options, progress, self.engine)

    @checked
    def member(self, index: int, *, rescaled: bool = False, plan: Plan | None = None) -> Member:
        """One class, with what the assumptions say about it; rescaled: with rows scaled by ranges that were declared for them."""
        self._refuse_index(index)
        if plan is not None:
            plan.refuse_other(self.problem.assumptions)
        problem, system, statistic = self.problem, self.systems[index], self.statistics[index]
        scale = None
        if rescaled and plan is not None:
            scale = plan.scale
        elif rescaled and problem.knowledge.one_step_range is not None:
            relevance = Relevance(self.kernel, system.points, problem.taken_probabilities)
            scale = row_scale(problem.row_ranges.bounds(), relevance)
        if scale is not None:
            system = replace(system, row_scale=scale.factors)
            known = None if plan is None else plan.statistic
            if known is None:
                known = kernel_statistics([system], self.kernel, self.options, engine=self.engine)[0]
            statistic = known
        found = class_member(problem, self.kernel, self.classes[index], system, statistic, anchored=self.anchor is not None)
        return replace(found, scale=scale, plan=plan, examiner=self.examiners[index])

    @checked
    def member_for(self, rule: RadiusRule, index: int, *, growing: bool = False, plan: Plan | None = None) -> Member:
        """One class as a radius needs it."""
        self._refuse_index(index)
        anchored = self.anchor is not None and not self.chosen.estimate
        listed = self.chosen.points
        against = why_no_cut(self.problem, self.classes[index], anchored=anchored, growing=growing, listed=listed)
        # Factors of rows are made for one number of rows.
        return replace(self.member(index, rescaled=rule.follows_variance and not growing, plan=plan), no_cut=against)

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
    engine: AnyEngine | None = None,
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
    engine : engine, or its name, optional
        Who computes the pass over the pairs: None for this machine, as `options` say; a cluster such as
        `aope.engines.Dask(workers=4)`; "auto" for what `aope.engines.choose` finds best on this machine; "rows" (kernels of
        finite rank), "tiles" or "cuda" for an engine of this machine by name.

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
    if engine is not None:
        refuse_unusable(engine, kernel, options)
    around = Around(anchor, reference_of(problem), chosen)
    return evaluation_from(problem, kernel, as_classes(features), around, options, progress, engine)


@dataclass(frozen=True, eq=False)
class Around:
    """What the classes lie around, and when that was chosen.

    Attributes
    ----------
    q : callable, object with `predict_value`, QColumns, or None
        An estimate.
    reference : float
        A constant from which values are counted.
    chosen : Choice
    """

    q: AnyQ | None
    reference: float
    chosen: Choice


def reference_of(problem: Problem) -> float:
    """The constant from which values are counted, by what was declared of them."""
    return problem.ranges.reference(terminates=problem.terminates)


def evaluation_from(
    problem: Problem,
    kernel: Kernel,
    classes: tuple[FunctionClass, ...],
    around: Around,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    engine: AnyEngine | None = None,
) -> Evaluation:
    """The sums of all classes, values counted from the reference."""
    experience, reference, chosen = problem.experience, around.reference, around.chosen
    anchor = None if around.q is None else q_columns(around.q, experience)
    counted = anchor if around.q is None or not reference else q_columns(around.q, experience, reference)
    systems = tuple(bellman_system(experience, each, counted, reference) for each in classes)
    if anchor is not None and chosen.estimate:  # then weights of a cut may look at its residuals
        systems = tuple(replace(each, rewards=each.target) for each in systems)
    columns = sum(each.columns().shape[1] for each in systems)
    by = None if engine is None else engine_for(engine, kernel, systems[0].points, columns, options)
    statistics = tuple(kernel_statistics(systems, kernel, options, progress, by))
    showing = showing_rows(problem) if anchor is not None and chosen.around_a_fit else 0
    return Evaluation(problem, kernel, classes, systems, statistics, anchor, chosen, options, engine=by, showing=showing)
