"""One small log in many forms, with numbers that single precision holds exactly."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

STATE = ["age", "lactate"]
NAMES = {"state": STATE, "action": "drug", "reward": "outcome", "terminated": "died", "episode": "patient"}


def columns(episodes=60, length=8, seed=0):
    """Columns of a log without next states: some episodes end, the others are cut off."""
    rng = np.random.default_rng(seed)
    found = {name: [] for name in ("patient", "age", "lactate", "drug", "outcome", "died")}
    for patient in range(episodes):
        age, lactate = rng.integers(-8, 9) / 4, rng.integers(-8, 9) / 4
        for step in range(length):
            drug = int(rng.integers(2))
            died = patient % 3 == 0 and step == length - 1
            row = (f"p{patient}", age, lactate, drug, float(lactate > 0) / 2 + drug / 4, died)
            for name, value in zip(found, row, strict=True):
                found[name].append(value)
            lactate = float(np.clip(lactate / 2 + (0.25 if drug else -0.25) + rng.integers(-2, 3) / 8, -4, 4))
            lactate = round(lactate * 64) / 64
    return found


def with_words(found):
    """The same with words for a column of the state and for the actions."""
    wards = ["icu", "recovery", "surgery"]
    return {
        **found,
        "ward": [wards[int(4 * abs(each)) % 3] for each in found["lactate"]],
        "drug": ["none" if each else "high" for each in found["drug"]],
    }


def pandas_frame(found):
    return pd.DataFrame(found)


def d3rlpy_dataset(found):
    """What d3rlpy's MDPDataset(observations, actions, rewards, terminals, timeouts) looks like from outside."""
    frame = pd.DataFrame(found)
    episodes = []
    for _, rows in frame.groupby("patient", sort=False):
        episodes.append(
            SimpleNamespace(
                observations=rows[STATE].to_numpy().astype(np.float32),
                actions=rows[["drug"]].to_numpy(),
                rewards=rows[["outcome"]].to_numpy().astype(np.float32),
                terminated=bool(rows["died"].iloc[-1]),
            )
        )
    info = SimpleNamespace(action_space=SimpleNamespace(name="DISCRETE"))
    return SimpleNamespace(episodes=episodes, dataset_info=info)
