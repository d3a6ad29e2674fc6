"""Make the dataset that `aope demo` runs on: a log of Puck-Mountain, as Parquet files, and the values that it is compared with.

    python examples/make_demo_data.py src/accountable_ope/data
    python examples/make_demo_data.py --choose

The logging policy is the softmax policy of the task's network at temperature 1, the new one that at temperature 0.1. It enters as
columns, as a user without code would give it. The log is 50 episodes of 100 steps; its seed was taken as it came. Nothing about
the logging policy is written.

What the demonstration declares was fixed on earlier logs, which are not shipped. `--choose` repeats that, in some seconds: the
features are those of 4 bandwidths and 40 seeds whose Q, fitted on 3000 earlier rows, has the smallest U-statistic on 3000 others.
The norm bound, 80, is about twice the norm of that fit. So small a class does not contain Q: every function of it is off by about
1 at some state, while Q lies between 1 and 9.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PuckMountain, monte_carlo_value, roll_out, softmax_policy
from accountable_ope.experiments.setting import draw_rows
from accountable_ope.problem import state_action_points
from accountable_ope.statistics import bellman_residuals, u_statistic

TASK, TARGET, BEHAVIOR = "puck-mountain", 0.1, 1.0
EPISODES, SEED = 50, 2020
DISCOUNT = 0.9
SIMULATED = 200_000
KERNEL = aope.Gaussian(0.5)
DIMENSION, BANDWIDTHS, SEEDS = 16, (0.6, 0.8, 1.0, 1.3), range(40)
EARLIER_ROWS, FITTED_ON, COMPARED_ON, RIDGE = 3000, 1, 3, 1e-5
"""Earlier logs: their size, and the seeds of the one that Q is fitted on and the one that fits are compared on."""

CHOICE = (
    f"{DIMENSION} random Fourier features: of the bandwidths {', '.join(map(str, BANDWIDTHS))} and the seeds {SEEDS.start} to "
    f"{SEEDS.stop - 1} those whose Q, fitted on {EARLIER_ROWS} rows of an earlier log, has the smallest U-statistic on another "
    "one. Norm bound: about twice the norm of that fit. To repeat it: python examples/make_demo_data.py --choose"
)


def make(folder: Path) -> None:
    task, target, behavior = PuckMountain(), softmax_policy(TASK, TARGET), softmax_policy(TASK, BEHAVIOR)
    data = roll_out(task, behavior, np.random.default_rng(SEED), episodes=EPISODES)
    states = np.concatenate([data.states, data.next_states, task.starts.states])
    table = aope.TabulatedPolicy(states, target.probabilities(states), task.actions)
    aope.save_transitions(data, folder / "demo.parquet", table)
    aope.save_starts(task.starts, folder / "demo-starts.parquet", table)
    values = {
        name: monte_carlo_value(task, policy, np.random.default_rng([SEED, index]), discount=DISCOUNT, episodes=SIMULATED)
        for index, (name, policy) in enumerate((("target", target), ("behavior", behavior)))
    }
    record = {
        "task": TASK,
        "discount": DISCOUNT,
        "value": values["target"].value,
        "standard_error": values["target"].standard_error,
        "target_temperature": TARGET,
        "behavior_value": values["behavior"].value,
        "behavior_standard_error": values["behavior"].standard_error,
        "behavior_temperature": BEHAVIOR,
        "simulated_episodes": SIMULATED,
        "data_seed": SEED,
        "chosen": CHOICE,
        "made_by": "python examples/make_demo_data.py src/accountable_ope/data",
    }
    (folder / "demo-truth.json").write_text(json.dumps(record, indent=2) + "\n")


def choose() -> None:
    """The candidates in the order of their loss on rows that they were not fitted on."""
    policy = softmax_policy(TASK, TARGET)
    earlier, other = (draw_rows(TASK, BEHAVIOR, EARLIER_ROWS, seed) for seed in (FITTED_ON, COMPARED_ON))
    points = state_action_points(other.states, other.actions, policy)
    found = []
    for bandwidth in BANDWIDTHS:
        for seed in SEEDS:
            features = aope.RandomFourier(DIMENSION, bandwidth, seed)
            q = aope.fit_q(earlier, policy, features=features, kernel=KERNEL, discount=DISCOUNT, ridge=RIDGE)
            loss = u_statistic(bellman_residuals(q, other, policy, DISCOUNT), points, KERNEL)
            found.append((loss, float(np.linalg.norm(q.theta[:-1])), features))
    for loss, norm, features in sorted(found, key=lambda one: one[0])[:5]:
        print(f"loss {loss:.2e}, norm {norm:.1f}: {features}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the three files are written")
    parser.add_argument("--choose", action="store_true", help="repeat the choice of the features instead")
    arguments = parser.parse_args()
    if arguments.choose:
        choose()
    elif arguments.folder is None:
        parser.error("a folder is needed, unless --choose")
    else:
        make(arguments.folder)
