"""The default radius judged end to end: `bound_value` as it is called without naming a radius, at delta = .5; or without its cut.

What can be refuted here. The default radius wastes much of delta in ordinary families, where half of it would still cover; there
the claim itself is tested, and only a gross error shows. Where it wastes least, the logger knows the radius: it tosses a fair
coin until the sum is where the radius (or half of it) would miss, then pulls an arm that pays 1/2 for sure. The event behind the
radius holds for all n at once, so what was reached is kept until the end of the data. How often the interval must miss is then
known exactly, as a sum over paths, and a binomial test compares: too many misses, or too few, mean that the radius in use is
not the one of the theorem. A level of half the size is caught, which is shown below. All this is so without a cut, that is of
data that may grow; with one, half of delta is the cut's, and the logger plays against the half of the kernel.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binomtest

import accountable_ope.radii.registry as radius_module
from accountable_ope import Transitions, bound_value
from accountable_ope.laboratory import Family, IntervalMethod, Trial, believable, early_stopper, family_named, run_trials
from accountable_ope.problem.statements import Guarantee
from accountable_ope.radii.registry import DEFAULT_RADIUS, radius_rule
from accountable_ope.verification import theorems
from adversary import TOLERANCE, scaled
from crossing import boundary_of, crossing_probability

pytestmark = pytest.mark.slow

ROWS, DELTA = 300, 0.5
ORDINARY = ("bandit", "adaptive-50", "chain")
"""Families whose intervals say something at so many rows."""


@dataclass(frozen=True)
class StopAtRadius:
    """A fair coin until ||S_j||^2 is beyond `factor` times what the default radius allows, then a sure arm."""

    factor: float
    delta: float = DELTA

    def __call__(self, rng: np.random.Generator, n: int) -> Transitions:
        coins = rng.integers(2, size=n).astype(np.float64)
        j = np.arange(1, n + 1)
        crossed = np.cumsum(coins - 0.5) ** 2 > stop_at(self.factor, n, self.delta)(n, j / 4)
        tosses = int(np.argmax(crossed)) + 1 if crossed.any() else n
        sure = j > tosses
        return Transitions(np.zeros((n, 1)), sure.astype(np.int64), np.where(sure, 0.5, coins), np.zeros((n, 1)))


HONEST = radius_rule(DEFAULT_RADIUS)


def stop_at(factor: float, n: int, delta: float = DELTA):
    """The boundary of the logger; of the radius as it is shipped, whatever `bound_value` is made to use.

    Sure rows count among the widths of all n rows. No residual of the truth is larger than a half, but after few tosses functions
    are left beside it whose residuals are nearly 1, and the rounds of the program can know no more than that.
    """
    honest = boundary_of(HONEST, n, delta)
    return lambda j, variance: factor * TOLERANCE * honest(n, variance)


def stopper(factor: float, delta: float = DELTA) -> Family:
    return replace(early_stopper(), name=f"stopper-{factor:g}", draw=StopAtRadius(factor, delta))


def as_a_user(evaluation, delta):
    """From the problem on, without naming a radius."""
    return bound_value(evaluation.problem, features=evaluation.classes, kernel=evaluation.kernel, delta=delta)


def while_it_grows(evaluation, delta):
    """At one of many looks: the radius holds at all of them, and there is no cut."""
    found = evaluation.bound(delta=delta, planned=ROWS)
    assert [each.name for each in found.remarks] == ["no-cut"]
    return found


def once_per_set_of_rows(method):
    """Without a cut the order of the rows does not count, and coins give few sets of them."""
    known = {}

    def found(evaluation, delta):
        data = evaluation.problem.data
        rows = np.column_stack([data.states, data.actions, data.rewards, data.next_states])
        key = (delta, rows[np.lexsort(rows.T)].tobytes())
        if key not in known:
            known[key] = method(evaluation, delta)
        return known[key]

    return found


def trials_of(family: Family, trials: int, method=None) -> tuple[Trial, ...]:
    """Called without a radius, and in this process, so that the radius may be replaced."""
    default = IntervalMethod("default", Guarantee.FINITE_SAMPLE, method or once_per_set_of_rows(while_it_grows))
    return run_trials([family], [ROWS], chosen=[default], trials=trials, delta=DELTA, workers=1)


def expected_misses(factor: float) -> float:
    """The probability that the interval of the shipped radius misses under the logger with this factor."""
    return crossing_probability(stop_at(factor, ROWS), ROWS, 0.5, counted=stop_at(1.0, ROWS))


def as_expected(table: tuple[Trial, ...], factor: float) -> bool:
    """The judgment: as many intervals miss as the shipped radius must."""
    missed = sum(not row.covered for row in table)
    return binomtest(missed, len(table), expected_misses(factor)).pvalue > 1e-4


def test_the_probability_of_a_miss_is_that_of_the_theorem():
    """As the verifier writes the theorem, apart from the shipped radius: the same probability, by a sum over all paths.

    It is far below delta, and this is why. The mixture has many rates, of which one path uses few; widths are counted for rows
    that the logger never tosses; and the rounds count on residuals of 1 where those of a fair coin are a half.
    """
    mixture = theorems.Mixture(1.0, ROWS, DELTA)

    def stated(largest: float, squares: float | None = None):
        def squared(j, variance):
            known = theorems.Steps(largest, largest, ROWS if squares is None else squares * j)
            return TOLERANCE * mixture.at(known, np.asarray(variance, dtype=float))[0] ** 2

        return squared

    exact, of_the_tossed, of_a_half = (
        crossing_probability(boundary, ROWS, 0.5) for boundary in (stated(1.0), stated(1.0, 1.0), stated(0.5, 1.0))
    )
    assert expected_misses(1.0) == pytest.approx(exact, abs=1e-6)
    assert 0.05 < exact < of_the_tossed < of_a_half < DELTA
    # Where half of the radius is beyond, the whole is not: a single miss would tell them apart.
    assert expected_misses(0.5) < 0.02


@pytest.mark.parametrize(("factor", "trials"), [(1.0, 120), (0.5, 60)])
def test_the_default_radius_misses_as_often_as_it_must(factor, trials):
    table = trials_of(stopper(factor), trials)
    assert believable(sum(row.covered for row in table), len(table), DELTA)
    assert as_expected(table, factor)


@pytest.mark.parametrize("name", ORDINARY)
def test_the_default_radius_covers(name):
    table = trials_of(family_named(name), 15, as_a_user)
    assert believable(sum(row.covered for row in table), len(table), DELTA)
    assert {row.status for row in table} == {"OK"}


def test_the_default_radius_covers_a_coin_that_is_tossed_until_it_looks_extreme():
    """Against the kernel's half of delta, with the cut."""
    table = trials_of(stopper(1.0, DELTA / 2), 40, as_a_user)
    assert believable(sum(row.covered for row in table), len(table), DELTA)


def test_half_of_the_radius_is_caught(monkeypatch):
    """By the same judgment, with fewer trials than above."""
    rules = tuple(scaled(rule, 0.5) if rule is HONEST else rule for rule in radius_module.RULES)
    monkeypatch.setattr(radius_module, "RULES", rules)
    assert not as_expected(trials_of(stopper(0.5), 25), 0.5)
