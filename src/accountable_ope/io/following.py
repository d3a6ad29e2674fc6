"""Next states that a log does not write down: the state of the following row of the same episode.

The last row of an episode that goes on has no following row, and so no next state: it is dropped. That is harmless where the log
was cut off for reasons that do not depend on what would have come next, and only there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..validation import BoolArray, FloatArray, IntArray, row_keys
from .times import Times

FEWEST_LINKS = 10
"""With fewer rows that have another one behind them nothing is said of their order."""

NEARLY_ALL = 0.9
"""So many rows must be linked the other way round, and all but so many not as they stand, before they are turned around."""


@dataclass(frozen=True, eq=False)
class Following:
    """Of every row, the following row of its episode.

    Attributes
    ----------
    next_row : array (n,) of int
        Its number; that of the row itself where there is none.
    known : array (n,) of bool
        Where there is one.
    """

    next_row: IntArray
    known: BoolArray

    @classmethod
    def of(cls, episodes: ArrayLike) -> Following:
        """Rows in the order of generation; those of different episodes may stand between each other."""
        labels = np.unique(np.asarray(episodes), return_inverse=True)[1].reshape(-1)
        order = np.argsort(labels, kind="stable")
        next_row, known = np.arange(len(labels)), np.zeros(len(labels), dtype=bool)
        same = labels[order[1:]] == labels[order[:-1]]
        next_row[order[:-1][same]] = order[1:][same]
        known[order[:-1][same]] = True
        return cls(next_row, known)

    def kept(self, terminated: BoolArray) -> BoolArray:
        """Rows that can be used: those with a following row, and those that end their episode."""
        return np.asarray(self.known | terminated)

    def refuse_after_the_end(self, ended: BoolArray, flag: str, row: Callable[[int], str]) -> None:
        """Raise where an episode goes on behind a row that ends it or cuts it off."""
        wrong = self.known & ended
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InvalidInput(
                f"An episode must end where it is {flag}. {row(first).capitalize()} is {flag}, and its episode goes on "
                f"in {row(int(self.next_row[first]))}: sort the rows by time, or give every episode a label of its own."
            )

    def apart(self, row: Callable[[int], str]) -> str:
        """A sentence where rows of other episodes stand between rows of one here and there; empty where nowhere or mostly.

        Episodes that run side by side are mostly apart. Where few are, a label may have been given again.
        """
        links = np.flatnonzero(self.known)
        gaps = links[self.next_row[links] > links + 1]
        if not len(gaps) or 2 * len(gaps) >= len(links):
            return ""
        first = int(gaps[0])
        return (
            f"In {len(gaps):,} of {len(links):,} places rows of other episodes stand between two rows of one, first after "
            f"{row(first)}: if a label was used again, its episodes were taken for one, and a next state there is that of another"
        )

    def skipped(self, times: Times, row: Callable[[int], str]) -> str:
        """A sentence where a count of steps, as it mostly is, jumps within an episode; empty where it does not."""
        values = np.asarray(times.values)
        if values.dtype.kind not in "iuf":
            return ""
        links = np.flatnonzero(self.known & ~times.missing & ~times.missing[self.next_row])
        steps = values[self.next_row[links]].astype(np.float64) - values[links].astype(np.float64)
        wrong = links[steps > 1]
        if not len(wrong) or 2 * int((steps == 1).sum()) < len(links):
            return ""
        first, after = int(wrong[0]), int(self.next_row[wrong[0]])
        return (
            f"{times.name} mostly counts by 1, but jumps in {len(wrong):,} of {len(links):,} places, first from "
            f"{times.shown(first)} in {row(first)} to {times.shown(after)} in {row(after)}: a state several steps later is no "
            "next state"
        )

    def refuse_lost(self, kept: BoolArray, episodes: IntArray | None, row: Callable[[int], str]) -> None:
        """Raise where nothing is left of an episode: the start states of the others are no sample of all."""
        if episodes is None:
            return
        left = np.bincount(episodes, weights=kept)
        lost = np.flatnonzero(left == 0)
        if len(lost):
            first = int(np.argmax(episodes == lost[0]))
            raise InvalidInput(
                f"{len(lost)} {'episode has' if len(lost) == 1 else 'episodes have'} one row only, which goes on ({row(first)}): "
                "without its next state nothing would be left, and the start states of the others are no sample of all. Give "
                "columns of next states, or leave such episodes out if being cut off at once does not depend on where they began."
            )

    def refuse_backward(self, times: Times, row: Callable[[int], str]) -> None:
        """Raise where time goes backward within an episode."""
        values, missing = times.values, times.missing
        wrong = self.known & ~missing & ~missing[self.next_row] & (values[self.next_row] < values)
        if wrong.any():
            first = int(np.argmax(wrong))
            after = int(self.next_row[first])
            advice = "sort the rows, or ignore the column if it is no time"
            if times.clock:
                advice = (
                    "a time of day that starts again at midnight goes backward, so sort the rows and give dates, or ignore it"
                )
            raise InvalidInput(
                f"Rows of an episode must be in the order of time. {times.name} goes from {times.shown(first)} in "
                f"{row(first)} to {times.shown(after)} in {row(after)}: {advice}."
            )

    def refuse_steps(self, steps: FloatArray, labels: ArrayLike, row: Callable[[int], str]) -> None:
        """Raise where a step is missing between two rows of an episode or before its first one, or rows stand in another order.

        A state two steps later is no next state, so steps count by 1. Episodes begin at the same step, 0 or 1 or another one: of
        one that begins later the first rows are missing, unless one count goes on over all rows.
        """
        names = np.asarray(labels)
        wrong = self.known & (steps[self.next_row] - steps != 1)
        if wrong.any():
            first = int(np.argmax(wrong))
            after = int(self.next_row[first])
            what = "rows are missing between them" if steps[after] > steps[first] + 1 else "sort the rows by episode and step"
            if steps[first] < steps[after] < steps[first] + 1:
                what = "steps are counted by 1"
            raise InvalidInput(
                f"Rows of an episode must follow each other without gaps. In episode {names[first]} `step` goes from "
                f"{steps[first]:g} in {row(first)} to {steps[after]:g} in {row(after)}: {what}, or give columns of next states, "
                "or ignore the column if it counts something else."
            )
        begins = np.full(len(steps), True)
        begins[self.next_row[self.known]] = False
        begin = np.flatnonzero(begins)
        other = np.flatnonzero(steps[begin] != steps[begin[0]])
        if len(other) and not (np.diff(steps) == 1).all():
            first, later = (int(begin[0]), int(begin[other[0]]))
            if steps[first] > steps[later]:
                first, later = later, first
            raise InvalidInput(
                f"All episodes must begin at the same `step`. Episode {names[first]} begins with {steps[first]:g} in "
                f"{row(first)}, episode {names[later]} with {steps[later]:g} in {row(later)}: its first rows are missing, so "
                "that it begins at no start state. Leave such episodes out, or ignore the column if it counts something else."
            )


def order_finding(
    states: FloatArray, next_states: FloatArray, terminated: BoolArray, episodes: IntArray
) -> tuple[bool, str] | None:
    """Whether rows stand in the order of generation, as far as their states show it.

    Returns
    -------
    tuple or None
        None where next states are mostly the states of the following rows, or nobody can tell. Else whether the rows are shuffled
        or turned around for certain (their next states are states of *other* rows of the episode), and a sentence.
    """
    following = Following.of(episodes)
    behind = np.flatnonzero(following.known & ~terminated)
    if len(behind) < FEWEST_LINKS:
        return None
    here, there = row_keys(states), row_keys(next_states)
    follows = int((there[behind] == here[following.next_row[behind]]).sum())
    if 2 * follows >= len(behind):
        return None
    turned = int((here[behind] == there[following.next_row[behind]]).sum())
    if follows <= (1 - NEARLY_ALL) * len(behind) and turned >= NEARLY_ALL * len(behind):
        return True, (
            f"Only {follows} of {len(behind)} rows within episodes end where the following row starts, but {turned} start where "
            "it ends: `state` and `next_state` are swapped, or the rows of an episode stand in reverse order. Name the columns "
            "the other way round, or sort the rows by time"
        )
    # As multisets: every next state of an episode, but for the last one, is the state of one row of it, and of no second one.
    found = _in_common(states, next_states[~terminated], episodes, episodes[~terminated])
    seen = f"Only {follows} of {len(behind)} rows within episodes end where the following row starts"
    if found >= following.known.sum():
        return True, (
            f"{seen}, but {found} end where another row of the episode does: the rows are shuffled. Sort them by episode and "
            "time; without their order nothing is guaranteed"
        )
    return False, (
        f"{seen}: rows may be missing or shuffled, or `state` and `next_state` be in different units. What is guaranteed needs "
        "all rows in the order of generation"
    )


def _in_common(states: FloatArray, next_states: FloatArray, of_states: IntArray, of_next: IntArray) -> int:
    """How many next states have a row of their own in their episode."""
    here = row_keys(np.column_stack([of_states.astype(np.float64), states]))
    there = row_keys(np.column_stack([of_next.astype(np.float64), next_states]))
    keys, group = np.unique(np.concatenate([here, there]), return_inverse=True)
    group = group.reshape(-1)
    counts_here = np.bincount(group[: len(here)], minlength=len(keys))
    counts_there = np.bincount(group[len(here) :], minlength=len(keys))
    return int(np.minimum(counts_here, counts_there).sum())
