"""Cosines and sines of many angles at once.

The mathematics library takes most of the time of a random-feature pass. Where the processor has tangents of many numbers at
once, with t = tan(a / 2) and q = 2 / (1 + t^2) they are cos a = q - 1 and sin a = q t, to one and a half units in the last digit.
Where it has none, a whole circle is cut into 1,024 parts: exp(i a) is that of the nearest cut, from a table, times that of the
rest, for which three terms of each series are exact to the last digit: the rest is at most half a part, 0.0031, and the first
terms that are left out are below 2e-18.
"""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray

PARTS = 1024
"""Of the circle; a power of two, so that the part of an angle is found by its last bits."""

UNIT = 2 * np.pi / PARTS
TABLE = np.exp(1j * UNIT * np.arange(PARTS))

ENTRIES = 2**15
"""Angles that are worked on at a time: the buffers of so many stay in the second-level cache."""


def _has_wide_tangent() -> bool:
    """Whether NumPy has tangents for the vector registers of this processor; before NumPy 2 nobody says so."""
    try:
        known = np.lib.introspect.opt_func_info(func_name="^tan$", signature="float64")
    except AttributeError:
        return False
    return any(not each["current"].startswith("baseline") for kinds in known.values() for each in kinds.values())


WIDE = _has_wide_tangent()


class Waves:
    """cos and sin of w_k'x at blocks of points, in buffers that are used again; one for every thread.

    Parameters
    ----------
    frequencies : array (D, d)
        w.
    wide : bool
        Whether by tangents; otherwise by the table.
    """

    def __init__(self, frequencies: FloatArray, *, wide: bool = WIDE) -> None:
        count = self._count = len(frequencies)
        self.rows = max(ENTRIES // count, 16)
        # Angles are counted in turns.
        self._turning = np.ascontiguousarray(frequencies.T / (2 * np.pi))
        self._turns, self._spare = np.empty((2, self.rows, count))
        self._waves = np.empty((self.rows, 2 * count))
        self._table = None if wide else _Table(self.rows, count)

    def at(self, points: FloatArray) -> FloatArray:
        """(n, 2 D), cosines before sines, at up to `rows` points, in a buffer that the next call writes over."""
        found = self._waves[: len(points)]
        self.write(points, found)
        return found

    def write(self, points: FloatArray, out: FloatArray) -> None:
        """The same, into an array."""
        turns, spare = self._turns[: len(points)], self._spare[: len(points)]
        np.matmul(points, self._turning, out=turns)
        if self._table is not None:
            self._table.write(turns, spare, out)
            return
        _half_tangents(turns, spare)
        np.subtract(spare, 1, out=out[:, : self._count])
        np.multiply(spare, turns, out=out[:, self._count :])


def cosines(angles: FloatArray) -> None:
    """cos, in place, of an array whose rows lie one behind the other."""
    if not WIDE:
        np.cos(angles, out=angles)
        return
    flat = angles.reshape(-1)
    spare = np.empty(min(len(flat), ENTRIES))
    for start in range(0, len(flat), ENTRIES):
        turns = flat[start : start + ENTRIES]
        here = spare[: len(turns)]
        turns /= 2 * np.pi
        _half_tangents(turns, here)
        np.subtract(here, 1, out=turns)


def _half_tangents(turns: FloatArray, spare: FloatArray) -> None:
    """t = tan(a / 2) in the place of a, and q = 2 / (1 + t^2) beside it."""
    np.rint(turns, out=spare)
    turns -= spare
    turns *= np.pi
    np.tan(turns, out=turns)
    np.multiply(turns, turns, out=spare)
    spare += 1
    np.divide(2.0, spare, out=spare)


class _Table:
    """The other way, with the buffers that it needs."""

    def __init__(self, rows: int, count: int) -> None:
        self._part = np.empty((rows, count), dtype=np.intp)
        self._waves = np.empty((2, rows, count), dtype=np.complex128)

    def write(self, turns: FloatArray, spare: FloatArray, out: FloatArray) -> None:
        part, (cut, wave) = self._part[: len(turns)], self._waves[:, : len(turns)]
        turns *= PARTS
        np.rint(turns, out=spare)
        with np.errstate(invalid="ignore"):  # beyond 2^63 parts any of them is as right as another
            np.copyto(part, spare, casting="unsafe")
        np.subtract(turns, spare, out=turns)
        np.bitwise_and(part, PARTS - 1, out=part)
        np.take(TABLE, part, out=cut, mode="clip")
        np.multiply(turns, turns, out=spare)
        _series(wave.real, spare, (UNIT**4 / 24, -(UNIT**2) / 2, 1.0))
        _series(wave.imag, spare, (UNIT**5 / 120, -(UNIT**3) / 6, UNIT))
        wave.imag *= turns
        np.multiply(wave, cut, out=wave)
        out[:, : wave.shape[1]], out[:, wave.shape[1] :] = wave.real, wave.imag


def _series(out: FloatArray, square: FloatArray, terms: tuple[float, float, float]) -> None:
    """A polynomial of degree two, in place."""
    np.multiply(square, terms[0], out=out)
    out += terms[1]
    out *= square
    out += terms[2]
