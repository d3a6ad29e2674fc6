"""How often the cross-fitted interval and the sandwich hold the value, at a nominal 90%, and how wide they are.

python benchmarks/doubly_robust.py [--logs 200] [--rows 2000 10000] [--families planted ...] [--folder trials]
    [--from docs/trials/doubly-robust.parquet] [--keep new.parquet] [--stored]

With --folder every log is written down when it is done, and an interrupted run goes on where it stopped. --keep writes all to
one compact file, from which (--from) a run on another day goes on; --stored shows what is there and draws no log.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

import accountable_ope as aope
from accountable_ope.environments import PlantedMDP, measured_value, random_tabular, softmax_policy
from accountable_ope.environments.planted import PlantedFeatures
from accountable_ope.environments.softmax import control_task
from accountable_ope.experiments.setting import draw_rows
from accountable_ope.laboratory.draws import Episodes, Greedy
from accountable_ope.runner.store import load_rows, save_rows


@dataclass(frozen=True)
class Log:
    """One log, with the class that is used and the truth."""

    problem: aope.Problem
    features: aope.classes.FeatureMap
    kernel: aope.Gaussian
    truth: float


@dataclass(frozen=True)
class Trial:
    """What was found on one log."""

    seed: int
    error: float
    covers: bool
    width: float
    sandwich_covers: bool
    sandwich_width: float
    effective_sample_size: float
    largest_share: float
    seconds: float


class Coarse:
    """A few random columns over a table, which do not contain Q."""

    intercept = True

    def __init__(self, columns: np.ndarray, actions: int) -> None:
        self.columns, self.actions, self.dimension = columns, actions, columns.shape[1]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return self.columns[points[:, 0].astype(int) * self.actions + np.argmax(points[:, 1:], axis=1)]


def planted(total: int, given: int) -> Callable[[int, int], Log]:
    """So many of the features that Q is made of."""
    mdp = PlantedMDP(seed=1, features=total)
    features = PlantedFeatures(mdp.frequencies[:given], mdp.phases[:given], True)
    facts = aope.Assumptions(discount=0.95, reward_range=(0, 1), reward_noise=False)

    def draw(rows: int, seed: int) -> Log:
        data = mdp.sample(np.random.default_rng([21, seed]), trajectories=rows // 50, length=50)
        return Log(aope.Problem(data, mdp.starts, mdp.policy, facts), features, aope.Gaussian(1.0), mdp.value)

    return draw


def tabular(adaptive: bool) -> Callable[[int, int], Log]:
    """A finite process through coarse features; logged at random, or by who learns while logging."""
    states, actions = 12, 3
    mdp = random_tabular(states, actions, seed=4, discount=0.9, bernoulli=True)
    rng = np.random.default_rng(1)
    target, coarse = rng.dirichlet(np.ones(actions), size=states), Coarse(rng.normal(size=(states * actions, 5)), actions)
    source = Greedy(mdp, 0.2, 50) if adaptive else Episodes(mdp, np.full((states, actions), 1 / actions), 50)
    facts = aope.Assumptions(discount=0.9, reward_range=(0, 1))

    def draw(rows: int, seed: int) -> Log:
        problem = aope.Problem(source(np.random.default_rng([21, seed]), rows), mdp.starts(), mdp.policy(target), facts)
        return Log(problem, coarse, aope.Gaussian(0.5), mdp.value(target))

    return draw


def puck(dimension: int) -> Callable[[int, int], Log]:
    """Puck-Mountain with random features, too few of them for its Q."""
    task, features = control_task("puck-mountain"), aope.RandomFourier(dimension, 0.5, seed=1)
    policy, truth = softmax_policy("puck-mountain", 0.1), measured_value("puck-mountain").value
    facts = aope.Assumptions(discount=0.95, reward_range=task.reward_range, terminates=task.terminates)

    def draw(rows: int, seed: int) -> Log:
        data = draw_rows("puck-mountain", 1.0, rows, 21_000 + seed)
        return Log(aope.Problem(data, task.starts, policy, facts), features, aope.Gaussian(0.5), truth)

    return draw


FAMILIES = {
    "planted": lambda: planted(10, 10),
    "planted, 10 of 14": lambda: planted(14, 10),
    "tabular, coarse": lambda: tabular(adaptive=False),
    "adaptive, coarse": lambda: tabular(adaptive=True),
    "puck, 16": lambda: puck(16),
    "puck, 50": lambda: puck(50),
}


def tried(log: Log, seed: int) -> Trial:
    """Both intervals on one log. The cross-fitted one chooses its kernel itself."""
    begin = time.perf_counter()
    found = aope.cross_fitted_interval(log.problem, features=log.features)
    seconds = time.perf_counter() - begin
    sandwich = aope.bounds.sandwich_interval(log.problem, features=log.features, kernel=log.kernel)
    return Trial(
        seed=seed,
        error=found.estimate - log.truth,
        covers=log.truth in found,
        width=found.width,
        sandwich_covers=log.truth in sandwich,
        sandwich_width=sandwich.width,
        effective_sample_size=found.effective_sample_size,
        largest_share=found.largest_share,
        seconds=seconds,
    )


@dataclass(frozen=True)
class Kept(Trial):
    """A trial with the cell that it is of."""

    family: str
    rows: int


def cell(name: str, rows: int, logs: int, folder: Path | None, known: Sequence[Kept] = ()) -> list[Trial]:
    """All trials of one family and size, those of an earlier run read back."""
    kept = None if folder is None else folder / f"{name.replace(', ', '-').replace(' ', '-')}-{rows}.jsonl"
    done = [Trial(**json.loads(line)) for line in kept.read_text().splitlines()] if kept is not None and kept.exists() else []
    before = [each for each in known if (each.family, each.rows) == (name, rows)]
    done += [Trial(*(getattr(each, field.name) for field in fields(Trial))) for each in before[len(done) :]]
    draw = FAMILIES[name]() if len(done) < logs else None
    for seed in range(len(done), logs):
        assert draw is not None
        done.append(tried(draw(rows, seed), seed))
        if kept is not None:
            with kept.open("a") as file:
                file.write(json.dumps(asdict(done[-1])) + "\n")
    return done[:logs] if logs else done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--from", type=Path, dest="known")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--stored", action="store_true")
    options = parser.parse_args()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    known = () if options.known is None else load_rows(Kept, options.known)
    kept = []
    print("family               rows  logs  covers  width   sandwich  width    error    ess  share  seconds")
    for rows in options.rows:
        for name in options.families:
            trials = cell(name, rows, 0 if options.stored else options.logs, options.folder, known)
            kept += [Kept(**asdict(each), family=name, rows=rows) for each in trials]
            if not trials:
                continue
            values = np.array([[float(value) for value in asdict(each).values()] for each in trials])
            _, error, covers, _, other, _, _, _, _ = values.mean(axis=0)
            _, _, _, width, _, other_width, size, share, seconds = np.median(values, axis=0)
            print(
                f"{name:18} {rows:6} {len(trials):5} {covers:7.3f} {width:6.3f} {other:10.3f} {other_width:6.3f} {error:+8.3f} "
                f"{size:6.0f} {share:6.2f} {seconds:8.2f}",
                flush=True,
            )
    if options.keep is not None and kept:
        save_rows(kept, options.keep, compact=True)


if __name__ == "__main__":
    main()
