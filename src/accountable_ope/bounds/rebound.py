"""The same rows bounded again: under other assumptions, at another delta, or as if something were known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, final

from ..errors import InvalidInput
from ..problem.assumptions import Assumptions
from ..problem.problem import Problem
from ..problem.transitions import StartStates

if TYPE_CHECKING:
    from ..baselines.interval import BaselineInterval
    from ..classes.function_class import FunctionClass
    from .companions import Companions
    from .evaluation import Evaluation
    from .interval import Interval


@dataclass(frozen=True)
class AskedFor:
    """What an evaluation was asked for: radius, delta, pointwise boxes, planned rows."""

    radius: str
    delta: float
    pointwise: bool | None = None
    planned: int | None = None


@final
class Rebound:
    """Bounds the same rows again. Not part of what an interval proves: nothing of it goes into a certificate."""

    def __init__(self, evaluation: Evaluation, asked: AskedFor) -> None:
        self.evaluation, self.asked = evaluation, asked

    def __call__(self, norm_bound: float) -> Interval:
        """Under another norm bound."""
        return self.assuming(replace(self.problem.assumptions, norm_bound=norm_bound))

    @property
    def problem(self) -> Problem:
        """What was asked."""
        return self.evaluation.problem

    @property
    def growing(self) -> bool:
        """Whether the rows may be looked at again and again."""
        return self.asked.planned is not None

    def at(self, delta: float) -> Interval:
        """At another delta."""
        return self._bound(self.evaluation, delta)

    def assuming(self, assumptions: Assumptions) -> Interval:
        """Under other assumptions, with the same discount."""
        return self._bound(self.evaluation.assuming(assumptions), self.asked.delta)

    def with_classes(self, classes: Sequence[FunctionClass]) -> Interval:
        """With other classes of functions: one more pass over the pairs of rows."""
        from .evaluation import evaluate

        before = self.evaluation
        other = evaluate(
            before.problem,
            features=classes,
            kernel=before.kernel,
            anchor=before.anchor,
            chosen=before.chosen,
            options=before.options,
            engine=before.engine,
        )
        return self._bound(replace(other, log=before.log), self.asked.delta)

    def with_known_starts(self) -> Interval:
        """As if the start states were the distribution itself, fixed before the data."""
        problem = self.problem
        if not problem.policy.exact:
            raise InvalidInput("`policy` draws its actions, at the start states as well: these draws have an error of their own.")
        starts = StartStates(problem.starts.states, problem.starts.weights)
        known = replace(problem, starts=starts)
        # What the log shows of its own start states is put aside: this is a question of "what if".
        known.__dict__["starts_are_fixed"] = True
        return self._bound(replace(self.evaluation, problem=known), self.asked.delta)

    @cached_property
    def leading(self) -> BaselineInterval | None:
        """The interval by recorded probabilities, where it answers first: single steps, and nobody named a class."""
        from .weighed import leads, weighed_value

        whole = self.evaluation.whole
        if self.evaluation.log is None or self.growing or not leads(whole):
            return None
        try:
            return weighed_value(whole, self.asked.delta)
        except InvalidInput:  # the companions say why
            return None

    @cached_property
    def companions(self) -> Companions:
        """What stands beside the interval, found when asked for."""
        from .companions import companions_of

        return companions_of(self.evaluation, self.asked.delta, leading=self.leading, growing=self.growing)

    def _bound(self, evaluation: Evaluation, delta: float) -> Interval:
        return evaluation.bound(self.asked.radius, delta, pointwise=self.asked.pointwise, planned=self.asked.planned)
