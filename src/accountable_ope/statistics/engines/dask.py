"""Sums on a cluster of Dask: several processes of this machine, or several machines."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from ...arguments import checked, shown
from ...errors import InvalidInput, MissingExtra
from ...io.scanning import TransitionScan
from ...kernels.kernel import FiniteRank, Kernel
from ...kernels.products import Progress, TileOptions
from ...validation import FloatArray, whole
from ..bellman import BellmanSystem
from ..partial import PartialStatistic
from ..statistic import KernelStatistic, kernel_statistics
from ..stream_question import StreamQuestion
from .cluster import cluster_pair_sums, refuse_unseen, row_sum
from .tasks import Sum
from .tiles import PairSums
from .used import EngineUsed

REACHED = 5.0
"""Seconds within which a scheduler must answer."""


@checked
@dataclass(frozen=True, eq=False)
class Dask:
    """An engine that computes sums on a cluster of Dask, with the same result whatever the number and the luck of its workers.

    A worker that dies is survived: what it had to do is done again. In a `with` statement the connection, and a cluster of its
    own, are opened once and closed at the end; else for every sum. A client that was handed in stays open.

    Parameters
    ----------
    client_or_address : distributed.Client or str, optional
        A client, or the address of a scheduler such as "tcp://10.0.0.1:8786". Its workers need this package, and must find the
        files of a log where this process finds them.
    workers : int, optional
        Without a client or an address: so many processes of one thread each are started on this machine; None for one per core.
        A script that starts processes needs the line `if __name__ == "__main__":` above what it does.

    Raises
    ------
    InvalidInput
        Where both are given, or a scheduler does not answer.
    MissingExtra
        Where Dask is not installed.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.engines.Dask(workers=2)
    Dask(workers=2)
    >>> aope.engines.Dask("tcp://10.0.0.1:8786", workers=2)
    Traceback (most recent call last):
    accountable_ope.errors.InvalidInput: `workers` are those of a cluster that is started here: give them, or ...
    """

    client_or_address: Any = None
    workers: int | None = None
    _open: list[Any] = field(default_factory=list, init=False, repr=False)
    _closing: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __post_init__(self) -> None:
        if find_spec("distributed") is None:
            raise MissingExtra('Sums on a cluster need Dask: pip install "accountable-ope[cluster]".')
        given = self.client_or_address
        if self.workers is not None:
            whole(self.workers, "workers", least=1)
            if given is not None:
                raise InvalidInput("`workers` are those of a cluster that is started here: give them, or `client_or_address`.")
        if given is None:
            return
        if isinstance(given, str):
            if not given.strip() or ":" not in given:
                raise InvalidInput(f'`client_or_address` must be an address such as "tcp://10.0.0.1:8786". Got {given!r}.')
        elif not _is_client(given):
            raise InvalidInput(f"`client_or_address` must be a distributed.Client or the address of one. Got {shown(given)}.")
        elif given.asynchronous:
            raise InvalidInput("`client_or_address` must be a client that waits for results, not an asynchronous one.")

    def __repr__(self) -> str:
        given = self.client_or_address
        return f"Dask(workers={self.workers})" if given is None else f"Dask({given!r})"

    def __enter__(self) -> Dask:
        if not self._open:
            self._open.append(self._closing.enter_context(self._connected()))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._open.clear()
        self._closing.close()

    @checked
    def stream_statistic(
        self, scan: TransitionScan, question: StreamQuestion, progress: Progress | None = None
    ) -> PartialStatistic:
        """The sums over all rows of a log, whose parts are read by the workers; see `stream_statistic`.

        Parameters
        ----------
        scan : TransitionScan
            The log, from `scan_transitions`. Every worker reads its parts from the files.
        question : StreamQuestion
            What its rows are summed for.
        progress : callable, optional
            Called with the fraction done.

        Returns
        -------
        PartialStatistic
        """
        with self.stream_sums(scan, [question]) as sums:
            found: PartialStatistic = sums.result(progress)[0]
        return replace(found, left_out=scan.left_out)

    @contextmanager
    def stream_sums(self, scan: TransitionScan, questions: Sequence[StreamQuestion]) -> Iterator[Sum]:
        """The sums over all rows of a log for every question, in the making; workers read the rows once."""
        with self._session() as client, row_sum(client, scan, questions) as found:
            yield found

    def refuse_unseen(self, scan: TransitionScan) -> None:
        """Raise where no scheduler answers, or workers do not find the files of a log: before any work."""
        with self._session() as client:
            refuse_unseen(client, scan)

    def used(self, kernel: Kernel) -> EngineUsed:
        """Who computes sums over pairs of rows with this kernel, and why."""
        if isinstance(kernel, FiniteRank):
            why = "The kernel has finite rank: one pass over the rows in this process takes less time than sending them to"
            return EngineUsed("rows", f"{why} {self._place}.")
        return EngineUsed("dask", f"Blocks of rows met blocks of rows on {self._place}.")

    @property
    def used_for_streams(self) -> EngineUsed:
        """Which part of the work on a log that is read in parts runs where."""
        return EngineUsed(
            "dask",
            f"Sums over rows were made on {self._place}, whose workers read the files themselves; this process read the rows, "
            "too, for what needs their order: weights of the cut, largest residuals, the name of the rows.",
        )

    @property
    def _place(self) -> str:
        given = self.client_or_address
        if given is None:
            count = self._workers
            return f"{count} process{'es' if count > 1 else ''} of this machine"
        return f"the cluster at {given if isinstance(given, str) else given.scheduler.address}"

    @property
    def _workers(self) -> int:
        return self.workers or os.cpu_count() or 1

    @checked
    def kernel_statistics(
        self,
        systems: Sequence[BellmanSystem],
        kernel: Kernel,
        options: TileOptions | None = None,
        progress: Progress | None = None,
    ) -> list[KernelStatistic]:
        """The statistics of several classes on the same data, from one pass over the pairs; see `kernel_statistics`.

        Parameters
        ----------
        systems : sequence of BellmanSystem
        kernel : Kernel
            The test kernel.
        options : TileOptions, optional
            Size and precision of tiles; every task has one thread.
        progress : callable, optional
            Called with the fraction done.

        Returns
        -------
        list of KernelStatistic
        """
        return kernel_statistics(systems, kernel, options, progress, self)

    def pair_sums(
        self,
        kernel: Kernel,
        points: FloatArray,
        columns: FloatArray,
        options: TileOptions | None = None,
        progress: Progress | None = None,
    ) -> PairSums:
        """C'KC and C' diag(K) C, by blocks of rows against blocks of rows: a worker holds the rows at most, and a tile."""
        with self._session() as client:
            return cluster_pair_sums(client, kernel, points, columns, options, progress)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """The client that is open already, or one for the time being."""
        if self._open:
            yield self._open[-1]
        else:
            with self._connected() as client:
                yield client

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        given = self.client_or_address
        if given is None:
            with _local_cluster(self._workers) as client:
                yield client
        elif isinstance(given, str):
            with _connection(given) as client:
                yield client
        else:
            yield given


def _is_client(given: object) -> bool:
    """Whoever has a client has imported its package."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(given, distributed.Client)


