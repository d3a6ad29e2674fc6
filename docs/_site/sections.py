"""The navigation: a page that lists pages is a section, and its list is the order of the pages in it.

Every section is plain Markdown that reads as well where nothing is built: a page is added by a line "- [title](page.md): about".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FRONT = "index"
"""The front page: its sections are the headings that are links."""

LISTS = re.compile(r"^(?:- |### )\[[^\]]*\]\(([\w/-]+)\.md\)", re.MULTILINE)

SECTIONS = (FRONT, "start", "tutorials", "concepts", "how-to", "reference", "api", "measured", "project")
"""The pages whose lists are navigation."""

ELSEWHERE = {"architecture": "ARCHITECTURE.md", "changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
"""Pages whose text lies at the root of the repository."""


def listed(text: str, section: str) -> list[str]:
    """The pages that a section lists, by name, in order; they are named from the folder of the section, docs/."""
    mark = "### " if section == FRONT else "- "
    return [found[1] for found in LISTS.finditer(text) if found[0].startswith(mark)]


def navigation(docs: Path) -> dict[str, list[str]]:
    """Each section of the site and its pages."""
    return {name: listed((docs / f"{name}.md").read_text(encoding="utf-8"), name) for name in SECTIONS}


def reachable(tree: dict[str, list[str]], start: str = FRONT) -> Iterator[str]:
    """Every page below `start`, as often as it is listed."""
    yield start
    for page in tree.get(start, []):
        yield from reachable(tree, page)


def toctree(pages: list[str]) -> str:
    """What Sphinx reads at the end of a section."""
    return "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])


def on_site(text: str, *, at_root: bool) -> str:
    """A page whose links to files at the root of the repository lead to their pages on the site.

    at_root: the text is that of a file at the root, whose links to pages begin with docs/.
    """
    folder = "" if at_root else "../"
    for page, file in {**ELSEWHERE, FRONT: "README.md"}.items():
        text = re.sub(rf"\]\({re.escape(folder + file)}(#[^)\s]*)?\)", rf"]({page}.md\1)", text)
    return text.replace("](docs/", "](") if at_root else text
