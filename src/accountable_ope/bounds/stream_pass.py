"""One pass over a log that is read in parts: all that an interval needs of rows which are then gone.

Sums for the kernel statistic and the moments of the value box; weights of the cut, made block after block from earlier rows, with
their sums; the name of the rows; columns of as many rows as fit into the memory at hand; and of the others how large a residual
can be: with z_i = (Z_i, v_i) and any positive definite G, |eps_i(theta)| = |z_i'u| <= h_i sqrt(u'Gu), u = (-theta, 1), where
h_i^2 = z_i'G^{-1}z_i is the leverage of the row. G is the mean of z z' over the first rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..io.shelf import Shelf
from ..programs.quadratic import Quadratic
from ..radii.cut import CutRun
from ..radii.passed_rows import PassedRows
from ..radii.sums import CutSums
from ..statistics.bellman import BellmanSystem, box_rows, evenly_spread
from ..statistics.partial import PartialStatistic
from ..statistics.stream_question import StreamQuestion
from ..statistics.streaming import BatchColumns, sums_of
from ..validation import FloatArray

RIDGES = (1e-9, 1e-7, 1e-5, 1e-3, 1.0)
"""Of G, in units of the squares of its columns: keeps it positive definite, with an inverse whose rounding can be counted."""

SAFE = 0.1
"""So far at most may the computed inverse be off, relative."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Leverage:
    """How large residuals can be: h_i = (z_i'G^{-1}z_i)^{1/2}.

    With W the computed inverse of a factor of G, z'G^{-1}z = (Wz)'(WGW')^{-1}(Wz) <= ||Wz||^2 / (1 - d) where ||WGW' - 1|| <= d:
    whatever rounding did to W, h is not too small.

    metric:   G.
    inverse:  W.
    size:     of the columns.
    factor:   (1 - d)^{-1/2}.
    rounding: ||Wz|| is off by at most so many ||z / size||.
    """

    metric: FloatArray
    inverse: FloatArray
    size: FloatArray
    factor: float
    rounding: float

    @classmethod
    def of(cls, first: BellmanSystem) -> Leverage:
        """G from the first rows."""
        columns = np.column_stack([first.residuals, first.target])
        squares = np.mean(columns**2, axis=0)
        mean = max(float(squares.mean()), np.finfo(np.float64).tiny)
        size = np.sqrt(np.where(squares > EPS**2 * mean, squares, mean))
        scaled = columns / size
        gram, m = scaled.T @ scaled / len(columns), len(size)
        for ridge in RIDGES:
            metric = (gram + ridge * np.eye(m)) * np.outer(size, size)
            inverse = np.linalg.inv(np.linalg.cholesky(gram + ridge * np.eye(m))) / size
            off = float(np.linalg.norm(inverse @ metric @ inverse.T - np.eye(m)))
            off += 3 * m * EPS * float(np.linalg.norm(np.abs(inverse) @ np.abs(metric) @ np.abs(inverse.T)))
            if off <= SAFE:
                break
        rounding = 2 * m * EPS * float(np.linalg.norm(inverse * size))
        return cls(metric, inverse, size, (1 - off) ** -0.5, rounding)

    def at(self, columns: FloatArray) -> FloatArray:
        """h of rows (Z_i, v_i)."""
        found = np.linalg.norm(columns @ self.inverse.T, axis=1)
        return np.asarray((found + self.rounding * np.linalg.norm(columns / self.size, axis=1)) * self.factor * (1 + 1e-12))

    @property
    def quadratic(self) -> Quadratic:
        """u'Gu of theta."""
        m = len(self.metric) - 1
        return Quadratic(self.metric[:m, :m], self.metric[:m, m], float(self.metric[m, m]))


