"""The rows of an interval bounded again under stronger assumptions, for an explanation: quickly, from where its own bound ended.

Stronger assumptions, or a smaller envelope, leave a smaller set of Q. What the iteration behind the interval proved of its set
(range, variances, steps) holds of the smaller one too, so that a round or two remain of several. Weights of a cut are those of
the interval, unless the norm bound is another. The ends are found as exactly as those of any interval, but they have no
certificate of their own: nothing of this leaves an explanation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, final

from ..problem.assumptions import Assumptions
from ..programs.envelope import Envelope
from ..programs.proofs import Round
from ..radii.accounting import split_delta
from ..radii.member import Member
from ..radii.plan import Plan
from ..radii.registry import Grounds, radius_rule
from .ends import ends_of, single_threaded
from .rebound import Rebound
from .unfit import refuse_unfit

if TYPE_CHECKING:
    from .evaluation import Evaluation
    from .interval import Interval


@final
class Altering:
    """Bounds the rows of one interval with one thing changed that makes its set smaller; what is asked twice is found once."""

    def __init__(self, interval: Interval, again: Rebound) -> None:
        self._interval, self._again = interval, again
        self._rule = radius_rule(again.asked.radius)
        self._growing = again.growing and self._rule.anytime
        planned = again.asked.planned
        self._size = planned if planned is not None and self._growing else len(again.problem.data)
        self._known: dict[Assumptions, Interval] = {}

    @cached_property
    def with_known_starts(self) -> Interval:
        """As if the start states were fixed before the data: with a cut that the interval may not have, so from the beginning."""
        return self._again.with_known_starts()

    def under(self, facts: Assumptions) -> Interval:
        """Under stronger assumptions.

        Raises
        ------
        InvalidInput
            Where the data contradict them outright, or they do not go with the radius.
        """
        if facts not in self._known:
            self._known[facts] = self._under(facts)
        return self._known[facts]

    def within(self, wrapper: Callable[[Envelope], Envelope]) -> Interval:
        """With a smaller envelope around the same evidence."""
        grounds = [
            (member, replace(found, evidence=tuple(replace(each, envelope=wrapper(each.envelope)) for each in found.evidence)))
            for member, found in self._grounds
        ]
        return self._bounded(self._again.evaluation, grounds)

    def _under(self, facts: Assumptions) -> Interval:
        if not self._rule.follows_variance:
            return self._again.assuming(facts)
        evaluation, delta = self._again.evaluation.assuming(facts), self._delta(self._again.evaluation)
        refuse_unfit([self._rule], evaluation.classes, evaluation.kernel, evaluation.problem)
        grounds = []
        with single_threaded():
            for index, (_, before) in enumerate(self._grounds):
                # Weights of a cut depend on the norm bound, and hardly on the ranges: with another ball they are chosen anew.
                plan = before.plan if facts.norm_bound == self._again.problem.assumptions.norm_bound else None
                member = evaluation.member_for(self._rule, index, growing=self._growing, plan=plan)
                if plan is not None:
                    member = replace(member, plan=_tuned(plan, member))
                grounds.append((member, self._rule.evidence(member, delta, self._size)))
        return self._bounded(evaluation, grounds)

    @cached_property
    def _grounds(self) -> list[tuple[Member, Grounds]]:
        """The evidence of the interval itself, class by class."""
        evaluation = self._again.evaluation
        with single_threaded():
            members = [
                evaluation.member_for(self._rule, index, growing=self._growing) for index in range(len(evaluation.classes))
            ]
            return [(member, self._rule.evidence(member, self._delta(evaluation), self._size)) for member in members]

    def _bounded(self, evaluation: Evaluation, grounds: list[tuple[Member, Grounds]]) -> Interval:
        split, asked = split_delta(self._again.asked.delta, start_is_exact=evaluation.problem.start_is_exact), self._again.asked
        with single_threaded():
            ends = [
                ends_of(member, self._rule, found, split.kernel, pointwise=asked.pointwise, begun=begun)
                for (member, found), begun in zip(grounds, self._begun, strict=True)
            ]
        return evaluation.interval(ends, self._rule, split, evaluation.setting(self._size, growing=self._growing))

    @cached_property
    def _begun(self) -> list[Round | None]:
        """What the last round of every class began with."""
        rounds = [part.tightening for part in self._interval.certificates]
        return [None if each is None else each.rounds[-1] for each in rounds]

    def _delta(self, evaluation: Evaluation) -> float:
        return split_delta(self._again.asked.delta, start_is_exact=evaluation.problem.start_is_exact).kernel


def _tuned(plan: Plan, member: Member) -> Plan:
    """The same weights, with rates for the range that is assumed now."""
    return replace(plan, step_range=member.residuals.unit, room=False)
