"""Fractions, their Clopper-Pearson intervals, the judgement, and the tables of a page."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from accountable_ope.errors import InvalidFile
from accountable_ope.laboratory import Trial, believable, clopper_pearson, refuted, summarize
from accountable_ope.laboratory.page import BEGIN, END, markdown_tables, write_page
from accountable_ope.problem.statements import Guarantee


def row(
    trial=0, covered=True, status="OK", width=0.25, method="azuma", n=100, family="chain", guarantee="finite-sample", delta=0.1
):
    return Trial(
        family=family,
        data_kind="trajectories",
        method=method,
        guarantee=guarantee,
        n=n,
        trial=trial,
        seed=trial,
        delta=delta,
        lower=0.0,
        upper=1.0,
        truth=0.5,
        covered=covered,
        width=width,
        status=status,
        seconds=0.5,
    )


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.95, 0.999]))
def test_at_the_ends_of_clopper_pearson_the_count_is_as_rare_as_the_level_allows(counts, level):
    successes, trials = counts
    low, high = clopper_pearson(successes, trials, level)
    rare = pytest.approx((1 - level) / 2, rel=1e-6)
    assert binom.sf(successes - 1, trials, low) == rare if successes > 0 else low == 0
    assert binom.cdf(successes, trials, high) == rare if successes < trials else high == 1


@pytest.mark.parametrize(("trials", "delta"), [(100, 0.1), (1000, 0.1), (300, 0.01), (50, 0.5)])
def test_believable_is_the_binomial_test(trials, delta):
    for covered in range(trials + 1):
        assert believable(covered, trials, delta) == (binom.cdf(covered, trials, 1 - delta) > 1e-6)


def test_summary_counts_by_hand():
    trials = [
        row(0, width=0.2),
        row(1, covered=False, width=0.4),
        row(2, status="VACUOUS", width=1.0),
        row(3, covered=False, status="INCONSISTENT", width=math.nan),
        row(0, method="wild", guarantee="asymptotic", covered=False),
        row(0, n=300),
        row(0, delta=0.2),
    ]
    first, wild, larger, other_delta = summarize(trials)
    assert (first.trials, first.covered, first.fraction) == (4, 2, 0.5)
    assert first.width == pytest.approx((0.2 + 0.4 + 1.0) / 3)
    assert (first.vacuous, first.inconsistent, first.seconds) == (0.25, 0.25, 0.5)
    assert (first.low, first.high) == clopper_pearson(2, 4)
    assert (wild.method, wild.claims, wild.refuted) == ("wild", False, False)
    assert (larger.n, larger.trials) == (300, 1)
    assert other_delta.delta == 0.2
    assert summarize([]) == ()


def test_only_claims_are_refuted():
    missing = [row(i, covered=i < 70) for i in range(100)]
    asymptotic = [row(i, covered=i < 70, method="wild", guarantee=Guarantee.ASYMPTOTIC.value) for i in range(100)]
    declared = [
        row(i, covered=i < 70, method="symmetric", guarantee=Guarantee.FINITE_SAMPLE_DECLARED_NOISE.value) for i in range(100)
    ]
    fine = [row(i, covered=i < 85, method="certified") for i in range(100)]
    assert [group.method for group in refuted(summarize([*missing, *asymptotic, *declared, *fine]))] == ["azuma", "symmetric"]


def test_all_intervals_empty_have_no_width():
    [group] = summarize([row(covered=False, status="INCONSISTENT", width=math.nan)])
    assert math.isnan(group.width)
    assert "empty" in markdown_tables([group])


def test_markdown_shows_the_lowest_coverage_and_every_width_group_by_group():
    trials = [row(i, covered=i > 0, width=0.5) for i in range(10)]
    trials += [row(i, n=300, width=0.25, status="VACUOUS" if i else "OK") for i in range(10)]
    trials += [row(i, method="wild", guarantee="asymptotic", status="VACUOUS", width=1.0) for i in range(10)]
    trials += [row(i, delta=0.5, covered=i > 3, width=0.125) for i in range(10)]
    trials += [row(i, family="bandit", width=0.75) for i in range(10)]
    trials += [row(i, family="mine", width=0.75) for i in range(10)]
    text = markdown_tables(summarize(trials))
    assert "| family | method | covered, 0.9 claimed | covered, 0.5 claimed | width, n = 100 | width, n = 300 |" in text
    assert "| `chain` | azuma | 0.900 [0.555, 0.997] at 100 | 0.600 [0.262, 0.878] at 100 | 0.5 | 0.25 (90% whole) |" in text
    assert "|  | wild \\* | 1.000 [0.692, 1.000] |  | - |  |" in text
    titles = [line for line in text.splitlines() if line.startswith("### ")]
    assert titles == ["### Finite states", "### Bandits, coins", "### Others"]
    assert "10 data sets at every n" in text and "widths at delta = 0.1;" in text


def test_methods_have_one_order_on_the_page_whatever_was_run_first():
    trials = [row(method="sandwich"), row(method="mine"), row(method="azuma"), row(method="certified", n=300)]
    lines = [line.split(" | ")[1] for line in markdown_tables(summarize(trials)).splitlines() if "[0.025" in line]
    assert lines == ["azuma", "certified", "sandwich", "mine"]


def test_the_page_says_how_many_claims_there_were_and_what_came_of_them():
    fine = [row(i, covered=i > 0) for i in range(20)] + [row(i, method="wild", guarantee="asymptotic") for i in range(20)]
    text = markdown_tables(summarize(fine))
    assert "20 intervals with a finite-sample claim, in 1 cells of family, n, method and delta: 1 missed the truth" in text
    assert "None of the claims was refuted." in text


def test_a_refuted_claim_stands_out():
    text = markdown_tables(summarize([row(i, covered=False) for i in range(20)]))
    assert "**0.000 [0.000, 0.168] at 100**" in text
    assert "**Refuted: azuma in `chain` at n = 100, delta = 0.1.**" in text and "None of" not in text


def test_a_page_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    rows = summarize([row()])
    write_page(page, rows)
    once = page.read_text()
    write_page(page, rows)
    assert page.read_text() == once
    assert once.startswith("before\n") and once.endswith("\nafter\n") and "old" not in once and markdown_tables(rows) in once


@pytest.mark.parametrize("text", ["no marks", BEGIN, f"{END} {BEGIN}"])
def test_a_page_without_marks_is_refused(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(InvalidFile, match="must contain the lines"):
        write_page(page, summarize([row()]))
    assert page.read_text() == text
