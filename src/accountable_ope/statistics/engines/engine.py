"""Who computes sums over all pairs of rows, and which of those at hand is the one for a kernel, rows and a machine."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal, Protocol, runtime_checkable

from ...arguments import checked
from ...errors import InvalidInput, MissingExtra
from ...kernels.kernel import FiniteRank, Gaussian, Kernel, Tabular
from ...kernels.products import Progress, TileOptions
from ...kernels.random_features import RandomFeatureKernel
from ...validation import FloatArray, whole
from .cuda import MOST_DIMENSIONS
from .finite_rank import reduce_pairs
from .tiles import PairSums, pair_sums
from .used import EngineUsed

NAMES = ("rows", "tiles", "cuda")
"""One pass over the rows, tiles of the pairs on the processor, tiles of them on a GPU."""

FEW_ROWS = 20_000
"""Below, processors need about a second for all pairs, and a GPU as long to begin."""

WIDEST = 128
"""So many columns at a time are products of tiles on a GPU kept for."""

TILE_BYTES = 2**30
"""Of blocks of pairs in double precision on a GPU."""

GPU_FILES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
"""One of these is there wherever Linux has a GPU that torch can use; torch takes seconds to import, and says no more."""

ASKED_FOR = "It was asked for."


@runtime_checkable
class Engine(Protocol):
    """Whoever computes sums over all pairs of rows; any object with this method is one."""

    def pair_sums(
        self,
        kernel: Kernel,
        points: FloatArray,
        columns: FloatArray,
        options: TileOptions | None = None,
        progress: Progress | None = None,
    ) -> PairSums:
        """C'KC and C' diag(K) C for the rows of `columns` (n, k) at `points` (n, d)."""
        ...


AnyEngine = Engine | Literal["auto", "rows", "tiles", "cuda"]
"""An engine, one of this machine by name, or "auto" for the one that `choose` names."""


@runtime_checkable
class Telling(Protocol):
    """An engine that says of itself what it does."""

    def used(self, kernel: Kernel) -> EngineUsed:
        """Who computes sums over pairs of rows with this kernel, and why."""
        ...


@checked
@dataclass(frozen=True)
class EngineChoice:
    """An engine of this machine by name, and why it is the one; made by `choose`.

    Parameters
    ----------
    name : str
        "rows" (one pass over the rows, for kernels of finite rank), "tiles" (pairs of rows, on processors) or "cuda" (pairs of
        rows, on a GPU).
    reason : str
        A sentence.

    Raises
    ------
    InvalidInput
        Where there is no engine of that name.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.engines.EngineChoice("tiles", "Asked for.").name
    'tiles'
    """

    name: str
    reason: str

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InvalidInput(f"`name` must be one of {', '.join(map(repr, NAMES))}. Got {self.name!r}.")

    def pair_sums(
        self,
        kernel: Kernel,
        points: FloatArray,
        columns: FloatArray,
        options: TileOptions | None = None,
        progress: Progress | None = None,
    ) -> PairSums:
        """C'KC and C' diag(K) C."""
        refuse_kernel(self.name, kernel)
        given = replace(options or TileOptions(), device="cuda" if self.name == "cuda" else "cpu")
        if self.name == "tiles":
            return pair_sums(kernel, points, columns, given, progress)
        return reduce_pairs(kernel, points, columns, given, progress)

    def used(self, kernel: Kernel) -> EngineUsed:
        """The same for every kernel."""
        return EngineUsed(self.name, self.reason)


@checked
def choose(kernel: Kernel, *, rows: int, dimension: int, columns: int, options: TileOptions | None = None) -> EngineChoice:
    """The engine of this machine for sums over all pairs of so many rows, and why.

    Parameters
    ----------
    kernel : Kernel
        The test kernel.
    rows : int
        n.
    dimension : int
        Coordinates of a point (s, a).
    columns : int
        k, the columns of C = [Z | v | 1], of all classes together.
    options : TileOptions, optional
        An explicit `device="cuda"` is kept, and so are all other options.

    Returns
    -------
    EngineChoice
        Itself an engine: `evaluate(..., engine=choose(...))`, which is what `engine="auto"` does.

    Examples
    --------
    >>> import accountable_ope as aope
    >>> aope.engines.choose(aope.RandomFeatureKernel(100), rows=10**6, dimension=5, columns=30)
    EngineChoice(name='rows', reason='The kernel has finite rank: one pass over the rows gives the sums over all pairs.')
    >>> aope.engines.choose(aope.Gaussian(1.0), rows=2000, dimension=5, columns=30).name
    'tiles'
    """
    for name, size in (("rows", rows), ("dimension", dimension), ("columns", columns)):
        whole(size, name, least=1)
    if options is not None and options.device == "cuda" and not isinstance(kernel, Tabular):
        return EngineChoice("cuda", '`options` say `device="cuda"`.')
    if isinstance(kernel, FiniteRank):
        return EngineChoice("rows", "The kernel has finite rank: one pass over the rows gives the sums over all pairs.")
    half = options is not None and options.single_precision
    against = _against_cuda(kernel, rows, dimension, columns, half=half)
    if against:
        return EngineChoice("tiles", against)
    rounding = "; bounds count its rounding, which is larger than that of processors" if half else ""
    return EngineChoice("cuda", f"There is a GPU, the kernel is Gaussian, and {rows} rows are many{rounding}.")


def _against_cuda(kernel: Kernel, rows: int, dimension: int, columns: int, *, half: bool) -> str:
    """Why a GPU is not used, in a sentence; nothing where it is. half: products in half precision."""
    if not isinstance(kernel, Gaussian):
        return "A GPU computes exact sums for Gaussian kernels only."
    if rows < FEW_ROWS:
        return f"The processors of this machine compute: a GPU would not be faster for as few as {rows} rows."
    if half and dimension > MOST_DIMENSIONS:
        return f"A GPU takes points of at most {MOST_DIMENSIONS} coordinates, and these have {dimension}."
    free = free_gpu_memory(half=half)
    if isinstance(free, str):
        return free
    # Coordinates and columns with the copies that they are made from, halves and products of the widest tiles.
    needed = rows * (12 * dimension + 16 * columns + 16 * WIDEST)
    if not half:
        needed = rows * 8 * (2 * (dimension + 2) + columns) + TILE_BYTES
    if needed > free:
        return f"The rows need {needed / 2**30:.1f} GiB on the GPU, of which {free / 2**30:.1f} are free."
    return ""


def free_gpu_memory(*, half: bool = False) -> int | str:
    """Bytes of the first GPU that are free, or a sentence that says why there is none; half: for half precision."""
    missing = _missing_for_gpu(half=half)
    if missing:
        return missing
    if sys.platform == "linux" and not any(os.path.exists(path) for path in GPU_FILES):
        return "There is no GPU here."
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return "torch finds no GPU that it can use here."
    return int(torch.cuda.mem_get_info()[0])


def _missing_for_gpu(*, half: bool) -> str:
    """What is to be installed, in a sentence; nothing where all is there."""
    missing = [name for name in ("torch", *(("triton",) if half else ())) if find_spec(name) is None]
    return f'{missing[0]} is not installed, which a GPU needs: pip install "accountable-ope[gpu]".' if missing else ""


def engine_for(engine: AnyEngine, kernel: Kernel, points: FloatArray, columns: int, options: TileOptions | None) -> Engine:
    """The engine itself, where "auto" stands for the one that fits, and other names for themselves."""
    if not isinstance(engine, str):
        return engine
    if engine != "auto":
        refuse_kernel(engine, kernel)
        return EngineChoice(engine, ASKED_FOR)
    rows, dimension = points.shape
    return choose(kernel, rows=rows, dimension=dimension, columns=columns, options=options)


def refuse_unusable(engine: AnyEngine, kernel: Kernel | None = None, options: TileOptions | None = None) -> None:
    """Raise, before any work, where an engine that was asked for by name cannot be had; kernel: None where it is chosen later."""
    if not isinstance(engine, str) or engine == "auto":
        return
    if kernel is not None:
        refuse_kernel(engine, kernel)
    if engine != "cuda":
        if options is not None and options.device == "cuda":
            raise InvalidInput(f'`engine` "{engine}" does not go with `options` that say `device="cuda"`: leave out one of them.')
        return
    half = options is not None and options.single_precision
    why = free_gpu_memory(half=half)
    if isinstance(why, str):
        kind = MissingExtra if _missing_for_gpu(half=half) else InvalidInput
        raise kind(f'`engine` "cuda" cannot be had: {why}')


def refuse_kernel(name: str, kernel: Kernel) -> None:
    """Raise where an engine of this machine is not for such a kernel."""
    if name == "rows" and not isinstance(kernel, FiniteRank):
        raise InvalidInput(
            '`engine` "rows" is for kernels of finite rank (RandomFeatureKernel, Tabular): of any other, sums over pairs of rows '
            f"do not follow from sums over rows. Got {kernel!r}."
        )
    if name == "cuda" and not isinstance(kernel, (Gaussian, RandomFeatureKernel)):
        raise InvalidInput(f'`engine` "cuda" is for Gaussian kernels and random features only. Got {kernel!r}.')


def used_engine(engine: Engine | None, kernel: Kernel) -> EngineUsed | None:
    """Which engine made the sums of a result; None where nobody chose one."""
    if engine is None:
        return None
    return engine.used(kernel) if isinstance(engine, Telling) else EngineUsed(type(engine).__name__, "It was handed in.")
