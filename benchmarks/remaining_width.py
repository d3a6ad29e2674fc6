"""What the width of the default interval is made of, where the truth is known: each column adds one price to the one before.

python benchmarks/remaining_width.py

- sandwich: the large-sample interval, z = 1.645.
- tail: the cut's own martingale at the true Q, its variance and the best rate known, all of delta spent on it:
  sqrt(2 V log(2 / delta)); what a tail bound for all sample sizes asks above a normal one, with the cut's weights.
- shared: half of delta, the other half being spent on the kernel's evidence.
- range: rates that are fixed beforehand and end at 1 / b: U(b, a, V) at the true Q, a the largest step seen there, b the range
  that the last round has proved.
- others: U(b, a, V) at the largest steps and variance that functions of the class have which fit the data as well.
- interval: what is reported. Weights leave out a part of c0, which only the kernel's evidence bounds; the set is curved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, clinic, random_tabular
from accountable_ope.programs.envelope import Steps
from accountable_ope.validation import FloatArray
from widths import BOX

DELTA = 0.1


@dataclass(frozen=True, eq=False)
class Case:
    """An evaluation whose Q is known at the rows."""

    name: str
    evaluation: aope.Evaluation
    q: FloatArray


def planted(rows: int, seed: int) -> Case:
    mdp = PlantedMDP(seed=seed, features=10)
    data = mdp.sample(np.random.default_rng(100 + seed), trajectories=rows // 50)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), reward_noise=False, norm_bound=1.5 * mdp.norm, state_box=BOX)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    evaluation = aope.evaluate(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    return Case(f"planted {rows}, seed {seed}", evaluation, mdp.q(data.states, data.actions))


def tabular(rows: int) -> Case:
    mdp = random_tabular(20, 2, seed=1, discount=0.9)
    table = np.random.default_rng(2).dirichlet(np.ones(2), size=20)
    data = mdp.sample_trajectories(np.full((20, 2), 0.5), episodes=rows // 50, length=50, rng=np.random.default_rng(1))
    policy = mdp.policy(table)
    problem = aope.Problem(data, mdp.starts(), policy, aope.Assumptions(discount=0.9, reward_range=(0, 1), reward_noise=False))
    features = aope.TabularFeatures.grid(np.arange(20.0), policy.action_vectors, intercept=False)
    evaluation = aope.evaluate(problem, features=features, kernel=aope.Tabular())
    return Case(f"tabular {rows}", evaluation, at_rows(mdp.q_values(table), data))


def clinical(episodes: int) -> Case:
    mdp = clinic()
    table = np.full((6, 3), 1 / 3)
    table[:4] = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    data = mdp.sample_trajectories(np.full((6, 3), 1 / 3), episodes=episodes, length=200, rng=np.random.default_rng(0))
    policy = mdp.policy(table)
    facts = aope.Assumptions(discount=1.0, reward_range=(0, 1), terminal_reward=True)
    starts = aope.StartStates([[0.0], [1.0], [2.0], [3.0]], weights=[0.1, 0.3, 0.4, 0.2])
    features = aope.TabularFeatures.grid(np.arange(4.0), policy.action_vectors, intercept=False)
    evaluation = aope.evaluate(aope.Problem(data, starts, policy, facts), features=features, kernel=aope.Tabular())
    return Case(f"clinic {len(data)}", evaluation, at_rows(mdp.q_values(table), data))


def at_rows(q: FloatArray, data: aope.Transitions) -> FloatArray:
    return np.asarray(q[np.asarray(data.states)[:, 0].astype(int), np.asarray(data.actions).astype(int).ravel()])


def prices(case: Case) -> list[float]:
    """The columns, as shares of the range of rewards."""
    problem, (features,), kernel = case.evaluation.problem, case.evaluation.classes, case.evaluation.kernel
    interval = case.evaluation.bound(delta=DELTA)
    part = interval.certificates[0]
    cut, evidence = part.basis.sums.cut, part.constraints.evidence[1]
    assert cut is not None
    system = case.evaluation.member(0).system
    values = system.features(system.points)
    if values.shape[1] < system.dimension:
        values = np.column_stack([values, np.ones(len(values))])
    theta = np.linalg.lstsq(values, case.q, rcond=None)[0]
    residuals = system.target - system.residuals @ theta
    steps = np.abs(evidence.scale * residuals)
    variance, m = float(np.sum(steps**2)), len(theta)
    reached, aim = cut.total[:m], part.basis.objective
    unit = float(reached @ aim / (reached @ reached)) / cut.count  # turns the weighted sum into a value
    tail, shared = (math.sqrt(2 * variance * math.log(2 / share)) for share in (DELTA, evidence.envelope.delta))
    assert part.tightening is not None
    last = part.tightening.rounds[-1]
    known = Steps(last.steps[1].largest, float(steps.max()))
    ranged = float(evidence.envelope.bound(known, np.array([variance]))[0][0])
    others = float(evidence.envelope.bound(last.steps[1], np.array([last.variances[1]]))[0][0])
    normal = aope.bounds.sandwich_interval(problem, features=features, kernel=kernel, delta=DELTA)
    whole = float(np.ptp(interval.normalized)) / interval.width
    own = (2 * unit * size * whole for size in (tail, shared, ranged, others))
    return [float(np.ptp(normal.normalized)), *own, interval.width * whole]


def cases() -> Iterator[Case]:
    for rows in (1000, 3000, 10_000):
        for seed in (1, 2):
            yield planted(rows, seed)
    for rows in (2000, 5000, 20_000):
        yield tabular(rows)
    for episodes in (300, 1000, 10_000):
        yield clinical(episodes)


def main() -> None:
    names = ("sandwich", "tail", "shared", "range", "others", "interval")
    print(f"{'':24}" + "".join(f"{name:>10}" for name in names))
    for case in cases():
        print(f"{case.name:24}" + "".join(f"{width:10.4f}" for width in prices(case)), flush=True)


if __name__ == "__main__":
    main()
