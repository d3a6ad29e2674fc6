"""The embedded demonstration: a log of Puck-Mountain, its new policy given as columns, values measured by simulation."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from .bounds.interval import Interval
from .bounds.value import bound_ladder
from .classes.features import RandomFourier
from .io.files import whole_file
from .io.reading import read_transition_file
from .io.starts import read_start_file
from .kernels.kernel import Gaussian
from .kernels.products import Progress
from .problem.assumptions import Assumptions
from .problem.policy import TabulatedPolicy
from .problem.problem import Problem
from .problem.transitions import Transitions

FOLDER = "data"
DEMO_FILES = ("demo.parquet", "demo-starts.parquet")
DEMO_COMMAND = (
    "aope bound demo.parquet --starts demo-starts.parquet --action-values=-1,0,1 --discount 0.9 --reward-range 0 1 "
    "--deterministic-reward --one-step-range 2 --norm-bound 80 --features 16 --feature-bandwidth 1 --seed 31 --bandwidth 0.5 "
    "--ladder"
)
DEMO_ASSUMPTIONS = Assumptions(discount=0.9, reward_range=(0.0, 1.0), norm_bound=80.0, reward_noise=False, one_step_range=2.0)
"""What the analyst of the demonstration asserts. The noise of the task is cut at two standard deviations, so chance moves reward
plus discounted next value by less than 2 (1.7 at most, on a grid over the states). Norm bound and features were chosen on earlier
logs: examples/make_demo_data.py."""
DEMO_KERNEL = Gaussian(0.5)
DEMO_FEATURES = RandomFourier(dimension=16, bandwidth=1.0, seed=31)


def run_demo(progress: Progress | None = None) -> tuple[Transitions, tuple[Interval, ...]]:
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
    problem = Problem(file.data, starts.starts, policy, DEMO_ASSUMPTIONS)
    return file.data, bound_ladder(problem, features=DEMO_FEATURES, kernel=DEMO_KERNEL, progress=progress)


def copy_demo_data(folder: Path) -> None:
    """The two Parquet files of the demonstration, so that the named command can be run on them."""
    for name in DEMO_FILES:
        with whole_file(folder / name) as partial:
            partial.write_bytes((files(__package__) / FOLDER / name).read_bytes())


def demo_truth() -> float:
    """The value of the target policy, measured by simulation (standard error 0.001)."""
    return float(_record()["value"])


def demo_behavior_value() -> float:
    """The value of the policy that made the log, measured likewise: what the target policy has to beat."""
    return float(_record()["behavior_value"])


def _record() -> dict[str, Any]:
    text = (files(__package__) / FOLDER / "demo-truth.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
