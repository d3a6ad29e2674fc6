"""Every field of every kind of result, changed one at a time: `check()` says no."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from zlib import crc32

import pytest

from accountable_ope.bounds import Interval
from accountable_ope.programs.proofs import Round
from every_result import RESULTS, result
from mutations import mutations

SURVIVES = {
    r"\.engine\.(name|reason)": "who made the sums, which changes nothing of what they prove",
    r"\.setting\.data\.(sha256|starts)": "names of the data, which only the data can tell",
    r"\.certificates\[\d\]\.(statistic|basis)\..*": "sums over the data and the class itself, which only the data can tell",
    r"\.certificates\[\d\]\.constraints\.range\.(diameter|slack|points|center).*": "the class itself",
    r"\.certificates\[\d\]\.offset": "the value of an estimate, which only the data can tell",
    r"\.setting\.circumstances\.(effective_starts|planned|exact_policy|kernel_chosen|propensities)": "not used by this result",
    r"\.setting\.circumstances\.\w+_before": "not used by this result",
    r"\.setting\.circumstances\.(copied|showing)_rows": "how many rows are copies, or show something: only the data can tell",
    r"\.certificates\[\d\]\.(upper|lower)\.status": "that a bound is not known to be tight claims less",
    r"\.certificates\[\d\]\.(upper|lower)\.constraints\[\d+\]\.origin\..*": "names the same constraint",
    r"\.certificates\[\d\]\..*\.magnitudes\[\d\].*": "how large the terms of a sum were, which the verifier counts itself",
    r"\.certificates\[\d\]\.(upper|lower)\.point.*": "another point of the set",
    r"\.certificates\[\d\]\.tightening\.rounds\[[1-9]\]\.steps\[\d\]\.observed": "a larger step claims less; the data tell",
    r"\.certificates\[\d\]\.tightening\.rounds\[\d\]\.(residual_bound|variances\[\d\])": "a larger one claims less",
    r"\.certificates\[\d\]\.tightening\.steps.*": "another proof of the same range and variance",
    r"\.certificates\[\d\]\.(least_norm|least_loss)_terms.*": "another proof of the same number, or one without its zeros",
    r"\.certificates\[\d\]\.tightening\.rate": "with the identification that follows from it",
}
"""What may be changed without `check()` noticing, and why that is no false statement."""


SIDES = ("lower", "upper")


pytestmark = pytest.mark.usefixtures("tables_once")


@pytest.mark.parametrize("name", RESULTS)
def test_every_field_that_is_printed_is_proved(name: str) -> None:
    interval = result(name)
    assert interval.check(), interval.verify().message
    changed = list(mutations(interval))
    assert len(changed) > 100
    tried = changed if name == "certified" else of_each_kind(changed, name)
    needed = [(path, forged) for path, forged in tried if not excused(path, [*SURVIVES, *beyond(interval)])]
    assert len(needed) > 50
    passed = [path for path, forged in needed if forged.check()]
    assert not passed


def excused(path: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, path) for pattern in patterns)


@pytest.mark.parametrize("name", ["azuma", "certified", "features and what they miss", "around an estimate"])
def test_what_is_excused_is_answered(name: str) -> None:
    """True or False, whatever stands there, and no exception; one leaf of each kind."""
    for path, forged in of_each_kind(list(mutations(result(name))), name):
        if excused(path, SURVIVES):
            assert forged.check() in (True, False), path


def of_each_kind(changed: list[tuple[str, Interval]], name: str) -> list[tuple[str, Interval]]:
    """One leaf of those that differ in their places only, another one in every result."""
    kinds: dict[str, list[tuple[str, Interval]]] = {}
    for path, forged in changed:
        kinds.setdefault(re.sub(r"\[\d+\]", "[]", path), []).append((path, forged))
    return [leaves[crc32((name + kind).encode()) % len(leaves)] for kind, leaves in kinds.items()]


def beyond(interval: Interval) -> list[str]:
    """Ends beyond the range of values are cut to it: that they lie farther out is no other claim, and that is what is tried."""
    found = []
    for number, (end, cut, side) in enumerate(zip(interval.unclipped, (interval.lower, interval.upper), SIDES, strict=True)):
        if end != cut:
            found += [rf"\.unclipped\[{number}\]", rf"\.certificates\[\d\]\.{side}\.bound"]
    return found


def test_an_end_beyond_the_range_of_values_is_not_nearer_than_what_is_proved() -> None:
    tried = 0
    for name in ("hoeffding-u, no norm bound", "sections", "earlier rows"):
        interval = result(name)
        low, high = interval.ranges.value
        for number, (end, limit, side) in enumerate(zip(interval.unclipped, (low, high), SIDES, strict=True)):
            if end == min(max(end, low), high) or not math.isfinite(end):
                continue
            tried += 1
            nearer = (end + limit) / 2
            ends = tuple(nearer if k == number else each for k, each in enumerate(interval.unclipped))
            assert not replace(interval, unclipped=ends).check()
            part = interval.certificates[0]
            proof = getattr(part, side)
            forged = replace(proof, bound=proof.bound - abs(end - nearer))
            both = replace(interval, unclipped=ends, certificates=(replace(part, **{side: forged}),))
            assert not both.check()
    assert tried


def test_the_exceptions_are_needed() -> None:
    """Every exception is one for some result: the table does not excuse more than it says."""
    paths = {path for name in ("azuma", "certified", "sections", "around an estimate") for path, _ in mutations(result(name))}
    for pattern in SURVIVES:
        assert any(re.fullmatch(pattern, path) for path in paths), pattern


LOWERED = pytest.mark.parametrize("name", ["certified", "certified, looked at while it grows", "symmetric"])


@LOWERED
def test_what_a_round_knows_cannot_be_less_than_what_is_proved(name: str) -> None:
    """Larger claims are weaker ones, which the table excuses; smaller ones are refused, in every round."""
    interval = result(name)
    rounds = interval.certificates[0].tightening.rounds
    assert len(rounds) > 1
    for number, each in enumerate(rounds):
        lower = [replace(each, residual_bound=0.99 * each.residual_bound)]
        for k in range(len(each.variances)):
            less = [0.9 * v if k == i else v for i, v in enumerate(each.variances)]
            lower.append(replace(each, variances=tuple(less)))
        for changed in lower:
            assert not with_round(interval, number, changed).check(), (number, changed)


def with_round(interval: Interval, number: int, changed: Round) -> Interval:
    part = interval.certificates[0]
    rounds = [changed if k == number else each for k, each in enumerate(part.tightening.rounds)]
    return replace(interval, certificates=(replace(part, tightening=replace(part.tightening, rounds=tuple(rounds))),))
