"""The target policy as it stands in the columns of a log: probabilities, or the action that it takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidFile
from ..problem.transitions import Transitions
from ..validation import BoolArray, FloatArray, IntArray
from .coding import Coding
from .column_names import ACTION_AT_NEXT, ACTION_AT_STATE, AT_NEXT, AT_STATE
from .table import Table


@dataclass(frozen=True, eq=False)
class LoggedPolicy:
    """The target policy as it stands in columns."""

    at_state: FloatArray | None
    at_next: FloatArray | None
    by_action: bool = False


def logged_policy(coding: Coding, data: Transitions, live: BoolArray) -> LoggedPolicy:
    """Probabilities, or the action that is taken as a probability of one."""
    table = coding.table
    at_state, at_next = table.probabilities(AT_STATE), table.probabilities(AT_NEXT, live)
    here, there = coding.indices(ACTION_AT_STATE), coding.indices(ACTION_AT_NEXT, live)
    for given, chosen, one, other in (
        (at_state, here, AT_STATE, ACTION_AT_STATE),
        (at_next, there, AT_NEXT, ACTION_AT_NEXT),
    ):
        if given is not None and chosen is not None:
            raise InvalidFile(f"{table.name} has columns `{one}` and `{other}`: give the policy in one of them.")
    if (here is not None or there is not None) and not data.finite_actions:
        raise InvalidFile(f"{table.name}: `{ACTION_AT_STATE}` goes with a column `action` of whole numbers.")
    if here is not None or there is not None:
        known = [each for each in (here, there, data.actions) if each is not None]
        actions = max(int(each.max()) for each in known) + 1
        actions = max([actions, *(each.shape[1] for each in (at_state, at_next) if each is not None)])
        at_state = at_state if here is None else one_hot(here, actions)
        at_next = at_next if there is None else one_hot(there, actions)
    for values, column in ((at_next, AT_NEXT), (at_state, AT_STATE)):
        _check_actions(table, data, values, column)
    if at_state is not None and at_next is not None and at_state.shape[1] != at_next.shape[1]:
        raise InvalidFile(
            f"{table.name}: columns `{AT_STATE}` and `{AT_NEXT}` must have a probability for every action. They have "
            f"{at_state.shape[1]} and {at_next.shape[1]}."
        )
    return LoggedPolicy(at_state, at_next, here is not None or there is not None)


def one_hot(actions: IntArray, count: int) -> FloatArray:
    """A probability of one for the action that is taken."""
    found = np.zeros((len(actions), count))
    found[np.arange(len(actions)), actions] = 1.0
    return found


def _check_actions(table: Table, data: Transitions, probabilities: FloatArray | None, column: str) -> None:
    """Every logged action has a probability."""
    if probabilities is None or not data.finite_actions:
        return
    actions = probabilities.shape[1]
    beyond = data.actions >= actions
    if beyond.any():
        row = int(np.argmax(beyond))
        raise InvalidFile(
            f"{table.name}: `actions` has index {int(data.actions[row])} in {table.row(row)}, but `{column}` has probabilities "
            f"of {actions} actions (0 to {actions - 1})."
        )
