"""Words of the command line as numbers, vectors, boxes and names of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import InvalidInput
from ..io.column_names import LOG, SHOWS_ORDER, STARTS
from ..io.columns import ColumnNames, did_you_mean
from ..validation import FloatArray


def parse_vectors(text: str, option: str) -> list[list[float]]:
    """'-1,0,1' -> one number each; 'a1,a2;b1,b2' -> vectors of one length."""
    try:
        rows = [[float(x) for x in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise InvalidInput(f"{option} must be numbers separated by commas. Got {text!r}.") from None
    if len({len(row) for row in rows}) != 1:
        raise InvalidInput(f"{option} must be vectors of one length. Got {text!r}.")
    return [[x] for x in rows[0]] if len(rows) == 1 else rows


def parse_columns(words: Sequence[str]) -> ColumnNames:
    """'state=age,dose', 'episode=patient' -> the columns of each."""
    found: dict[str, str | Sequence[str]] = {}
    for word in words:
        meaning, equals, listed = word.partition("=")
        meaning, names = meaning.strip(), tuple(name.strip() for name in listed.split(","))
        if not equals or not meaning or not all(names):
            raise InvalidInput(f"--column must say which column is which, such as state=age,dose. Got {word!r}.")
        if meaning not in (*LOG, *STARTS, *SHOWS_ORDER):
            known = tuple(dict.fromkeys((*LOG, *STARTS)))
            raise InvalidInput(f"--column must name one of {', '.join(known)}. Got {meaning!r}.{did_you_mean(meaning, known)}")
        if meaning in found:
            raise InvalidInput(f"--column {meaning}=... is given twice: name all of its columns at once, as in state=age,dose.")
        found[meaning] = names if len(names) > 1 else names[0]
    return found


def parse_bandwidth(text: str) -> FloatArray:
    """One number, or one per column of (state, action) separated by commas."""
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--bandwidth must be a number, or numbers separated by commas. Got {text!r}.") from None
    if not all(math.isfinite(x) and x > 0 for x in numbers):
        raise InvalidInput(f"--bandwidth must be positive. Got {text!r}.")
    return np.array(numbers[0] if len(numbers) == 1 else numbers)


def parse_box(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """-5:5,-3:3 -> ((-5, -3), (5, 3))."""
    try:
        sides = [tuple(float(end) for end in side.split(":")) for side in text.split(",")]
        lows, highs = zip(*((low, high) for low, high in sides), strict=True)
    except ValueError:
        raise InvalidInput(f"--state-box must look like -5:5,-3:3, one low:high per state column. Got {text!r}.") from None
    return lows, highs
