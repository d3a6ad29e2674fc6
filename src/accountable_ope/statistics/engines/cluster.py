"""Sums as tasks of Dask: the work of one task, and how the results of all are added.

Results are added along a tree that depends on their number alone, each with BLAS held to one thread, so neither the schedule nor
the number of workers moves a bit of the sum. What tasks need goes to the cluster inside of tasks and not as data: data that a
worker takes with it when it dies is gone, while a task is run again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ...errors import AopeError, InvalidInput
from ...io.scanning import TransitionScan
from ...kernels.kernel import FiniteRank, Kernel
from ...kernels.products import Progress, TileOptions
from ...validation import FloatArray
from ..partial import PartialStatistic
from ..stream_question import StreamQuestion
from ..streaming import located_statistic
from .finite_rank import reduce_pairs
from .growing import cross_sums
from .tiles import PairSums, pair_sums

UNIT = float(np.finfo(np.float64).eps)

BRANCHES = 8
"""So many sums are added by one task."""

MOST_PARTS = 1024
"""Tasks that read rows; each takes parts of the log that follow each other."""

BLOCK_ROWS = 4096
"""Rows of a block, at least: a task takes two blocks, and should take longer than it takes to be sent."""

MOST_BLOCKS = 64
"""So 2080 tasks at most, unless blocks became too large to be sent."""

BLOCK_BYTES = 2**23
"""Of points and columns of a block, at most; Dask warns of tasks that hold more than 10 MB."""

PATIENCE = 120.0
"""Seconds in which the first worker must come, once there is work for it."""


def row_sums(client: Any, scan: TransitionScan, question: StreamQuestion, progress: Progress | None) -> PartialStatistic:
    """The sums over all rows of a log, read by the workers."""
    tasks = Tasks(client)
    job = tasks.sent(_RowJob(scan.absolute(), question), "question")
    run = -(-len(scan.sizes) // MOST_PARTS)
    starts = range(0, len(scan.sizes), run)
    leaves = [tasks.add(_rows_of_parts, job, start, start + run) for start in starts]
    weights = [float(sum(scan.sizes[start : start + run])) for start in starts]
    found: PartialStatistic = tasks.total(leaves, weights, _sum_rows, progress)
    return replace(found, left_out=scan.left_out)


def cluster_pair_sums(
    client: Any, kernel: Kernel, points: FloatArray, columns: FloatArray, options: TileOptions | None, progress: Progress | None
) -> PairSums:
    """C'KC and C' diag(K) C: blocks of rows against blocks of rows, on or above the diagonal."""
    options = replace(options or TileOptions(), threads=1)
    if isinstance(kernel, FiniteRank):  # one pass over the rows takes less time than sending them
        return reduce_pairs(kernel, points, columns, options, progress)
    if options.device != "cpu":
        raise InvalidInput(f'`options` of sums on a cluster must have `device="cpu"`. Got {options.device!r}.')
    tasks = Tasks(client)
    job = tasks.sent(_PairJob(kernel, options), "kernel")
    rows = block_rows(len(points), 8 * (points.shape[1] + columns.shape[1]))
    slices = [slice(start, min(start + rows, len(points))) for start in range(0, len(points), rows)]
    blocks = [tasks.add(_Block, points[each], columns[each]) for each in slices]
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
    leaves = [tasks.add(_pairs_of_blocks, job, blocks[i], None if i == j else blocks[j]) for i, j in pairs]
    sizes = [each.stop - each.start for each in slices]
    weights = [sizes[i] * sizes[j] * (0.5 if i == j else 1.0) for i, j in pairs]
    del blocks
    # A tree rounds so often, each time by half a unit of the sum.
    roundings = (BRANCHES - 1) * levels(len(pairs))
    found: PairSums = tasks.total(leaves, weights, _sum_pairs, progress)
    return replace(found, kernel_error=found.kernel_error + 0.5 * UNIT * roundings * kernel.supremum)


def block_rows(rows: int, row_bytes: int) -> int:
    """Rows of a block; for one log the same on every cluster."""
    wanted = max(BLOCK_ROWS, -(-rows // MOST_BLOCKS))
    return max(min(wanted, BLOCK_BYTES // row_bytes), 1)


def levels(leaves: int) -> int:
    """How often sums are added until one is left."""
    found = 0
    while leaves > 1:
        leaves, found = -(-leaves // BRANCHES), found + 1
    return found


@dataclass(frozen=True)
class Tasks:
    """Tasks of one sum, with names of their own: two sums on one cluster share nothing."""

    client: Any
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    _count: list[int] = field(default_factory=lambda: [0])

    def add(self, work: Callable[..., Any], *arguments: Any, urgent: bool = False) -> Any:
        """A future of work(*arguments), in which futures stand for their results."""
        self._count[0] += 1
        key = f"aope{work.__name__}-{self.run}-{self._count[0]}"
        return self.client.submit(work, *arguments, key=key, priority=int(urgent))

    def sent(self, thing: Any, what: str) -> Any:
        """A future of something that all tasks need: functions travel with it, even those without a name."""
        cloudpickle = _cloudpickle()
        try:
            data = cloudpickle.dumps(thing)
        except Exception as error:  # whatever an object of a user raises while it is taken apart
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidInput(f"`{what}` cannot be sent to other processes: {reason}") from error
        return self.add(_loaded, data)

    def total(self, leaves: list[Any], weights: Sequence[float], plus: Callable[..., Any], progress: Progress | None) -> Any:
        """The sum of all leaves, which are let go of as they are finished; progress counts their weights."""
        level = leaves
        while len(level) > 1:  # urgent: sums take less room than what they are of
            level = [self.add(plus, *level[i : i + BRANCHES], urgent=True) for i in range(0, len(level), BRANCHES)]
        root = level[0]
        left = {leaf.key: leaf for leaf in leaves}
        number = {leaf.key: i for i, leaf in enumerate(leaves)}
        leaves.clear()
        try:
            self._follow(left, number, weights, progress)
            if root.exception() is not None:
                raise _reason(root)
            return root.result()
        finally:  # nobody wants these any more, so the scheduler drops what has not begun; tracebacks would keep them alive
            for future in (root, *left.values()):
                future.release()

    def _follow(self, left: dict[str, Any], number: dict[str, int], weights: Sequence[float], progress: Progress | None) -> None:
        """Wait for all leaves; of those that fail, the first in the order of rows says why."""
        from distributed import as_completed

        self._wait_for_a_worker()
        done, failed = 0.0, _Failure(len(number), None)
        for leaf in as_completed(list(left.values()), loop=self.client.loop):
            del left[leaf.key]
            if leaf.status != "finished":
                failed = min(failed, _Failure(number[leaf.key], _reason(leaf)), key=lambda each: each.number)
            if failed.error is not None and not any(number[key] < failed.number for key in left):
                raise failed.error
            done += weights[number[leaf.key]]
            if progress is not None:
                progress(min(done / sum(weights), 1.0))

    def _wait_for_a_worker(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise AopeError(f"The cluster has no worker, and none came within {PATIENCE:.0f} seconds.") from error


class _Failure(NamedTuple):
    """Which leaf failed, and why."""

    number: int
    error: BaseException | None


def _reason(leaf: Any) -> BaseException:
    """Why a task has no result, in a sentence where the cluster is to blame."""
    from distributed import KilledWorker

    if leaf.status == "cancelled":
        return AopeError("The cluster gave up the work before it was done: its scheduler was closed, or somebody cancelled it.")
    error: BaseException = leaf.exception()
    if isinstance(error, KilledWorker):
        return AopeError("Workers of the cluster died again and again at the same work, perhaps for lack of memory.")
    missing = _missing_module(error)
    if missing is not None and not isinstance(error, AopeError):
        return _not_importable(missing)
    return error


def _missing_module(error: BaseException | None) -> str | None:
    """The module that could not be imported, where this is behind an error."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return str(error.name)
        error = error.__cause__
    return None


