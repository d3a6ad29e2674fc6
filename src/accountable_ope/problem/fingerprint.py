"""What names a set of arrays: SHA-256 of their numbers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fingerprint(**arrays: NDArray[Any] | None) -> str:
    """SHA-256 over name, shape and float64 numbers (little-endian, row by row) of every array that is there, in this order."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        if array is not None:
            numbers = np.ascontiguousarray(array, dtype="<f8")
            digest.update(f"{name} {' '.join(map(str, numbers.shape))}\n".encode())
            digest.update(numbers.data)
    return digest.hexdigest()
