"""A planted log in several files, and a question about it."""

from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP

MDP = PlantedMDP(seed=1, features=5, discount=0.9)
FACTS = aope.Assumptions(discount=0.9, reward_range=(0, 1), norm_bound=1.5 * MDP.norm)
KERNEL = aope.RandomFeatureKernel(60)


@cache
def planted_rows(trajectories=60):
    return MDP.sample(np.random.default_rng(3), trajectories=trajectories)


def asked(facts=FACTS, features=None, kernel=KERNEL, starts=MDP.starts, policy=MDP.policy, anchor=None):
    return aope.StreamQuestion(aope.Question(starts, policy, facts), features or MDP.features(), kernel, anchor)


def scanned(folder, data, batch_rows=1024, files=3):
    """The rows in several files, cut anywhere."""
    aope.save_transitions(data, folder / "whole.parquet")
    table = pq.read_table(folder / "whole.parquet")
    (folder / "whole.parquet").unlink()
    edges = np.linspace(0, len(data), files + 1).astype(int)
    for index, (start, end) in enumerate(pairwise(edges)):
        pq.write_table(table.slice(start, end - start), folder / f"part-{index}.parquet")
    return aope.scan_transitions(folder, batch_rows=batch_rows)
