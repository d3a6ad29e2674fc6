"""The value of the policy that logged the data, from the returns of its episodes: no model, no weights, no class of Q.

An episode that ended has the return G = sum_t discount^t r_t. One that was cut off after T rows would have gone on to
G + discount^T U, where U, what it would have earned, lies in [u, U] by the declared rewards. So every episode gives numbers
A <= G <= B with E A <= value <= E B, all of them in the declared range of returns, and

    lower = betting_lower(A),   upper = -betting_lower(-B),   at delta / 2 each.

Only the means given the episodes before enter, so that lengths and cuts may depend on what happened before them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..baselines import betting_lower
from ..errors import InvalidInput
from ..io.display import interval_html, one_line
from ..io.shown import Drawn, Shown
from ..problem.assumptions import Assumptions, Range, value_ranges
from ..problem.average_reward import AverageReward
from ..problem.contradictions import check_data, may_end
from ..problem.other_starts import OTHER_STARTS, SAMPLE, column_distances, starts_p_value
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, Status, doubt, premise, range_text
from ..problem.transitions import StartStates, Transitions
from ..radii.doubts import copy_doubts, p_text, shown_status, statements
from ..radii.premises import Asked, ending_premises
from ..validation import BoolArray, FloatArray, IntArray, plural, probability_level, row_keys
from .asymptotic import normalized_ends

FEW_EPISODES = 20
"""Below which a t interval is doubted."""

SAME_STATE = 1e-6
"""Relative: states that differ by less are the same, written by another program."""


@checked
@dataclass(frozen=True, eq=False)
class LoggedValue(Shown, Drawn):
    """With probability at least 1 - delta, lower <= value of the logging policy <= upper, if the premises hold.

    Attributes
    ----------
    estimate : float
        The mean return; of an episode that was cut off, the middle of what it may have been.
    lower, upper : float
    normalized : tuple of two floats
        (1 - discount) times the interval, on the scale of one reward, as of `Interval`; at discount 1 the interval itself.
    large_sample : tuple of two floats
        A t interval, much narrower: right in the limit of many episodes, guaranteed at no number of them.
    standard_error : float
        Of the mean return.
    delta : float
    episodes : int
    truncated : int
        How many were cut off before their end.
    truncation : float
        By how much the estimate may be wrong for that reason alone; the interval counts it.
    return_range : tuple of two floats
        The returns that the declared rewards allow.
    count : int
        The number of rows.
    premises : tuple of Statement
    doubts : tuple of Statement
    guarantee : Guarantee
        Of the interval; that of `large_sample` is asymptotic.
    """

    estimate: float
    lower: float
    upper: float
    normalized: tuple[float, float]
    large_sample: tuple[float, float]
    standard_error: float
    delta: float
    episodes: int
    truncated: int
    truncation: float
    return_range: Range
    count: int
    premises: tuple[Statement, ...]
    doubts: tuple[Statement, ...]
    guarantee: Guarantee = Guarantee.FINITE_SAMPLE

    def __repr__(self) -> str:
        return one_line("LoggedValue", self.lower, self.upper, self.delta, "betting on returns", self.status)

    def _repr_html_(self) -> str:
        return interval_html(self, "Value of the logging policy", "betting on returns", self.doubts)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def status(self) -> Status:
        """INCONSISTENT where the ends have crossed, VACUOUS where they are those of the possible returns, DOUBTED where rows of
        the log are copies of others.
        """
        if self.lower > self.upper:
            return Status.INCONSISTENT
        outcome = Status.VACUOUS if (self.lower, self.upper) == self.return_range else Status.OK
        return shown_status(outcome, doubted=any(each.name == "copies" for each in self.doubts))

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def shown_estimate(self) -> float | None:
        """The estimate, where it lies within its own interval: bets go by the order of episodes, and may refute their mean."""
        return self.estimate if self.estimate in self else None


@checked
def logged_value(
    data: Problem | Transitions,
    *,
    assumptions: Assumptions | AverageReward | None = None,
    discount: float | None = None,
    reward_range: Range | None = None,
    delta: float = 0.1,
) -> LoggedValue:
    """The value of the policy that logged the data, on its own start states: what a proposal has to beat.

    Every episode is a draw of the return, a number in a declared range. Betting against every mean (`baselines.betting_lower`)
    gives an interval that holds at any number of episodes. What an episode that was cut off did not live to earn is anything that
    the declared rewards allow, and widens the interval.

    The estimand is sum_t discount^t r_t from the first step of an episode on, as that of `bound_value` is for the target policy.
    The two are comparable where both start alike: the premise `starts` says so. A declared `value_range` is about the target
    policy, and is not used.

    Parameters
    ----------
    data : Problem or Transitions
        With episodes, at least two, each logged from its first step on without gaps.
    assumptions : Assumptions, optional
        What is declared, where `data` are Transitions.
    discount, reward_range : float and tuple of two floats, optional
        In the place of assumptions.
    delta : float
        In (0, 1).

    Returns
    -------
    LoggedValue

    Raises
    ------
    InvalidInput
        Where episodes are unknown, fewer than two or have gaps, where nothing bounds a return, for an average reward, and where
        data contradict what is declared.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import chain
    >>> mdp, uniform = chain(3, discount=0.9), np.full((3, 2), 0.5)
    >>> data = mdp.sample_trajectories(uniform, episodes=200, length=60, rng=np.random.default_rng(0))
    >>> found = aope.logged_value(data, discount=0.9, reward_range=(0, 1))
    >>> mdp.value(uniform) in found, found.episodes, found.truncated
    (True, 200, 200)
    """
    level = probability_level(delta)
    rows, facts, starts = _declared(data, assumptions, discount, reward_range)
    copied = statements(copy_doubts(rows.copies.doubted, len(rows)))
    rows = rows.whole_episodes()  # of those that began among rows which chose something, the first steps are missing
    first, lengths, order = _episodes(rows)
    low, high = value_ranges(facts, terminates=may_end(rows, facts)).value
    least, most, cut = _returns(rows, facts, first, lengths, order, (low, high))
    lower, upper = low, high
    if high > low:
        scale = high - low
        lower = low + scale * betting_lower((least - low) / scale, level / 2)
        upper = high - scale * betting_lower((high - most) / scale, level / 2)
    errors = [float(each.std(ddof=1)) / math.sqrt(len(each)) for each in (least, 0.5 * (least + most), most)]
    t = _t_quantile(len(lengths) - 1, level)
    sample = (max(low, float(least.mean()) - t * errors[0]), min(high, float(most.mean()) + t * errors[2]))
    return LoggedValue(
        estimate=0.5 * float(least.mean() + most.mean()),
        lower=max(lower, low),
        upper=min(upper, high),
        normalized=normalized_ends(max(lower, low), min(upper, high), facts.discount),
        large_sample=sample,
        standard_error=errors[1],
        delta=level,
        episodes=len(lengths),
        truncated=int(cut.sum()),
        truncation=0.5 * float((most - least).mean()),
        return_range=(low, high),
        count=len(rows),
        premises=_premises(rows, facts, len(lengths), int(cut.sum())),
        doubts=(*copied, *_doubts(rows, starts, order[first], len(lengths))),
    )


def crossing_clause(delta: float) -> str:
    """What ends that cross say: which data sets have them."""
    return f"which has a probability of at most {100 * delta:.4g}% if what is assumed and declared is right"


def _declared(
    data: Problem | Transitions,
    assumptions: Assumptions | AverageReward | None,
    discount: float | None,
    reward_range: Range | None,
) -> tuple[Transitions, Assumptions, StartStates | None]:
    """Rows, what is declared of them apart from the target policy, and its start states where these are known."""
    if isinstance(assumptions, AverageReward):
        raise InvalidInput("`assumptions` must be Assumptions with a discount: the episodes of a log show no long-run average.")
    alone = discount is not None or reward_range is not None
    if isinstance(data, Problem):
        if assumptions is not None or alone:
            raise InvalidInput("`assumptions`, `discount` and `reward_range` are those of the Problem: leave them out.")
        rows, facts, starts = data.data, data.assumptions, data.starts
    else:
        if assumptions is not None and alone:
            raise InvalidInput("Give `assumptions`, or `discount` and `reward_range`, not both.")
        if assumptions is None:
            if discount is None or reward_range is None:
                raise InvalidInput("`discount` and `reward_range` are needed, or `assumptions`, which have them.")
            assumptions = Assumptions(discount=discount, reward_range=reward_range)
        rows, facts, starts = data, assumptions, None
        check_data(rows, facts)
    if facts.discount == 1 and facts.horizon is None and not facts.terminal_reward:
        raise InvalidInput("`discount` 1 leaves returns without a bound: declare a `horizon`, or `terminal_reward=True`.")
    return rows, replace(facts, value_range=None, one_step_range=None), starts


def _episodes(data: Transitions) -> tuple[IntArray, IntArray, IntArray]:
    """(where each episode begins, its length, rows ordered by episode and time)."""
    if data.episodes is None:
        raise InvalidInput("`episodes` are needed: the value of the logging policy is a mean over episodes.")
    lengths = np.bincount(data.episodes)
    if len(lengths) < 2:
        raise InvalidInput("At least two episodes are needed. Got one.")
    order = np.argsort(data.episodes, kind="stable")  # stable: time order is kept within an episode
    first = np.cumsum(lengths) - lengths
    inside = np.ones(len(data), dtype=bool)
    inside[first] = False
    later, before = order[inside], order[np.flatnonzero(inside) - 1]
    if data.terminated[before].any():
        row = int(before[np.argmax(data.terminated[before])])
        raise InvalidInput(f"`terminated` is True in row {row}, but its episode goes on after it.")
    here, there = data.next_states[before], data.states[later]
    gap = (np.abs(here - there) > SAME_STATE * np.maximum(1.0, np.maximum(np.abs(here), np.abs(there)))).any(axis=1)
    if gap.any():
        at = int(np.argmax(gap))
        raise InvalidInput(
            f"`states` must be the `next_states` of the row before, inside an episode: a return has no gaps. Row "
            f"{int(later[at])} is {there[at].tolist()}, after {here[at].tolist()}."
        )
    return first, lengths, order


def _returns(
    data: Transitions, facts: Assumptions, first: IntArray, lengths: IntArray, order: IntArray, allowed: Range
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Least and largest return of every episode, and whether it was cut off."""
    time = np.arange(len(order)) - np.repeat(first, lengths)
    label = np.repeat(np.arange(len(lengths)), lengths)
    paid = np.bincount(label, weights=facts.discount**time * data.rewards[order])
    ended = data.terminated[order[first + lengths - 1]]
    tails = np.zeros((len(lengths), 2))
    for length in np.unique(lengths[~ended]):
        tails[~ended & (lengths == length)] = facts.discount ** int(length) * np.array(_tail(facts, int(length), allowed))
    cut = tails[:, 1] > tails[:, 0]
    least, most = (np.clip(paid + tail, *allowed) for tail in tails.T)
    return least, most, cut


