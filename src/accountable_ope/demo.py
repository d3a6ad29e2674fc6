"""The embedded demonstration: a small dataset with known truth, its policy given as columns."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path

from .assumptions import Assumptions
from .features import RandomFourier
from .interval import bound_ladder
from .io.parquet import read_start_file, read_transition_file
from .kernels import Gaussian
from .policy import TabulatedPolicy
from .radius import LADDER
from .reductions.numpy_tiles import Progress
from .result import ValueInterval
from .transitions import Transitions

FOLDER = "data"
DEMO_COMMAND = (
    "aope bound demo.parquet --starts demo-starts.parquet --action-values=-1,0,1 --discount 0.8 --reward-range 0 1 "
    "--deterministic-reward --norm-bound 1.3 --features 5 --seed 1 --bandwidth 1 --ladder"
)
DEMO_ASSUMPTIONS = Assumptions(discount=0.8, reward_range=(0.0, 1.0), norm_bound=1.3, reward_noise=False)
"""What the analyst of the demonstration asserts; the norm bound is about 1.5 times the true norm."""


def run_demo(progress: Progress | None = None) -> tuple[Transitions, tuple[ValueInterval, ...]]:
    """The data and the ladder of intervals."""
    import numpy as np

    with as_file(files(__package__) / FOLDER) as folder:
        file = read_transition_file(Path(folder) / "demo.parquet")
        starts = read_start_file(Path(folder) / "demo-starts.parquet")
    assert file.at_next is not None and starts.at_state is not None  # the embedded files have these columns
    policy = TabulatedPolicy(
        np.concatenate([file.data.next_states, starts.starts.states]),
        np.concatenate([file.at_next, starts.at_state]),
        [[-1.0], [0.0], [1.0]],
    )
    intervals = bound_ladder(
        file.data,
        starts.starts,
        policy,
        assumptions=DEMO_ASSUMPTIONS,
        kernel=Gaussian(1.0),
        features=RandomFourier(dimension=5, bandwidth=1.0, seed=1),
        radii=LADDER,
        progress=progress,
    )
    return file.data, intervals


def copy_demo_data(folder: Path) -> None:
    """The two Parquet files of the demonstration, so that the named command can be run on them."""
    for name in ("demo.parquet", "demo-starts.parquet"):
        (folder / name).write_bytes((files(__package__) / FOLDER / name).read_bytes())


def demo_truth() -> float:
    """The exact value of the target policy, known because the problem was planted."""
    text = (files(__package__) / FOLDER / "demo-truth.json").read_text(encoding="utf-8")
    return float(json.loads(text)["value"])
