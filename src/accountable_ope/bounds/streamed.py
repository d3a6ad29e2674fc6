"""Intervals of logs that are read in parts, and of sums that were added up: the rows need not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..classes.ranges import residual_range
from ..errors import InvalidInput
from ..io.scanning import TransitionScan
from ..kernels.products import Progress
from ..problem.fingerprint import Fingerprint
from ..problem.logged_starts import Sightings, continuous
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..radii.accounting import DeltaSplit, split_delta
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.cut import CutQuestion, CutRun, begin_cut
from ..radii.earlier_rows import block_edges
from ..radii.no_cut import NoCut, why_no_cut
from ..radii.registry import DEFAULT_RADIUS, KERNEL_SHARE, Approach, RadiusRule, radius_rule
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.estimates import q_columns
from ..statistics.examiner import Examiner
from ..statistics.streaming import StreamQuestion, located_columns
from ..validation import probability_level, whole
from ..verification.record import DataRecord
from .ends import class_ends, single_threaded
from .evaluation import Evaluation
from .interval import Interval
from .members import class_member
from .stream_pass import Passed, StreamPass
from .unfit import refuse_unfit

HEAD = 20_000
"""So many first rows are held in memory: they choose the weights of the cut, and test the class."""

MEMORY = 2**27
"""Bytes for columns of rows that have gone by."""


@checked
def bound_stream(
    scan: TransitionScan,
    question: StreamQuestion,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    *,
    memory: int = MEMORY,
    progress: Progress | None = None,
) -> Interval:
    """The interval of a log that is read once, in parts, in memory that does not grow with it.

    It is that of the same rows in memory, up to rounding and to two things. Columns of the rows are kept only as far as `memory`
    allows; residuals of the others are bounded by their leverage, which is valid and a little wider. And the class is tested on
    the first 20,000 rows.

    Parameters
    ----------
    scan : TransitionScan
        The log, from `scan_transitions`, in the order of generation.
    question : StreamQuestion
        Start states, policy, assumptions, class and test kernel, all fixed before the data.
    radius : str
        The radius by name; those that need all rows at once are refused.
    delta : float
        Failure probability of the two-sided statement.
    memory : int
        Bytes for columns of rows that have gone by.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Interval
        With its certificate; what would bound the same rows again (fragility, sensitivity) is not there.

    Raises
    ------
    InvalidInput
        Where something needs all rows at once, which is said before any is read, or a row contradicts the assumptions: it is
        named with its file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm)
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in range(3):
    ...         data = mdp.sample(np.random.default_rng(day), trajectories=20)
    ...         aope.save_transitions(data, Path(folder) / f"day-{day}.parquet")
    ...     interval = aope.bound_stream(aope.scan_transitions(folder), question)
    >>> interval.count, mdp.value in interval, interval.check().valid
    (3000, True, True)
    """
    rule = radius_rule(radius)
    whole(memory, "memory", least=0)
    _refuse(question, rule)
    split = split_delta(probability_level(delta), start_is_exact=question.question.starts.exact)
    log = _Log.of(scan, question, rule, split, BEFORE_THE_DATA)
    keep = memory // (8 * (log.first.dimension + 3))
    passing = StreamPass(log.question, log.first, scan.rows, log.run, keep)
    name, sightings = Fingerprint(), Sightings(question.question.starts.states, continuous=continuous(log.problem.data))
    left_out, at = 0, 0
    for batch in scan:
        log.refuse_new_end(scan, at, batch)
        passing.take(located_columns(scan, at, batch, log.question))
        batch.name_in(name, None if batch.episodes is None else batch.episode_numbers)
        sightings.add(batch)
        left_out = max(left_out, batch.left_out)
        at += len(batch)
        if progress is not None:
            progress(at / scan.rows)
    against = log.against
    if against is None and sightings.read_off:
        against = NoCut.STARTS
    record = DataRecord(scan.rows, name.hexdigest(), question.question.starts.sha256)
    return log.interval(passing.done(), rule, split, against, record, left_out)


def _refuse(question: StreamQuestion, rule: RadiusRule) -> None:
    """Raise where something needs all rows at once."""
    facts, what = question.question.assumptions, ""
    if rule.approach in (Approach.SELF_NORMALIZED, Approach.BOOTSTRAP):
        what = f"`radius` {rule.name}"
    elif question.question.knowledge.given:
        what = "What is known of single steps (`knowledge`)"
    elif facts.misfit:
        what = "`misfit`"
    elif facts.horizon is not None:
        what = "`horizon`"
    if what:
        raise InvalidInput(f"{what} needs all rows at once: load them with `load_transitions`, or leave it out.")


@dataclass(frozen=True, eq=False)
class _Log:
    """A log whose first rows are in memory, and what was fixed by them.

    problem:  the question, of the first rows.
    question: the same for the pass, with what the first rows say of ends of episodes.
    first:    the system of the first rows.
    run:      makes weights of the cut.
    against:  what stands against a cut.
    chosen:   when class and kernel were chosen.
    """

    problem: Problem
    question: StreamQuestion
    first: BellmanSystem
    run: CutRun | None
    against: NoCut | None
    chosen: Choice

    @classmethod
    def of(cls, scan: TransitionScan, asked: StreamQuestion, rule: RadiusRule, split: DeltaSplit, chosen: Choice) -> _Log:
        """Reads the first rows."""
        edges = block_edges(scan.rows, len(asked.subject.objective))
        head = _head(scan, max(HEAD, *edges[:1]))
        problem = asked.question.on(head)
        refuse_unfit([rule], (asked.function_class,), asked.kernel, problem)
        facts = replace(asked.question.assumptions, terminates=problem.terminates)
        question = replace(asked, question=replace(asked.question, assumptions=facts))
        anchor = None if asked.anchor is None else q_columns(asked.anchor, problem.experience, question.reference)
        first = bellman_system(problem.experience, asked.function_class, anchor, question.reference)
        anchored = asked.anchor is not None and not chosen.estimate
        against = why_no_cut(problem, asked.function_class, anchored=anchored, growing=False)
        if against is NoCut.STARTS and problem.starts.fixed:
            against = None  # whether they were read off the log, all rows will tell
        run = None
        if rule.cut and against is None and edges:
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
        return cls(problem, question, first, run, against, chosen)

    def refuse_new_end(self, scan: TransitionScan, at: int, batch: Transitions) -> None:
        """Raise where an episode ends, nothing was declared about that, and the first rows do not show it."""
        declared = self.problem.assumptions.terminates is not None
        if not declared and not self.problem.terminates and batch.terminated.any():
            row = scan.where(at + int(np.argmax(batch.terminated)))
            raise InvalidInput(
                f"{scan.name}: {row} is terminated, and none of the first {len(self.problem.data)} rows is. What can be said of "
                "values depends on that, and must be known before the pass: declare `terminates=True`."
            )

    def interval(
        self, passed: Passed, rule: RadiusRule, split: DeltaSplit, against: NoCut | None, record: DataRecord, left_out: int
    ) -> Interval:
        """The interval of all rows."""
        asked, statistic = self.question, passed.sums.statistic()
        examiner = Examiner(asked.kernel, self.first)
        evaluation = Evaluation(
            self.problem,
            asked.kernel,
            (asked.function_class,),
            (passed.system,),
            (statistic,),
            chosen=self.chosen,
            examiners=(examiner,),
        )
        member = class_member(
            self.problem, asked.kernel, asked.function_class, passed.system, statistic, anchored=asked.anchor is not None
        )
        member = replace(member, examiner=examiner, no_cut=against, passed=passed.rows)
        with single_threaded():
            ends = class_ends(member, rule, split.kernel, record.rows)
        setting = evaluation.setting(record.rows)
        circumstances = replace(setting.circumstances, left_out=left_out)
        setting = replace(setting, data=record, circumstances=circumstances)
        return replace(evaluation.interval([ends], rule, split, setting), count=record.rows)


def _head(scan: TransitionScan, rows: int) -> Transitions:
    """The first rows, whole parts of the log."""
    parts: list[Transitions] = []
    have = 0
    for batch in scan:
        parts.append(batch)
        have += len(batch)
        if have >= rows:
            break
    labeled = all(part.episodes is not None for part in parts)
    recorded = [part.behavior_probability for part in parts if part.behavior_probability is not None]
    found = Transitions(
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.actions for part in parts]),
        np.concatenate([part.rewards for part in parts]),
        np.concatenate([part.next_states for part in parts]),
        np.concatenate([part.terminated for part in parts]),
        np.concatenate([part.episode_numbers for part in parts]) if labeled else None,
        np.concatenate(recorded) if len(recorded) == len(parts) else None,
    )
    return found if len(found) <= rows else found.rows(slice(0, rows))
