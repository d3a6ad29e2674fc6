"""C'KC for a Gaussian kernel: NumPy tiles against scikit-learn, torch tiles and pykeops, with the same number of threads.

Methods take turns, so that the noise of the machine falls on all of them alike; seconds are medians of the repeats.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from accountable_ope.kernels.kernel import Gaussian
from accountable_ope.kernels.products import TileOptions
from accountable_ope.statistics.engines.tiles import pair_sums

Matrix = np.ndarray[Any, np.dtype[Any]]
Method = Callable[[], Matrix]

OURS = "NumPy tiles"
TORCH = "torch tiles"
TORCH_PORT = "our tiles in torch"
KEOPS = "pykeops"
SKLEARN = "scikit-learn"
PAUSE = 0.3
"""Seconds between two calls: the threads of a BLAS library keep a core busy for a while after its last product."""
TARGETS = ((KEOPS, 12.0), (TORCH, 2.0))
SMALL_K = 65
"""Other than ours and torch, methods are run up to this many columns, and the targets are for them."""


def our_tiles(points: Matrix, columns: Matrix, bandwidth: float, threads: int, single: bool) -> Matrix:
    return pair_sums(Gaussian(bandwidth), points, columns, TileOptions(threads=threads, single_precision=single)).pair_gram


def sklearn_rows(points: Matrix, columns: Matrix, bandwidth: float, rows: int = 1000) -> Matrix:
    """Whole rows of the kernel matrix, `rows` at a time."""
    from sklearn.metrics.pairwise import rbf_kernel

    total = np.zeros((columns.shape[1], columns.shape[1]))
    for start in range(0, len(points), rows):
        block = rbf_kernel(points[start : start + rows], points, gamma=1 / bandwidth**2)
        total += columns[start : start + rows].T @ (block @ columns)
    return total


def torch_plain_tiles(points: Any, columns: Any, bandwidth: float, size: int = 1024) -> Matrix:
    """Tiles as one writes them in torch: squared distances, exp, product with the columns; every tile, none reused."""
    import torch

    x = points / bandwidth
    squares = (x * x).sum(1)
    product = torch.zeros_like(columns)
    for i in range(0, len(x), size):
        for j in range(0, len(x), size):
            distances = squares[i : i + size, None] - 2 * (x[i : i + size] @ x[j : j + size].T) + squares[None, j : j + size]
            product[i : i + size] += torch.exp(-distances) @ columns[j : j + size]
    return (columns.T @ product).numpy()


def torch_tiles(points: Any, columns: Any, bandwidth: float, rows: int = 1024, wide: int = 2048) -> Matrix:
    """The same algorithm as ours in torch: tiles on or above the diagonal, exponent by one product, all in place.

    The tiles are larger, because torch splits the work inside every operation: sizes were chosen for torch's best time.
    """
    import torch

    n, k = columns.shape
    scaled = (points - points.mean(0)) / bandwidth
    squares = (scaled * scaled).sum(1, keepdim=True)
    ones = torch.ones_like(squares)
    left = torch.cat([2 * scaled, -squares, ones], 1)
    right = torch.cat([scaled, ones, -squares], 1).T.contiguous()
    product = torch.zeros(n, k, dtype=columns.dtype)
    buffer = torch.empty(rows * max(rows, wide), dtype=columns.dtype)
    for start in range(0, n, rows):
        stop = min(start + rows, n)
        first = start
        while first < n:
            last = stop if first == start else min(first + wide, n)
            tile = buffer[: (stop - start) * (last - first)].view(stop - start, last - first)
            torch.mm(left[start:stop], right[:, first:last], out=tile).exp_()
            product[start:stop].addmm_(tile, columns[first:last], alpha=0.5 if first == start else 1.0)
            first = last
    half = columns.T @ product
    return (half + half.T).numpy()


def keops(points: Matrix, columns: Matrix, bandwidth: float) -> Matrix:
    from pykeops.numpy import LazyTensor

    x = np.ascontiguousarray(points / points.dtype.type(bandwidth))
    kernel = (-((LazyTensor(x[:, None, :]) - LazyTensor(x[None, :, :])) ** 2).sum(-1)).exp()
    return columns.T @ (kernel @ columns)


def methods(points: Matrix, columns: Matrix, bandwidth: float, threads: int, dtype: Any, console: Console) -> dict[str, Method]:
    """The calls to be timed, each warmed up (and pykeops compiled) on a few rows."""
    import torch

    x, c = points.astype(dtype), columns.astype(dtype)
    few = slice(0, 500)
    found: dict[str, Method] = {
        OURS: partial(our_tiles, points, columns, bandwidth, threads, dtype == np.float32),
        TORCH: partial(torch_plain_tiles, torch.from_numpy(x), torch.from_numpy(c), bandwidth),
        TORCH_PORT: partial(torch_tiles, torch.from_numpy(x), torch.from_numpy(c), bandwidth),
    }
    our_tiles(points[few], columns[few], bandwidth, threads, dtype == np.float32)
    for call in (torch_plain_tiles, torch_tiles):
        call(torch.from_numpy(x[few]), torch.from_numpy(c[few]), bandwidth)
    if columns.shape[1] > SMALL_K:
        return found
    found[SKLEARN] = partial(sklearn_rows, x, c, bandwidth)
    sklearn_rows(x[few], c[few], bandwidth)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            keops(x[few], c[few], bandwidth)
        found[KEOPS] = partial(keops, x, c, bandwidth)
    except Exception as problem:  # it needs a C++ compiler at run time
        console.print(f"pykeops does not work here and is left out: {type(problem).__name__}: {problem}", markup=False)
    return found


def take_turns(calls: dict[str, Method], repeats: int, threads: int) -> tuple[dict[str, float], dict[str, Matrix]]:
    """Median seconds and the last result of every method."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Matrix] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            time.sleep(PAUSE)
            with threadpool_limits(limits=threads):
                begin = time.perf_counter()
                results[name] = call()
                seconds[name].append(time.perf_counter() - begin)
    return {name: median(times) for name, times in seconds.items()}, results


