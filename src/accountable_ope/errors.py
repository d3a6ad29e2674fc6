"""What can go wrong, in words: every message names the argument, what was given and what to do."""

from __future__ import annotations


class AopeError(Exception):
    """Any error this package raises on purpose."""


class InvalidInput(AopeError, ValueError):
    """Data, assumptions or options that cannot be used; raised before any work starts."""


class InvalidFile(InvalidInput):
    """A file that is missing, corrupt, empty, or lacks a column."""


class MissingExtra(AopeError, ImportError):
    """An optional dependency is needed; the message holds the pip command."""
