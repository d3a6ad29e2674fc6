"""One more martingale: a weighted sum of residuals whose weights point at the value itself.

For weights w_i that depend on the past and x_i alone, sum_i w_i eps_i(Q) is a martingale at the true Q, so the theorems bound it as
they bound ||S_n||: it is ||S_n|| for the kernel w(x) w(y). If sum_i w_i Z_i / n is near c0, the sum is near the difference between
the value of Q and an estimate of it, and its bound is a cut straight across the feasible set.

The first rows have weight 0 and choose between several ways to weigh the others, by how wide each cut would be. The others come in
blocks, and every block gets weights made from the rows before it, aimed at what the blocks before have left of c0. Everything is
predictable: no row decides its own weight, nor does a later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..kernels.kernel import Kernel
from ..programs.envelope import Envelope
from ..programs.evidence import Evidence
from ..programs.quadratic import Quadratic
from ..statistics.bellman import BellmanSystem
from ..validation import FloatArray, frozen
from .bounded_weights import Regression, bounded_weights
from .earlier_rows import block_edges, earlier_rows
from .fitted_weights import Fit, fitted_weights
from .sums import CutSums


class CutKind(Enum):
    """Where the weights of a cut come from."""

    FITTED = "fitted"
    BOUNDED = "bounded"
    OFFERED = "propensities"


@dataclass(frozen=True, eq=False)
class CutQuestion:
    """What weights are made from.

    Attributes
    ----------
    system : BellmanSystem
    kernel : Kernel
    step_range : float
        b, known before the data: no residual of the true Q is larger.
    delta : float
        The share of the cut.
    norm_bound : float or None
        Declared, if any.
    offered : array (n,) or None
        Raw weights of which each was known before r_i and s'_i, such as those of importance sampling.
    """

    system: BellmanSystem
    kernel: Kernel
    step_range: float
    delta: float
    norm_bound: float | None = None
    offered: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Cut:
    """Weights in [-1, 1], one per row, 0 for the `earlier` rows that fitted the first of them."""

    weights: FloatArray
    earlier: int
    kind: CutKind
    rate: float
    predicted: float

    @property
    def count(self) -> int:
        return len(self.weights) - self.earlier

    def sums(self, system: BellmanSystem) -> CutSums:
        """All that the evidence needs of the rows."""
        n, w = self.count, self.weights
        columns = np.column_stack([system.residuals, system.target])
        weighted = columns * w[:, None]
        squares = weighted.T @ weighted / n**2
        return CutSums(
            total=w @ columns / n,
            squares=squares,
            count=n,
            absolute=float(np.abs(w).sum()),
            length=float(np.linalg.norm(w)),
            kind=self.kind.value,
            earlier=self.earlier,
            rate=self.rate,
        )


def cut_evidence(sums: CutSums, cut: Cut, envelope: Envelope, gap: float) -> Evidence:
    """(sum_i w_i eps_i)^2 and sum_i w_i^2 eps_i^2 as quadratics of the coefficients; residuals may be off by `gap`."""
    n = sums.count
    return Evidence(
        name="cut",
        squared=_quadratic(np.outer(sums.total, sums.total)),
        variance=_quadratic(sums.squares),
        count=n,
        reach=1.0,
        mass=sums.length**2,
        envelope=envelope,
        scale=np.abs(cut.weights),
        gap=(gap * sums.absolute / n, gap * sums.length / n),
    )


def choose_cut(question: CutQuestion) -> Cut | None:
    """The weights, or None where there are too few rows to make any."""
    system = question.system
    n = len(system.target)
    edges = block_edges(n, system.dimension)
    if len(edges) < 2:
        return None
    regression, fit = Regression(system, question.kernel, edges[0]), Fit(system, question.kernel, edges[0])
    means = regression(slice(0, edges[0]))
    earlier = earlier_rows(system, means, fit.psi, edges, question.step_range, question.delta, question.norm_bound)
    candidates = [
        (CutKind.FITTED, fitted_weights(system, earlier, fit)),
        (CutKind.BOUNDED, bounded_weights(system, earlier, regression)),
    ]
    if question.offered is not None:
        candidates.append((CutKind.OFFERED, bounded_weights(system, earlier, regression, question.offered)))
    found = [(kind, each) for kind, each in candidates if each is not None]
    if not found:
        return None
    kind, best = min(found, key=lambda each: each[1].width.predicted)
    return Cut(frozen(best.weights()), earlier.first, kind, best.width.rate, best.width.predicted)


def _quadratic(gram: FloatArray) -> Quadratic:
    m = len(gram) - 1
    return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]))
