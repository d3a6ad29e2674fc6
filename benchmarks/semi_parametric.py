"""Coverage and width of a semi-parametric class on a planted problem of which features are withheld.

    python benchmarks/semi_parametric.py [--logs 30]

14 cosines, 12 of them given, 2000 rows, discount .95, K1 Gaussian of bandwidth 2 with 60 landmarks; values are normalized.
A row for every rho, with boxes at points and without; the cut is part of the radius `certified`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedFeatures, PlantedMDP

RHOS = (3.2, 0.3)
GIVEN = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=30)
    logs = parser.parse_args().logs
    mdp = PlantedMDP(seed=1, features=14, discount=0.95)
    some = PlantedFeatures(mdp.frequencies[:GIVEN], mdp.phases[:GIVEN])
    norm = 1.5 * np.sqrt(GIVEN) * float(np.linalg.norm(mdp.theta[:GIVEN]))
    around = aope.SemiParametric(some, aope.Gaussian(2.0), landmarks=60)
    found: dict[tuple[float, bool], list[tuple[bool, float, float]]] = {}
    for seed in range(logs):
        data = mdp.sample(np.random.default_rng(seed), trajectories=40)
        for rho in RHOS:
            facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), norm_bound=norm, misfit_norm=rho, reward_noise=False)
            problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
            evaluation = aope.evaluate(problem, features=around, kernel=aope.Gaussian(1.0))
            for boxes in (False, True):
                begun = time.perf_counter()
                interval = evaluation.bound(pointwise=boxes)
                taken = time.perf_counter() - begun
                assert interval.check(), interval.verify().message
                found.setdefault((rho, boxes), []).append((mdp.value in interval, 0.05 * interval.width, taken))
    print(f"normalized value {0.05 * mdp.value:.4f}, norm bound {norm:.3g}")
    print("| rho | boxes at points | covered | mean width | seconds |\n|---|---|---|---|---|")
    for (rho, boxes), rows in found.items():
        covered, widths, seconds = (np.array(column) for column in zip(*rows, strict=True))
        shown = f"{int(covered.sum())} of {len(rows)} | {widths.mean():.3f} | {seconds.mean():.1f}"
        print(f"| {rho:g} | {'yes' if boxes else 'no'} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
