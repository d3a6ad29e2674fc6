"""Sums as tasks of Dask: the work of one task, and how the results of all are added.

Every task holds BLAS to one thread, so neither the schedule nor the number of workers moves a bit of the sum.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from operator import add
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ...errors import InvalidFile, InvalidInput
from ...io.scanning import TransitionScan
from ...kernels.kernel import FiniteRank, Kernel
from ...kernels.products import Progress, TileOptions
from ...threads import threads_at_most
from ...validation import FloatArray
from ..partial import PartialStatistic
from ..stream_question import StreamQuestion
from ..streaming import located_statistic
from .finite_rank import reduce_pairs
from .growing import cross_sums
from .tasks import BRANCHES, Sum, Tasks, levels
from .tiles import PairSums, pair_sums

UNIT = float(np.finfo(np.float64).eps)

MOST_PARTS = 1024
"""Tasks that read rows; each takes parts of the log that follow each other."""

BLOCK_ROWS = 4096
"""Rows of a block, at least: a task takes two blocks, and should take longer than it takes to be sent."""

MOST_BLOCKS = 64
"""So 2080 tasks at most, unless blocks became too large to be sent."""

BLOCK_BYTES = 2**23
"""Of points and columns of a block, at most; Dask warns of tasks that hold more than 10 MB."""


SAME_PATHS = (
    "Workers read the files themselves, and must find them under the same path: on a disk that all machines share, or by a URI "
    "such as s3://bucket/logs."
)


def row_sum(client: Any, scan: TransitionScan, questions: Sequence[StreamQuestion]) -> Sum:
    """The sums over all rows of a log for every question, in the making: workers read the rows, once for all questions."""
    tasks = Tasks(client)
    job = tasks.sent(_RowJob(scan.absolute(), tuple(questions)), "question")
    run = -(-len(scan.sizes) // MOST_PARTS)
    starts = range(0, len(scan.sizes), run)
    leaves = [tasks.add(_rows_of_parts, job, start, start + run) for start in starts]
    weights = [float(sum(scan.sizes[start : start + run])) for start in starts]
    return tasks.sum(leaves, weights, _sum_rows)


def refuse_unseen(client: Any, scan: TransitionScan) -> None:
    """Raise, before any work, where a worker does not find the first file of a log, or the last."""
    for path in scan.local_paths():
        lacking = [address for address, found in client.run(os.path.isfile, path).items() if not found]
        if lacking:
            raise InvalidFile(f"{path} is not found by the worker of the cluster at {min(lacking)}. {SAME_PATHS}")


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
    with tasks.sum(leaves, weights, _sum_pairs) as total:
        found: PairSums = total.result(progress)
    return replace(found, kernel_error=found.kernel_error + 0.5 * UNIT * roundings * kernel.supremum)


def block_rows(rows: int, row_bytes: int) -> int:
    """Rows of a block; for one log the same on every cluster."""
    wanted = max(BLOCK_ROWS, -(-rows // MOST_BLOCKS))
    return max(min(wanted, BLOCK_BYTES // row_bytes), 1)


# What follows runs on workers.


class _RowJob(NamedTuple):
    scan: TransitionScan
    questions: tuple[StreamQuestion, ...]


class _PairJob(NamedTuple):
    kernel: Kernel
    options: TileOptions


class _Block(NamedTuple):
    points: FloatArray
    columns: FloatArray


def _rows_of_parts(job: _RowJob, start: int, stop: int) -> tuple[PartialStatistic, ...]:
    """The sums over parts of the log that follow each other."""
    scan, questions = job
    first = sum(scan.sizes[:start])
    total: tuple[PartialStatistic, ...] = ()
    with one_blas_thread(), threads_at_most(1), _found_by_workers():
        for batch in scan.parts(start, stop):
            found = tuple(located_statistic(scan, first, batch, each) for each in questions)
            total = _sum_rows(total, found) if total else found
            first += len(batch)
    return total


@contextmanager
def _found_by_workers() -> Iterator[None]:
    """A file that is not where it should be may be missing on this machine alone."""
    try:
        yield
    except InvalidFile as error:
        if isinstance(error.__cause__, FileNotFoundError | PermissionError):
            raise InvalidFile(f"{error} {SAME_PATHS}") from error
        raise


def _pairs_of_blocks(job: _PairJob, one: _Block, other: _Block | None) -> PairSums:
    """The sums over all pairs of two blocks, in both orders; None: of one block with itself."""
    with one_blas_thread():
        if other is None:
            return pair_sums(job.kernel, one.points, one.columns, job.options)
        cross = cross_sums(job.kernel, one.points, one.columns, other.points, other.columns, job.options)
    return PairSums(cross.gram + cross.gram.T, np.zeros_like(cross.gram), cross.kernel_error + 0.5 * UNIT * job.kernel.supremum)


def _sum_rows(*parts: tuple[PartialStatistic, ...]) -> tuple[PartialStatistic, ...]:
    """Question by question."""
    return tuple(reduce(add, each) for each in zip(*parts, strict=True))


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
