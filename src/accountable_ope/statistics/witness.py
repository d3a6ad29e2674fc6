"""Where in state-action space an estimate is wrong: its residuals, smoothed by the kernel.

The witness is f(x) = (1/n) sum_i eps_i K(x_i, x), the function of the kernel's space along which the residuals add up most: the
loss is (1/n) sum_i eps_i f(x_i). Where f is positive the estimate is too low for what follows, where it is negative too high.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked
from ..kernels.kernel import Kernel, block
from ..kernels.products import kernel_product
from ..validation import FloatArray, IntArray

EVALUATED = 2000
"""At most so many data points are evaluated, evenly spaced; all residuals enter at each of them."""


@dataclass(frozen=True, eq=False)
class Region:
    """A neighborhood of a data point where the residuals have one sign.

    center:        the point (s, a).
    mean_residual: the kernel-weighted mean of eps around it: what the estimate lacks there, per step.
    share:         which part of the loss comes from the evaluated points of this neighborhood.
    """

    center: FloatArray
    row: int
    witness: float
    mean_residual: float
    share: float


@checked
@dataclass(frozen=True, eq=False)
class Witness:
    """The smoothed residual at data points: where an estimate is wrong.

    Attributes
    ----------
    rows : array of int
        The rows at which it was evaluated.
    points : array
        The points (s, a) of these rows.
    values : array
        The smoothed residuals there.
    regions : tuple of Region
        Where it is largest.
    top_rows : array of int
        The rows that contribute most to the loss.
    """

    rows: IntArray
    points: FloatArray
    values: FloatArray
    regions: tuple[Region, ...]
    top_rows: IntArray

    def __repr__(self) -> str:
        return f"Witness({len(self.rows)} rows, {len(self.regions)} regions)"

    def counted_from(self, row: int) -> Witness:
        """The same with rows counted as in a log of which these are those from this one on."""
        regions = tuple(replace(each, row=each.row + row) for each in self.regions)
        return replace(self, rows=self.rows + row, regions=regions, top_rows=self.top_rows + row) if row else self


@checked
def witness_of(residuals: FloatArray, points: FloatArray, kernel: Kernel, regions: int = 3) -> Witness:
    """Evaluate the witness at data points and pick the regions, largest first, none within the reach of another (K > 1/2).

    Parameters
    ----------
    residuals : array (n,)
        Of the estimate.
    points : array (n, d)
    kernel : Kernel
    regions : int
        The most regions to pick.

    Returns
    -------
    Witness

    Examples
    --------
    >>> import numpy as np
    >>> from accountable_ope import Gaussian
    >>> from accountable_ope.statistics.witness import witness_of
    >>> points = np.array([[0.0], [0.1], [5.0], [9.0]])
    >>> found = witness_of(np.array([1.0, 1.0, 0.0, -0.5]), points, Gaussian(0.5), regions=2)
    >>> [region.center.tolist() for region in found.regions]
    [[0.0], [9.0]]
    """
    rows = witness_rows(len(points))
    sums = kernel_product(kernel, points, np.column_stack([residuals, np.ones(len(points))]), at=points[rows])
    return witness_from(SmoothedRows(rows, points[rows], residuals[rows], sums, len(points)), kernel, regions)


def witness_rows(count: int) -> IntArray:
    """The rows at which a witness is evaluated, of so many."""
    return np.unique(np.linspace(0, count - 1, min(EVALUATED, count)).round().astype(np.int64))


@dataclass(frozen=True, eq=False)
class SmoothedRows:
    """Some of `count` rows, with sums over all of them.

    rows, points, residuals: these rows.
    sums: array (k, 2), sum_i eps_i K(x_i, x) and sum_i K(x_i, x) at each of them.
    """

    rows: IntArray
    points: FloatArray
    residuals: FloatArray
    sums: FloatArray
    count: int


def witness_from(smoothed: SmoothedRows, kernel: Kernel, regions: int = 3) -> Witness:
    """The witness from sums that are known."""
    rows, at, (sums, weights) = smoothed.rows, smoothed.points, smoothed.sums.T
    values = sums / smoothed.count
    contribution = smoothed.residuals * values
    total = float(contribution.sum())
    found: list[Region] = []
    free = np.ones(len(rows), dtype=bool)
    while len(found) < regions and free.any():
        top = int(np.argmax(np.where(free, np.abs(values), -1.0)))
        near = block(kernel, at[top : top + 1], at)[0] > 0.5 * kernel.supremum
        near[top] = True
        share = float(contribution[near & free].sum()) / total if total > 0 else 0.0
        found.append(Region(at[top], int(rows[top]), float(values[top]), float(sums[top] / weights[top]), share))
        free &= ~near
    order = np.argsort(-contribution)[:10]
    return Witness(rows, at, values, tuple(found), rows[order])
