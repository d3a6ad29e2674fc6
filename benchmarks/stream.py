"""Disk to statistic and to interval, in parts and as a whole: rows per second, memory and how far the results are apart.

python benchmarks/stream.py [--rows 1000000] [--frequencies 256] [--features 32] [--files 10] [--batch-rows 65536]
python benchmarks/stream.py --rows 100000000 --folder DIR --only interval --only parts

A log of 4 state columns and 2 actions is written to a temporary folder, or to the one that is named, where it stays: a run that
was stopped writes the files that are missing, measures what was not measured, and goes on with the pass that was under way. Each
way runs in a process of its own, whose peak memory is measured; what the process needs before it begins is subtracted. Seconds
of processors are those of all threads together, and say more than wall time on a machine that does other things.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import accountable_ope as aope
from accountable_ope.problem import Experience
from accountable_ope.statistics import KernelStatistic, bellman_system, kernel_statistic

STATES = [f"state_{j}" for j in range(4)]
WAYS = ("interval", "parts", "reading parts", "whole")
MOST_ROWS = 2_000_000
"""Of a file."""


@dataclass(frozen=True)
class Setting:
    """What is run."""

    rows: int
    frequencies: int
    features: int
    files: int
    batch_rows: int


def question(setting: Setting) -> aope.StreamQuestion:
    """A policy of two actions that depends on the state, cosines for Q and random features for the test kernel."""

    def softmax(states: np.ndarray) -> np.ndarray:
        up = 1 / (1 + np.exp(-states[:, 0]))
        return np.column_stack([up, 1 - up])

    policy = aope.DiscretePolicy(softmax, actions=2)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=20.0)
    asked = aope.Question(aope.StartStates(np.zeros((1, 4))), policy, facts)
    kernel = aope.RandomFeatureKernel(setting.frequencies, 2.0)
    return aope.StreamQuestion(asked, aope.RandomFourier(setting.features, 2.0), kernel)


def write_log(folder: Path, setting: Setting, whole: bool) -> None:
    """Rows in several files, episodes of 100 of them; all of them in one file too where they are to be held in memory.

    Every file has draws of its own and takes its name when it is whole: those that are there are left as they are.
    """
    files = max(setting.files, -(-setting.rows // MOST_ROWS))
    edges = np.linspace(0, setting.rows, files + 1).astype(int)
    for number, (start, stop) in enumerate(pairwise(edges)):
        path = folder / f"part-{number:04d}.parquet"
        if path.exists():
            continue
        rng, rows, n = np.random.default_rng([0, number]), np.arange(start, stop), stop - start
        columns = {name: rng.normal(size=n) for name in STATES}
        columns |= {f"next_{name}": columns[name] + 0.1 * rng.normal(size=n) for name in STATES}
        columns |= {"action": rng.integers(0, 2, n), "reward": rng.uniform(size=n), "terminated": rows % 100 == 99}
        # Numbers that are all different have no dictionary: to look for one takes longer than to write them.
        table, begun = pa.table({**columns, "episode": rows // 100}), folder / f"{path.name}.begun"
        pq.write_table(table, begun, row_group_size=131_072, use_dictionary=["action", "terminated", "episode"])
        begun.rename(path)
    if whole and not (folder.parent / "whole.parquet").exists():
        pq.write_table(pq.read_table(folder), folder.parent / "whole.parquet", row_group_size=131_072)


def run_way(way: str, folder: Path, setting: Setting, state: Path | None) -> None:
    """In a process of its own: prints seconds and memory, and writes the statistic.

    state: where the pass to the interval is kept.
    """
    asked, resumed = question(setting), state is not None and state.exists()
    before = peak()
    begin, busy = time.perf_counter(), time.process_time()
    if way == "whole":
        data = aope.load_transitions(folder.parent / "whole.parquet")
        experience = Experience(data, asked.question.starts, asked.question.policy, 0.95)
        kernel_statistic(bellman_system(experience, asked.features), asked.kernel).save(folder.parent / f"{way}.npz")
    else:
        scan = aope.scan_transitions(folder, batch_rows=setting.batch_rows)
        if way == "interval":
            interval = aope.bound_stream(scan, asked, resume=state)
            assert interval.check()
            print(f"{interval!r}", file=sys.stderr)
        elif way == "parts":
            aope.stream_statistic(scan, asked).statistic().save(folder.parent / f"{way}.npz")
        else:
            assert sum(map(len, scan)) == setting.rows
    seconds, processors = time.perf_counter() - begin, time.process_time() - busy
    print(json.dumps({"seconds": seconds, "processors": processors, "memory": peak() - before, "resumed": resumed}))


def peak() -> float:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=WAYS, action="append", help="Leave the other ways out.")
    for name, default in (("rows", 1_000_000), ("frequencies", 256), ("features", 32), ("files", 10), ("batch-rows", 65_536)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--way", choices=("write", *WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="Where log and measurements are kept; without it, nowhere.")
    given = parser.parse_args()
    setting = Setting(given.rows, given.frequencies, given.features, given.files, given.batch_rows)
    ways = given.only or WAYS
    if given.way:
        log = given.folder / "log"
        if given.way == "write":
            write_log(log, setting, "whole" in ways)
        else:
            run_way(given.way, log, setting, given.folder / "state.npz" if given.way == "interval" else None)
    elif given.folder:
        place = given.folder / "-".join(str(each) for each in astuple(setting))  # another setting is another log
        (place / "log").mkdir(parents=True, exist_ok=True)
        compare(place, setting, ways)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            (Path(temporary) / "log").mkdir()
            compare(Path(temporary), setting, ways)


def compare(place: Path, setting: Setting, ways: Sequence[str]) -> None:
    """Every way in a process of its own. A process begins with the peak of the one that starts it, so this one holds nothing."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in asdict(setting).items()]
    options += [f"--only={way}" for way in ways]
    command = [sys.executable, __file__, *options, "--folder", str(place), "--way"]
    subprocess.run([*command, "write"], check=True)
    found = {}
    for way in ways:
        kept = place / f"{way.replace(' ', '-')}.json"
        if not kept.exists():
            kept.write_text(subprocess.run([*command, way], check=True, stdout=subprocess.PIPE, text=True).stdout)
        found[way] = json.loads(kept.read_text())
        seconds, processors, memory = (found[way][name] for name in ("seconds", "processors", "memory"))
        speed = f"{setting.rows / seconds:10,.0f} rows/s, {setting.rows / processors:10,.0f} rows per second of a processor"
        alone = "  (went on from a pass that was stopped: seconds of the rest)" if found[way]["resumed"] else ""
        print(f"{way:14} {seconds:7.2f} s  {speed}  {memory:7.0f} MiB{alone}", flush=True)
    if not {"parts", "whole"} <= set(found):
        return
    one, other = (KernelStatistic.load(place / f"{way}.npz") for way in ("parts", "whole"))
    apart = np.abs(one.pair_gram - other.pair_gram).max() / np.abs(other.pair_gram).max()
    wall, busy, memory = (found["parts"][name] / found["whole"][name] for name in ("seconds", "processors", "memory"))
    print(
        f"parts / whole: {wall:.2f} of the time ({busy:.2f} of the processors), {memory:.3f} of the memory, apart by {apart:.1e}"
    )
    print(f"kernel_error: {one.kernel_error:.1e} in parts, {other.kernel_error:.1e} as a whole")


if __name__ == "__main__":
    main()
