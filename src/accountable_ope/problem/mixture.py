"""Policies made of policies: chance on top of one, and a choice between several at every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, frozen, number, vector
from .gaussian_policy import GaussianPolicy
from .policy import Branch, Policy


@checked
@dataclass(frozen=True, eq=False)
class EpsilonGreedy:
    """(1 - epsilon) pi(a | s) + epsilon / A: with probability epsilon any of the A actions, else what the policy does.

    Parameters
    ----------
    policy : Policy
        Over a finite action set, with exact probabilities; greedy or not.
    epsilon : float
        In [0, 1].

    Raises
    ------
    InvalidInput
        Where the policy has no finite action set, or `epsilon` is no probability.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import DiscretePolicy, EpsilonGreedy
    >>> first = DiscretePolicy(lambda states: np.tile([1.0, 0.0], (len(states), 1)), actions=2)
    >>> [branch.weights.tolist() for branch in EpsilonGreedy(first, 0.2).branches(np.zeros((1, 1)))]
    [[0.9], [0.1]]
    """

    policy: Policy
    epsilon: float
    exact: bool = True

    def __post_init__(self) -> None:
        if self.policy.action_vectors is None or not self.policy.exact:
            raise InvalidInput("`policy` of EpsilonGreedy must know its probabilities over a finite action set.")
        if not 0 <= number(self.epsilon, "epsilon") <= 1:
            raise InvalidInput(f"`epsilon` must be in [0, 1]. Got {self.epsilon!r}.")

    @property
    def action_vectors(self) -> FloatArray:
        """Those of the policy."""
        assert self.policy.action_vectors is not None
        return self.policy.action_vectors

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        each = self.epsilon / len(self.action_vectors)
        for branch in self.policy.branches(states):
            yield Branch(branch.actions, (1 - self.epsilon) * branch.weights + each, branch.action)


@checked
@dataclass(frozen=True, eq=False, init=False)
class MixturePolicy:
    """sum_j weights_j pi_j(a | s): at *every step* one of the policies is chosen by chance, and acts.

    Choosing once per episode is another thing: the value is then the weighted mean of the values, and each has an interval.

    Parameters
    ----------
    policies : sequence of Policy
        All over the same finite action set, or all of action vectors; their expectations must be exact sums.
    weights : array, optional
        Their probabilities; by default all are equal.

    Raises
    ------
    InvalidInput
        Where there is none, their actions differ, one can only be drawn, or the weights are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import DiscretePolicy, MixturePolicy
    >>> first = DiscretePolicy(lambda states: np.tile([1.0, 0.0], (len(states), 1)), actions=2)
    >>> second = DiscretePolicy(lambda states: np.tile([0.5, 0.5], (len(states), 1)), actions=2)
    >>> mixed = MixturePolicy([first, second], [0.5, 0.5])
    >>> [branch.weights.tolist() for branch in mixed.branches(np.zeros((1, 1)))]
    [[0.75], [0.25]]
    """

    policies: tuple[Policy, ...]
    weights: FloatArray
    action_vectors: FloatArray | None
    exact: bool = True

    def __init__(self, policies: Sequence[Policy], weights: ArrayLike | None = None) -> None:
        if not policies:
            raise InvalidInput("`policies` must name at least one policy. Got none.")
        for policy in policies:
            if not policy.exact or isinstance(policy, GaussianPolicy):
                raise InvalidInput(
                    f"`policies` must be exact sums over actions. Got {type(policy).__name__}: mix inside of a SampledPolicy."
                )
        vectors = policies[0].action_vectors
        for policy in policies[1:]:
            other = policy.action_vectors
            same = vectors is other if vectors is None or other is None else np.array_equal(vectors, other)
            if not same:
                raise InvalidInput("`policies` must have the same actions: the vectors of two of them differ.")
        shares = np.full(len(policies), 1 / len(policies)) if weights is None else vector(weights, "weights")
        if len(shares) != len(policies) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-6:
            raise InvalidInput(f"`weights` must be {len(policies)} probabilities that sum to one. Got {shares.tolist()}.")
        object.__setattr__(self, "policies", tuple(policies))
        object.__setattr__(self, "weights", frozen(shares / shares.sum()))
        object.__setattr__(self, "action_vectors", vectors)
        object.__setattr__(self, "exact", True)

    def __repr__(self) -> str:
        return f"MixturePolicy({len(self.policies)} policies)"

    def branches(self, states: FloatArray) -> Iterator[Branch]:
        every = [
            Branch(branch.actions, share * branch.weights, branch.action)
            for policy, share in zip(self.policies, self.weights.tolist(), strict=True)
            for branch in policy.branches(states)
        ]
        if self.action_vectors is None:
            yield from every
            return
        # One branch per action: whoever asks for a probability expects all of it in one place.
        for index, action in enumerate(self.action_vectors):
            total = np.sum([branch.weights for branch in every if branch.action == index], axis=0)
            yield Branch(np.broadcast_to(action, (len(states), len(action))), total, index)
