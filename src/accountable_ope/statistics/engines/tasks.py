"""Tasks of Dask that make one sum: how they are named, added and waited for, and what is said when they fail.

Results are added along a tree that depends on their number alone. What tasks need goes to the cluster inside of tasks and not as
data: data that a worker takes with it when it dies is gone, while a task is run again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple

from ...errors import AopeError, InvalidInput
from ...kernels.products import Progress

BRANCHES = 8
"""So many sums are added by one task."""

PATIENCE = 120.0
"""Seconds in which the first worker must come, once there is work for it."""


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

    def sum(self, leaves: list[Any], weights: Sequence[float], plus: Callable[..., Any]) -> Sum:
        """The sum of all leaves, which takes hold of them: whoever asks must not keep them."""
        level = leaves
        while len(level) > 1:  # urgent: sums take less room than what they are of
            level = [self.add(plus, *level[i : i + BRANCHES], urgent=True) for i in range(0, len(level), BRANCHES)]
        made = Sum(self.client, level[0], leaves, weights)
        leaves.clear()
        return made


class Sum:
    """A sum that a cluster makes while this process does something else; leaves are let go of as they are finished.

    To be used in a `with` statement, at whose end the cluster drops what is not done by then.
    """

    def __init__(self, client: Any, root: Any, leaves: Sequence[Any], weights: Sequence[float]) -> None:
        self._client, self._root = client, root
        self._left = {leaf.key: leaf for leaf in leaves}
        self._number = {leaf.key: i for i, leaf in enumerate(leaves)}
        self._weights = weights
        self._done, self._failed = 0.0, _Failure(len(leaves), None)

    def __enter__(self) -> Sum:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        # Nobody wants these any more, so the scheduler drops what has not begun; tracebacks would keep them alive.
        for future in (self._root, *self._left.values()):
            future.release()

    def look(self) -> float:
        """The fraction done so far, without waiting; raises as soon as it is known what to raise."""
        for leaf in [leaf for leaf in self._left.values() if leaf.done()]:
            self._take(leaf)
        return self._fraction

    def result(self, progress: Progress | None = None) -> Any:
        """The sum itself, when all is done; progress: called with the fraction done."""
        from distributed import as_completed

        self._wait_for_a_worker()
        for leaf in as_completed(list(self._left.values()), loop=self._client.loop):
            self._take(leaf)
            if progress is not None:
                progress(self._fraction)
        if self._root.exception() is not None:
            raise _reason(self._root)
        return self._root.result()

    @property
    def _fraction(self) -> float:
        return min(self._done / sum(self._weights), 1.0)

    def _take(self, leaf: Any) -> None:
        """One that is done; of those that fail, the first in the order of rows says why."""
        del self._left[leaf.key]
        if leaf.status != "finished":
            self._failed = min(self._failed, _Failure(self._number[leaf.key], _reason(leaf)), key=lambda each: each.number)
        error = self._failed.error
        if error is not None and not any(self._number[key] < self._failed.number for key in self._left):
            raise error
        self._done += self._weights[self._number[leaf.key]]

    def _wait_for_a_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
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


def _loaded(data: bytes) -> Any:
    """What `Tasks.sent` took apart, on this very cluster."""
    try:
        return _cloudpickle().loads(data)
    except ModuleNotFoundError as error:
        raise _not_importable(str(error.name)) from error
