"""Where a state is terminal: inside a box, outside one, or where a function says so."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray, describe, frozen, raw_array


class Cover(NamedTuple):
    """What a region and boxes have in common, box by box.

    Attributes
    ----------
    certain : array (n,) of bool
        The box lies wholly inside the region.
    possible : array (n,) of bool
        The box touches the region.
    """

    certain: BoolArray
    possible: BoolArray


@runtime_checkable
class RegionRule(Protocol):
    """A set of states that can say what it has in common with boxes."""

    @property
    def dimension(self) -> int | None:
        """How many columns states have; None where any number will do."""
        ...

    def contains(self, states: FloatArray) -> ArrayLike:
        """States (n, d) -> (n,) of bool."""
        ...

    def covers(self, low: FloatArray, high: FloatArray) -> tuple[ArrayLike, ArrayLike]:
        """Boxes (n, d), (n, d) -> (certain, possible), both (n,) of bool."""
        ...


@dataclass(frozen=True)
class Inside:
    """The closed box low <= s <= high."""

    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def dimension(self) -> int:
        return len(self.lows)

    def contains(self, states: FloatArray) -> BoolArray:
        return np.asarray(((states >= self.lows) & (states <= self.highs)).all(axis=1))

    def covers(self, low: FloatArray, high: FloatArray) -> Cover:
        return Cover(
            certain=np.asarray(((low >= self.lows) & (high <= self.highs)).all(axis=1)),
            possible=np.asarray(((high >= self.lows) & (low <= self.highs)).all(axis=1)),
        )


@dataclass(frozen=True)
class Outside:
    """The complement of a closed box: low <= s <= high fails in some coordinate."""

    box: Inside

    @property
    def dimension(self) -> int:
        return self.box.dimension

    def contains(self, states: FloatArray) -> BoolArray:
        return ~self.box.contains(states)

    def covers(self, low: FloatArray, high: FloatArray) -> Cover:
        inside = self.box.covers(low, high)
        return Cover(certain=~inside.possible, possible=~inside.certain)


@dataclass(frozen=True)
class Where:
    """A function of the states, which knows nothing of boxes unless a second function does."""

    function: Callable[[FloatArray], ArrayLike]
    boxes: Callable[[FloatArray, FloatArray], tuple[ArrayLike, ArrayLike]] | None

    @property
    def dimension(self) -> None:
        return None

    def contains(self, states: FloatArray) -> ArrayLike:
        return self.function(states)

    def covers(self, low: FloatArray, high: FloatArray) -> tuple[ArrayLike, ArrayLike]:
        if self.boxes is not None:
            return self.boxes(low, high)
        certain, possible = np.zeros(len(low), dtype=bool), np.ones(len(low), dtype=bool)
        point = (low == high).all(axis=1)  # a box of one state: the function itself decides
        if point.any():
            certain[point] = possible[point] = _flags(self.function(low[point]), int(point.sum()), "terminal_region")
        return certain, possible


@checked
@dataclass(frozen=True)
class TerminalRegion:
    """The set of terminal states: an episode ends exactly when its next state lies in it.

    Made by `TerminalRegion.inside`, `.outside` or `.where`. Boxes are closed and may have infinite sides: a pole that falls where
    |angle| > 0.2 ends `outside` of -0.2 <= angle <= 0.2; a walk that ends where x >= 1 ends `inside` of 1 <= x <= inf.

    Parameters
    ----------
    name : str
        How a premise names it: "A state is terminal exactly when it lies ...".
    rule : RegionRule
        Whether it contains states, and what it has in common with boxes.

    Raises
    ------
    InvalidInput
        Where there is no name; when asked for, where the rule does not answer with one True or False per row.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import TerminalRegion
    >>> fallen = TerminalRegion.outside([-np.inf, -0.2], [np.inf, 0.2])
    >>> fallen.contains(np.array([[5.0, 0.1], [0.0, 0.3]])).tolist()
    [False, True]
    >>> reach = np.array([[-1.0, 0.1], [-1.0, 0.25]]), np.array([[1.0, 0.3], [1.0, 0.4]])
    >>> certain, possible = fallen.covers(*reach)
    >>> certain.tolist(), possible.tolist()
    ([False, True], [True, True])
    """

    name: str
    rule: RegionRule

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidInput("`name` of TerminalRegion must not be empty: premises name the region.")

    def __repr__(self) -> str:
        return f"TerminalRegion({self.name})"

    @classmethod
    @checked
    def inside(cls, lows: ArrayLike, highs: ArrayLike) -> TerminalRegion:
        """Terminal where low <= s <= high in every coordinate; sides may be infinite."""
        box = _box(lows, highs)
        return cls(f"inside {_sides(box)}", box)

    @classmethod
    @checked
    def outside(cls, lows: ArrayLike, highs: ArrayLike) -> TerminalRegion:
        """Terminal where low <= s <= high fails in some coordinate; sides may be infinite."""
        box = _box(lows, highs)
        return cls(f"outside {_sides(box)}", Outside(box))

    @classmethod
    @checked
    def where(
        cls,
        function: Callable[[FloatArray], ArrayLike],
        covers: Callable[[FloatArray, FloatArray], tuple[ArrayLike, ArrayLike]] | None = None,
        *,
        name: str,
    ) -> TerminalRegion:
        """Terminal where a function of the states (n, d) says so, with (n,) of bool.

        covers: (low, high), both (n, d) and possibly infinite -> (certain, possible), both (n,) of bool: whether the region holds
        all of the box, and whether it holds some of it. Where that is hard to say, certain is False and possible is True. Without
        `covers` every row may end, except where the box is a single state, at which the function decides.
        """
        return cls(f'in the region "{name}"', Where(function, covers))

    @property
    def dimension(self) -> int | None:
        """How many columns states have; None where any number will do."""
        return self.rule.dimension

    def contains(self, states: FloatArray) -> BoolArray:
        """Which states (n, d) are terminal."""
        self._refuse_columns(states)
        return _flags(self.rule.contains(states), len(states), "terminal_region")

    def covers(self, low: FloatArray, high: FloatArray) -> Cover:
        """Which boxes (n, d), (n, d) lie wholly inside the region, and which touch it."""
        self._refuse_columns(low)
        answer = self.rule.covers(low, high)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InvalidInput(f"`covers` of the terminal region must answer with (certain, possible). Got {describe(answer)}.")
        certain, possible = (_flags(part, len(low), "covers") for part in answer)
        if (certain & ~possible).any():
            row = int(np.argmax(certain & ~possible))
            raise InvalidInput(f"`covers` of the terminal region says of row {row} that an end is certain and not possible.")
        return Cover(certain, possible)

    def _refuse_columns(self, states: FloatArray) -> None:
        if self.dimension not in (None, states.shape[1]):
            raise InvalidInput(f"`terminal_region` has {self.dimension} dimensions, states have {states.shape[1]}.")


def _flags(answer: Any, count: int, name: str) -> BoolArray:
    """What a function answered, if it is one True or False per row."""
    raw = raw_array(answer)
    if raw.dtype != bool or raw.shape != (count,):
        raise InvalidInput(f"`{name}` must answer with one True or False per row, shape ({count},). Got {describe(answer)}.")
    return np.asarray(frozen(raw))


def _box(lows: ArrayLike, highs: ArrayLike) -> Inside:
    low, high = _side(lows, "lows"), _side(highs, "highs")
    if len(low) != len(high) or any(a > b for a, b in zip(low, high, strict=True)):
        raise InvalidInput("`lows` and `highs` of a terminal region must be of equal length, with low <= high everywhere.")
    if any(a == math.inf or b == -math.inf for a, b in zip(low, high, strict=True)):
        raise InvalidInput("`lows` and `highs` of a terminal region must leave some state in the box.")
    return Inside(low, high)


def _side(values: ArrayLike, name: str) -> tuple[float, ...]:
    raw = raw_array(values)
    if raw.dtype.kind not in "fiu" or raw.ndim != 1 or len(raw) == 0 or np.isnan(raw).any():
        raise InvalidInput(f"`{name}` of a terminal region must be one number per state column. Got {describe(values)}.")
    return tuple(float(x) for x in raw)


def _sides(box: Inside) -> str:
    return " x ".join(f"[{low:g}, {high:g}]" for low, high in zip(box.lows, box.highs, strict=True))
