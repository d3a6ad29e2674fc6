"""What the site adds to Sphinx: sections, rooms of the reference, docstrings in plain text, and links from code and terms."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from plain_text import as_markup
from public_names import PACKAGE, Name, explanation, names_of, public_names, rooms
from sections import ELSEWHERE, SECTIONS, listed, on_site, toctree
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

LOGGER = logging.getLogger(__name__)


def read_page(app: Sphinx, page: str, source: list[str]) -> None:
    """A page as the site has it: links to its own pages, the text of files at the root, and sections with their pages."""
    file = Path(app.srcdir).parent / ELSEWHERE[page] if page in ELSEWHERE else None
    if file is not None:
        app.env.note_dependency(str(file))
        source[0] = file.read_text(encoding="utf-8")
    source[0] = on_site(source[0], at_root=file is not None)
    if page in SECTIONS:
        source[0] += toctree(listed(source[0], page))


class Room(Directive):
    """The public names of a room: a table of all, and below it what each of them says of itself."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes, from text that is written here as an author would write it."""
        names = names_of(self.arguments[0] if self.arguments else "")
        table = ["```{eval-rst}", ".. autosummary::", "   :signatures: none", ""]
        table += [f"   ~{each.path}" for each in names if callable(each.value)]
        entries = [line for each in names for line in entry(each)]
        holder = nodes.Element()
        self.state.nested_parse(StringList([*table, "", *entries, "```"], source="room"), self.content_offset, holder)
        return holder.children


def entry(name: Name) -> list[str]:
    """The directive of a name."""
    if not callable(name.value):
        return ["", f".. py:data:: {name.path}", f"   :value: {name.value!r}"[:100], "", f"   {explanation(name)}", ""]
    kind = "exception" if is_error(name.value) else "class" if inspect.isclass(name.value) else "function"
    return ["", f".. auto{kind}:: {name.path}", ""]


def is_error(value: object) -> bool:
    """Whether it is raised."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def plain_docstring(app: Sphinx, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in backticks: |x|, a* and theta_ mean themselves, and indented lines stay lines."""
    lines[:] = as_markup(lines)


def skip_member(app: Sphinx, what: str, name: str, value: object, skip: bool, options: Any) -> bool | None:
    """Whether a member says nothing of its own: fields of named tuples, and names without a docstring."""
    said = getattr(value, "__doc__", None) or ""
    return True if not said or said.startswith("Alias for field number") else None


class LinkedCode(SphinxPostTransform):
    """Code that is the name of something public leads to its entry; what looks like one and is none fails."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """All code of a page that is in no link."""
        entries = Entries(self.app)
        for node in list(self.document.findall(nodes.literal)):
            if isinstance(node.parent, nodes.reference) or node.parent is None:
                continue
            text = node.astext()
            if entries.is_missing(text):
                LOGGER.warning("nothing public is called %s", text, location=node)
            elif target := entries.target(text):
                node.replace_self(make_refnode(self.app.builder, self.env.docname, *target, node.deepcopy(), text))


class LinkedTerms(SphinxTransform):
    """What is emphasized in a definition of the glossary is a term, and leads to its definition; none of that name fails."""

    default_priority = 100

    def apply(self, **_: Any) -> None:
        """All emphasized words of definitions."""
        terms = {each.astext().lower() for each in self.document.findall(nodes.term)}
        for node in [each for entry in self.document.findall(is_definition) for each in entry.findall(nodes.emphasis)]:
            about = {"refdomain": "std", "reftype": "term", "refexplicit": True, "refwarn": True, "refdoc": self.env.docname}
            word = node.astext()
            forms = (word, word.removesuffix("s"), f"{word}s")  # singular or plural
            term = next((form for form in forms if form.lower() in terms), word)
            node.replace_self(addnodes.pending_xref("", nodes.emphasis("", node.astext()), reftarget=term, **about))


def is_definition(node: nodes.Node) -> bool:
    """Whether it is what stands below a term of a glossary."""
    return isinstance(node, nodes.definition) and isinstance(node.parent.parent.parent, addnodes.glossary)


CALL = re.compile(r"^(aope\.)?([A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?$", re.DOTALL)


class Entries:
    """What the reference holds, by the names under which pages and docstrings speak of it."""

    def __init__(self, app: Sphinx) -> None:
        self._objects = app.env.domaindata["py"]["objects"]
        self._rooms = rooms()
        self._classes = {each.short: each for each in public_names() if inspect.isclass(each.value)}

    def target(self, text: str) -> tuple[str, str] | None:
        """Page and anchor of what a piece of code names, if anything."""
        found = CALL.match(text)
        for path in self._paths(found[2].removeprefix(f"{PACKAGE}.")) if found else []:
            if path in self._objects:
                entry = self._objects[path]
                return entry.docname, entry.node_id
        return None

    def _paths(self, name: str) -> list[str]:
        """How it may be imported: from the package, and from a room where nothing else can be meant."""
        head, _, rest = name.partition(".")
        paths = [f"{PACKAGE}.{name}"]
        if head in self._rooms:  # `bounds.Study`, which the package has too
            paths.append(f"{PACKAGE}.{rest}")
        if head in self._classes:  # a part without an entry of its own is in the table of its class
            whole = self._classes[head].path
            paths += [f"{whole}.{rest}" if rest else whole, whole]
        return paths

    def is_missing(self, text: str) -> bool:
        """Whether it speaks of a public class, or of the package, and of a part that is not there."""
        found = CALL.match(text)
        if found is None:
            return False
        head, _, rest = found[2].partition(".")
        if head in self._classes:
            return bool(rest) and not has_part(self._classes[head].value, rest.partition(".")[0])
        return bool(found[1]) and not hasattr(importlib.import_module(PACKAGE), head)


def has_part(value: object, part: str) -> bool:
    """Whether a class has an attribute, or says that its instances have."""
    annotated = any(part in inspect.get_annotations(each) for each in getattr(value, "__mro__", ()))
    return hasattr(value, part) or annotated or bool(re.search(rf"^\s*(\w+, )*{part}\b.*$", value.__doc__ or "", re.MULTILINE))


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", skip_member)
    app.add_directive("room", Room)
    app.add_transform(LinkedTerms)
    app.add_post_transform(LinkedCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
