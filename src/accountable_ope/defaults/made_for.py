"""Which question a choice was made for, so that it is not taken for the answer to another one.

Whatever earlier rows chose is fixed before the later ones, so that a bound with it holds at any discount and for any policy, if
its premises do. But these premises are in units of the values of one question: a ball around a fit of Q at discount 0.9, or of
another policy's Q, is no assertion that anybody made about this one. Its radius is a share of the range of values, and follows
start states that were fixed before the data: a table lists them, and a ball is larger where rows say little of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..problem.assumptions import Range, value_ranges
from ..problem.contradictions import may_end
from ..problem.policy import Policy
from ..problem.problem import Problem
from ..problem.statements import range_text
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
    value_range : tuple of float
        That which follows from the assumptions, for the rows that chose.
    starts : str
        What names the start states; empty where they are those of the log, which have no part in a choice.
    policy : array (probes, k)
        Actions and probabilities of the target policy at some next states of the rows that chose (states, where none of these
        rows has a next one); no columns where the policy is known by draws only, which are others with another seed.
    """

    discount: float
    reward_range: Range
    value_range: Range
    starts: str
    policy: FloatArray

    @classmethod
    def of(cls, problem: Problem, rows: int) -> MadeFor:
        """The question, and the policy at the first rows."""
        facts, starts = problem.assumptions, problem.starts
        # As the rows that chose show it: that a later one ends an episode was not known.
        values = value_ranges(facts, terminates=may_end(problem.data.rows(slice(0, rows)), facts)).value
        asked = _asked_at(problem.policy, problem.data, rows)
        return cls(facts.discount, facts.reward_range, values, starts.sha256 if starts.fixed else "", asked)

    def refuse_other(self, problem: Problem, rows: int) -> None:
        """Raise where a problem asks something else."""
        now = MadeFor.of(problem, rows)
        why = "a choice is of one question, and what it asserts is in units of its values. Choose anew."
        if now.discount != self.discount:
            raise InvalidInput(f"The choice was made for discount {self.discount:g}, not {now.discount:g}: {why}")
        for what, before, after in (
            ("rewards", self.reward_range, now.reward_range),
            ("values", self.value_range, now.value_range),
        ):
            if after != before:
                raise InvalidInput(
                    f"The choice was made for {what} in {range_text(*before, 9)}, not in {range_text(*after, 9)}: {why}"
                )
        if now.starts != self.starts:
            raise InvalidInput(
                "The choice was made for other start states: how far from its fit values may be follows them. Choose anew."
            )
        size = max(1.0, float(np.abs(self.policy).max(initial=0.0)))
        if now.policy.shape != self.policy.shape or not np.allclose(now.policy, self.policy, rtol=0, atol=ALIKE * size):
            raise InvalidInput(
                "The choice was made for another target policy, which acts otherwise at the rows that chose: a choice is of one "
                "question. Choose anew."
            )


def _asked_at(policy: Policy, data: Transitions, rows: int) -> FloatArray:
    """Actions and probabilities at next states, or where every step is the last one at the states themselves."""
    live = np.flatnonzero(~data.terminated[:rows])
    at = data.next_states[live] if len(live) else data.states[:rows]
    chosen = at[np.unique(np.linspace(0, len(at) - 1, min(PROBES, len(at))).astype(np.int64))] if len(at) else at
    if not policy.exact or not len(chosen):
        return np.zeros((len(chosen), 0))
    branches = policy.branches(chosen)
    return np.concatenate([np.column_stack([each.actions, each.weights]) for each in branches], axis=1)
