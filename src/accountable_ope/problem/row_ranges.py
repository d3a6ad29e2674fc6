"""How far chance can move r + discount V(s') at every row: what is declared of single steps, brought to the logged ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray, frozen
from .assumptions import Assumptions, ValueRanges, value_ranges
from .fingerprint import fingerprint
from .statements import Statement, premise
from .step_knowledge import Boxes, StepKnowledge
from .transitions import Transitions


@checked
@dataclass(frozen=True, eq=False)
class NextValues:
    """What is known of V at next states that are not terminal; of a sampled policy, of Q there.

    Parameters
    ----------
    low, high : float or array (n,)
        V lies in [low, high]; one number for all rows, or one per row.
    span : float or array (n,), optional
        V differs by at most this much between the next states that are possible at one row, where that is less than high - low.

    Raises
    ------
    InvalidInput
        Where low > high, or a span is negative.

    Examples
    --------
    >>> from accountable_ope.problem import NextValues
    >>> values = NextValues(2.0, 10.0, span=5.0)
    >>> float(values.apart), float(values.apart_with_zero)
    (5.0, 10.0)
    """

    low: float | FloatArray
    high: float | FloatArray
    span: float | FloatArray | None = None

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.low) <= self.high):
            raise InvalidInput("`low` of NextValues must not exceed `high`.")
        if self.span is not None and not np.all(np.asarray(self.span) >= 0):
            raise InvalidInput("`span` of NextValues must not be negative.")

    @classmethod
    def of(cls, ranges: ValueRanges) -> NextValues:
        """What the assumptions alone say: V at a next state that is not terminal lies in both of their ranges."""
        low, high = max(ranges.value[0], ranges.next_value[0]), min(ranges.value[1], ranges.next_value[1])
        # Where they have nothing in common there is no such state: every step is the last.
        return cls(low, high) if low <= high else cls(0.0, 0.0)

    @property
    def apart(self) -> FloatArray:
        """max V - min V."""
        full = np.asarray(self.high, dtype=np.float64) - self.low
        return full if self.span is None else np.minimum(full, self.span)

    @property
    def apart_with_zero(self) -> FloatArray:
        """max(V, 0) - min(V, 0)."""
        return np.asarray(np.maximum(self.high, 0.0) - np.minimum(self.low, 0.0), dtype=np.float64)


@checked
@dataclass(frozen=True, eq=False)
class RowRanges:
    """What is known of every logged step before it is taken: functions of (s_i, a_i) alone, as Theorem R needs them.

    Made by `RowRanges.of`, or as `problem.row_ranges`.

    Parameters
    ----------
    assumptions : Assumptions
    knowledge : StepKnowledge
        What was declared.
    certain : array (n,) of bool
        The next state is terminal for certain.
    may_end : array (n,) of bool
        The next state may be terminal or not. Where neither is true, it cannot be.
    declared : array (n,)
        The declared one-step range: the number, the function, or the smaller of both; infinite where there is none.
    ranges : ValueRanges
        Those that follow from the assumptions.
    reach : Boxes, optional
        Where the next states must lie, if that was declared.

    Raises
    ------
    InvalidInput
        Where the arrays are not of one length, or a row both ends for certain and may go on.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> knowledge = aope.StepKnowledge(
    ...     terminal_region=aope.TerminalRegion.inside([3.0], [np.inf]),
    ...     reach=lambda states, actions: (states, states + 1),
    ... )
    >>> data = aope.Transitions([0.0, 2.5, 2.9], [0, 0, 1], [1.0, 1.0, 1.0], [0.5, 2.7, 3.5], [False, False, True])
    >>> policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    >>> facts = aope.Assumptions(discount=0.5, reward_range=(1, 1), value_range=(1, 1.5), reward_noise=False)
    >>> problem = aope.Problem(data, aope.StartStates([[0.0]]), policy, facts, knowledge=knowledge)
    >>> rows = problem.row_ranges
    >>> rows.may_end.tolist(), rows.bounds().tolist()
    ([False, True, True], [0.25, 0.75, 0.75])
    """

    assumptions: Assumptions
    knowledge: StepKnowledge
    certain: BoolArray
    may_end: BoolArray
    declared: FloatArray
    ranges: ValueRanges
    reach: Boxes | None = None

    def __post_init__(self) -> None:
        for name in ("certain", "may_end"):
            if self.declared.ndim != 1 or getattr(self, name).shape != self.declared.shape:
                raise InvalidInput(f"`{name}` and `declared` of RowRanges must have one entry per row.")
        both = self.certain & self.may_end
        if both.any():
            raise InvalidInput(f"`certain` and `may_end` exclude each other, and both hold in row {int(np.argmax(both))}.")

    @classmethod
    def of(cls, data: Transitions, assumptions: Assumptions, knowledge: StepKnowledge, *, terminates: bool) -> RowRanges:
        """What is known of the steps of a log; terminates: whether states may be terminal at all."""
        reach, region, count = knowledge.boxes(data), knowledge.terminal_region, len(data)
        certain, possible = np.zeros(count, dtype=bool), np.full(count, terminates)
        if reach is not None and region is not None:
            certain, possible = region.covers(*reach)
        declared = knowledge.step_ranges(data)
        if assumptions.one_step_range is not None:
            declared = np.minimum(declared, assumptions.one_step_range)
        ranges = value_ranges(assumptions, terminates=terminates)
        return cls(assumptions, knowledge, certain, possible & ~certain, frozen(declared), ranges, reach)

    def __len__(self) -> int:
        return len(self.declared)

    def __repr__(self) -> str:
        ends, may = int(self.certain.sum()), int(self.may_end.sum())
        return f"RowRanges({len(self)} rows: {ends} certain to end, {may} that may, {len(self) - ends - may} that cannot)"

    @property
    def known(self) -> BoolArray:
        """Rows at which Q(s, a) = r exactly: the end is certain, and the reward is a function of (s, a)."""
        return self.certain & (not self.assumptions.reward_noise)

    @cached_property
    def sha256(self) -> str:
        """What names these ranges in a certificate, which cannot hold the functions that they came from."""
        return fingerprint(certain=self.certain, may_end=self.may_end, declared=self.declared)

    def bounds(self, values: NextValues | None = None) -> FloatArray:
        """b_i with |eps_i| <= b_i at the true Q: the length of an interval that holds r + discount V(s') given (s_i, a_i).

        b_i = (rmax - rmin, if the reward may be random) + discount * span_i, where span_i is
            0                         where the next state is terminal for certain,
            max(V, 0) - min(V, 0)     where it may be,
            max V - min V             where it cannot be;
        and the declared one-step range where that is smaller. Where only the end of an episode pays, a step that cannot end pays
        0, and one that may end brings a final reward, or discount V and no reward: b_i is the length of the hull of both and 0.

        values: what is known of V at next states that are not terminal; None: what the assumptions say. Whatever tightens it
        afterwards, on the event on which Q is bounded, tightens b_i.
        """
        values = NextValues.of(self.ranges) if values is None else values
        facts, discount = self.assumptions, self.assumptions.discount
        paid = facts.reward_range[1] - facts.reward_range[0] if facts.reward_noise else 0.0
        goes_on, ends_perhaps = paid + discount * values.apart, paid + discount * values.apart_with_zero
        if facts.terminal_reward:
            least = np.minimum(facts.reward_range[0], discount * np.minimum(values.low, 0.0))
            most = np.maximum(facts.reward_range[1], discount * np.maximum(values.high, 0.0))
            goes_on, ends_perhaps = discount * values.apart, most - least
        found = np.where(self.certain, paid, np.where(self.may_end, ends_perhaps, goes_on))
        return np.minimum(found, self.declared)

    def premises(self) -> tuple[Statement, ...]:
        """What was declared of single steps, as an interval that uses `bounds` has to say it."""
        region, said = self.knowledge.terminal_region, []
        if region is not None:
            text = f"A state is terminal exactly when it lies {region.name}, as declared."
            said.append(premise("terminal-region", text, ("region", region.name)))
        if self.reach is not None:
            ends, may = int(self.certain.sum()), int(self.may_end.sum())
            counts = "" if region is None else f"; at {ends} logged rows it must be terminal, at {may} it may be"
            text = f"Given (s, a), the next state lies in a box that was declared without looking at these data{counts}."
            said.append(premise("reach", text, ("certain", ends), ("may_end", may)))
        if self.knowledge.one_step_range is not None:
            least, largest = float(self.declared.min()), float(self.declared.max())
            text = (
                "Given (s, a), chance moves reward plus discounted next value by at most a function of (s, a) that was declared "
                f"without looking at these data; at the logged rows it lies between {least:g} and {largest:g}."
            )
            said.append(premise("one-step-range", text, ("least", least), ("largest", largest)))
        return tuple(said)
