"""Intervals of logs that are read in parts, and of sums that were added up: the rows need not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..classes.ranges import residual_range
from ..errors import InvalidInput
from ..io.scanning import TransitionScan
from ..kernels.products import Progress
from ..problem.contradictions import check_data
from ..problem.fingerprint import Fingerprint
from ..problem.logged_starts import Sightings, continuous
from ..problem.problem import Problem
from ..problem.transitions import Transitions
from ..radii.accounting import DeltaSplit, split_delta
from ..radii.cut import CutQuestion, CutRun, begin_cut
from ..radii.earlier_rows import block_edges
from ..radii.no_cut import NoCut, why_no_cut
from ..radii.passed_rows import PassedRows
from ..radii.registry import DEFAULT_RADIUS, KERNEL_SHARE, Approach, RadiusRule, radius_rule
from ..statistics.bellman import BellmanSystem, bellman_system
from ..statistics.estimates import QColumns, q_columns
from ..statistics.examiner import Examiner
from ..statistics.partial import PartialStatistic
from ..statistics.streaming import StreamQuestion, located_columns, locating
from ..validation import probability_level, whole
from ..verification.record import DataRecord
from .interval import Interval
from .stream_pass import StreamPass, box_moments
from .streamed_rows import StreamedRows
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
    >>> interval.count, mdp.value in interval, interval.check()
    (3000, True, True)
    """
    rule = radius_rule(radius)
    whole(memory, "memory", least=0)
    _refuse(question, rule)
    split = split_delta(probability_level(delta), start_is_exact=question.question.starts.exact)
    log = _Log.of(scan, question, rule, split)
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
    passed = passing.done()
    tested = len(log.first.target)
    streamed = StreamedRows(
        problem=log.problem,
        question=log.question,
        sums=passed.sums,
        system=passed.system,
        passed=passed.rows,
        record=DataRecord(scan.rows, name.hexdigest(), question.question.starts.sha256),
        examiner=Examiner(question.kernel, log.first, tested if tested < scan.rows else None),
        no_cut=NoCut.STARTS if log.against is None and sightings.read_off else log.against,
        anchor=log.anchor,
        left_out=left_out,
    )
    return streamed.interval(rule, split)


@checked
def bound_sums(
    sums: PartialStatistic, question: StreamQuestion, part: Transitions, radius: str = DEFAULT_RADIUS, delta: float = 0.1
) -> Interval:
    """The interval from sums over the rows, added up from parts that are not at hand any more.

    Without the rows there is no cut, no step in the data is known to be smaller than what was declared, and the class cannot be
    tested: the interval is wider than that of `bound_stream`. That no row is in two parts, and that the number of rows was not
    chosen by looking at them, is up to the caller.

    Parameters
    ----------
    sums : PartialStatistic
        Over all rows, from `partial_statistic`.
    question : StreamQuestion
        What they were summed for.
    part : Transitions
        Some of these rows, such as those of the last night: at their points Q is held in its range.
    radius : str
        The radius by name.
    delta : float
        Failure probability of the two-sided statement.

    Returns
    -------
    Interval

    Raises
    ------
    InvalidInput
        Where the sums are of another question, or the radius needs more than sums.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm)
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> nights = [mdp.sample(np.random.default_rng(night), trajectories=40) for night in range(3)]
    >>> total = sum(aope.partial_statistic(night, question) for night in nights)
    >>> mdp.value in aope.bound_sums(total, question, nights[-1])
    True
    """
    rule = radius_rule(radius)
    _refuse(question, rule)
    question.subject.refuse_other(sums.subject)
    problem = question.question.on(part)
    facts = problem.assumptions
    if facts.terminates is None and sums.ended and not problem.terminates:
        problem = problem.assuming(replace(facts, terminates=True))
    refuse_unfit([rule], (question.function_class,), question.kernel, problem)
    if sums.count < len(part):
        raise InvalidInput(f"`part` must be among the {sums.count} rows of the sums. It has {len(part)} rows.")
    anchor = None if question.anchor is None else q_columns(question.anchor, problem.experience, question.reference)
    system = bellman_system(problem.experience, question.function_class, anchor, question.reference)
    streamed = StreamedRows(
        problem=problem,
        question=question,
        sums=sums,
        system=replace(system.first(0), box_moments=box_moments(sums, question)),
        passed=PassedRows(system.residuals[:0], system.target[:0]),
        record=DataRecord(sums.count, "", question.question.starts.sha256),
        no_cut=NoCut.SUMS,
        anchor=anchor,
    )
    return streamed.interval(rule, split_delta(probability_level(delta), start_is_exact=problem.start_is_exact))


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
    anchor:   the estimate at the first rows.
    """

    problem: Problem
    question: StreamQuestion
    first: BellmanSystem
    run: CutRun | None
    against: NoCut | None
    anchor: QColumns | None

    @classmethod
    def of(cls, scan: TransitionScan, asked: StreamQuestion, rule: RadiusRule, split: DeltaSplit) -> _Log:
        """Reads the first rows."""
        edges = block_edges(scan.rows, len(asked.subject.objective))
        head = _head(scan, max(HEAD, *edges[:1]))
        with locating(scan, 0, len(head)):
            check_data(head, asked.part_question.assumptions)
        problem = asked.question.on(head)
        refuse_unfit([rule], (asked.function_class,), asked.kernel, problem)
        facts = replace(asked.question.assumptions, terminates=problem.terminates)
        question = replace(asked, question=replace(asked.question, assumptions=facts))
        anchor = None if asked.anchor is None else q_columns(asked.anchor, problem.experience, question.reference)
        first = bellman_system(problem.experience, asked.function_class, anchor, question.reference)
        against = why_no_cut(problem, asked.function_class, anchored=asked.anchor is not None, growing=False)
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
        return cls(problem, question, first, run, against, anchor)

    def refuse_new_end(self, scan: TransitionScan, at: int, batch: Transitions) -> None:
        """Raise where an episode ends, nothing was declared about that, and the first rows do not show it."""
        declared = self.problem.assumptions.terminates is not None
        if not declared and not self.problem.terminates and batch.terminated.any():
            row = scan.where(at + int(np.argmax(batch.terminated)))
            raise InvalidInput(
                f"{scan.name}: {row} is terminated, and none of the first {len(self.problem.data)} rows is. What can be said of "
                "values depends on that, and must be known before the pass: declare `terminates=True`."
            )


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
