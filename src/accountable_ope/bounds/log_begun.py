"""The first rows of a log that is read in parts, in memory, and what they fix for the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..classes.ranges import residual_range
from ..errors import InvalidInput
from ..io.scanning import TransitionScan
from ..problem.contradictions import check_data
from ..problem.problem import Problem
from ..problem.transitions import Transitions, joined
from ..radii.accounting import DeltaSplit
from ..radii.choice import Choice
from ..radii.cut import CutQuestion, CutRun, begin_cut
from ..radii.no_cut import NoCut, why_no_cut
from ..radii.registry import KERNEL_SHARE, RadiusRule
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.estimates import QColumns, q_columns
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import locating
from .unfit import refuse_unfit


@dataclass(frozen=True, eq=False)
class LogBegun:
    """A log whose first rows are in memory, and what was fixed by them.

    problem:  the question, of the first rows.
    question: the same for the pass, with what the first rows say of ends of episodes.
    first:    the system of the first rows.
    run:      makes weights of the cut.
    against:  what stands against a cut.
    anchor:   the estimate at the first rows.
    """

    problem: Problem
    question: StreamQuestion
    first: BellmanSystem
    run: CutRun | None
    against: NoCut | None
    anchor: QColumns | None

    @classmethod
    def of(
        cls, scan: TransitionScan, head: Transitions, asked: StreamQuestion, rule: RadiusRule, split: DeltaSplit, chosen: Choice
    ) -> LogBegun:
        """From the first rows, with what a radius needs."""
        begun = cls.looked_at(scan, head, asked)
        problem, question, first, anchor = begun.problem, begun.question, begun.first, begun.anchor
        refuse_unfit([rule], (asked.function_class,), asked.kernel, problem)
        if anchor is not None and chosen.estimate:  # then weights of a cut may look at its residuals
            first = replace(first, rewards=first.target)
        anchored = anchor is not None and not chosen.estimate
        against = why_no_cut(problem, asked.function_class, anchored=anchored, growing=False)
        if against is NoCut.STARTS_SEEN:
            against = None  # whether they were read off the log, all rows will tell
        run = None
        if rule.cut and against is None:
            residuals = residual_range(
                asked.function_class,
                problem.policy,
                problem.assumptions,
                problem.ranges,
                terminates=problem.terminates,
                anchored=asked.anchor is not None,
                reference=first.reference,
            )
            norm = problem.assumptions.norm_bound
            if residuals.before_data > 0:
                share = (1 - KERNEL_SHARE) * split.kernel
                declared = norm if isinstance(norm, float) else None
                run = begin_cut(CutQuestion(first, asked.kernel, residuals.unit, share, declared), scan.rows)
        return cls(problem, question, first, run, against, anchor)

    @classmethod
    def looked_at(cls, scan: TransitionScan, head: Transitions, asked: StreamQuestion) -> LogBegun:
        """From the first rows, without a cut."""
        with locating(scan, 0, len(head)):
            check_data(head, asked.part_question.assumptions)
        problem = asked.question.on(head)
        facts = replace(asked.question.assumptions, terminates=problem.terminates)
        question = replace(asked, question=replace(asked.question, assumptions=facts))
        anchor = None if asked.anchor is None else q_columns(asked.anchor, problem.experience, question.reference)
        first = bellman_system(problem.experience, asked.function_class, anchor, question.reference)
        return cls(problem, question, first, None, None, anchor)

    def refuse_new_end(self, scan: TransitionScan, at: int, batch: Transitions) -> None:
        """Raise where an episode ends, nothing was declared about that, and the first rows do not show it."""
        declared = self.problem.assumptions.terminates is not None
        if not declared and not self.problem.terminates and batch.terminated.any():
            row = scan.where(at + int(np.argmax(batch.terminated)))
            raise InvalidInput(
                f"{scan.name}: {row} is terminated, and none of the first {len(self.problem.data)} rows is. What can be said of "
                "values depends on that, and must be known before the pass: declare `terminates=True`."
            )


def first_rows_of(scan: TransitionScan, rows: int) -> Transitions:
    """The first rows, whole parts of the log."""
    parts: list[Transitions] = []
    have = 0
    for batch in scan:
        parts.append(batch)
        have += len(batch)
        if have >= rows:
            break
    labeled = all(part.episodes is not None for part in parts)
    labels = [part.episode_numbers for part in parts] if labeled else None
    return joined(parts, labels, min(rows, have)).having_left_out(scan.left_out)
