"""Widths of the normalized 90% interval on the planted problem, for every tier that is not vacuous there.

python benchmarks/widths.py [--seeds 3] [--largest 30000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP

CASES = (
    (10, 1000, False), (10, 3000, False), (10, 10_000, False), (10, 30_000, False), (5, 1000, False), (5, 5000, False),
    (30, 3000, False), (30, 10_000, False), (10, 1000, True), (10, 5000, True), (10, 30_000, True),
)  # fmt: skip
RADII = ("certified", "symmetric", "wild")
"""The default first. Beside it: the same without a cut, as it is for data that grow."""
BOX = ((-5.6, -3.5), (5.6, 3.5))
"""Holds every state that 50 steps from [-1, 1]^2 can reach, whatever the actions."""


def widths(features: int, rows: int, bernoulli: bool, seed: int) -> tuple[list[float], bool, float]:
    """(widths by radius and of the sandwich, whether all finite-sample ones covered, seconds of `certified`)."""
    mdp = PlantedMDP(seed=seed, features=features, bernoulli=bernoulli)
    data = mdp.sample(np.random.default_rng(100 + seed), trajectories=rows // 50)
    facts = aope.Assumptions(
        discount=0.95,
        reward_range=(0, 1),
        reward_noise=bernoulli,
        norm_bound=1.5 * mdp.norm,
        state_box=BOX,
        symmetric_noise=True,
    )
    problem, phi, kernel = aope.Problem(data, mdp.starts, mdp.policy, facts), mdp.features(), aope.Gaussian(1.0)
    start = time.perf_counter()
    evaluation = aope.evaluate(problem, features=phi, kernel=kernel)
    certified = evaluation.bound(RADII[0])
    seconds = time.perf_counter() - start
    without_cut = evaluation.bound(RADII[0], planned=rows)
    found = (certified, without_cut, *evaluation.ladder(RADII[1:]))
    sandwich = aope.bounds.sandwich_interval(problem, features=phi, kernel=kernel)
    covered = all(mdp.value in interval for interval in found[:2])
    return [one.normalized[1] - one.normalized[0] for one in (*found, sandwich)], covered, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="planted problems 1, 2, ...")
    parser.add_argument("--largest", type=int, default=30_000)
    options = parser.parse_args()
    print(
        "   m      n  rewards        seed  "
        + "  ".join(f"{name:>13}" for name in ("certified", "without cut", *RADII[1:], "sandwich"))
        + "  covered  seconds"
    )
    for features, rows, bernoulli in CASES:
        if rows > options.largest:
            continue
        for seed in range(1, options.seeds + 1):
            kind = "Bernoulli" if bernoulli else "deterministic"
            try:
                found, covered, seconds = widths(features, rows, bernoulli, seed)
            except aope.InvalidInput as error:  # some seeds pay a reward outside [0, 1] far from the start
                print(f"{features:4} {rows:6}  {kind:13}  {seed:4}  {error}"[:110])
                continue
            cells = "  ".join(f"{width:13.4f}" for width in found)
            print(f"{features:4} {rows:6}  {kind:13}  {seed:4}  {cells}  {covered!s:>7}  {seconds:7.2f}", flush=True)


if __name__ == "__main__":
    main()
