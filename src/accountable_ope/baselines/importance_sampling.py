"""Importance-weighted returns, one number per episode.

An episode that the behavior policy pi_b generated is weighed by how much likelier the target policy pi is to act so:
w_{0:t} = prod_{k<=t} pi(a_k | s_k) / pi_b(a_k | s_k), whose mean is 1. What is estimated is the return over T steps,
J = E_pi sum_{t<T} discount^t r_t, where an episode that terminated pays 0 from then on. With rewards in [rmin, rmax] and
G = sum_{t<T} discount^t it lies in [Rmin, Rmax] = [G rmin, G rmax]; R = (sum_t discount^t r_t - Rmin) / (Rmax - Rmin) is the
normalized return. Both

    whole trajectory:  X = w_{0:T-1} R,
    per decision:      X = sum_t discount^t w_{0:t} (r_t - rmin) / (Rmax - Rmin)

are at least 0 and have the mean (J - Rmin) / (Rmax - Rmin). Mirrored, with 1 - R and rmax - r_t, they have the mean
(Rmax - J) / (Rmax - Rmin): a lower bound of that mean is an upper bound of J.

Where only the end of an episode pays, the return is discount^t r of its last step, so it lies in the hull of 0 and [rmin, rmax],
however long T is. Nothing is paid before, so the weight of the whole episode is that of its one payment: both are X = w R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..problem.policy import Policy
from ..problem.propensities import taken_probabilities
from ..problem.transitions import Transitions
from ..validation import FloatArray, frozen, ordered_pair, whole
from .episodes import Range, check_payments, logged_probabilities, return_range, total_discount, whole_episodes

LARGEST = 1e150
"""X is cut here, so that its square and sums of it stay finite. A smaller X only lowers a lower bound of its mean."""


@checked
class Samples(NamedTuple):
    """X and its mirror image, both at least 0; their means add up to 1.

    Attributes
    ----------
    x, mirrored : array (N,)
    """

    x: FloatArray
    mirrored: FloatArray


@checked
@dataclass(frozen=True, eq=False)
class EpisodeReturns:
    """What importance sampling needs of every episode.

    Attributes
    ----------
    returns : array (N,)
        sum_{t<T} discount^t r_t, as logged.
    log_weights : array (N,)
        log w of the whole episode; minus infinity where the target policy never acts so.
    per_decision : Samples
        X of the per-decision estimator.
    return_range : tuple of two floats
        (Rmin, Rmax).
    """

    returns: FloatArray
    log_weights: FloatArray
    per_decision: Samples
    return_range: Range

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def weights(self) -> FloatArray:
        """w of the whole episode, at most `LARGEST`."""
        return _exponential(self.log_weights)

    @property
    def normalized(self) -> FloatArray:
        """R, in [0, 1]."""
        low, high = self.return_range
        return np.asarray(np.clip((self.returns - low) / (high - low), 0.0, 1.0))

    @property
    def whole_trajectory(self) -> Samples:
        """X = w R and w (1 - R)."""
        share = self.normalized
        return Samples(_weighted(self.log_weights, share), _weighted(self.log_weights, 1 - share))


@checked
def episode_returns(
    data: Transitions,
    policy: Policy,
    behavior: ArrayLike | Policy | None = None,
    *,
    discount: float,
    reward_range: Range,
    horizon: int,
    terminal_reward: bool = False,
) -> EpisodeReturns:
    """The weighted returns of all episodes over `horizon` steps.

    Parameters
    ----------
    data : Transitions
        Whole episodes, at least two.
    policy : Policy
        The target policy, over a finite action set; or, for action vectors, with a method `density(states, actions)`.
    behavior : array (n,) or Policy, optional
        pi_b(a_i | s_i) of the action in every row, or the behavior policy itself. None: `behavior_probability` of the data.
    discount : float
        In [0, 1].
    reward_range : tuple of two floats
        Every reward lies in it; also 0, where episodes terminate.
    horizon : int
        T. Later rows are not used; an episode that is shorter must have terminated.
    terminal_reward : bool
        Only the transition that ends an episode pays.

    Returns
    -------
    EpisodeReturns

    Raises
    ------
    InvalidInput
        Where data, policies and what is declared contradict each other or do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import episode_returns
    >>> from accountable_ope.environments import chain
    >>> mdp, uniform = chain(3, discount=0.9), np.full((3, 2), 0.5)
    >>> data = mdp.sample_trajectories(uniform, episodes=10, length=4, rng=np.random.default_rng(0))
    >>> target, behavior = mdp.policy([[0.2, 0.8]] * 3), mdp.policy(uniform)
    >>> len(episode_returns(data, target, behavior, discount=0.9, reward_range=(0, 1), horizon=4))
    10
    """
    steps = whole(horizon, "horizon", least=1)
    low, high = return_range(discount, reward_range, steps, terminal_reward=terminal_reward)
    smallest, largest = ordered_pair(reward_range, "reward_range")
    order, first, lengths = whole_episodes(data, steps)
    check_payments(data, (smallest, largest), terminal_reward)
    log_ratios = _log_ratios(data, policy, behavior)[order]
    rewards = data.rewards[order]

    count, width = len(first), largest - smallest
    returns, log_weights = np.zeros(count), np.zeros(count)
    x, mirrored = np.zeros(count), np.zeros(count)
    total = total_discount(discount, steps)
    for time in range(int(lengths.max())):
        alive = np.flatnonzero(lengths > time)
        rows, share = first[alive] + time, discount**time / (width * total)
        returns[alive] += discount**time * rewards[rows]
        log_weights[alive] += log_ratios[rows]
        x[alive] += _weighted(log_weights[alive], share * (rewards[rows] - smallest))
        mirrored[alive] += _weighted(log_weights[alive], share * (largest - rewards[rows]))
    # What is left after the end pays 0, which is -rmin above the least reward; nobody acts, so the weight stays.
    left = np.array([max(0.0, total - total_discount(discount, int(length))) for length in lengths]) / (width * total)
    x += _weighted(log_weights, -smallest * left)
    mirrored += _weighted(log_weights, largest * left)
    samples = Samples(frozen(np.minimum(x, LARGEST)), frozen(np.minimum(mirrored, LARGEST)))
    found = EpisodeReturns(frozen(returns), frozen(log_weights), samples, (low, high))
    return replace(found, per_decision=found.whole_trajectory) if terminal_reward else found


def _log_ratios(data: Transitions, policy: Policy, behavior: ArrayLike | Policy | None) -> FloatArray:
    """log pi(a | s) - log pi_b(a | s) in every row."""
    target, logged = taken_probabilities(policy, data), logged_probabilities(data, behavior)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(target) - np.log(logged))


def _weighted(log_weights: FloatArray, values: FloatArray) -> FloatArray:
    """exp(log w) * value for values of at least 0, without overflow."""
    with np.errstate(divide="ignore"):
        return _exponential(log_weights + np.log(values))


def _exponential(logarithm: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(logarithm, math.log(LARGEST))))
