"""What can go wrong, in words: every message names the argument, what was given and what to do."""

from __future__ import annotations

from collections.abc import Callable


class AopeError(Exception):
    """Any error this package raises on purpose."""


class InvalidInput(AopeError, ValueError):
    """Data, assumptions or options that cannot be used; raised before any work starts."""


class InvalidRow(InvalidInput):
    """Rows of a log that cannot be used: a sentence in parts, in which a number is a row, and a pair of numbers two of them.

    Rows are counted from 0. Whoever knows where they come from says where they are found.
    """

    def __init__(self, *words: str | int | tuple[int, int]) -> None:
        super().__init__("".join(map(_plain, words)))
        self.words = words

    def placed(self, where: Callable[[int], str]) -> str:
        """The same sentence with other names of the rows."""
        found = []
        for word in self.words:
            if isinstance(word, str):
                found.append(word)
            else:
                found.append(" and ".join(map(where, (word,) if isinstance(word, int) else word)))
        return "".join(found)


def _plain(word: str | int | tuple[int, int]) -> str:
    if isinstance(word, tuple):
        return f"rows {word[0]} and {word[1]}"
    return f"row {word}" if isinstance(word, int) else word


class InvalidFile(InvalidInput):
    """A file that is missing, corrupt, empty, or lacks a column."""


class MissingExtra(AopeError, ImportError):
    """An optional dependency is needed; the message holds the pip command."""
