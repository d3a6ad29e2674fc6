"""Products K(x, y) C with a kernel matrix that is never formed: the only O(n^2) code.

A thread takes a row of tiles, with BLAS held to one thread; NumPy lets go of the interpreter lock in the products and in exp, so
threads run side by side. Rows of tiles are handed back in a fixed order, so sums of them do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from ..arguments import checked
from ..errors import InvalidInput
from ..validation import FloatArray, whole
from .kernel import FiniteRank, Kernel, distinct_rows, group_sums
from .tiles import KernelTiles

BLOCK = 256
"""Rows of a tile that are multiplied at a time: OpenBLAS copies larger factors first, which for few columns doubles the time."""

Progress = Callable[[float], None]
"""Called with the fraction done, from 0 to 1."""

Result = TypeVar("Result")


def part_of(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """Progress of one part of the work, as progress of the whole."""
    return None if progress is None else lambda done: progress(start + (stop - start) * done)


@checked
@dataclass(frozen=True)
class TileOptions:
    """How a pass over pairs of points is cut up and computed. Results depend on the precision only.

    Parameters
    ----------
    rows, columns : int
        Size of a tile. The defaults keep a tile in the second-level cache.
    threads : int, optional
        Number of threads; None for as many as the machine has cores.
    single_precision : bool
        Whether tiles are computed in float32, on a GPU by half-precision products. Bounds account for the larger rounding errors.
    device : str
        "cpu", or "cuda" for sums on a GPU, over pairs with a Gaussian kernel or over rows with random features.

    Raises
    ------
    InvalidInput
        Where a size or the number of threads is not a whole number of at least 1.

    Examples
    --------
    >>> from accountable_ope.kernels import TileOptions
    >>> TileOptions(threads=2).rows
    512
    """

    rows: int = 512
    columns: int = 256
    threads: int | None = None
    single_precision: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.device not in ("cpu", "cuda"):
            raise InvalidInput(f'`device` must be "cpu" or "cuda". Got {self.device!r}.')
        whole(self.rows, "rows", least=1)
        whole(self.columns, "columns", least=1)
        if self.threads is not None:
            whole(self.threads, "threads", least=1)

    @property
    def dtype(self) -> Any:
        return np.float32 if self.single_precision else np.float64


@checked
def kernel_product(
    kernel: Kernel,
    points: FloatArray,
    columns: FloatArray,
    options: TileOptions | None = None,
    progress: Progress | None = None,
    *,
    at: FloatArray | None = None,
) -> FloatArray:
    """sum_i K(x, points_i) columns_i at every row x of `at`: through its features where the kernel has few, else by tiles.

    Parameters
    ----------
    kernel : Kernel
    points : array (n, d)
        Equal points are taken together.
    columns : array (n,) or (n, k)
    options : TileOptions, optional
    progress : callable, optional
        Called with the fraction done.
    at : array (m, d), optional
        Where the sums are evaluated; None for the points themselves.

    Returns
    -------
    array (m,) or (m, k)

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Tabular
    >>> from accountable_ope.kernels.products import kernel_product
    >>> kernel_product(Tabular(), np.array([[0.0], [1.0], [0.0]]), np.array([1.0, 2.0, 3.0]))
    array([4., 2., 4.])
    """
    stacked = columns.reshape(len(points), -1)
    if isinstance(kernel, FiniteRank):
        # The features of a kernel may depend on which points there are, so all of them go in together.
        both = points if at is None else np.concatenate([points, at])
        padded = stacked if at is None else np.concatenate([stacked, np.zeros((len(at), stacked.shape[1]))])
        product = kernel.expand(both, kernel.project(both, padded))[0 if at is None else len(points) :]
        if progress is not None:
            progress(1.0)
    else:
        options = TileOptions() if options is None else options
        first, group = distinct_rows(points)
        sources = points[first]
        targets = sources if at is None else at
        product = np.empty((len(targets), stacked.shape[1]))
        tiles = kernel.prepare(targets, sources, options.dtype)
        for _ in rows_of_tiles(tiles, len(targets), group_sums(group, stacked), product.__setitem__, options, progress):
            pass  # every row of tiles writes its own rows
        if at is None:
            product = product[group]
    return product.reshape(len(product), *columns.shape[1:])


def rows_of_tiles(
    tiles: KernelTiles,
    height: int,
    columns: FloatArray,
    finish: Callable[[slice, FloatArray], Result],
    options: TileOptions,
    progress: Progress | None = None,
    *,
    symmetric: bool = False,
) -> Iterator[Result]:
    """finish(rows, (K C)[rows]) for successive rows of tiles of K, (height, len(columns)); the second argument is a buffer.

    symmetric: K is square, and only tiles on or above the diagonal are computed, those on it halved: sum_r C_r' (K C)[r] is then
    half of the sum over all pairs, up to transposition.
    """
    width, k = columns.shape
    tile_columns = columns.astype(options.dtype, copy=False)
    buffers = local()

    def row_of_tiles(start: int) -> Result:
        stop = min(start + options.rows, height)
        tile, product, sums = _buffers(buffers, options, k)
        here = stop - start
        sums[:here] = 0.0
        left = start if symmetric else 0
        while left < width:
            diagonal = symmetric and left == start
            right = stop if diagonal else min(left + options.columns, width)
            entries = tile[: here * (right - left)].reshape(here, right - left)
            tiles.fill(slice(start, stop), slice(left, right), entries)
            _multiply(entries, tile_columns[left:right], product[:here])
            if diagonal:
                product[:here] *= 0.5
            sums[:here] += product[:here]
            left = right
        return finish(slice(start, stop), sums[:here])

    starts = range(0, height, options.rows)
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(options.threads or os.cpu_count() or 1) as pool:
        for start, result in zip(starts, pool.map(row_of_tiles, starts), strict=True):
            yield result
            if progress is not None:
                rest = (height - min(start + options.rows, height)) / height
                progress(1 - (rest * rest if symmetric else rest))


def _multiply(tile: Any, columns: Any, out: Any) -> None:
    """tile @ columns, in one call, by blocks of rows that BLAS multiplies as they lie, without packing them first."""
    height, width = tile.shape
    blocks = height // BLOCK if height % BLOCK == 0 else 1
    np.matmul(tile.reshape(blocks, -1, width), columns, out=out.reshape(blocks, -1, out.shape[1]))


def _buffers(store: local, options: TileOptions, k: int) -> tuple[Any, Any, FloatArray]:
    """One set of buffers per thread, allocated once."""
    if not hasattr(store, "tile"):
        store.tile = np.empty(options.rows * max(options.rows, options.columns), dtype=options.dtype)
        store.product = np.empty((options.rows, k), dtype=options.dtype)
        store.sums = np.empty((options.rows, k))
    return store.tile, store.product, store.sums
