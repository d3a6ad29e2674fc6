"""From what a pass over a log left behind to the interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..problem.problem import Problem
from ..radii.accounting import DeltaSplit
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.doubts import TestedClass, all_doubted
from ..radii.no_cut import NoCut
from ..radii.passed_rows import PassedRows
from ..radii.registry import RadiusRule
from ..statistics.bellman import BellmanSystem
from ..statistics.estimates import QColumns
from ..statistics.examiner import ClassTests, Examiner
from ..statistics.partial import PartialStatistic
from ..statistics.stream_question import StreamQuestion
from ..verification.record import DataRecord
from .cross_fitted import showing_rows
from .ends import ClassEnds, class_ends, single_threaded
from .evaluation import Evaluation
from .interval import Interval
from .members import class_member


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Rows that have gone by.

    Attributes
    ----------
    problem : Problem
        The question, of those rows that are at hand.
    question : StreamQuestion
    sums : PartialStatistic
        Over all rows.
    system : BellmanSystem
        With no rows, but for those of the value box.
    passed : PassedRows
    record : DataRecord
        What names all rows.
    examiner : Examiner or None
        Tests the class.
    no_cut : NoCut or None
    anchor : QColumns or None
        The estimate at those rows that are at hand.
    chosen : Choice
        When class and kernel were chosen.
    copied : int
        How many of all rows are copies of earlier ones, where these are too many.
    """

    problem: Problem
    question: StreamQuestion
    sums: PartialStatistic
    system: BellmanSystem
    passed: PassedRows
    record: DataRecord
    examiner: Examiner | None = None
    no_cut: NoCut | None = None
    anchor: QColumns | None = None
    chosen: Choice = BEFORE_THE_DATA
    copied: int = 0

    def ends(self, rule: RadiusRule, delta: float, planned: int) -> ClassEnds:
        """What the class contributes; planned: the number of rows at which it is tightest."""
        asked, statistic = self.question, self.sums.statistic()
        anchored = self.anchor is not None
        member = class_member(self.problem, asked.kernel, asked.function_class, self.system, statistic, anchored=anchored)
        member = replace(member, examiner=self.examiner, no_cut=self.no_cut, passed=self.passed)
        with single_threaded():
            return class_ends(member, rule, delta, planned)

    @property
    def doubted(self) -> bool:
        """Whether tests speak against the class, or against its ball; that does not depend on the radius."""
        norm = self.problem.assumptions.norm_bound
        tests = ClassTests(self.examiner, norm if isinstance(norm, float) else None)
        return all_doubted([TestedClass(repr(self.question.function_class), tests.specification, tests.norm)], 0.0)


def streamed_interval(
    classes: Sequence[StreamedRows], rule: RadiusRule, split: DeltaSplit, *, planned: int | None = None
) -> Interval:
    """The hull of classes of one log; planned: for rows that grow, fixed before them."""
    first = classes[0]
    problem, asked, rows = first.problem, first.question, first.record.rows
    evaluation = Evaluation(
        problem,
        asked.kernel,
        tuple(each.question.function_class for each in classes),
        tuple(each.system for each in classes),
        tuple(each.sums.statistic() for each in classes),
        first.anchor,
        first.chosen,
    )
    size = rows if planned is None else planned
    setting = evaluation.setting(size, growing=planned is not None)
    showing = showing_rows(problem, rows) if first.anchor is not None and first.chosen.around_a_fit else 0
    found = replace(setting.circumstances, copied_rows=first.copied, showing_rows=showing)
    setting = replace(setting, data=first.record, circumstances=found)
    ends = [each.ends(rule, split.kernel, size) for each in classes]
    return replace(evaluation.interval(ends, rule, split, setting), count=rows)
