"""Importance sampling as contestants: five estimators, each with the intervals that make sense for it.

The estimators are those of `weighted_steps` and the doubly robust one of Jiang and Li (2016). Student's interval and the
bootstrap go with all of them, in the limit of many episodes. At any number of episodes hold "bernstein", the empirical Bernstein
bound of Maurer and Pontil as Thomas et al. (2015) use it: an importance-weighted return has no declared limit, so it is cut at a
threshold that the first episodes choose, which takes from a mean and never adds to it; and "betting". Both are for numbers with
a lower limit: not for ratios, and for a doubly robust return only after its weights are clipped, with what is lost counted
(`doubly_robust`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ..problem.statements import Guarantee, Statement, premise
from ..problem.transitions import Transitions
from .answer import answered, percentile_ends
from .bounds import betting_interval, corrected_interval, hcope_interval
from .contestant import Contestant, Entry, Needs
from .doubly_robust import corrected_returns
from .episodes import Range, return_range
from .foretold import foretold_returns
from .importance_sampling import episode_returns
from .interval import BaselineInterval
from .logged_episodes import LoggedEpisodes, logged_episodes
from .means import RESAMPLES, bootstrap_ends, resampled_counts, student_ends
from .weighted_steps import WeightedSteps

Ends = Callable[[Entry, Transitions, int, float, np.random.Generator], Range]
"""Of the return over so many steps, from whole episodes."""

ESTIMATORS = {
    "trajectory": ("Trajectory-wise importance sampling", "Precup, Sutton and Singh (2000)"),
    "per-decision": ("Per-decision importance sampling", "Precup, Sutton and Singh (2000)"),
    "weighted trajectory": ("Weighted importance sampling", "Precup, Sutton and Singh (2000)"),
    "weighted per-decision": ("Weighted per-decision importance sampling", "Precup, Sutton and Singh (2000)"),
    "doubly-robust": ("Doubly robust importance sampling", "Jiang and Li (2016)"),
}
"""Name -> (words, source)."""

BOUNDS = {
    "student": ("Student's t", ""),
    "bootstrap": ("a bootstrap over episodes", "Efron (1979)"),
    "bernstein": ("empirical Bernstein after a cut", "Thomas, Theocharous and Ghavamzadeh (2015)"),
    "betting": ("betting", "Waudby-Smith and Ramdas (2024)"),
}
"""Name -> (words, source)."""

_BEHAVIOR = premise("behavior", "The behavior probabilities are those with which the actions were drawn.")
_INDEPENDENT = premise(
    "episodes",
    "Episodes are independent and of the same process; each starts in a draw of the target policy's start distribution and "
    "follows the behavior policy.",
)
_IN_ORDER = premise(
    "episodes",
    "Given the episodes before it, each is one of the same process: it starts in a draw of the target policy's start "
    "distribution and follows the behavior policy.",
)
_LIMIT = premise("limit", "Asymptotic: episodes are many, and no few of them, with large weights, decide. Nothing is guaranteed.")
_FIXED_SIZE = premise("fixed-size", "The number of episodes was not chosen by looking at them.")


def _asymptotic(estimator: str, bound: str, entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """Each end by the episodes in which what is left was paid at that end."""
    episodes = logged_episodes(entry, paid=True)
    found = [_limit_ends(estimator, bound, entry, side, episodes.steps, delta, rng) for side in episodes.sides]
    ends = (found[0][0] + episodes.beyond[0], found[-1][1] + episodes.beyond[1])
    return _answer(entry, episodes, ends, estimator, bound, delta, (_BEHAVIOR, _INDEPENDENT, _FIXED_SIZE, _LIMIT))


def _limit_ends(
    estimator: str, bound: str, entry: Entry, data: Transitions, steps: int, delta: float, rng: np.random.Generator
) -> Range:
    problem = entry.problem
    weighted = WeightedSteps.of(data, problem.policy, problem.assumptions.discount, steps)
    if not weighted.ever_weighted:
        return (math.nan, math.nan)
    if "trajectory" in estimator:
        weighted = weighted.whole
    if estimator == "doubly-robust":
        samples = foretold_returns(entry, data, steps)
    elif estimator.startswith("weighted"):
        if bound == "bootstrap":
            return percentile_ends(weighted.ratios(resampled_counts(len(weighted.payments), RESAMPLES, rng)), delta)
        samples = weighted.influences()
    else:
        samples = weighted.samples()
    return student_ends(samples, delta) if bound == "student" else bootstrap_ends(samples, delta, rng)


def _finite_sample(estimator: str, bound: str, entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """Two bounds at delta / 2 each; from one set of episodes, or one each where what is left was paid."""
    episodes = logged_episodes(entry, paid=False)
    found = [_proved_ends(estimator, bound, entry, side, episodes.steps, delta) for side in episodes.sides]
    ends = (found[0][0] + episodes.beyond[0], found[-1][1] + episodes.beyond[1])
    order = _IN_ORDER if bound == "betting" else _INDEPENDENT
    return _answer(entry, episodes, ends, estimator, bound, delta, (_BEHAVIOR, order, _FIXED_SIZE))


def _proved_ends(estimator: str, bound: str, entry: Entry, data: Transitions, steps: int, delta: float) -> Range:
    policy, facts = entry.problem.policy, entry.problem.assumptions
    if facts.reward_range[0] == facts.reward_range[1] and not facts.terminal_reward:
        return (-math.inf, math.inf)  # every return is known: the range of values says all
    if estimator == "doubly-robust":
        corrected = corrected_returns(
            data,
            policy,
            entry.behavior,
            discount=facts.discount,
            reward_range=facts.reward_range,
            horizon=steps,
            terminal_reward=facts.terminal_reward,
            refit=bound == "betting",
        )
        return corrected_interval(corrected, delta, "betting" if bound == "betting" else "hcope")
    returns = episode_returns(
        data,
        policy,
        discount=facts.discount,
        reward_range=facts.reward_range,
        horizon=steps,
        terminal_reward=facts.terminal_reward,
    )
    samples = returns.per_decision if estimator == "per-decision" else returns.whole_trajectory
    least, most = return_range(facts.discount, facts.reward_range, steps, terminal_reward=facts.terminal_reward)
    low, high = (betting_interval if bound == "betting" else hcope_interval)(samples, delta)
    return (least + low * (most - least), least + high * (most - least))


def _answer(
    entry: Entry,
    episodes: LoggedEpisodes,
    ends: Range,
    estimator: str,
    bound: str,
    delta: float,
    premises: tuple[Statement, ...],
) -> BaselineInterval:
    beyond = premise("horizon", f"What is paid after {episodes.steps} steps is counted by the range of values.")
    return answered(
        entry.problem,
        ends,
        method=f"{estimator} {bound}",
        delta=delta,
        guarantee=_guarantee(bound),
        premises=(*premises, beyond),
        episodes=episodes.low.number_of_episodes,
    )


def _guarantee(bound: str) -> Guarantee:
    return Guarantee.ASYMPTOTIC if bound in ("student", "bootstrap") else Guarantee.FINITE_SAMPLE


def _contestant(estimator: str, bound: str) -> Contestant:
    (words, source), (with_what, whose) = ESTIMATORS[estimator], BOUNDS[bound]
    proved = _guarantee(bound) is Guarantee.FINITE_SAMPLE
    return Contestant(
        name=f"{estimator} {bound}",
        title=f"{words}, with {with_what}",
        source=f"{source}; {whose}" if whose else source,
        guarantee=_guarantee(bound),
        needs=Needs(
            propensities=True,
            behavior=proved and estimator == "doubly-robust",
            episodes=True,
            horizon=True,
            value_range=True,
            finite_actions=estimator == "doubly-robust",
        ),
        interval=partial(_finite_sample if proved else _asymptotic, estimator, bound),
    )


def _makes_sense(estimator: str, bound: str) -> bool:
    """A ratio is no mean of numbers with a lower limit."""
    return not estimator.startswith("weighted") or _guarantee(bound) is Guarantee.ASYMPTOTIC


IMPORTANCE: tuple[Contestant, ...] = tuple(
    _contestant(estimator, bound) for estimator in ESTIMATORS for bound in BOUNDS if _makes_sense(estimator, bound)
)
