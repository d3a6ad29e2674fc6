"""Measure the values that the experiments compare with: Monte Carlo over many simulated episodes.

python examples/measure_truth.py src/accountable_ope/data/policies/truth.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from accountable_ope.environments import control_task, monte_carlo_value, softmax_policy
from accountable_ope.environments.softmax import TARGET_TEMPERATURE, TASKS

TEMPERATURES = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
EPISODES = 10_000
EPISODES_OF_THE_TARGET = 50_000
DISCOUNT = 0.95


def main(path: Path) -> None:
    rows = []
    for name in TASKS:
        for index, temperature in enumerate(TEMPERATURES):
            rng = np.random.default_rng([2020, index])
            episodes = EPISODES_OF_THE_TARGET if temperature == TARGET_TEMPERATURE else EPISODES
            found = monte_carlo_value(
                control_task(name), softmax_policy(name, temperature), rng, discount=DISCOUNT, episodes=episodes
            )
            rows.append(
                {
                    "task": name,
                    "temperature": temperature,
                    "discount": DISCOUNT,
                    "value": found.value,
                    "standard_error": found.standard_error,
                    "episodes": found.episodes,
                    "cut_off": found.cut_off,
                }
            )
            print(rows[-1], flush=True)
    path.write_text(json.dumps({"made_by": "examples/measure_truth.py", "values": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
