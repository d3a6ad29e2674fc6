"""Sums on one and on two processes: exact pairs and rows of a log, time and memory of the workers, in one run.

python benchmarks/cluster.py [--pairs 60000] [--rows 1000000] [--files 10] [--workers 1 2]

Workers are processes of one thread each. Both numbers of workers are timed in turn, so that a machine that does other things
disturbs both alike; the result of either is compared with that of this process.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import accountable_ope as aope
from accountable_ope.statistics.engines.finite_rank import reduce_pairs

STATES = [f"state_{j}" for j in range(4)]
COLUMNS = 34


def question() -> aope.StreamQuestion:
    """Two actions, 32 cosines for Q and 512 random features for the test kernel."""
    policy = aope.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), actions=2)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))
    asked = aope.Question(aope.StartStates(np.zeros((1, 4))), policy, facts)
    return aope.StreamQuestion(asked, aope.RandomFourier(32), aope.RandomFeatureKernel(256))


def write_log(folder: Path, rows: int, files: int) -> None:
    """Independent rows."""
    rng = np.random.default_rng(0)
    for number, count in enumerate(np.full(files, rows // files)):
        table = {name: rng.normal(size=count) for name in (*STATES, *(f"next_{name}" for name in STATES))}
        table |= {"action": rng.integers(0, 2, count), "reward": rng.uniform(size=count)}
        pq.write_table(pa.table(table), folder / f"part-{number}.parquet")


def peak_memory() -> float:
    """Mebibytes that this process has had at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(what: str, work: Callable[[aope.engines.Dask], np.ndarray], alone: np.ndarray, workers: list[int]) -> None:
    """Seconds, memory and difference with every number of workers, and the ratio of the first to each."""
    first = 0.0
    for number in workers:
        with aope.engines.Dask(workers=number) as engine:
            client = engine._open[0]
            before = max(client.run(peak_memory).values())
            start = time.perf_counter()
            found = work(engine)
            seconds = time.perf_counter() - start
            memory = max(client.run(peak_memory).values()) - before
        first = first or seconds
        off = np.abs(found - alone).max() / np.abs(alone).max()
        print(
            f"{what}, {number} workers: {seconds:8.2f} s, {first / seconds:5.2f} times as fast as the first, "
            f"{memory:6.0f} MiB more in a worker, off by {off:.1e}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    rng = np.random.default_rng(0)
    kernel, points, columns = aope.Gaussian(1.0), rng.normal(size=(asked.pairs, 6)), rng.normal(size=(asked.pairs, COLUMNS))
    start = time.perf_counter()
    alone = reduce_pairs(kernel, points, columns).pair_gram
    print(f"pairs of {asked.pairs} rows in this process, all threads: {time.perf_counter() - start:.2f} s")
    compare(f"pairs of {asked.pairs} rows", lambda it: it.pair_sums(kernel, points, columns).pair_gram, alone, asked.workers)
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), asked.rows, asked.files)
        scan = aope.scan_transitions(folder)
        start = time.perf_counter()
        alone = aope.stream_statistic(scan, question()).projected
        print(f"{asked.rows} rows in this process, all threads: {time.perf_counter() - start:.2f} s")
        compare(f"{asked.rows} rows", lambda it: it.stream_statistic(scan, question()).projected, alone, asked.workers)


if __name__ == "__main__":
    main()
