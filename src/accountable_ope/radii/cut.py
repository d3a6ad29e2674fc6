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
from typing import Protocol

import numpy as np

from ..io.shelf import Shelf
from ..kernels.kernel import Kernel
from ..programs.envelope import Envelope
from ..programs.evidence import Evidence
from ..programs.quadratic import Quadratic
from ..statistics.bellman import BellmanSystem
from ..threads import BLOCK_ROWS, side_by_side, sum_by_blocks
from ..validation import FloatArray, frozen, positive, probability_level, same_rows, vector
from .bounded_weights import Regression, bounded_weights
from .earlier_rows import Width, block_edges, earlier_rows
from .fitted_weights import KernelFit, fitted_weights
from .sums import CutSums

OFFERED_GAIN = 2.0
"""Offered weights are taken where the first rows predict a cut so many times narrower than the others: what so few rows say of
products of ratios is mostly chance, and where it was believed sooner, intervals became wider more often than narrower."""


PIECE = 2**14
"""So many rows are weighed at a time: what is regressed on takes more memory than the rows."""


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


class Weigher(Protocol):
    """Makes weights of rows that come in order, in blocks: `aim` fixes how those of the next block are weighed."""

    @property
    def width(self) -> Width:
        """How wide the cut would be, and the bound of weights."""
        ...

    def aim(self, share: FloatArray, remaining: int) -> None:
        """From all rows so far; share: what every one of the remaining rows should bring of c0."""
        ...

    def take(
        self, points: FloatArray, residuals: FloatArray, offered: FloatArray | None, features: FloatArray | None
    ) -> FloatArray:
        """Weights of the next rows within the bound; what they teach shows in the next block.

        features: phi at the points, where they are known already.
        """
        ...

    def keep(self, shelf: Shelf) -> None:
        """What the rows taught, for a run that goes on later."""
        ...

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept: the next weights are those that would have come, to the last bit."""
        ...


class CutRun:
    """The weights of all rows after the first ones, which come in order and in pieces of any size.

    Attributes
    ----------
    kind : CutKind
    width : Width
    earlier : int
        How many first rows chose them.
    """

    def __init__(self, kind: CutKind, weigher: Weigher, objective: FloatArray, edges: tuple[int, ...]) -> None:
        self.kind, self.width, self.earlier = kind, weigher.width, edges[0]
        self._weigher, self._edges = weigher, edges
        self._left, self._at, self._block = objective * (edges[-1] - edges[0]), edges[0], 0

    def take(
        self,
        points: FloatArray,
        residuals: FloatArray,
        offered: FloatArray | None = None,
        features: FloatArray | None = None,
    ) -> FloatArray:
        """Weights in [-1, 1] of the next rows; features: phi at the points, where they are known already."""
        found, n = [], self._edges[-1]
        done = 0
        while done < len(points):
            if self._at == self._edges[self._block]:
                self._weigher.aim(self._left / (n - self._at), n - self._at)
                self._block += 1
            rows = slice(done, min(done + self._edges[self._block] - self._at, done + PIECE, len(points)))
            Z = residuals[rows]
            some = (None if each is None else each[rows] for each in (offered, features))
            weights = self._weigher.take(points[rows], Z, *some)
            self._left = self._left - weights @ Z
            self._at += len(Z)
            done = rows.stop
            found.append(weights)
        return np.concatenate(found) / self.width.bound if found else np.zeros(0)

    def keep(self, shelf: Shelf) -> None:
        """Where it stands."""
        shelf.put("left", self._left)
        shelf.put("at", self._at)
        shelf.put("block", self._block)
        self._weigher.keep(shelf.within(self.kind.value))

    def resume(self, shelf: Shelf) -> None:
        """Take over what `keep` kept."""
        self._left = shelf.floats("left", len(self._left))
        self._at, self._block = shelf.count("at"), shelf.count("block")
        if not (self.earlier <= self._at <= self._edges[-1] and self._block < len(self._edges)):
            raise ValueError(f"its cut stands at row {self._at}")
        self._weigher.resume(shelf.within(self.kind.value))


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
        residuals, target = system.residuals, system.target

        def moments(rows: slice) -> FloatArray:
            columns = side_by_side([residuals[rows], target[rows]])
            weighted = columns * w[rows, None]
            return np.concatenate([(w[rows] @ columns)[None], weighted.T @ weighted])

        total, *squares = np.asarray(sum_by_blocks(moments, len(w), BLOCK_ROWS))
        missed = (0.0, 0.0)
        if system.remainder is not None:
            lengths = np.abs(w) * system.remainder.rows * (1 + 1e-12)
            missed = (float(lengths.sum()) / n, float(np.linalg.norm(lengths)) / n)
        return CutSums(
            total=total / n,
            squares=np.array(squares) / n**2,
            count=n,
            absolute=float(np.abs(w).sum()),
            length=float(np.linalg.norm(w)),
            kind=self.kind.value,
            earlier=self.earlier,
            rate=self.rate,
            missed=missed,
        )


def cut_evidence(sums: CutSums, scale: FloatArray, envelope: Envelope, gap: float) -> Evidence:
    """(sum_i w_i eps_i)^2 and sum_i w_i^2 eps_i^2 as quadratics of the coefficients; residuals may be off by `gap`.

    scale: |w_i| of the rows.
    """
    n = sums.count
    return Evidence(
        name="cut",
        squared=_quadratic(np.outer(sums.total, sums.total)),
        variance=_quadratic(sums.squares),
        count=n,
        reach=1.0,
        mass=sums.length**2,
        envelope=envelope,
        scale=scale,
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
    system, n = question.system, len(question.system.target)
    run = begin_cut(question, n)
    if run is None:
        return None
    later = slice(run.earlier, n)
    offered = None if question.offered is None else question.offered[later]
    weights = np.concatenate([np.zeros(run.earlier), run.take(system.points[later], system.residuals[later], offered)])
    return Cut(frozen(weights), run.earlier, run.kind, run.width.rate, run.width.predicted)


def begin_cut(question: CutQuestion, n: int) -> CutRun | None:
    """The weights of a log of n rows, of which the system need have no more than the first ones."""
    system, edges = question.system, block_edges(n, question.system.dimension)
    if not edges:
        return None
    kernel, first = question.kernel, edges[0]
    regression, fit = Regression(system, kernel, first), KernelFit(system, kernel, first)
    known = (question.step_range, question.delta, question.norm_bound)
    earlier = earlier_rows(system, regression.means(regression.first), fit.first, edges, known)
    candidates: list[tuple[CutKind, Weigher | None]] = [
        (CutKind.FITTED, fitted_weights(system, earlier, fit)),
        (CutKind.BOUNDED, bounded_weights(system, earlier, regression)),
    ]
    if question.offered is not None:
        candidates.append((CutKind.OFFERED, bounded_weights(system, earlier, regression, question.offered)))
    found = [(each.width.predicted, kind, each) for kind, each in candidates if each is not None]
    if not found:
        return None
    _, kind, best = min(found, key=lambda one: one[0] * (OFFERED_GAIN if one[1] is CutKind.OFFERED else 1.0))
    return CutRun(kind, best, system.objective, edges)


def _quadratic(gram: FloatArray) -> Quadratic:
    m = len(gram) - 1
    return Quadratic(gram[:m, :m], gram[:m, m], float(gram[m, m]))
