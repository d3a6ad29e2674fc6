"""The words of the command that is run, for what it writes about itself; each run has its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_WORDS: ContextVar[tuple[str, ...]] = ContextVar("words", default=())


@contextmanager
def typed(words: Sequence[str]) -> Iterator[None]:
    """While a command runs."""
    token = _WORDS.set(tuple(words))
    try:
        yield
    finally:
        _WORDS.reset(token)


def typed_words() -> tuple[str, ...]:
    """What was typed after `aope`."""
    return _WORDS.get()
