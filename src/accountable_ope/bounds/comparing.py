"""Several policies on one log, all intervals at once, and what is known of the difference of any two.

Of K policies and the logged one every interval has the share delta / (K + 1), so that all of them hold at once with probability
1 - delta (Bonferroni), and with them whatever is said of differences: no further delta is spent.

Each policy has a Q of its own, and its evidence speaks of that Q alone. Over such sets the largest difference of two values is
the largest of the one less the least of the other: a program for both at once gives no more. (Evidence on Q_a - Q_b, in whose
residuals the rewards cancel, would tie the two; it is not used.) At discount 0 a program does give more, since then Q is the mean
reward, the same for every policy: c_a'theta - c_b'theta is bounded over one set, and what both policies share cancels.

Where no class is named, the same earliest rows choose one for every policy, since each has a Q of its own, a fit to it and an
overlap with the log. All choices are fixed before the later rows, whose intervals have their shares of delta as before: that
there are several costs nothing. At discount 0, where Q is one function, one class serves all policies: that of the largest ball.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..classes.function_class import Features, as_classes
from ..defaults.choosing import Stages, choose_recipe, unseen
from ..defaults.recipe import Recipe
from ..errors import InvalidInput
from ..io.display import confidence, ends_text
from ..io.shown import Drawn, Shown
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions, part_of
from ..problem.policy import Policy
from ..problem.problem import Problem
from ..problem.statements import Statement, Status, premise, remark
from ..radii.accounting import split_delta
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..validation import probability_level
from .companions import crossed_of
from .cross_fitted import CrossFittedInterval
from .decision import Judgment, Ruling
from .ends import ends_of, single_threaded
from .evaluation import Evaluation, evaluate
from .first_answer import first_answers, names_a_class, only_statistic
from .interval import Interval
from .logging_policy import LoggedValue, logged_value
from .unfit import refuse_unfit
from .verdict import bet_text, number_near, outward

LOGGED = "logged policy"
KERNEL = "kernel"
"""The name of the evidence that does not depend on the policy, at discount 0."""


@checked
@dataclass(frozen=True, eq=False)
class NamedPolicy:
    """A policy and what it is called.

    Parameters
    ----------
    name : str
        Shown in tables; not empty.
    policy : Policy

    Raises
    ------
    InvalidInput
        Where the name is empty, or that of the logged policy.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> aope.NamedPolicy("coin", aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)).name
    'coin'
    """

    name: str
    policy: Policy

    def __post_init__(self) -> None:
        if not self.name.strip() or self.name == LOGGED:
            raise InvalidInput(f"`name` must be a name of its own, not empty and not {LOGGED!r}. Got {self.name!r}.")

    def __repr__(self) -> str:
        return f"NamedPolicy({self.name!r}, {type(self.policy).__name__})"


@checked
@dataclass(frozen=True, eq=False)
class Contender:
    """One policy of a comparison: the target of an interval, or the logged one.

    Attributes
    ----------
    name : str
    found : Interval or LoggedValue
        At its share of delta.
    """

    name: str
    found: Interval | LoggedValue

    @property
    def lower(self) -> float:
        return self.found.lower

    @property
    def upper(self) -> float:
        return self.found.upper

    @property
    def status(self) -> Status:
        return self.found.status

    @cached_property
    def crossed(self) -> CrossFittedInterval | None:
        """The large-sample interval at the same share of delta, made when asked for by one more fit; None where there is none."""
        if isinstance(self.found, LoggedValue) or self.found.rebound is None:
            return None
        try:
            return crossed_of(self.found.rebound.evaluation, self.found.delta)
        except InvalidInput:
            return None

    @property
    def bet(self) -> Statement | None:
        """What a practitioner would bet on, for many rows; nothing of it is proved. None where there is nothing."""
        if isinstance(self.found, LoggedValue):
            low, high = self.found.large_sample
            if not math.isfinite(high - low):
                return None
            text = f"{number_near(self.found.estimate, high - low)} ({' to '.join(outward(low, high))})"
            return remark("bet", f"{self.name}: {text}", ("policy", self.name), ("estimate", self.found.estimate))
        if self.crossed is None:
            return None
        text = f"{self.name}: {bet_text(self.crossed)}"
        return remark("bet", text, ("policy", self.name), ("estimate", self.crossed.estimate))


@checked
@dataclass(frozen=True)
class Difference:
    """lower <= value of the first less value of the second <= upper, at the same time as all intervals.

    Attributes
    ----------
    first, second : str
        Which policies.
    lower, upper : float
        NaN where one of them has no interval.
    paired : bool
        Whether one program bounded the difference itself; else it is that of two intervals.
    judgment : Judgment
        Of the claim that the first is better.
    """

    first: str
    second: str
    lower: float
    upper: float
    paired: bool
    judgment: Judgment

    def __repr__(self) -> str:
        return f"Difference({self.first} - {self.second}, {ends_text(self.lower, self.upper)}, {self.judgment.name})"


@checked
@dataclass(frozen=True, eq=False)
class Comparison(Shown, Drawn):
    """Several policies on one log, all statements at once with probability 1 - delta; made by `compare`.

    Attributes
    ----------
    contenders : tuple of Contender
        In the order given, the logged policy last where its value can be known.
    differences : tuple of Difference
        Every pair, each once.
    delta : float
        Of all statements together.
    share : float
        Of each interval.
    missing : tuple of Statement
        Why the logged policy is not among them, if so.
    """

    contenders: tuple[Contender, ...]
    differences: tuple[Difference, ...]
    delta: float
    share: float
    missing: tuple[Statement, ...] = ()

    def __repr__(self) -> str:
        return f"Comparison({', '.join(each.name for each in self.contenders)}, {confidence(self.delta)} together)"

    def difference(self, first: str, second: str) -> Difference:
        """That of two policies by name, in either order."""
        for each in self.differences:
            if (each.first, each.second) == (first, second):
                return each
            if (each.first, each.second) == (second, first):
                flipped = {Judgment.SUPPORTED: Judgment.REFUTED, Judgment.REFUTED: Judgment.SUPPORTED}
                judgment = flipped.get(each.judgment, each.judgment)
                return Difference(first, second, -each.upper, -each.lower, each.paired, judgment)
        raise InvalidInput(f"`first` and `second` must be two of {[each.name for each in self.contenders]}.")

    def decide(self, best: str) -> Ruling:
        """Whether this policy is better than each of the others: SUPPORTED, REFUTED, UNDECIDED, or why nothing is decided.

        Parameters
        ----------
        best : str
            The name of the policy of the claim.

        Returns
        -------
        Ruling
        """
        from .best import better_than_each

        return better_than_each(self, best)

    @property
    def unbeaten(self) -> tuple[str, ...]:
        """Policies that no other is proved to be better than."""
        beaten = {each.second for each in self.differences if each.judgment is Judgment.SUPPORTED}
        beaten |= {each.first for each in self.differences if each.judgment is Judgment.REFUTED}
        return tuple(each.name for each in self.contenders if each.name not in beaten)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """What the earliest rows chose for every policy, in the order given; empty where a class was named."""
        found = (each.found.recipe for each in self.contenders if isinstance(each.found, Interval))
        return tuple(each for each in found if each is not None)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What holds at once, what was chosen, and how differences were found."""
        count = len(self.contenders)
        together = premise(
            "together",
            f"All {count} intervals hold at once with {confidence(self.delta)} confidence, each with "
            f"{100 * (1 - self.share):.4g}% (delta / {count} each), and so do their differences.",
            ("delta", self.delta),
            ("share", self.share),
        )
        paired = sum(each.paired for each in self.differences)
        text = (
            f"{paired} of {len(self.differences)} differences are paired: at discount 0 Q is the same for all policies, and one "
            "program bounds the difference itself."
            if paired
            else "Differences are those of intervals: each policy has a Q of its own, and no program is made for two at once."
        )
        return (together, *self._chosen, remark("differences", text, ("paired", paired)), *self.missing)

    @property
    def _chosen(self) -> tuple[Statement, ...]:
        """That classes were chosen, on rows before those of the bounds."""
        if not self.recipes:
            return ()
        rows = self.recipes[0].earlier_rows
        one = len({id(each.features) for each in self.recipes}) == 1 < len(self.recipes)
        what = "One class for all policies was chosen" if one else "For every policy a class of its own was chosen"
        text = f"{what} on the first {rows:,} rows, which the bounds do not use; several choices on them cost no confidence."
        return (remark("chosen", text, ("rows", rows)),)

    @property
    def bets(self) -> tuple[Statement, ...]:
        """What a practitioner would bet on, policy by policy, for many rows: one more fit for each, made when first asked for."""
        return tuple(each.bet for each in self.contenders if each.bet is not None)

    @property
    def verdict(self) -> str:
        """Which policy is proved to be the best, in one sentence."""
        sure = f"With {confidence(self.delta)} confidence"
        best = self.unbeaten
        unclear = {Judgment.DOUBTED, Judgment.INCONSISTENT}
        if any(each.judgment in unclear for each in self.differences):
            doubted = [each.name for each in self.contenders if each.status in (Status.DOUBTED, Status.INCONSISTENT)]
            if not doubted and any(
                isinstance(each.found, LoggedValue) and _starts_elsewhere(each.found) for each in self.contenders
            ):
                return f"The {LOGGED} is known from other starts: no ranking with it should rest on that."
            return f"The class is doubted or refuted for {', '.join(doubted) or 'a policy'}: no ranking should rest on it."
        if len(best) == 1:
            return f"{sure} {best[0]} is the best of these {len(self.contenders)} policies."
        return f"{sure} one of {', '.join(best)} is the best; the data do not say which."


