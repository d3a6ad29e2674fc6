"""Work that is one step ahead, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, the next one already in the making: NumPy lets go of the interpreter lock in all that takes long.

    Examples
    --------
    >>> from accountable_ope.io.ahead import ahead
    >>> list(ahead(iter(range(3))))
    [0, 1, 2]
    """
    end = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item  # type: ignore[misc]  # what is not the end is an item
