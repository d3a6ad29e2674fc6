"""One more martingale: a weighted sum of residuals whose weights point at the value itself.

For weights w_i that depend on the past and x_i alone, sum_i w_i eps_i(Q) is a martingale at the true Q, so the theorems bound it
as they bound ||S_n||: it is ||S_n|| for the kernel w(x) w(y). If sum_i w_i Z_i / n is near c0, the sum is near the difference
between the value of Q and an estimate of it, and its bound is a cut straight across the feasible set.

The first rows have weight 0 and choose between several ways to weigh the others, by how wide each cut would be. The others come
in blocks, and every block gets weights made from the rows before it, aimed at what the blocks before have left of c0. Everything
is predictable: no row decides its own weight, nor does a later one.
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
from ..validation import FloatArray, frozen, positive, probability_level, same_rows, vector
from .bounded_weights import BoundedWeights, Regression, bounded_weights
from .earlier_rows import block_edges, earlier_rows
from .fitted_weights import FittedWeights, KernelFit, fitted_weights
from .sums import CutSums

OFFERED_GAIN = 2.0
"""Offered weights are taken where the first rows predict a cut so many times narrower than the others: what so few rows say of
products of ratios is mostly chance, and where it was believed sooner, intervals became wider more often than narrower."""


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

    def __post_init__(self) -> None:
        positive(self.step_range, "step_range")
        probability_level(self.delta)
        if self.offered is not None:
            object.__setattr__(self, "offered", frozen(vector(self.offered, "offered")))
            same_rows(len(self.system.target), self.offered, "offered", "system")


@dataclass(frozen=True, eq=False)
class Cut:
    """Weights in [-1, 1], one per row, 0 for the `earlier` rows that chose them.

    Attributes
    ----------
    weights : array (n,)
    earlier : int
    kind : CutKind
    rate : float
        l in cosh(l sum_i w_i eps_i), at most 0.97 / step_range, that is best at residuals as large as those of the first rows.
    predicted : float
        The half-width that the first rows predict, in units of the value.
    """

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
        missed = (0.0, 0.0)
        if system.remainder is not None:
            lengths = np.abs(w) * system.remainder.rows * (1 + 1e-12)
            missed = (float(lengths.sum()) / n, float(np.linalg.norm(lengths)) / n)
        return CutSums(
            total=w @ columns / n,
            squares=squares,
            count=n,
            absolute=float(np.abs(w).sum()),
            length=float(np.linalg.norm(w)),
            kind=self.kind.value,
            earlier=self.earlier,
            rate=self.rate,
            missed=missed,
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
        missed=sums.missed,
        gap=(gap * sums.absolute / n, gap * sums.length / n),
    )


def choose_cut(question: CutQuestion) -> Cut | None:
    """The weights with which the first rows predict the narrowest cut, or None where there are too few rows or all weights are 0.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> from accountable_ope.problem import Experience
    >>> from accountable_ope.radii.cut import CutQuestion, choose_cut
    >>> from accountable_ope.statistics import bellman_system
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> system = bellman_system(Experience(data, mdp.starts, mdp.policy, discount=0.6), mdp.features())
    >>> cut = choose_cut(CutQuestion(system, aope.Gaussian(1.0), step_range=2.0, delta=0.05))
    >>> cut.kind.value, cut.earlier, cut.count
    ('bounded', 50, 950)
    """
    system, edges = question.system, block_edges(len(question.system.target), question.system.dimension)
    if not edges:
        return None
    first = slice(0, edges[0])
    regression, fit = Regression(system, question.kernel, edges[0]), KernelFit(system, question.kernel, edges[0])
    known = (question.step_range, question.delta, question.norm_bound)
    earlier = earlier_rows(system, regression(first), fit.psi[first], edges, known)
    candidates: list[tuple[CutKind, FittedWeights | BoundedWeights | None]] = [
        (CutKind.FITTED, fitted_weights(system, earlier, fit)),
        (CutKind.BOUNDED, bounded_weights(system, earlier, regression)),
    ]
    if question.offered is not None:
        candidates.append((CutKind.OFFERED, bounded_weights(system, earlier, regression, question.offered)))
    found = [(each.width, kind, each) for kind, each in candidates if each is not None]
    if not found:
        return None
    width, kind, best = min(found, key=lambda one: one[0].predicted * (OFFERED_GAIN if one[1] is CutKind.OFFERED else 1.0))
    return Cut(frozen(best.weights()), earlier.first, kind, width.rate, width.predicted)


def _quadratic(gram: FloatArray) -> Quadratic:
    m = len(gram) - 1
    return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]))