class _CutSum:
    """Sums of w_i and w_i^2 with the columns [Z | v]."""

    def __init__(self, run: CutRun, count: int, columns: int) -> None:
        self.run, self._count, self._met = run, count, 0
        self._total, self._squares = np.zeros(columns), np.zeros((columns, columns))
        self._absolute = self._square = 0.0

    def take(self, points: FloatArray, columns: FloatArray, features: FloatArray) -> FloatArray:
        """|w_i| of the next rows; the first ones of the log have none. features: phi at the points."""
        early = min(len(points), max(self.run.earlier - self._met, 0))
        self._met += len(points)
        weights = self.run.take(points[early:], columns[early:, :-1], None, features[early:])
        weighted = columns[early:] * weights[:, None]
        self._total += weighted.sum(axis=0)
        self._squares += weighted.T @ weighted
        self._absolute += float(np.abs(weights).sum())
        self._square += float(weights @ weights)
        return np.concatenate([np.zeros(early), np.abs(weights)])

    def keep(self, shelf: Shelf) -> None:
        """Where it stands."""
        self.run.keep(shelf.within("weights"))
        shelf.put("total", self._total)
        shelf.put("squares", self._squares)
        shelf.put("absolute", self._absolute)
        shelf.put("square", self._square)
        shelf.put("met", self._met)

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept."""
        self.run.resume(shelf.within("weights"))
        self._total = shelf.floats("total", *self._total.shape)
        self._squares = shelf.floats("squares", *self._squares.shape)
        self._absolute, self._square, self._met = shelf.number("absolute"), shelf.number("square"), shelf.count("met")

    def sums(self) -> CutSums:
        n = self._count
        return CutSums(
            total=self._total / n,
            squares=self._squares / n**2,
            count=n,
            absolute=self._absolute,
            length=float(np.sqrt(self._square)),
            kind=self.run.kind.value,
            earlier=self.run.earlier,
            rate=self.run.width.rate,
        )


@dataclass(frozen=True, eq=False)
class Passed:
    """What a pass leaves behind.

    Attributes
    ----------
    sums : PartialStatistic
    system : BellmanSystem
        With no rows, but for those of the value box.
    rows : PassedRows
    """

    sums: PartialStatistic
    system: BellmanSystem
    rows: PassedRows


class StreamPass:
    """Takes the rows of one class in, part by part and in order.

    question: what they are summed for.
    first:    the system of the first rows, which G is made from.
    count:    how many rows there are.
    run:      makes the weights of the cut; None: there is none.
    keep:     the columns of so many rows are kept.
    """

    def __init__(self, question: StreamQuestion, first: BellmanSystem, count: int, run: CutRun | None, keep: int) -> None:
        self._question, self._first, self._count, self._at = question, first, count, 0
        self._stride = -(-count // max(min(keep, count), 1))
        self._box = evenly_spread(count)
        self._cut = None if run is None else _CutSum(run, count - run.earlier, first.dimension + 1)
        self._sums: PartialStatistic | None = None
        self._kept: list[FloatArray] = []
        self._box_here: list[FloatArray] = []
        self._box_after: list[FloatArray] = []
        self._largest = np.zeros(2)
        self._leverage = Leverage.of(first)

    def take(self, rows: BatchColumns, found: PartialStatistic | None = None) -> None:
        """The next rows; found: their sums, where they are known already."""
        self.add(sums_of(rows, self._question) if found is None else found)
        self.pass_by(rows)

    def add(self, sums: PartialStatistic) -> None:
        """Sums over rows, whoever made them."""
        self._sums = sums if self._sums is None else self._sums + sums

    def pass_by(self, rows: BatchColumns) -> None:
        """The next rows, for all but their sums: what needs their order."""
        count = len(rows.target)
        columns = np.column_stack([rows.residuals, rows.target])
        scale = np.sqrt(self._question.kernel.diagonal(rows.points))
        phi = rows.here[:, : rows.here.shape[1] - self._question.function_class.intercept]  # without the constant
        weights = np.zeros(count) if self._cut is None else self._cut.take(rows.points, columns, phi)
        some = slice((-self._at) % self._stride, None, self._stride)  # copied, so that the other rows can be forgotten
        self._kept.append(np.column_stack([columns[some], scale[some], weights[some]]))
        if self._stride > 1:
            leverage = self._leverage.at(columns)
            self._largest = np.maximum(self._largest, [(scale * leverage).max(), (weights * leverage).max()])
        here = self._box[np.searchsorted(self._box, self._at) : np.searchsorted(self._box, self._at + count)] - self._at
        self._box_here.append(box_rows(rows.here, rows.anchor_here, here))
        self._box_after.append(box_rows(rows.after, rows.anchor_after, here[rows.live[here]]))
        self._at += count

    def keep(self, shelf: Shelf) -> None:
        """Where it stands; rows must have been taken."""
        assert self._sums is not None
        self._sums.keep(shelf.within("sums"))
        self._kept, self._box_here, self._box_after = (
            [np.concatenate(each)] for each in (self._kept, self._box_here, self._box_after)
        )
        shelf.put("rows", self._kept[0])
        shelf.put("box_here", self._box_here[0])
        shelf.put("box_after", self._box_after[0])
        shelf.put("largest", self._largest)
        if self._cut is not None:
            self._cut.keep(shelf.within("cut"))

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept; `ValueError` where that cannot be."""
        self._sums = PartialStatistic.kept(shelf.within("sums"), self._question.subject)
        self._at = self._sums.count
        kept, wide = -(-self._at // self._stride), self._first.box_rows.shape[1]
        self._kept = [shelf.floats("rows", kept, self._first.dimension + 3)]
        self._box_here, self._box_after = [shelf.floats("box_here", None, wide)], [shelf.floats("box_after", None, wide)]
        self._largest = shelf.floats("largest", 2)
        if self._cut is not None:
            self._cut.resume(shelf.within("cut"))

    @property
    def rows(self) -> int:
        """How many have gone by."""
        return self._at

    def done(self) -> Passed:
        """What is left when all rows have gone by."""
        assert self._sums is not None and self._at == self._count
        first, sums, m = self._first, self._sums, self._first.dimension
        kept = np.ascontiguousarray(np.concatenate(self._kept))  # rounded alike in whatever pieces it came
        others = None
        if self._stride > 1:
            others = self._leverage.quadratic
        ends = self._largest[:, None] if self._stride > 1 else np.zeros((2, 0))
        at_start = len(evenly_spread(len(self._question.question.starts)))
        system = replace(
            first.first(0),
            box_moments=box_moments(sums, self._question),
            box_rows=np.ascontiguousarray(
                np.concatenate([*self._box_here, *self._box_after, first.box_rows[len(first.box_rows) - at_start :]])
            ),
        )
        return Passed(
            sums=sums,
            system=system,
            rows=PassedRows(
                residuals=kept[:, :m],
                target=kept[:, m],
                scale=np.append(kept[:, m + 1], ends[0]),
                weights=np.append(kept[:, m + 2], ends[1]),
                others=others,
                cut=None if self._cut is None else self._cut.sums(),
            ),
        )


def box_moments(sums: PartialStatistic, question: StreamQuestion) -> FloatArray:
    """The mean of u u' over data, next and start points, as `bellman_system` has it of rows that are at hand."""
    moments = [sums.data_moments / sums.count, question.start_moments]
    if sums.count > sums.ended:
        moments.append(sums.next_moments / (sums.count - sums.ended))
    return np.asarray(np.mean(moments, axis=0))
