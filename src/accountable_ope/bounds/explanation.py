"""Where an estimate is wrong, in the names of the log: places of the witness, and rows that one can look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arguments import checked
from ..problem.naming import Categories, Label
from ..problem.transitions import Transitions
from ..statistics.estimates import QColumns
from ..statistics.witness import Witness
from ..validation import FloatArray, IntArray

ROWS = 5
"""Rows that are shown."""
COLUMNS = 6
"""Columns of a state that a sentence names; of more, those in which it is farthest from the others."""

IS, MAY_BE = " the estimate is too", " the estimate may be too"
"""What sentences say of an estimate that is rejected, and of any other."""


@checked
@dataclass(frozen=True)
class SeenRow:
    """A logged row beside what the estimate says of it: residual = reward + onward - q.

    Attributes
    ----------
    row : int
        Which row of the data, from 0.
    state, next_state : tuple of float
        The next state is empty where the row is terminated.
    action : label or tuple of float
        By its name where it has one.
    reward : float
    q : float
        What the estimate says of state and action.
    onward : float
        The discounted mean of the estimate over the policy's actions at the next state, 0 where terminated.
    residual : float
        What the estimate lacks here: below 0 it promises more than what follows is worth by its own account.
    where : str
        State and action in words.
    """

    row: int
    state: tuple[float, ...]
    action: str | int | float | bool | tuple[float, ...]
    reward: float
    next_state: tuple[float, ...]
    q: float
    onward: float
    residual: float
    where: str

    def sentence(self, place: str | None = None) -> str:
        """In words; place: where the row is found, where that has another name."""
        onward = f" and then {self.onward:.4g} make {self.reward + self.onward:.4g}" if self.next_state else " and the end"
        return (
            f"{place or f'row {self.row}'}: {self.where}: the estimate says {self.q:.4g}, and a reward of {self.reward:.4g}"
            f"{onward} (residual {self.residual:+.3g})"
        )


@checked
@dataclass(frozen=True)
class Explanation:
    """The witness in the names of the log.

    Attributes
    ----------
    places : tuple of str
        State and action at the center of every region of the witness, largest first.
    sentences : tuple of str
        What the estimate does there.
    rows : tuple of SeenRow
        Those that contribute most to the loss.
    """

    places: tuple[str, ...]
    sentences: tuple[str, ...]
    rows: tuple[SeenRow, ...]

    def by_chance(self) -> Explanation:
        """The same of an estimate that is not rejected: chance alone may have made what it shows."""
        return replace(self, sentences=tuple(each.replace(IS, MAY_BE) for each in self.sentences))

    def text(self, place: Callable[[int], str] | None = None) -> str:
        """All of it; place: where a row of the data is found."""
        rows = [each.sentence(None if place is None else place(each.row)) for each in self.rows]
        return "\n".join([*self.sentences, "Rows to look at:", *(f"  {each}" for each in rows)])

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows with the estimate at them; numbers: which rows of the log they are, ascending, None for all of them."""

    data: Transitions
    estimate: QColumns
    numbers: IntArray | None = None

    def place(self, row: int) -> int:
        """Where a row of the log is among these."""
        return row if self.numbers is None else int(np.searchsorted(self.numbers, row))


def explanation(witness: Witness, seen: SeenRows, discount: float) -> Explanation:
    """What the witness of an estimate says of these rows."""
    data, anchor = seen.data, seen.estimate
    words = _Words(data)
    places = tuple(words.where(seen.place(region.row)) for region in witness.regions)
    sentences = tuple(
        f"Around {place}{IS} {'low' if region.witness > 0 else 'high'}, by {abs(region.mean_residual):.3g} per "
        f"step ({100 * region.share:.0f}% of the loss)."
        for region, place in zip(witness.regions, places, strict=True)
    )
    rows = []
    for row in witness.top_rows[:ROWS].tolist():
        index = seen.place(row)
        after = not bool(data.terminated[index])
        q, onward = float(anchor.at_data[index]), discount * float(anchor.at_next[index]) if after else 0.0
        reward = float(data.rewards[index])
        rows.append(
            SeenRow(
                row=row,
                state=tuple(data.states[index].tolist()),
                action=words.action(index),
                reward=reward,
                next_state=tuple(data.next_states[index].tolist()) if after else (),
                q=q,
                onward=onward,
                residual=reward + onward - q,
                where=words.where(index),
            )
        )
    return Explanation(places, sentences, tuple(rows))


@dataclass(frozen=True, eq=False)
class _Words:
    """Rows of a log in words."""

    data: Transitions

    @cached_property
    def usual(self) -> tuple[FloatArray, FloatArray]:
        """The median and the spread of every column of the states."""
        spread = self.data.states.std(axis=0)
        return np.median(self.data.states, axis=0), np.where(spread > 0, spread, np.inf)

    @cached_property
    def parts(self) -> list[tuple[int, int, Categories | str]]:
        """What the state is made of: columns of words, each with its columns of zeros and ones, and all others by name."""
        naming, width = self.data.naming, self.data.states.shape[1]
        words = {each.first: each for each in naming.categories}
        found: list[tuple[int, int, Categories | str]] = []
        column = 0
        while column < width:
            part = words.get(column, naming.state(column))
            stop = column + (len(part.words) if isinstance(part, Categories) else 1)
            found.append((column, stop, part))
            column = stop
        return found

    def action(self, row: int) -> Label | tuple[float, ...]:
        """By its name, its index, or its vector."""
        if self.data.finite_actions:
            return self.data.naming.action(int(self.data.actions[row]))
        return tuple(np.asarray(self.data.actions[row]).reshape(-1).tolist())

    def where(self, row: int) -> str:
        """State and action."""
        state, action = self.data.states[row], self.action(row)
        parts = self.parts
        if len(parts) > COLUMNS:
            middle, spread = self.usual
            far = np.abs(state - middle) / spread
            farthest = np.argsort([-far[first:stop].max() for first, stop, _ in parts], kind="stable")[:COLUMNS]
            parts = [parts[index] for index in sorted(farthest.tolist())]
        named = [_said(part, state) for part in parts]
        if len(parts) < len(self.parts):
            named.append("...")
        taken = f"({', '.join(f'{each:.4g}' for each in action)})" if isinstance(action, tuple) else str(action)
        return f"{', '.join(named)}, action {taken}"


def _said(part: tuple[int, int, Categories | str], state: FloatArray) -> str:
    """A column and its value: a word where it is exactly one, else numbers."""
    first, stop, what = part
    if not isinstance(what, Categories):
        return f"{what} {state[first]:.4g}"
    flags = state[first:stop]
    if np.count_nonzero(flags == 1) == 1 and np.count_nonzero(flags) == 1:
        return f"{what.name} {what.words[int(np.argmax(flags))]}"
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(what.columns, flags, strict=True))
