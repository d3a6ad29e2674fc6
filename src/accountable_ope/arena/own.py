"""Our own intervals as contestants: thin wrappers, each as a stranger would call it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ..baselines.contestant import Contestant, Entry, Needs
from ..baselines.interval import BaselineInterval
from ..bounds.cross_fitted import cross_fitted_interval
from ..bounds.sandwich import sandwich_interval
from ..bounds.value import bound_value
from ..bounds.weighed import answer_of
from ..errors import InvalidInput
from ..kernels.products import TileOptions
from ..problem.problem import Problem
from ..problem.statements import Guarantee, Statement, Status, doubt

PREFIX = "aope "
"""What the names of our own begin with."""

DEFAULT = f"{PREFIX}default"
DOUBTED = "doubted"
ONE_THREAD = TileOptions(threads=1)
SOURCE = "this package"

Interval = Callable[[Entry, float, np.random.Generator], BaselineInterval]


class Ends(Protocol):
    """What any of our intervals has."""

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def status(self) -> Status: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def premises(self) -> tuple[Statement, ...]: ...


def is_own(name: str) -> bool:
    """Whether a contestant is one of ours."""
    return name.startswith(PREFIX)


def default(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """`bound_value(problem)` without a knob; a norm bound belongs to a class that was told, and is not used."""
    problem = _without_a_norm(entry.problem)
    return _handed(problem, answer_of(bound_value(problem, delta=delta, options=ONE_THREAD)), "default", delta)


def radius(name: str) -> Interval:
    """One radius with the class that is told."""

    def interval(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
        problem, features, kernel = entry.problem, entry.features, entry.kernel
        if features is None or kernel is None:
            raise InvalidInput(f"{PREFIX}{name} needs `features` and `kernel`: no class of Q is given.")
        found = bound_value(problem, features=features, kernel=kernel, radius=name, delta=delta, options=ONE_THREAD)
        return _handed(problem, found, name, delta)

    return interval


def sandwich(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """The asymptotic interval of the class that is told."""
    if entry.features is None or entry.kernel is None:
        raise InvalidInput(f"{PREFIX}sandwich needs `features` and `kernel`: no class of Q is given.")
    problem = entry.problem
    found = sandwich_interval(problem, features=entry.features, kernel=entry.kernel, delta=delta, options=ONE_THREAD)
    return _handed(problem, found, "sandwich", delta)


def cross_fitted(entry: Entry, delta: float, rng: np.random.Generator) -> BaselineInterval:
    """Landmark coordinates alone, as `aope bound` shows it beside its answer."""
    found = cross_fitted_interval(entry.problem, delta=delta)
    return _handed(entry.problem, found, "cross-fitted", delta, found.doubts)


def _without_a_norm(problem: Problem) -> Problem:
    return problem.assuming(replace(problem.assumptions, norm_bound=None))


def _handed(problem: Problem, found: Ends, method: str, delta: float, doubts: Sequence[Statement] = ()) -> BaselineInterval:
    """As everybody hands it back: ends that have crossed where no function fits, a doubt among what it rests on."""
    low, high = problem.ranges.value
    crossed = math.isnan(found.lower)
    said = found.status is Status.DOUBTED or bool(doubts)
    remarks = (doubt(DOUBTED, "Its result says that it is doubted."),) if said else ()
    return BaselineInterval(
        lower=high if crossed else float(found.lower),
        upper=low if crossed else float(found.upper),
        method=method,
        delta=delta,
        episodes=problem.data.number_of_episodes or 0,
        estimand="Value of the target policy",
        count=len(problem.data),
        return_range=(low, high),
        premises=(*found.premises, *remarks),
        guarantee=found.guarantee,
    )


_CLASS = Needs(features=True, kernel=True)

OWN = (
    Contestant(
        DEFAULT,
        "the first answer, without a knob; rests on the fit to the earliest rows",
        SOURCE,
        Guarantee.FINITE_SAMPLE,
        Needs(),
        default,
    ),
    Contestant(f"{PREFIX}certified", "the class is told", SOURCE, Guarantee.FINITE_SAMPLE, _CLASS, radius("certified")),
    Contestant(f"{PREFIX}azuma", "the class is told; Theorem A", SOURCE, Guarantee.FINITE_SAMPLE, _CLASS, radius("azuma")),
    Contestant(f"{PREFIX}sandwich", "the class is told; normal limit", SOURCE, Guarantee.ASYMPTOTIC, _CLASS, sandwich),
    Contestant(
        f"{PREFIX}cross-fitted", "doubly robust, without propensities", SOURCE, Guarantee.ASYMPTOTIC, Needs(), cross_fitted
    ),
)
"""Ours, in the order in which they are shown."""
