"""HTML from the templates in data/templates; every value is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Grid:
    """A table with a header, cells as text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def render(template: str, page: object) -> str:
    """A template filled in; it reads its values from the attributes of `page`."""
    return _environment().get_template(template).render(page=page)


def result_table(
    title: str,
    rows: Sequence[tuple[str, object]],
    statements: Sequence[object] = (),
    *,
    status: str = "",
    advice: str = "",
    notes: Sequence[object] = (),
    lead: Sequence[str] = (),
    grids: Sequence[Grid] = (),
) -> str:
    """A result as a fragment of HTML, for `_repr_html_`.

    rows:       label and value, in the order to be read.
    statements: what the result rests on; folded away behind their number.
    status:     one word, in color where it is a known one (OK, VACUOUS, INCONSISTENT, ...), with what it means as `advice`.
    notes:      what must not be overlooked, such as doubts.
    lead:       sentences that come before all else.
    grids:      tables, below the rows.
    """
    first = tuple(filter(None, lead))
    page = _ResultTable(title, tuple(rows), tuple(statements), status, advice, tuple(notes), first, tuple(grids))
    return render("table.html", page)


@dataclass(frozen=True)
class _ResultTable:
    title: str
    rows: tuple[tuple[str, object], ...]
    statements: tuple[object, ...]
    status: str
    advice: str
    notes: tuple[object, ...]
    lead: tuple[str, ...]
    grids: tuple[Grid, ...]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("accountable_ope", "data/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
