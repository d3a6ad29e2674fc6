"""Who computes sums over all pairs of rows, and which of those at hand is the one for a kernel, rows and a machine."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal, Protocol, runtime_checkable

from ...arguments import checked
from ...errors import InvalidInput
from ...kernels.kernel import FiniteRank, Gaussian, Kernel
from ...kernels.products import Progress, TileOptions
from ...validation import FloatArray, whole
from .cuda import MOST_DIMENSIONS
from .finite_rank import reduce_pairs
from .tiles import PairSums

NAMES = ("rows", "tiles", "cuda")
"""One pass over the rows, tiles of the pairs on the processor, tiles of them on a GPU."""

FEW_ROWS = 20_000
"""Below, processors need about a second for all pairs, and a GPU as long to begin."""

WIDEST = 128
"""So many columns at a time are products of tiles on a GPU kept for."""


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


AnyEngine = Engine | Literal["auto"]
"""An engine, or the one that `choose` names."""


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
        device = "cuda" if self.name == "cuda" else "cpu"
        return reduce_pairs(kernel, points, columns, replace(options or TileOptions(), device=device), progress)


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
    if isinstance(kernel, FiniteRank):
        return EngineChoice("rows", "The kernel has finite rank: one pass over the rows gives the sums over all pairs.")
    if options is not None and options.device == "cuda":
        return EngineChoice("cuda", '`options` say `device="cuda"`.')
    against = _against_cuda(kernel, rows, dimension, columns)
    if against:
        return EngineChoice("tiles", against)
    return EngineChoice(
        "cuda",
        f"There is a GPU, the kernel is Gaussian, and {rows} rows are many; bounds count its rounding, which is larger than that "
        "of processors.",
    )


def _against_cuda(kernel: Kernel, rows: int, dimension: int, columns: int) -> str:
    """Why a GPU is not used, in a sentence; nothing where it is."""
    if not isinstance(kernel, Gaussian):
        return "A GPU computes exact sums for Gaussian kernels only."
    if rows < FEW_ROWS:
        return f"Processors need a second or so for the pairs of {rows} rows, no longer than a GPU needs to begin."
    if dimension > MOST_DIMENSIONS:
        return f"A GPU takes points of at most {MOST_DIMENSIONS} coordinates, and these have {dimension}."
    free = free_gpu_memory()
    if isinstance(free, str):
        return free
    # Coordinates and columns with the copies that they are made from, halves and products of the widest tiles.
    needed = rows * (12 * dimension + 16 * columns + 16 * WIDEST)
    if needed > free:
        return f"The rows need {needed / 2**30:.1f} GiB on the GPU, of which {free / 2**30:.1f} are free."
    return ""


def free_gpu_memory() -> int | str:
    """Bytes of the first GPU that are free, or a sentence that says why there is none."""
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        return f'{missing[0]} is not installed, which a GPU needs: pip install "accountable-ope[gpu]".'
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return "torch finds no GPU that it can use here."
    return int(torch.cuda.mem_get_info()[0])


def engine_for(engine: AnyEngine, kernel: Kernel, points: FloatArray, columns: int, options: TileOptions | None) -> Engine:
    """The engine itself, where "auto" stands for the one that fits."""
    if not isinstance(engine, str):
        return engine
    rows, dimension = points.shape
    return choose(kernel, rows=rows, dimension=dimension, columns=columns, options=options)