@checked
def compare(
    problem: Problem,
    policies: Sequence[NamedPolicy],
    *,
    features: Features | Sequence[Features] | None = None,
    kernel: Kernel | None = None,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    logged: bool = True,
    chosen: Choice = BEFORE_THE_DATA,
    within: float | None = None,
    recipes: Sequence[Recipe] | None = None,
    options: TileOptions | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Bound the values of several policies on one log, at once, and the difference of every two.

    Parameters
    ----------
    problem : Problem
        Data, start states and assumptions. Its own policy takes part only where `policies` name it. A norm bound, a range of
        values and a misfit are declared of the Q of every policy.
    policies : sequence of NamedPolicy
        At least one, with different names.
    features, kernel, radius
        As in `bound_value`, the same for all. Without features and kernel the earliest fifth of the rows chooses both, for every
        policy by itself (at discount 0 for all at once), and `Comparison.recipes` says what was chosen.
    delta : float
        Failure probability of all statements together.
    logged : bool
        Whether the policy that logged the data takes part, where its value can be known.
    chosen : Choice, optional
        As in `bound_value`.
    within : float, optional
        Without features: as in `bound_value`.
    recipes : sequence of Recipe, optional
        Without features: what was chosen on the first of these rows before, one for each policy.
    options, progress
        As in `bound_value`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import bandit
    >>> mdp = bandit(3, 2, seed=0)
    >>> log = mdp.sample_iid(2000, np.random.default_rng(0))
    >>> arms = [aope.NamedPolicy(f"arm {arm}", mdp.policy(np.eye(2)[[arm] * 3])) for arm in (0, 1)]
    >>> facts = aope.Assumptions(discount=0.0, reward_range=(0, 1))
    >>> problem = aope.Problem(log, mdp.starts(), arms[0].policy, facts)
    >>> table = aope.TabularFeatures.grid(np.arange(3.0), arms[0].policy.action_vectors)
    >>> found = aope.compare(problem, arms, features=table, kernel=aope.Tabular(), logged=False)
    >>> found.differences[0].paired, found.share
    (True, 0.05)
    """
    level, names = probability_level(delta), [each.name for each in policies]
    if not policies:
        raise InvalidInput("`policies` must name at least one policy. Got none.")
    if len(set(names)) < len(names):
        raise InvalidInput(f"`policies` must have different names. Got {names}.")
    asked = [replace(problem, policy=each.policy) for each in policies]
    named = names_a_class(features, kernel, chosen, {"within": within, "recipes": recipes})
    for each in asked:
        if named:
            assert features is not None and kernel is not None
            refuse_unfit([radius_rule(radius)], as_classes(features), kernel, each)
    if recipes is not None and len(recipes) != len(asked):
        raise InvalidInput(f"`recipes` must have one choice for each of the {len(asked)} policies. Got {len(recipes)}.")
    share = level / (len(policies) + 1) if logged else level / len(policies)
    today: LoggedValue | None = None
    missing: tuple[Statement, ...] = ()
    if logged:
        try:
            today = logged_value(problem, delta=share)
        except InvalidInput as error:
            why = str(error).rstrip(".")
            missing = (remark("no-logged-value", f"The {LOGGED} is left out: {why}.", ("reason", why)),)
            share = level / len(policies)
    if features is None or kernel is None:
        made = _choices(asked, within, recipes)
        intervals = [
            first_answers(each, recipe, (radius,), share, options=options, stages=stages)[0]
            for each, recipe, stages in zip(asked, made, _stages(progress, len(asked)), strict=True)
        ]
        evaluations = [_evaluation_of(each) for each in intervals]
    else:
        evaluations = []
        for number, each in enumerate(asked):
            done = part_of(progress, number / len(asked), (number + 1) / len(asked))
            evaluations.append(evaluate(each, features=features, kernel=kernel, chosen=chosen, options=options, progress=done))
        intervals = [each.bound(radius, share) for each in evaluations]
    contenders = [Contender(name, found) for name, found in zip(names, intervals, strict=True)]
    if today is not None:
        contenders.append(Contender(LOGGED, today))
    differences = []
    for i, one in enumerate(contenders):
        for k, other in enumerate(contenders[i + 1 :], start=i + 1):
            ends = None
            if k < len(evaluations):
                ends = _paired(evaluations[i], evaluations[k], intervals[i], intervals[k], radius)
            differences.append(_difference(one, other, ends))
    return Comparison(tuple(contenders), tuple(differences), level, share, missing)


def _choices(asked: Sequence[Problem], within: float | None, recipes: Sequence[Recipe] | None) -> Sequence[Recipe]:
    """What the earliest rows choose for every policy; at discount 0 one class for all, asserted as near as for the worst."""
    if recipes is not None:
        if within is not None:
            raise InvalidInput("`within` was chosen with the `recipes`: leave it out.")
        made = list(recipes)
    else:
        made = [choose_recipe(each, within=within) for each in asked]
    if asked[0].assumptions.discount != 0:
        return made
    widest = max(made, key=lambda each: each.norm_bound or 0.0)
    return [replace(widest, made_for=each.made_for) for each in made]


def _stages(progress: Progress | None, count: int) -> list[Stages]:
    """The passes over the pairs of rows, one after the other."""
    if progress is None:
        return [unseen] * count
    parts = (part_of(progress, number / count, (number + 1) / count) for number in range(count))
    return [only_statistic(each) if each is not None else unseen for each in parts]


def _evaluation_of(interval: Interval) -> Evaluation:
    assert interval.rebound is not None
    return interval.rebound.evaluation


def _difference(one: Contender, other: Contender, paired: tuple[float, float] | None) -> Difference:
    """By intervals, and by one program where there is one: on the same event both hold."""
    lower, upper = one.lower - other.upper, one.upper - other.lower
    if paired is not None:
        lower, upper = max(lower, paired[0]), min(upper, paired[1])
    judgment = Judgment.UNDECIDED
    statuses = {one.status, other.status}
    elsewhere = any(isinstance(each.found, LoggedValue) and _starts_elsewhere(each.found) for each in (one, other))
    if Status.INCONSISTENT in statuses or math.isnan(lower) or lower > upper:
        judgment = Judgment.INCONSISTENT
    elif Status.DOUBTED in statuses or elsewhere:
        judgment = Judgment.DOUBTED
    elif lower > 0:
        judgment = Judgment.SUPPORTED
    elif upper <= 0:
        judgment = Judgment.REFUTED
    return Difference(one.name, other.name, lower, upper, paired is not None, judgment)


def _starts_elsewhere(logged: LoggedValue) -> bool:
    return any(each.name == "starts" for each in logged.doubts)


def _same_classes(one: Evaluation, other: Evaluation) -> bool:
    """Whether coefficients mean the same, as of a class that was chosen for both; one may have been doubted, the other not."""
    if [repr(each) for each in one.classes] != [repr(each) for each in other.classes]:
        return False
    return all(np.array_equal(a.residuals, b.residuals) for a, b in zip(one.systems, other.systems, strict=True))


def _paired(one: Evaluation, other: Evaluation, first: Interval, second: Interval, radius: str) -> tuple[float, float] | None:
    """max and min of (c_a - c_b)'theta over the sets of both policies; None where Q differs from policy to policy.

    The sets are those of the intervals, on the same event. Errors of sampled start states and of a misfit count twice.
    """
    problem = one.problem
    if problem.assumptions.discount != 0 or not _same_classes(one, other):
        return None
    if not (first.outcome is not Status.INCONSISTENT is not second.outcome):
        return None
    # Ranges of single rows may scale rows by what the policy does there: then the two sets are of different statistics.
    if problem.knowledge.given or any(each.has_remainder for each in one.classes):
        return None
    rule, split = radius_rule(radius), split_delta(first.delta, start_is_exact=problem.start_is_exact)
    lower, upper = [], []
    with single_threaded():
        for index in range(len(one.classes)):
            member = one.member_for(rule, index)
            grounds = rule.evidence(member, split.kernel, len(problem.data))
            theirs = rule.evidence(other.member_for(rule, index), split.kernel, len(problem.data)).evidence
            # The kernel's martingale is the same for both; each has a cut of its own, on the event of all intervals.
            grounds = replace(grounds, evidence=(*grounds.evidence, *(each for each in theirs if each.name != KERNEL)))
            between = replace(member.system, objective=one.systems[index].objective - other.systems[index].objective, offset=0.0)
            part = ends_of(replace(member, system=between), rule, grounds, split.kernel).part
            if part.consistent:
                lower.append(-part.lower.bound - part.missed - member.misfit)
                upper.append(part.upper.bound + part.missed + member.misfit)
    if not upper:
        return None
    error = first.start_error + second.start_error
    return min(lower) - error, max(upper) + error
