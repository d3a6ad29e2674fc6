"""Doubts in words: one test that several classes fail is told once."""

from accountable_ope.problem.statements import doubt
from accountable_ope.radii.doubts import Doubt, DoubtKind
from accountable_ope.report.doubts import doubt_paragraphs


def made(name, p_value=0.001, weak=False):
    text = f"Q is probably not in the class of {name} (p = {p_value:.2g})."
    return Doubt(DoubtKind.CLASS, p_value, doubt("class", text, ("class", name), ("p_value", p_value)), weak)


def test_classes_that_fail_the_same_test_are_named_in_one_paragraph():
    found = doubt_paragraphs([made("A"), made("B", 0.001 + 1e-15), made("C", 0.04, weak=True)])
    assert [heading for heading, _ in found] == ["Doubt", "Weak sign"]
    assert found[0][1] == "Q is probably not in the class of A (p = 0.001). The same test says so of B."
    assert doubt_paragraphs([]) == []
