"""Files of a planted problem, its policy as columns: a class that holds Q, an exact value, for tests of the command line."""

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP

MDP = PlantedMDP(seed=1, features=5, discount=0.8)
OPTIONS = (
    "--starts", "planted-starts.parquet", "--action-values=-1,0,1", "--discount", 0.8, "--reward-range", 0, 1,
    "--deterministic-reward", "--norm-bound", 1.3, "--features", 5, "--seed", 1, "--bandwidth", 1,
)  # fmt: skip
"""What is true of it; the norm bound is about 1.5 times the true norm."""


def write_planted_files(folder):
    """planted.parquet, 5000 rows in 100 episodes, and planted-starts.parquet."""
    data = MDP.sample(np.random.default_rng(2020), trajectories=100, length=50)
    states = np.concatenate([data.states, data.next_states, MDP.starts.states])
    probabilities = np.column_stack([branch.weights for branch in MDP.policy.branches(states)])
    table = aope.TabulatedPolicy(states, probabilities, MDP.policy.action_vectors)
    aope.save_transitions(data, folder / "planted.parquet", table)
    aope.save_starts(MDP.starts, folder / "planted-starts.parquet", table)
