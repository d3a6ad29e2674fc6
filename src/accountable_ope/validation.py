"""Turning what users hand in into frozen float64 arrays, or into one clear sentence."""

from __future__ import annotations

import math
import os
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInput, InvalidRow

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LARGEST_WHOLE = 2**64
"""Whole numbers stay below it: larger ones are no sizes, and overflow."""
LARGEST = 1e60
"""Numbers stay within it, and positive ones above its inverse: the products of a few of them neither overflow nor vanish."""
LEAST_LEVEL = 1e-300
"""A probability below it is 0 for all that is done with it: its inverse overflows."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view, so that a validated record stays validated."""
    view = array.view()
    view.flags.writeable = False
    return view


def private_copy(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A private copy: what the caller later does to its array does not reach a validated record."""
    return np.array(values, dtype=dtype, order="C", copy=True)


def raw_array(values: ArrayLike) -> NDArray[Any]:
    """`values` as an array of whatever type; masks and lists of different lengths become objects, which no caller accepts."""
    try:
        return np.empty(0, dtype=object) if np.ma.isMaskedArray(values) else np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        return np.empty(0, dtype=object)


def float_array(values: ArrayLike, name: str, *, dimensions: tuple[int, ...], largest: float = LARGEST) -> FloatArray:
    """`values` as a private float64 array without NaN or infinity, with one of the allowed numbers of dimensions."""
    raw = raw_array(values)
    if raw.dtype.kind not in "fiub" or (raw.dtype == bool and raw.ndim == 0):
        raise InvalidInput(f"`{name}` must be numbers of one shape. Got {describe(values)}.")
    with np.errstate(over="ignore"):  # a number too large for float64 becomes infinite, and is refused as such
        array = private_copy(raw, np.float64)
    if array.ndim not in dimensions:
        wanted = " or ".join(f"{d}-dimensional" for d in dimensions)
        raise InvalidInput(f"`{name}` must be {wanted}. Got an array of shape {array.shape}.")
    refuse_non_finite(array, name, largest)
    return array


def refuse_non_finite(array: FloatArray, name: str, largest: float = LARGEST) -> None:
    """Raise when an entry is NaN, infinite, or so large that its powers overflow, naming the first such row."""
    most = min(largest, np.finfo(np.float64).max)
    if array.size == 0 or (-most <= array.min() and array.max() <= most):  # NaN is the least and the largest, and neither
        return
    wrong = ~np.isfinite(array)
    what = "NaN or infinite"
    if not wrong.any():
        wrong, what = np.abs(array) > largest, f"too large (beyond {largest:g})"
    row, count = int(np.argwhere(wrong)[0][0]) if array.ndim else 0, int(wrong.sum())
    raise InvalidRow(f"`{name}` has {count} {what} {plural(count, 'entry', 'entries')}, first in ", row, ".")


def matrix(values: ArrayLike, name: str) -> FloatArray:
    """An (n, d) float array; a vector becomes one column."""
    array = float_array(values, name, dimensions=(1, 2))
    array = array[:, None] if array.ndim == 1 else array
    if array.shape[1] == 0:
        raise InvalidInput(f"`{name}` has no columns.")
    return array


def vector(values: ArrayLike, name: str, *, largest: float = LARGEST) -> FloatArray:
    """An (n,) float array; a single column is accepted."""
    array = float_array(values, name, dimensions=(1, 2), largest=largest)
    if array.ndim == 2:
        if array.shape[1] != 1:
            raise InvalidInput(f"`{name}` must be one number per row. Got an array of shape {array.shape}.")
        array = array[:, 0]
    return array


def same_rows(rows: int, array: NDArray[Any], name: str, reference: str) -> None:
    """Raise unless `array` has as many rows as the reference argument."""
    if len(array) != rows:
        raise InvalidInput(f"`{name}` must have one row per row of `{reference}` ({rows}). Got {len(array)}.")


def same_size(size: int, array: NDArray[Any], name: str) -> None:
    """Raise unless `array` is a vector of this size."""
    if array.shape != (size,):
        raise InvalidInput(f"`{name}` must have shape ({size},). Got {array.shape}.")


def number(value: object, name: str) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value or abs(value) == math.inf:
        raise InvalidInput(f"`{name}` must be a finite number. Got {describe(value)}.")
    if abs(value) > LARGEST:  # type: ignore[operator]  # reals can be compared
        raise InvalidInput(f"`{name}` must lie within {LARGEST:g}: larger numbers overflow. Got {describe(value)}.")
    return float(value)


def positive(value: object, name: str) -> float:
    """A finite number above zero."""
    result = number(value, name)
    if result <= 0:
        raise InvalidInput(f"`{name}` must be positive. Got {value!r}.")
    if result < 1 / LARGEST:
        raise InvalidInput(f"`{name}` must be at least {1 / LARGEST:g}: squares of smaller numbers vanish. Got {value!r}.")
    return result


def whole(value: object, name: str, *, least: int) -> int:
    """An integer not below `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < LARGEST_WHOLE:
        raise InvalidInput(f"`{name}` must be a whole number of at least {least}. Got {describe(value)}.")
    return int(value)


def probability_level(value: object, name: str = "delta") -> float:
    """A number strictly between 0 and 1."""
    result = number(value, name)
    if not 0 < result < 1:
        raise InvalidInput(f"`{name}` must be in (0, 1). Got {value!r}.")
    if result < LEAST_LEVEL:
        raise InvalidInput(f"`{name}` must not be below {LEAST_LEVEL:g}: nothing is that certain. Got {value!r}.")
    return result


def ordered_pair(value: object, name: str) -> tuple[float, float]:
    """A (low, high) pair of finite numbers, low <= high."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise InvalidInput(f"`{name}` must be a pair (low, high). Got {value!r}.")
    pair = (number(value[0], name), number(value[1], name))
    if pair[0] > pair[1]:
        raise InvalidInput(f"`{name}` must have low <= high. Got {value!r}.")
    if 0 < pair[1] - pair[0] < 1 / LARGEST:
        raise InvalidInput(f"`{name}` must have ends that are equal or at least {1 / LARGEST:g} apart. Got {value!r}.")
    return pair


def probability_rows(values: FloatArray, name: str) -> FloatArray:
    """Rows that are probability vectors, up to rounding; renormalized exactly."""
    if (values < -1e-9).any():
        row = int(np.argwhere(values < -1e-9)[0][0])
        raise InvalidInput(f"`{name}` has a negative probability in row {row}: {values[row].tolist()}.")
    sums = values.sum(axis=1)
    wrong = np.abs(sums - 1) > 1e-6
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"`{name}` must sum to one in every row. Row {row} sums to {sums[row]:.6g}.")
    clipped: FloatArray = np.maximum(values, 0.0)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return clipped


def row_keys(points: FloatArray) -> NDArray[Any]:
    """Rows as opaque bytes: equal rows compare equal, and rows can be sorted, searched and intersected."""
    contiguous = np.ascontiguousarray(points) + 0.0  # -0.0 and 0.0 are the same number
    return contiguous.view(np.dtype((np.void, contiguous.dtype.itemsize * contiguous.shape[1]))).reshape(-1)


@cache
def machine_memory() -> float:
    """The bytes of memory that this machine has, infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def refuse_memory(needed: float, name: str, what: str) -> None:
    """Raise, before anything is allocated, where `what` needs more memory than the machine has."""
    if needed > machine_memory():
        raise InvalidInput(
            f"`{name}` is too much for this machine: {what} need about {needed / 2**30:.3g} GiB of memory, and it has "
            f"{machine_memory() / 2**30:.3g}."
        )


def plural(count: int, one: str, many: str) -> str:
    """The word that agrees with the count."""
    return one if count == 1 else many


def describe(values: object) -> str:
    """A short description of a wrong argument."""
    text = " ".join(repr(values).split())
    return text if len(text) <= 60 else f"{type(values).__name__} ({text[:50]}...)"
