"""Diagnosis of an existing Q estimate on a log that is read in parts: is it consistent with the data, and where is it wrong?

The kernel loss of the estimate is v'Kv / n^2 or v'(K - D)v / (n (n - 1)), v its Bellman residuals, and with a kernel of finite
rank, K = Psi Psi', both are made of the sums Psi'v and v'Dv. So is the witness, f(x) = psi(x)'Psi'v / n.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checked
from ..errors import InvalidInput
from ..io.scanning import TransitionScan
from ..io.shelf import Shelf
from ..kernels.kernel import LabeledRank
from ..kernels.products import Progress
from ..problem.transitions import Transitions
from ..radii.accounting import split_delta
from ..radii.registry import DEFAULT_RADIUS, radius_rule
from ..statistics.estimates import AnyQ, QColumns
from ..statistics.smoothing import smoothed
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import BatchColumns
from ..statistics.witness import SmoothedRows, witness_from, witness_rows
from ..validation import FloatArray, probability_level
from .diagnosis import Diagnosis, EstimateSeen, diagnosed
from .explanation import SeenRows, explanation
from .possible import Reached, rounding_at
from .stream_state import StreamState
from .streamed import MEMORY, pass_over, refuse_unstreamed
from .streamed_rows import StreamedRows, streamed_interval

COLUMNS = ("states", "actions", "rewards", "next_states", "terminated")
"""What is kept of the rows of the witness."""


@checked
def diagnose_stream(
    q: AnyQ,
    scan: TransitionScan,
    question: StreamQuestion,
    radius: str = DEFAULT_RADIUS,
    delta: float = 0.1,
    *,
    memory: int = MEMORY,
    progress: Progress | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> Diagnosis:
    """`diagnose` for a log that is read once, in parts, in memory that does not grow with it.

    Parameters
    ----------
    q : callable or object with `predict_value`
        The estimate. It may have been fitted on the same data.
    scan : TransitionScan
        The log, from `scan_transitions`, in the order of generation.
    question : StreamQuestion
        Without an anchor: the class is estimate + features. The norm bound is on the true Q minus the estimate.
    radius, delta, memory, progress, resume
        As in `bound_stream`.

    Returns
    -------
    Diagnosis
        The verdict, the interval around the estimate, and the witness of where it is wrong.

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
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=20)
    >>> question = aope.StreamQuestion(
    ...     aope.Question(mdp.starts, mdp.policy, facts), mdp.features(), aope.RandomFeatureKernel(50)
    ... )
    >>> far_too_high = lambda states, actions: np.full(len(states), 8.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aope.save_transitions(mdp.sample(np.random.default_rng(0), trajectories=20), Path(folder) / "log.parquet")
    ...     aope.diagnose_stream(far_too_high, aope.scan_transitions(folder), question).verdict.name
    'REJECTED'
    """
    rule = radius_rule(radius)
    refuse_unstreamed(question.question, rule)
    if question.anchor is not None:
        raise InvalidInput("`question` must have no anchor: the class lies around the estimate `q`.")
    split = split_delta(probability_level(delta), start_is_exact=question.question.starts.exact)
    asked, watch = replace(question, anchor=q), EstimateWatch(scan.rows, question.reference)
    state = None if resume is None else StreamState(resume)
    rows = pass_over(scan, [asked], rule, split, memory=memory, progress=progress, state=state, watch=watch)
    found = diagnosed(streamed_interval(rows, rule, split), watch.seen(rows[0]))
    if state is not None:
        state.remove()
    return found


class EstimateWatch:
    """What goes by of an estimate: its least and largest values and residuals, squares, and the rows of the witness.

    count:     how many rows there are.
    reference: the constant from which columns of the estimate are counted.
    """

    def __init__(self, count: int, reference: float) -> None:
        self._count, self._reference, self._at = count, reference, 0
        self._rows = witness_rows(count)
        self._points: list[FloatArray] = []
        self._residuals: list[FloatArray] = []
        self._columns: list[tuple[NDArray[Any], ...]] = []
        self._estimates: list[FloatArray] = []  # Q, and its mean at next states
        self._squares = np.zeros(3)  # of rewards, of Q, and of its mean at next states
        self._ends, self._largest = np.array([np.inf, -np.inf]), 0.0

    @property
    def rows(self) -> int:
        """How many have gone by."""
        return self._at

    def take(self, batch: Transitions, rows: BatchColumns) -> None:
        """The next rows."""
        assert rows.anchor_here is not None and rows.anchor_after is not None
        here, after = rows.anchor_here + self._reference, rows.anchor_after[rows.live] + self._reference
        self._squares += [batch.rewards @ batch.rewards, here @ here, after @ after]
        values = np.concatenate([here, after])
        self._ends = np.array([min(self._ends[0], values.min()), max(self._ends[1], values.max())])
        self._largest = max(self._largest, float(np.abs(rows.target).max()))
        some = self._rows[slice(*np.searchsorted(self._rows, [self._at, self._at + len(batch)]))] - self._at
        self._points.append(rows.points[some])
        self._residuals.append(rows.target[some])
        self._columns.append(tuple(getattr(batch, name)[some] for name in COLUMNS))
        self._estimates.append(np.column_stack([rows.anchor_here, rows.anchor_after])[some] + self._reference)
        self._at += len(batch)

    def keep(self, shelf: Shelf) -> None:
        """Where it stands."""
        shelf.put("at", self._at)
        shelf.put("squares", self._squares)
        shelf.put("ends", self._ends)
        shelf.put("largest", self._largest)
        shelf.put("points", np.concatenate(self._points))
        shelf.put("residuals", np.concatenate(self._residuals))
        shelf.put("estimates", np.concatenate(self._estimates))
        for name in COLUMNS:
            shelf.put(name, self._column(name).astype(np.float64))
        shelf.put("indices", int(self._column("actions").dtype.kind in "iu"))

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept."""
        self._at = shelf.count("at")
        self._squares, self._ends, self._largest = shelf.floats("squares", 3), shelf.floats("ends", 2), shelf.number("largest")
        some = int(np.searchsorted(self._rows, self._at))
        self._points, self._residuals = [shelf.floats("points", some, None)], [shelf.floats("residuals", some)]
        self._estimates = [shelf.floats("estimates", some, 2)]
        states, vectors = shelf.floats("states", some, None), not shelf.count("indices")
        actions = shelf.floats("actions", some, None) if vectors else shelf.floats("actions", some).astype(np.int64)
        after = shelf.floats("next_states", some, states.shape[1])
        self._columns = [(states, actions, shelf.floats("rewards", some), after, shelf.floats("terminated", some) > 0)]

    def _column(self, name: str) -> NDArray[Any]:
        """Of the rows of the witness."""
        return np.concatenate([part[COLUMNS.index(name)] for part in self._columns])

    def seen(self, rows: StreamedRows) -> EstimateSeen:
        """What there is to say of the estimate; rows: what the pass left behind."""
        assert rows.anchor is not None
        kernel, discount = rows.question.kernel, rows.problem.assumptions.discount
        points, residuals = np.concatenate(self._points), np.concatenate(self._residuals)
        at_start = rows.anchor.at_start + self._reference
        rewards, here, after = np.sqrt(self._squares / self._count).tolist()
        assert isinstance(kernel, LabeledRank)
        sums = smoothed(rows.sums, kernel, points, np.eye(rows.sums.projected.shape[1])[:, -2:])  # of v and of 1
        witness = witness_from(SmoothedRows(self._rows, points, residuals, sums, self._count), kernel)
        here_and_after = np.concatenate(self._estimates)
        data = Transitions(*(self._column(name) for name in COLUMNS)).named(rows.problem.data.naming)
        estimate = QColumns(here_and_after[:, 0], here_and_after[:, 1], at_start)
        return EstimateSeen(
            estimate=rows.system.offset,
            witness=witness,
            largest_residual=self._largest,
            reached=Reached(
                float(min(self._ends[0], at_start.min())),
                float(max(self._ends[1], at_start.max())),
            ),
            rounding=rounding_at(rewards + here + discount * after, rows.sums.statistic().kappa),
            explanation=explanation(witness, SeenRows(data, estimate, self._rows), discount),
        )
