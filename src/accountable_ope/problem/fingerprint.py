"""What names a set of arrays: SHA-256 of their numbers, which may come in parts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Fingerprint:
    """SHA-256 over name, shape and SHA-256 of the numbers (float64, little-endian, row by row) of every array, in order."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def add(self, **arrays: NDArray[Any] | None) -> None:
        """The next rows of every array that is there: the same ones every time."""
        for name, array in arrays.items():
            if array is not None:
                numbers = np.ascontiguousarray(array, dtype="<f8")
                rows, *others = numbers.shape
                known = self._shapes.get(name, (0,))[0]
                self._shapes[name] = (known + rows, *others)
                self._digests.setdefault(name, hashlib.sha256()).update(numbers.data)

    def hexdigest(self) -> str:
        """Of all rows so far."""
        digest = hashlib.sha256()
        for name, shape in self._shapes.items():
            digest.update(f"{name} {' '.join(map(str, shape))} {self._digests[name].hexdigest()}\n".encode())
        return digest.hexdigest()


def fingerprint(**arrays: NDArray[Any] | None) -> str:
    """That of arrays that are all there."""
    whole = Fingerprint()
    whole.add(**arrays)
    return whole.hexdigest()
