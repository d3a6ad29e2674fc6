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

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..baselines.bounds import TRUNCATION, predictable_bets
from ..baselines.interval import BaselineInterval, importance_sampling_interval
from ..errors import InvalidInput
from ..problem.assumptions import Assumptions, Range
from ..problem.other_starts import OTHER_STARTS, SAMPLE, starts_p_value
from ..problem.problem import Problem
from ..problem.statements import Statement, doubt, premise, range_text
from ..problem.transitions import Transitions
from ..radii.doubts import copy_doubts, p_text, statements
from ..validation import FloatArray, IntArray, row_keys

if TYPE_CHECKING:
    from .interval import Interval

PER_ROW = (
    "Given the rows before it, each row{first} begins in a draw of the start states, and its action was drawn with the recorded "
    "probability."
)

REFUTED_AT = 1e-3
"""The level at which how often actions were taken refutes the recorded probabilities."""


def one_step(problem: Problem) -> bool:
    """Whether the value is that of one step, and the log says with which probability its action was drawn."""
    data = problem.data
    alone = problem.assumptions.discount == 0 or bool(data.terminated.all())
    return alone and data.behavior_probability is not None


def leads(problem: Problem) -> bool:
    """Whether recorded probabilities answer first, by facts that no reward has a part in.

    Every row is an episode, so that none of them is left out, and the start states are those of the log, all of them: from
    others, be they a part of these or those of another log, these weights do not lead.
    """
    data, starts = problem.data, problem.starts
    single = data.episodes is None or data.number_of_episodes == len(data)
    if not (one_step(problem) and single) or starts.fixed or starts.exact:
        return False
    return np.array_equal(starts.states, data.states[_first_rows(data)])


def weighed_value(problem: Problem, delta: float) -> BaselineInterval | None:
    """Betting on weighted rewards; None where more than one step decides, or no probabilities are recorded.

    Its ends have crossed where the rows speak against the recorded probabilities, by the weighted rewards or by the actions
    alone; `doubts` says which, and with which probability that happens where they are right, or that rows are copies. Raises
    InvalidInput where there is no such interval: start states that the log does not begin in, or a policy without probabilities.
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
    copied = statements(copy_doubts(data.copies.doubted, len(data)))  # copies are no new draws
    if copied:
        found = replace(found, doubts=copied)
    elif taken_too_often(rows):
        least, most = found.return_range
        found = replace(found, lower=most, upper=least, doubts=(_too_often_doubt(),))
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
    """Of a finite start distribution all states are known, and a row that begins elsewhere is no draw of it; nor are rows that
    begin in the same states at other frequencies.
    """
    starts, begins = problem.starts, problem.data.states[first]
    if starts.exact:
        known = row_keys(starts.states[starts.weights > 0])
        elsewhere = int((~np.isin(row_keys(begins), known)).sum())
        if elsewhere:
            raise InvalidInput(
                f"{elsewhere} of {len(first)} steps begin in states that the start distribution does not have. {SAMPLE}"
            )
    p_value = starts_p_value(begins, starts)
    if p_value < OTHER_STARTS:
        raise InvalidInput(f"The steps of the log begin at other frequencies than the start states ({p_text(p_value)}).")


def _probabilities(data: Transitions) -> FloatArray:
    assert data.behavior_probability is not None
    return data.behavior_probability


def taken_too_often(rows: Transitions) -> bool:
    """Whether actions came, or came again, more often than the recorded probabilities b allow.

    1(A_i = a) / b_i has a mean of at most 1 given the rows before, whatever is paid, and so it has where a is what was done when
    this state was last seen. Bets on more, at REFUTED_AT together, that are won refute the probabilities. The first show what
    weights need not show: where the target policy does what was recorded, they are 1. The last shows rows that stand there twice.
    """
    if not rows.finite_actions:
        return False
    actions, found = np.unique(rows.actions), _probabilities(rows)
    before = _seen_last(rows)
    again = np.where(before < 0, 1.0, np.where(rows.actions == rows.actions[before], 1 / found, 0.0))
    wanted = math.log((len(actions) + 1) / REFUTED_AT)
    each = (np.where(rows.actions == action, 1 / found, 0.0) for action in actions)
    return any(_won(ratios) >= wanted for ratios in (again, *each))


def _too_often_doubt() -> Statement:
    text = (
        "Actions were taken, or taken again in the same state, more often than the recorded probabilities allow, which has a "
        f"probability of at most {100 * REFUTED_AT:g}% if they are right: either they are wrong, rows stand in the log twice, or "
        "this is such a log. Nothing follows."
    )
    return doubt("taken-too-often", text, ("level", REFUTED_AT))


def _won(ratios: FloatArray) -> float:
    """The largest logarithm of the capital of whoever bets that the mean is above 1."""
    bets = np.minimum(predictable_bets(ratios, mean=1.0), TRUNCATION)
    return float(np.cumsum(np.log1p(bets * (ratios - 1))).max())


def _seen_last(rows: Transitions) -> IntArray:
    """The last row before each in the same state, -1 where there is none."""
    _, state = np.unique(row_keys(rows.states), return_inverse=True)
    order = np.argsort(state, kind="stable")
    found = np.full(len(rows), -1)
    same = state[order][1:] == state[order][:-1]
    found[order[1:][same]] = order[:-1][same]
    return found


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
