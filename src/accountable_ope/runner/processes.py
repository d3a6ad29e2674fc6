"""Work spread over several processes, with the results as they are finished."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, Generic, TypeVar

from ..errors import AopeError
from ..validation import whole

P = TypeVar("P")
R = TypeVar("R")

PATIENCE = 1.0
"""Seconds that a worker is given to end before it is killed."""


def process_count(workers: int | None) -> int:
    """The number of processes asked for; None: one per core."""
    return (os.cpu_count() or 1) if workers is None else whole(workers, "workers", least=1)


def as_finished(work: Callable[[P], R], pieces: Sequence[P], workers: int) -> Generator[tuple[P, R], None, None]:
    """Yield every piece with its result, in the order in which they are finished; with one worker, in this process.

    `work` must be a function of a module and the pieces picklable, because they are sent to other processes. When the generator
    is closed, or its process interrupted or killed, the workers end at once. Every worker has a pipe of its own and one piece at
    a time, so that nothing waits in a queue which nobody reads any more.
    """
    if workers == 1 or len(pieces) < 2:
        for piece in pieces:
            yield piece, work(piece)
        return
    crew: list[_Worker[P, R]] = []
    try:
        left, busy = iter(pieces), dict[Connection, tuple[_Worker[P, R], P]]()
        for _ in range(min(workers, len(pieces))):
            crew.append(_Worker(work))
            _send(crew[-1], left, busy)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                worker, piece = busy.pop(ready)
                result = worker.receive()
                _send(worker, left, busy)
                yield piece, result
    finally:
        for worker in crew:
            worker.end()


def _send(worker: _Worker[P, R], left: Iterator[P], busy: dict[Connection, tuple[_Worker[P, R], P]]) -> None:
    """Give a worker the next piece, if there is one."""
    for piece in left:
        worker.send(piece)
        busy[worker.pipe] = (worker, piece)
        return


class _Worker(Generic[P, R]):
    """A process that works on one piece after the other."""

    def __init__(self, work: Callable[[P], R]) -> None:
        context = get_context("spawn")  # a process that is forked while threads of a numerical library run may hang
        self.pipe, end = context.Pipe()
        self._process = context.Process(target=_serve, args=(end, work), daemon=True)
        with _uninterrupted():
            self._process.start()
        end.close()

    def send(self, piece: P) -> None:
        """Hand over a piece; the worker is waiting for one."""
        try:
            self.pipe.send(piece)
        except (BrokenPipeError, ConnectionError) as error:
            raise _lost() from error

    def receive(self) -> R:
        """What came of the piece: its result, or the error that it ended with."""
        try:
            well, answer = self.pipe.recv()
        except (EOFError, ConnectionError) as error:
            raise _lost() from error
        if not well:
            raise answer
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.terminate()
        self.pipe.close()
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _lost() -> AopeError:
    return AopeError(
        "A worker process was killed, perhaps for lack of memory: use fewer `workers`. Finished work is kept where a folder was "
        "given."
    )


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits, and never reaches a process that is started here: a terminal sends it to all, and workers leave it to us."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would let signals through again, were it started in between
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """The life of a worker: pieces in, results out, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            piece = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: tuple[bool, Any] = (True, work(piece))
        except Exception as error:
            answer = (False, _sendable(error))
        with suppress(OSError):
            pipe.send(answer)


def _end_with_parent() -> None:
    """A parent that was killed asks no more, but a worker in the middle of a piece would not notice."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _sendable(error: Exception) -> Exception:
    """The error itself, or its text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return AopeError(f"{type(error).__name__}: {error}")
    return error