def _tail(facts: Assumptions, steps: int, allowed: Range) -> Range:
    """What an episode may earn after so many steps, in units of that time."""
    if facts.horizon is None:
        return allowed
    left = facts.horizon - steps
    return value_ranges(replace(facts, horizon=left), terminates=True).value if left > 0 else (0.0, 0.0)


def _t_quantile(freedom: int, delta: float) -> float:
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, delta / 2))


def _premises(data: Transitions, facts: Assumptions, episodes: int, cut: int) -> tuple[Statement, ...]:
    low, high = facts.reward_range
    terminates = may_end(data, facts)
    asked = Asked(facts, value_ranges(facts, terminates=terminates), terminates, True, True, len(data))
    truncated = []
    if cut:
        text = f"{cut} of {episodes} episodes were cut off; later rewards of theirs would have been in the declared range too."
        truncated.append(premise("truncated", text, ("truncated", cut), ("episodes", episodes)))
    return (
        premise(
            "episodes",
            "Given the episodes before it, each is one of the same process: it starts in a draw of the start distribution and "
            "follows the logging policy, the same in all of them; all are in the log, from their first step on.",
        ),
        premise("rewards", f"Every reward lies in {range_text(low, high)}; after the end of an episode nothing is paid."),
        *ending_premises(asked),
        *truncated,
        premise(
            "starts",
            "Logged episodes start as the target policy is asked to start: otherwise the values of the two are not comparable.",
        ),
        premise("fixed-size", "The number of episodes was not chosen by looking at them."),
    )


