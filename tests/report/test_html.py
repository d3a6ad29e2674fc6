"""The report: the verdict first, everything escaped, readable anywhere without a network."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.bounds.breakdown import Altered, Breakdown
from accountable_ope.demo import run_demo
from accountable_ope.environments import PlantedMDP
from accountable_ope.problem.statements import premise
from accountable_ope.report.html import report_html

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'
VOID = {"meta", "br", "line", "rect"}


class Reader(HTMLParser):
    """Tags, the text of the page, and whether every tag was closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        if not self.open or self.open[-1] != "style":
            self.words.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def ladder():
    return run_demo()


def read(page):
    reader = Reader(page)
    assert reader.open == []
    return reader


def refuted(interval):
    nan = float("nan")
    return replace(interval, outcome=aope.Status.INCONSISTENT, lower=nan, upper=nan)


def test_the_verdict_comes_first(ladder):
    data, intervals = ladder
    text = read(report_html(intervals, data, "A title")).text
    best = intervals[-1]
    verdict = f"{best.status.name} {best.verdict().sentence} {best.verdict().second_line}"
    order = [
        "A title", "5,000 logged transitions in 50 episodes", verdict, "Doubt : Q is probably not", "hoeffding", "What this says",
        "What was assumed Rows are in the order", "Certificates", "All were computed again for this report", "Tightened in",
    ]  # fmt: skip
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_an_explanation_is_there_where_it_was_asked_for(ladder):
    data, intervals = ladder
    says = "What the width is made of, and what would narrow it"
    assert says not in report_html(intervals, data, "t")
    less = Altered("noise", "noise, the variance that was seen", 1.2, 1.5, aope.Status.OK, 0.3)
    more = Altered("norm-bound", "A norm bound of 40", float("nan"), float("nan"), aope.Status.INCONSISTENT, float("nan"))
    page = report_html(intervals, data, "t", breakdown=Breakdown(1.1, 1.7, (less,), (more,), 0.0))
    text = read(page).text
    assert says in text and "nan" not in page
    assert "noise, the variance that was seen [1.2, 1.5] 0.3" in text
    assert "Tried, and no help" in text and ": a norm bound of 40." in text


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (
            lambda one: replace(one, outcome=aope.Status.VACUOUS),
            "VACUOUS These data and assumptions do not bound",
        ),
        (refuted, "INCONSISTENT No function of the class fits: "),
    ],
)
def test_an_interval_that_says_nothing_says_so(ladder, change, verdict):
    data, intervals = ladder
    page = report_html([change(intervals[-1])], data, "t")
    assert verdict in read(page).text and "nan" not in page
    assert page.count("<rect") == 1 + ("VACUOUS" in verdict), "the logged policy has a row of its own"


def test_a_certificate_that_does_not_hold_is_shown(ladder):
    data, intervals = ladder
    low, high = intervals[-1].unclipped
    assert "A certificate does not hold." in report_html([replace(intervals[-1], unclipped=(low + 0.1, high))], data, "t")


def test_nothing_is_executed_or_loaded(ladder):
    data, intervals = ladder
    part = replace(intervals[-1].certificates[0], features=HOSTILE, least_loss=1e9)
    radius = replace(intervals[-1].radius, name=HOSTILE)
    hostile = replace(
        intervals[-1], estimand=HOSTILE, certificates=(part,), premises=(premise("hostile", HOSTILE),), radius=radius
    )
    reader = read(report_html([hostile, refuted(hostile)], data, HOSTILE, truth=1.0, to_beat=0.5))
    assert not {"script", "img", "link", "iframe"} & set(reader.tags)
    assert not [name for name in reader.attributes if name.startswith("on") or name in ("src", "href")]
    assert reader.text.count(HOSTILE) > 8  # title, verdict, picture, tables, notes and premises


def test_narrow_screens_paper_and_the_dark(ladder):
    data, intervals = ladder
    page = report_html(intervals, data, "t")
    for words in ('content="width=device-width', "max-width: 44rem", "prefers-color-scheme: dark", "@media print"):
        assert words in page
    assert 'data-label="guarantee"' in page  # names of columns, where a row becomes a block


def test_without_discount_nothing_is_normalized_twice(ladder):
    data, intervals = ladder
    facts = replace(intervals[-1].assumptions, discount=1.0, horizon=10)
    once = report_html([replace(intervals[-1], assumptions=facts)], data, "t", truth=1.0)
    assert "normalized" not in read(once).text
    assert "normalized" in read(report_html(intervals, data, "t", truth=1.0)).text


def test_names_on_the_axis_stay_on_the_page(ladder):
    data, intervals = ladder
    low, high = intervals[-1].ranges.value
    page = report_html(intervals, data, "t", truth=low, to_beat=high)
    assert 'text-anchor="start">truth</text>' in page and 'text-anchor="end">behavior</text>' in page
    middle = report_html(intervals, data, "t", truth=float(np.mean([low, high])))
    assert 'x="50.0%"' in middle and 'text-anchor="middle">truth</text>' in middle


def test_bounds_of_a_class_around_an_estimate_are_told_from_values():
    """Offsets from an estimate of 1.2 look like values near 0 unless somebody says what they are."""
    mdp = PlantedMDP(seed=1, features=3, discount=0.6)
    data = mdp.sample(np.random.default_rng(0), trajectories=6, length=40)
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=2.0, reward_noise=False)
    problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    options = {"features": mdp.features(), "kernel": aope.Gaussian(1.0)}
    plain = aope.bound_value(problem, radius="azuma", **options)
    anchored = aope.evaluate(problem, anchor=lambda states, actions: np.full(len(states), 1.2), **options).bound("azuma")
    said = read(report_html([anchored], data, "t")).text
    part = anchored.certificates[0]
    assert "A bound is written as a sum: what the estimate gives, around which the class lies" in said
    assert f"{1.2 + part.upper.bound:.6g} = 1.2 + {part.upper.bound:.6g}" in said
    assert f"{1.2 - part.lower.bound:.6g} = 1.2 - {part.lower.bound:.6g}" in said
    assert 1.2 - part.lower.bound == pytest.approx(anchored.unclipped[0])
    unsaid = read(report_html([plain], data, "t")).text
    assert "written as a sum" not in unsaid and f"{plain.certificates[0].upper.bound:.6g}" in unsaid