@contextmanager
def _local_cluster(workers: int) -> Iterator[Any]:
    """Processes of one thread each, which end with this block."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0", silence_logs=50
    )
    with cluster, Client(cluster, set_as_default=False) as client:
        client.register_plugin(_interrupts_ignored())
        yield client


@contextmanager
def _connection(address: str) -> Iterator[Any]:
    """A client of a scheduler that answers."""
    from distributed import Client

    # A client that fails to begin takes long to go away, and says so; so somebody else asks first, in a loop of its own.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_ask, address).result()
    with Client(address, timeout=REACHED, set_as_default=False) as client:
        yield client


def _ask(address: str) -> None:
    """Raise, in one sentence, where no scheduler answers."""
    try:
        kind = asyncio.run(_kind(address))
    except Exception as error:  # whatever another server makes of it: one answered as if exbibytes were to come
        raise InvalidInput(
            f"No scheduler of Dask answers at {address!r} within {REACHED:.0f} seconds: is it running, and is the address right?"
        ) from error
    if kind != "Scheduler":
        raise InvalidInput(f"At {address!r} a {kind.lower()} of Dask answers, and no scheduler: give the address of that.")


async def _kind(address: str) -> str:
    """What a server of Dask says that it is."""
    from distributed.core import rpc
    from distributed.security import Security

    async with rpc(address, timeout=REACHED, connection_args=Security().get_connection_args("client")) as server:
        return str((await asyncio.wait_for(server.identity(), REACHED))["type"])


def _interrupts_ignored() -> Any:
    """For workers: a terminal sends Ctrl-C to all processes, and it is up to the one that asked to end the others."""
    from distributed import WorkerPlugin

    class InterruptsIgnored(WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return InterruptsIgnored()
