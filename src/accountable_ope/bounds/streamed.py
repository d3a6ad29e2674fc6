"""Intervals of logs that are read in parts, and of sums that were added up: the rows need not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..errors import InvalidInput
from ..io.ahead import ahead
from ..io.scanning import TransitionScan
from ..kernels.products import Progress, part_of
from ..problem.fingerprint import Fingerprint
from ..problem.logged_starts import Sightings, continuous
from ..problem.problem import Question
from ..problem.transitions import Transitions
from ..radii.accounting import DeltaSplit, split_delta
from ..radii.choice import BEFORE_THE_DATA, Choice
from ..radii.earlier_rows import block_edges
from ..radii.no_cut import NoCut
from ..radii.passed_rows import PassedRows
from ..radii.registry import DEFAULT_RADIUS, Approach, RadiusRule, radius_rule
from ..statistics.bellman import bellman_system
from ..statistics.engines.engine import AnyEngine
from ..statistics.engines.streams import StreamEngine, stream_engine, summing, used_for_stream
from ..statistics.estimates import q_columns
from ..statistics.examiner import Examiner
from ..statistics.partial import PartialStatistic
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import BatchColumns, located_columns, sums_of
from ..validation import probability_level, whole
from ..verification.record import DataRecord
from .interval import Interval
from .log_begun import LogBegun, first_rows_of
from .stream_pass import StreamPass, box_moments
from .stream_state import Resumable, StreamState, asked_of, keeping
from .streamed_rows import StreamedRows, streamed_interval
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
    engine: AnyEngine = "auto",
    resume: str | os.PathLike[str] | None = None,
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
    engine : engine, "auto" or "rows"
        Who reads and sums the rows: this process ("auto", "rows"), or a cluster such as `aope.engines.Dask(...)`. Its workers
        must find the files under the same paths. What needs the order of rows, the weights of the cut above all, is made by this
        process even then, and `Interval.engine` says so.
    resume : path, optional
        A .npz file in which the pass is kept while it runs; removed when the interval is there. Where it exists, the pass goes on
        from it, and gives the same interval to the last bit. One of another question or of a log that has changed is refused.

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
    refuse_unstreamed(question.question, rule)
    split = split_delta(probability_level(delta), start_is_exact=question.question.starts.exact)
    whole(memory, "memory", least=0)
    by = stream_engine(engine, scan)
    state = state_of(resume, by)
    rows = pass_over(scan, [question], rule, split, memory=memory, progress=progress, engine=by, state=state)
    interval = streamed_interval(rows, rule, split)
    if state is not None:
        state.remove()
    return replace(interval, engine=used_for_stream(engine))


def state_of(resume: str | os.PathLike[str] | None, engine: StreamEngine | None) -> StreamState | None:
    """Where a pass is kept, None where it is not; refused where others make the sums."""
    if resume is not None and engine is not None:
        raise InvalidInput("`resume` keeps sums of this process: leave it out with a cluster, which survives its workers.")
    return None if resume is None else StreamState(resume)


def pass_over(
    scan: TransitionScan,
    questions: Sequence[StreamQuestion],
    rule: RadiusRule,
    split: DeltaSplit,
    *,
    chosen: Choice = BEFORE_THE_DATA,
    memory: int = MEMORY,
    progress: Progress | None = None,
    engine: StreamEngine | None = None,
    state: StreamState | None = None,
    watch: Watch | None = None,
) -> tuple[StreamedRows, ...]:
    """One pass for several classes; questions: alike but for the class.

    engine: who makes the sums meanwhile, None: this pass. state: where it is kept, and goes on from. watch: sees the rows, too,
    as the first class does.
    """
    whole(memory, "memory", least=0)
    if state is not None:
        state.check_log(scan)
    most = max(len(each.subject.objective) for each in questions)
    head = first_rows_of(scan, max([HEAD, *block_edges(scan.rows, most)[:1]]))
    logs = [LogBegun.of(scan, head, each, rule, split, chosen) for each in questions]
    passing = [
        StreamPass(log.question, log.first, scan.rows, log.run, memory // (8 * len(logs) * (log.first.dimension + 3)))
        for log in logs
    ]
    starts = questions[0].question.starts
    name, sightings = Fingerprint(), Sightings(starts.states, continuous=continuous(head))
    copies = scan.copy_finder()
    kept_in_file = [*passing] if watch is None else [*passing, watch]
    done = 0 if state is None else state.resume(asked_of(scan, logs, rule, split, chosen, memory), kept_in_file)
    with (
        threadpool_limits(limits=1, user_api="blas"),  # two threads share the work, and small products gain nothing by more
        keeping(state, kept_in_file, name, done) as kept,
        summing(engine, scan, [log.question for log in logs]) as elsewhere,
    ):
        for batch, summed in ahead(_summed(scan, logs, done, here=elsewhere is None)):
            with kept.part(len(batch)):
                for (columns, sums), each in zip(summed, passing, strict=bool(summed)):
                    each.pass_by(columns)
                    if sums is not None:
                        each.add(sums)
                if watch is not None and summed:
                    watch.take(batch, summed[0][0])
                batch.name_in(name, None if batch.episodes is None else batch.episode_numbers)
                sightings.add(batch)
                copies.take(batch)
            if progress is not None:
                read = kept.rows / scan.rows
                progress(read if elsewhere is None else 0.5 * (read + elsewhere.look()))
        if elsewhere is not None:
            for each, total in zip(passing, elsewhere.result(part_of(progress, 0.5, 1.0)), strict=True):
                each.add(total)
    record, tested = DataRecord(scan.rows, name.hexdigest(), starts.sha256), len(head)
    found = [each.done() for each in passing]
    copied = max(copies.found().doubted, scan.copies.doubted)
    return tuple(
        StreamedRows(
            problem=log.problem,
            question=log.question,
            sums=passed.sums,
            system=passed.system,
            passed=passed.rows,
            record=record,
            examiner=Examiner(log.question.kernel, log.first, tested if tested < scan.rows else None),
            no_cut=NoCut.STARTS_SEEN if log.against is None and sightings.read_off else log.against,
            anchor=log.anchor,
            chosen=chosen,
            copied=copied,
        )
        for log, passed in zip(logs, found, strict=True)
    )


class Watch(Resumable, Protocol):
    """Sees every row of a pass."""

    def take(self, batch: Transitions, rows: BatchColumns) -> None:
        """The next rows, and the same as a class sees them."""
        ...


def _summed(
    scan: TransitionScan, logs: Sequence[LogBegun], passed: int, *, here: bool
) -> Iterator[tuple[Transitions, list[tuple[BatchColumns, PartialStatistic | None]]]]:
    """Every part of the log, as each class sees it, with its sums unless others make them: what needs no row before.

    passed: so many first rows were summed before, and are not looked at.
    """
    at = 0
    for batch in scan:
        if at < passed:
            yield batch, []
        else:
            logs[0].refuse_new_end(scan, at, batch)
            found = [(log.question, located_columns(scan, at, batch, log.question)) for log in logs]
            yield batch, [(columns, sums_of(columns, question) if here else None) for question, columns in found]
        at += len(batch)


@checked
def bound_sums(
    sums: PartialStatistic, question: StreamQuestion, part: Transitions, radius: str = DEFAULT_RADIUS, delta: float = 0.1
) -> Interval:
    """The interval from sums over the rows, added up from parts that are not at hand any more.

    Without the rows there is no cut, no step in the data is known to be smaller than what was declared, and the class cannot be
    tested: the interval is wider than that of `bound_stream`. Copies of rows are looked for in the `part` alone. That no row is
    in two parts, and that the number of rows was not chosen by looking at them, is up to the caller.

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
    refuse_unstreamed(question.question, rule)
    question.subject.refuse_other(sums.subject)
    problem = question.question.on(part.having_left_out(max(sums.left_out, part.left_out)))
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
        copied=part.copies.doubted,
    )
    split = split_delta(probability_level(delta), start_is_exact=problem.start_is_exact)
    return streamed_interval([streamed], rule, split)


def refuse_unstreamed(question: Question, rule: RadiusRule | None = None) -> None:
    """Raise where something needs all rows at once."""
    facts, what = question.assumptions, ""
    if rule is not None and rule.approach in (Approach.SELF_NORMALIZED, Approach.BOOTSTRAP):
        what = f"`radius` {rule.name}"
    elif question.knowledge.given:
        what = "What is known of single steps (`knowledge`)"
    elif facts.misfit:
        what = "`misfit`"
    elif facts.horizon is not None:
        what = "`horizon`"
    if what:
        raise InvalidInput(f"{what} needs all rows at once: load them with `load_transitions`, or leave it out.")
