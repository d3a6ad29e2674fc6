"""Sums on a GPU: seconds, and how far they are from double precision, at 2^14, 2^17 and 2^20 rows; and from rows to an interval.

python benchmarks/gpu.py [--rows 1048576] [--sums-only]

Needs a GPU and torch. Half-precision products are compared with double precision on the same GPU, which at 2^14 rows is compared
with the processor.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP
from accountable_ope.kernels import Kernel, TileOptions
from accountable_ope.statistics.engines.cuda import Device
from accountable_ope.statistics.engines.finite_rank import reduce_pairs
from accountable_ope.statistics.engines.tiles import PairSums

DOUBLE, HALF = TileOptions(device="cuda"), TileOptions(device="cuda", single_precision=True)


def timed(kernel: Kernel, x: np.ndarray, columns: np.ndarray, options: TileOptions | None) -> tuple[PairSums, float]:
    """(sums, seconds): the second of two runs, since the first compiles."""
    seconds = 0.0
    for _ in range(1 if options is None else 2):
        begin = time.perf_counter()
        found = reduce_pairs(kernel, x, columns, options)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    return found, seconds


def on_the_device(kernel: Kernel, x: np.ndarray, columns: np.ndarray) -> float:
    """Seconds of the half-precision sums alone, of rows that are there already."""
    device = Device.open()
    points, _ = device.coordinates(kernel, x)
    rows = device.placed(points, columns)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    device.grams(rows, rows, None, symmetric=True)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def off(found: np.ndarray, exact: np.ndarray) -> float:
    """Relative, in the norm."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2**20)
    parser.add_argument("--sums-only", action="store_true", help="no intervals, which are mostly work of the processor")
    options = parser.parse_args()
    largest = options.rows
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    rng, kernel = np.random.default_rng(0), aope.Gaussian(1.0)
    for n in sorted({min(2**14, largest), min(2**17, largest), largest}):
        x = rng.normal(size=(n, 5))
        for k in (16, 64, 128):
            columns = rng.normal(size=(n, k)) + 0.3
            half, fast = timed(kernel, x, columns, HALF)
            double, slow = timed(kernel, x, columns, DOUBLE)
            counted = f"counted {half.kernel_error:.1e} and {double.kernel_error:.1e}"
            apart = off(half.pair_gram, double.pair_gram)
            alone = on_the_device(kernel, x, columns)
            line = f"n = {n:8}, k = {k:3}: half {fast:6.2f} s ({alone:.3f} s with rows on the device), double {slow:6.2f} s"
            line += f", apart by {apart:.1e}"
            if n == 2**14:
                exact, _ = timed(kernel, x, columns, None)
                line += f", double from the processor by {off(double.pair_gram, exact.pair_gram):.1e}"
            print(f"{line}; {counted}", flush=True)
        features = aope.RandomFeatureKernel(256)
        columns = rng.normal(size=(n, 34))
        found, seconds = timed(features, x, columns, DOUBLE)
        exact, cpu = timed(features, x, columns, None)
        apart = off(found.pair_gram, exact.pair_gram)
        print(f"n = {n:8}, 256 frequencies, k = 34: {seconds:.2f} s, processor {cpu:.2f} s, apart by {apart:.1e}", flush=True)
    if not options.sums_only:
        intervals(rng, kernel, largest)


def intervals(rng: np.random.Generator, kernel: Kernel, largest: int) -> None:
    """From rows in memory to an interval."""
    mdp = PlantedMDP(seed=1, features=64, discount=0.95)
    data = mdp.sample(rng, trajectories=largest // 50)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=1.5 * mdp.norm)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    for name, options in (("half", HALF), ("double", DOUBLE)):
        begin = time.perf_counter()
        evaluation = aope.evaluate(problem, features=mdp.features(), kernel=kernel, options=options)
        summed = time.perf_counter() - begin
        interval = evaluation.bound()
        seconds = time.perf_counter() - begin
        width = (1 - 0.95) * (interval.upper - interval.lower)
        times = f"{seconds:.1f} s ({summed:.1f} s of sums)"
        print(f"{len(data)} rows, 64 features, {name}: {times}, width {width:.2g}, {interval!r}", flush=True)


if __name__ == "__main__":
    main()
