"""Coverage measured: seeded trials of the laboratory, judged by a binomial bound.

A radius that claims 1 - delta fails here when so many intervals miss the truth that this had probability below 1e-6 if the claim
were true. It is stated at which n the interval of Theorem A is informative, so that trivial intervals cannot pass. Ordinary
families show gross errors only; test_tight.py shows those of a factor of two. `aope coverage` runs the same with more trials and
more sizes, on all families.
"""

import pytest

import accountable_ope.radii.registry as radius_module
from accountable_ope.laboratory import (
    Coverage,
    Family,
    family_named,
    known_methods,
    methods_named,
    run_trials,
    summarize,
)

TRIALS = 100
DELTA = 0.1
FINITE_SAMPLE = [method.name for method in known_methods() if method.finite_sample]

INFORMATIVE = {
    "tabular-50": 1000,
    "first-states": 1000,
    "adaptive-50": 1000,
    "mixture-50": 300,
    "chain": 300,
    "rare-jump-50": 300,
    "clinic-50": 1000,
    "bandit": 300,
    "greedy-bandit": 300,
    "fair-coin": 300,
    "early-stopper": 300,
    "adversary": 300,
    "bandit-logged": 300,
    "planted-60": 300,
    "regulator": 1000,
    "regulator-sampled": 300,
}
"""Sizes at which Theorem A says something nearly always."""


def measure(family: Family, n: int, radii: list[str], trials: int, delta: float = DELTA) -> list[Coverage]:
    """One row per radius that applies; in this process, so that a radius may be replaced."""
    table = run_trials([family], [n], chosen=methods_named(radii), trials=trials, delta=delta, workers=1)
    return list(summarize(table))


@pytest.mark.parametrize("name", INFORMATIVE)
def test_azuma_covers_and_says_something(name):
    [row] = measure(family_named(name), INFORMATIVE[name], ["azuma"], TRIALS)
    assert not row.refuted, f"{row.covered} of {row.trials}"
    assert row.vacuous <= 0.1
    assert row.inconsistent <= 0.1
    assert row.width < 0.97


@pytest.mark.parametrize("name", ["adaptive-50", "fair-steps"])
def test_every_finite_sample_radius_covers(name):
    """Whatever radius is added to the package and claims finite samples is measured here without being named."""
    rows = measure(family_named(name), 300, FINITE_SAMPLE, 5, delta=0.01)
    assert {row.method for row in rows} >= {"hoeffding", "hoeffding-u", "hoeffding-printed", "azuma"}
    assert not [row for row in rows if row.refuted]


@pytest.mark.parametrize("name", ["bandit-logged", "planted-60"])
def test_certified_covers_and_says_something(name):
    [row] = measure(family_named(name), 300, ["certified"], 12)
    assert not row.refuted, f"{row.covered} of {row.trials}"
    assert row.vacuous == 0
    assert row.width < 0.5


def test_a_fiftieth_of_a_radius_is_caught_anywhere(monkeypatch):
    """In an ordinary family the radius wastes much, and only a gross error shows."""
    honest = radius_module.azuma
    monkeypatch.setattr(radius_module, "azuma", lambda *arguments: honest(*arguments) / 50)
    [row] = measure(family_named("bandit"), 300, ["azuma"], 200)
    assert row.refuted, f"{row.covered} of {row.trials}"
