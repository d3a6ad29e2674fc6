"""A first answer from a log that is read in parts: its first rows choose, the others bound."""

from __future__ import annotations

import os
from dataclasses import replace

from ..arguments import checked
from ..defaults.choosing import Stages, choose_recipe, unseen
from ..defaults.recipe import ClassKind, Recipe
from ..errors import InvalidInput
from ..io.scanning import TransitionScan
from ..kernels.kernel import Gaussian, Kernel
from ..kernels.random_features import RandomFeatureKernel
from ..problem.contradictions import check_data
from ..problem.problem import Question
from ..problem.statements import Status
from ..radii.accounting import split_delta
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..statistics.engines.engine import AnyEngine
from ..statistics.engines.streams import stream_engine, used_for_stream
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import locating
from ..validation import probability_level
from .first_answer import STATISTIC
from .interval import Interval
from .log_begun import first_rows_of
from .streamed import pass_over, refuse_unstreamed, state_of
from .streamed_rows import streamed_interval

CHOICE_ROWS = 100_000
"""A fifth of so many first rows choose: more would hardly choose better, and are held in memory."""

FREQUENCIES = 256
"""Of the random features that stand for a Gaussian test kernel."""


@checked
def stream_value(
    scan: TransitionScan,
    question: Question,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    *,
    recipe: Recipe | None = None,
    within: float | None = None,
    neural: bool | None = None,
    stages: Stages | None = None,
    engine: AnyEngine = "auto",
    resume: str | os.PathLike[str] | None = None,
) -> Interval:
    """`bound_value` without a class or a kernel, for a log that is read in parts.

    The earliest fifth of the first 100,000 rows chooses, as `bound_value` does; all later rows bound, in one pass. Random
    features stand for the Gaussian test kernel, which keeps every guarantee.

    Parameters
    ----------
    scan : TransitionScan
        The log, from `scan_transitions`, in the order of generation.
    question : Question
        Start states, policy and assumptions.
    radius : str
        The radius by name.
    delta : float
        Failure probability of the two-sided statement.
    recipe : Recipe, optional
        What was chosen before on these first rows.
    within : float, optional
        How near Q is asserted to be to the fit, as a share of the range of values; 0.1 by default.
    neural : bool, optional
        Whether to train features; by default where torch is installed and there are rows enough.
    stages : callable, optional
        Called with the name of every stage; what it returns, if anything, with the fraction done.
    engine : engine, "auto" or "rows"
        Who reads and sums the later rows, as in `bound_stream`; the first ones are read, and choose, in this process.
    resume : path, optional
        A .npz file in which the pass is kept while it runs, as in `bound_stream`; the first rows choose again, and the same.

    Returns
    -------
    Interval

    Raises
    ------
    InvalidInput
        Where something needs all rows at once, the first rows do not show what decides the value, or a row contradicts the
        assumptions: it is named with its file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> question = aope.Question(mdp.starts, mdp.policy, aope.Assumptions(discount=0.6, reward_range=(0, 1)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in range(3):
    ...         data = mdp.sample(np.random.default_rng(day), trajectories=40)
    ...         aope.save_transitions(data, Path(folder) / f"day-{day}.parquet")
    ...     interval = aope.stream_value(aope.scan_transitions(folder), question, neural=False)
    >>> interval.recipe.earlier_rows, interval.count, mdp.value in interval
    (1200, 4800, True)
    """
    stage, rule = stages or unseen, radius_rule(radius)
    refuse_unstreamed(question, rule)
    level, by = probability_level(delta), stream_engine(engine, scan)
    state = state_of(resume, by)
    if state is not None:
        state.check_log(scan)
    head = first_rows_of(scan, CHOICE_ROWS)
    with locating(scan, 0, len(head)):
        check_data(head, question.assumptions)
    problem = question.on(head)
    chosen = choose_recipe(problem, within=within, neural=neural, stages=stages) if recipe is None else recipe
    facts = chosen.later(problem).assumptions
    if chosen.kind is ClassKind.NONE:
        raise InvalidInput(f"{scan.name}: {chosen.statements()[-1]} Give `features` and `kernel` to `bound_stream`.")
    kernel, later = streamed_kernel(chosen.kernel), scan.after(chosen.earlier_rows)
    asked = [
        StreamQuestion(replace(question, assumptions=facts), features, kernel, chosen.estimate) for features in chosen.classes
    ]
    split = split_delta(level, start_is_exact=question.starts.exact)
    rows = pass_over(later, asked, rule, split, chosen=chosen.choice, progress=stage(STATISTIC), engine=by, state=state)
    stage("bounding")
    alone = rows if len(rows) == 1 or rows[0].doubted else rows[:1]
    interval = streamed_interval(alone, rule, split)
    if len(alone) < len(rows) and interval.outcome is Status.INCONSISTENT:
        interval = streamed_interval(rows, rule, split)
    if state is not None:
        state.remove()
    return replace(interval, recipe=replace(chosen, kernel=kernel), engine=used_for_stream(engine))


def streamed_kernel(kernel: Kernel) -> Kernel:
    """Of finite rank: random features in place of a Gaussian kernel."""
    if not isinstance(kernel, Gaussian):
        return kernel
    widths = kernel.bandwidth.tolist()
    return RandomFeatureKernel(FREQUENCIES, tuple(widths) if isinstance(widths, list) else widths)