def _not_importable(module: str) -> AopeError:
    return AopeError(
        f"A worker of the cluster cannot import {module}: workers need accountable-ope and all that policy, features and kernel "
        "import (`client.upload_file` sends a file)."
    )


def _cloudpickle() -> Any:
    import cloudpickle

    return cloudpickle


# What follows runs on workers.


class _RowJob(NamedTuple):
    scan: TransitionScan
    question: StreamQuestion


class _PairJob(NamedTuple):
    kernel: Kernel
    options: TileOptions


class _Block(NamedTuple):
    points: FloatArray
    columns: FloatArray


def _loaded(data: bytes) -> Any:
    """What `Tasks.sent` took apart, on this very cluster."""
    try:
        return _cloudpickle().loads(data)
    except ModuleNotFoundError as error:
        raise _not_importable(str(error.name)) from error


def _rows_of_parts(job: _RowJob, start: int, stop: int) -> PartialStatistic:
    """The sums over parts of the log that follow each other."""
    scan, question = job
    first = sum(scan.sizes[:start])
    total: PartialStatistic | None = None
    with one_blas_thread():
        for batch in scan.parts(start, stop):
            found = located_statistic(scan, first, batch, question)
            total = found if total is None else total + found
            first += len(batch)
    assert total is not None  # a part has rows
    return total


def _pairs_of_blocks(job: _PairJob, one: _Block, other: _Block | None) -> PairSums:
    """The sums over all pairs of two blocks, in both orders; None: of one block with itself."""
    with one_blas_thread():
        if other is None:
            return pair_sums(job.kernel, one.points, one.columns, job.options)
        cross = cross_sums(job.kernel, one.points, one.columns, other.points, other.columns, job.options)
    return PairSums(cross.gram + cross.gram.T, np.zeros_like(cross.gram), cross.kernel_error + 0.5 * UNIT * job.kernel.supremum)


def _sum_rows(*parts: PartialStatistic) -> PartialStatistic:
    return reduce(add, parts)


def _sum_pairs(*parts: PairSums) -> PairSums:
    return reduce(_plus, parts)


def _plus(one: PairSums, other: PairSums) -> PairSums:
    return PairSums(
        pair_gram=one.pair_gram + other.pair_gram,
        diag_gram=one.diag_gram + other.diag_gram,
        kernel_error=max(one.kernel_error, other.kernel_error),
    )


_lock = Lock()
_inside: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS held to one thread while any thread of this process is inside: a limit that another one lifts would move bits."""
    with _lock:
        _inside.append(threadpool_limits(limits=1, user_api="blas") if not _inside else None)
    try:
        yield
    finally:
        with _lock:
            limits = _inside[0]
            _inside.pop()
            if not _inside:
                limits.restore_original_limits()
