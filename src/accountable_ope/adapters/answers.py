"""What models of other libraries answer, checked: probabilities, logits, or actions, one row per state."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import InvalidInput, MissingExtra
from ..problem.naming import UNNAMED, Naming
from ..problem.policy import DeterministicPolicy, DiscretePolicy, action_vectors, shown_numbers
from ..problem.softmax_policy import softmax
from ..validation import FloatArray, IntArray, float_array, raw_array
from .company import Company

Output = Literal["probabilities", "logits", "actions"]

SINGLE = 1e-4
"""Sums of probabilities in single precision may be so far from one; they are normalized in double."""

AT_ONCE = 8192
"""States that a model is asked for at once."""


def required(module: str, what: str, extra: str) -> Any:
    """A framework, imported, or the pip command."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(f'{what} needs {module}: pip install "accountable-ope[{extra}]".') from error


def asked(model: Callable[[Any], Any], states: Any, name: str) -> Any:
    """What a model answers; its own errors become one sentence that names it."""
    try:
        return model(states)
    except InvalidInput:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise InvalidInput(f"{name} raised {type(error).__name__} when it was asked: {words}") from error


def in_parts(model: Callable[[FloatArray], ArrayLike], states: FloatArray, size: int = AT_ONCE) -> NDArray[Any]:
    """The same for many states, so many at a time."""
    if len(states) <= size:
        return raw_array(model(states))
    return np.concatenate([raw_array(model(states[begin : begin + size])) for begin in range(0, len(states), size)])


def rows_of(values: ArrayLike, states: FloatArray, name: str) -> FloatArray:
    """(n, any) numbers, one row per state, or one sentence that names the state at which there are none."""
    raw = raw_array(values)
    if raw.dtype.kind in "fiub" and raw.ndim >= 1 and len(raw) == len(states):
        wrong = ~np.isfinite(raw.reshape(len(raw), -1).astype(np.float64)).all(axis=1)
        if wrong.any():
            at = shown_numbers(states[int(np.argmax(wrong))])
            raise InvalidInput(f"{name} answered NaN or infinity at {int(wrong.sum())} states, first at {at}.")
    array = float_array(values, f"answer of {name}", dimensions=(0, 1, 2, 3))
    if array.ndim not in (1, 2) or len(array) != len(states):
        raise InvalidInput(f"{name} must answer one row for each of {len(states)} states. Its answer has shape {array.shape}.")
    return array.reshape(len(array), -1)


def distributions(values: ArrayLike, states: FloatArray, name: str) -> FloatArray:
    """Probabilities (n, A), up to the rounding of single precision; normalized."""
    found = rows_of(values, states, name)
    sums = found.sum(axis=1)
    wrong = (np.abs(sums - 1) > SINGLE) | (found < -SINGLE).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(
            f"{name} must answer probabilities, which are not negative and sum to one. At the state {shown_numbers(states[row])} "
            f'it answered {shown_numbers(found[row])}; where those are logits, say output="logits" (--policy-output logits).'
        )
    found = np.maximum(found, 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def taken(values: ArrayLike, states: FloatArray, count: int, name: str) -> FloatArray:
    """Action indices as probabilities (n, count) of one."""
    found = rows_of(values, states, name)
    if found.shape[1] != 1:
        raise InvalidInput(f"{name} must answer the index of one action per state. Its answer has {found.shape[1]} columns.")
    return one_hot(found[:, 0], count, name)


def one_hot(indices: FloatArray | IntArray, count: int, name: str) -> FloatArray:
    """A probability of one for the action that is taken."""
    wrong = (indices != np.floor(indices)) | (indices < 0) | (indices >= count)
    if wrong.any():
        bad = float(indices[int(np.argmax(wrong))])
        raise InvalidInput(f"{name} must answer indices of {count} actions (0 to {count - 1}). It answered {bad:g}.")
    return np.asarray(np.eye(count)[indices.astype(np.int64)])


def policy_of(
    model: Callable[[FloatArray], ArrayLike],
    output: Output,
    actions: ArrayLike | int | None,
    columns: int | None,
    name: str,
    order: IntArray | None = None,
) -> DiscretePolicy | DeterministicPolicy:
    """A policy from a model of known output.

    actions: of a finite set, as of DiscretePolicy; None: as many as the output has columns, or action vectors.
    columns: of the output, where that is known before it is asked.
    order: the index of the action that each column is for; None: that of the column. An action without a column is never taken.
    """
    company = Company()

    def rows(states: FloatArray) -> FloatArray:
        def at(some: FloatArray) -> FloatArray:
            return rows_of(in_parts(model, some), some, name)

        found = at(states)
        company.check(found, lambda some: at(states[some]), states, name)
        return found

    if output == "actions" and actions is None:
        return DeterministicPolicy(rows)
    count = columns if actions is None else len(action_vectors(actions))
    if count is None:
        raise InvalidInput(f"{name} does not say how many actions there are: give `actions`, their number or their vectors.")
    if order is not None and len(order) and int(order.max()) >= count:
        raise InvalidInput(f"{name} knows an action of index {int(order.max())}, but there are {count} actions.")
    width = count if order is None else len(order)
    if output != "actions" and columns is not None and columns != width:
        what = f"there are {count} actions" if order is None else f"labels are given for {width}"
        raise InvalidInput(f"{name} answers {columns} {output} per state, but {what}.")

    def answer(states: FloatArray) -> FloatArray:
        values = rows(states)
        if output == "actions":
            return taken(values, states, count, name)
        found = distributions(values, states, name) if output == "probabilities" else softmax(values, 1.0)
        return found if order is None else spread(found, order, count, name)

    return DiscretePolicy(answer, count if actions is None else actions)


def spread(found: FloatArray, order: IntArray, count: int, name: str) -> FloatArray:
    """Probabilities (n, count) from those of the actions in `order`; the others are never taken."""
    if found.shape[1] != len(order):
        raise InvalidInput(f"{name} must answer a probability for each of {len(order)} classes. Got {found.shape[1]}.")
    out = np.zeros((len(found), count))
    out[:, order] = found
    return out


def whole_numbers(values: FloatArray, dtype: DTypeLike, what: str) -> NDArray[Any]:
    """Rows as a model takes them that knows whole numbers only: cut off, they would be other states."""
    limits = np.iinfo(dtype)
    low, beyond = float(limits.min), float(limits.max) + 1  # exact, as the largest int64 is not
    wrong = (values != np.floor(values)) | (values < low) | (values >= beyond)
    if wrong.any():
        first = float(values[wrong][0])
        raise InvalidInput(
            f"{what} takes whole numbers from {limits.min} to {limits.max} only, and is given others, first {first:g}."
        )
    return values.astype(dtype)


def label_indices(labels: NDArray[Any], naming: Naming, name: str) -> IntArray:
    """Which actions labels stand for: their place among the names of actions, or whole numbers themselves."""
    if naming is UNNAMED or not naming.actions:
        if labels.dtype.kind not in "iu" or (len(labels) and labels.min() < 0):
            shown = ", ".join(map(repr, labels.tolist()[:5]))
            raise InvalidInput(
                f"{name} knows actions by the labels {shown}: say which index each has, by naming=data.naming or "
                'naming=aope.Naming(actions=["low", "high"]).'
            )
        return np.asarray(labels, dtype=np.int64)
    found = [naming.index(label) for label in labels.tolist()]
    if None in found:
        unknown = labels.tolist()[found.index(None)]
        known = ", ".join(map(str, naming.actions[:8]))
        raise InvalidInput(f"{name} knows an action {unknown!r}, which is none of the logged ones: {known}.")
    return np.array(found, dtype=np.int64)
