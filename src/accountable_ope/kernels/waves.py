"""Cosines and sines of many angles at once, as the complex numbers exp(i w'x).

The mathematics library takes most of the time of a random-feature pass. Here a whole circle is cut into 1,024 parts: exp(i a) is
that of the nearest cut, from a table, times that of the rest, for which three terms of each series are exact to the last digit:
the rest is at most half a part, 0.0031, and the first terms that are left out are below 2e-18.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..validation import FloatArray

PARTS = 1024
"""Of the circle; a power of two, so that the part of an angle is found by its last bits."""

UNIT = 2 * np.pi / PARTS
TABLE = np.exp(1j * UNIT * np.arange(PARTS))

ENTRIES = 2**15
"""Angles that are worked on at a time: the buffers of so many stay in the second-level cache."""


class Waves:
    """exp(i w_k'x) at blocks of points, in buffers that are used again; one for every thread.

    Parameters
    ----------
    frequencies : array (D, d)
        w.
    """

    def __init__(self, frequencies: FloatArray) -> None:
        count = len(frequencies)
        self.rows = max(ENTRIES // count, 16)
        # Angles are counted in parts of the circle.
        self._turning = np.ascontiguousarray(frequencies.T / UNIT)
        self._rest, self._square = np.empty((2, self.rows, count))
        self._part = np.empty((self.rows, count), dtype=np.intp)
        self._cut, self._wave = np.empty((2, self.rows, count), dtype=np.complex128)

    def at(self, points: FloatArray) -> NDArray[Any]:
        """(n, D) complex numbers at up to `rows` points, in a buffer that the next call writes over."""
        here = slice(0, len(points))
        rest, square, part = self._rest[here], self._square[here], self._part[here]
        cut, wave = self._cut[here], self._wave[here]
        np.matmul(points, self._turning, out=rest)
        np.rint(rest, out=square)
        with np.errstate(invalid="ignore"):  # beyond 2^63 parts any of them is as right as another
            np.copyto(part, square, casting="unsafe")
        np.subtract(rest, square, out=rest)
        np.bitwise_and(part, PARTS - 1, out=part)
        np.take(TABLE, part, out=cut, mode="clip")
        np.multiply(rest, rest, out=square)
        _series(wave.real, square, (UNIT**4 / 24, -(UNIT**2) / 2, 1.0))
        _series(wave.imag, square, (UNIT**5 / 120, -(UNIT**3) / 6, UNIT))
        wave.imag *= rest
        np.multiply(wave, cut, out=wave)
        return wave


def _series(out: FloatArray, square: FloatArray, terms: tuple[float, float, float]) -> None:
    """A polynomial of degree two, in place."""
    np.multiply(square, terms[0], out=out)
    out += terms[1]
    out *= square
    out += terms[2]
