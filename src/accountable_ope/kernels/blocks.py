"""Sums over rows in blocks, added one after the other: fewer roundings follow each other than rows."""

from __future__ import annotations

from collections.abc import Iterator

ROWS_AT_ONCE = 8192
"""Rows of a block: what is made of them stays in the cache."""

LEAST_PART = 1024
"""Parts of a log that are at least so long count no more roundings than all rows at once."""


def blocks(count: int) -> Iterator[slice]:
    """Of so many rows."""
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, count, ROWS_AT_ONCE))


def roundings(count: int) -> int:
    """At most so many additions follow each other in a sum over rows: those of a block, and one per block or part."""
    return min(count, ROWS_AT_ONCE) + -(-count // LEAST_PART)
