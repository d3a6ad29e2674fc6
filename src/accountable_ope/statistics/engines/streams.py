"""Who computes the sums of a log that is read in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

from ...errors import InvalidInput
from ...io.scanning import TransitionScan
from ...kernels.products import Progress
from ..partial import PartialStatistic
from ..stream_question import StreamQuestion
from .engine import ASKED_FOR, AnyEngine
from .used import EngineUsed


class SumInTheMaking(Protocol):
    """Sums that are made elsewhere while this process does something else."""

    def look(self) -> float:
        """The fraction done so far, without waiting; raises what went wrong."""
        ...

    def result(self, progress: Progress | None = None) -> tuple[PartialStatistic, ...]:
        """One sum per question, when all is done."""
        ...


@runtime_checkable
class StreamEngine(Protocol):
    """An engine that reads the rows of a log, and sums them, outside of this process."""

    def stream_sums(
        self, scan: TransitionScan, questions: Sequence[StreamQuestion]
    ) -> AbstractContextManager[SumInTheMaking]: ...

    def refuse_unseen(self, scan: TransitionScan) -> None: ...

    @property
    def used_for_streams(self) -> EngineUsed: ...


def stream_engine(engine: AnyEngine, scan: TransitionScan) -> StreamEngine | None:
    """Who reads and sums the rows of a log, None: this process; or a sentence that says why it cannot be, before any work."""
    if isinstance(engine, str):
        if engine in ("auto", "rows"):
            return None
        raise InvalidInput(
            f'`engine` "{engine}" needs all rows at once: a log that is read in parts is summed by "rows", or on a cluster by '
            "aope.engines.Dask."
        )
    if not isinstance(engine, StreamEngine):
        raise InvalidInput(
            f"`engine` must read logs in parts, as aope.engines.Dask does. {type(engine).__name__} has no `stream_sums`."
        )
    engine.refuse_unseen(scan)
    return engine


def used_for_stream(engine: AnyEngine) -> EngineUsed:
    """Which engine it was, and which part ran where."""
    if isinstance(engine, StreamEngine):
        return engine.used_for_streams
    if engine == "rows":
        return EngineUsed("rows", ASKED_FOR)
    return EngineUsed("rows", "A log that is read in parts is summed in one pass over its rows, in this process.")


@contextmanager
def summing(
    engine: StreamEngine | None, scan: TransitionScan, questions: Sequence[StreamQuestion]
) -> Iterator[SumInTheMaking | None]:
    """Sums that an engine makes meanwhile; None where this process makes them itself."""
    if engine is None:
        yield None
    else:
        with engine.stream_sums(scan, questions) as sums:
            yield sums
