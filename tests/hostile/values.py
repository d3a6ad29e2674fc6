"""Hostile values of arguments, and which of them an annotation cannot mean."""

import contextlib
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

import accountable_ope as aope


class Frame:
    """What a table of pandas looks like to NumPy."""

    columns = ("a", "b")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([["a", 1.0], ["b", None]], dtype=object)

    def __len__(self) -> int:
        return 2


class Hostile(NamedTuple):
    """A value, made anew for every case, and the words of an annotation that can mean it."""

    make: Callable[[], Any]
    meant_by: str = ""


NUMBERS = "float|int|ArrayLike"
HOSTILE: dict[str, Hostile] = {
    "None": Hostile(lambda: None, "None"),
    "text": Hostile(lambda: "x", "str|QFunction|AnyQ^"),
    "empty text": Hostile(lambda: "", "str"),
    "bytes": Hostile(lambda: b"x"),
    "a class": Hostile(lambda: aope.Gaussian),
    "a class of features": Hostile(lambda: aope.RandomFourier),
    "an object": Hostile(object),
    "a generator": Hostile(lambda: (x for x in (0.0, 1.0)), "Iterable"),
    "a mapping": Hostile(lambda: {"a": 1}),
    "a set": Hostile(lambda: {1.0, 2.0}, "Iterable"),
    "a module": Hostile(lambda: sys),
    "a date": Hostile(lambda: datetime(2020, 1, 1)),
    "a decimal": Hostile(lambda: Decimal("0.1")),
    "a frame": Hostile(Frame),
    "complex": Hostile(lambda: 1j),
    "true": Hostile(lambda: True, "bool"),
    "a masked array": Hostile(lambda: np.ma.masked_array([0.5, 1.0], [True, False])),
    "an array of complex": Hostile(lambda: np.array([1j, 2.0])),
    "an array of objects": Hostile(lambda: np.array([None, object()])),
    "an array of numbers as objects": Hostile(lambda: np.array([0.5, 1.0], dtype=object), "Sequence|tuple|Range"),
    "an array of text": Hostile(lambda: np.array(["0.1", "0.2"]), r"(Sequence|tuple)\[str"),
    "an array of dates": Hostile(lambda: np.array(["2020-01-01"], dtype="datetime64[D]")),
    "an array of NaN": Hostile(lambda: np.array([np.nan, 1.0]), "Sequence|tuple|Array|Range"),
    "lists of unequal lengths": Hostile(lambda: [[1.0], [1.0, 2.0]], "Sequence|tuple|Array|Range"),
    "no entries": Hostile(list, "Sequence|tuple|Array|Range|Iterable"),
    "a list of numbers": Hostile(lambda: [0.1], "Sequence|tuple|Array|Range|Iterable"),
    "a list of None": Hostile(lambda: [None, None], "Sequence|tuple|Array|Range|Iterable"),
    "not a number": Hostile(lambda: float("nan"), NUMBERS),
    "infinity": Hostile(lambda: float("inf"), NUMBERS),
    "minus infinity": Hostile(lambda: -np.inf, NUMBERS),
    "huge": Hostile(lambda: 1e308, NUMBERS),
    "minus huge": Hostile(lambda: -1e308, NUMBERS),
    "tiny": Hostile(lambda: 1e-300, NUMBERS),
    "the least number": Hostile(lambda: 5e-324, NUMBERS),
    "zero": Hostile(lambda: 0, NUMBERS),
    "minus one": Hostile(lambda: -1, NUMBERS),
    "a whole number beyond floats": Hostile(lambda: 10**400, NUMBERS),
    "many": Hostile(lambda: 10**12, NUMBERS),
}

OPEN = re.compile(r"\b(Any|object)\b")
"""Annotations that say nothing."""


def cannot_mean(annotation: str, value: Hostile) -> bool:
    """Whether no reading of the annotation allows the value."""
    if OPEN.search(annotation) or (annotation == "ArrayLike | None" and value.meant_by == "str"):
        return False
    return not value.meant_by or not re.search(rf"\b\w*({value.meant_by})", annotation)


class Hang(Exception):
    """A case took too long."""


@contextlib.contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Raise `Hang` inside the block once its time is over, where the system has such alarms.

    Time of the processor, as others may use it too; ten times as much, where it only waits.
    """

    def ring(*_: object) -> None:
        raise Hang

    if not hasattr(signal, "setitimer"):
        yield
        return
    alarms = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, 10 * seconds))
    before = [signal.signal(each, ring) for _, each, _ in alarms]
    for timer, _, after in alarms:
        signal.setitimer(timer, after)
    try:
        yield
    finally:
        for (timer, each, _), handler in zip(alarms, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(each, handler)


@contextlib.contextmanager
def warnings_are_errors() -> Iterator[None]:
    """Overflow and invalid values of NumPy are failures too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
