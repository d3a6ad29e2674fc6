"""Every public result on its way out: document, table, picture and notebook."""

import json
import math
import sys
from enum import Enum
from html.parser import HTMLParser

import pandas as pd
import pytest

import accountable_ope as aope
import every_result
from accountable_ope import bounds
from accountable_ope.io.shown import Drawn, Shown
from accountable_ope.verification import Verification
from shown_results import DRAWN, HOSTILE, NAMES, result

NOT_RESULTS = {
    "Altered": "a row of a Breakdown",
    "ClassCertificates": "a part of an Interval",
    "Companions": "parts of a verdict",
    "Contender": "a row of a Comparison",
    "CorrectedQ": "a function",
    "Decision": "a part of a monitor",
    "Difference": "a row of a Comparison",
    "Evaluation": "asks questions",
    "Explanation": "a part of a Diagnosis",
    "Look": "a row of a monitor",
    "NamedPolicy": "an input",
    "SeenRow": "a row of a Diagnosis",
    "Study": "asks questions; its answers are results",
    "Choice": "an input",
}


class Words(HTMLParser):
    """Text and tags of a fragment."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "style" not in self.open:
            self.words.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def test_every_public_result_is_here():
    public = {name for name in bounds.__all__ if isinstance(getattr(bounds, name), type)}
    kinds = {name for name in public if not issubclass(getattr(bounds, name), Enum)}
    assert kinds - set(NOT_RESULTS) == set(NAMES) - {"BaselineInterval", "Verification"}


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_what_its_name_says(name):
    assert type(result(name)).__name__ == name
    assert isinstance(result(name), Shown)
    assert isinstance(result(name), Drawn) == (name in DRAWN)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_plain_json_with_the_name_of_its_schema(name):
    document = result(name).to_dict()
    assert next(iter(document)) == "schema" and document["schema"].startswith("accountable-ope/")
    assert json.loads(json.dumps(document, allow_nan=False)) == document


@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_a_row_for_each(name):
    found = result(name)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) > 0
    assert found.to_frame("polars").shape == frame.shape
    assert found.to_frame("pyarrow").num_rows == len(frame)


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_comes_as_axes(name):
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    found = result(name)
    own = found.plot()
    assert isinstance(own, Axes)
    assert own.has_data() or own.texts
    own.figure.canvas.draw()
    _, given = pyplot.subplots()
    assert found.plot(given) is given
    pyplot.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_says_first_what_it_says(name):
    words = Words(result(name)._repr_html_())
    assert words.open == [] and "script" not in words.tags
    assert words.tags.index("b") < words.tags.index("table") if "table" in words.tags else True
    assert "nan" not in words.text.lower().split()


def test_what_comes_first():
    found = {name: result(name) for name in NAMES}
    first = {name: Words(found[name]._repr_html_()).text for name in NAMES}
    assert first["Interval"].startswith(found["Interval"].verdict().sentence)
    assert first["Comparison"].startswith(found["Comparison"].verdict)
    assert first["Diagnosis"].startswith(found["Diagnosis"].verdict.value)
    assert first["Verification"].startswith(found["Verification"].message)
    assert first["LoggedValue"].startswith("With 90% confidence the value of the logging policy lies in [")
    assert HOSTILE in first["Comparison"] and HOSTILE not in found["Comparison"]._repr_html_()


def test_numbers_are_the_same_everywhere():
    interval = result("Interval")
    (row,) = interval.to_frame().to_dict("records")
    (document,) = interval.to_dict()["intervals"]
    assert (row["lower"], row["upper"]) == (interval.lower, interval.upper) == (document["lower"], document["upper"])
    curve = result("Curve")
    frame = curve.to_frame()
    assert frame["value"].tolist() == list(curve.values) and frame["lower"].tolist() == pytest.approx(curve.lower, nan_ok=True)
    assert [row["value"] for row in curve.to_dict()["rows"]] == list(curve.values)
    compared = result("Comparison").to_frame()
    assert compared["policy"].tolist() == ["new", HOSTILE, "logged policy"]


def test_a_refuted_interval_has_no_numbers():
    refuted = every_result.result("certified, refuted")
    assert refuted.to_dict()["intervals"][0]["lower"] is None
    assert math.isnan(refuted.to_frame()["lower"][0])
    refuted.plot()
    nothing = Verification(False, "The sums do not follow.")
    assert nothing.to_dict()["lower"] is None
    nothing.plot()


def test_what_is_missing_is_named_with_its_command(monkeypatch):
    interval = result("Interval")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(aope.MissingExtra, match="pip install pandas"):
        interval.to_frame()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(aope.MissingExtra, match="pip install"):
        interval.plot()


@pytest.mark.parametrize("library", ["excel", "", 3])
def test_another_library_is_refused(library):
    with pytest.raises(aope.InvalidInput, match="`library` must be"):
        result("Interval").to_frame(library)


def test_axes_that_are_none_are_refused():
    with pytest.raises(aope.InvalidInput, match="`axes` must be axes"):
        result("Interval").plot("here")


def test_a_monitor_without_looks_says_so():
    mdp = every_result.MDP
    facts = aope.Assumptions(0.6, (0, 1), norm_bound=9.0, reward_noise=False, terminates=False)
    monitor = aope.Monitor(
        aope.Question(mdp.starts, mdp.policy, facts), features=mdp.features(), kernel=every_result.KERNEL, planned=9
    )
    assert "no rows yet" in monitor._repr_html_()
    assert monitor.to_dict()["looks"] == [] and len(monitor.to_frame()) == 0
    with pytest.raises(aope.InvalidInput, match="no looks"):
        monitor.plot()