def difference(result: Matrix, reference: Matrix) -> float:
    return float(np.linalg.norm(result - reference) / np.linalg.norm(reference))


def error_of_reference(points: Matrix, columns: Matrix, bandwidth: float, threads: int, rows: int) -> float:
    """Our float64 tiles against all differences, squared and summed one by one, on the first rows."""
    x, c = points[:rows], columns[:rows]
    squares = sum((x[:, None, j] - x[None, :, j]) ** 2 for j in range(x.shape[1]))
    direct = c.T @ np.exp(-squares / bandwidth**2) @ c
    return difference(our_tiles(x, c, bandwidth, threads, single=False), direct)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="number of points n")
    parser.add_argument("--dimension", type=int, default=5, help="dimension d of a point")
    parser.add_argument("--columns", type=int, nargs="+", default=[11, 65, 257], help="numbers of columns k")
    parser.add_argument("--bandwidth", type=float, default=1.0, help="points are standard normal")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="for every method")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="5,000 rows, 11 and 65 columns")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.columns = 5000, [11, 65]

    import torch

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(ImportError):
        import pykeops

        pykeops.set_verbose(False)
    torch.set_num_threads(options.threads)
    console = Console()
    rng = np.random.default_rng(0)
    points = rng.normal(size=(options.rows, options.dimension))
    table = Table(title=f"C'KC, n = {options.rows:,}, d = {options.dimension}, {options.threads} threads")
    for name in ("k", "precision", "method", "seconds", "times ours", "relative error"):
        table.add_column(name, justify="left" if name == "method" else "right")
    verdicts = []
    for k in options.columns:
        columns = rng.normal(size=(options.rows, k))
        own = error_of_reference(points, columns, options.bandwidth, options.threads, rows=min(2000, options.rows))
        reference = our_tiles(points, columns, options.bandwidth, options.threads, single=False)
        for dtype in (np.float64, np.float32):
            calls = methods(points, columns, options.bandwidth, options.threads, dtype, console)
            seconds, results = take_turns(calls, options.repeats, options.threads)
            for name, spent in seconds.items():
                is_reference = name == OURS and dtype == np.float64
                error = f"{own:.0e} (direct)" if is_reference else f"{difference(results[name], reference):.0e}"
                table.add_row(str(k), dtype.__name__, name, f"{spent:.3f}", f"{spent / seconds[OURS]:.2f}", error)
            table.add_section()
            verdicts += [
                (k, dtype.__name__, name, wanted, seconds[name] / seconds[OURS])
                for name, wanted in TARGETS
                if name in seconds and k <= SMALL_K
            ]
    console.print(table)
    console.print("Errors are relative to our float64 tiles; those are compared with a direct sum over a subset of the rows.")
    for k, precision, name, wanted, ratio in verdicts:
        met = "met" if ratio >= wanted else "missed"
        console.print(
            f"target {met}: {ratio:5.2f} times faster than {name} (wanted {wanted:g}) at k = {k}, {precision}", highlight=False
        )


if __name__ == "__main__":
    main()
