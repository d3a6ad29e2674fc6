"""The website: every page is in one section, every public name in one room, and docstrings mean what they say.

`make docs` builds it, and fails where a link, an anchor, a reference, a picture or a formula is broken.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from test_docstrings import PUBLIC

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def of_the_site(name: str) -> ModuleType:
    """A module of docs/_site that needs no Sphinx."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_site" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sections, public_names, plain_text = (of_the_site(name) for name in ("sections", "public_names", "plain_text"))


def pages_of(docs: Path) -> list[str]:
    """All pages, by name."""
    return [str(page.relative_to(docs).with_suffix("")) for page in docs.glob("**/*.md") if "_build" not in page.parts]


def out_of_place(docs: Path) -> list[str]:
    """Pages that no section lists, that several do, or that are listed and not there."""
    times = Counter(sections.reachable(sections.navigation(docs)))
    return sorted(name for name in {*times, *pages_of(docs)} if times[name] != 1 or not (docs / f"{name}.md").exists())


def test_every_page_is_in_one_section():
    assert not out_of_place(DOCS)
    assert set(sections.SECTIONS) <= set(pages_of(DOCS))


def test_a_page_that_is_in_no_section_or_in_two_is_found(tmp_path):
    for section in sections.SECTIONS:
        (tmp_path / f"{section}.md").write_text("# A section\n")
    names = sections.SECTIONS[1:]
    front = "".join(f"### [Section]({name}.md)\n\n" for name in names if name != "api")
    (tmp_path / "index.md").write_text(front + "- [A list of the front page](start.md) is none of its sections.\n")
    (tmp_path / "reference.md").write_text("- [API](api.md): names\n")
    assert not out_of_place(tmp_path)
    (tmp_path / "new.md").write_text("# New\n")
    assert out_of_place(tmp_path) == ["new"]
    (tmp_path / "start.md").write_text(
        "- [New](new.md): a page\n- [Lost](lost.md): no page\n\nIn a sentence, [new](new.md) is no list.\n"
    )
    assert out_of_place(tmp_path) == ["lost"]
    (tmp_path / "how-to.md").write_text("- [New](new.md): the same page\n")
    assert out_of_place(tmp_path) == ["lost", "new"]


def test_links_of_files_at_the_root_lead_to_pages():
    text = "[a](docs/trust.md#measured) [b](CHANGELOG.md) [c](https://example.org/CHANGELOG.md) [d](#here)"
    assert sections.on_site(text, at_root=True) == (
        "[a](trust.md#measured) [b](changelog.md) [c](https://example.org/CHANGELOG.md) [d](#here)"
    )
    text = "[a](../ARCHITECTURE.md#rooms) [b](trust.md) [c](../src/file.json) [d](../README.md)"
    assert sections.on_site(text, at_root=False) == "[a](architecture.md#rooms) [b](trust.md) [c](../src/file.json) [d](index.md)"


def rooms_shown() -> list[str]:
    """The rooms that the pages of the reference show, "" for what is in none."""
    blocks = [re.findall(r"^```\{room\} ?(\S*)$", page.read_text(), re.MULTILINE) for page in sorted((DOCS / "api").glob("*.md"))]
    assert all(len(each) == 1 for each in blocks), "a page of the reference shows one room"
    return [room for (room,) in blocks]


def test_every_public_name_is_in_one_room_of_the_reference():
    shown = [each for room in rooms_shown() for each in public_names.names_of(room)]
    assert Counter(room for room in rooms_shown()).most_common(1)[0][1] == 1
    values = {id(each.value) for each in shown if callable(each.value)}
    assert values == {id(value) for value in PUBLIC.values() if callable(value)}
    constants = sorted(each.path for each in shown if not callable(each.value))
    assert constants == sorted(name for name, value in PUBLIC.items() if not callable(value))
    assert len({each.path for each in shown}) == len(shown) == len(PUBLIC)
    assert not [each.path for each in shown if any(part.startswith("_") for part in each.path.split("."))]


def test_names_are_shown_as_they_are_imported():
    paths = {each.short: (each.path, each.room) for each in public_names.public_names()}
    assert paths["bound_value"] == ("accountable_ope.bound_value", "bounds")
    assert paths["sandwich_interval"] == ("accountable_ope.bounds.sandwich_interval", "bounds")
    assert paths["Dask"] == ("accountable_ope.statistics.engines.Dask", "statistics.engines")
    assert paths["Choice"] == ("accountable_ope.Choice", "radii")
    assert paths["InvalidInput"] == ("accountable_ope.InvalidInput", "")


def test_constants_are_explained():
    constants = [each for each in public_names.public_names() if not callable(each.value)]
    assert constants and all(public_names.explanation(each) for each in constants)


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("|x| and a* of theta_ mean `|themselves|`.", r"\|x\| and a\* of theta\_ mean `|themselves|`."),
        ("x_i, not a reference", "x_i, not a reference"),
        ("A formula:\n    a = b\n    c = d\nand on.", "A formula:\n\n| a = b\n| c = d\n\nand on."),
        ("Parameters\n----------\nx : int\n    At *most* 3.", "Parameters\n----------\nx : int\n    At \\*most\\* 3."),
        ("Notes\n-----\nProof.\n  (1) |a|", "Notes\n-----\nProof.\n\n| (1) \\|a\\|"),
        ("Parameters\n----------\na : array\n    A.", "Parameters\n----------\na : array\n    \\A."),
        (">>> a | b\nx|y\n\nAfter |it|.", ">>> a | b\nx|y\n\nAfter \\|it\\|."),
    ],
)
def test_docstrings_are_plain_text(text, markup):
    assert plain_text.as_markup(text.splitlines()) == markup.splitlines()


def test_every_schema_is_on_its_page():
    folder = ROOT / "src" / "accountable_ope" / "data"
    linked = re.findall(r"\]\(\.\./src/accountable_ope/data/([\w./-]+)\)", (DOCS / "schemas.md").read_text())
    assert sorted(linked) == sorted(str(file.relative_to(folder)) for file in folder.rglob("*.schema.json"))


def test_the_glossary_has_what_results_say():
    from accountable_ope import Guarantee, Status
    from accountable_ope.problem import Kind

    terms = set(re.findall(r"^\*\*(.+)\*\*$", (DOCS / "glossary.md").read_text(), re.MULTILINE))
    said = [Status.VACUOUS.name, Status.INCONSISTENT.name, Guarantee.FINITE_SAMPLE.value, Guarantee.ASYMPTOTIC.value]
    assert {*map(str.lower, said), *(kind.value for kind in Kind)} <= terms
    assert [*terms] and sorted(terms, key=str.lower) == re.findall(
        r"^\*\*(.+)\*\*$", (DOCS / "glossary.md").read_text(), re.MULTILINE
    ), "in the order of the alphabet"
