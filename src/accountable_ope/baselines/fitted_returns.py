"""Returns over the steps that are left, by one regression per step, backwards (finite-horizon fitted Q evaluation)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.policy import Policy, state_action_points
from ..problem.transitions import Transitions
from ..validation import FloatArray, IntArray, frozen, matrix, number, row_keys, same_rows

RIDGE = 1.0
"""The penalty on the coefficients, the constant left out: of one-hot features, one more row with the mean."""

MOST_PAIRS = 1000
"""One-hot features for at most as many pairs of state and action."""

Points = Callable[[FloatArray], ArrayLike]


class ReturnEstimate(Protocol):
    """An estimate of the return over the steps that are left."""

    def __call__(self, states: FloatArray, actions: FloatArray, left: IntArray) -> FloatArray:
        """At states (n, d), action vectors (n, k) and numbers of steps (n,), from 1 on."""
        ...


@checked
@dataclass(frozen=True, eq=False)
class FittedReturns:
    """Q_l(s, a) = (phi(s, a), 1)'theta_l for l = 1, ..., T steps left.

    Attributes
    ----------
    features : callable
        Points (n, d) -> (n, m).
    coefficients : array (T, m + 1)
        The constant is last.
    """

    features: Points
    coefficients: FloatArray

    def __call__(self, states: FloatArray, actions: FloatArray, left: IntArray) -> FloatArray:
        columns = _columns(self.features, np.concatenate([states, actions], axis=1))
        return np.asarray(np.einsum("ij,ij->i", columns, self.coefficients[left - 1]))


@dataclass(frozen=True, eq=False)
class OneHot:
    """One column per listed point; 0 at all others."""

    keys: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        asked = row_keys(points)
        at = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
        found = np.zeros((len(points), len(self.keys)))
        rows = np.flatnonzero(self.keys[at] == asked)
        found[rows, at[rows]] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Coordinates, in units of their standard deviation, with their squares and products."""

    center: FloatArray
    scale: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        z = np.clip((points - self.center) / self.scale, -10, 10)  # far away, a parabola knows nothing
        i, j = np.triu_indices(z.shape[1])
        return np.concatenate([z, z[:, i] * z[:, j]], axis=1)


@checked
def fit_returns(data: Transitions, policy: Policy, features: Points | None, ranges: FloatArray, discount: float) -> FittedReturns:
    """theta_l by ridge regression of r + discount V_{l-1}(s') on (phi(s, a), 1); V_0 = 0, V_l is the mean of Q_l over the policy.

    Every row serves for every l: how many steps are left changes what is asked, not how the process moves. V is clipped to the
    range of returns, and is 0 after the end of an episode.

    Parameters
    ----------
    data : Transitions
    policy : Policy
        The target policy, over a finite action set.
    features : callable or None
        Points (s, a), (n, d) -> (n, m). None: one-hot features of the pairs in the data where these are at most 1,000, else
        coordinates with their squares and products.
    ranges : array (T + 1, 2)
        Least and largest return over 0, 1, ..., T steps.
    discount : float
        In [0, 1].

    Returns
    -------
    FittedReturns

    Raises
    ------
    InvalidInput
        Where features are no numbers, or `ranges` no pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.baselines import fit_returns
    >>> from accountable_ope.environments import bandit
    >>> mdp, half = bandit(1, 2, seed=0), [[0.5, 0.5]]
    >>> data = mdp.sample_iid(2000, np.random.default_rng(0), half)
    >>> fitted = fit_returns(data, mdp.policy(half), None, np.array([[0.0, 0.0], [0.0, 1.0]]), discount=0.0)
    >>> error = fitted(data.states[:1], np.array([[1.0]]), np.array([1])) - mdp.mean_reward[0, 1]
    >>> bool(abs(error[0]) < 0.05)
    True
    """
    if not 0 <= number(discount, "discount") <= 1:
        raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
    bounds = matrix(ranges, "ranges")
    if bounds.shape[1] != 2 or len(bounds) < 2 or (bounds[:, 0] > bounds[:, 1]).any():
        raise InvalidInput(f"`ranges` must be a pair (low, high) for 0, 1, ..., T steps. Got shape {bounds.shape}.")
    points = state_action_points(data.states, data.actions, policy)
    phi = default_features(points) if features is None else features
    here, after, live = _columns(phi, points), None, ~data.terminated
    if discount > 0 and len(bounds) > 2 and live.any():
        after = np.zeros_like(here)
        states = data.next_states[live]
        for branch in policy.branches(states):
            after[live] += branch.weights[:, None] * _columns(phi, np.concatenate([states, branch.actions], axis=1))
    penalty = np.full(here.shape[1], RIDGE)
    penalty[-1] = 1e-9 * len(here)
    solved = np.linalg.solve(here.T @ here + np.diag(penalty), here.T)
    coefficients, target = [], data.rewards
    for low, high in bounds[1:]:
        coefficients.append(solved @ target)
        if after is None:
            target = data.rewards
        else:
            target = data.rewards + discount * np.where(live, np.clip(after @ coefficients[-1], low, high), 0.0)
    return FittedReturns(phi, frozen(np.array(coefficients)))


def default_features(points: FloatArray) -> Points:
    """One-hot features of these points, or, where they are many, quadratic ones."""
    keys = np.unique(row_keys(points))
    if len(keys) <= min(MOST_PAIRS, len(points) / 2):
        return OneHot(keys)
    deviation = points.std(axis=0)
    return Quadratic(points.mean(axis=0), np.where(deviation > 0, deviation, 1.0))


def _columns(features: Points, points: FloatArray) -> FloatArray:
    columns = matrix(features(points), "features")
    same_rows(len(points), columns, "features", "states")
    return np.concatenate([columns, np.ones((len(points), 1))], axis=1)
