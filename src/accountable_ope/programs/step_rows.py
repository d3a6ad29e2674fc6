"""The residuals of every row, over a set of coefficients: how large those in the data can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..validation import FloatArray, IntArray
from .ellipsoid import Ellipsoid, root_over
from .quadratic import Quadratic

SOME_ROWS = 4000
"""Rows looked at where any choice is valid."""

FEW = 256
"""Rows that are looked at first for the largest step."""


@dataclass(frozen=True, eq=False)
class StepRows:
    """eps_i = target_i - residuals_i'theta, and what is not seen of it.

    gap:    what a misfit can add to |eps_i|.
    missed: what an unseen part of norm one can add to |eps_i|, None where there is none.
    ranges: |eps_i| <= ranges_i at the true Q, as declared; None where only one range is known for all rows.
    others: q, where there are more rows than these: |eps_i| <= h_i sqrt(q(theta)) at each of them, h_i its leverage; None: there
            are none. Scales of steps then have one more entry, the largest product of scale and leverage of these rows.
    """

    residuals: FloatArray
    target: FloatArray
    gap: float = 0.0
    missed: FloatArray | None = None
    ranges: FloatArray | None = None
    others: Quadratic | None = None

    def bounds(self, residual_bound: float) -> FloatArray:
        """The largest |eps_i| of the true Q that the ranges allow, row by row."""
        if self.ranges is None:
            return np.full(len(self.target), residual_bound)
        return np.minimum(self.ranges, residual_bound)

    def hidden(self, norm_bound: float) -> FloatArray | float:
        """How much larger |eps_i| of the true Q may be than that of the seen part of the nearest function of the class."""
        return self.gap if self.missed is None else self.gap + norm_bound * self.missed

    def largest(self, ellipsoids: Sequence[Ellipsoid], norm_bound: float, scales: Sequence[FloatArray] = ()) -> FloatArray:
        """The largest |eps_i| of the true Q if all of the ellipsoids hold the seen part of it (n,); then sqrt(q) of others.

        scales: where only the largest scale_i |eps_i| counts, for each of these; rows that cannot have it may get more than they
        need, which spares most of the work.
        """
        found = self._over(ellipsoids, self.hidden(norm_bound), [scale[: len(self.target)] for scale in scales])
        if self.others is not None:
            found = np.append(found, min((root_over(self.others, each) for each in ellipsoids), default=np.inf))
        return np.asarray(found * (1 + 1e-12))

    def _over(self, ellipsoids: Sequence[Ellipsoid], hidden: FloatArray | float, scales: Sequence[FloatArray]) -> FloatArray:
        n = len(self.target)
        if not ellipsoids or not n:
            return np.full(n, np.inf)
        some = slice(None, None, 1 + n // SOME_ROWS)
        first, *rest = sorted(ellipsoids, key=lambda each: float(self._reach(each, some).max()))
        found = np.asarray(self._reach(first, slice(None)) + hidden)

        def reduce(each: Ellipsoid, rows: IntArray) -> None:
            more = hidden if isinstance(hidden, float) else hidden[rows]
            found[rows] = np.minimum(found[rows], self._reach(each, rows) + more)

        # A few rows that seem to have the largest step: over all ellipsoids, the largest of them is one that is reached.
        tops = [np.argpartition(scale * found, -min(FEW, n))[-min(FEW, n) :] for scale in scales]
        done = np.unique(np.concatenate(tops)) if tops else np.arange(0)
        for each in rest:
            reduce(each, done)
        reached = [float((scale[done] * found[done]).max()) for scale in scales]
        open_rows = np.ones(n, dtype=bool)
        open_rows[done] = False
        for each in rest:
            if scales:
                open_rows &= np.any([scale * found > most for scale, most in zip(scales, reached, strict=True)], axis=0)
            reduce(each, np.flatnonzero(open_rows))
        return found

    def largest_step(self, scale: FloatArray, possible: FloatArray, residuals: FloatArray) -> float:
        """The largest step in the data, for residuals within what is possible and within what ellipsoids leave (`largest`)."""
        kept = len(self.target)
        seen = float((scale[:kept] * np.minimum(possible, residuals[:kept])).max(initial=0.0))
        return seen if self.others is None else max(seen, float(scale[kept] * residuals[kept]))

    def farthest(self, ellipsoids: Sequence[Ellipsoid], scale: FloatArray) -> FloatArray:
        """A direction in which the ellipsoids let a step grow far: where another ellipsoid would help."""
        some = slice(None, None, 1 + len(self.target) // SOME_ROWS)
        least = np.min([self._reach(each, some) for each in ellipsoids], axis=0)
        row = int(np.argmax(scale[: len(self.target)][some] * least))
        direction, target = self.residuals[some][row], self.target[some][row]
        center = ellipsoids[0].center[: len(direction)]
        return np.asarray(direction if direction @ center > target else -direction)

    def at(self, theta: FloatArray) -> FloatArray:
        """|eps_i| of the seen part at one theta (n,)."""
        return np.abs(self.target - self.residuals @ theta)

    def _reach(self, ellipsoid: Ellipsoid, rows: slice | IntArray) -> FloatArray:
        residuals, target = self.residuals[rows], self.target[rows]
        up, down = ellipsoid.reach(residuals, np.zeros(residuals.shape[1]))
        return np.maximum(target + down, up - target)
