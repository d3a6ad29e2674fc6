"""What is measured: every radius of the ladder, and interval functions that stand beside it.

A method is a name, a guarantee, and where it applies. `outcomes` runs several on one data set from one evaluation, so that the
pass over the pairs of rows is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Protocol, runtime_checkable

from ..arguments import checked
from ..bounds.anderson_rubin import AndersonRubinInterval, anderson_rubin_of
from ..bounds.evaluation import Evaluation, evaluate
from ..bounds.interval import Interval
from ..bounds.sandwich import SandwichInterval, sandwich_of
from ..errors import InvalidInput
from ..kernels.kernel import FiniteRank
from ..kernels.products import TileOptions
from ..problem.statements import Guarantee, Status
from ..problem.transitions import Transitions
from ..radii.registry import LADDER, RULES
from .family import Family


class AnyInterval(Protocol):
    """What any interval has."""

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def status(self) -> Status: ...


@runtime_checkable
class IntervalFunction(Protocol):
    """An interval that is not made of a radius."""

    def __call__(self, evaluation: Evaluation, delta: float) -> AnyInterval:
        """The interval of an evaluation of one class."""
        ...


@checked
@dataclass(frozen=True)
class IntervalMethod:
    """A way to an interval.

    Parameters
    ----------
    name : str
    guarantee : Guarantee
    interval : IntervalFunction, optional
        The function that gives it; None: the radius of this name.
    largest_count : int, optional
        More rows than these are not tried where the kernel is not of finite rank: they would take too long.

    Examples
    --------
    >>> from accountable_ope.laboratory import family_named, methods_named
    >>> symmetric, = methods_named(["symmetric"])
    >>> symmetric.applies(family_named("fair-coin"), 100), symmetric.applies(family_named("chain"), 100)
    (True, False)
    """

    name: str
    guarantee: Guarantee
    interval: IntervalFunction | None = None
    largest_count: int | None = None

    @property
    def finite_sample(self) -> bool:
        """Whether its coverage is claimed at every n, so that the laboratory may refute it."""
        return self.guarantee is not Guarantee.ASYMPTOTIC

    def applies(self, family: Family, n: int) -> bool:
        """Whether the family satisfies what the method declares, and n is within reach."""
        if self.guarantee is Guarantee.FINITE_SAMPLE_DECLARED_NOISE and not family.symmetric:
            return False
        return self.largest_count is None or n <= self.largest_count or isinstance(family.kernel, FiniteRank)


@dataclass(frozen=True)
class Outcome:
    """An interval on one data set. seconds: what it would take alone, so that the shared pass over the pairs counts for each."""

    method: str
    guarantee: str
    lower: float
    upper: float
    status: str
    seconds: float


INTERVALS: tuple[IntervalMethod, ...] = (
    IntervalMethod("sandwich", Guarantee.ASYMPTOTIC, sandwich_of),
    IntervalMethod("anderson-rubin", Guarantee.ASYMPTOTIC, anderson_rubin_of),
)
"""Methods that are no radii: one entry each, with `interval` set."""

LIMITS: tuple[tuple[str, int], ...] = (("self-normalized", 3000),)
"""(radius, largest number of rows) where a radius needs more than the two matrices of the statistic."""


def known_methods() -> tuple[IntervalMethod, ...]:
    """Every radius that there is, then the interval functions.

    Returns
    -------
    tuple of IntervalMethod

    Examples
    --------
    >>> from accountable_ope.laboratory import known_methods
    >>> {"azuma", "certified", "sandwich"} <= {method.name for method in known_methods()}
    True
    """
    limits = dict(LIMITS)
    return (*(IntervalMethod(rule.name, rule.guarantee, None, limits.get(rule.name)) for rule in RULES), *INTERVALS)


def in_order(names: Iterable[str]) -> list[str]:
    """The names of methods, each once, in the order of `known_methods`; others after them, as they come."""
    found = list(dict.fromkeys(names))
    known = [method.name for method in known_methods()]
    return sorted(found, key=lambda name: known.index(name) if name in known else len(known))


@checked
def methods_named(names: Sequence[str] | None = None) -> tuple[IntervalMethod, ...]:
    """The methods of these names, each once; by default the ladder and the interval functions.

    Parameters
    ----------
    names : sequence of str, optional

    Returns
    -------
    tuple of IntervalMethod

    Raises
    ------
    InvalidInput
        Where a name is unknown; names those that there are.

    Examples
    --------
    >>> from accountable_ope.laboratory import methods_named
    >>> [method.name for method in methods_named(["azuma", "sandwich"])]
    ['azuma', 'sandwich']
    """
    methods = {method.name: method for method in known_methods()}
    wanted = (*LADDER, *(method.name for method in INTERVALS)) if names is None else names
    unknown = [name for name in wanted if name not in methods]
    if unknown:
        raise InvalidInput(f"`radius` must be one of {', '.join(methods)}. Got {unknown[0]!r}.")
    return tuple(methods[name] for name in dict.fromkeys(wanted))


@checked
def outcomes(family: Family, data: Transitions, chosen: Sequence[IntervalMethod], delta: float, seed: int) -> tuple[Outcome, ...]:
    """The interval of every chosen method on one data set of the family, in their order, all from one evaluation.

    Parameters
    ----------
    family : Family
    data : Transitions
        Drawn from the family.
    chosen : sequence of IntervalMethod
    delta : float
    seed : int
        That of the data set; see `Family.problem`.

    Returns
    -------
    tuple of Outcome

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.laboratory import family_named, methods_named, outcomes
    >>> family = family_named("fair-coin")
    >>> data = family.draw(np.random.default_rng(0), 100)
    >>> found, = outcomes(family, data, methods_named(["azuma"]), delta=0.1, seed=0)
    >>> found.method, found.lower <= family.truth <= found.upper
    ('azuma', True)
    """
    begin = process_time()
    problem = family.problem(data, seed)
    evaluation = evaluate(problem, features=family.features, kernel=family.kernel, options=TileOptions(threads=1))
    shared = process_time() - begin
    found = []
    for method in chosen:
        begin = process_time() - shared
        interval: AnyInterval
        if method.interval is None:
            interval = evaluation.bound(method.name, delta)
        else:
            interval = method.interval(evaluation, delta)
        lower, upper, seconds = float(interval.lower), float(interval.upper), process_time() - begin
        found.append(Outcome(method.name, method.guarantee.value, lower, upper, _outcome(interval).name, seconds))
    return tuple(found)


def _outcome(interval: AnyInterval) -> Status:
    """Its status before any doubt, which is a test of its own and takes time."""
    known = (Interval, SandwichInterval, AndersonRubinInterval)
    return interval.outcome if isinstance(interval, known) else interval.status
