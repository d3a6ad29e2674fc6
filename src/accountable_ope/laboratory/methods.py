"""What is measured: every radius of the ladder, and interval functions that stand beside it.

A method is a name, a guarantee, and where it applies. `evaluate` runs several on one data set: all radii from one prepared
statistic, so that the pass over the pairs of rows is made once, and every other method by its own call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

from ..bounds.asymptotic import anderson_rubin_interval, sandwich_interval
from ..bounds.interval import Status
from ..bounds.value import bound_prepared, prepare
from ..classes.features import FeatureMap
from ..errors import InvalidInput
from ..kernels.kernel import FiniteRank, Kernel
from ..problem.assumptions import Assumptions
from ..problem.policy import Policy, SampledPolicy
from ..problem.transitions import StartStates, Transitions
from ..radii.registry import LADDER, RULES, Guarantee
from ..statistics.engines.tiles import TileOptions
from .family import Family


class Interval(Protocol):
    """What any interval has."""

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def status(self) -> Status: ...


class IntervalFunction(Protocol):
    """An interval that is not made of a radius; called like `bound_value`, without the radius."""

    def __call__(
        self,
        data: Transitions,
        starts: StartStates,
        policy: Policy,
        *,
        assumptions: Assumptions,
        kernel: Kernel,
        features: FeatureMap,
        delta: float,
        options: TileOptions | None,
    ) -> Interval: ...


@dataclass(frozen=True)
class IntervalMethod:
    """A way to an interval.

    interval:      the function that gives it; None: the radius of this name.
    largest_count: more rows than these are not tried where the kernel is not of finite rank: they would take too long.
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
    IntervalMethod("sandwich", Guarantee.ASYMPTOTIC, sandwich_interval),
    IntervalMethod("anderson-rubin", Guarantee.ASYMPTOTIC, anderson_rubin_interval),
)
"""Methods that are no radii: one entry each, with `interval` set."""

LIMITS: tuple[tuple[str, int], ...] = (("self-normalized", 3000),)
"""(radius, largest number of rows) where a radius needs more than the two matrices of the statistic."""


def known_methods() -> tuple[IntervalMethod, ...]:
    """Every radius that there is, then the interval functions."""
    limits = dict(LIMITS)
    return (*(IntervalMethod(rule.name, rule.guarantee, None, limits.get(rule.name)) for rule in RULES), *INTERVALS)


def methods_named(names: Sequence[str] | None = None) -> tuple[IntervalMethod, ...]:
    """The methods of these names, each once; by default the ladder and the interval functions."""
    methods = {method.name: method for method in known_methods()}
    wanted = (*LADDER, *(method.name for method in INTERVALS)) if names is None else names
    unknown = [name for name in wanted if name not in methods]
    if unknown:
        raise InvalidInput(f"`radius` must be one of {', '.join(methods)}. Got {unknown[0]!r}.")
    return tuple(methods[name] for name in dict.fromkeys(wanted))


def evaluate(family: Family, data: Transitions, chosen: Sequence[IntervalMethod], delta: float, seed: int) -> tuple[Outcome, ...]:
    """The interval of every chosen method on one data set of the family, in their order.

    seed: that of the data set. A policy that can only be sampled gets its own draws for every data set: they are part of the
    data, and coverage is a statement about both.
    """
    starts = data.first_states() if family.starts is None else family.starts
    policy = family.policy
    if isinstance(policy, SampledPolicy):
        policy = replace(policy, seed=seed + 1)  # not the stream that drew the data
    options = TileOptions(threads=1)
    begin = perf_counter()
    prepared = None
    if any(method.interval is None for method in chosen):
        prepared = prepare(
            data,
            starts,
            policy,
            discount=family.assumptions.discount,
            kernel=family.kernel,
            features=family.features,
            options=options,
        )
    preparing = perf_counter() - begin
    found = []
    for method in chosen:
        begin = perf_counter()
        if method.interval is None:
            assert prepared is not None
            interval: Interval = bound_prepared(prepared, assumptions=family.assumptions, radius=method.name, delta=delta)
            begin -= preparing
        else:
            interval = method.interval(
                data,
                starts,
                policy,
                assumptions=family.assumptions,
                kernel=family.kernel,
                features=family.features,
                delta=delta,
                options=options,
            )
        found.append(_outcome(method, interval, perf_counter() - begin))
    return tuple(found)


def _outcome(method: IntervalMethod, interval: Interval, seconds: float) -> Outcome:
    return Outcome(
        method.name, method.guarantee.value, float(interval.lower), float(interval.upper), interval.status.name, seconds
    )
