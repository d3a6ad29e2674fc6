"""How an interval, and a decision made with it, depends on what was assumed.

Intervals are nested: a larger norm bound, misfit or range of rewards, or a smaller delta, never narrows them. So a decision that
is supported at some norm bound is supported, at the same delta, for every Q of at most that norm, though the bound was found by
looking at the data; and the least delta at which it is supported is a p-value. (A norm bound relative to the least norm that is
consistent with the data is the exception: it shrinks when other assumptions weaken.) What makes them nested is that rates and
weights are fixed for all of them, with room for weaker assumptions: they are a little wider than those of `bound_value`. All but
the discount share one statistic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..classes.function_class import Features, as_classes
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions, part_of
from ..problem.assumptions import Assumptions, Range, RelativeNorm
from ..problem.problem import Problem
from ..problem.statements import Statement, Status, premise
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.plan import Plan
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..validation import number, positive, probability_level, vector, whole
from .evaluation import Evaluation, evaluate
from .findings import Curve, Flip, FlipOutcome, LeastNorm, Parameter, RowsNeeded
from .interval import Interval
from .members import UNDECLARED_NORM
from .rows_needed import extrapolated_rows, refuse_uncut
from .unfit import refuse_unfit

TINY = 1e-6
"""Norms and misfits below this share of the values count as none."""

DELTAS = (0.999, 1e-12)
"""The deltas between which a flip point is looked for."""

LARGEST_FACTOR = 1e4
"""The widest range of rewards at which a flip point is looked for, in units of the declared one."""


@checked
@dataclass(frozen=True, eq=False)
class Study:
    """One evaluation, to be bounded under many assumptions; made by `study`.

    Attributes
    ----------
    evaluation : Evaluation
    radius : str
    delta : float
    """

    evaluation: Evaluation
    radius: str
    delta: float

    def __repr__(self) -> str:
        return f"Study({self.evaluation!r}, radius={self.radius!r}, delta={self.delta:g})"

    @property
    def assumptions(self) -> Assumptions:
        """What was declared."""
        return self.evaluation.problem.assumptions

    @cached_property
    def baseline(self) -> Interval:
        """The interval at what was declared."""
        return self.evaluation.bound(self.radius, self.delta, plans=self.plans)

    @cached_property
    def plans(self) -> tuple[Plan | None, ...]:
        """Rates and weights, fixed for what was declared, with room for more: all intervals lie on one event, and are nested."""
        return self.evaluation.plans(self.radius, self.delta)

    @checked
    def at(self, over: str | Parameter, value: float, progress: Progress | None = None) -> Interval:
        """The interval with one thing changed, on the event of what was declared (another discount has its own)."""
        facts, delta, evaluation = self.assumptions, self.delta, self.evaluation
        match parameter_named(over):
            case Parameter.NORM_BOUND:
                facts = replace(facts, norm_bound=float(value))
            case Parameter.MISFIT:
                facts = replace(facts, misfit=float(value))
            case Parameter.MISFIT_NORM:
                facts = replace(facts, misfit_norm=float(value))
            case Parameter.DELTA:
                delta = float(value)
            case Parameter.REWARD_RANGE:
                facts = replace(facts, reward_range=_widened(facts.reward_range, positive(value, "values")))
            case Parameter.DISCOUNT:
                facts = replace(facts, discount=float(value))
                if facts.discount != self.assumptions.discount:
                    return evaluation.again(evaluation.problem.assuming(facts), progress).bound(self.radius, delta)
        return evaluation.assuming(facts).bound(self.radius, delta, plans=self.plans)

    @checked
    def curve(self, over: str | Parameter, values: Sequence[float] | None = None, progress: Progress | None = None) -> Curve:
        """The interval at many values of one parameter; None: about a dozen around what was declared."""
        parameter = parameter_named(over)
        chosen = np.unique(self._grid(parameter) if values is None else vector(values, "values")).tolist()
        if not chosen:
            raise InvalidInput("`values` must name at least one value. Got none.")
        intervals = []
        for k, value in enumerate(chosen):
            intervals.append(self.at(parameter, value, part_of(progress, k / len(chosen), (k + 1) / len(chosen))))
            if progress is not None:
                progress((k + 1) / len(chosen))
        return Curve(
            parameter=parameter,
            values=tuple(chosen),
            lower=tuple(interval.lower for interval in intervals),
            upper=tuple(interval.upper for interval in intervals),
            statuses=tuple(interval.status for interval in intervals),
            allowed=tuple(interval.ranges.value for interval in intervals),
            baseline=self._declared(parameter),
            radius=self.radius,
            guarantee=radius_rule(self.radius).guarantee,
            delta=self.delta,
            premises=(*self.baseline.premises, _varied(parameter)),
        )

    @checked
    def least_norm(self, tolerance: float = 1e-2) -> LeastNorm:
        """The largest norm bound that the data refute, within this share of one that they do not."""
        return self._least(Parameter.NORM_BOUND, "norm", tolerance)

    @checked
    def least_misfit_norm(self, tolerance: float = 1e-2) -> LeastNorm:
        """The largest `misfit_norm` that the data refute: what the features miss has a larger norm, with probability 1 - delta.

        A lower bound is all that data can give. Never choose a misfit norm because its interval is narrow.
        """
        if self.assumptions.misfit_norm is None:
            raise InvalidInput("`misfit_norm` must be declared, with a SemiParametric class: else features miss nothing.")
        return self._least(Parameter.MISFIT_NORM, "misfit-norm", tolerance)

    def _least(self, parameter: Parameter, without: str, tolerance: float) -> LeastNorm:
        """Bisection between refuted and consistent norms; without: the premise that names the norm."""
        positive(tolerance, "tolerance")
        axis = self._axis(parameter)

        def consistent(norm: float) -> bool:
            return self.at(parameter, norm).outcome is not Status.INCONSISTENT

        above: float | None = axis.start if consistent(axis.start) else axis.most if consistent(axis.most) else None
        if above is None:
            value = axis.most
        elif consistent(axis.least):
            value, above = 0.0, axis.least
        else:
            inside, outside = _bisect(lambda x: consistent(1 / x), 1 / above, 1 / axis.least, tolerance)
            value, above = 1 / outside, 1 / inside
        premises = tuple(each for each in self.baseline.premises if each.name != without)
        return LeastNorm(value, above, self.radius, radius_rule(self.radius).guarantee, self.delta, premises, parameter)

    @checked
    def flip_point(self, threshold: float, over: str | Parameter, tolerance: float = 1e-2) -> Flip:
        """The largest norm bound, misfit, misfit norm or factor of the rewards, or the least delta, that supports a decision.

        The decision is "value >= threshold".

        Bisection of logarithms, until the last value that supports it is within this share of one that does not. Intervals are
        nested up to the tolerance of their solver, so near that value either may hold; the reported one was computed.
        """
        wanted, parameter = number(threshold, "threshold"), parameter_named(over)
        positive(tolerance, "tolerance")
        if isinstance(self.assumptions.norm_bound, RelativeNorm) and parameter is not Parameter.NORM_BOUND:
            raise InvalidInput("`norm_bound` must be a number here: intervals with a RelativeNorm are not nested.")
        axis = self._axis(parameter)
        solved: dict[float, Interval] = {}

        def side(x: float) -> int:
            """-1: the class is refuted; 0: supported; 1: not supported. In this order as x grows."""
            if x not in solved:
                solved[x] = self.at(parameter, axis.value(x))
            return -1 if solved[x].outcome is Status.INCONSISTENT else int(solved[x].lower < wanted)

        low, high, outcome = _some_support(side, axis, tolerance)
        if low is not None and high is not None:
            low, high = _bisect(lambda x: side(x) == 0, low, high, tolerance)
        return Flip(
            parameter=parameter,
            threshold=wanted,
            outcome=outcome,
            value=None if low is None else axis.value(low),
            lower=None if low is None else solved[low].lower,
            beyond=None if high is None else axis.value(high),
            baseline=self._declared(parameter),
            baseline_supports=self.baseline.lower >= wanted,
            radius=self.radius,
            guarantee=radius_rule(self.radius).guarantee,
            delta=self.delta,
            premises=(self.baseline if low is None else solved[low]).premises,
        )

    @checked
    def rows_needed(self, width: float, parts: int = 4, progress: Progress | None = None) -> RowsNeeded:
        """The rows that an interval of this width takes, from n, n/2, n/4, ... (`parts` of them, by whole episodes)."""
        positive(width, "width")
        whole(parts, "parts", least=2)
        # Other rows need no event in common: each interval is that of `bound_value`, with rates and weights of its own.
        refuse_uncut(self.evaluation)
        return extrapolated_rows(self.evaluation, self.evaluation.bound(self.radius, self.delta), float(width), parts, progress)

    def _norms(self) -> tuple[float, float]:
        """From as good as a constant Q to as good as no bound."""
        largest = max(map(abs, self.baseline.ranges.value)) or 1.0
        return TINY * largest, UNDECLARED_NORM * largest

    def _declared(self, parameter: Parameter) -> float | None:
        facts = self.assumptions
        match parameter:
            case Parameter.NORM_BOUND:
                bounds = (part.norm_bound for part in self.baseline.certificates if part.norm_bound is not None)
                return None if facts.norm_bound is None else max(bounds)
            case Parameter.MISFIT:
                return facts.misfit
            case Parameter.MISFIT_NORM:
                return facts.misfit_norm
            case Parameter.DELTA:
                return self.delta
            case Parameter.DISCOUNT:
                return facts.discount
            case Parameter.REWARD_RANGE:
                return 1.0

    def _axis(self, parameter: Parameter) -> _Axis:
        (least, most), start = self._norms(), self._declared(parameter)
        match parameter:
            case Parameter.MISFIT:
                span = self.baseline.ranges.span
                least, most, start = TINY * span, span, TINY * span + self.assumptions.misfit
            case Parameter.DELTA:
                least, most, start = 1 / DELTAS[0], 1 / DELTAS[1], 1 / self.delta
            case Parameter.REWARD_RANGE:
                least, most = 1.0, LARGEST_FACTOR
            case Parameter.DISCOUNT:
                raise InvalidInput("`over` must not be discount here: another discount is another question.")
        start = most if start is None else start
        return _Axis(parameter, min(least, start), start, max(most, start))

    def _grid(self, parameter: Parameter) -> list[float]:
        declared, facts, span = self._declared(parameter), self.assumptions, self.baseline.ranges.span
        match parameter:
            case Parameter.NORM_BOUND:
                center = declared or 4 * self.least_norm().value or span or 1.0
                return [center * 2 ** (k / 2) for k in range(-6, 7)]
            case Parameter.MISFIT_NORM:
                center = declared or span or 1.0
                return [center * 2 ** (k / 2) for k in range(-6, 7)]
            case Parameter.MISFIT:
                return [0.0, facts.misfit, *(span * 10 ** (k / 3 - 4) for k in range(10))]
            case Parameter.DELTA:
                return [self.delta, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-6]
            case Parameter.REWARD_RANGE:
                return [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0]
            case Parameter.DISCOUNT:  # by the effective horizon 1 / (1 - discount)
                left = 1 - facts.discount
                if left == 0:
                    return [0.8, 0.9, 0.95, 0.98, 0.99, 1.0]
                return [facts.discount, *(round(1 - left * f, 9) for f in (0.5, 0.7, 1.4, 2.0, 2.8, 4.0) if left * f <= 1)]


@checked
def study(
    problem: Problem,
    *,
    features: Features | Sequence[Features],
    kernel: Kernel,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    chosen: Choice = BEFORE_THE_DATA,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Study:
    """The statistic of a problem, made once, for curves, flip points, the least norm and the number of rows.

    Parameters
    ----------
    problem : Problem
    features, kernel, radius, delta, chosen, options, progress
        As in `bound_value`.

    Returns
    -------
    Study

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> found = aope.study(problem, features=mdp.features(), kernel=aope.Gaussian(1.0), radius="azuma")
    >>> curve = found.curve("delta", [0.01, 0.1, 0.5])
    >>> curve.lower[0] <= curve.lower[1] <= curve.lower[2]
    True
    """
    probability_level(delta)
    refuse_unfit([radius_rule(radius)], as_classes(features), kernel, problem)
    evaluation = evaluate(problem, features=features, kernel=kernel, chosen=chosen, options=options, progress=progress)
    return study_of(evaluation, radius, delta)


def study_of(evaluation: Evaluation, radius: str, delta: float) -> Study:
    """The study of an evaluation that is there already."""
    return Study(evaluation, radius_rule(radius).name, probability_level(delta))


def parameter_named(name: str | Parameter) -> Parameter:
    """The parameter of this name; a hyphen serves as well as an underscore."""
    for parameter in Parameter:
        if name is parameter or (isinstance(name, str) and name.replace("-", "_") == parameter.value):
            return parameter
    raise InvalidInput(f"`over` must be one of {', '.join(parameter.value for parameter in Parameter)}. Got {name!r}.")


def _varied(parameter: Parameter) -> Statement:
    """What the intervals of a curve do not have in common."""
    name = parameter.value.replace("_", " ")
    text = f"Each interval of the curve takes its own {name} in the place of the declared one, and is valid on its own."
    return premise("varied", text, ("parameter", parameter.value))


@dataclass(frozen=True)
class _Axis:
    """A positive x along which intervals grow: norm bound, factor, 1 / delta, or misfit, shifted so that 0 has a logarithm."""

    parameter: Parameter
    least: float
    start: float
    most: float

    def value(self, x: float) -> float:
        if self.parameter is Parameter.DELTA:
            return 1 / x
        return x - self.least if self.parameter is Parameter.MISFIT else x


def _some_support(side: Callable[[float], int], axis: _Axis, tolerance: float) -> tuple[float | None, float | None, FlipOutcome]:
    """(an x with side 0, an x beyond it with side 1): from the start, else by bisection between sides -1 and 1."""
    first, last = side(axis.start), side(axis.most)
    if last < 0:
        return None, None, FlipOutcome.REFUTED
    if last == 0:
        return axis.most, None, FlipOutcome.ALWAYS
    if first == 0:
        return axis.start, axis.most, FlipOutcome.FLIPS
    low, high = (axis.least, axis.start) if first > 0 else (axis.start, axis.most)
    if side(low) > 0:
        return None, None, FlipOutcome.NEVER
    while side(low) < 0:
        if high <= low * (1 + tolerance):
            return None, None, FlipOutcome.NEVER
        middle = math.sqrt(low * high)
        if side(middle) > 0:
            high = middle
        else:
            low = middle
    return low, high, FlipOutcome.FLIPS


def _bisect(holds: Callable[[float], bool], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """(low, high) within this share of each other, `holds` found true at low and false at high; looks near low first."""
    step = 2.0
    while high > low * (1 + tolerance):
        middle = min(math.sqrt(low * high), low * step)
        if holds(middle):
            low, step = middle, step**2
        else:
            high, step = middle, math.inf
    return low, high


def _widened(pair: Range, factor: float) -> Range:
    """The range about the same middle, so many times as long."""
    middle, half = 0.5 * (pair[0] + pair[1]), 0.5 * (pair[1] - pair[0])
    return pair if factor == 1 else (middle - factor * half, middle + factor * half)
