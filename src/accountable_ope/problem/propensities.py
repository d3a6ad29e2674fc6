"""What the logger's probabilities say: how likely each policy was to act so, and weights of rows that point at the value.

w_i = scale gamma^t rho_{0:t}, rho_{0:t} = prod_{k<=t} pi(a_k | s_k) / b_k over the rows of an episode up to row i, its t-th from
0, where b_k is the recorded probability. If an episode begins in a draw of the start distribution and b is right,

    E sum_t gamma^t rho_{0:t} Z_t = E_{s_0, a ~ pi} phi(s_0, a) = c0,    Z_t = phi(s_t, a_t) - gamma E_{a ~ pi} phi(s_{t+1}, a),

since the sum telescopes. That is what the weights are *aimed* at. A weighted sum of residuals is a martingale at the true Q
whatever they are, as long as row i's weight rests on rows before it, on (s_i, a_i) and on b_i, and b_i was fixed before (r_i,
s'_i) was drawn: a wrong b makes the sum point elsewhere, and an interval wider, but not wrong.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import LARGEST, FloatArray, IntArray, frozen, number, positive, same_rows, vector
from .policy import Policy
from .transitions import Transitions


@runtime_checkable
class DensityPolicy(Protocol):
    """A policy over action vectors that knows their density, with respect to the measure of the recorded densities."""

    def density(self, states: FloatArray, actions: FloatArray) -> ArrayLike:
        """pi(a | s) at states (n, d) and action vectors (n, k), as (n,)."""
        ...


@checked
def taken_probabilities(policy: Policy, data: Transitions, name: str = "policy") -> FloatArray:
    """The probability that the policy gives to the action of every row; of action vectors, the density.

    Parameters
    ----------
    policy : Policy
        Over a finite action set; or, for action vectors, with a method `density(states, actions)`.
    data : Transitions
    name : str
        What the policy is called in errors.

    Returns
    -------
    array (n,)

    Raises
    ------
    InvalidInput
        Where the policy gives no probabilities, or the data have an action that the policy does not.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import bandit
    >>> from accountable_ope.problem import taken_probabilities
    >>> mdp = bandit(1, 2, seed=0)
    >>> data = mdp.sample_iid(20, np.random.default_rng(0))
    >>> set(taken_probabilities(mdp.policy([[0.25, 0.75]]), data).tolist()) == {0.25, 0.75}
    True
    """
    if not data.finite_actions:
        return _densities(policy, data, name)
    vectors = policy.action_vectors
    if vectors is None or not policy.exact:
        raise InvalidInput(
            f"`{name}` must be a policy over a finite action set, such as DiscretePolicy: weights need probabilities."
        )
    actions = np.asarray(data.actions, dtype=np.int64)
    if actions.max() >= len(vectors):
        row = int(np.argmax(actions >= len(vectors)))
        raise InvalidInput(f"`actions` has index {int(actions[row])} in row {row}, but `{name}` has {len(vectors)} actions.")
    taken = np.zeros(len(data))
    for branch in policy.branches(data.states):
        here = actions == branch.action
        taken[here] += branch.weights[here]
    return taken


@checked
def with_propensities(data: Transitions, behavior: Policy) -> Transitions:
    """The same rows with the probabilities that this policy, which logged them, gave to their actions.

    Parameters
    ----------
    data : Transitions
    behavior : Policy
        Over a finite action set; or, for action vectors, with a method `density(states, actions)`.

    Returns
    -------
    Transitions

    Raises
    ------
    InvalidInput
        Where the policy gives no probabilities, or 0 to an action that was taken.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.environments import bandit
    >>> from accountable_ope.problem import with_propensities
    >>> mdp, coin = bandit(1, 2, seed=0), [[0.5, 0.5]]
    >>> data = mdp.sample_iid(20, np.random.default_rng(0), coin)
    >>> set(with_propensities(data, mdp.policy(coin)).behavior_probability.tolist())
    {0.5}
    """
    taken = taken_probabilities(behavior, data, "behavior")
    if (taken == 0).any():
        raise InvalidInput(
            f"`behavior` gives probability 0 to the action taken in row {int(np.argmax(taken == 0))}: it cannot be the policy "
            "that acted."
        )
    same = {field.name: getattr(data, field.name) for field in fields(data)}
    return Transitions(**same | {"behavior_probability": taken}).knowing(data)


@checked
def propensity_weights(
    data: Transitions, policy: Policy, discount: float, *, rows_per_episode: float | None = None
) -> FloatArray:
    """w_i = scale discount^t rho_{0:t}, so that sum_i w_i Z_i / n is about c0, the gradient of the value.

    rho_{0:t} multiplies pi(a | s) / `behavior_probability` over the rows of the episode up to this one, itself included, and t
    counts them from 0. The mean over episodes of sum_t discount^t rho_{0:t} Z_t is c0 if they begin in draws of the start
    distribution; the scale turns it into a mean over rows. It is `rows_per_episode` if that was fixed before the data; else the
    mean length of the episodes before, known when an episode begins: i / e for the one that begins in row i after e others, 1 for
    the first.

    Row i's weight rests on the rows before it, on its state, action and recorded probability, and on nothing that comes later:
    neither on its reward and next state nor on the number of episodes. Weights grow exponentially with the length of an episode;
    to clip them is left to whoever uses them. Beyond 1e60 they are cut.

    Parameters
    ----------
    data : Transitions
        With `behavior_probability`, and with labels of episodes unless every row is an episode of its own: all are terminated, or
        the discount is 0.
    policy : Policy
        The target policy, over a finite action set; or, for action vectors, with a method `density(states, actions)`.
    discount : float
        In [0, 1].
    rows_per_episode : float, optional
        The length of the episodes, as planned before the data.

    Returns
    -------
    array (n,)
        Not negative.

    Raises
    ------
    InvalidInput
        Where probabilities or episodes are not known, or an episode goes on after its end.

    Examples
    --------
    >>> from accountable_ope import TabulatedPolicy, Transitions
    >>> from accountable_ope.problem import propensity_weights
    >>> policy = TabulatedPolicy([[0.0], [1.0]], [[0.2, 0.8], [1.0, 0.0]], actions=2)
    >>> log = Transitions(
    ...     [0, 1, 0, 1], [1, 0, 1, 1], [0.0, 1.0, 0.5, 0.0], [1, 1, 1, 1], episodes=[0, 0, 1, 1], behavior_probability=[0.5] * 4
    ... )
    >>> propensity_weights(log, policy, 0.5, rows_per_episode=2).round(6).tolist()
    [3.2, 3.2, 3.2, 0.0]
    """
    if not 0 <= number(discount, "discount") <= 1:
        raise InvalidInput(f"`discount` must be in [0, 1]. Got {discount!r}.")
    logged = recorded_probabilities(data)
    with np.errstate(divide="ignore"):
        log_ratios = np.log(taken_probabilities(policy, data)) - np.log(logged)
    if data.episodes is None:
        if discount > 0 and not data.terminated.all():
            raise InvalidInput(
                "`episodes` are needed: the weight of a row is a product over its episode so far. Only where the discount is 0, "
                "or all rows are terminated, is every row an episode of its own."
            )
        times, log_weights, scale = np.zeros(len(data)), log_ratios, np.ones(len(data))
    else:
        times, log_weights = _running_sums(data, log_ratios)
        _, first = np.unique(data.episodes, return_index=True)  # labels count episodes in the order in which they begin
        planned = first / np.maximum(np.arange(len(first)), 1)
        planned[0] = 1.0
        scale = planned[data.episodes]
    if rows_per_episode is not None and data.episodes is not None:
        scale = np.full(len(data), positive(rows_per_episode, "rows_per_episode"))
    with np.errstate(divide="ignore"):
        log_weights = log_weights + np.log(scale) + np.log(np.power(float(discount), times))
    return np.asarray(frozen(np.exp(np.minimum(log_weights, math.log(LARGEST)))))


def recorded_probabilities(data: Transitions) -> FloatArray:
    """The column, or one sentence where there is none."""
    if data.behavior_probability is None:
        raise InvalidInput(
            "`behavior_probability` is needed: the data do not say with which probability the logger chose its actions."
        )
    return data.behavior_probability


def _running_sums(data: Transitions, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(step within its episode, sum over its episode so far) of every row."""
    assert data.episodes is not None
    order = np.argsort(data.episodes, kind="stable")  # stable: time order is kept within an episode
    lengths = np.bincount(data.episodes)
    first = np.cumsum(lengths) - lengths
    _refuse_after_the_end(data, order, first + lengths - 1)
    sums, steps = values[order], np.arange(len(order)) - np.repeat(first, lengths)
    # One sum over all rows less what came before would let the rounding of one episode reach another, and lose minus infinity.
    if len(lengths) <= lengths.max():
        for begin, length in zip(first, lengths, strict=True):
            sums[begin : begin + length] = np.cumsum(sums[begin : begin + length])
    else:
        for step in range(1, int(lengths.max())):
            rows = first[lengths > step] + step
            sums[rows] += sums[rows - 1]
    found, times = np.empty_like(sums), np.empty(len(order))
    found[order], times[order] = sums, steps
    return times, found


def _refuse_after_the_end(data: Transitions, order: IntArray, last: IntArray) -> None:
    inside = data.terminated[order]
    inside[last] = False
    if inside.any():
        raise InvalidInput(f"`terminated` is True in row {int(order[np.argmax(inside)])}, but its episode goes on after it.")


def _densities(policy: Policy, data: Transitions, name: str) -> FloatArray:
    if not isinstance(policy, DensityPolicy):
        raise InvalidInput(
            f"`{name}` must have a method density(states, actions), since the actions are vectors: weights need densities, and "
            f"{type(policy).__name__} gives none. For a finite action set log indices and use DiscretePolicy."
        )
    found = vector(policy.density(data.states, np.asarray(data.actions, dtype=np.float64)), f"density of {name}")
    same_rows(len(data), found, f"density of {name}", "states")
    if (found < 0).any():
        raise InvalidInput(f"`density of {name}` must not be negative. Got {found.min():g} in row {int(found.argmin())}.")
    return found
