"""Several policies on one log, all intervals at once, and what is known of the difference of any two.

Of K policies and the logged one every interval has the share delta / (K + 1), so that all of them hold at once with probability
1 - delta (Bonferroni), and with them whatever is said of differences: no further delta is spent.

Each policy has a Q of its own, and its evidence speaks of that Q alone. Over such sets the largest difference of two values is
the largest of the one less the least of the other: a program for both at once gives no more. (Evidence on Q_a - Q_b, in whose
residuals the rewards cancel, would tie the two; it is not used.) At discount 0 a program does give more, since then Q is the mean
reward, the same for every policy: c_a'theta - c_b'theta is bounded over one set, and what both policies share cancels.

In a log of single steps with recorded probabilities, and where no class is named, intervals are by these, as in `bound_value`.
Then differences are those of the intervals. A bet on w_a - w_b would need a lower limit of it that is known before the action
is, hence what the logger could have done instead, which no log says; and the delta of the program's sets is spent elsewhere.

Where no class is named, the same earliest rows choose one for every policy, since each has a Q of its own, a fit to it and an
overlap with the log. All choices are fixed before the later rows, whose intervals have their shares of delta as before: that
there are several costs nothing. At discount 0, where Q is one function, one class serves all policies: that of the largest ball.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arguments import checked
from ..baselines.interval import BaselineInterval
from ..classes.function_class import Features, as_classes
from ..defaults.choosing import Stages, choose_recipe, unseen
from ..defaults.recipe import Recipe
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..kernels.products import Progress, TileOptions, part_of
from ..problem.problem import Problem
from ..problem.statements import Statement, Status, remark
from ..radii.accounting import split_delta
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..validation import probability_level
from .comparison import LOGGED, Comparison, Contender, Difference, NamedPolicy, starts_elsewhere
from .decision import Judgment, of_difference
from .ends import ends_of, single_threaded
from .evaluation import Evaluation, evaluate
from .first_answer import first_answers, names_a_class, only_statistic
from .interval import Interval
from .logging_policy import LoggedValue, logged_value
from .unfit import refuse_unfit
from .weighed import answer_of, weighed_value

KERNEL = "kernel"
"""The name of the evidence that does not depend on the policy, at discount 0."""


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
    stages: Stages | None = None,
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
    stages : callable, optional
        As in `bound_value`; the name of a stage begins with that of the policy.

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
    named = names_a_class(features, kernel, chosen, {"within": within, "recipes": recipes, "stages": stages})
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
        shown = _stages(progress, len(asked)) if stages is None else [_of_policy(stages, name) for name in names]
        made = _choices(asked, within, recipes, shown)
        intervals = [
            first_answers(each, recipe, (radius,), share, options=options, stages=of_one)[0]
            for each, recipe, of_one in zip(asked, made, shown, strict=True)
        ]
        evaluations = [_evaluation_of(each) for each in intervals]
    else:
        evaluations = []
        for number, each in enumerate(asked):
            done = part_of(progress, number / len(asked), (number + 1) / len(asked))
            evaluations.append(evaluate(each, features=features, kernel=kernel, chosen=chosen, options=options, progress=done))
        intervals = [each.bound(radius, share) for each in evaluations]
    contenders = [_contender(name, found, level) for name, found in zip(names, intervals, strict=True)]
    if today is not None:
        at_whole = logged_value(problem, delta=level)
        contenders.append(Contender(LOGGED, at_whole if at_whole.status is Status.INCONSISTENT else today))
    differences = []
    for i, one in enumerate(contenders):
        for k, other in enumerate(contenders[i + 1 :], start=i + 1):
            ends = None
            if k < len(evaluations) and not (one.by_probabilities or other.by_probabilities):
                ends = _paired(evaluations[i], evaluations[k], intervals[i], intervals[k], radius)
            differences.append(_difference(one, other, ends))
    return Comparison(tuple(contenders), tuple(differences), level, share, missing)


def _contender(name: str, found: Interval, delta: float) -> Contender:
    """What says of itself at the whole delta that nothing follows from it decides nothing at a share of it.

    Ends that cross at delta, or nearly so, may lie well apart at less.
    """
    answer = answer_of(found)
    if found.rebound is None or not isinstance(answer, BaselineInterval):
        return Contender(name, found)
    at_whole = weighed_value(found.rebound.evaluation.whole, delta)
    assert at_whole is not None  # one step decides, as at the share
    if at_whole.status is Status.INCONSISTENT:
        return Contender(name, found, at_whole)
    doubts = answer.doubts or at_whole.doubts
    return Contender(name, found, replace(answer, doubts=doubts)) if doubts else Contender(name, found)


def _choices(
    asked: Sequence[Problem], within: float | None, recipes: Sequence[Recipe] | None, stages: Sequence[Stages]
) -> Sequence[Recipe]:
    """What the earliest rows choose for every policy; at discount 0 one class for all, asserted as near as for the worst."""
    if recipes is not None:
        if within is not None:
            raise InvalidInput("`within` was chosen with the `recipes`: leave it out.")
        made = list(recipes)
    else:
        made = [choose_recipe(each, within=within, stages=shown) for each, shown in zip(asked, stages, strict=True)]
    if asked[0].assumptions.discount != 0:
        return made
    widest = max(made, key=lambda each: each.norm_bound or 0.0)
    return [replace(widest, made_for=each.made_for) for each in made]


def _of_policy(stages: Stages, name: str) -> Stages:
    """Stages that say of which policy they are."""
    return lambda stage: stages(f"{name}: {stage}")


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
    statuses = {one.status, other.status}
    elsewhere = any(isinstance(each.found, LoggedValue) and starts_elsewhere(each.found) for each in (one, other))
    if Status.INCONSISTENT in statuses:  # ends that have crossed have no difference
        lower = upper = math.nan
    if math.isnan(lower) or lower > upper:
        judgment = Judgment.INCONSISTENT
    elif Status.DOUBTED in statuses or elsewhere:
        judgment = Judgment.DOUBTED
    else:
        judgment = of_difference(lower, upper)
    return Difference(one.name, other.name, lower, upper, paired is not None, judgment)


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
