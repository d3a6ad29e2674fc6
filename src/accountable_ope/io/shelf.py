"""Named arrays of one file, each part of a program with a shelf of its own."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..validation import FloatArray, IntArray


class Shelf:
    """Arrays by name, as `save_arrays` writes them; `within` gives a part of it to whoever keeps arrays there.

    Bits and the order of axes in memory are kept: sums over the same numbers in another layout may round otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope.io.shelf import Shelf
    >>> shelf = Shelf()
    >>> shelf.within("cut").put("total", np.ones(2))
    >>> list(shelf.arrays), shelf.within("cut").floats("total", 2)
    (['cut.total'], array([1., 1.]))
    """

    def __init__(self, arrays: dict[str, NDArray[Any]] | None = None, prefix: str = "") -> None:
        self.arrays = {} if arrays is None else arrays
        self._prefix = prefix

    def within(self, name: str) -> Shelf:
        """The part of it with this name."""
        return Shelf(self.arrays, f"{self._prefix}{name}.")

    def put(self, name: str, array: NDArray[Any] | float) -> None:
        """Keep it; it must not change before the file is written."""
        found = np.asarray(array)
        whole = found.flags.c_contiguous or found.flags.f_contiguous
        self.arrays[self._prefix + name] = found if whole else found.copy(order="K")

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self.arrays

    def floats(self, name: str, *shape: int | None) -> FloatArray:
        """An array of float64 of this shape, None for any length; `ValueError` where there is none."""
        return self._of(name, np.dtype(np.float64), shape)

    def whole(self, name: str, *shape: int | None) -> IntArray:
        """Whole numbers likewise."""
        return self._of(name, np.dtype(np.int64), shape)

    def number(self, name: str) -> float:
        """One number."""
        return float(self.floats(name))

    def count(self, name: str) -> int:
        """One whole number, not negative."""
        found = int(self.whole(name))
        if found < 0:
            raise ValueError(f"its {self._prefix}{name} is {found}")
        return found

    def _of(self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> NDArray[Any]:
        found = self.arrays.get(self._prefix + name)
        if found is None:
            raise ValueError(f"it has no array {self._prefix + name!r}")
        fits = found.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, found.shape, strict=True))
        if found.dtype != dtype or not fits:
            raise ValueError(f"its array {self._prefix + name!r} is of another kind")
        return np.array(found, order="K")  # a copy that can be added to

    @property
    def sha256(self) -> str:
        """Of all names, kinds and numbers."""
        digest = hashlib.sha256()
        for name in sorted(self.arrays):
            array = self.arrays[name]
            digest.update(f"{name} {array.dtype.str} {array.shape} {array.flags.f_contiguous}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes() if array.dtype.kind == "U" else _bytes(array))
        return digest.hexdigest()


def _bytes(array: NDArray[Any]) -> memoryview | bytes:
    """The numbers as they lie in memory, without a copy where that is possible."""
    flat = array.T if array.flags.f_contiguous else np.ascontiguousarray(array)
    return flat.data.cast("B") if flat.size and flat.ndim else flat.tobytes()