def _doubts(data: Transitions, starts: StartStates | None, begins: IntArray, episodes: int) -> tuple[Statement, ...]:
    found = []
    if starts is not None and starts.exact:
        known = row_keys(starts.states[starts.weights > 0])
        elsewhere = int((~np.isin(row_keys(data.states[begins]), known)).sum())
        if elsewhere:
            text = (
                f"{elsewhere} of {episodes} episodes begin in states that the start distribution of the problem does not have: "
                f"the value of the logging policy is that from other starts. {SAMPLE}"
            )
            found.append(doubt("starts", text, ("elsewhere", elsewhere)))
    if starts is not None and not found:
        p_value = starts_p_value(data.states[begins], starts)
        if p_value < OTHER_STARTS:
            text = (
                f"The first states of {episodes} episodes are no draws of the start states of the problem ({p_text(p_value)}"
                f"{_differing(data, data.states[begins], starts)}): the value of the logging policy is that from other starts."
            )
            found.append(doubt("starts", text, ("p_value", p_value)))
    if episodes < FEW_EPISODES:
        text = f"{episodes} {plural(episodes, 'episode is', 'episodes are')} few for the large-sample interval."
        found.append(doubt("few-episodes", text, ("episodes", episodes)))
    return tuple(found)


def _differing(data: Transitions, begins: FloatArray, starts: StartStates) -> str:
    """Which column differs most, where there are several."""
    distances = column_distances(begins, starts)
    return "" if len(distances) < 2 else f"; column {data.naming.state(int(np.argmax(distances)))} differs most"
