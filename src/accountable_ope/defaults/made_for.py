"""Which question a choice was made for, so that it is not taken for the answer to another one.

Whatever earlier rows chose is fixed before the later ones, so that a bound with it holds at any discount and for any policy, if
its premises do. But these premises are in units of the values of one question: a ball around a fit of Q at discount 0.9, or of
another policy's Q, is no assertion that anybody made about this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..problem.policy import Policy
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..validation import FloatArray

PROBES = 64
"""The policy is compared at so many of the next states of the rows that chose."""

ALIKE = 1e-6
"""Probabilities, and actions relative to their size, are the same up to this: another machine rounds otherwise."""


@dataclass(frozen=True, eq=False)
class MadeFor:
    """What was asked when the choice was made.

    Attributes
    ----------
    discount : float
    reward_range : tuple of float
    policy : array (probes, k)
        Actions and probabilities of the target policy at some next states of the rows that chose; no columns where the policy
        is known by draws only, which are others with another seed.
    """

    discount: float
    reward_range: tuple[float, float]
    policy: FloatArray

    @classmethod
    def of(cls, problem: Problem, rows: int) -> MadeFor:
        """The question, and the policy at the first rows."""
        facts = problem.assumptions
        return cls(facts.discount, facts.reward_range, _asked_at(problem.policy, problem.data, rows))

    def refuse_other(self, problem: Problem, rows: int) -> None:
        """Raise where a problem asks something else."""
        now = MadeFor.of(problem, rows)
        why = "a choice is of one question, and what it asserts is in units of its values. Choose anew."
        if now.discount != self.discount:
            raise InvalidInput(f"The choice was made for discount {self.discount:g}, not {now.discount:g}: {why}")
        if now.reward_range != self.reward_range:
            before, after = (f"[{low:.9g}, {high:.9g}]" for low, high in (self.reward_range, now.reward_range))
            raise InvalidInput(f"The choice was made for rewards in {before}, not in {after}: {why}")
        size = max(1.0, float(np.abs(self.policy).max(initial=0.0)))
        if now.policy.shape != self.policy.shape or not np.allclose(now.policy, self.policy, rtol=0, atol=ALIKE * size):
            raise InvalidInput(
                "The choice was made for another target policy, which acts otherwise at the rows that chose: a choice is of one "
                "question. Choose anew."
            )


def _asked_at(policy: Policy, data: Transitions, rows: int) -> FloatArray:
    live = np.flatnonzero(~data.terminated[:rows])
    chosen = live[np.unique(np.linspace(0, len(live) - 1, min(PROBES, len(live))).astype(np.int64))] if len(live) else live
    if not policy.exact or not len(chosen):
        return np.zeros((len(chosen), 0))
    branches = policy.branches(data.next_states[chosen])
    return np.concatenate([np.column_stack([each.actions, each.weights]) for each in branches], axis=1)
