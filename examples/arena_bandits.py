"""Bandit intervals of other packages beside ours, on logs whose value is known: how often each holds it, and how wide it is.

In an environment of its own, with this package installed in it:

    pip install . vw-estimators gym==0.26.2 scikit-learn pandas
    pip install --no-deps scope-rl==0.2.1
    python examples/arena_bandits.py --logs 100

`vw-estimators` (github.com/VowpalWabbit/estimators) is told the largest weight of the log where it takes one. Of SCOPE-RL
(github.com/hakuhodo-technologies/scope-rl) these are the four functions of scope_rl/utils.py behind its `estimate_intervals`, on
importance-weighted rewards, at their defaults.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np

from accountable_ope.arena.challenges import challenge_named
from accountable_ope.arena.entrants import entrant, entry
from accountable_ope.laboratory import clopper_pearson
from accountable_ope.problem.propensities import taken_probabilities

DELTA = 0.1
Interval = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, float]]
"""(logged probabilities, target probabilities, rewards) -> both ends."""


def of_scope(function: Callable[..., dict[str, float]]) -> Interval:
    """An interval of SCOPE-RL for the mean of importance-weighted rewards."""

    def interval(logged: np.ndarray, asked: np.ndarray, rewards: np.ndarray) -> tuple[float, float]:
        found = function(asked / logged * rewards, alpha=DELTA, random_state=12345)
        low, high = (next(end for name, end in found.items() if word in name) for word in ("lower", "upper"))
        return float(low), float(high)

    return interval


def of_vw(make: Callable[[float], object]) -> Interval:
    """An interval of vw-estimators; `make` is told the largest possible weight."""

    def interval(logged: np.ndarray, asked: np.ndarray, rewards: np.ndarray) -> tuple[float, float]:
        found = make(float((asked / logged).max()))
        for p_log, r, p_pred in zip(logged, rewards, asked, strict=True):
            found.add_example(float(p_log), float(r), float(p_pred))  # type: ignore[attr-defined]
        low, high = found.get(DELTA)  # type: ignore[attr-defined]
        return float(low), float(high)

    return interval


def intervals() -> dict[str, Interval]:
    from estimators.bandits import clopper_pearson as vw_clopper_pearson
    from estimators.bandits import cressieread, cs, gaussian
    from scope_rl import utils

    return {
        "vw gaussian": of_vw(lambda most: gaussian.Interval()),
        "vw clopper-pearson": of_vw(lambda most: vw_clopper_pearson.Interval()),
        "vw cressie-read": of_vw(lambda most: cressieread.Interval(wmin=0, wmax=most)),
        "vw confidence sequence": of_vw(lambda most: cs.Interval()),
        "scope-rl bootstrap": of_scope(utils.estimate_confidence_interval_by_bootstrap),
        "scope-rl hoeffding": of_scope(utils.estimate_confidence_interval_by_hoeffding),
        "scope-rl bernstein": of_scope(utils.estimate_confidence_interval_by_empirical_bernstein),
        "scope-rl t": of_scope(utils.estimate_confidence_interval_by_t_test),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--problem", default="bandit-logged", help="A bandit of the arena with propensities.")
    parser.add_argument("--ours", nargs="*", default=["aope certified", "aope cross-fitted", "trajectory betting"])
    given = parser.parse_args()
    challenge = challenge_named(given.problem)
    truth = challenge.truth
    others = intervals()
    held: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}

    def count(name: str, ends: tuple[float, float], begin: float) -> None:
        low, high = max(ends[0], 0.0), min(ends[1], 1.0)
        held.setdefault(name, []).append(low - truth.margin <= truth.value <= high + truth.margin)
        widths.setdefault(name, []).append(max(high - low, 0.0))
        seconds.setdefault(name, []).append(process_time() - begin)

    for log in range(given.logs):
        data = challenge.draw(np.random.default_rng(log), given.n)
        asked = taken_probabilities(challenge.policy, data)
        logged = np.asarray(data.behavior_probability)
        for name, interval in others.items():
            begin = process_time()
            count(name, interval(logged, asked, np.asarray(data.rewards)), begin)
        for name in given.ours:
            begin = process_time()
            found = entrant(name).bound(entry(challenge, data, log), DELTA, np.random.default_rng(log))
            count(name, (found.lower, found.upper), begin)
    print(f"{given.problem}, n = {given.n}, {given.logs} logs, value {truth.value:.4f}, 90% promised")
    for name, hits in held.items():
        low, high = clopper_pearson(sum(hits), len(hits))
        width, took = np.mean(widths[name]), np.mean(seconds[name])
        print(f"| {name} | {np.mean(hits):.3f} [{low:.3f}, {high:.3f}] | {width:.4f} | {took:.3f} |")


if __name__ == "__main__":
    main()
