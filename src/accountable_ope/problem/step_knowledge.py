"""What is known of a single step: where it can lead, where it ends, and how far chance moves the prospects.

These are functions of (s, a), which no file can hold: they stand beside `Assumptions`, which are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import LARGEST, FloatArray, describe, frozen, raw_array
from .assumptions import Assumptions
from .terminal_region import TerminalRegion
from .transitions import Transitions

Actions = Any
"""(n,) indices or (n, k) vectors; a function may be written for the kind that its log has."""
SAME = 1e-9
"""Answers of a function that differ by less, relative to their size, are the same but for rounding."""


class Boxes(NamedTuple):
    """A box per row.

    Attributes
    ----------
    low, high : array (n, d)
        Its sides, possibly infinite.
    """

    low: FloatArray
    high: FloatArray


@checked
@dataclass(frozen=True)
class StepKnowledge:
    """What is known of a single step, as functions of (s, a) that were written down before the data.

    Functions get all rows at once and must answer for each row by its own state and action alone: states (n, d), and actions as
    `Transitions` holds them, (n,) indices or (n, k) vectors.

    Parameters
    ----------
    terminal_region : TerminalRegion, optional
        A state is terminal, and worth 0, exactly when it lies in this region.
    reach : callable, optional
        (states, actions) -> (low, high), both (n, d) and possibly infinite: given (s, a), the next state lies in this box, also a
        terminal one. With a terminal region it decides which rows end for certain, which may end, and which cannot.
    one_step_range : callable, optional
        (states, actions) -> (n,) positive numbers b(s, a), infinite where nothing is known: given (s, a), chance moves
        r + discount V(s') by at most this much. One number for all rows is `Assumptions(one_step_range=...)`; the smaller counts.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> knowledge = aope.StepKnowledge(
    ...     terminal_region=aope.TerminalRegion.inside([3.0], [np.inf]),
    ...     reach=lambda states, actions: (states - 1, states + 1),
    ... )
    >>> data = aope.Transitions([0.0, 2.5, 4.0], [0, 0, 0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0], [False, False, True])
    >>> low, high = knowledge.boxes(data)
    >>> high.ravel().tolist()
    [1.0, 3.5, 5.0]
    """

    terminal_region: TerminalRegion | None = None
    reach: Callable[[FloatArray, Actions], tuple[ArrayLike, ArrayLike]] | None = None
    one_step_range: Callable[[FloatArray, Actions], ArrayLike] | None = None

    @property
    def given(self) -> bool:
        """Whether anything is known."""
        return not (self.terminal_region is None and self.reach is None and self.one_step_range is None)

    def boxes(self, data: Transitions) -> Boxes | None:
        """Where the next state of every row must lie; None where no reach is declared."""
        if self.reach is None:
            return None
        found = _boxes(self.reach(data.states, data.actions), data.states.shape)
        states, actions = data.states[-1:], data.actions[-1:]
        _same_alone(np.hstack(found)[-1:], np.hstack(_boxes(self.reach(states, actions), states.shape)), "reach")
        return found

    def step_ranges(self, data: Transitions) -> FloatArray:
        """b(s, a) at every row, infinite where none is declared."""
        if self.one_step_range is None:
            return np.full(len(data), np.inf)
        found = _ranges(self.one_step_range(data.states, data.actions), len(data))
        _same_alone(found[-1:], _ranges(self.one_step_range(data.states[-1:], data.actions[-1:]), 1), "one_step_range")
        return found

    def complete(self, assumptions: Assumptions) -> Assumptions:
        """The same assumptions, told that a terminal region means terminal states, whether or not one was logged."""
        if self.terminal_region is None or assumptions.terminates:
            return assumptions
        if assumptions.terminates is False:
            raise InvalidInput("`terminates=False` contradicts a `terminal_region`, which means that episodes can end.")
        return replace(assumptions, terminates=True)


NOTHING_KNOWN = StepKnowledge()


def _boxes(answer: Any, shape: tuple[int, ...]) -> Boxes:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise InvalidInput(f"`reach` must answer with a pair (low, high). Got {describe(answer)}.")
    sides = []
    for side in answer:
        raw = raw_array(side)
        if raw.dtype.kind not in "fiu" or raw.shape != shape:
            raise InvalidInput(
                f"`reach` must answer with (low, high), both numbers of the shape of the states, {shape}. Got {raw.dtype} of "
                f"shape {raw.shape}."
            )
        sides.append(np.asarray(frozen(raw.astype(np.float64))))
    low, high = sides
    wrong = ~((low <= high) & (low < np.inf) & (high > -np.inf)).all(axis=1)  # NaN is not <= anything
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(
            f"`reach` must have low <= high, and holds no state in row {row}: low {low[row].tolist()}, high {high[row].tolist()}."
        )
    return Boxes(low, high)


def _ranges(answer: Any, count: int) -> FloatArray:
    raw = raw_array(answer)
    if raw.dtype.kind not in "fiu" or raw.shape != (count,):
        raise InvalidInput(
            f"`one_step_range` must answer with one number per row, shape ({count},). Got {raw.dtype} of shape {raw.shape}."
        )
    wrong = ~(raw >= 1 / LARGEST)  # NaN is not >= anything
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"`one_step_range` must be positive at every (s, a). Got {raw[row]:g} in row {row}.")
    return np.asarray(frozen(raw.astype(np.float64)))


def _same_alone(among_all: FloatArray, alone: FloatArray, name: str) -> None:
    """A range that depends on other rows is no range: it would know what comes later."""
    with np.errstate(invalid="ignore"):  # inf - inf
        apart = np.abs(among_all - alone) > SAME * np.maximum(1.0, np.abs(alone))
    if (apart | (np.isinf(among_all) & (among_all != alone))).any():
        raise InvalidInput(
            f"`{name}` must answer for every row by its own state and action: asked for the last row alone, it answered "
            "differently than among all rows."
        )
