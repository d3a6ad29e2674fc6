"""An interval for the return of a policy by importance sampling, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..io.display import interval_html, one_line
from ..problem.policy import Policy
from ..problem.statements import Guarantee, Statement, Status, premise
from ..problem.transitions import Transitions
from ..validation import probability_level
from .bounds import betting_interval, hcope_interval
from .importance_sampling import Range, episode_returns, truncation_gap

METHODS = {"betting": betting_interval, "hcope": hcope_interval}
"""Intervals by name, for the normalized return."""

ESTIMATORS = ("per-decision", "trajectory")
"""Importance weights up to each step, or of the whole episode."""

_EPISODES = {
    "betting": "Given the episodes before it, each starts in a draw of the start distribution and follows the behavior policy.",
    "hcope": "Episodes are independent; each starts in a draw of the start distribution and follows the behavior policy.",
}


@checked
@dataclass(frozen=True)
class BaselineInterval:
    """With probability at least 1 - delta, lower <= estimand <= upper, if what was assumed is true.

    lower > upper refutes what was assumed, at level delta: most often the behavior probabilities are not the true ones.

    Attributes
    ----------
    lower, upper : float
    method : str
    delta : float
    episodes : int
        How many were used.
    estimand : str
        What lies in the interval, in words.
    count : int
        Transitions in the data.
    premises : tuple of Statement
        What the interval rests on.
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

    def __repr__(self) -> str:
        return one_line("BaselineInterval", self.lower, self.upper, self.delta, self.method, self.status)

    def _repr_html_(self) -> str:
        return interval_html(self, self.estimand, self.method)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def status(self) -> Status:
        """INCONSISTENT where the ends have crossed, VACUOUS where they are those of the possible returns."""
        if self.lower > self.upper:
            return Status.INCONSISTENT
        return Status.VACUOUS if (self.lower, self.upper) == self.return_range else Status.OK

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
    behavior: ArrayLike | Policy,
    discount: float,
    reward_range: Range,
    horizon: int,
    method: str = "betting",
    estimator: str = "per-decision",
    delta: float = 0.1,
) -> BaselineInterval:
    """Bounds for the return of the target policy over `horizon` steps, from whole episodes of a known behavior policy.

    No class of Q functions and no kernel is assumed; the behavior probabilities are. Weights multiply along an episode, so
    their variance can grow exponentially with the horizon.

    Parameters
    ----------
    data : Transitions
        Whole episodes, at least two.
    policy : Policy
        The target policy, over a finite action set.
    behavior : array (n,) or Policy
        pi_b(a_i | s_i) of the action in every row, or the behavior policy itself.
    discount : float
        In [0, 1].
    reward_range : tuple of two floats
        Every reward lies in it; also 0, where episodes terminate.
    horizon : int
        Later rows are not used; an episode that is shorter must have terminated.
    method : str
        "betting" (the tighter one) or "hcope" (Thomas et al. 2015, threshold chosen on the first twentieth).
    estimator : str
        "per-decision", or "trajectory": one weight for the whole return, as the paper has it.
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
    if estimator not in ESTIMATORS:
        raise InvalidInput(f"`estimator` must be one of {', '.join(ESTIMATORS)}. Got {estimator!r}.")
    returns = episode_returns(data, policy, behavior, discount=discount, reward_range=reward_range, horizon=horizon)
    samples = returns.per_decision if estimator == "per-decision" else returns.whole_trajectory
    low, high = METHODS[method](samples, level)
    least, most = returns.return_range
    return BaselineInterval(
        lower=least + low * (most - least),
        upper=least + high * (most - least),
        method=f"{method}, {estimator}",
        delta=level,
        episodes=len(returns),
        estimand=f"Return of the target policy over {horizon} steps",
        count=len(data),
        return_range=returns.return_range,
        premises=_premises(method, discount, reward_range, horizon),
    )


def _premises(method: str, discount: float, reward_range: Range, horizon: int) -> tuple[Statement, ...]:
    gap = truncation_gap(discount, reward_range, horizon)
    beyond = "without a bound" if math.isinf(gap) else f"by at most {gap:.4g}"
    return (
        premise("behavior", "The behavior probabilities are those with which the actions were drawn."),
        premise("episodes", _EPISODES[method]),
        premise(
            "rewards",
            f"Every reward lies in [{reward_range[0]:g}, {reward_range[1]:g}]; after the end of an episode nothing is paid.",
        ),
        premise("horizon", f"The estimand is the return over {horizon} steps; the value forever differs from it {beyond}."),
        premise("fixed-size", "The number of episodes was not chosen by looking at them."),
    )
