"""An interval for the return of a policy by importance sampling, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..io.display import interval_html, one_line
from ..io.shown import Drawn, Shown
from ..problem.assumptions import Assumptions, value_ranges
from ..problem.contradictions import check_data, may_end
from ..problem.policy import Policy
from ..problem.statements import Guarantee, Statement, Status, advice, premise, range_text
from ..problem.transitions import Transitions
from ..validation import probability_level
from .bounds import betting_interval, corrected_interval, hcope_interval
from .doubly_robust import DoublyRobust, corrected_returns
from .episodes import Range, return_range, truncation_gap
from .importance_sampling import episode_returns
from .narrow import crossed_doubt, interval_doubts

METHODS = {"betting": betting_interval, "hcope": hcope_interval}
"""Intervals by name, for the normalized return."""

ESTIMATORS = ("per-decision", "trajectory", "doubly-robust")
"""Importance weights up to each step, of the whole episode, or of what a fitted Q has not foretold."""

ADVICE = {
    Status.INCONSISTENT: "See how the probabilities were recorded, whether rewards are as declared, and whether rows stand in "
    "the log twice; if all that is right, this is one of the logs in which ends cross, and more rows will tell.",
    Status.DOUBTED: "See how the probabilities were recorded, or log on: the interval is narrower than its rows allow, and "
    "should decide nothing.",
}
"""What to do about an interval that decides nothing."""

ELSEWHERE = (
    "All of it lies outside of the values that were declared: see whether the range is right, and whether the method is told a "
    "class, or a model, that fits."
)

COPIED = "Take copies out of the log: files that were kept twice, a query that was run again."

_EPISODES = {
    "betting": "Given the episodes before it, each is one of the same process: it starts in a draw of the start distribution and "
    "follows the behavior policy.",
    "hcope": "Episodes are independent and of the same process; each starts in a draw of the start distribution and follows the "
    "behavior policy.",
}


@checked
@dataclass(frozen=True)
class BaselineInterval(Shown, Drawn):
    """With probability at least 1 - delta, lower <= estimand <= upper, if what was assumed is true; in the limit, where
    `guarantee` says so.

    lower > upper has a probability of at most delta if what was assumed is true: most often the behavior probabilities are not
    the true ones. Nothing follows from such ends.

    Attributes
    ----------
    lower, upper : float
    method : str
    delta : float
    episodes : int
        How many were used, 0 where a method of rows does not know them.
    estimand : str
        What lies in the interval, in words.
    count : int
        Transitions in the data.
    premises : tuple of Statement
        What the interval rests on.
    doubts : tuple of Statement
        What speaks against it: ends that have crossed (`crossed`), or nearly so (`narrow`).
    """

    lower: float
    upper: float
    method: str
    delta: float
    episodes: int
    estimand: str
    count: int
    return_range: Range
    premises: tuple[Statement, ...]
    guarantee: Guarantee = Guarantee.FINITE_SAMPLE
    doubts: tuple[Statement, ...] = ()

    def __repr__(self) -> str:
        return one_line("BaselineInterval", self.lower, self.upper, self.delta, self.method, self.status)

    def _repr_html_(self) -> str:
        lead = tuple(each.text for each in self.doubts if not self.consistent)
        return interval_html(self, self.estimand, self.method, self.doubts[len(lead) :], lead, self.advice.text)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def status(self) -> Status:
        """INCONSISTENT where the ends have crossed, VACUOUS where they are those of the possible returns, DOUBTED where `doubts`
        speak against them.
        """
        if self.lower > self.upper:
            return Status.INCONSISTENT
        if (self.lower, self.upper) == self.return_range:
            return Status.VACUOUS
        return Status.DOUBTED if self.doubts else Status.OK

    @property
    def advice(self) -> Statement:
        """What to do next."""
        if any(each.name == "copies" for each in self.doubts):
            return advice("copies", COPIED)
        if self.status is Status.INCONSISTENT and not any(each.name == "behavior" for each in self.premises):
            return advice("inconsistent", ELSEWHERE)
        return advice(self.status.name.lower(), ADVICE.get(self.status, self.status.value))

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def consistent(self) -> bool:
        """Whether the ends have not crossed."""
        return self.lower <= self.upper


@checked
def importance_sampling_interval(
    data: Transitions,
    policy: Policy,
    *,
    behavior: ArrayLike | Policy | None = None,
    discount: float | None = None,
    reward_range: Range | None = None,
    horizon: int,
    assumptions: Assumptions | None = None,
    method: str = "betting",
    estimator: str | DoublyRobust = "per-decision",
    delta: float = 0.1,
) -> BaselineInterval:
    """Bounds for the return of the target policy over `horizon` steps, from whole episodes of a known behavior policy.

    No class of Q functions and no kernel is assumed; the behavior probabilities are. Weights multiply along an episode, so
    their variance can grow exponentially with the horizon. The doubly robust estimator weighs only what a Q fitted on earlier
    episodes has not foretold, and clips weights; the better the fit, the narrower, but a bad one costs width and not validity.

    Parameters
    ----------
    data : Transitions
        Whole episodes, at least two.
    policy : Policy
        The target policy, over a finite action set.
    behavior, discount, reward_range, horizon
        As in `episode_returns`; discount and reward range are needed unless `assumptions` have them.
    assumptions : Assumptions, optional
        In the place of discount and reward range, to honor a declared `terminal_reward` and `value_range` too.
    method : str
        "betting" (the tighter one) or "hcope" (Thomas et al. 2015, empirical Bernstein with a threshold that the first twentieth
        chooses).
    estimator : str or DoublyRobust
        "per-decision"; "trajectory": one weight for the whole return, as the paper has it; or "doubly-robust", a `DoublyRobust()`
        with its defaults.
    delta : float
        In (0, 1).

    Returns
    -------
    BaselineInterval

    Raises
    ------
    InvalidInput
        Where data, policies and what is declared contradict each other or do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import importance_sampling_interval
    >>> from accountable_ope.environments import chain
    >>> mdp, uniform = chain(3, discount=0.9), np.full((3, 2), 0.5)
    >>> data = mdp.sample_trajectories(uniform, episodes=200, length=4, rng=np.random.default_rng(0))
    >>> target, behavior = mdp.policy([[0.4, 0.6]] * 3), mdp.policy(uniform)
    >>> interval = importance_sampling_interval(
    ...     data, target, behavior=behavior, discount=0.9, reward_range=(0, 1), horizon=4
    ... )
    >>> 0 <= interval.lower < interval.upper <= 3.44
    True
    """
    level = probability_level(delta)
    if method not in METHODS:
        raise InvalidInput(f"`method` must be one of {', '.join(METHODS)}. Got {method!r}.")
    if not isinstance(estimator, DoublyRobust) and estimator not in ESTIMATORS:
        raise InvalidInput(f"`estimator` must be one of {', '.join(ESTIMATORS)}. Got {estimator!r}.")
    robust = DoublyRobust() if estimator == "doubly-robust" else estimator if isinstance(estimator, DoublyRobust) else None
    facts = _declared(assumptions, discount, reward_range, horizon)
    if assumptions is not None:
        check_data(data, facts)
    least, most = return_range(facts.discount, facts.reward_range, horizon, terminal_reward=facts.terminal_reward)
    if robust is None:
        returns = episode_returns(
            data,
            policy,
            behavior,
            discount=facts.discount,
            reward_range=facts.reward_range,
            horizon=horizon,
            terminal_reward=facts.terminal_reward,
        )
        used, name = len(returns), str(estimator)
        samples = returns.per_decision if estimator == "per-decision" else returns.whole_trajectory
        ends = METHODS[method](samples, level)
        doubts = interval_doubts(samples, ends, level, method)
        low, high = (least + end * (most - least) for end in ends)
    else:
        corrected = corrected_returns(
            data,
            policy,
            behavior,
            estimator=robust,
            discount=facts.discount,
            reward_range=facts.reward_range,
            horizon=horizon,
            terminal_reward=facts.terminal_reward,
            refit=method == "betting",
        )
        used, name = len(corrected.low.x), "doubly-robust"
        low, high = corrected_interval(corrected, level, method)
        doubts = (crossed_doubt(level),) if low > high else ()
    lowest, highest = _possible_returns(facts, (least, most), horizon, terminates=may_end(data, facts))
    lower, upper = max(low, lowest), min(high, highest)
    if lower > upper and not doubts:  # a declared range of values cut them so
        doubts = (crossed_doubt(level),)
    return BaselineInterval(
        lower=lower,
        upper=upper,
        method=f"{method}, {name}",
        delta=level,
        episodes=used,
        estimand=f"Return of the target policy over {horizon} steps",
        count=len(data),
        return_range=(lowest, highest),
        premises=_premises(
            method, facts, horizon, DoublyRobust() if robust is None else robust, declared=assumptions is not None
        ),
        doubts=doubts,
    )


def _declared(assumptions: Assumptions | None, discount: float | None, reward_range: Range | None, horizon: int) -> Assumptions:
    """What was declared, one way or the other; a return over T steps is that of an episode which ends then."""
    if assumptions is not None:
        if discount is not None or reward_range is not None:
            raise InvalidInput("Give `assumptions`, or `discount` and `reward_range`, not both.")
        return assumptions
    if discount is None or reward_range is None:
        raise InvalidInput("`discount` and `reward_range` are needed, or `assumptions`, which have them.")
    return_range(discount, reward_range, horizon)  # what is wrong with them is said in its words
    return Assumptions(discount=discount, reward_range=reward_range, horizon=horizon)


def _possible_returns(facts: Assumptions, returns: Range, horizon: int, *, terminates: bool) -> Range:
    """J = V - discount^T E[V of what is left], with V in the declared range, and 0 after the end of an episode."""
    if facts.value_range is None:
        return returns
    low, high = value_ranges(facts, terminates=terminates).value
    left = _left(facts, horizon)
    return (max(returns[0], low - left * max(high, 0.0)), min(returns[1], high - left * min(low, 0.0)))


def _left(facts: Assumptions, horizon: int) -> float:
    """discount^T, or 0 where every episode has ended by then."""
    return 0.0 if facts.horizon is not None and facts.horizon <= horizon else facts.discount**horizon


def _premises(method: str, facts: Assumptions, horizon: int, robust: DoublyRobust, *, declared: bool) -> tuple[Statement, ...]:
    """declared: whether the horizon of the facts is one that somebody declared, and not that of the estimand alone."""
    (low, high), more = facts.reward_range, []
    gap = truncation_gap(facts.discount, facts.reward_range, horizon)
    if facts.terminal_reward:
        more.append(premise("terminal-reward", "Only the transition that ends an episode pays."))
        gap = min(gap, _left(facts, horizon) * max(abs(low), abs(high)))
    if facts.value_range is not None:
        least, most = facts.value_range
        more.append(premise("values", f"The value of the target policy lies in {range_text(least, most)}, as declared."))
        gap = min(gap, _left(facts, horizon) * max(abs(least), abs(most)))
    if robust.least_probability is not None:
        floor = f"The logger gave every action a probability of at least {robust.least_probability:g}, as declared."
        more.append(premise("least-probability", floor))
    if robust.q is not None:
        more.append(premise("estimate", "The given estimate of Q was fixed before these data."))
    differs = f"differs from it {'without a bound' if math.isinf(gap) else f'by at most {gap:.4g}'}"
    if declared and facts.horizon is not None and facts.horizon <= horizon:
        differs = "is the same, as every episode has ended by then"
    return (
        premise("behavior", "The behavior probabilities are those with which the actions were drawn."),
        premise("episodes", _EPISODES[method]),
        premise("rewards", f"Every reward lies in {range_text(low, high)}; after the end of an episode nothing is paid."),
        *more,
        premise("horizon", f"The estimand is the return over {horizon} steps; the value forever {differs}."),
        premise("fixed-size", "The number of episodes was not chosen by looking at them."),
    )
