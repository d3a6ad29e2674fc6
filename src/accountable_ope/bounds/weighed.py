"""The value of the target policy by recorded probabilities of the logged actions, where one step decides: no class of Q.

Where the discount is 0, or every episode ends with its first step, the value is E r(s, a) with s a draw of the start states and a
of the target policy. With b the recorded probability of the logged action and w = pi(a | s) / b, the numbers

    X = w (r - rmin) / (rmax - rmin),   X' = w (rmax - r) / (rmax - rmin)

are at least 0, and their means given the rows before add up to 1: betting against every mean of both, at delta / 2 each
(`baselines.betting_interval`), holds at any number of rows.

Which of two intervals is the answer must not hang on which came out narrower: of two that each fail with probability delta, the
narrower one may fail with 2 delta. So it is decided by how the log was made (`leads`), before a reward is looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..baselines.interval import BaselineInterval, importance_sampling_interval
from ..errors import InvalidInput
from ..problem.assumptions import Assumptions, Range
from ..problem.problem import Problem
from ..problem.statements import Statement, premise, range_text
from ..problem.transitions import Transitions
from ..validation import FloatArray, IntArray, row_keys

if TYPE_CHECKING:
    from .interval import Interval

PER_ROW = (
    "Given the rows before it, each row{first} begins in a draw of the start states, and its action was drawn with the recorded "
    "probability."
)


def one_step(problem: Problem) -> bool:
    """Whether the value is that of one step, and the log says with which probability its action was drawn."""
    data = problem.data
    alone = problem.assumptions.discount == 0 or bool(data.terminated.all())
    return alone and data.behavior_probability is not None


def leads(problem: Problem) -> bool:
    """Whether recorded probabilities answer first, by facts that no reward has a part in.

    Every row is an episode, so that none of them is left out, and the start states are those of the log: from others, which a log
    need not have been drawn from, these weights do not lead.
    """
    data = problem.data
    single = data.episodes is None or data.number_of_episodes == len(data)
    return one_step(problem) and single and not problem.starts.fixed


def weighed_value(problem: Problem, delta: float) -> BaselineInterval | None:
    """Betting on weighted rewards; None where more than one step decides, or no probabilities are recorded.

    Raises InvalidInput where there is no such interval: start states that the log does not begin in, or a policy without
    probabilities.
    """
    if not one_step(problem):
        return None
    data, first = problem.data, _first_rows(problem.data)
    _refuse_other_starts(problem, first)
    facts = problem.assumptions
    # After the first step nothing counts, so that what happened there has no part in it.
    rows = Transitions(
        data.states[first],
        np.asarray(data.actions)[first],
        data.rewards[first],
        data.next_states[first],
        episodes=np.arange(len(first)),
        behavior_probability=_probabilities(data)[first],
    )
    alone = Assumptions(discount=0.0, reward_range=facts.reward_range, value_range=facts.value_range)
    found = importance_sampling_interval(rows, problem.policy, assumptions=alone, horizon=1, delta=delta)
    premises = _premises(found.premises, facts.reward_range, every_row=len(first) == len(data), discounted=facts.discount > 0)
    return replace(found, estimand="Value of the target policy", count=len(data), premises=premises)


def answer_of(interval: Interval) -> Interval | BaselineInterval:
    """What answers first: the interval itself, or where `leads` says so the one by recorded probabilities."""
    leading = None if interval.rebound is None else interval.rebound.leading
    return interval if leading is None else leading


def _first_rows(data: Transitions) -> IntArray:
    """The row in which every episode begins."""
    if data.episodes is None:
        return np.arange(len(data))
    whole = np.flatnonzero(~data.headless)
    _, at = np.unique(data.episodes[whole], return_index=True)
    return np.asarray(np.sort(whole[at]))


def _refuse_other_starts(problem: Problem, first: IntArray) -> None:
    """Of a finite start distribution all states are known, and a row that begins elsewhere is no draw of it."""
    starts = problem.starts
    if not (starts.exact and starts.fixed):
        return
    known = row_keys(starts.states[starts.weights > 0])
    elsewhere = int((~np.isin(row_keys(problem.data.states[first]), known)).sum())
    if elsewhere:
        raise InvalidInput(f"{elsewhere} of {len(first)} steps begin in states that the start distribution does not have.")


def _probabilities(data: Transitions) -> FloatArray:
    assert data.behavior_probability is not None
    return data.behavior_probability


def _premises(found: tuple[Statement, ...], rewards: Range, *, every_row: bool, discounted: bool) -> tuple[Statement, ...]:
    """Of importance sampling, in words for one step; discounted: whether later steps would count, were there any."""
    kept = {each.name: each for each in found}
    text = PER_ROW.format(first="" if every_row else " that begins an episode")
    declared = [kept["values"]] if "values" in kept else []
    if discounted:
        declared.append(premise("one-step", "Every episode ends with its first step, as all logged ones do."))
    return (
        premise("behavior", "The recorded probabilities are those with which the actions were drawn."),
        premise("episodes", text),
        premise("rewards", f"Every reward lies in {range_text(*rewards)}."),
        *declared,
        premise("fixed-size", "The number of rows was not chosen by looking at the rows."),
    )
