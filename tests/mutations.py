"""Every leaf of a result, changed: what a forger could try, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np


def mutations(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, the same with one leaf changed), for every leaf of nested dataclasses, tuples and arrays."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            inner = getattr(value, field.name)
            for where, changed in mutations(inner, f"{path}.{field.name}"):
                yield where, _replaced(value, field.name, changed)
    elif isinstance(value, tuple):
        for k, inner in enumerate(value):
            for where, changed in mutations(inner, f"{path}[{k}]"):
                yield where, (*value[:k], changed, *value[k + 1 :])
        if value:
            yield f"{path}[less]", value[:-1]
    elif isinstance(value, np.ndarray):
        if value.size:
            yield f"{path}[array]", _changed_array(value)
    elif value is not None and not callable(value):
        changed = _changed(value)
        if changed is not None:
            yield path, changed


def _replaced(value: Any, name: str, changed: Any) -> Any:
    """`dataclasses.replace` without the checks of a constructor, which a forger would go around too."""
    copy = object.__new__(type(value))
    for field in fields(value):
        object.__setattr__(copy, field.name, changed if field.name == name else getattr(value, field.name))
    return copy


def _changed_array(array: np.ndarray) -> np.ndarray:
    flat = array.copy().reshape(-1)
    place = 0 if array.ndim == 2 else int(np.argmax(np.abs(flat)))
    flat[place] = not flat[place] if flat.dtype == bool else 1.5 * flat[place] + 0.1
    if array.ndim == 2 and array.shape[0] == array.shape[1]:  # a matrix of sums stays symmetric
        whole = flat.reshape(array.shape)
        row, column = divmod(place, array.shape[1])
        whole[column, row] = whole[row, column]
    return flat.reshape(array.shape)


def _changed(value: Any) -> Any:
    if isinstance(value, Enum):
        return next((other for other in type(value) if other is not value), None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.5 * value + 0.1 if math.isfinite(value) else 0.5
    if isinstance(value, str):
        return value + "x"
    return None
