"""Findings are decided by the rows: made-up rows for which a claim holds, and for which it does not."""

import math
from dataclasses import replace

import pytest

from accountable_ope.experiments.bounds import BoundRow, panel_rows
from accountable_ope.experiments.estimators import EstimateRow
from accountable_ope.experiments.importance import LowerRow
from accountable_ope.experiments.page import markdown
from accountable_ope.experiments.scale import Scale
from accountable_ope.experiments.summary import bound_findings, estimate_findings, groups, lower_findings

SCALE = Scale(trials=4, kinds=("fourier",), default_n=100, counts=(100, 400), confidences=(0.9, 0.99), temperatures=(1.0, 2.0))
SCALE = replace(SCALE, features=(10, 20), diagnosis_counts=(100, 400), episodes=(20, 200))


def bound_row(trial, *, n=100, delta=0.1, temperature=1.0, features=10, half=0.2, truth=0.5, center=0.5, misfit=0.0, empty=False):
    lower, upper = (math.nan, math.nan) if empty else (center - half, center + half)
    return BoundRow(
        task="puck-mountain",
        kind="fourier",
        radius="certified",
        guarantee="finite-sample",
        n=n,
        delta=delta,
        temperature=temperature,
        features=features,
        trial=trial,
        seed=trial,
        lower=lower,
        upper=upper,
        truth=truth,
        covered=lower <= truth <= upper,
        status="INCONSISTENT" if empty else "OK",
        classes=1,
        consistent=0 if empty else 1,
        doubted=0,
        least_loss=0.0,
        level=1.0,
        misfit=misfit,
        seconds=0.0,
    )


def bounds(**changes):
    """Rows for which everything that the paper claims holds, or what the changes say at the other point of each panel."""
    rows = []
    for trial in range(4):
        rows.append(bound_row(trial))
        rows.append(bound_row(trial, n=400, half=changes.get("n", 0.1)))
        rows.append(bound_row(trial, delta=0.01, half=changes.get("delta", 0.25)))
        rows.append(bound_row(trial, temperature=2.0, half=changes.get("temperature", 0.21)))
        rows.append(bound_row(trial, features=20, half=changes.get("features", 0.3)))
    return rows


def held(findings):
    return {one.claim.split(" (")[0]: one.holds for one in findings}


def test_all_claims_hold_where_they_do():
    found = held(bound_findings(bounds(), SCALE))
    assert len(found) == 5 and all(found.values())


@pytest.mark.parametrize(
    ("axis", "half", "claim"),
    [
        ("n", 0.25, "intervals tighten with n"),
        ("n", 0.2, "intervals tighten with n"),
        ("delta", 0.1, "intervals tighten with larger delta"),
        ("temperature", 0.45, "the behavior's temperature changes little"),
        ("features", 0.1, "fewer features give tighter intervals"),
    ],
)
def test_a_claim_that_does_not_hold_is_said_not_to(axis, half, claim):
    found = held(bound_findings(bounds(**{axis: half}), SCALE))
    assert [name for name, holds in found.items() if not holds] == [claim]


def test_misses_count_where_the_class_nearly_contains_q():
    rows = bounds()
    rows[0] = bound_row(0, center=0.9)
    assert not held(bound_findings(rows, SCALE))["intervals cover the truth where the class nearly contains Q"]


def test_misses_of_a_class_that_is_far_from_q_are_told_apart():
    far = [replace(row, misfit=0.5) for row in bounds()]
    found = bound_findings(far, SCALE)
    assert held(found)["where the class is too far from Q, no wrong interval is given"]
    assert "intervals cover the truth where the class nearly contains Q" not in held(found)
    wrong = [replace(row, lower=0.6, upper=0.8, covered=False) for row in far]
    verdict = [one for one in bound_findings(wrong, SCALE) if "no wrong interval" in one.claim]
    assert not verdict[0].holds and "a wrong interval in 32" in verdict[0].evidence
    empty = [
        bound_row(row.trial, n=row.n, delta=row.delta, temperature=row.temperature, features=row.features, misfit=0.5, empty=True)
        for row in far
    ]
    assert held(bound_findings(empty, SCALE))["where the class is too far from Q, no wrong interval is given"]


def test_panels_vary_one_thing_only():
    rows = bounds()
    assert {row.n for row in panel_rows(rows, "n", SCALE)} == {100, 400}
    assert all(row.delta == 0.1 and row.temperature == 1 and row.features == 10 for row in panel_rows(rows, "n", SCALE))
    assert {(one.axis, one.value) for one in groups(rows, SCALE)} >= {("delta", 0.01), ("features", 20.0), ("temperature", 2.0)}
    text = markdown(rows, SCALE)
    assert "| certified, fourier | 0.400 (4/4) | 0.200 (4/4) |" in text
    assert "| intervals tighten with n | yes |" in text
    assert "| intervals tighten with n | **no** |" in markdown(bounds(n=0.25), SCALE)


def estimate(name, n, trial, *, before, accepted, norm=1.0, after=0.5):
    return EstimateRow(
        task="inverted-pendulum",
        estimator=name,
        radius="certified",
        guarantee="finite-sample",
        n=n,
        delta=0.1,
        trial=trial,
        seed=trial,
        before=before,
        after=before if accepted else after,
        norm=0.0 if accepted else norm,
        accepted=accepted,
        correction="UNCHANGED" if accepted else "CORRECTED",
        loss=1.0,
        allowed=0.5,
        lower=0.0,
        upper=1.0,
        truth=0.6,
        covered=True,
        status="OK",
        seconds=0.0,
    )


def test_estimates_are_judged_as_the_paper_shows_them():
    good = [estimate("Q1", n, k, before=0.62, accepted=True) for n in (100, 400) for k in range(3)]
    bad = [estimate("Q2", n, k, before=0.2, accepted=False, norm=n / 100) for n in (100, 400) for k in range(3)]
    found = held(estimate_findings(good + bad, SCALE))
    assert all(found.values()) and "Q1 is accepted at n = 400" in found and "Q2 is rejected at n = 400" in found
    astray = [replace(row, after=0.0) for row in bad]
    assert not held(estimate_findings(good + astray, SCALE))["the correction of Q2 brings its value nearer to the truth"]
    blind = [estimate("Q2", n, k, before=0.2, accepted=True) for n in (100, 400) for k in range(3)]
    assert not held(estimate_findings(good + blind, SCALE))["Q2 is rejected at n = 400"]


def lower(method, value, threshold=math.nan):
    return LowerRow("inverted-pendulum", method, "finite-sample", 200, 100, 0.1, threshold, 0, 7, value, 0.9, value <= 0.9, 0.0)


def test_lower_bounds_are_compared_with_the_fair_opponent():
    others = [lower("hcope, fixed c", 1e-6, 1e-5), lower("hcope, chosen c", 0.0), lower("betting", 0.0), lower("ours, wild", 0.8)]
    weak = held(lower_findings([*others, lower("betting, per decision", 0.01), lower("ours, certified", 0.2)]))
    assert all(weak.values())
    strong = held(lower_findings([*others, lower("betting, per decision", 0.5), lower("ours, certified", 0.2)]))
    assert not strong["that is what importance sampling can do here"]
    assert not strong["our certified lower bound is higher than the best of importance sampling"]
