"""From what a pass over a log left behind to the interval."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..problem.problem import Problem
from ..radii.accounting import DeltaSplit
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.no_cut import NoCut
from ..radii.passed_rows import PassedRows
from ..radii.registry import RadiusRule
from ..statistics.bellman import BellmanSystem
from ..statistics.estimates import QColumns
from ..statistics.examiner import Examiner
from ..statistics.partial import PartialStatistic
from ..statistics.streaming import StreamQuestion
from ..verification.record import DataRecord
from .ends import class_ends, single_threaded
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
    left_out : int
        Rows of the log without a next state.
    chosen : Choice
        When class and kernel were chosen.
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
    left_out: int = 0
    chosen: Choice = BEFORE_THE_DATA

    def interval(self, rule: RadiusRule, split: DeltaSplit) -> Interval:
        """Of all rows."""
        problem, asked, system, rows = self.problem, self.question, self.system, self.record.rows
        statistic, anchored = self.sums.statistic(), self.anchor is not None
        member = class_member(problem, asked.kernel, asked.function_class, system, statistic, anchored=anchored)
        member = replace(member, examiner=self.examiner, no_cut=self.no_cut, passed=self.passed)
        with single_threaded():
            ends = class_ends(member, rule, split.kernel, rows)
        classes = (asked.function_class,)
        evaluation = Evaluation(problem, asked.kernel, classes, (system,), (statistic,), self.anchor, self.chosen)
        setting = evaluation.setting(rows)
        facts = replace(setting.circumstances, left_out=self.left_out)
        setting = replace(setting, data=self.record, circumstances=facts)
        return replace(evaluation.interval([ends], rule, split, setting), count=rows)
