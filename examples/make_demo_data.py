"""Make the dataset that `aope demo` runs on: a planted problem with exactly known truth, as Parquet files.

    python examples/make_demo_data.py src/accountable_ope/data

The policy enters as columns, as a user without code would give it. States are two-dimensional, actions are pushes {-1, 0, 1}, the
behaviour policy is unknown to the method, rewards are a function of (s, a) in [0, 1].
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP

ACTIONS = [[-1.0], [0.0], [1.0]]


def main(folder: Path) -> None:
    mdp = PlantedMDP(seed=1, features=5, discount=0.8)
    data = mdp.sample(np.random.default_rng(2020), trajectories=100, length=50)
    states = np.concatenate([data.states, data.next_states, mdp.starts.states])
    probabilities = np.column_stack([branch.weights for branch in mdp.policy.branches(states)])
    table = aope.TabulatedPolicy(states, probabilities, ACTIONS)
    aope.save_transitions(data, folder / "demo.parquet", table)
    aope.save_starts(mdp.starts, folder / "demo-starts.parquet", table)
    truth = {
        "value": mdp.value,
        "norm": mdp.norm,
        "behavior_mean_reward": float(data.rewards.mean()),
        "made_by": "examples/make_demo_data.py",
    }
    (folder / "demo-truth.json").write_text(json.dumps(truth, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
