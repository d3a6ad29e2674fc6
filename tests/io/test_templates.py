"""HTML from templates: everything escaped, nothing missing silently, jinja2 imported only when it is needed."""

import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files

import pytest
from jinja2 import TemplateNotFound, UndefinedError

from accountable_ope.io.templates import render, result_table

HOSTILE = "<script>alert('x')</script> & \"quotes\""
ESCAPED = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &#34;quotes&#34;"


@dataclass(frozen=True)
class Sentence:
    text: str

    def __str__(self):
        return self.text


def test_a_result_says_everything_in_order():
    page = result_table(
        "Value of the target policy",
        [("lower", "0.33"), ("upper", 1.81)],
        ["Rewards lie in [0, 1].", Sentence("Q is in the class.")],
        status="OK",
        advice="The data bound the value.",
        notes=["A doubt."],
    )
    told = ["Value of the target policy", ">OK<", "The data bound", ">lower<", ">0.33<", ">upper<", ">1.81<", "A doubt.",
            "What was assumed (2)", "Rewards lie in [0, 1].", "Q is in the class."]  # fmt: skip
    places = [page.index(text) for text in told]
    assert places == sorted(places)
    assert page.startswith("<div") and page.endswith("</div>") and 'data-aope="OK"' in page


def test_what_is_not_there_leaves_no_trace():
    page = result_table("Title", [("a", 1)])
    assert "<details" not in page and "<ul" not in page and 'class="aope-tag"' not in page


def test_everything_is_escaped():
    hostile = Sentence(HOSTILE)
    page = result_table(HOSTILE, [(HOSTILE, hostile)], [hostile], status=HOSTILE, advice=HOSTILE, notes=[hostile])
    assert "<script" not in page and "alert('" not in page
    assert page.count(ESCAPED) == 8  # the status twice: once in quotes, as an attribute


def test_a_template_that_lacks_a_value_fails():
    with pytest.raises(UndefinedError, match="no attribute 'status'"):
        render("table.html", Sentence("x"))
    with pytest.raises(TemplateNotFound):
        render("no-such-template.html", Sentence("x"))


def test_known_statuses_have_a_color():
    from accountable_ope.bounds.correction import CorrectionStatus
    from accountable_ope.bounds.diagnosis import EstimateVerdict
    from accountable_ope.bounds.interval import Status

    colors = (files("accountable_ope") / "data" / "templates" / "status.css").read_text(encoding="utf-8")
    for status in (*Status, *EstimateVerdict, *CorrectionStatus):
        assert f'[data-aope="{status.name}"]' in colors


def test_jinja_is_imported_when_something_is_rendered():
    code = "import sys, accountable_ope, accountable_ope.report.html; print('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
