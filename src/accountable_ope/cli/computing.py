"""Who computes: an engine of this machine, or a cluster of Dask."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from cyclopts import Group, Parameter

from ..errors import InvalidInput
from ..statistics.engines.dask import Dask
from ..statistics.engines.engine import AnyEngine, refuse_unusable

COMPUTING = Group.create_ordered("Computing")

MOST_PER_CORE = 4
"""Processes of a local cluster: more only wait for each other."""

_LOCAL = re.compile(r"local:(\d{1,9})")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+):\d{1,5}")


@Parameter(name="*", group=COMPUTING)
@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Who makes the sums over rows, or over pairs of them; the result says who it was, and why."""

    engine: Literal["auto", "rows", "tiles", "cuda"] = "auto"
    """Who makes the sums: rows (one pass, kernels of finite rank), tiles (pairs of rows), cuda (a GPU), or whichever is best."""
    scheduler: str | None = None
    """A cluster of Dask makes the sums: the address of its scheduler, such as tcp://host:8786, or local:N for N processes."""

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        both = (("--engine", self.engine != "auto"), ("--scheduler", self.scheduler is not None))
        return [name for name, was_given in both if was_given]

    def check(self, *, stream: bool, single_precision: bool) -> None:
        """Refuse what excludes each other, and what cannot be had; single_precision: whether it was asked for."""
        if len(self.given) > 1:
            raise InvalidInput("--engine has no effect with --scheduler, which is an engine of its own: leave out one of them.")
        if stream and self.engine not in ("auto", "rows"):
            raise InvalidInput(f"--stream does not go with --engine {self.engine}, which needs all rows at once.")
        if self.engine == "cuda":
            from ..kernels.products import TileOptions

            refuse_unusable("cuda", None, TileOptions(single_precision=single_precision))
        if self.scheduler is not None:
            self._cluster()

    @contextmanager
    def opened(self, phase: Callable[[str], object]) -> Iterator[AnyEngine]:
        """The engine for the time of the work; a cluster is connected to, or started, before any of it."""
        if self.scheduler is None:
            yield self.engine
            return
        cluster = self._cluster()
        phase("connecting to the scheduler" if cluster.workers is None else "starting workers")
        with cluster:
            yield cluster

    def _cluster(self) -> Dask:
        words = self.scheduler or ""
        local = _LOCAL.fullmatch(words)
        if local is None:
            if not _ADDRESS.fullmatch(words):
                raise InvalidInput(
                    "--scheduler must be the address of a scheduler of Dask, such as tcp://host:8786, or local:N for N processes "
                    f"of this machine. Got {words!r}."
                )
            return Dask(words)
        workers, most = int(local[1]), MOST_PER_CORE * (os.cpu_count() or 1)
        if not 1 <= workers <= most:
            raise InvalidInput(f"--scheduler local:N takes from 1 to {most} processes on this machine. Got {words!r}.")
        return Dask(workers=workers)


@contextmanager
def carried(name: str | None, engine: AnyEngine) -> Iterator[None]:
    """While this lasts, the module of module:function travels to workers as it is, unless it is installed.

    Workers of other machines would not find it in their folders.
    """
    module = sys.modules.get((name or "").partition(":")[0].partition(".")[0])
    if module is None or not isinstance(engine, Dask) or _installed(module):
        yield
        return
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _installed(module: ModuleType) -> bool:
    """Whether workers have it as well, if they are set up alike."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__ == __name__.partition(".")[0]:
        return True
    places = [Path(path).resolve() for path in sysconfig.get_paths().values()]
    return any(Path(file).resolve().is_relative_to(place) for place in places)
