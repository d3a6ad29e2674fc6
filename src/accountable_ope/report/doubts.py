"""Doubts as paragraphs: what one test says of several classes is said once."""

from __future__ import annotations

from collections.abc import Sequence

from ..radii.doubts import Doubt


def doubt_paragraphs(doubts: Sequence[Doubt]) -> list[tuple[str, str]]:
    """(heading, text) of every doubt; classes with the same span fail the same test, so that the others are only named."""
    found: list[tuple[str, str]] = []
    for number, each in enumerate(doubts):
        alike = [other for other in doubts if _said_of(other) == _said_of(each)]
        if any(earlier in alike for earlier in doubts[:number]):
            continue
        names = [_class(other) for other in alike[1:]]
        more = "" if not names else f" The same test says so of {' and of '.join(names)}."
        found.append(("Weak sign" if each.weak else "Doubt", f"{each}{more}"))
    return found


def _class(each: Doubt) -> str:
    """The class that it is of; none of copies of rows."""
    return str(dict(each.statement.parameters).get("class", ""))


def _said_of(each: Doubt) -> tuple[str, str]:
    """What is said, whichever the class: equal where spans are, as printed."""
    return each.kind.value, each.text.replace(_class(each), "it") if _class(each) else each.text
