"""Measure the values that the table of trust compares with: Monte Carlo over many simulated episodes.

python examples/measure_trust.py src/accountable_ope/data/trust/truth.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from accountable_ope.environments import monte_carlo_value
from accountable_ope.trust.control import DISCOUNT, SIMULATIONS
from accountable_ope.trust.exact import planted_process, timid

EPISODES = 200_000
EPISODES_OF_PLANTED = 20_000
"""Its rewards are sums over many atoms, and take ten times as long."""


def main(path: Path) -> None:
    process = planted_process()
    questions = []
    for make in SIMULATIONS:
        simulation = make()
        questions += [
            (simulation.process.name, name, simulation.process, policy, DISCOUNT) for name, policy in simulation.policies
        ]
    questions.append((process.name, "timid", process, timid(process), process.mdp.discount))
    rows = []
    for index, (task, name, simulated, policy, discount) in enumerate(questions):
        episodes = EPISODES_OF_PLANTED if task == process.name else EPISODES
        rng = np.random.default_rng([2026, index])
        found = monte_carlo_value(simulated, policy, rng, discount=discount, episodes=episodes)
        rows.append(
            {
                "task": task,
                "policy": name,
                "discount": discount,
                "value": found.value,
                "standard_error": found.standard_error,
                "episodes": found.episodes,
                "cut_off": found.cut_off,
            }
        )
        print(rows[-1], flush=True)
        document = {"made_by": "examples/measure_trust.py", "values": rows}
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
