"""What the target policy does and nobody logged: the rows that would say most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..validation import FloatArray
from .first_look import LEAST_SHARE
from .problem import Problem
from .statements import Statement, advice

FEW_STATES = 200
"""With at most so many states, rows are looked for state by state."""

SHOWN = 5
"""States that a sentence names; more are counted."""


@dataclass(frozen=True)
class Unlogged:
    """An action that the target policy takes and that no row has: anywhere, or in these states.

    share: how often it is taken, over next states and start states. states: the most frequent first; empty: no row has it at all.
    """

    action: int
    share: float
    states: tuple[tuple[float, ...], ...] = ()


def unlogged(problem: Problem) -> tuple[Unlogged, ...]:
    """Actions, and in tables of few states pairs of state and action, that the policy takes and no row has."""
    data, vectors = problem.data, problem.policy.action_vectors
    if vectors is None or not data.finite_actions:
        return ()
    asked = np.concatenate([data.next_states[~data.terminated], problem.starts.states]) + 0.0
    states, times = np.unique(asked, axis=0, return_counts=True)
    taken = np.zeros((len(states), len(vectors)))
    for branch in problem.policy.branches(states):
        taken[:, branch.action] += branch.weights
    total = float(times.sum())
    few = len(states) <= FEW_STATES
    seen = _logged_at(data.states, np.asarray(data.actions, dtype=np.int64), states, len(vectors)) if few else None
    found = []
    for action in range(len(vectors)):
        often = taken[:, action] * times / total
        if not (data.actions == action).any():
            if often.sum() > LEAST_SHARE:
                found.append(Unlogged(action, float(often.sum())))
        elif seen is not None:
            missing = ~seen[:, action] & (taken[:, action] > LEAST_SHARE)
            order = [index for index in np.argsort(-often, kind="stable") if missing[index]]
            if order:
                found.append(Unlogged(action, float(often[missing].sum()), tuple(tuple(states[k].tolist()) for k in order)))
    return tuple(sorted(found, key=lambda each: -each.share))


def _logged_at(logged: FloatArray, actions: np.ndarray, states: FloatArray, count: int) -> np.ndarray:
    """Whether a row has this state and this action."""
    both, inverse = np.unique(np.concatenate([states, logged + 0.0]), axis=0, return_inverse=True)
    seen = np.zeros((len(both), count), dtype=bool)
    places = inverse.reshape(-1)
    seen[places[len(states) :], actions] = True
    return np.asarray(seen[places[: len(states)]])


def rows_wanted(problem: Problem, names: Sequence[str] = ()) -> Statement | None:
    """Of which actions, and in which states, rows are needed; None where the log has all that the policy does.

    names: what the columns of the state are called, where that is known.
    """
    found = unlogged(problem)
    if not found:
        return None
    wanted = "; ".join(_wanted(each, str(problem.data.naming.action(each.action)), names) for each in found)
    text = (
        f"Rows are needed of what the target policy does and nobody logged: {wanted}. Without them only what is assumed bounds "
        "it."
    )
    return advice("rows-wanted", text, ("actions", tuple(each.action for each in found)))


def _wanted(each: Unlogged, action: str, names: Sequence[str]) -> str:
    share = f"{100 * each.share:.2g}% of the time" if each.share < 0.995 else "nearly always"
    if not each.states:
        return f"action {action} (taken {share}, in no row)"
    shown = ", ".join(_state(state, names) for state in each.states[:SHOWN])
    more = f" and {len(each.states) - SHOWN} more" if len(each.states) > SHOWN else ""
    return f"action {action} in {'state' if len(each.states) == 1 else 'states'} {shown}{more} (taken there {share} in all)"


def _state(state: tuple[float, ...], names: Sequence[str]) -> str:
    if len(names) == len(state):
        return f"({', '.join(f'{name} {value:.4g}' for name, value in zip(names, state, strict=True))})"
    return f"({', '.join(f'{value:.4g}' for value in state)})"
