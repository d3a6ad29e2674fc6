"""Tables of policies, and finite MDPs to try things on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, float_array, number, positive, whole
from .tabular_mdp import TabularMDP as TabularMDP


@checked
def softmax_table(scores: ArrayLike, temperature: float) -> FloatArray:
    """pi(a | s) proportional to exp(scores(s, a) / temperature).

    Parameters
    ----------
    scores : array (S, A)
    temperature : float
        Positive; the lower, the closer to the best action.

    Returns
    -------
    array (S, A)
        The table of the policy.

    Raises
    ------
    InvalidInput
        Where `scores` is no table of numbers or `temperature` not positive.

    Examples
    --------
    >>> from accountable_ope.environments import softmax_table
    >>> softmax_table([[0.0, 0.0], [1.0, 0.0]], temperature=0.5).round(3)
    array([[0.5  , 0.5  ],
           [0.881, 0.119]])
    """
    from scipy.special import softmax

    return np.asarray(softmax(float_array(scores, "scores", dimensions=(2,)) / positive(temperature, "temperature"), axis=1))


@checked
def mixture(table_a: ArrayLike, table_b: ArrayLike, weight: float) -> FloatArray:
    """weight * table_a + (1 - weight) * table_b.

    Parameters
    ----------
    table_a, table_b : array (S, A)
        Tables of two policies.
    weight : float
        In [0, 1].

    Returns
    -------
    array (S, A)

    Raises
    ------
    InvalidInput
        Where the shapes differ or `weight` is outside [0, 1].

    Examples
    --------
    >>> from accountable_ope.environments import mixture
    >>> mixture([[1.0, 0.0]], [[0.5, 0.5]], weight=0.5)
    array([[0.75, 0.25]])
    """
    a = float_array(table_a, "table_a", dimensions=(2,))
    b = float_array(table_b, "table_b", dimensions=(2,))
    if a.shape != b.shape:
        raise InvalidInput(f"`table_a` and `table_b` must have the same shape. Got {a.shape} and {b.shape}.")
    if not 0 <= number(weight, "weight") <= 1:
        raise InvalidInput(f"`weight` must be in [0, 1]. Got {weight!r}.")
    return weight * a + (1 - weight) * b


@checked
def random_tabular(states: int, actions: int, seed: int, discount: float, bernoulli: bool = False) -> TabularMDP:
    """Dirichlet(1) transitions, rewards uniform on [0, 1], uniform start; never terminates.

    Parameters
    ----------
    states, actions : int
    seed : int
        Equal seeds give equal MDPs.
    discount : float
    bernoulli : bool
        Whether rewards are coins with the drawn means.

    Returns
    -------
    TabularMDP

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import random_tabular
    >>> random_tabular(4, 2, seed=0, discount=0.9)
    TabularMDP(4 states (0 terminal), 2 actions, discount=0.9)
    """
    whole(states, "states", least=1)
    whole(actions, "actions", least=1)
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    transition = rng.dirichlet(np.ones(states), size=(states, actions))
    reward = rng.uniform(size=(states, actions))
    return TabularMDP(transition, reward, discount, np.full(states, 1 / states), bernoulli=bernoulli)


@checked
def chain(states: int, discount: float, slip: float = 0.1) -> TabularMDP:
    """Actions left (0) and right (1), reversed with probability `slip`; the right end pays 1; starts at the left end.

    Parameters
    ----------
    states : int
        At least 2.
    discount : float
    slip : float
        In [0, 1].

    Returns
    -------
    TabularMDP

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import chain
    >>> always_right = [[0.0, 1.0]] * 5
    >>> round(chain(5, discount=0.9).value(always_right), 4)
    5.4724
    """
    whole(states, "states", least=2)
    if not 0 <= number(slip, "slip") <= 1:
        raise InvalidInput(f"`slip` must be in [0, 1]. Got {slip!r}.")
    here = np.arange(states)
    transition = np.zeros((states, 2, states))
    for action, (left, right) in enumerate(((1 - slip, slip), (slip, 1 - slip))):
        transition[here, action, np.maximum(here - 1, 0)] += left
        transition[here, action, np.minimum(here + 1, states - 1)] += right
    reward = np.zeros((states, 2))
    reward[-1] = 1.0
    return TabularMDP(transition, reward, discount, np.eye(states)[0])


@checked
def rare_jump(probability: float, discount: float) -> TabularMDP:
    """Two states: state 0 pays about 0.5 and rarely jumps to state 1, which pays 0 and is left with probability 0.02.

    Action 1 pays 0.55 and jumps with the given probability; action 0 pays 0.5 and jumps ten times less often. Data without a
    jump overstate both values and rank action 1 first, also where its jumps make it the worse one.

    Parameters
    ----------
    probability : float
        In (0, 1].
    discount : float

    Returns
    -------
    TabularMDP

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import rare_jump
    >>> mdp = rare_jump(0.01, discount=0.99)
    >>> mdp.value([[1.0, 0.0]] * 2) > mdp.value([[0.0, 1.0]] * 2)
    True
    """
    if not 0 < number(probability, "probability") <= 1:
        raise InvalidInput(f"`probability` must be in (0, 1]. Got {probability!r}.")
    leave = 0.02
    transition = [
        [[1 - probability / 10, probability / 10], [1 - probability, probability]],
        [[leave, 1 - leave], [leave, 1 - leave]],
    ]
    return TabularMDP(transition, [[0.5, 0.55], [0.0, 0.0]], discount, [1.0, 0.0])


@checked
def clinic(seed: int = 0, discount: float = 1.0) -> TabularMDP:
    """Severities 0 (mild) to 3 (critical), then 4 recovered and 5 died, both terminal; three treatments.

    Severity moves by at most one level a step: down from 0 is recovered, up from 3 is died. The only reward is 1 on the
    transition into recovered, so at discount 1 the value is the probability to recover. Stronger treatments act faster, for
    better and for worse. Every severity moves with positive probability, so every policy ends almost surely.

    Parameters
    ----------
    seed : int
        Of the chances of getting better and worse.
    discount : float

    Returns
    -------
    TabularMDP

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import clinic
    >>> strongest = [[0.0, 0.0, 1.0]] * 6
    >>> 0 < clinic().value(strongest) < 1
    True
    """
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    levels, recovered, died = 4, 4, 5
    pace = np.array([0.6, 0.8, 1.0])
    better = rng.uniform(0.15, 0.4, size=(levels, 3)) * pace
    worse = rng.uniform(0.1, 0.3, size=(levels, 3)) * pace
    transition = np.zeros((6, 3, 6))
    for level in range(levels):
        transition[level, :, recovered if level == 0 else level - 1] = better[level]
        transition[level, :, died if level == levels - 1 else level + 1] = worse[level]
        transition[level, :, level] = 1 - better[level] - worse[level]
    transition[recovered, :, recovered] = 1.0
    transition[died, :, died] = 1.0
    terminal = np.arange(6) >= levels
    arrival = np.eye(6)[recovered]
    reward = (transition @ arrival) * ~terminal[:, None]
    return TabularMDP(transition, reward, discount, [0.1, 0.3, 0.4, 0.2, 0.0, 0.0], terminal, arrival_reward=arrival)


@checked
def bandit(contexts: int, arms: int, seed: int, bernoulli: bool = True) -> TabularMDP:
    """Uniform contexts, arms with mean rewards uniform on [0, 1]; discount 0, so the value is the expected reward.

    Parameters
    ----------
    contexts, arms : int
    seed : int
        Of the mean rewards.
    bernoulli : bool
        Whether rewards are coins with these means.

    Returns
    -------
    TabularMDP

    Raises
    ------
    InvalidInput
        Where a number is out of range.

    Examples
    --------
    >>> from accountable_ope.environments import bandit
    >>> mdp = bandit(3, 2, seed=0)
    >>> abs(mdp.value([[0.5, 0.5]] * 3) - float(mdp.mean_reward.mean())) < 1e-12
    True
    """
    whole(contexts, "contexts", least=1)
    whole(arms, "arms", least=1)
    reward = np.random.default_rng(whole(seed, "seed", least=0)).uniform(size=(contexts, arms))
    uniform = np.full(contexts, 1 / contexts)
    return TabularMDP(np.broadcast_to(uniform, (contexts, arms, contexts)), reward, 0.0, uniform, bernoulli=bernoulli)
