"""The columns of a log as arrays, or one sentence with the row that is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput, InvalidRow
from ..validation import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    describe,
    matrix,
    private_copy,
    raw_array,
    row_keys,
    same_rows,
    vector,
)

LOGGED = "behavior_probability"
"""What the column of the logger's probabilities is called, here and in files."""

MOST_ACTIONS = 2**16
"""A larger index is no action of a finite set but an identifier; an entry for every action would not fit into memory."""


def refuse_text(values: ArrayLike | None, name: str) -> None:
    """Text that looks like numbers tells of a column that was read wrongly, so it is not converted."""
    raw = raw_array(() if values is None else values)
    if raw.dtype.kind in "US" or (raw.dtype == object and any(isinstance(entry, str | bytes) for entry in raw.flat)):
        raise InvalidInput(f"`{name}` must be numbers of one shape. Got {describe(values)}.")


def first_alike(*columns: NDArray[Any]) -> IntArray:
    """Of every row the first row that is equal to it."""
    keys = row_keys(np.column_stack(columns).astype(np.float64))
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(first[group.reshape(-1)])


def without_holes(values: ArrayLike, states: FloatArray, ended: BoolArray) -> ArrayLike:
    """Next states with the state itself where an episode ended and nothing was logged: nobody looks at what stands there."""
    raw = raw_array(values)
    if raw.dtype.kind != "f" or raw.ndim not in (1, 2) or raw.size != states.size or len(raw) != len(states):
        return values
    filled = raw.reshape(states.shape)
    holes = np.isnan(filled).any(axis=1) & ended
    return np.where(holes[:, None], states, filled) if holes.any() else values


def action_column(values: ArrayLike) -> IntArray | FloatArray:
    """Indices of a finite set, or vectors."""
    raw = raw_array(values)
    if raw.dtype.kind in "iub" and raw.ndim == 1:
        if len(raw) and raw.min() < 0:
            raise InvalidRow(f"`actions` must be indices from 0. Got {int(raw.min())} in ", int(raw.argmin()), ".")
        if len(raw) and raw.max() >= MOST_ACTIONS:
            row = int(np.argmax(raw >= MOST_ACTIONS))
            raise InvalidRow(f"`actions` must be indices below {MOST_ACTIONS:,}. Got {int(raw[row])} in ", row, ".")
        return private_copy(raw, np.int64)
    if raw.ndim == 1 and len(raw):
        whole = raw.dtype.kind == "f" and bool(np.isfinite(raw).all() and (raw == np.round(raw)).all())
        hint = "; all are whole, so `.astype(int)` makes indices of them" if whole else ""
        raise InvalidInput(
            f"`actions` must be (n,) whole numbers for a finite action set, or (n, k) floats. Got (n,) of {raw.dtype}{hint}; "
            "for one-dimensional continuous actions give one column, shape (n, 1)."
        )
    return matrix(values, "actions")


def flag_column(values: ArrayLike, n: int) -> BoolArray:
    """Whether an episode ended at each row."""
    raw = raw_array(values)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != 1 or raw.dtype.kind not in "biuf":
        text = next((f" Got text, {str(each)[:20]!r} in row 0." for each in raw.flat[:1] if isinstance(each, str)), "")
        raise InvalidInput(f"`terminated` must be one True or False per row.{text}")
    wrong = ~np.isin(raw, (0, 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidRow(f"`terminated` must be one True or False per row. Got {raw[row]} in ", row, ".")
    same_rows(n, raw, "terminated", "states")
    return np.array(raw, dtype=bool)


def label_column(values: ArrayLike, n: int) -> IntArray:
    """Episode labels as 0, 1, 2, ... in the order of first appearance."""
    raw = raw_array(values)
    if raw.dtype == object and raw.size and all(isinstance(label, str) for label in raw.flat):  # text in a column of a data frame
        raw = raw.astype(np.str_)
    if raw.ndim != 1 or raw.dtype.kind not in "iubUS":
        raise InvalidInput(f"`episodes` must be one whole number or text per row. Got {raw.dtype} of shape {raw.shape}.")
    same_rows(n, raw, "episodes", "states")
    _, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def probability_column(values: ArrayLike, n: int, densities: bool) -> FloatArray:
    """The logger's probabilities of its actions, or densities where actions are vectors."""
    given = vector(values, LOGGED)
    same_rows(n, given, LOGGED, "states")
    largest = LARGEST if densities else 1 + 1e-9  # more than rounding
    wrong = (given <= 0) | (given > largest)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "the density of the logged action, which is positive" if densities else "that of the logged action, in (0, 1]"
        raise InvalidRow(f"`{LOGGED}` must be {what}. Got {given[row]:g} in ", row, ".")
    return given
