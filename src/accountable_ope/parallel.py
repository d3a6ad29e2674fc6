"""Pieces of work in several processes, as they are finished: what the laboratory and the experiments run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from .errors import AopeError
from .validation import whole

P = TypeVar("P")
R = TypeVar("R")

Report = Callable[[int, int], None]
"""Called with the number of pieces that are done and the number of all."""


def processes(workers: int | None) -> int:
    """How many processes: as many as asked for, or one per core."""
    return (os.cpu_count() or 1) if workers is None else whole(workers, "workers", least=1)


def as_finished(work: Callable[[P], R], pieces: Sequence[P], workers: int) -> Generator[tuple[P, R], None, None]:
    """Every piece with its result, in the order in which they are finished. One worker: in this process, one after the other.

    work and pieces are sent to other processes, so `work` is a function of a module.
    """
    if workers == 1 or len(pieces) < 2:
        for piece in pieces:
            yield piece, work(piece)
        return
    # Fresh interpreters: a process that is forked while threads of a numerical library run may never wake up.
    with ProcessPoolExecutor(min(workers, len(pieces)), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(work, piece): piece for piece in pieces}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool as error:
            raise AopeError(
                "A worker process was killed, perhaps for want of memory: use fewer `workers`. What was finished is kept where a "
                "folder was given."
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
