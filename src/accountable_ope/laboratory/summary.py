"""From trials to fractions: how often intervals held the truth, with what certainty that is known, and how wide they were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..arguments import checked
from ..errors import InvalidInput
from ..problem.statements import Guarantee, Status
from ..validation import probability_level, whole
from .trial import Trial

DOUBT = 1e-6
"""A claim is refuted when so few intervals cover that this had a smaller probability than this if the claim were true."""


@checked
@dataclass(frozen=True)
class Coverage:
    """All trials of one family, size, method and delta.

    Attributes
    ----------
    family, data_kind, method, guarantee : str
    n : int
    delta : float
    trials : int
    covered : int
        How many of the trials held the truth.
    low, high : float
        The Clopper-Pearson interval of the probability to cover.
    width : float
        Mean normalized width of the intervals that are not empty; NaN when all are.
    vacuous : float
        Fraction of intervals that are the whole range of values.
    inconsistent : float
        Fraction of data sets with which no function of the class was consistent; such an interval covers nothing.
    seconds : float
        Mean time, see `Trial`.
    """

    family: str
    data_kind: str
    method: str
    guarantee: str
    n: int
    delta: float
    trials: int
    covered: int
    low: float
    high: float
    width: float
    vacuous: float
    inconsistent: float
    seconds: float

    @property
    def fraction(self) -> float:
        return self.covered / self.trials

    @property
    def claims(self) -> bool:
        """Whether the method claims 1 - delta at every n."""
        return self.guarantee != Guarantee.ASYMPTOTIC.value

    @property
    def refuted(self) -> bool:
        """Whether the claim is no longer believable."""
        return self.claims and not believable(self.covered, self.trials, self.delta)


@checked
def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact two-sided confidence interval of a probability.

    Parameters
    ----------
    successes, trials : int
    level : float

    Returns
    -------
    tuple of two floats

    Examples
    --------
    >>> from accountable_ope.laboratory import clopper_pearson
    >>> [round(end, 4) for end in clopper_pearson(90, 100)]
    [0.8238, 0.951]
    """
    from scipy.stats import binomtest  # slow to import

    _refuse_counts(successes, trials, "successes")
    probability_level(level, "level")
    interval = binomtest(successes, trials).proportion_ci(level, method="exact")
    return float(interval.low), float(interval.high)


@checked
def believable(covered: int, trials: int, delta: float) -> bool:
    """Whether so few hits had a probability above 1e-6 for a method that covers with probability 1 - delta or more.

    Parameters
    ----------
    covered, trials : int
    delta : float

    Returns
    -------
    bool

    Examples
    --------
    >>> from accountable_ope.laboratory import believable
    >>> believable(85, 100, 0.1), believable(60, 100, 0.1)
    (True, False)
    """
    from scipy.stats import binomtest  # slow to import

    _refuse_counts(covered, trials, "covered")
    probability_level(delta)
    return bool(binomtest(covered, trials, 1 - delta, alternative="less").pvalue > DOUBT)


def _refuse_counts(hits: int, trials: int, name: str) -> None:
    whole(hits, name, least=0)
    if whole(trials, "trials", least=1) < hits:
        raise InvalidInput(f"`{name}` must not be more than `trials` ({trials}). Got {hits}.")


@dataclass
class _Sums:
    """What the trials of one row of the summary add up to."""

    first: Trial
    trials: int = 0
    covered: int = 0
    widths: list[float] = field(default_factory=list)
    vacuous: int = 0
    inconsistent: int = 0
    seconds: float = 0.0

    def add(self, row: Trial) -> None:
        self.trials += 1
        self.covered += row.covered
        self.vacuous += row.status == Status.VACUOUS.name
        self.inconsistent += row.status == Status.INCONSISTENT.name
        self.seconds += row.seconds
        if not math.isnan(row.width):
            self.widths.append(row.width)

    def coverage(self, level: float) -> Coverage:
        low, high = clopper_pearson(self.covered, self.trials, level)
        return Coverage(
            family=self.first.family,
            data_kind=self.first.data_kind,
            method=self.first.method,
            guarantee=self.first.guarantee,
            n=self.first.n,
            delta=self.first.delta,
            trials=self.trials,
            covered=self.covered,
            low=low,
            high=high,
            width=math.fsum(self.widths) / len(self.widths) if self.widths else math.nan,
            vacuous=self.vacuous / self.trials,
            inconsistent=self.inconsistent / self.trials,
            seconds=self.seconds / self.trials,
        )


@checked
def summarize(table: Sequence[Trial], level: float = 0.95) -> tuple[Coverage, ...]:
    """One row per family, size, method and delta, in the order of first appearance.

    Parameters
    ----------
    table : iterable of Trial
    level : float
        Of the Clopper-Pearson intervals.

    Returns
    -------
    tuple of Coverage

    Examples
    --------
    >>> from accountable_ope.laboratory import fair_coin, methods_named, run_trials, summarize
    >>> table = run_trials([fair_coin()], [50], chosen=methods_named(["azuma"]), trials=5, workers=1)
    >>> [(row.family, row.n, row.method, row.trials) for row in summarize(table)]
    [('fair-coin', 50, 'azuma', 5)]
    """
    sums: dict[tuple[str, int, str, float], _Sums] = {}
    for row in table:
        key = (row.family, row.n, row.method, row.delta)
        if key not in sums:
            sums[key] = _Sums(row)
        sums[key].add(row)
    return tuple(group.coverage(level) for group in sums.values())


@checked
def refuted(rows: Sequence[Coverage]) -> tuple[Coverage, ...]:
    """The rows whose claim is no longer believable.

    Parameters
    ----------
    rows : iterable of Coverage

    Returns
    -------
    tuple of Coverage

    Examples
    --------
    >>> from accountable_ope.laboratory import fair_coin, methods_named, refuted, run_trials, summarize
    >>> refuted(summarize(run_trials([fair_coin()], [50], chosen=methods_named(["azuma"]), trials=5, workers=1)))
    ()
    """
    return tuple(row for row in rows if row.refuted)
