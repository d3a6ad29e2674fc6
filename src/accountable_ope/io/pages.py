"""Markdown pages whose tables are written by the run that they report, between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import InvalidFile
from .files import whole_file


def around(page: Path, begin: str, end: str) -> tuple[str, str]:
    """What stands before and after the marks, both included; a page without a place for the tables is refused."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{page} cannot be read: {error}") from error
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise InvalidFile(
            f"{page} must contain the lines {begin!r} and {end!r}, between which the tables go, once each and in this order."
        )
    return text[: text.index(begin) + len(begin)], text[text.index(end) :]


def fill(page: Path, begin: str, end: str, text: str) -> None:
    """Put the text between the marks, in place of what stands there."""
    before, after = around(page, begin, end)
    with whole_file(page) as partial:
        partial.write_text(f"{before}\n\n{text}\n\n{after}", encoding="utf-8")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
