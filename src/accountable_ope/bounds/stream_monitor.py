"""Monitoring without keeping the rows: with a kernel of finite rank a new batch adds to sums, and may then be forgotten.

The first rows stay in memory, as many as are asked for: at their points Q is held in its range, they test the class, and the
largest residuals in the data are looked for among them. Of all later rows the leverage bounds the residuals (see `stream_pass`).
While all rows are among the first the intervals are those of `Monitor`; so they are later, with a radius that looks at no row.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..io.files import load_arrays, save_arrays
from ..io.shelf import Shelf
from ..io.shown import Drawn, Shown
from ..problem.contradictions import check_data
from ..problem.copies import CopyFinder
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..radii.accounting import split_delta
from ..radii.no_cut import why_no_cut
from ..radii.passed_rows import PassedRows
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.examiner import Examiner
from ..statistics.partial import PartialStatistic
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import batch_columns, sums_of
from ..validation import probability_level, whole
from ..verification.record import DataRecord
from .looks import Decision, Look, MonitorReport, first_decision, look_at, running_ends
from .monitor import joined_rows, looks_from, refuse_growing, words_of
from .stream_pass import Leverage, box_moments
from .streamed import refuse_unstreamed
from .streamed_rows import StreamedRows, streamed_interval

KEPT = 20_000
"""So many first rows are kept, unless a number is given."""

WHAT = "the state of a monitor that keeps sums"

COPIES = ("numbers", "last", "prints", "at", "times")

_STORED = ("agreed", "sha256", "looks", "words", "largest", "rewards", "states", "actions", "next_states", "terminated")


@dataclass(frozen=True, eq=False)
class _Taken:
    """The first rows with their system, the sums over all rows, the largest sqrt(K) h of those that are gone, and which rows
    came again.
    """

    head: Transitions
    first: BellmanSystem
    sums: PartialStatistic
    largest: float
    copies: CopyFinder


@checked
class StreamMonitor(Shown, Drawn):
    """Bounds for one question while its data grow, in memory that does not. A batch that is refused changes nothing.

    Parameters
    ----------
    question : StreamQuestion
        Start states, policy, assumptions, class and test kernel, fixed before the data; without an anchor.
    radius : str
        A radius that holds at all times at once.
    delta : float
        Failure probability of all intervals together.
    planned : int
        The number of rows at which the intervals are to be tightest; they are valid at all others too.
    keep : int
        So many first rows are kept; the others are gone once they are summed.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=20, terminates=False)
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> monitor = aope.StreamMonitor(question, planned=500, keep=100)
    >>> for night in range(2):
    ...     report = monitor.update(mdp.sample(np.random.default_rng(night), trajectories=4))
    >>> monitor
    StreamMonitor(400 rows in 2 updates, 100 of them kept, radius='certified', planned=500)
    """

    def __init__(
        self,
        question: StreamQuestion,
        *,
        radius: str = DEFAULT_RADIUS,
        delta: float = 0.1,
        planned: int,
        keep: int = KEPT,
    ) -> None:
        rule = radius_rule(radius)
        refuse_unstreamed(question.question, rule)
        refuse_growing(rule, question.question, (question.function_class,))
        if question.anchor is not None:
            raise InvalidInput("`question` of a monitor must have no anchor.")
        self.question, self.radius, self.delta = question, radius, probability_level(delta)
        self.planned, self.kept_rows = whole(planned, "planned", least=1), whole(keep, "keep", least=2)
        self._taken: _Taken | None = None
        self._looks: tuple[Look, ...] = ()

    def __repr__(self) -> str:
        kept = 0 if self._taken is None else len(self._taken.head)
        return (
            f"StreamMonitor({len(self)} rows in {len(self._looks)} updates, {kept} of them kept, radius={self.radius!r}, "
            f"planned={self.planned})"
        )

    def __len__(self) -> int:
        return 0 if self._taken is None else self._taken.sums.count

    @property
    def history(self) -> tuple[Look, ...]:
        """All looks so far, the first one first."""
        return self._looks

    @checked
    def decided(self, threshold: float) -> Decision | None:
        """When it became certain that the value is at least the threshold, or below it; None while it is not."""
        return first_decision(self._looks, threshold)

    @checked
    def update(self, batch: Transitions, label: str = "") -> MonitorReport:
        """Take in new rows, which follow those before in the order of generation, and bound the value from all of them."""
        began = time.perf_counter()
        taken = self._with(batch)
        rule = radius_rule(self.radius)
        split = split_delta(self.delta, start_is_exact=self.question.question.starts.exact)
        interval = streamed_interval([self._streamed(taken)], rule, split, planned=self.planned)
        before = self._looks[-1] if self._looks else None
        lower, upper, status = running_ends(before, interval)
        seconds = time.perf_counter() - began
        look = look_at(interval, (lower, upper, status), seconds, label)
        self._taken, self._looks = taken, (*self._looks, look)
        return MonitorReport(interval.count, interval, lower, upper, status, seconds)

    def _with(self, batch: Transitions) -> _Taken:
        """The rows with those of the batch; the monitor itself is not changed."""
        asked, before = self.question, self._taken
        check_data(batch, asked.question.assumptions)
        rows = batch_columns(batch, asked)
        sums = sums_of(rows, asked)
        if before is None:
            head = joined_rows(batch.rows(slice(0, self.kept_rows)), None)
            first, largest, kept = self._system(self._problem(head)), 0.0, len(head)
        else:
            sums = before.sums + sums
            kept = min(self.kept_rows - len(before.head), len(batch))
            if kept == 1:
                kept = 0  # rows are at least two, or gone
            head, first, largest = before.head, before.first, before.largest
            if kept:
                head = joined_rows(head, batch.rows(slice(0, kept)))
                first = self._system(self._problem(head))
        if kept < len(batch):
            columns = np.column_stack([rows.residuals, rows.target])[kept:]
            scale = np.sqrt(asked.kernel.diagonal(rows.points[kept:]))
            # The first rows are complete now, and with them the metric: it never changes again.
            largest = max(largest, float((scale * Leverage.of(first).at(columns)).max()))
        copies = CopyFinder() if before is None else before.copies.copy()
        copies.take(batch)
        return _Taken(head, first, sums, largest, copies)

    def _problem(self, head: Transitions) -> Problem:
        return self.question.question.on(head)

    def _system(self, problem: Problem) -> BellmanSystem:
        return bellman_system(problem.experience, self.question.function_class, reference=self.question.reference)

    def _streamed(self, taken: _Taken) -> StreamedRows:
        first, sums, asked = taken.first, taken.sums, self.question
        problem = self._problem(taken.head.having_left_out(sums.left_out))
        gone = sums.count > len(taken.head)
        scale = np.sqrt(asked.kernel.diagonal(first.points))
        return StreamedRows(
            problem=problem,
            question=asked,
            sums=sums,
            system=replace(first.first(0), box_moments=box_moments(sums, asked)),
            passed=PassedRows(
                first.residuals,
                first.target,
                scale=np.append(scale, taken.largest) if gone else scale,
                others=Leverage.of(first).quadratic if gone else None,
            ),
            record=DataRecord(sums.count, "", asked.question.starts.sha256),
            examiner=Examiner(asked.kernel, first, len(taken.head) if gone else None),
            no_cut=why_no_cut(problem, asked.function_class, anchored=False, growing=True),
            copied=taken.copies.found().doubted,
        )

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as .npz, atomically.

        Its size does not grow with the rows, but for one line per update, and up to six megabytes of windows of rows, by which
        copies of them are known.
        """
        if self._taken is None:
            raise InvalidInput("There is nothing to save before the first update.")
        shelf, head = Shelf(), self._taken.head
        for name in ("rewards", "states", "actions", "next_states", "terminated"):
            shelf.put(name, getattr(head, name))
        self._taken.sums.keep(shelf.within("sums"))
        shelf.put("largest", self._taken.largest)
        for name, array in self._taken.copies.arrays.items():
            shelf.within("copies").put(name, array)
        shelf.put("looks", np.array([(look.count, *look.now, look.lower, look.upper, look.seconds) for look in self._looks]))
        shelf.put("words", words_of(self._looks))
        shelf.put("agreed", np.array(self._agreed(self._taken.first)))
        shelf.put("sha256", np.array(shelf.sha256))
        save_arrays(path, shelf.arrays)

    @classmethod
    @checked
    def load(
        cls,
        path: str | os.PathLike[str],
        question: StreamQuestion,
        *,
        radius: str = DEFAULT_RADIUS,
        delta: float = 0.1,
        planned: int,
        keep: int = KEPT,
    ) -> StreamMonitor:
        """Read what `save` wrote, to go on with it: everything but the path must be as it was, and is compared."""
        monitor = cls(question, radius=radius, delta=delta, planned=planned, keep=keep)
        arrays = load_arrays(path, WHAT, _STORED)
        said = str(arrays.pop("sha256"))
        try:
            if Shelf(arrays).sha256 != said:
                raise ValueError("its numbers are not those that were written")
            old, new = arrays["agreed"].tolist(), monitor._restore(arrays)
            if len(old) != len(new):
                raise ValueError(f"it was made with {len(old)} things fixed, where there are {len(new)}")
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise InvalidFile(f"{os.fspath(path)} is not {WHAT} ({error}).") from error
        for one, other in zip(old, new, strict=True):
            if one != other:
                raise InvalidInput(
                    f"{os.fspath(path)} was made with {one}. Got {other}: what was fixed at first cannot be changed."
                )
        return monitor

    def _restore(self, arrays: dict[str, Any]) -> list[str]:
        """Take over a saved state; what it would be called now."""
        shelf = Shelf(arrays)
        head = Transitions(*(arrays[name] for name in ("states", "actions", "rewards", "next_states", "terminated")))
        first = self._system(self._problem(head))
        agreed = self._agreed(first)
        if agreed == arrays["agreed"].tolist():  # else the sums are of something else
            sums = PartialStatistic.kept(shelf.within("sums"), self.question.subject)
            largest = shelf.number("largest")
            if not 0 <= largest < np.inf:
                raise ValueError(f"its largest leverage is {largest}")
            seen = shelf.within("copies")
            copies = CopyFinder.of_arrays(*(seen.whole(name, None) for name in COPIES))
            self._taken, self._looks = _Taken(head, first, sums, largest, copies), looks_from(arrays)
        return agreed

    def _agreed(self, first: BellmanSystem) -> list[str]:
        """In words, what must not change; policy and features by what they are at the first rows."""
        asked, facts = self.question, self.question.question.assumptions
        digest = hashlib.sha256()
        for each in (first.points, first.residuals, first.objective):
            digest.update(np.ascontiguousarray(np.round(each, 9) + 0.0).tobytes())
        return [
            *(f"{field.name} {getattr(facts, field.name)!r}" for field in fields(facts)),
            f"kernel {asked.subject.kernel}",
            f"features {asked.subject.features} ({asked.subject.fingerprint[:12]})",
            f"radius {self.radius}",
            f"delta {self.delta!r}",
            f"planned {self.planned}",
            f"keep {self.kept_rows}",
            f"start states {asked.question.starts.sha256[:12]}",
            f"policy and features that are {digest.hexdigest()[:12]} at the first rows",
        ]
