"""Work spread over several processes, with the results as they are finished."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor
from concurrent.futures import wait as finished
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import TypeVar

from ..errors import AopeError
from ..validation import whole

P = TypeVar("P")
R = TypeVar("R")


def process_count(workers: int | None) -> int:
    """The number of processes asked for; None: one per core."""
    return (os.cpu_count() or 1) if workers is None else whole(workers, "workers", least=1)


def as_finished(work: Callable[[P], R], pieces: Sequence[P], workers: int) -> Generator[tuple[P, R], None, None]:
    """Yield every piece with its result, in the order in which they are finished; with one worker, in this process.

    `work` must be a function of a module and the pieces picklable, because they are sent to other processes. When the generator
    is closed, or its process interrupted or killed, the workers end at once.
    """
    if workers == 1 or len(pieces) < 2:
        for piece in pieces:
            yield piece, work(piece)
        return
    context = get_context("spawn")  # a process that is forked while threads of a numerical library run may hang
    worker_end, parent_end = context.Pipe(duplex=False)
    size = min(workers, len(pieces))
    with worker_end, parent_end, ProcessPoolExecutor(size, context, initializer=_follow, initargs=(worker_end,)) as pool:
        try:
            # No more pieces at a time than workers: one that waits in the pool's pipe would keep an interrupted run from ending.
            left = iter(pieces)
            waiting = {pool.submit(work, piece): piece for piece in islice(left, size)}
            while waiting:
                for future in finished(waiting, return_when=FIRST_COMPLETED).done:
                    piece = waiting.pop(future)
                    waiting |= {pool.submit(work, following): following for following in islice(left, 1)}
                    yield piece, future.result()
        except BrokenProcessPool as error:
            raise AopeError(
                "A worker process was killed, perhaps for lack of memory: use fewer `workers`. Finished work is kept where a "
                "folder was given."
            ) from error
        except BaseException:
            parent_end.close()  # ends the workers, for which the pool would otherwise wait
            raise


def _follow(parent: Connection) -> None:
    """Set up a worker to end as soon as the other end of the pipe is closed, which also happens when its parent is killed.

    Ctrl-C reaches every process of a terminal; workers leave it to their parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        wait([parent])
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
